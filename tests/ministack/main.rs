//! What LocalStack does not do: run a function in several environments at once, and fire a schedule.

#![allow(clippy::unwrap_used)] // In helpers too, which Clippy does not take for tests.

#[path = "../localstack/bank.rs"]
#[allow(dead_code)] // The other leg uses more of it.
mod bank;

use bank::{Bank, payment};
use lambda_inbox_tests::{Emulator, Function, Queue, QueueSettings, eventually};
use std::time::Duration;

const PAYMENTS: std::ops::Range<usize> = 0..100;

#[tokio::test]
async fn environments_at_once_book_every_payment_once() {
    let emulator = Emulator::from_env();
    let mut bank = Bank::open().await;
    let settings = QueueSettings {
        visibility: Duration::from_secs(20),
        max_receive_count: 50,
        ..QueueSettings::default()
    };
    let queue = Queue::create(&emulator, "payments", settings).await;
    for number in PAYMENTS {
        queue.send(&payment(number)).await;
    }
    let function = bank.function(&emulator).deploy().await;
    function.map(&queue, 5).await;
    bank.assert_booked_once(PAYMENTS).await;
    queue.wait_until_empty().await;
    bank.assert_booked_once(PAYMENTS).await;
    queue.assert_dead_letters([]).await;
}

#[tokio::test]
async fn a_schedule_fires_the_prune() {
    let emulator = Emulator::from_env();
    let mut bank = Bank::open().await;
    sqlx::raw_sql(
        "INSERT INTO lambda_inbox.inbox (consumer, source, message_id, processed_at, fingerprint)
         VALUES ('payments', 'sqs', 'old', now() - interval '40 days', ''),
                ('payments', 'sqs', 'new', now(), '')",
    )
    .execute(&mut bank.connection)
    .await
    .unwrap();
    let prune = Function::builder(&emulator, "lambda-inbox-prune")
        .env("DATABASE_URL", bank.database.url())
        .deploy()
        .await;
    prune.schedule("rate(1 minute)").await;
    eventually("keys", vec!["new".to_owned()], async || {
        sqlx::query_scalar("SELECT message_id FROM lambda_inbox.inbox")
            .fetch_all(&mut bank.connection)
            .await
            .unwrap()
    })
    .await;
}
