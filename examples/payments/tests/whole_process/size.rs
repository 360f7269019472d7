//! D-32: very large bodies and very large batches, within the smallest memory that Lambda sells.

use std::time::Duration;

use lambda_inbox_testkit::event::event;
use lambda_inbox_testkit::runtime::{LocalRuntime, LocalRuntimeBuilder, Sink};
use serde_json::json;

use crate::bank::{Bank, NONE, failures, id, payment, payment_with};

/// For a thousand payments on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);
const KIB: usize = 1024;
/// A piece of every body here that is long enough to be in nothing else.
const PIECE: &str = "xxxxxxxxxxxxxxxx";

#[tokio::test]
async fn large_bodies_are_processed_and_stay_out_of_inbox_and_log() {
    let mut bank = Bank::open().await;
    // At the most talkative level that there is.
    let (log, builder) = logged(bank.function().env("AWS_LAMBDA_LOG_LEVEL", "TRACE"));
    let mut function = builder.start().await.unwrap();

    let sizes = [256 * KIB, 1024 * KIB];
    let event = event((1..).zip(sizes).map(|(n, size)| {
        let rest = payment(n).to_value()["body"].as_str().unwrap().len();
        payment_with(n, json!("x".repeat(size - rest)))
    }));
    assert_eq!(failures(function.invoke(&event).await), NONE);
    bank.assert_booked_once([1, 2]).await;
    assert_small(&function);

    let rows: Vec<String> = sqlx::query_scalar("SELECT inbox::text FROM lambda_inbox.inbox")
        .fetch_all(&mut bank.connection)
        .await
        .unwrap();
    assert!(
        rows.iter()
            .all(|row| !row.contains(PIECE) && row.len() < KIB)
    );
    let log = std::fs::read_to_string(log.path()).unwrap();
    assert!(log.contains(&id(2)), "the log tells of its messages");
    assert!(!log.contains(PIECE), "the log quotes a body");
}

#[tokio::test]
async fn a_thousand_records_in_one_event_are_all_processed() {
    let mut bank = Bank::open().await;
    let (log, builder) = logged(bank.function().timeout(PATIENCE));
    let mut function = builder.start().await.unwrap();

    let event = event((0..1000).map(|n| payment_with(n, json!(PIECE))));
    assert_eq!(failures(function.invoke(&event).await), NONE);
    bank.assert_booked_once(0..1000).await;
    assert_small(&function);
    let log = std::fs::read_to_string(log.path()).unwrap();
    assert!(!log.contains(PIECE), "the log quotes a body");
}

/// Its output goes to a file, which is complete when a response is there: the process writes it itself.
fn logged(builder: LocalRuntimeBuilder) -> (tempfile::NamedTempFile, LocalRuntimeBuilder) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let builder = builder
        .stdout(Sink::File(file.path().to_owned()))
        .stderr(Sink::File(file.path().to_owned()));
    (file, builder)
}

/// Lambda's smallest size, and the one that the environment announces.
#[cfg(target_os = "linux")]
fn assert_small(function: &LocalRuntime) {
    const MEMORY_MAX: usize = 128 * 1024 * KIB;
    let status = format!("/proc/{}/status", function.pid().unwrap());
    let status = std::fs::read_to_string(status).unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB"))
        .unwrap();
    let peak = KIB * peak.trim().parse::<usize>().unwrap();
    assert!(peak < MEMORY_MAX, "{peak} bytes at the peak");
}

#[cfg(not(target_os = "linux"))]
fn assert_small(_function: &LocalRuntime) {}
