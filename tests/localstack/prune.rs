//! The function that a schedule invokes.

use crate::bank::{Bank, payment};
use lambda_inbox_tests::{Emulator, Function, FunctionBuilder, Queue, QueueSettings};
use serde_json::json;

/// Of two payments' keys, one was processed this many days ago.
async fn bank_with_an_old_key(emulator: &Emulator, queue: &Queue, days: i32) -> Bank {
    let mut bank = Bank::open().await;
    let function = bank.function(emulator).deploy().await;
    let old = queue.send(&payment(1)).await;
    queue.send(&payment(2)).await;
    function.map(queue, 10).await;
    bank.assert_booked_once([1, 2]).await;
    sqlx::query(
        "UPDATE lambda_inbox.inbox SET processed_at = now() - make_interval(days => $1) \
         WHERE message_id = $2",
    )
    .bind(days)
    .bind(old)
    .execute(&mut bank.connection)
    .await
    .unwrap();
    bank
}

fn prune(emulator: &Emulator, bank: &Bank, queue: &Queue) -> FunctionBuilder {
    Function::builder(emulator, "lambda-inbox-prune")
        .env("DATABASE_URL", bank.database.url())
        .env("LAMBDA_INBOX_QUEUES", queue.arn())
}

async fn keys(bank: &mut Bank) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM lambda_inbox.inbox")
        .fetch_one(&mut bank.connection)
        .await
        .unwrap()
}

#[tokio::test]
async fn an_invocation_forgets_what_is_older_than_the_retention_and_nothing_else() {
    let emulator = Emulator::from_env();
    let queue = Queue::create(&emulator, "payments", QueueSettings::default()).await;
    let mut bank = bank_with_an_old_key(&emulator, &queue, 15).await;
    let prune = prune(&emulator, &bank, &queue).deploy().await;

    let looked = prune.invoke(&json!({ "dry_run": true })).await.unwrap();
    assert_eq!(
        (&looked["rows"], keys(&mut bank).await),
        (&json!(1), 2),
        "{looked}"
    );
    let pruned = prune.invoke(&json!({})).await.unwrap();
    assert_eq!(
        (&pruned["rows"], keys(&mut bank).await),
        (&json!(1), 1),
        "{pruned}"
    );
    assert_eq!(pruned["finished"], true, "{pruned}");
    bank.assert_booked_once([1, 2]).await;
}

/// B-15, for a queue that is asked.
#[tokio::test]
async fn a_retention_below_the_queues_own_is_refused() {
    let emulator = Emulator::from_env();
    let queue = Queue::create(&emulator, "payments", QueueSettings::default()).await;
    let mut bank = bank_with_an_old_key(&emulator, &queue, 3).await;
    let prune = prune(&emulator, &bank, &queue)
        .env("LAMBDA_INBOX_RETENTION", "1d")
        .deploy()
        .await;
    let error = prune.invoke(&json!({})).await.unwrap_err();
    assert_eq!(
        error["errorType"], "LambdaInbox.RetentionTooShort",
        "{error}"
    );
    assert_eq!(keys(&mut bank).await, 2);
}
