//! One key, two bodies: never a silent skip.

use crate::support::{MINUTE, World, store_effect, store_id};
use lambda_inbox::{KeyStrategy, MismatchPolicy, Outcome};
use lambda_inbox_testkit::event::{Record, event};
use serde_json::Value;

fn order(message_id: &str, body: &str) -> Value {
    event([Record::new(body)
        .message_id(message_id)
        .attribute("order-id", "String", "ord-1")
        .to_value()])
}

/// B-08: the same key with another amount is a failure of its own, not a duplicate.
#[tokio::test]
async fn the_same_key_with_another_body_is_reported() {
    let world = World::new().await;
    let inbox = world
        .inbox()
        .key(KeyStrategy::attribute("order-id"))
        .build()
        .unwrap();
    let service = inbox.text_handler(store_effect);
    for (id, body, failed, outcome) in [
        (
            "m-1",
            r#"{"amount":10,"currency":"EUR"}"#,
            vec![],
            Outcome::Processed,
        ),
        (
            "m-2",
            r#"{"amount":20,"currency":"EUR"}"#,
            vec!["m-2".to_owned()],
            Outcome::Mismatch,
        ),
        // B-09: a relay that re-serialises sends the same body.
        (
            "m-3",
            r#"{ "currency": "EUR", "amount": 10 }"#,
            vec![],
            Outcome::Duplicate,
        ),
    ] {
        assert_eq!(
            world.deliver(&service, MINUTE, order(id, body)).await,
            Ok(failed),
            "{id}"
        );
        assert_eq!(world.outcomes(), [outcome], "{id}");
    }
    assert_eq!((world.keys().await, world.effects().await), (1, 1));
}

#[tokio::test]
async fn the_switch_skips_a_mismatch_but_still_says_so() {
    let world = World::new().await;
    let inbox = world
        .inbox()
        .key(KeyStrategy::attribute("order-id"))
        .mismatch_policy(MismatchPolicy::Skip)
        .build()
        .unwrap();
    let service = inbox.text_handler(store_effect);
    for (id, body) in [("m-1", "10"), ("m-2", "20")] {
        assert_eq!(
            world.deliver(&service, MINUTE, order(id, body)).await,
            Ok(vec![]),
            "{id}"
        );
    }
    assert_eq!(world.outcomes(), [Outcome::Processed, Outcome::Mismatch]);
    assert_eq!((world.keys().await, world.effects().await), (1, 1));
}

/// B-02: a producer that sends twice makes two MessageIds; only its own attribute tells.
#[tokio::test]
async fn a_producers_retry_is_a_duplicate_by_attribute_and_not_by_message_id() {
    for (key, effects) in [
        (KeyStrategy::default(), 2),
        (KeyStrategy::attribute("order-id"), 1),
    ] {
        let world = World::new().await;
        let service = world
            .inbox()
            .key(key.clone())
            .build()
            .unwrap()
            .text_handler(store_id);
        for id in ["m-1", "m-2"] {
            let answer = world.deliver(&service, MINUTE, order(id, "the same")).await;
            assert_eq!(answer, Ok(vec![]), "{key:?}");
        }
        assert_eq!(world.effects().await, effects, "{key:?}");
    }
}
