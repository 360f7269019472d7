//! A process that is killed, one that hangs, and a database that is gone, each in the middle of a batch.

use crate::bank::{Bank, payment};
use lambda_inbox_testkit::proxy::Proxy;
use lambda_inbox_tests::{Emulator, Function, Queue, QueueSettings, eventually};
use sqlx::{ConnectOptions, Connection};

const BATCH: std::ops::Range<usize> = 0..6;

fn patient() -> QueueSettings {
    QueueSettings {
        max_receive_count: 30,
        ..QueueSettings::default()
    }
}

/// Deploys payments, sends a batch, waits until the function is in the middle of it, does something to the
/// function, and expects every payment to be booked once all the same.
async fn in_the_middle_of_a_batch(fault: impl Fn(&Function)) {
    let emulator = Emulator::from_env();
    let mut bank = Bank::open().await;
    let queue = Queue::create(&emulator, "payments", patient()).await;
    let function = bank.function(&emulator).deploy().await;
    for number in BATCH {
        queue.send(&payment(number)).await;
    }
    let mut other = bank.database.connect().await.unwrap();
    let mut lock = other.begin().await.unwrap();
    sqlx::query("SELECT FROM account WHERE id = 'shop-3' FOR UPDATE")
        .execute(&mut *lock)
        .await
        .unwrap();

    function.map(&queue, 10).await;
    bank.wait_until_a_handler_waits().await;
    fault(&function);
    lock.rollback().await.unwrap();

    bank.assert_booked_once(BATCH).await;
    queue.wait_until_empty().await;
    bank.assert_booked_once(BATCH).await;
    queue.assert_dead_letters([]).await;
}

#[tokio::test]
async fn a_crash_in_the_middle_of_a_batch_costs_nothing() {
    in_the_middle_of_a_batch(|function| function.signal("KILL")).await;
}

/// Lambda ends it at its timeout, without notice.
#[tokio::test]
async fn a_process_that_hangs_until_its_timeout_costs_nothing() {
    in_the_middle_of_a_batch(|function| function.signal("STOP")).await;
}

#[tokio::test]
async fn an_outage_fails_the_function_and_the_batch_comes_back() {
    let emulator = Emulator::from_env();
    let mut bank = Bank::open().await;
    let options = bank.database.options();
    let proxy = Proxy::start(options.get_host(), options.get_port())
        .await
        .unwrap();
    proxy.refuse(true);
    let url = proxy.options(&options).to_url_lossy();
    let queue = Queue::create(&emulator, "payments", patient()).await;
    let function = bank
        .function(&emulator)
        .env("DATABASE_URL", url.as_str())
        .deploy()
        .await;
    for number in BATCH {
        queue.send(&payment(number)).await;
    }
    let direct = serde_json::json!({ "Records": [{
        "messageId": "direct", "body": payment(100), "eventSource": "aws:sqs",
        "eventSourceARN": queue.arn(), "attributes": {}, "messageAttributes": {},
    }]});
    let error = function.invoke(&direct).await.unwrap_err();
    assert!(error["errorMessage"].is_string(), "{error}");

    function.map(&queue, 10).await;
    let tries = proxy.connections();
    eventually("tries by the mapping", true, async || {
        proxy.connections() > tries
    })
    .await;
    assert_eq!(queue.depth().await, BATCH.len() as u64);
    bank.assert_booked_once([]).await;

    proxy.refuse(false);
    bank.assert_booked_once(BATCH).await;
    queue.wait_until_empty().await;
    queue.assert_dead_letters([]).await;
}
