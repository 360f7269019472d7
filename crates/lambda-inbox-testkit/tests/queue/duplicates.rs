//! At least once, on purpose.

use std::time::Duration;

use crate::{bodies, delivered, recording, records, send_all, simulator, standard, succeeding};

/// Case B-13.
#[tokio::test]
async fn a_deleted_message_can_be_delivered_again_and_again_and_does_not_die_of_it() {
    let mut queue = simulator(standard().max_receive_count(2));
    let ids = send_all(&mut queue, ["1", "2"]);
    queue.poll_once(&mut succeeding()).await.unwrap();
    for _ in 0..5 {
        assert!(queue.deliver_again(&ids[0]));
        let report = queue.poll_once(&mut succeeding()).await.unwrap();
        assert_eq!(delivered(&report), [&ids[0]]);
        assert_eq!(report.delivered[0].receive_count, 1);
    }
    let _ = queue.run_until_drained(&mut succeeding(), 10).await;
    assert!(queue.dead_letters().is_empty());
    assert_eq!(queue.stats().duplicates_injected, 5);
    assert!(!queue.deliver_again("unknown"));
    queue.advance(Duration::from_secs(5 * 24 * 60 * 60));
    assert!(!queue.deliver_again(&ids[0]), "its retention is over");
}

#[tokio::test]
async fn a_message_that_is_still_there_can_meet_its_own_copy_in_one_batch() {
    let mut queue = simulator(standard());
    let ids = send_all(&mut queue, ["1"]);
    assert!(queue.deliver_again(&ids[0]));
    let mut events = Vec::new();
    queue.poll_once(&mut recording(&mut events)).await.unwrap();
    assert_eq!(bodies(&events[0]), ["1", "1"]);
    let [first, second] = records(&events[0]) else {
        panic!("two records were expected");
    };
    assert_eq!(first["messageId"], second["messageId"]);
    assert_ne!(first["receiptHandle"], second["receiptHandle"]);
    assert_eq!(queue.in_queue().len(), 0);
}

#[tokio::test]
async fn duplicates_turn_up_at_about_their_rate_and_without_dying() {
    let mut queue = simulator(standard().duplicate_rate(0.25).max_receive_count(1));
    let bodies: Vec<String> = (0..1_000).map(|n| n.to_string()).collect();
    send_all(&mut queue, bodies);
    let summary = queue.run_until_drained(&mut succeeding(), 10_000).await;
    assert!(summary.drained);
    let duplicates = summary.stats.duplicates_injected;
    // Each delete has the chance, also a duplicate's: a third is expected.
    assert!((200..=470).contains(&duplicates), "{duplicates}");
    assert_eq!(summary.stats.deliveries, 1_000 + duplicates);
    assert_eq!(summary.stats.dead_lettered, 0);
}
