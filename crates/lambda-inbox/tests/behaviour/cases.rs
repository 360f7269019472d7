//! Message bodies in the wild: whole events, as consumers have met them, and what is right.

use crate::support::{MINUTE, World, store_id};
use lambda_inbox::aws_lambda_events::sqs::SqsMessage;
use lambda_inbox::sqlx::{self, PgConnection};
use lambda_inbox::{HandlerError, KeyStrategy, Message, Outcome};
use lambda_inbox_testkit::event::{Record, event};
use serde_json::Value;

use Outcome::{Duplicate, Failed, Poison, Processed};

pub(crate) fn case(name: &str) -> Value {
    let path = format!("{}/tests/cases/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The ids of the cases end in the record's number, in hexadecimal.
pub(crate) fn ids(numbers: &[u32]) -> Vec<String> {
    numbers
        .iter()
        .map(|n| format!("0d01a1c2-0000-4000-8000-{n:012x}"))
        .collect()
}

struct Case {
    name: &'static str,
    outcomes: &'static [Outcome],
    /// Numbers of the records that go back.
    reported: &'static [u32],
}

async fn check(strategy: KeyStrategy, cases: &[Case]) {
    for Case {
        name,
        outcomes,
        reported,
    } in cases
    {
        let world = World::new().await;
        let inbox = world.inbox().key(strategy.clone()).build().unwrap();
        let service = inbox.record_handler(store_id);
        let answer = world.deliver(&service, MINUTE, case(name)).await;
        let reports = world.reports();
        assert_eq!(answer, Ok(ids(reported)), "{name}: {reports:?}");
        let seen: Vec<_> = reports.iter().map(|report| report.outcome).collect();
        assert_eq!(seen, *outcomes, "{name}: {reports:?}");
        let processed = outcomes
            .iter()
            .filter(|outcome| **outcome == Processed)
            .count();
        assert_eq!(
            world.effects().await,
            i64::try_from(processed).unwrap(),
            "{name}"
        );
    }
}

/// D-01, D-02, D-04, D-06, D-08, D-14, D-16, D-17, D-20, D-23, D-25, D-28, D-29, D-31 and A-13, by the
/// default key: it looks at nothing but the MessageId.
#[tokio::test]
async fn the_message_id_is_enough_for_any_body() {
    check(
        KeyStrategy::default(),
        &[
            Case {
                name: "D-01",
                outcomes: &[Processed],
                reported: &[],
            },
            Case {
                name: "D-02",
                outcomes: &[Processed, Processed],
                reported: &[],
            },
            // The binary attribute is not base64, so the record is not an SQS message.
            Case {
                name: "D-04",
                outcomes: &[Poison, Processed],
                reported: &[6],
            },
            // Acknowledged, and the handler does not run.
            Case {
                name: "D-06",
                outcomes: &[Outcome::Ignored],
                reported: &[],
            },
            Case {
                name: "D-08",
                outcomes: &[Processed, Processed],
                reported: &[],
            },
            Case {
                name: "D-10",
                outcomes: &[Processed, Processed],
                reported: &[],
            },
            Case {
                name: "D-13",
                outcomes: &[Processed; 3],
                reported: &[],
            },
            Case {
                name: "D-14",
                outcomes: &[Processed; 4],
                reported: &[],
            },
            Case {
                name: "D-16",
                outcomes: &[Processed, Processed],
                reported: &[],
            },
            Case {
                name: "D-17",
                outcomes: &[Processed, Processed],
                reported: &[],
            },
            Case {
                name: "D-20",
                outcomes: &[Processed, Duplicate, Processed],
                reported: &[],
            },
            Case {
                name: "D-23",
                outcomes: &[],
                reported: &[],
            },
            Case {
                name: "D-25",
                outcomes: &[Processed, Processed],
                reported: &[],
            },
            Case {
                name: "D-28",
                outcomes: &[Processed],
                reported: &[],
            },
            Case {
                name: "D-29",
                outcomes: &[Processed, Processed],
                reported: &[],
            },
            // Numbers where strings are usual are mended: both run.
            Case {
                name: "D-31",
                outcomes: &[Processed, Processed],
                reported: &[],
            },
        ],
    )
    .await;
}

/// D-02, D-04, D-05 and D-25, by the producer's attribute.
#[tokio::test]
async fn an_attribute_key_is_found_or_its_record_is_poison() {
    check(
        KeyStrategy::attribute("outbox-id"),
        &[
            Case {
                name: "D-01",
                outcomes: &[Poison],
                reported: &[1],
            },
            Case {
                name: "D-02",
                outcomes: &[Processed, Poison],
                reported: &[3],
            },
            Case {
                name: "D-04",
                outcomes: &[Poison, Poison],
                reported: &[6, 7],
            },
            Case {
                name: "D-05",
                outcomes: &[Processed],
                reported: &[],
            },
            // SQS attribute names are case-sensitive.
            Case {
                name: "D-25",
                outcomes: &[Poison, Processed],
                reported: &[45],
            },
        ],
    )
    .await;
}

/// D-05 and D-25: text without regard to case and outer blanks, and 16 raw bytes: one UUID.
#[tokio::test]
async fn a_uuid_is_one_key_however_it_is_written() {
    let uuid = "6f1d2c3e-7a4b-4c5d-9e8f-000000000001";
    let bytes = [
        0x6f, 0x1d, 0x2c, 0x3e, 0x7a, 0x4b, 0x4c, 0x5d, 0x9e, 0x8f, 0, 0, 0, 0, 0, 1,
    ];
    let text = |value: &str| {
        Record::new("x")
            .attribute("outbox-id", "String", value)
            .to_value()
    };
    let records = [
        text(uuid),
        text("  6F1D2C3E-7A4B-4C5D-9E8F-000000000001 "),
        Record::new("x")
            .binary_attribute("outbox-id", bytes)
            .to_value(),
    ];
    let world = World::new().await;
    let inbox = world
        .inbox()
        .key(KeyStrategy::attribute("outbox-id"))
        .build()
        .unwrap();
    let service = inbox.record_handler(store_id);
    assert_eq!(
        world.deliver(&service, MINUTE, event(records)).await,
        Ok(vec![])
    );
    let reports = world.reports();
    assert!(
        reports
            .iter()
            .all(|r| r.key.as_ref().unwrap().message_id() == uuid),
        "{reports:?}"
    );
    assert_eq!(world.effects().await, 1);
}

/// A refusal names the strategy, the field and the rule, and never quotes the value.
#[tokio::test]
async fn an_attribute_that_is_no_key_is_refused_by_name() {
    let text = |value: &str| Record::new("x").attribute("order-id", "String", value);
    let cases = [
        (Record::new("x"), "is missing"),
        (text(""), "is empty"),
        (text("  "), "is empty"),
        (text("secret\0"), "NUL"),
        (text(&"secret".repeat(100)), "600 bytes"),
        (
            Record::new("x").binary_attribute("order-id", *b"secret"),
            "6 bytes of binary",
        ),
    ];
    for (record, reason) in cases {
        let world = World::new().await;
        let inbox = world
            .inbox()
            .key(KeyStrategy::attribute("order-id"))
            .build()
            .unwrap();
        let service = inbox.record_handler(store_id);
        let id = record.id().to_owned();
        let answer = world
            .deliver(&service, MINUTE, event([record.to_value()]))
            .await;
        assert_eq!(answer, Ok(vec![id]), "{reason}");
        let text = world.reports().remove(0).reason.unwrap();
        for part in [
            reason,
            "Attribute(order-id)",
            "message attribute \"order-id\"",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("secret"), "{text}");
        assert_eq!(world.keys().await, 0);
    }
}

/// D-29: multi-byte text, CRLF and tab reach the handler unchanged.
#[tokio::test]
async fn a_text_body_reaches_the_handler_byte_for_byte() {
    async fn store_body(
        message: &Message<String>,
        connection: &mut PgConnection,
    ) -> Result<(), HandlerError> {
        sqlx::query("INSERT INTO effect (message_id, body) VALUES ($1, $2)")
            .bind(message.message_id())
            .bind(&message.body)
            .execute(connection)
            .await?;
        Ok(())
    }
    let world = World::new().await;
    let service = world.inbox().build().unwrap().text_handler(store_body);
    assert_eq!(
        world.deliver(&service, MINUTE, case("D-29")).await,
        Ok(vec![])
    );
    let bodies: Vec<String> = sqlx::query_scalar("SELECT body FROM effect ORDER BY message_id")
        .fetch_all(&mut world.admin().await)
        .await
        .unwrap();
    assert_eq!(bodies, ["üüüüüüüüüü\u{1f600}", "line1\r\nline2\ttab"]);
}

/// D-14 and D-16 with a typed body: what does not decode is poison by itself.
#[tokio::test]
async fn a_typed_body_that_does_not_decode_costs_its_record_alone() {
    async fn accept(_: &Message<Value>, _: &mut PgConnection) -> Result<(), HandlerError> {
        Ok(())
    }
    for (name, outcomes, reported) in [
        ("D-14", vec![Poison; 4], ids(&[21, 22, 23, 24])),
        ("D-16", vec![Processed; 2], ids(&[])),
        ("D-17", vec![Poison, Processed], ids(&[28])),
        ("D-18", vec![Processed; 4], ids(&[])),
    ] {
        let world = World::new().await;
        let service = world.inbox().build().unwrap().handler(accept);
        let answer = world.deliver(&service, MINUTE, case(name)).await;
        assert_eq!(answer, Ok(reported), "{name}");
        assert_eq!(world.outcomes(), outcomes, "{name}");
    }
}

/// B-17: a failed record leaves no claim, so it runs when it comes back.
#[tokio::test]
async fn a_failure_leaves_nothing_that_a_replay_could_trip_over() {
    async fn fail(_: &Message<SqsMessage>, _: &mut PgConnection) -> Result<(), HandlerError> {
        Err("not yet".into())
    }
    let world = World::new().await;
    let broken = world.inbox().build().unwrap().record_handler(fail);
    for _ in 0..3 {
        assert_eq!(
            world.deliver(&broken, MINUTE, case("D-01")).await,
            Ok(ids(&[1]))
        );
    }
    assert_eq!(world.outcomes(), [Failed; 3]);
    let mended = world.inbox().build().unwrap().record_handler(store_id);
    assert_eq!(
        world.deliver(&mended, MINUTE, case("D-01")).await,
        Ok(vec![])
    );
    assert_eq!(world.outcomes(), [Processed]);
}
