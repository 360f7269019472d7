//! SIGKILL: a batch is booked as a whole or not at all, and the next delivery knows which.

use std::future::{Future, pending};
use std::time::Duration;

use lambda_inbox_testkit::consumer::Invocation;
use lambda_inbox_testkit::runtime::LocalRuntime;
use serde_json::Value;
use sqlx::Connection;

use crate::batch::good;
use crate::sale::item;
use crate::shop::{Function, Shop, failures, lock_item};

const SIZE: usize = 100;
/// Longer than any test: a reply that is never to arrive.
const NEVER: Duration = Duration::from_secs(600);

/// Invokes the function and kills it as soon as `point` is reached.
async fn killed_at(
    process: &mut LocalRuntime,
    event: &Value,
    point: impl Future<Output = ()>,
) -> Invocation {
    let killer = process.killer();
    let kill = async {
        point.await;
        killer.kill();
        pending().await
    };
    tokio::select! {
        () = kill => unreachable!("it is pending"),
        invocation = process.invoke(event) => invocation,
    }
}

#[tokio::test]
async fn a_kill_between_two_statements_leaves_nothing_and_the_next_delivery_books_all() {
    for (function, pattern) in [
        (Function::Bulk, "SELECT item FROM stock"),
        (Function::Bulk, "INSERT INTO sale"),
        (Function::Bulk, "UPDATE stock"),
        (Function::Bulk, "; COMMIT"),
        (Function::Statement, "INSERT INTO sale"),
    ] {
        let context = format!("{function:?} before {pattern}");
        let mut shop = Shop::open(function).await;
        let mut process = shop.start(function).await;
        let event = good(0..SIZE);

        let hold = shop.proxy.hold_before(pattern.as_bytes());
        let first = killed_at(&mut process, &event, hold.held()).await;
        assert_eq!(first, Invocation::Crashed, "{context}");
        shop.assert_booked_once([], &context).await;

        let second = process.invoke(&event).await;
        assert_eq!(failures(&second), [""; 0], "{context}");
        shop.assert_booked_once(0..SIZE, &context).await;
    }
}

#[tokio::test]
async fn a_kill_in_the_middle_of_a_statement_leaves_nothing_and_the_next_delivery_books_all() {
    for function in Function::BOTH {
        let context = format!("{function:?}");
        let mut shop = Shop::open(function).await;
        let mut process = shop.start(function).await;
        let event = good(0..SIZE);
        let mut other = shop.connect().await;
        let mut lock = other.begin().await.unwrap();
        lock_item(&mut lock, &item(5)).await;

        let first = killed_at(&mut process, &event, shop.wait_for_waiting_backends(1)).await;
        assert_eq!(first, Invocation::Crashed, "{context}");
        // The server notices by itself that nobody waits for the answer.
        shop.wait_for_waiting_backends(0).await;
        lock.rollback().await.unwrap();
        shop.assert_booked_once([], &context).await;

        let second = process.invoke(&event).await;
        assert_eq!(failures(&second), [""; 0], "{context}");
        shop.assert_booked_once(0..SIZE, &context).await;
    }
}

#[tokio::test]
async fn a_kill_after_the_commit_of_a_bulk_makes_the_next_delivery_duplicates() {
    let mut shop = Shop::open(Function::Bulk).await;
    let mut process = shop.start(Function::Bulk).await;
    let event = good(0..SIZE);
    let hold = shop.proxy.hold_before(b"; COMMIT");

    let committed = async {
        hold.held().await;
        // What is held has its time already, so it leaves at once; the reply does not come back.
        shop.proxy.set_delay(NEVER);
        hold.release();
        shop.wait_until_booked(SIZE).await;
    };
    let first = killed_at(&mut process, &event, committed).await;
    assert_eq!(first, Invocation::Crashed);
    assert_duplicates(&mut shop, &mut process, &event).await;
}

#[tokio::test]
async fn a_kill_after_the_commit_of_a_statement_makes_the_next_delivery_duplicates() {
    let mut shop = Shop::open(Function::Statement).await;
    let mut process = shop.start(Function::Statement).await;
    let event = good(0..SIZE);
    let mut other = shop.connect().await;
    let mut lock = other.begin().await.unwrap();
    lock_item(&mut lock, &item(5)).await;

    let committed = async {
        shop.wait_for_waiting_backends(1).await;
        // The server has all of the statement; the reply does not come back.
        shop.proxy.set_delay(NEVER);
        lock.rollback().await.unwrap();
        shop.wait_until_booked(SIZE).await;
    };
    let first = killed_at(&mut process, &event, committed).await;
    assert_eq!(first, Invocation::Crashed);
    assert_duplicates(&mut shop, &mut process, &event).await;
}

async fn assert_duplicates(shop: &mut Shop, process: &mut LocalRuntime, event: &Value) {
    shop.assert_booked_once(0..SIZE, "before").await;
    shop.proxy.set_delay(Duration::ZERO);
    let second = process.invoke(event).await;
    assert_eq!(failures(&second), [""; 0]);
    shop.assert_booked_once(0..SIZE, "after").await;
}
