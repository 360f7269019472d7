//! Partial failures: what a batch's response is for.

use crate::bank::{Bank, payment, payment_to};
use lambda_inbox_tests::{Emulator, Queue, QueueSettings, eventually};

/// among them.
#[tokio::test]
async fn only_what_failed_comes_back_and_becomes_a_dead_letter() {
    let emulator = Emulator::from_env();
    let mut bank = Bank::open().await;
    let queue = Queue::create(&emulator, "payments", QueueSettings::default()).await;
    let function = bank.function(&emulator).deploy().await;
    let bad = [3, 7];
    for number in 0..10 {
        let account = format!("shop-{number}");
        let account = if bad.contains(&number) {
            "nobody"
        } else {
            &account
        };
        queue.send(&payment_to(number, account)).await;
    }

    function.map(&queue, 10).await;
    bank.assert_booked_once((0..10).filter(|number| !bad.contains(number)))
        .await;
    eventually("messages that are left", 2, async || queue.depth().await).await;

    queue
        .assert_dead_letters(bad.map(|number| payment_to(number, "nobody")))
        .await;
    queue.wait_until_empty().await;
    bank.assert_booked_once((0..10).filter(|number| !bad.contains(number)))
        .await;
}

#[tokio::test]
async fn what_failed_for_now_is_booked_when_it_comes_back() {
    let emulator = Emulator::from_env();
    let mut bank = Bank::open().await;
    let settings = QueueSettings {
        max_receive_count: 20,
        ..QueueSettings::default()
    };
    let queue = Queue::create(&emulator, "payments", settings).await;
    let function = bank.function(&emulator).deploy().await;
    queue.send(&payment(1)).await;
    queue.send(&payment_to(2, "late")).await;

    function.map(&queue, 10).await;
    bank.assert_booked_once([1]).await;
    sqlx::query("INSERT INTO account (id, balance) VALUES ('late', 0)")
        .execute(&mut bank.connection)
        .await
        .unwrap();
    bank.assert_booked_once([1, 2]).await;
    queue.wait_until_empty().await;
    queue.assert_dead_letters([]).await;
}

/// A-12 and G-09: nothing here depends on what an emulator says to a batch that fails as a whole.
#[tokio::test]
async fn a_batch_that_fails_as_a_whole_becomes_dead_letters_as_a_whole() {
    let emulator = Emulator::from_env();
    let mut bank = Bank::open().await;
    let queue = Queue::create(&emulator, "payments", QueueSettings::default()).await;
    let function = bank.function(&emulator).deploy().await;
    let bodies = [
        "not JSON".to_owned(),
        payment_to(1, "nobody"),
        "{}".to_owned(),
    ];
    for body in &bodies {
        queue.send(body).await;
    }
    function.map(&queue, 10).await;
    queue.assert_dead_letters(bodies).await;
    queue.wait_until_empty().await;
    bank.assert_booked_once([]).await;
}
