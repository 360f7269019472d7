//! Lambda's timeout ends the process without notice, so the inbox has to be done before it.

use std::time::Duration;

use lambda_inbox_testkit::event::event;
use sqlx::Connection;

use crate::bank::{Bank, NONE, failures, id, payment, shop};

#[tokio::test]
async fn a_payment_that_waits_for_a_lock_is_reported_in_time_and_the_process_lives_on() {
    let mut bank = Bank::open().await;
    let mut function = bank
        .function()
        .timeout(Duration::from_secs(3))
        .start()
        .await
        .unwrap();
    // So that no start-up, on a busy machine, eats up the three seconds below.
    let event_before = event([payment(0)]);
    assert_eq!(failures(function.invoke(&event_before).await), NONE);
    let pid = function.pid();
    let mut other = bank.database.connect().await.unwrap();
    let mut lock = other.begin().await.unwrap();
    sqlx::query("SELECT FROM account WHERE id = $1 FOR UPDATE")
        .bind(shop(2))
        .execute(&mut *lock)
        .await
        .unwrap();

    let event = event((1..=3).map(payment));
    let reported = failures(function.invoke(&event).await);
    assert_eq!(reported, [id(2), id(3)]);
    assert_eq!((function.starts(), function.pid()), (1, pid));
    bank.assert_booked_once([0, 1]).await;

    lock.rollback().await.unwrap();
    assert_eq!(failures(function.invoke(&event).await), NONE);
    bank.assert_booked_once(0..=3).await;
}
