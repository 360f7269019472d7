//! One handler for the whole batch: one poison row never takes the others with it.

use crate::support::{MINUTE, World, many};
use Outcome::{Busy, Duplicate, Failed, Poison, Processed};
use lambda_inbox::sqlx::{self, Connection, PgConnection};
use lambda_inbox::{BulkError, BulkHandler, HandlerError, Message, Outcome};
use lambda_inbox_testkit::event::{Record, event};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Numbers, so that the bodies are JSON.
fn batch<'a>(records: impl IntoIterator<Item = (&'a str, &'a str)>) -> Value {
    event(
        records
            .into_iter()
            .map(|(id, body)| Record::new(body).message_id(id).to_value()),
    )
}

fn numbered(count: usize) -> (Vec<String>, Value) {
    let ids: Vec<String> = (0..count).map(|n| format!("m-{n:05}")).collect();
    let records = ids
        .iter()
        .map(|id| Record::new("1").message_id(id).to_value());
    let event = event(records);
    (ids, event)
}

async fn store_all(
    messages: &[Message<i64>],
    connection: &mut PgConnection,
) -> Result<(), BulkError> {
    let ids: Vec<&str> = messages
        .iter()
        .map(|message| message.message_id())
        .collect();
    // A zero divides, and fails the whole statement.
    let numbers: Vec<i64> = messages.iter().map(|message| message.body).collect();
    sqlx::query(
        "INSERT INTO effect (message_id) \
         SELECT id FROM unnest($1::text[], $2::bigint[]) AS m (id, n) WHERE 1 / n IS NOT NULL",
    )
    .bind(ids)
    .bind(numbers)
    .execute(connection)
    .await?;
    Ok(())
}

/// Remembers the sizes of the sets it was given.
#[derive(Clone)]
struct Sizes<H> {
    inner: H,
    sizes: Arc<Mutex<Vec<usize>>>,
}

impl<H: BulkHandler<i64>> BulkHandler<i64> for Sizes<H> {
    async fn handle(
        &self,
        messages: &[Message<i64>],
        connection: &mut PgConnection,
    ) -> Result<(), BulkError> {
        self.sizes.lock().unwrap().push(messages.len());
        self.inner.handle(messages, connection).await
    }
}

#[tokio::test]
async fn a_thousand_messages_take_two_round_trips_and_the_handlers_own() {
    let world = World::new().await;
    let proxy = world.proxy().await;
    let service = world
        .inbox_behind(&proxy)
        .build()
        .unwrap()
        .bulk_handler(store_all);
    assert_eq!(
        world.deliver(&service, MINUTE, batch([("w", "1")])).await,
        Ok(vec![])
    );
    let (_, thousand) = numbered(1000);

    proxy.reset_round_trips();
    assert_eq!(
        world.deliver(&service, MINUTE, thousand.clone()).await,
        Ok(vec![])
    );
    assert_eq!(proxy.round_trips(), 2 + 1);
    assert_eq!((world.keys().await, world.effects().await), (1001, 1001));

    // Duplicates never reach the handler.
    proxy.reset_round_trips();
    assert_eq!(world.deliver(&service, MINUTE, thousand).await, Ok(vec![]));
    assert_eq!(proxy.round_trips(), 2);
    assert_eq!(world.effects().await, 1001);
}

#[tokio::test]
async fn one_poison_row_is_found_by_halving_and_reported_alone() {
    let world = World::new().await;
    let sizes = Arc::new(Mutex::new(Vec::new()));
    let handler = Sizes {
        inner: store_all,
        sizes: Arc::clone(&sizes),
    };
    let service = world.inbox().build().unwrap().bulk_handler(handler);
    let (ids, mut event) = numbered(1000);
    event["Records"][637]["body"] = "0".into();

    let answer = world.deliver(&service, MINUTE, event).await;

    assert_eq!(answer, Ok(vec![ids[637].clone()]));
    let report = world
        .reports()
        .into_iter()
        .find(|r| r.outcome != Processed)
        .unwrap();
    assert_eq!((report.position, report.outcome), (637, Failed));
    assert!(report.reason.unwrap().contains("division by zero"));
    assert_eq!((world.keys().await, world.effects().await), (999, 999));
    // About twice the logarithm of the batch's size, not a thousand.
    let runs = sizes.lock().unwrap().len();
    assert!(runs <= 2 * 10 + 1, "{runs}");
}

