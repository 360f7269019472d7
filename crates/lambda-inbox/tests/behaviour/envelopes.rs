//! Envelopes of SNS and EventBridge, bodies that stand in S3, and S3's test message.

use crate::cases::{case, ids};
use crate::keys::{keys, outcomes, reports};
use crate::support::{MINUTE, World, store_id};
use Outcome::{Duplicate, Ignored, Poison, Processed};
use lambda_inbox::key::{EventBridge, Sns};
use lambda_inbox::sqlx::PgConnection;
use lambda_inbox::{
    BoxError, BoxFuture, Envelope, HandlerError, InboxBuilder, KeyStrategy, Message, Outcome,
    PayloadResolver, S3Pointer, S3TestEvents,
};
use lambda_inbox_testkit::event::{Record, event};
use serde_json::{Value, json};

pub(crate) const TOPIC: &str = "arn:aws:sns:eu-central-1:111122223333:orders";
pub(crate) const SNS_ID: &str = "a0000000-0000-5000-8000-00000000000a";

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
