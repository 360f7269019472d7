//! Batches, events and the clock.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_lambda_events::sqs::SqsEvent;
use lambda_inbox_testkit::consumer::{Invocation, from_fn};
use lambda_inbox_testkit::queue::{InvocationTime, Outgoing, PollReport, Simulator};
use serde_json::Value;

use crate::{
    VISIBILITY, always, fifo, next_bodies, recording, records, send_all, simulator, standard,
    succeeding, text,
};

#[tokio::test]
async fn events_have_the_shape_that_the_poller_delivers() {
    let message = || {
        Outgoing::new(r#"{"order": 1}"#)
            .attribute("inbox-message-id", "String", "o-1")
            .binary_attribute("raw", [1, 2])
            .trace_header("Root=1-5759e988-bd862e3fe1be46a994272793")
    };
    let always = [
        "AWSTraceHeader",
        "ApproximateFirstReceiveTimestamp",
        "ApproximateReceiveCount",
        "SenderId",
        "SentTimestamp",
    ];
    let fifo_only = ["MessageDeduplicationId", "MessageGroupId", "SequenceNumber"];
    let table = [
        (standard(), message(), "orders-in", always.to_vec()),
        (
            fifo(),
            message().group("g").deduplication_id("d"),
            "orders-in.fifo",
            [always.as_slice(), fifo_only.as_slice()].concat(),
        ),
    ];
    for (config, message, queue_name, attributes) in table {
        let mut queue = simulator(config);
        let id = queue.send(message).unwrap();
        queue.advance(Duration::from_millis(250));
        let mut events = Vec::new();
        queue.poll_once(&mut recording(&mut events)).await.unwrap();
        let record = &records(&events[0])[0];
        assert_eq!(record["messageId"], id);
        assert_eq!(record["body"], r#"{"order": 1}"#);
        let arn = text(&record["eventSourceARN"]);
        assert!(arn.ends_with(&format!(":{queue_name}")), "{arn}");
        let found: BTreeSet<&str> = record["attributes"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, value)| {
                assert!(value.is_string(), "{name}");
                name.as_str()
            })
            .collect();
        assert_eq!(found, attributes.into_iter().collect());
        assert_eq!(record["attributes"]["ApproximateReceiveCount"], "1");
        assert_eq!(record["attributes"]["SentTimestamp"], "1767600000000");
        let first = &record["attributes"]["ApproximateFirstReceiveTimestamp"];
        assert_eq!(first, "1767600000250");

        let typed: SqsEvent = serde_json::from_value(events.remove(0)).unwrap();
        let message = &typed.records[0];
        let attribute = &message.message_attributes["inbox-message-id"];
        assert_eq!(attribute.string_value.as_deref(), Some("o-1"));
        assert!(message.receipt_handle.is_some());
    }
}

#[tokio::test]
async fn each_receive_raises_the_count_and_makes_a_new_handle_and_the_timestamps_stay() {
    let mut queue = simulator(standard());
    send_all(&mut queue, ["1"]);
    let mut events: Vec<Value> = Vec::new();
    for _ in 0..3 {
        let mut consumer = from_fn(|event, _time_left| {
            events.push(event);
            async { Invocation::Crashed }
        });
        queue.poll_once(&mut consumer).await.unwrap();
        queue.advance(VISIBILITY);
    }
    let attribute = |name: &str| -> Vec<&str> {
        let values = events.iter().map(|e| &records(e)[0]["attributes"][name]);
        values.map(text).collect()
    };
    assert_eq!(attribute("ApproximateReceiveCount"), ["1", "2", "3"]);
    assert_eq!(attribute("SentTimestamp"), ["1767600000000"; 3]);
    assert_eq!(
        attribute("ApproximateFirstReceiveTimestamp"),
        ["1767600000000"; 3]
    );
    let handles: BTreeSet<&str> = events
        .iter()
        .map(|event| text(&records(event)[0]["receiptHandle"]))
        .collect();
    assert_eq!(handles.len(), 3);
}

#[tokio::test]
async fn a_batch_closes_at_its_size_and_at_six_megabytes() {
    let mut queue = simulator(standard().batch_size(300));
    send_all(&mut queue, (0..301).map(|n| n.to_string()));
    let report = queue.poll_once(&mut succeeding()).await.unwrap();
    assert_eq!(report.delivered.len(), 300);

    let mut queue = simulator(standard());
    send_all(&mut queue, (0..8).map(|_| "x".repeat(1_000_000)));
    let mut events = Vec::new();
    queue.poll_once(&mut recording(&mut events)).await.unwrap();
    assert_eq!(records(&events[0]).len(), 6);
    let report = queue.poll_once(&mut succeeding()).await.unwrap();
    assert_eq!(report.delivered.len(), 2);
    let counts = report.delivered.iter().map(|d| d.receive_count);
    assert_eq!(
        counts.collect::<Vec<_>>(),
        [1, 1],
        "the rest was not received before"
    );
}

#[tokio::test]
async fn a_shuffled_queue_delivers_everything_in_another_order() {
    let sent: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    let mut queue = simulator(standard().shuffle(true).batch_size(100));
    send_all(&mut queue, sent.clone());
    let mut got = next_bodies(&mut queue).await;
    assert_ne!(got, sent);
    got.sort_by_key(|body| body.parse::<u32>().unwrap());
    assert_eq!(got, sent);
}

#[tokio::test]
async fn the_clock_moves_by_what_an_invocation_takes() {
    let mut queue = simulator(standard().invocation_time(InvocationTime::Fixed(VISIBILITY / 2)));
    send_all(&mut queue, ["1"]);
    let start = queue.now();
    queue.poll_once(&mut succeeding()).await.unwrap();
    assert_eq!(queue.now(), start + VISIBILITY / 2);

    let took = Duration::from_millis(2);
    let mut queue = simulator(standard().invocation_time(InvocationTime::Measured));
    send_all(&mut queue, ["1"]);
    let mut consumer = from_fn(|_event, _time_left| async move {
        tokio::time::sleep(took).await;
        Invocation::Crashed
    });
    queue.poll_once(&mut consumer).await.unwrap();
    assert!(queue.now() >= start + took);
}

#[tokio::test]
async fn the_function_gets_its_timeout_as_the_time_left() {
    let timeout = Duration::from_secs(7);
    let mut queue = simulator(standard().function_timeout(timeout));
    send_all(&mut queue, ["1"]);
    let mut seen = None;
    let mut consumer = from_fn(|_event, time_left| {
        seen = Some(time_left);
        async { Invocation::Crashed }
    });
    queue.poll_once(&mut consumer).await.unwrap();
    assert_eq!(seen, Some(timeout));
}

#[tokio::test]
async fn what_a_cancelled_poll_had_received_comes_back() {
    let mut queue = simulator(standard());
    send_all(&mut queue, ["1"]);
    let mut hanging = from_fn(|_event, _time_left| std::future::pending());
    tokio::select! {
        biased;
        report = queue.poll_once(&mut hanging) => panic!("{report:?}"),
        () = std::future::ready(()) => {}
    }
    assert!(next_bodies(&mut queue).await.is_empty());
    queue.advance(VISIBILITY);
    assert_eq!(next_bodies(&mut queue).await, ["1"]);
}

#[tokio::test]
async fn a_run_stops_at_its_number_of_polls() {
    let mut queue = simulator(standard().max_receive_count(None));
    send_all(&mut queue, ["1"]);
    let mut crashing = always(Invocation::Crashed);
    let summary = queue.run_until_drained(&mut crashing, 7).await;
    assert!(!summary.drained);
    assert_eq!(summary.polls, 7);
    assert_eq!(summary.stats.crashes, 7);
}

#[tokio::test]
async fn the_same_seed_gives_the_same_history_and_another_seed_another_one() {
    async fn history(seed: u64) -> (Vec<PollReport>, Vec<Value>) {
        let config = standard().shuffle(true).duplicate_rate(0.3);
        let mut queue = Simulator::new(config.max_receive_count(3).build().unwrap(), seed);
        send_all(&mut queue, (0..50).map(|n| n.to_string()));
        queue.throttle_next(1);
        let (mut reports, mut events) = (Vec::new(), Vec::new());
        let mut invocation = 0;
        let mut consumer = from_fn(|event: Value, _time_left| {
            let first = text(&records(&event)[0]["messageId"]).to_owned();
            events.push(event);
            invocation += 1;
            let crash = invocation % 3 == 0;
            async move {
                if crash {
                    Invocation::Crashed
                } else {
                    Invocation::failures([first])
                }
            }
        });
        for _ in 0..40 {
            match queue.poll_once(&mut consumer).await {
                Some(report) => reports.push(report),
                None => queue.advance(VISIBILITY / 2),
            }
        }
        (reports, events)
    }
    let first = history(1).await;
    assert!(first.0.len() > 10);
    assert_eq!(first, history(1).await);
    assert_ne!(first, history(2).await);
}
