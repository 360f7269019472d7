//! Order where the queue promises order: within a message group, and nowhere else.

use crate::cases::{case, ids};
use crate::support::{MINUTE, World, store_id};
use Outcome::{Busy, Failed, NotStarted, Poison, Processed};
use lambda_inbox::sqlx::{self, PgConnection};
use lambda_inbox::{Handler, HandlerError, KeyStrategy, Message, Outcome, Scope};
use lambda_inbox_testkit::event::{Record, event};
use serde_json::Value;
use std::collections::HashSet;

/// Stores its effect with the order in which it committed; fails for these ids.
#[derive(Clone, Default)]
struct InOrder {
    fail: HashSet<String>,
}

impl InOrder {
    fn failing<'a>(ids: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            fail: ids.into_iter().map(str::to_owned).collect(),
        }
    }
}

impl Handler<String> for InOrder {
    async fn handle(
        &self,
        message: &Message<String>,
        connection: &mut PgConnection,
    ) -> Result<(), HandlerError> {
        sqlx::query("INSERT INTO effect (message_id) VALUES ($1)")
            .bind(message.message_id())
            .execute(connection)
            .await?;
        if self.fail.contains(message.message_id()) {
            return Err("on purpose".into());
        }
        Ok(())
    }
}

fn fifo(id: &str, group: &str) -> Record {
    Record::new(id)
        .message_id(id)
        .group(group)
        .queue("orders.fifo")
}

fn batch<'a>(records: impl IntoIterator<Item = (&'a str, &'a str)>) -> Value {
    event(
        records
            .into_iter()
            .map(|(id, group)| fifo(id, group).to_value()),
    )
}

/// A-05 and D-27: record 48 fails; 50 of its group does not run and is reported; 49 of another runs.
#[tokio::test]
async fn a_failure_stops_its_group_and_no_other() {
    for scope in [Scope::PerMessage, Scope::PerBatch] {
        let world = World::new().await;
        let failing = ids(&[48]);
        let handler = InOrder::failing(failing.iter().map(String::as_str));
        let inbox = world.inbox().scope(scope).connections(2).build().unwrap();
        let service = inbox.text_handler(handler);
        let answer = world.deliver(&service, MINUTE, case("D-27")).await;
        assert_eq!(answer, Ok(ids(&[48, 50])), "{scope:?}");
        assert_eq!(
            world.outcomes(),
            [Failed, Processed, NotStarted],
            "{scope:?}"
        );

        let mended = world
            .inbox()
            .scope(scope)
            .build()
            .unwrap()
            .text_handler(InOrder::default());
        assert_eq!(
            world.deliver(&mended, MINUTE, case("D-27")).await,
            Ok(vec![]),
            "{scope:?}"
        );
        assert_eq!(
            (world.keys().await, world.effects().await),
            (3, 3),
            "{scope:?}"
        );
    }
}

/// Every outcome that goes back stops its group: busy, poison and mismatch as well as failures.
#[tokio::test]
async fn whatever_goes_back_stops_its_group() {
    for scope in [Scope::PerMessage, Scope::PerBatch] {
        let world = World::new().await;
        let inbox = || world.inbox().scope(scope).connections(3).build().unwrap();
        let service = inbox().handler(store_id::<u64>);
        let record = |id: &str, group: &str, body: &str| {
            Record::new(body)
                .message_id(id)
                .group(group)
                .queue("orders.fifo")
                .to_value()
        };
        // The key of m-3 was used for another body before.
        let earlier = event([record("m-3", "c", "7")]);
        assert_eq!(world.deliver(&service, MINUTE, earlier).await, Ok(vec![]));
        world.reports();
        let holder = world.hold(&["m-1"]).await;

        let batch = event([
            record("m-1", "a", "1"),
            record("m-2", "b", "two"),
            record("m-3", "c", "3"),
            record("m-4", "a", "4"),
            record("m-5", "b", "5"),
            record("m-6", "c", "6"),
            record("m-7", "d", "7"),
        ]);
        let answer = crate::support::invoke(&service, MINUTE, batch).await;

        let back = ["m-1", "m-2", "m-3", "m-4", "m-5", "m-6"]
            .map(str::to_owned)
            .to_vec();
        assert_eq!(answer, Ok(back), "{scope:?}");
        assert_eq!(
            world.outcomes(),
            [
                Busy,
                Poison,
                Outcome::Mismatch,
                NotStarted,
                NotStarted,
                NotStarted,
                Processed
            ],
            "{scope:?}"
        );
        drop(holder);
    }
}

