//! Every key strategy, on events as they come.

use crate::cases::{case, ids};
use crate::envelopes::{SNS_ID, TOPIC};
use crate::support::{MINUTE, World, store_id};
use Outcome::{Duplicate, Mismatch, Poison, Processed};
use lambda_inbox::key::{Attribute, DeduplicationId, JsonPointer, MessageId, Sns};
use lambda_inbox::{Envelope, InboxBuilder, KeyStrategy, Outcome, Report};
use lambda_inbox_testkit::event::{Record, event};
use serde_json::{Value, json};

/// Delivers events to a consumer of any body, one after the other.
pub(crate) async fn reports(
    configure: impl FnOnce(InboxBuilder) -> InboxBuilder,
    events: impl IntoIterator<Item = Value>,
) -> Vec<Report> {
    let world = World::new().await;
    let service = configure(world.inbox())
        .build()
        .unwrap()
        .record_handler(store_id);
    let mut all = Vec::new();
    for event in events {
        world.deliver(&service, MINUTE, event).await.unwrap();
        all.extend(world.reports());
    }
    let processed = all
        .iter()
        .filter(|report| report.outcome == Processed)
        .count();
    assert_eq!(
        world.effects().await,
        i64::try_from(processed).unwrap(),
        "{all:?}"
    );
    all
}

pub(crate) fn outcomes(reports: &[Report]) -> Vec<Outcome> {
    reports.iter().map(|report| report.outcome).collect()
}

pub(crate) fn keys(reports: &[Report]) -> Vec<String> {
    let key = |report: &Report| {
        let key = report.key.as_ref();
        key.map(|key| format!("{} {}", key.source(), key.message_id()))
            .unwrap_or_default()
    };
    reports.iter().map(key).collect()
}

/// D-14, D-16, D-17 and D-18 by a value of the body.
#[tokio::test]
async fn a_value_of_the_body_is_taken_as_written_or_refused() {
    let by_order = |inbox: InboxBuilder| inbox.key(KeyStrategy::json_pointer("/order/id"));
    let cases: [(&str, &[Outcome]); 5] = [
        ("D-14", &[Poison; 4]),
        // A NUL in the payload does no harm, one in the key cannot be stored.
        ("D-16", &[Processed, Poison]),
        // Half of a surrogate pair elsewhere in the body does not touch the key.
        ("D-17", &[Processed, Processed]),
        // No float rounding: four different numbers are four keys.
        ("D-18", &[Processed; 4]),
        ("D-01", &[Poison]),
    ];
    for (name, expected) in cases {
        let reports = reports(by_order, [case(name)]).await;
        assert_eq!(outcomes(&reports), expected, "{name}: {reports:?}");
        for report in reports.iter().filter(|report| report.outcome == Poison) {
            let (reason, id) = (report.reason.as_deref().unwrap(), &report.message_id);
            for part in ["JsonPointer(/order/id)", id.as_deref().unwrap()] {
                assert!(reason.contains(part), "{name}: {reason}");
            }
        }
    }
    let written = keys(&reports(by_order, [case("D-18")]).await);
    let numbers = [
        "12345678901234567890123",
        "12345678901234567890124",
        "1e2",
        "100",
    ];
    assert_eq!(written, numbers.map(|number| format!("/order/id {number}")));
}

