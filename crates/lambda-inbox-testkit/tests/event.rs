//! Events built for tests: exactly what the poller delivers.

#![allow(clippy::unwrap_used)] // In helpers too, which Clippy does not take for tests.

use std::time::{Duration, UNIX_EPOCH};

use aws_lambda_events::sqs::SqsEvent;
use lambda_inbox_testkit::event::{Record, event};
use serde_json::{Value, json};

#[test]
fn a_record_has_the_shape_of_a_standard_queue_without_more() {
    let record = Record::new(r#"{"orderId":"ord-1"}"#)
        .message_id("0d01a1c2-0000-4000-8000-000000000001")
        .sent_at(UNIX_EPOCH + Duration::from_millis(1_767_600_000_000));
    let expected = json!({
        "messageId": "0d01a1c2-0000-4000-8000-000000000001",
        "body": "{\"orderId\":\"ord-1\"}",
        "attributes": {
            "ApproximateReceiveCount": "1",
            "SentTimestamp": "1767600000000",
            "SenderId": "AROAEXAMPLEEXAMPLE00:producer",
            "ApproximateFirstReceiveTimestamp": "1767600000010",
        },
        "messageAttributes": {},
        "md5OfBody": "8a66c6f5528d7e14e7e3ef8f15d42f17",
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-central-1:111122223333:orders-in",
        "awsRegion": "eu-central-1",
    });
    assert_eq!(without_receipt_handle(record.to_value()), expected);
}

#[test]
fn every_setter_shows_where_the_poller_puts_it() {
    let record = Record::new("body")
        .queue("orders.fifo")
        .receive_count(3)
        .group("customer-7")
        .deduplication_id("dd-1")
        .sequence_number("18890000000000000001")
        .trace_header("Root=1-5759e988-bd862e3fe1be46a994272793")
        .attribute("kind", "String", "refund")
        .attribute("weight", "Number.int", "7")
        .binary_attribute("stamp", [0_u8, 255])
        .to_value();
    for (pointer, expected) in [
        (
            "/eventSourceARN",
            json!("arn:aws:sqs:eu-central-1:111122223333:orders.fifo"),
        ),
        ("/attributes/ApproximateReceiveCount", json!("3")),
        ("/attributes/MessageGroupId", json!("customer-7")),
        ("/attributes/MessageDeduplicationId", json!("dd-1")),
        ("/attributes/SequenceNumber", json!("18890000000000000001")),
        (
            "/attributes/AWSTraceHeader",
            json!("Root=1-5759e988-bd862e3fe1be46a994272793"),
        ),
        (
            "/messageAttributes",
            json!({
                "kind": attribute("stringValue", "refund", "String"),
                "weight": attribute("stringValue", "7", "Number.int"),
                "stamp": attribute("binaryValue", "AP8=", "Binary"),
            }),
        ),
    ] {
        assert_eq!(record.pointer(pointer), Some(&expected), "{pointer}");
    }
}

/// The digest of `timestamp` is one that AWS returned; it is in the tests of more than one
/// emulator.
#[test]
fn the_digests_are_those_of_sqs() {
    let record = Record::new("hello")
        .attribute("timestamp", "Number", "1493147359900")
        .to_value();
    assert_eq!(record["md5OfBody"], "5d41402abc4b2a76b9719d911017c592");
    assert_eq!(
        record["md5OfMessageAttributes"],
        "235c5c510d26fb653d073faed50ae77c"
    );
}

#[test]
fn ids_and_receipt_handles_are_never_the_same_twice() {
    let (one, other) = (Record::new("body"), Record::new("body"));
    assert_ne!(one.id(), other.id());
    assert_eq!(one.to_value()["messageId"], one.id());
    assert_ne!(
        one.to_value()["receiptHandle"],
        one.to_value()["receiptHandle"]
    );
}

#[test]
fn an_event_is_read_by_the_type_that_functions_use() {
    let event = event([
        Record::new("first").binary_attribute("stamp", *b"\0\xff"),
        Record::new("second").attribute("kind", "String", "refund"),
    ]);
    let event: SqsEvent = serde_json::from_value(event).unwrap();
    let bodies: Vec<_> = event
        .records
        .iter()
        .filter_map(|record| record.body.as_deref())
        .collect();
    assert_eq!(bodies, ["first", "second"]);
    let stamp = event.records[0].message_attributes["stamp"]
        .binary_value
        .as_ref()
        .unwrap();
    assert_eq!(stamp.0, b"\0\xff");
    let kind = event.records[1].message_attributes["kind"]
        .string_value
        .as_deref();
    assert_eq!(kind, Some("refund"));
}

#[test]
fn an_event_may_hold_what_sqs_would_never_send() {
    let event = event([
        Record::new("body").to_value(),
        json!(null),
        json!({ "body": 1 }),
    ]);
    assert_eq!(event["Records"].as_array().unwrap().len(), 3);
    assert_eq!(event["Records"][2], json!({ "body": 1 }));
}

fn attribute(name: &str, value: &str, data_type: &str) -> Value {
    json!({ name: value, "stringListValues": [], "binaryListValues": [], "dataType": data_type })
}

fn without_receipt_handle(mut record: Value) -> Value {
    let handle = record
        .as_object_mut()
        .unwrap()
        .remove("receiptHandle")
        .unwrap();
    assert!(!handle.as_str().unwrap().is_empty());
    record
}
