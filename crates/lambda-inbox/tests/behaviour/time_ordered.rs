//! The time-ordered layout: the same promise from a table whose rows are told by send time and key.

use crate::scopes::{SCOPES, one_effect};
use crate::support::{MINUTE, World, store_effect, swallow};
use lambda_inbox::key::Custom;
use lambda_inbox::sqlx::PgConnection;
use lambda_inbox::{
    BuildError, Handler, HandlerError, InboxBuilder, Layout, Message, Outcome, Partitions, Schema,
    create_time_ordered,
};
use lambda_inbox_testkit::event::{Record, event};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

async fn world(partitions: Partitions) -> World {
    let world = World::new().await;
    create_time_ordered(&mut world.admin().await, &Schema::default(), partitions)
        .await
        .unwrap();
    world
}

fn inbox(world: &World) -> InboxBuilder {
    world.inbox().layout(Layout::TimeOrdered)
}

fn record(id: &str, sent_at: SystemTime) -> Value {
    Record::new(json!(id).to_string())
        .message_id(id)
        .sent_at(sent_at)
        .to_value()
}

async fn keys(world: &World) -> i64 {
    world
        .count("SELECT count(*) FROM lambda_inbox.inbox_by_time")
        .await
}

#[tokio::test]
async fn a_redelivery_is_a_duplicate_in_every_scope() {
    for partitions in [Partitions::None, Partitions::Daily] {
        for (scope, serve) in SCOPES {
            let world = world(partitions).await;
            let service = serve(inbox(&world));
            let now = SystemTime::now();
            let batch = || event((0..20).map(|n| record(&format!("m-{n}"), now - DAY / 24 * n)));
            for delivery in 0..2 {
                let answer = world.deliver(&service, MINUTE, batch()).await;
                assert_eq!(answer, Ok(vec![]), "{scope}, {partitions}, {delivery}");
            }
            assert_eq!(
                (
                    keys(&world).await,
                    world.effects().await,
                    world.keys().await
                ),
                (20, 20, 0),
                "{scope}, {partitions}"
            );
            let outcomes = world.outcomes();
            let duplicates = outcomes.iter().filter(|o| **o == Outcome::Duplicate);
            assert_eq!(duplicates.count(), 20, "{scope}, {partitions}");
        }
    }
}

#[tokio::test]
async fn a_record_without_a_partition_is_reported_alone_with_the_fix() {
    for (scope, serve) in SCOPES {
        let world = world(Partitions::Daily).await;
        let service = serve(inbox(&world));
        let now = SystemTime::now();
        let batch = event([
            record("m-1", now),
            record("m-2", now + 100 * DAY),
            record("m-3", now),
        ]);
        let answer = world.deliver(&service, MINUTE, batch).await;
        assert_eq!(answer, Ok(vec!["m-2".to_owned()]), "{scope}");
        assert_eq!(
            (keys(&world).await, world.effects().await),
            (2, 2),
            "{scope}"
        );
        let reason = world.reports()[1].reason.clone().unwrap_or_default();
        assert!(reason.contains("run the prune"), "{scope}: {reason}");
    }
}

#[tokio::test]
async fn what_no_send_time_belongs_to_is_refused() {
    let world = world(Partitions::None).await;
    let by_body =
        Custom::new(|content| Ok(("x".to_owned(), content.body.unwrap_or_default().to_owned())));
    let error = inbox(&world).key(by_body).build().unwrap_err();
    assert!(matches!(error, BuildError::Layout), "{error}");

    let service = inbox(&world).build().unwrap().handler(one_effect);
    let mut without = record("m-1", SystemTime::now());
    without["attributes"]
        .as_object_mut()
        .unwrap()
        .remove("SentTimestamp");
    let fifo = Record::new("1")
        .message_id("m-2")
        .queue("orders.fifo")
        .group("g")
        .to_value();
    let standard = record("m-3", SystemTime::now());
    for (record, refusal) in [(without, "SentTimestamp"), (fifo, "standard queues")] {
        let id = record["messageId"].as_str().unwrap().to_owned();
        let answer = world.deliver(&service, MINUTE, event([record])).await;
        assert_eq!(answer, Ok(vec![id]));
        let reason = world.reports()[0].reason.clone().unwrap_or_default();
        assert!(reason.contains(refusal), "{reason}");
    }
    let answer = world.deliver(&service, MINUTE, event([standard])).await;
    assert_eq!(answer, Ok(vec![]));
}

struct CommitsByItself;

impl Handler<String> for CommitsByItself {
    async fn handle(
        &self,
        message: &Message<String>,
        conn: &mut PgConnection,
    ) -> Result<(), HandlerError> {
        store_effect(message, conn).await?;
        swallow(conn, "COMMIT").await
    }
}

#[tokio::test]
async fn a_claim_that_the_handler_committed_is_taken_back() {
    let world = world(Partitions::None).await;
    let service = inbox(&world).build().unwrap().text_handler(CommitsByItself);
    let answer = world
        .deliver(&service, MINUTE, event([record("m-1", SystemTime::now())]))
        .await;
    assert_eq!(answer, Ok(vec!["m-1".to_owned()]));
    assert_eq!((keys(&world).await, world.effects().await), (0, 1));
}
