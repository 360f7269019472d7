//! Order, groups and deduplication.

use std::time::Duration;

use lambda_inbox_testkit::consumer::Invocation;
use lambda_inbox_testkit::queue::{InvocationTime, Outgoing, Simulator, Verdict};
use serde_json::Value;

use crate::{
    VISIBILITY, always, bodies, failing_bodies, fifo, grouped, next_bodies, recording, records,
    send_all, simulator, standard, succeeding,
};

#[tokio::test]
async fn on_a_fifo_queue_a_lost_delete_holds_back_the_group_until_the_message_is_back() {
    let mut queue = simulator(
        fifo()
            .duplicate_rate(1.0)
            .batch_size(1)
            .max_receive_count(2),
    );
    send_all(
        &mut queue,
        [grouped("1", "g"), grouped("2", "g"), grouped("3", "h")],
    );
    assert_eq!(next_bodies(&mut queue).await, ["1"]);
    assert_eq!(next_bodies(&mut queue).await, ["3"]);
    assert!(next_bodies(&mut queue).await.is_empty());
    queue.advance(VISIBILITY);
    assert_eq!(next_bodies(&mut queue).await, ["1"]);
}

/// Case A-05.
#[tokio::test]
async fn a_fifo_group_waits_for_its_message_in_flight_and_other_groups_do_not() {
    let mut queue = simulator(fifo().batch_size(2));
    let messages = ["a1", "a2", "b1", "a3", "b2"];
    send_all(&mut queue, messages.map(|body| grouped(body, &body[..1])));
    let report = queue.poll_once(&mut failing_bodies(&["a2"])).await.unwrap();
    assert_eq!(report.deleted.len(), 1);
    assert_eq!(next_bodies(&mut queue).await, ["b1", "b2"]);
    assert!(next_bodies(&mut queue).await.is_empty());
    queue.advance(VISIBILITY);
    assert_eq!(next_bodies(&mut queue).await, ["a2", "a3"]);
    assert_eq!(queue.in_queue().len(), 0);
}

#[tokio::test]
async fn a_fifo_batch_mixes_groups_in_sending_order() {
    let mut queue = simulator(fifo());
    let messages = ["a1", "b1", "a2", "c1"];
    send_all(&mut queue, messages.map(|body| grouped(body, &body[..1])));
    assert_eq!(next_bodies(&mut queue).await, messages);
}

#[tokio::test]
async fn a_dead_letter_frees_its_fifo_group() {
    let mut queue = simulator(fifo().batch_size(1).max_receive_count(1));
    send_all(&mut queue, [grouped("1", "g"), grouped("2", "g")]);
    queue
        .poll_once(&mut always(Invocation::TimedOut))
        .await
        .unwrap();
    assert!(queue.poll_once(&mut succeeding()).await.is_none());
    queue.advance(VISIBILITY);
    let report = queue.poll_once(&mut succeeding()).await.unwrap();
    assert_eq!(report.dead_lettered.len(), 1);
    assert_eq!(report.delivered.len(), 1);
    assert_eq!(queue.dead_letters()[0].body(), "1");
}

/// Cases B-04 and B-18.
#[tokio::test]
async fn a_fifo_queue_takes_a_deduplication_id_once_in_five_minutes() {
    let mut queue = simulator(fifo());
    let send = |queue: &mut Simulator, body: &str, id: &str| {
        let message = grouped(body, "g").deduplication_id(id);
        queue.send(message).unwrap()
    };
    let first = send(&mut queue, "1", "dd-1");
    assert_eq!(send(&mut queue, "other body", "dd-1"), first);
    assert_ne!(send(&mut queue, "1", "dd-2"), first);
    assert_eq!(next_bodies(&mut queue).await, ["1", "1"]);
    queue.advance(Duration::from_secs(299));
    assert_eq!(
        send(&mut queue, "1", "dd-1"),
        first,
        "also after the delete"
    );
    queue.advance(Duration::from_secs(1));
    assert_ne!(send(&mut queue, "1", "dd-1"), first);
    assert_eq!(queue.stats().deduplicated, 2);
    assert_eq!(queue.stats().sent, 3);
}

#[tokio::test]
async fn content_based_deduplication_goes_by_the_body_alone() {
    let mut queue = simulator(fifo());
    let first = queue.send(grouped("1", "g").attribute("n", "Number", "1"));
    let second = queue.send(grouped("1", "h").attribute("n", "Number", "2"));
    assert_eq!(first, second);
    let sha256_of_1 = "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b";
    let queued: Vec<_> = queue.in_queue().map(|m| m.deduplication_id()).collect();
    assert_eq!(queued, [Some(sha256_of_1)]);
}

#[tokio::test]
async fn a_group_on_a_standard_queue_holds_nothing_back() {
    let mut queue = simulator(standard().batch_size(1));
    send_all(&mut queue, [grouped("1", "g"), grouped("2", "g")]);
    queue
        .poll_once(&mut always(Invocation::Crashed))
        .await
        .unwrap();
    let mut events = Vec::new();
    queue.poll_once(&mut recording(&mut events)).await.unwrap();
    assert_eq!(bodies(&events[0]), ["2"]);
    let attributes = &records(&events[0])[0]["attributes"];
    assert_eq!(attributes["MessageGroupId"], "g");
    assert_eq!(attributes["SequenceNumber"], Value::Null);
}

#[tokio::test]
async fn a_delete_after_the_visibility_timeout_is_too_late_on_a_fifo_queue() {
    for (config, message, left) in [
        (standard(), Outgoing::new("1"), 0),
        (fifo(), grouped("1", "g"), 1),
    ] {
        let mut queue = simulator(config.invocation_time(InvocationTime::Fixed(VISIBILITY)));
        queue.send(message).unwrap();
        let report = queue.poll_once(&mut succeeding()).await.unwrap();
        assert_eq!(report.verdict, Verdict::Complete);
        assert_eq!(report.returned.len(), left);
        assert_eq!(queue.in_queue().len(), left);
    }
}

#[tokio::test]
async fn a_redriven_fifo_message_goes_to_the_end_of_its_group_under_its_old_id() {
    let mut queue = simulator(fifo().max_receive_count(1));
    let id = queue.send(grouped("1", "g")).unwrap();
    let mut crashing = always(Invocation::Crashed);
    let _ = queue.run_until_drained(&mut crashing, 10).await;
    queue.send(grouped("2", "g")).unwrap();
    queue.redrive();
    let queued: Vec<_> = queue.in_queue().collect();
    assert_eq!([queued[0].body(), queued[1].body()], ["2", "1"]);
    assert_ne!(queued[1].id(), id);
    assert_eq!(queued[1].group(), Some("g"));
    assert_eq!(queued[1].deduplication_id(), Some(id.as_str()));
    assert_eq!(next_bodies(&mut queue).await, ["2", "1"]);
}
