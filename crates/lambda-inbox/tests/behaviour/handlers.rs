//! What can be a handler, and what a handler learns of its message.

use crate::support::{MINUTE, World, one, store_effect};
use lambda_inbox::aws_lambda_events::sqs::SqsBatchResponse;
use lambda_inbox::lambda_runtime::LambdaEvent;
use lambda_inbox::sqlx::PgConnection;
use lambda_inbox::{Handler, HandlerError, InboxError, InboxEvent, InboxService, Message};
use lambda_inbox_testkit::event::{Record, event};
use std::time::{Duration, SystemTime};
use tower::{Service, ServiceBuilder};

#[derive(serde::Deserialize)]
struct Payment {
    amount: i64,
}

async fn bare(payment: &Message<Payment>, _: &mut PgConnection) -> Result<(), HandlerError> {
    if payment.body.amount == 7 {
        Ok(())
    } else {
        Err("another amount".into())
    }
}

struct Desk {
    amount: i64,
}

impl Handler<Payment> for Desk {
    async fn handle(
        &self,
        payment: &Message<Payment>,
        _: &mut PgConnection,
    ) -> Result<(), HandlerError> {
        if payment.body.amount == self.amount {
            Ok(())
        } else {
            Err("another amount".into())
        }
    }
}

#[tokio::test]
async fn a_bare_async_fn_and_a_struct_are_handlers_alike() {
    let world = World::new().await;
    let inbox = || world.inbox().build().unwrap();
    let payment = |id: &str| event([Record::new(r#"{"amount":7}"#).message_id(id).to_value()]);
    let answer = world
        .deliver(&inbox().handler(bare), MINUTE, payment("m-1"))
        .await;
    assert_eq!(answer, Ok(vec![]));
    let answer = world
        .deliver(&inbox().handler(Desk { amount: 7 }), MINUTE, payment("m-2"))
        .await;
    assert_eq!(answer, Ok(vec![]));
    let answer = world
        .deliver(&inbox().handler(Desk { amount: 8 }), MINUTE, payment("m-3"))
        .await;
    assert_eq!(answer, Ok(vec!["m-3".to_owned()]));
}

#[tokio::test]
async fn the_service_meets_the_runtimes_bounds_and_composes_with_tower_layers() {
    fn assert_service<S>(_: &S)
    where
        S: Service<LambdaEvent<InboxEvent>, Response = SqsBatchResponse> + Clone + Send + 'static,
        S::Future: Send,
    {
    }
    let world = World::new().await;
    let inner = world.inbox().build().unwrap().text_handler(store_effect);
    assert_service::<InboxService>(&inner);

    let layered = ServiceBuilder::new()
        .map_err(|error: InboxError| error)
        .map_response(|mut response: SqsBatchResponse| {
            response.batch_item_failures.clear();
            response
        })
        .service(inner);
    assert_service(&layered);
    let _ = || lambda_inbox::run(layered.clone());
    assert_eq!(
        world.deliver(&layered, MINUTE, one("m-1")).await,
        Ok(vec![])
    );
}

#[tokio::test]
async fn a_message_carries_everything_that_came_with_it() {
    async fn look(message: &Message<String>, _: &mut PgConnection) -> Result<(), HandlerError> {
        let sent_at = SystemTime::UNIX_EPOCH + Duration::from_millis(1_767_600_000_123);
        let seen = [
            message.message_id() == "m-1",
            message.key().source() == "sqs" && message.key().message_id() == "m-1",
            message.receive_count().get() == 3,
            message.sent_at() == Some(sent_at),
            message.group_id() == Some("tenant-1"),
            message.deduplication_id() == Some("dd-1"),
            message.attribute_text("order-id") == Some("ord-1"),
            message.attribute_text("Order-Id").is_none(),
            message
                .attribute("order-id")
                .is_some_and(|a| a.data_type.as_deref() == Some("String")),
            message.trace_header() == Some("Root=1-5759e988-bd862e3fe1be46a994272793"),
            message.system_attribute("SenderId").is_some(),
            message.record().receipt_handle.is_some(),
            message.idempotency_key().len() == 36,
            message.body == "the body",
        ];
        match seen.iter().position(|ok| !ok) {
            None => Ok(()),
            Some(index) => Err(format!("number {index} is wrong").into()),
        }
    }
    let world = World::new().await;
    let service = world.inbox().build().unwrap().text_handler(look);
    let record = Record::new("the body")
        .message_id("m-1")
        .receive_count(3)
        .sent_at(SystemTime::UNIX_EPOCH + Duration::from_millis(1_767_600_000_123))
        .group("tenant-1")
        .deduplication_id("dd-1")
        .attribute("order-id", "String", "ord-1")
        .trace_header("Root=1-5759e988-bd862e3fe1be46a994272793");
    let answer = world
        .deliver(&service, MINUTE, event([record.to_value()]))
        .await;
    assert_eq!(answer, Ok(vec![]), "{:?}", world.reports());
}

/// What is stored beside the key: the time of SQS, the database's time, and the delivery's id only
/// where the key is another.
#[tokio::test]
async fn a_row_says_when_the_message_was_sent_and_by_which_delivery_it_was_won() {
    let world = World::new().await;
    let service = world.inbox().build().unwrap().text_handler(store_effect);
    let by_attribute = world
        .inbox()
        .key(lambda_inbox::KeyStrategy::attribute("order-id"));
    let by_attribute = by_attribute.build().unwrap().text_handler(store_effect);
    let record = |id: &str| {
        Record::new(id)
            .message_id(id)
            .sent_at(SystemTime::UNIX_EPOCH + Duration::from_millis(1_767_600_000_123))
            .attribute("order-id", "String", "ord-1")
            .to_value()
    };
    assert_eq!(
        world
            .deliver(&service, MINUTE, event([record("m-1")]))
            .await,
        Ok(vec![])
    );
    assert_eq!(
        world
            .deliver(&by_attribute, MINUTE, event([record("m-2")]))
            .await,
        Ok(vec![])
    );
    let as_it_should_be = "SELECT count(*) FROM lambda_inbox.inbox \
        WHERE consumer = 'payments' AND status = 'processed' AND octet_length(fingerprint) = 33 \
        AND sent_at = '2026-01-05T08:00:00.123Z' AND processed_at > now() - interval '1 hour' \
        AND (source, message_id, coalesce(transport_message_id, '')) \
          IN (('sqs', 'm-1', ''), ('order-id', 'ord-1', 'm-2'))";
    assert_eq!(world.count(as_it_should_be).await, 2);
}

/// The user's code is more than the handler: a body's own way of decoding, and a key function.
#[tokio::test]
async fn a_panic_in_decoding_or_in_a_key_function_costs_its_record_alone() {
    struct Fragile;
    impl<'de> serde::Deserialize<'de> for Fragile {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let number = u8::deserialize(deserializer)?;
            assert_ne!(number, 2, "on purpose");
            Ok(Self)
        }
    }
    async fn accept(_: &Message<Fragile>, _: &mut PgConnection) -> Result<(), HandlerError> {
        Ok(())
    }
    let batch = || event(["1", "2", "3"].map(|n| Record::new(n).message_id(n).to_value()));
    let world = World::new().await;
    let service = world.inbox().build().unwrap().handler(accept);
    assert_eq!(
        world.deliver(&service, MINUTE, batch()).await,
        Ok(vec!["2".to_owned()])
    );

    let key = lambda_inbox::key::Custom::new(|content| {
        assert_ne!(content.body, Some("2"), "on purpose");
        Ok((
            "numbers".to_owned(),
            content.body.unwrap_or_default().to_owned(),
        ))
    });
    let service = world
        .inbox()
        .key(key)
        .build()
        .unwrap()
        .text_handler(store_effect);
    assert_eq!(
        world.deliver(&service, MINUTE, batch()).await,
        Ok(vec!["2".to_owned()])
    );
    assert_eq!(world.effects().await, 2);
}