#[tokio::test]
async fn named_messages_are_reported_and_the_others_run_again_without_them() {
    async fn name_the_negative(
        messages: &[Message<i64>],
        connection: &mut PgConnection,
    ) -> Result<(), BulkError> {
        let negative = messages.iter().filter(|message| message.body < 0);
        let named: Vec<_> = negative
            .map(|message| match message.body {
                -1 => (message, HandlerError::permanent("negative")),
                _ => (message, HandlerError::retry("too negative")),
            })
            .collect();
        // Whatever the handler did before it found out is rolled back.
        store_all(messages, connection).await?;
        if named.is_empty() {
            Ok(())
        } else {
            Err(BulkError::messages(named))
        }
    }
    let world = World::new().await;
    let sizes = Arc::new(Mutex::new(Vec::new()));
    let handler = Sizes {
        inner: name_the_negative,
        sizes: Arc::clone(&sizes),
    };
    let service = world.inbox().build().unwrap().bulk_handler(handler);
    let records = [
        ("m-1", "1"),
        ("m-2", "-1"),
        ("m-3", "3"),
        ("m-4", "-2"),
        ("m-5", "5"),
    ];

    let answer = world.deliver(&service, MINUTE, batch(records)).await;

    assert_eq!(answer, Ok(["m-2", "m-4"].map(str::to_owned).to_vec()));
    assert_eq!(
        world.outcomes(),
        [Processed, Poison, Processed, Failed, Processed]
    );
    assert_eq!(*sizes.lock().unwrap(), [5, 3]);
    assert_eq!((world.keys().await, world.effects().await), (3, 3));
}

#[tokio::test]
async fn duplicates_busy_keys_copies_and_bad_bodies_keep_the_rest_going() {
    let world = World::new().await;
    let service = world.inbox().build().unwrap().bulk_handler(store_all);
    assert_eq!(
        world.deliver(&service, MINUTE, batch([("m-1", "1")])).await,
        Ok(vec![])
    );
    world.reports();
    let holder = world.hold(&["m-4"]).await;

    let records = [
        ("m-1", "1"),
        ("m-2", "2"),
        ("m-3", "three"),
        ("m-4", "4"),
        ("m-2", "2"),
    ];
    let answer = crate::support::invoke(&service, MINUTE, batch(records)).await;

    assert_eq!(answer, Ok(["m-3", "m-4"].map(str::to_owned).to_vec()));
    assert_eq!(
        world.outcomes(),
        [Duplicate, Processed, Poison, Busy, Duplicate]
    );
    drop(holder);
    assert_eq!(world.effects().await, 2);
}

/// A bulk handler that breaks the transaction is reported, and leaves no claim.
#[tokio::test]
async fn a_bulk_handler_that_breaks_the_transaction_is_reported_and_leaves_no_claim() {
    async fn commits(_: &[Message<i64>], c: &mut PgConnection) -> Result<(), BulkError> {
        sqlx::raw_sql("COMMIT").execute(c).await?;
        Ok(())
    }
    async fn swallows(_: &[Message<i64>], c: &mut PgConnection) -> Result<(), BulkError> {
        let _ = sqlx::raw_sql("SELECT 1 FROM nowhere").execute(c).await;
        Ok(())
    }
    async fn forgets(_: &[Message<i64>], c: &mut PgConnection) -> Result<(), BulkError> {
        std::mem::forget(c.begin().await?);
        Ok(())
    }
    async fn panics(_: &[Message<i64>], _: &mut PgConnection) -> Result<(), BulkError> {
        panic!("on purpose")
    }
    async fn hangs(_: &[Message<i64>], c: &mut PgConnection) -> Result<(), BulkError> {
        sqlx::raw_sql("SELECT pg_sleep(60)").execute(c).await?;
        Ok(())
    }
    let world = World::new().await;
    let inbox = || world.inbox().build().unwrap();
    let services = [
        inbox().bulk_handler(commits),
        inbox().bulk_handler(swallows),
        inbox().bulk_handler(forgets),
        inbox().bulk_handler(panics),
        inbox().bulk_handler(hangs),
    ];
    for (index, service) in services.into_iter().enumerate() {
        let records = || batch([("m-1", "1"), ("m-2", "2"), ("m-3", "3")]);
        let answer = world
            .deliver(&service, Duration::from_secs(3), records())
            .await;
        assert_eq!(
            answer,
            Ok(["m-1", "m-2", "m-3"].map(str::to_owned).to_vec()),
            "{index}"
        );
        assert_eq!(
            (world.keys().await, world.effects().await),
            (0, 0),
            "{index}"
        );
    }
}

#[tokio::test]
async fn a_database_that_is_down_fails_the_invocation() {
    let world = World::new().await;
    let proxy = world.proxy().await;
    proxy.refuse(true);
    let service = world
        .inbox_behind(&proxy)
        .build()
        .unwrap()
        .bulk_handler(store_all);
    let (_, thousand) = numbered(1000);
    let error = world
        .deliver(&service, MINUTE, thousand.clone())
        .await
        .unwrap_err();
    assert!(error.contains("no connection to the database"), "{error}");
    proxy.refuse(false);
    assert_eq!(
        world.deliver(&service, MINUTE, thousand.clone()).await,
        Ok(vec![])
    );
    assert!(world.database.terminate_backends().await.unwrap() > 0);
    assert_eq!(world.deliver(&service, MINUTE, thousand).await, Ok(vec![]));
    assert_eq!(world.effects().await, 1000);
}

#[tokio::test]
async fn an_empty_batch_runs_nothing() {
    let world = World::new().await;
    let service = world.inbox().build().unwrap().bulk_handler(store_all);
    assert_eq!(world.deliver(&service, MINUTE, many([])).await, Ok(vec![]));
}