#[tokio::test]
async fn a_body_value_that_is_no_key_is_refused_with_its_type() {
    let cases = [
        (r#"{"order":{"id":null}}"#, "is null"),
        (r#"{"order":{"id":true}}"#, "is a boolean"),
        (r#"{"order":{"id":{}}}"#, "is an object"),
        (r#"{"order":{"id":[]}}"#, "is a list"),
        (r#"{"order":{"id":""}}"#, "is empty"),
        (r#"{"order":{"id":"\ud83d"}}"#, "surrogate"),
        (r#"{"order":{"id":1,"id":2}}"#, "more than once"),
        (r#"{"order":{}}"#, "is missing"),
        ("nope", "not JSON"),
    ];
    for (body, reason) in cases {
        let record = Record::new(body).message_id("m-1").to_value();
        let by_order = |inbox: InboxBuilder| inbox.key(KeyStrategy::json_pointer("/order/id"));
        let reports = reports(by_order, [event([record])]).await;
        assert_eq!(outcomes(&reports), [Poison], "{body}");
        let text = reports[0].reason.as_deref().unwrap();
        assert!(
            text.contains(reason) && text.contains("m-1"),
            "{body}: {text}"
        );
    }
}

fn fifo(id: &str, body: &str, group: Option<&str>, deduplication_id: Option<&str>) -> Value {
    let mut record = Record::new(body).message_id(id).queue("orders.fifo");
    if let Some(group) = group {
        record = record.group(group);
    }
    if let Some(id) = deduplication_id {
        record = record.deduplication_id(id);
    }
    event([record.to_value()])
}

/// B-04: the queue forgets a deduplication id after five minutes, the inbox does not.
#[tokio::test]
async fn a_deduplication_id_is_a_key_within_its_queue_and_group() {
    let by_id = |inbox: InboxBuilder| inbox.key(DeduplicationId::new());
    let deliveries = [
        fifo("m-1", "a", Some("g1"), Some("dd-1")),
        fifo("m-2", "a", Some("g1"), Some("dd-1")),
        fifo("m-3", "a", Some("g2"), Some("dd-1")),
    ];
    let reports = reports(by_id, deliveries).await;
    assert_eq!(outcomes(&reports), [Processed, Duplicate, Processed]);
    assert_eq!(keys(&reports)[0], "orders.fifo/g1 dd-1");
}

/// B-18, B-19 and D-28: ids that do not tell messages apart, and queues that have none.
#[tokio::test]
async fn a_deduplication_id_that_is_a_hash_of_the_body_is_refused() {
    let hash = sha256("the body");
    let record = || fifo("m-1", "the body", Some("g1"), Some(&hash));
    let by_id = |inbox: InboxBuilder| inbox.key(DeduplicationId::new());
    let refused = reports(by_id, [record()]).await;
    assert_eq!(outcomes(&refused), [Poison]);
    assert!(
        refused[0]
            .reason
            .as_deref()
            .unwrap()
            .contains("content-based")
    );

    let asserted = |inbox: InboxBuilder| inbox.key(DeduplicationId::new().asserted_unique());
    assert_eq!(outcomes(&reports(asserted, [record()]).await), [Processed]);

    let standard = reports(by_id, [case("D-28")]).await;
    assert_eq!(outcomes(&standard), [Poison]);
    assert!(
        standard[0]
            .reason
            .as_deref()
            .unwrap()
            .contains("standard queue")
    );
}

/// B-01: AWS's own redrive makes a new MessageId, ours stamps the first one.
#[tokio::test]
async fn a_redrive_stamp_keeps_the_key() {
    let first = || Record::new("x").message_id("m-1").to_value();
    let unstamped = || Record::new("x").message_id("m-2").to_value();
    let stamped = |stamp: &str| {
        Record::new("x")
            .message_id("m-3")
            .attribute("inbox-redrive", "String", stamp)
            .to_value()
    };
    let deliveries = || [event([first()]), event([unstamped()])];
    assert_eq!(
        outcomes(&reports(|i| i, deliveries()).await),
        [Processed, Processed]
    );
    let ours = || [event([first()]), event([stamped("v1;m-1;1767600000000")])];
    assert_eq!(
        outcomes(&reports(|i| i, ours()).await),
        [Processed, Duplicate]
    );
    let ignoring = |i: InboxBuilder| i.key(MessageId::new().ignoring_redrive_stamps());
    assert_eq!(
        outcomes(&reports(ignoring, ours()).await),
        [Processed, Processed]
    );

    for malformed in [
        "",
        "m-1",
        "v1;m-1",
        "v2;m-1;1",
        "v1;;1",
        "v1;m-1;soon",
        "v1;m-1;1;2",
    ] {
        let reports = reports(|i| i, [event([stamped(malformed)])]).await;
        assert_eq!(outcomes(&reports), [Poison], "{malformed}");
        assert!(
            reports[0]
                .reason
                .as_deref()
                .unwrap()
                .contains("inbox-redrive"),
            "{malformed}"
        );
    }
}

/// Declared scopes: the space of a logical key is the user's to name.
#[tokio::test]
async fn a_scope_is_the_source_of_a_logical_key() {
    let attribute = |i: InboxBuilder| i.key(Attribute::new("outbox-id").scope("orders"));
    let by_attribute = reports(attribute, [case("D-05")]).await;
    assert_eq!(
        keys(&by_attribute),
        ["orders 6f1d2c3e-7a4b-4c5d-9e8f-000000000001"]
    );
    let pointer = |i: InboxBuilder| i.key(JsonPointer::new("/orderId").scope("orders"));
    assert_eq!(
        keys(&reports(pointer, [case("D-01")]).await),
        ["orders ord-1"]
    );
}

#[tokio::test]
async fn an_attribute_of_an_sns_publisher_is_found_in_the_envelope() {
    let body = json!({"Type": "Notification", "MessageId": SNS_ID, "TopicArn": TOPIC,
        "Message": "x", "MessageAttributes": {"order-id": {"Type": "String", "Value": "ord-1"}}});
    let record = || event([Record::new(body.to_string()).to_value()]);
    let unwrapped = |i: InboxBuilder| {
        i.key(KeyStrategy::attribute("order-id"))
            .unwrap([Envelope::Sns])
    };
    assert_eq!(
        keys(&reports(unwrapped, [record()]).await),
        ["order-id ord-1"]
    );
    let as_it_came = |i: InboxBuilder| i.key(KeyStrategy::attribute("order-id"));
    assert_eq!(outcomes(&reports(as_it_came, [record()]).await), [Poison]);
}

#[tokio::test]
async fn a_function_of_ones_own_finds_the_key() {
    let custom = || {
        lambda_inbox::key::Custom::new(|content| {
            let body = content.body.ok_or("no body")?;
            let (region, number) = body.split_once('-').ok_or("no number")?;
            Ok((region.to_owned(), number.to_owned()))
        })
    };
    let bodies = ["eu-1", "us-1", "eu-1", "nonsense"];
    let deliveries = bodies.map(|body| event([Record::new(body).to_value()]));
    let reports = reports(|i| i.key(custom()), deliveries).await;
    assert_eq!(
        outcomes(&reports),
        [Processed, Processed, Duplicate, Poison]
    );
    assert!(reports[3].reason.as_deref().unwrap().contains("no number"));
}

#[tokio::test]
async fn a_strategy_that_can_never_find_a_key_is_refused_at_start_up() {
    let cases: [(KeyStrategy, &str); 5] = [
        (KeyStrategy::attribute(""), "name of a message attribute"),
        (
            Attribute::new("x").scope("").into(),
            "scope of Attribute(x)",
        ),
        (KeyStrategy::json_pointer("order.id"), "/order/id"),
        (JsonPointer::new("/a").scope("s\0").into(), "NUL"),
        (JsonPointer::new("").into(), "scope"),
    ];
    for (strategy, reason) in cases {
        let world = World::new().await;
        let error = world.inbox().key(strategy).build().unwrap_err();
        let text = std::error::Error::source(&error).unwrap().to_string();
        assert!(text.contains(reason), "{text}");
    }
}

/// The envelope's own words change between deliveries; what is in it does not.
#[tokio::test]
async fn the_fingerprint_is_of_the_unwrapped_body() {
    let notification = |message: &str, timestamp: &str| {
        let body = json!({"Type": "Notification", "MessageId": SNS_ID, "TopicArn": TOPIC,
            "Message": message, "Timestamp": timestamp});
        event([Record::new(body.to_string()).to_value()])
    };
    let deliveries = [
        notification(r#"{"a":1}"#, "2026-01-05T08:00:00Z"),
        notification(r#"{ "a": 1 }"#, "2026-01-05T09:00:00Z"),
        notification(r#"{"a":2}"#, "2026-01-05T08:00:00Z"),
    ];
    let reports = reports(|inbox| inbox.key(Sns::new()), deliveries).await;
    assert_eq!(outcomes(&reports), [Processed, Duplicate, Mismatch]);
}

/// Which id goes back is SQS's own, whatever the key is.
#[tokio::test]
async fn the_response_names_message_ids_and_never_keys() {
    let world = World::new().await;
    let inbox = world
        .inbox()
        .key(KeyStrategy::json_pointer("/order/id"))
        .build()
        .unwrap();
    let service = inbox.record_handler(store_id);
    assert_eq!(
        world.deliver(&service, MINUTE, case("D-01")).await,
        Ok(ids(&[1]))
    );
}

fn sha256(body: &str) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(body)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
