//! Which records of a batch run, and which go back.

use crate::support::{MINUTE, World, many, one, store_effect};
use lambda_inbox::sqlx::PgConnection;
use lambda_inbox::{Handler, HandlerError, Message, Outcome};
use lambda_inbox_testkit::event::{Record, event};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};

/// Fails for these ids, after its effect; remembers the order in which messages came.
#[derive(Clone, Default)]
struct Failing {
    ids: HashSet<String>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Failing {
    fn at<'a>(ids: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            ids: ids.into_iter().map(str::to_owned).collect(),
            seen: Arc::default(),
        }
    }

    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

impl Handler<String> for Failing {
    async fn handle(
        &self,
        message: &Message<String>,
        connection: &mut PgConnection,
    ) -> Result<(), HandlerError> {
        self.seen
            .lock()
            .unwrap()
            .push(message.message_id().to_owned());
        store_effect(message, connection).await?;
        if self.ids.contains(message.message_id()) {
            return Err("on purpose".into());
        }
        Ok(())
    }
}

/// one bad record does not make the others run again.
#[tokio::test]
async fn only_the_failed_record_of_ten_goes_back() {
    let world = World::new().await;
    let ids: Vec<String> = (1..=10).map(|n| format!("m-{n}")).collect();
    let batch = || many(ids.iter().map(String::as_str));
    let failing = world
        .inbox()
        .connections(3)
        .build()
        .unwrap()
        .text_handler(Failing::at(["m-7"]));

    assert_eq!(
        world.deliver(&failing, MINUTE, batch()).await,
        Ok(vec!["m-7".to_owned()])
    );
    assert_eq!((world.keys().await, world.effects().await), (9, 9));
    world.reports();

    let mended = world
        .inbox()
        .build()
        .unwrap()
        .text_handler(Failing::default());
    assert_eq!(world.deliver(&mended, MINUTE, batch()).await, Ok(vec![]));
    let outcomes = world.outcomes();
    assert_eq!(
        outcomes
            .iter()
            .filter(|o| **o == Outcome::Duplicate)
            .count(),
        9
    );
    assert_eq!(outcomes[6], Outcome::Processed);
    assert_eq!(world.effects().await, 10);
}

/// a batch that fails as a whole is a full list, not an error.
#[tokio::test]
async fn a_thousand_failures_are_a_thousand_ids_in_the_order_of_arrival() {
    for count in [1, 5, 1000] {
        let world = World::new().await;
        let ids: Vec<String> = (0..count).map(|n| format!("m-{n}")).collect();
        let all = Failing::at(ids.iter().map(String::as_str));
        let service = world
            .inbox()
            .connections(4)
            .build()
            .unwrap()
            .text_handler(all);

        let answer = world
            .deliver(&service, MINUTE, many(ids.iter().map(String::as_str)))
            .await;

        assert_eq!(answer, Ok(ids));
        assert_eq!((world.keys().await, world.effects().await), (0, 0));
    }
}

#[tokio::test]
async fn the_same_message_twice_in_one_batch_has_one_effect() {
    let world = World::new().await;
    let service = world
        .inbox()
        .connections(4)
        .build()
        .unwrap()
        .text_handler(store_effect);
    let batch = many(["m-1", "m-2", "m-1", "m-1"]);
    assert_eq!(world.deliver(&service, MINUTE, batch).await, Ok(vec![]));
    assert_eq!(
        world.outcomes(),
        [
            Outcome::Processed,
            Outcome::Processed,
            Outcome::Duplicate,
            Outcome::Duplicate
        ]
    );
    assert_eq!(world.effects().await, 2);
}

#[tokio::test]
async fn the_same_message_twice_in_one_batch_is_reported_once_where_it_fails() {
    let world = World::new().await;
    let failing = Failing::at(["m-1"]);
    let service = world
        .inbox()
        .connections(4)
        .build()
        .unwrap()
        .text_handler(failing.clone());
    let answer = world.deliver(&service, MINUTE, many(["m-1", "m-1"])).await;
    assert_eq!(answer, Ok(vec!["m-1".to_owned()]));
    // The second waits for the first, then claims for itself.
    assert_eq!(failing.seen(), ["m-1", "m-1"]);
    assert_eq!(world.effects().await, 0);
}

#[tokio::test]
async fn a_record_without_an_id_fails_the_invocation_after_the_others_committed() {
    for odd in [
        json!({"body": "x"}),
        json!({"messageId": "", "body": "x"}),
        json!(null),
        json!(7),
    ] {
        let world = World::new().await;
        let service = world.inbox().build().unwrap().text_handler(store_effect);
        let good = |id: &str| Record::new(id).message_id(id).to_value();
        let batch = || event([good("m-1"), odd.clone(), good("m-2")]);

        let error = world.deliver(&service, MINUTE, batch()).await.unwrap_err();
        assert!(
            error.contains("payments") && error.contains("messageId"),
            "{error}"
        );
        assert_eq!(
            world.outcomes(),
            [Outcome::Processed, Outcome::Poison, Outcome::Processed],
            "{odd}"
        );
        assert_eq!(world.effects().await, 2, "{odd}");

        world.deliver(&service, MINUTE, batch()).await.unwrap_err();
        assert_eq!(
            world.outcomes(),
            [Outcome::Duplicate, Outcome::Poison, Outcome::Duplicate],
            "{odd}"
        );
        assert_eq!(world.effects().await, 2, "{odd}");
    }
}

