//! What AWS would not let one set up or send.

use std::time::Duration;

use lambda_inbox_testkit::queue::{ConfigError, Outgoing, SendError};

use crate::{fifo, grouped, send_all, simulator, standard};

#[test]
fn settings_that_aws_would_refuse_are_refused() {
    let secs = Duration::from_secs;
    let batch_size = |batch_size, max| ConfigError::BatchSize { batch_size, max };
    let visibility = |visibility_timeout, function_timeout| ConfigError::VisibilityTimeout {
        visibility_timeout,
        function_timeout,
    };
    let table = [
        (standard().batch_size(0), batch_size(0, 10_000)),
        (standard().batch_size(10_001), batch_size(10_001, 10_000)),
        (fifo().batch_size(11), batch_size(11, 10)),
        (
            standard().queue_name("q.fifo").batch_size(11),
            batch_size(11, 10),
        ),
        (
            standard().function_timeout(secs(0)),
            ConfigError::FunctionTimeout(secs(0)),
        ),
        (
            standard().function_timeout(secs(901)),
            ConfigError::FunctionTimeout(secs(901)),
        ),
        (
            standard().function_timeout(secs(31)),
            visibility(secs(30), secs(31)),
        ),
        (
            standard().visibility_timeout(secs(43_201)),
            visibility(secs(43_201), secs(5)),
        ),
        (
            standard().max_receive_count(0),
            ConfigError::MaxReceiveCount(0),
        ),
        (
            standard().max_receive_count(1_001),
            ConfigError::MaxReceiveCount(1_001),
        ),
        (
            standard().retention(secs(59)),
            ConfigError::Retention(secs(59)),
        ),
        (
            standard().dead_letter_retention(secs(14 * 86_400 + 1)),
            ConfigError::Retention(secs(14 * 86_400 + 1)),
        ),
        (
            standard().duplicate_rate(1.5),
            ConfigError::DuplicateRate(1.5),
        ),
    ];
    for (config, error) in table {
        assert_eq!(config.build().unwrap_err(), error);
    }
    assert!(matches!(
        standard().duplicate_rate(f64::NAN).build(),
        Err(ConfigError::DuplicateRate(_))
    ));
}

#[test]
fn messages_that_sqs_would_refuse_are_refused() {
    let attributes = |count: usize| {
        let add = |m: Outgoing, n| m.attribute(format!("a{n}"), "String", "x");
        (0..count).fold(Outgoing::new("1"), add)
    };
    let by_id = || fifo().content_based_deduplication(false);
    let table = [
        (fifo(), Outgoing::new("1"), SendError::GroupMissing),
        (
            by_id(),
            grouped("1", "g"),
            SendError::DeduplicationIdMissing,
        ),
        (
            standard(),
            Outgoing::new("1").deduplication_id("d"),
            SendError::DeduplicationIdOnStandard,
        ),
        (standard(), Outgoing::new(""), SendError::EmptyBody),
        (
            standard(),
            Outgoing::new("a\u{1}"),
            SendError::Character('\u{1}'),
        ),
        (
            standard(),
            Outgoing::new("a\u{ffff}"),
            SendError::Character('\u{ffff}'),
        ),
        (standard(), attributes(11), SendError::TooManyAttributes(11)),
        (
            standard(),
            Outgoing::new("x".repeat(1024 * 1024 - 2)).attribute("a", "S", "1"),
            SendError::TooLarge(1024 * 1024 + 1),
        ),
    ];
    for (config, message, error) in table {
        assert_eq!(simulator(config).send(message), Err(error));
    }
    let fine = [
        attributes(10),
        Outgoing::new("tab\t line\r\n ü 😀"),
        Outgoing::new("x".repeat(1024 * 1024)),
    ];
    assert_eq!(send_all(&mut simulator(standard()), fine).len(), 3);
}
