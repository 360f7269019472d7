//! One transaction for the batch, and what happens where it does not work out.

use crate::support::{MINUTE, World, many, store_effect};
use Outcome::{Busy, Duplicate, Failed, Processed};
use lambda_inbox::sqlx::{self, PgConnection};
use lambda_inbox::{Handler, HandlerError, InboxBuilder, Message, Outcome, Scope};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

impl World {
    fn per_batch(&self) -> InboxBuilder {
        self.inbox().scope(Scope::PerBatch).connections(2)
    }
}

#[derive(Clone, Default)]
struct Noting {
    fail: HashSet<&'static str>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Handler<String> for Noting {
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
        if self.fail.contains(message.message_id()) {
            return Err("on purpose".into());
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_batch_is_one_transaction_in_the_order_of_arrival() {
    let world = World::new().await;
    let noting = Noting::default();
    let service = world
        .per_batch()
        .build()
        .unwrap()
        .text_handler(noting.clone());
    let ids = ["m-3", "m-1", "m-2"];
    assert_eq!(world.deliver(&service, MINUTE, many(ids)).await, Ok(vec![]));
    assert_eq!(*noting.seen.lock().unwrap(), ids);
    assert_eq!(world.outcomes(), [Processed; 3]);
    // Rows of one transaction have one xmin.
    assert_eq!(
        world
            .count("SELECT count(DISTINCT xmin::text) FROM lambda_inbox.inbox")
            .await,
        1
    );
    assert_eq!((world.keys().await, world.effects().await), (3, 3));
}

#[tokio::test]
async fn one_failure_is_rolled_back_with_the_batch_and_then_reported_alone() {
    let world = World::new().await;
    let noting = Noting {
        fail: HashSet::from(["m-2"]),
        ..Noting::default()
    };
    let service = world.per_batch().build().unwrap().text_handler(noting);
    let answer = world
        .deliver(&service, MINUTE, many(["m-1", "m-2", "m-3"]))
        .await;
    assert_eq!(answer, Ok(vec!["m-2".to_owned()]));
    assert_eq!(world.outcomes(), [Processed, Failed, Processed]);
    assert_eq!((world.keys().await, world.effects().await), (2, 2));
}

/// The batch's handlers broke the transaction; run by themselves, the one that did it is found.
#[tokio::test]
async fn a_handler_that_breaks_the_batchs_transaction_is_found() {
    for sql in [
        "COMMIT",
        "ROLLBACK",
        "SELECT 1 FROM nowhere",
        "COMMIT; BEGIN",
    ] {
        static BREAK: Mutex<&str> = Mutex::new("");
        async fn breaking(
            message: &Message<String>,
            connection: &mut PgConnection,
        ) -> Result<(), HandlerError> {
            store_effect(message, connection).await?;
            if message.message_id() == "m-2" {
                let sql = *BREAK.lock().unwrap();
                return crate::support::swallow(connection, sql).await;
            }
            Ok(())
        }
        *BREAK.lock().unwrap() = sql;
        let world = World::new().await;
        // Effects that the handler commits itself would break the unique bodies on the second run.
        let drop = "ALTER TABLE effect DROP CONSTRAINT later";
        sqlx::raw_sql(drop)
            .execute(&mut world.admin().await)
            .await
            .unwrap();
        let service = world.per_batch().build().unwrap().text_handler(breaking);
        let answer = world
            .deliver(&service, MINUTE, many(["m-1", "m-2", "m-3"]))
            .await;
        assert_eq!(
            answer,
            Ok(vec!["m-2".to_owned()]),
            "{sql}: {:?}",
            world.reports()
        );
        assert_eq!(world.keys().await, 2, "{sql}");
    }
}

#[tokio::test]
async fn duplicates_copies_and_busy_keys_do_not_hold_up_the_batch() {
    let world = World::new().await;
    let noting = Noting::default();
    let service = world
        .per_batch()
        .build()
        .unwrap()
        .text_handler(noting.clone());
    assert_eq!(
        world.deliver(&service, MINUTE, many(["m-1", "m-2"])).await,
        Ok(vec![])
    );
    world.reports();
    let holder = world.hold(&["m-5"]).await;

    let ids = ["m-1", "m-3", "m-5", "m-3", "m-4", "m-2"];
    let answer = crate::support::invoke(&service, MINUTE, many(ids)).await;

    assert_eq!(answer, Ok(vec!["m-5".to_owned()]));
    assert_eq!(
        world.outcomes(),
        [Duplicate, Processed, Busy, Duplicate, Processed, Duplicate]
    );
    // Nothing ran twice: the busy key was found before any handler.
    assert_eq!(*noting.seen.lock().unwrap(), ["m-1", "m-2", "m-3", "m-4"]);
    drop(holder);
    assert_eq!(world.effects().await, 4);
}

#[tokio::test]
async fn a_batch_takes_two_round_trips_and_the_handlers_own() {
    let world = World::new().await;
    let proxy = world.proxy().await;
    let inbox = world
        .inbox_behind(&proxy)
        .scope(Scope::PerBatch)
        .build()
        .unwrap();
    let service = inbox.text_handler(store_effect);
    assert_eq!(
        world.deliver(&service, MINUTE, many(["w-1", "w-2"])).await,
        Ok(vec![])
    );
    let ids: Vec<String> = (0..100).map(|n| format!("m-{n}")).collect();
    let batch = || many(ids.iter().map(String::as_str));

    proxy.reset_round_trips();
    assert_eq!(world.deliver(&service, MINUTE, batch()).await, Ok(vec![]));
    assert_eq!(proxy.round_trips(), 2 + 100);

    proxy.reset_round_trips();
    assert_eq!(world.deliver(&service, MINUTE, batch()).await, Ok(vec![]));
    assert_eq!(proxy.round_trips(), 2, "a batch of duplicates");
}

/// One busy key of a thousand is found in about twice the logarithm of the batch's size.
#[tokio::test]
async fn one_busy_key_costs_about_twice_the_logarithm_of_the_batch() {
    let world = World::new().await;
    let proxy = world.proxy().await;
    let inbox = world
        .inbox_behind(&proxy)
        .scope(Scope::PerBatch)
        .build()
        .unwrap();
    let service = inbox.text_handler(nothing);
    assert_eq!(
        world.deliver(&service, MINUTE, many(["w-1", "w-2"])).await,
        Ok(vec![])
    );
    let holder = world.hold(&["m-300"]).await;
    let ids: Vec<String> = (0..1000).map(|n| format!("m-{n}")).collect();

    proxy.reset_round_trips();
    let answer =
        crate::support::invoke(&service, MINUTE, many(ids.iter().map(String::as_str))).await;

    assert_eq!(answer, Ok(vec!["m-300".to_owned()]));
    // 2 log2(1000) = 20 claims, each with a savepoint, and the transactions around them.
    let round_trips = proxy.round_trips();
    assert!(round_trips <= 2 * 20 + 10, "{round_trips}");
    drop(holder);
}

async fn nothing(_: &Message<String>, _: &mut PgConnection) -> Result<(), HandlerError> {
    Ok(())
}

/// C-20: two batches with the same keys in opposite orders wait for each other and never deadlock.
#[tokio::test]
async fn overlapping_batches_never_deadlock_on_the_inbox() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    async fn count(_: &Message<String>, _: &mut PgConnection) -> Result<(), HandlerError> {
        RUNS.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
    let world = World::new().await;
    let ids: Vec<String> = (0..200).map(|n| format!("m-{n}")).collect();
    let forwards = many(ids.iter().map(String::as_str));
    let backwards = many(ids.iter().rev().map(String::as_str));
    let service = || {
        world
            .per_batch()
            .claim_wait(MINUTE)
            .build()
            .unwrap()
            .text_handler(count)
    };
    let (one, other) = (service(), service());
    let (a, b) = tokio::join!(
        crate::support::invoke(&one, MINUTE, forwards),
        crate::support::invoke(&other, MINUTE, backwards)
    );
    assert_eq!((a, b), (Ok(vec![]), Ok(vec![])));
    assert_eq!(world.keys().await, 200);
    assert_eq!(RUNS.load(Ordering::SeqCst), 200);
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(world.count(deadlocks).await, 0);
}

#[tokio::test]
async fn a_lost_commit_reply_is_unknown_for_the_batch_and_has_one_effect_each_in_the_end() {
    let world = World::new().await;
    let proxy = world.proxy().await;
    let inbox = world
        .inbox_behind(&proxy)
        .scope(Scope::PerBatch)
        .build()
        .unwrap();
    let service = inbox.text_handler(store_effect);
    let lost = proxy.lose_reply_to(b"; COMMIT");
    let answer = world.deliver(&service, MINUTE, many(["m-1", "m-2"])).await;
    assert!(lost.fired());
    assert_eq!(answer, Ok(["m-1", "m-2"].map(str::to_owned).to_vec()));
    assert_eq!(world.outcomes(), [Outcome::Unknown; 2]);
    assert_eq!(
        world.deliver(&service, MINUTE, many(["m-1", "m-2"])).await,
        Ok(vec![])
    );
    assert_eq!((world.keys().await, world.effects().await), (2, 2));
}
