//! Receives are counted, and used up.

use std::time::Duration;

use lambda_inbox_testkit::consumer::Invocation;
use lambda_inbox_testkit::queue::{BatchFailure, Outgoing, Verdict};

use crate::{
    VISIBILITY, always, failing_bodies, fifo, grouped, recording, records, send_all, simulator,
    standard, succeeding, text,
};

/// Case A-17.
#[tokio::test]
async fn a_message_runs_at_most_max_receive_count_times_and_is_dead_at_a_later_receive() {
    for (config, message, is_fifo) in [
        (standard(), Outgoing::new("1"), false),
        (fifo(), grouped("1", "g"), true),
    ] {
        let mut queue = simulator(config.max_receive_count(3));
        let id = queue.send(message).unwrap();
        let sent_at = queue.now();
        for run in 1..=3 {
            let report = queue
                .poll_once(&mut always(Invocation::Crashed))
                .await
                .unwrap();
            assert_eq!(report.delivered[0].receive_count, run);
            assert!(queue.dead_letters().is_empty(), "after run {run}");
            queue.advance(VISIBILITY);
        }
        assert!(queue.poll_once(&mut succeeding()).await.is_none());
        let [dead] = queue.dead_letters() else {
            panic!("one dead letter was expected");
        };
        assert_eq!(dead.id(), id);
        assert_eq!(dead.body(), "1");
        if is_fifo {
            assert_eq!(dead.sent_at(), queue.now());
            assert_eq!(dead.deduplication_id(), Some(id.as_str()));
        } else {
            assert_eq!(dead.sent_at(), sent_at);
        }
        assert_eq!(queue.in_queue().len(), 0);
        assert_eq!(queue.stats().dead_lettered, 1);
    }
}

#[tokio::test]
async fn only_the_failing_messages_of_a_batch_die() {
    let mut queue = simulator(standard().max_receive_count(2));
    let ids = send_all(&mut queue, ["1", "2", "3", "4"]);
    let mut consumer = failing_bodies(&["2", "4"]);
    let summary = queue.run_until_drained(&mut consumer, 100).await;
    assert!(summary.drained);
    assert_eq!(summary.polls, 2);
    assert_eq!(summary.stats.deliveries, 4 + 2);
    assert_eq!(summary.stats.failures_returned, 2 + 2);
    assert_eq!(summary.stats.deleted, 2);
    let dead: Vec<&str> = queue.dead_letters().iter().map(|m| m.id()).collect();
    assert_eq!(dead, [&ids[1], &ids[3]]);
}

#[tokio::test]
async fn without_a_dead_letter_queue_a_message_comes_back_until_its_retention_ends() {
    let retention = Duration::from_secs(3600);
    let mut queue = simulator(standard().max_receive_count(None).retention(retention));
    send_all(&mut queue, ["1"]);
    let mut crashing = always(Invocation::Crashed);
    let summary = queue.run_until_drained(&mut crashing, 1_000).await;
    assert!(summary.drained);
    assert_eq!(summary.stats.crashes, 3600 / 30);
    assert_eq!(summary.stats.expired, 1);
    assert_eq!(summary.stats.dead_lettered, 0);
}

#[tokio::test]
async fn the_dead_letter_queue_counts_retention_from_the_send_on_standard_queues_and_from_the_move_on_fifo()
 {
    let day = Duration::from_secs(24 * 60 * 60);
    for (config, message, left) in [
        (standard(), Outgoing::new("1"), 0),
        (fifo(), grouped("1", "g"), 1),
    ] {
        let config = config.max_receive_count(1).retention(4 * day);
        let mut queue = simulator(config.dead_letter_retention(4 * day));
        queue.send(message).unwrap();
        queue.advance(3 * day);
        let mut crashing = always(Invocation::Crashed);
        let _ = queue.run_until_drained(&mut crashing, 10).await;
        assert_eq!(queue.dead_letters().len(), 1);
        queue.advance(2 * day);
        assert_eq!(queue.dead_letters().len(), left);
    }
}

/// Case B-01.
#[tokio::test]
async fn a_redrive_makes_new_messages_of_the_dead_letters() {
    let mut queue = simulator(standard().max_receive_count(1));
    let message = Outgoing::new("1").attribute("inbox-message-id", "String", "o-1");
    let id = queue.send(message).unwrap();
    let mut crashing = always(Invocation::Crashed);
    let _ = queue.run_until_drained(&mut crashing, 10).await;
    queue.advance(Duration::from_secs(60));

    let redriven = queue.redrive();
    assert_eq!(redriven.len(), 1);
    assert_eq!(redriven[0].dead_letter_id, id);
    assert_ne!(redriven[0].message_id, id);
    assert!(queue.dead_letters().is_empty());

    let mut events = Vec::new();
    queue.poll_once(&mut recording(&mut events)).await.unwrap();
    let record = &records(&events[0])[0];
    assert_eq!(record["messageId"], redriven[0].message_id);
    assert_eq!(record["body"], "1");
    assert_eq!(
        record["messageAttributes"]["inbox-message-id"]["stringValue"],
        "o-1"
    );
    assert_eq!(record["attributes"]["ApproximateReceiveCount"], "1");
    let sent_at = text(&record["attributes"]["SentTimestamp"]);
    assert_eq!(
        sent_at,
        (1_767_600_000_000_u64 + 30_000 + 60_000).to_string()
    );
    assert!(queue.redrive().is_empty());
}

/// Case A-09.
#[tokio::test]
async fn a_throttled_invocation_uses_up_a_receive_without_a_run() {
    let mut queue = simulator(standard().max_receive_count(2));
    send_all(&mut queue, ["1"]);
    queue.throttle_next(1);
    let report = queue.poll_once(&mut succeeding()).await.unwrap();
    assert_eq!(report.invocation, None);
    assert_eq!(report.verdict, Verdict::Failed(BatchFailure::Throttled));
    assert_eq!(queue.stats().invocations, 0);
    assert_eq!(queue.stats().deliveries, 0);
    queue.advance(VISIBILITY);
    let report = queue
        .poll_once(&mut always(Invocation::Crashed))
        .await
        .unwrap();
    assert_eq!(report.delivered[0].receive_count, 2);
    queue.advance(VISIBILITY);
    assert!(queue.poll_once(&mut succeeding()).await.is_none());
    assert_eq!(queue.dead_letters().len(), 1);
    assert_eq!(queue.stats().throttles, 1);
}
