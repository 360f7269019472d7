//! Every key strategy, on events as they come.

use crate::cases::{case, ids};
use crate::support::{MINUTE, World, store_id};
use Outcome::{Duplicate, Ignored, Mismatch, Poison, Processed};
use lambda_inbox::key::{Attribute, DeduplicationId, EventBridge, JsonPointer, MessageId, Sns};
use lambda_inbox::sqlx::PgConnection;
use lambda_inbox::{
    BoxError, BoxFuture, Envelope, HandlerError, InboxBuilder, KeyStrategy, Message, Outcome,
    PayloadResolver, Report, S3Pointer, S3TestEvents,
};
use lambda_inbox_testkit::event::{Record, event};
use serde_json::{Value, json};

/// Delivers events to a consumer of any body, one after the other.
async fn reports(
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

fn outcomes(reports: &[Report]) -> Vec<Outcome> {
    reports.iter().map(|report| report.outcome).collect()
}

fn keys(reports: &[Report]) -> Vec<String> {
    let key = |report: &Report| {
        let key = report.key.as_ref();
        key.map(|key| format!("{} {}", key.source(), key.message_id()))
            .unwrap_or_default()
    };
    reports.iter().map(key).collect()
}

const TOPIC: &str = "arn:aws:sns:eu-central-1:111122223333:orders";
const SNS_ID: &str = "a0000000-0000-5000-8000-00000000000a";

/// D-08: two SQS ids, one SNS id.
#[tokio::test]
async fn an_sns_message_is_one_by_its_envelope_and_two_by_message_id() {
    let by_envelope = reports(|inbox| inbox.key(Sns::new()), [case("D-08")]).await;
    assert_eq!(outcomes(&by_envelope), [Processed, Duplicate]);
    assert_eq!(keys(&by_envelope)[0], format!("{TOPIC} {SNS_ID}"));
    let by_message_id = reports(|inbox| inbox, [case("D-08")]).await;
    assert_eq!(outcomes(&by_message_id), [Processed, Processed]);
}

/// D-10: delivered twice and replayed.
#[tokio::test]
async fn an_eventbridge_replay_is_a_duplicate_unless_it_is_meant_to_run_again() {
    let once = reports(|inbox| inbox.key(EventBridge::new()), [case("D-10")]).await;
    assert_eq!(outcomes(&once), [Processed, Duplicate]);
    assert_eq!(
        keys(&once)[0],
        "shop.orders e0000000-0000-4000-8000-00000000000e"
    );
    let again = |inbox: InboxBuilder| inbox.key(EventBridge::new().replays_run_again());
    let again = reports(again, [case("D-10"), case("D-10")]).await;
    assert_eq!(
        outcomes(&again),
        [Processed, Processed, Duplicate, Duplicate]
    );
}

/// D-12: EventBridge inside SNS inside SQS: the depth is explicit, and both ids are within reach.
#[tokio::test]
async fn nested_envelopes_come_off_as_deep_as_declared() {
    async fn look(message: &Message<Value>, _: &mut PgConnection) -> Result<(), HandlerError> {
        let sns = message.sns().ok_or("no SNS envelope")?;
        let event = message.event_bridge().ok_or("no EventBridge envelope")?;
        if message.body != json!({"orderId": "ord-14"})
            || sns.message_id != SNS_ID
            || event.id != "e0000000-0000-4000-8000-000000000011"
            || event.detail_type != "OrderPlaced"
        {
            return Err("something else came".into());
        }
        Ok(())
    }
    let both = [Envelope::Sns, Envelope::EventBridge];
    let event_key = "shop.orders e0000000-0000-4000-8000-000000000011";
    let sns_key = format!("{TOPIC} {SNS_ID}");
    let cases: [(KeyStrategy, &[Envelope], &str); 4] = [
        (EventBridge::new().into(), &both, event_key),
        (EventBridge::new().into(), &[Envelope::Sns], event_key),
        (Sns::new().into(), &both, &sns_key),
        (
            KeyStrategy::json_pointer("/orderId"),
            &both,
            "/orderId ord-14",
        ),
    ];
    for (strategy, envelopes, key) in cases {
        let world = World::new().await;
        let inbox = world
            .inbox()
            .key(strategy.clone())
            .unwrap(envelopes.iter().copied());
        let service = inbox.build().unwrap().handler(look);
        let answer = world.deliver(&service, MINUTE, case("D-12")).await;
        let reports = world.reports();
        assert_eq!(answer, Ok(vec![]), "{strategy:?}: {reports:?}");
        assert_eq!(keys(&reports), [key], "{strategy:?}");
    }
    // Nothing is guessed: the outermost envelope is SNS's.
    let guessed = reports(|inbox| inbox.key(EventBridge::new()), [case("D-12")]).await;
    assert_eq!(outcomes(&guessed), [Poison]);
}

/// A body that is not the envelope it was declared to be is poison, told by name and not quoted.
#[tokio::test]
async fn what_is_no_envelope_is_refused() {
    let cases = [
        (Envelope::Sns, "SECRET", "not a JSON object"),
        (
            Envelope::Sns,
            r#"{"orderId":"SECRET"}"#,
            "raw message delivery",
        ),
        (
            Envelope::Sns,
            r#"{"Type":"SubscriptionConfirmation","Message":"x"}"#,
            "Notification",
        ),
        (
            Envelope::Sns,
            r#"{"Type":"Notification","Message":"SECRET"}"#,
            "MessageId",
        ),
        (
            Envelope::EventBridge,
            r#"{"id":"1","source":"SECRET"}"#,
            "detail-type",
        ),
        (Envelope::EventBridge, r#"{"id":7}"#, "not a JSON object"),
    ];
    for (envelope, body, reason) in cases {
        let record = Record::new(body).message_id("m-1").to_value();
        let reports = reports(|inbox| inbox.unwrap([envelope]), [event([record])]).await;
        assert_eq!(outcomes(&reports), [Poison], "{body}");
        let text = reports[0].reason.as_deref().unwrap();
        assert!(
            text.contains(reason) && text.contains("m-1"),
            "{body}: {text}"
        );
        assert!(!text.contains("SECRET"), "{text}");
    }
}

/// D-06: bare or inside SNS, whatever the strategy.
#[tokio::test]
async fn the_test_message_of_s3_is_acknowledged_without_running_the_handler() {
    let bare = case("D-06")["Records"][0]["body"]
        .as_str()
        .unwrap()
        .to_owned();
    let inside = json!({"Type": "Notification", "MessageId": "x", "TopicArn": TOPIC,
        "Message": bare})
    .to_string();
    for strategy in [
        KeyStrategy::default(),
        KeyStrategy::json_pointer("/id"),
        Sns::new().into(),
    ] {
        for body in [&bare, &inside] {
            let record = || event([Record::new(body).message_id("m-1").to_value()]);
            let reports = reports(|inbox| inbox.key(strategy.clone()), [record(), record()]).await;
            assert_eq!(
                outcomes(&reports),
                [Ignored, Duplicate],
                "{strategy:?} {body}"
            );
        }
    }
    let handled = |inbox: InboxBuilder| inbox.s3_test_events(S3TestEvents::Handle);
    assert_eq!(
        outcomes(&reports(handled, [case("D-06")]).await),
        [Processed]
    );
}

#[tokio::test]
async fn an_ignored_message_leaves_a_row_that_says_so() {
    let world = World::new().await;
    let service = world.inbox().build().unwrap().record_handler(store_id);
    assert_eq!(
        world.deliver(&service, MINUTE, case("D-06")).await,
        Ok(vec![])
    );
    let ignored = "SELECT count(*) FROM lambda_inbox.inbox WHERE status = 'ignored'";
    assert_eq!((world.count(ignored).await, world.effects().await), (1, 0));
}

/// D-13: three shapes of pointer.
#[tokio::test]
async fn an_offloaded_body_is_named_wherever_the_body_would_be_read() {
    let strategies: [KeyStrategy; 3] = [
        KeyStrategy::json_pointer("/s3Key"),
        Sns::new().into(),
        #[cfg(feature = "edi")]
        lambda_inbox::key::Edi::new().into(),
        #[cfg(not(feature = "edi"))]
        EventBridge::new().into(),
    ];
    for strategy in strategies {
        let reports = reports(|inbox| inbox.key(strategy.clone()), [case("D-13")]).await;
        assert_eq!(outcomes(&reports), [Poison; 3], "{strategy:?}");
        for report in &reports {
            let reason = report.reason.as_deref().unwrap();
            assert!(
                reason.contains("offloaded payload"),
                "{strategy:?}: {reason}"
            );
        }
    }
}

#[tokio::test]
async fn a_typed_handler_is_not_given_a_pointer_for_a_body() {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Order {
        #[expect(dead_code, reason = "only its decoding matters")]
        order_id: String,
    }
    async fn typed(_: &Message<Order>, _: &mut PgConnection) -> Result<(), HandlerError> {
        Ok(())
    }
    let world = World::new().await;
    let service = world.inbox().build().unwrap().handler(typed);
    let answer = world.deliver(&service, MINUTE, case("D-13")).await;
    assert_eq!(answer, Ok(ids(&[18, 19, 20])));
    for report in world.reports() {
        assert!(
            report
                .reason
                .as_deref()
                .unwrap()
                .contains("offloaded payload"),
            "{report:?}"
        );
    }
}

struct Shelf;

impl PayloadResolver for Shelf {
    fn fetch<'a>(&'a self, pointer: &'a S3Pointer) -> BoxFuture<'a, Result<String, BoxError>> {
        Box::pin(async move {
            match pointer.key.as_str() {
                "k3" => Err("no such object".into()),
                key => Ok(json!({"order": {"id": key}}).to_string()),
            }
        })
    }
}

#[tokio::test]
async fn a_resolver_fetches_offloaded_bodies_from_allowed_buckets() {
    let by_order = || KeyStrategy::json_pointer("/order/id");
    let fetched = reports(
        |i| i.key(by_order()).payload_resolver(["big"], Shelf),
        [case("D-13")],
    )
    .await;
    // What could not be fetched may be there the next time; it is no poison.
    assert_eq!(outcomes(&fetched), [Processed, Processed, Outcome::Failed]);
    assert_eq!(keys(&fetched)[..2], ["/order/id k1", "/order/id k2"]);
    assert!(
        fetched[2]
            .reason
            .as_deref()
            .unwrap()
            .contains("no such object")
    );

    let elsewhere = reports(
        |i| i.key(by_order()).payload_resolver(["other"], Shelf),
        [case("D-13")],
    )
    .await;
    assert_eq!(outcomes(&elsewhere), [Poison; 3]);
    assert!(
        elsewhere[0]
            .reason
            .as_deref()
            .unwrap()
            .contains("allowed buckets")
    );
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