/// Groups run in parallel: two that wait for each other both finish.
#[tokio::test]
async fn groups_run_in_parallel_on_the_held_connections() {
    struct Meet(tokio::sync::Barrier);
    impl Handler<String> for Meet {
        async fn handle(
            &self,
            message: &Message<String>,
            _: &mut PgConnection,
        ) -> Result<(), HandlerError> {
            if message.body.starts_with("first") {
                self.0.wait().await;
            }
            Ok(())
        }
    }
    let meet = Meet(tokio::sync::Barrier::new(2));
    let world = World::new().await;
    let service = world
        .inbox()
        .connections(2)
        .build()
        .unwrap()
        .text_handler(meet);
    let record = |id: &str, group: &str| {
        Record::new(id)
            .message_id(id)
            .group(group)
            .queue("orders.fifo")
            .to_value()
    };
    let batch = event([
        record("first-a", "a"),
        record("second-a", "a"),
        record("first-b", "b"),
        record("second-b", "b"),
    ]);
    assert_eq!(world.deliver(&service, MINUTE, batch).await, Ok(vec![]));
}

/// Two groups with one key between them run one after the other: the second copy waits for the first.
#[tokio::test]
async fn groups_that_share_a_key_share_a_lane() {
    let world = World::new().await;
    let inbox = world
        .inbox()
        .key(KeyStrategy::attribute("order-id"))
        .connections(4);
    let service = inbox.build().unwrap().text_handler(InOrder::default());
    let record = |id: &str, group: &str, order: &str| {
        let record = Record::new("same")
            .message_id(id)
            .group(group)
            .queue("orders.fifo");
        record.attribute("order-id", "String", order).to_value()
    };
    let batch = event([
        record("m-1", "a", "o-1"),
        record("m-2", "b", "o-2"),
        record("m-3", "b", "o-1"),
        record("m-4", "a", "o-3"),
    ]);
    assert_eq!(world.deliver(&service, MINUTE, batch).await, Ok(vec![]));
    assert_eq!(
        world.outcomes(),
        [Processed, Processed, Outcome::Duplicate, Processed]
    );
}

#[tokio::test]
async fn handlers_of_whole_batches_are_refused_on_a_fifo_queue() {
    async fn bulk(
        _: &[Message<Value>],
        _: &mut PgConnection,
    ) -> Result<(), lambda_inbox::BulkError> {
        Ok(())
    }
    let world = World::new().await;
    let inbox = || world.inbox().build().unwrap();
    let sql = "INSERT INTO effect SELECT message_id FROM fresh";
    for service in [inbox().bulk_handler(bulk), inbox().statement(sql).unwrap()] {
        let error = world
            .deliver(&service, MINUTE, batch([("m-1", "a")]))
            .await
            .unwrap_err();
        assert!(error.contains("order of a FIFO queue"), "{error}");
        assert!(error.contains("payments"), "{error}");
    }
    assert_eq!(world.keys().await, 0);
}

/// A copy whose body does not match goes back, and what stands behind it in its group must wait, in
/// the order of arrival, whatever the scope.
#[tokio::test]
async fn a_mismatching_copy_stops_its_group_in_every_scope() {
    for scope in [Scope::PerMessage, Scope::PerBatch] {
        let world = World::new().await;
        let inbox = world.inbox().scope(scope).connections(2).build().unwrap();
        let service = inbox.text_handler(InOrder::default());
        let record = |id: &str, body: &str| {
            let record = Record::new(body).message_id(id).group("a");
            record.queue("orders.fifo").to_value()
        };
        let batch = event([
            record("m-2", "deposit"),
            record("m-2", "another body"),
            record("m-4", "withdraw"),
        ]);
        let answer = world.deliver(&service, MINUTE, batch).await;
        let back = ["m-2", "m-4"].map(str::to_owned).to_vec();
        assert_eq!(answer, Ok(back), "{scope:?}");
        let expected = [Processed, Outcome::Mismatch, NotStarted];
        assert_eq!(world.outcomes(), expected, "{scope:?}");
        assert_eq!(world.effects().await, 1, "{scope:?}");
    }
}

/// A batch that falls back keeps its copies in their places.
#[tokio::test]
async fn a_copy_keeps_its_place_in_its_group_where_the_batch_falls_back() {
    for scope in [Scope::PerMessage, Scope::PerBatch] {
        let world = World::new().await;
        let inbox = world.inbox().scope(scope).build().unwrap();
        let service = inbox.text_handler(InOrder::failing(["m-3"]));
        let batch = batch([
            ("m-1", "a"),
            ("m-1", "a"),
            ("m-2", "a"),
            ("m-3", "a"),
            ("m-4", "a"),
        ]);
        let answer = world.deliver(&service, MINUTE, batch).await;
        let back = ["m-3", "m-4"].map(str::to_owned).to_vec();
        assert_eq!(answer, Ok(back), "{scope:?}");
        let expected = [Processed, Outcome::Duplicate, Processed, Failed, NotStarted];
        assert_eq!(world.outcomes(), expected, "{scope:?}");
    }
}