#[tokio::test]
async fn a_fifo_batch_runs_in_order_and_stops_at_the_first_failure() {
    let world = World::new().await;
    let failing = Failing::at(["m-2"]);
    let service = world
        .inbox()
        .connections(4)
        .build()
        .unwrap()
        .text_handler(failing.clone());
    let fifo = |id: &str| {
        Record::new(id)
            .message_id(id)
            .group("g")
            .queue("orders.fifo")
            .to_value()
    };
    let batch = || event(["m-1", "m-2", "m-3", "m-4"].map(fifo));

    let answer = world.deliver(&service, MINUTE, batch()).await;

    assert_eq!(
        answer,
        Ok(["m-2", "m-3", "m-4"].map(str::to_owned).to_vec())
    );
    assert_eq!(failing.seen(), ["m-1", "m-2"]);
    assert_eq!(
        world.outcomes(),
        [
            Outcome::Processed,
            Outcome::Failed,
            Outcome::NotStarted,
            Outcome::NotStarted
        ]
    );
    let mended = world.inbox().build().unwrap().text_handler(store_effect);
    assert_eq!(world.deliver(&mended, MINUTE, batch()).await, Ok(vec![]));
    assert_eq!(
        world.outcomes(),
        [
            Outcome::Duplicate,
            Outcome::Processed,
            Outcome::Processed,
            Outcome::Processed
        ]
    );
}

#[tokio::test]
async fn poison_stops_a_fifo_batch_too() {
    let world = World::new().await;
    let service = world.inbox().build().unwrap().handler(json_number);
    let fifo = |id: &str, body: &str| {
        Record::new(body)
            .message_id(id)
            .group("g")
            .queue("orders.fifo")
            .to_value()
    };
    let batch = event([fifo("m-1", "1"), fifo("m-2", "one"), fifo("m-3", "3")]);
    let answer = world.deliver(&service, MINUTE, batch).await;
    assert_eq!(answer, Ok(["m-2", "m-3"].map(str::to_owned).to_vec()));
    assert_eq!(
        world.outcomes(),
        [Outcome::Processed, Outcome::Poison, Outcome::NotStarted]
    );
}

/// Fair queues carry group ids on standard queues: a failure there holds nobody up.
#[tokio::test]
async fn a_group_id_on_a_standard_queue_changes_nothing() {
    let world = World::new().await;
    let service = world
        .inbox()
        .build()
        .unwrap()
        .text_handler(Failing::at(["m-1"]));
    let fair = |id: &str| Record::new(id).message_id(id).group("tenant").to_value();
    let answer = world
        .deliver(&service, MINUTE, event(["m-1", "m-2"].map(fair)))
        .await;
    assert_eq!(answer, Ok(vec!["m-1".to_owned()]));
}

#[tokio::test]
async fn records_that_came_most_often_run_first_on_a_standard_queue() {
    let world = World::new().await;
    let seen = Failing::default();
    let service = world.inbox().build().unwrap().text_handler(seen.clone());
    let record = |(id, count): (&str, u32)| {
        Record::new(id)
            .message_id(id)
            .receive_count(count)
            .to_value()
    };
    let batch = event([("m-1", 1), ("m-2", 3), ("m-3", 1), ("m-4", 2)].map(record));
    assert_eq!(world.deliver(&service, MINUTE, batch).await, Ok(vec![]));
    assert_eq!(seen.seen(), ["m-2", "m-4", "m-1", "m-3"]);
}

#[tokio::test]
async fn a_permanent_failure_is_poison_and_its_message_goes_back() {
    let world = World::new().await;
    let service = world.inbox().build().unwrap().text_handler(refuse);
    assert_eq!(
        world.deliver(&service, MINUTE, one("m-1")).await,
        Ok(vec!["m-1".to_owned()])
    );
    let report = world.reports().remove(0);
    assert_eq!(report.outcome, Outcome::Poison);
    assert_eq!(report.reason.as_deref(), Some("never"));
    assert_eq!(world.effects().await, 0);
}

#[tokio::test]
async fn a_panic_costs_its_record_alone() {
    let world = World::new().await;
    let service = world.inbox().build().unwrap().text_handler(panic_at_m_1);
    let answer = world.deliver(&service, MINUTE, many(["m-1", "m-2"])).await;
    assert_eq!(answer, Ok(vec!["m-1".to_owned()]));
    assert_eq!(world.outcomes(), [Outcome::Failed, Outcome::Processed]);
    assert_eq!(world.effects().await, 1);
}

#[tokio::test]
async fn an_event_that_is_not_from_sqs_is_never_an_empty_success() {
    let world = World::new().await;
    let service = world.inbox().build().unwrap().text_handler(store_effect);
    let events: [Value; 4] = [
        json!({"detail-type": "Scheduled Event", "source": "aws.events", "detail": {}}),
        json!({"records": [{"messageId": "m-1", "body": "x"}]}),
        json!({"Records": [{"eventSource": "aws:kinesis", "kinesis": {"data": "eA=="}}]}),
        json!(null),
    ];
    for event in events {
        let error = world
            .deliver(&service, MINUTE, event.clone())
            .await
            .unwrap_err();
        assert!(error.contains("expects an SQS event"), "{event}: {error}");
    }
    assert_eq!(world.effects().await, 0);
}

async fn json_number(
    message: &Message<u64>,
    connection: &mut PgConnection,
) -> Result<(), HandlerError> {
    lambda_inbox::sqlx::query("INSERT INTO effect (message_id) VALUES ($1)")
        .bind(message.body.to_string())
        .execute(connection)
        .await?;
    Ok(())
}

async fn refuse(
    message: &Message<String>,
    connection: &mut PgConnection,
) -> Result<(), HandlerError> {
    store_effect(message, connection).await?;
    Err(HandlerError::permanent("never"))
}

async fn panic_at_m_1(
    message: &Message<String>,
    connection: &mut PgConnection,
) -> Result<(), HandlerError> {
    store_effect(message, connection).await?;
    assert_ne!(message.message_id(), "m-1", "on purpose");
    Ok(())
}
