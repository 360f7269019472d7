//! Duplicates that are sent on purpose, over the real wire.

use crate::bank::{Bank, payment};
use lambda_inbox_tests::{Emulator, Queue, QueueSettings};
use serde_json::json;

/// A message that was redriven has a new MessageId, and its stamp tells the old one.
#[tokio::test]
async fn copies_of_a_message_under_new_ids_are_booked_once_where_a_stamp_tells_the_first() {
    let emulator = Emulator::from_env();
    let mut bank = Bank::open().await;
    let queue = Queue::create(&emulator, "payments", QueueSettings::default()).await;
    let function = bank.function(&emulator).deploy().await;
    function.map(&queue, 10).await;

    let first = queue.send(&payment(1)).await;
    bank.assert_booked_once([1]).await;
    for _ in 0..5 {
        let stamp =
            json!({ "DataType": "String", "StringValue": format!("v1;{first};1767225600000") });
        let copy = json!({
            "MessageBody": payment(1), "MessageAttributes": { "inbox-redrive": stamp },
        });
        queue.send_with(copy).await;
    }
    queue.send(&payment(2)).await;
    bank.assert_booked_once([1, 2]).await;
    queue.wait_until_empty().await;
    bank.assert_booked_once([1, 2]).await;
    queue.assert_dead_letters([]).await;
}

/// B-01 and B-02: the default key is the message's id, and a second message is a second payment.
#[tokio::test]
async fn a_producer_that_sends_twice_is_booked_twice_under_the_default_key() {
    let emulator = Emulator::from_env();
    let mut bank = Bank::open().await;
    let queue = Queue::create(&emulator, "payments", QueueSettings::default()).await;
    let function = bank.function(&emulator).deploy().await;
    function.map(&queue, 10).await;
    queue.send(&payment(1)).await;
    queue.send(&payment(1)).await;
    queue.wait_until_empty().await;
    let booked = bank.booked().await;
    assert_eq!(booked.into_values().collect::<Vec<_>>(), [2]);
}
