//! No two identities share a key, whatever separators stand in them, and nothing makes a panic.

use super::{
    Attribute, DeduplicationId, EventBridge, JsonPointer, Key, KeyStrategy, MessageId, Sns,
};
use crate::content::{Content, Envelope, unwrap};
use crate::record::{Head, decode};
use aws_lambda_events::sqs::SqsMessage;
use futures_util::FutureExt;
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Text full of the signs that keys are put together with.
fn tricky() -> impl Strategy<Value = String> {
    "[a-c:;/=%. ]{1,8}|;replay=|.fifo/|v1;|a;replay=b"
}

fn record(value: Value) -> SqsMessage {
    decode(&RawValue::from_string(value.to_string()).unwrap()).unwrap()
}

fn key(strategy: impl Into<KeyStrategy>, record: &SqsMessage) -> Option<Key> {
    let strategy = strategy.into();
    let envelopes: Vec<_> = strategy.envelope().into_iter().collect();
    let content = unwrap(record, &envelopes, None)
        .now_or_never()
        .unwrap()
        .ok()?;
    strategy.key(record, &content).ok().map(|keyed| keyed.key)
}

fn deduplicated((group, id): &(String, String)) -> SqsMessage {
    record(json!({"messageId": "m", "body": "x",
        "eventSourceARN": "arn:aws:sqs:eu-central-1:111122223333:orders.fifo",
        "attributes": {"MessageGroupId": group, "MessageDeduplicationId": id}}))
}

fn notified((topic, id): &(String, String)) -> SqsMessage {
    let body = json!({"Type": "Notification", "MessageId": id, "TopicArn": topic, "Message": "x"});
    record(json!({"messageId": "m", "body": body.to_string()}))
}

fn put((source, id, replay): &(String, String, Option<String>)) -> SqsMessage {
    let mut body = json!({"id": id, "source": source, "detail-type": "t", "detail": {}});
    if let Some(replay) = replay {
        body["replay-name"] = json!(replay);
    }
    record(json!({"messageId": "m", "body": body.to_string()}))
}

fn different<T: PartialEq>(
    (a, b): (T, T),
    key: impl Fn(&T) -> Option<Key>,
) -> Result<(), TestCaseError> {
    if let (false, Some(first), Some(second)) = (a == b, key(&a), key(&b)) {
        prop_assert_ne!(first, second);
    }
    Ok(())
}

proptest! {
    #[test]
    fn two_deduplication_ids_never_share_a_key(
        pair in ((tricky(), tricky()), (tricky(), tricky()))
    ) {
        different(pair, |parts| key(DeduplicationId::new(), &deduplicated(parts)))?;
    }

    #[test]
    fn two_notifications_never_share_a_key(
        pair in ((tricky(), tricky()), (tricky(), tricky()))
    ) {
        different(pair, |parts| key(Sns::new(), &notified(parts)))?;
    }

    #[test]
    fn two_events_or_replays_never_share_a_key(
        pair in (
            (tricky(), tricky(), proptest::option::of(tricky())),
            (tricky(), tricky(), proptest::option::of(tricky())),
        )
    ) {
        different(pair, |parts| key(EventBridge::new().replays_run_again(), &put(parts)))?;
    }

    #[test]
    fn two_values_of_a_body_never_share_a_key(pair in (tricky(), tricky())) {
        different(pair, |id| {
            let body = json!({"id": id}).to_string();
            key(JsonPointer::new("/id"), &record(json!({"messageId": "m", "body": body})))
        })?;
    }

    #[test]
    fn two_attributes_never_share_a_key(pair in (tricky(), tricky())) {
        different(pair, |value| {
            let attribute = json!({"k": {"stringValue": value, "dataType": "String"}});
            key(Attribute::new("k"), &record(json!({"messageId": "m",
                "messageAttributes": attribute})))
        })?;
    }

    #[test]
    fn arbitrary_bodies_and_attributes_make_no_panic(
        body in ".{0,60}|\\{\"id\":.{0,20}\\}|(ISA|UNB|UNA).{0,120}",
        text in ".{0,30}",
    ) {
        let attribute = json!({"stringValue": text, "dataType": "String"});
        let record = record(json!({"messageId": "m", "body": body,
            "attributes": {"MessageGroupId": text, "MessageDeduplicationId": text},
            "messageAttributes": {"k": attribute, "inbox-redrive": attribute}}));
        let strategies: [KeyStrategy; 6] = [
            MessageId::new().into(),
            Attribute::new("k").into(),
            Sns::new().into(),
            EventBridge::new().into(),
            DeduplicationId::new().into(),
            JsonPointer::new("/id").into(),
        ];
        for strategy in strategies {
            let _ = key(strategy, &record);
        }
        #[cfg(feature = "edi")]
        let _ = key(super::Edi::new(), &record);
    }

    #[test]
    fn arbitrary_json_for_a_record_makes_no_panic(json in arbitrary_json()) {
        let raw = RawValue::from_string(json.to_string()).unwrap();
        let _ = Head::of(&raw, &mut None);
        if let Ok(record) = decode(&raw) {
            let both = [Envelope::Sns, Envelope::EventBridge];
            let _ = unwrap(&record, &both, None).now_or_never().unwrap();
            let _ = KeyStrategy::default().key(&record, &Content::default());
        }
    }
}

fn arbitrary_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    let name = "messageId|body|attributes|messageAttributes|eventSourceARN|stringValue|.{0,5}";
    leaf.prop_recursive(4, 24, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(name, inner, 0..5)
                .prop_map(|map| map.into_iter().collect::<Value>()),
        ]
    })
}
