//! The poller simulator against the rules that AWS documents.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dead_letters;
mod duplicates;
mod fifo;
mod poller;
mod refusals;
mod response;

use std::time::Duration;

use lambda_inbox_testkit::consumer::{Consumer, Invocation, from_fn};
use lambda_inbox_testkit::queue::{
    Outgoing, PollReport, QueueConfig, QueueConfigBuilder, Simulator,
};
use serde_json::Value;

const VISIBILITY: Duration = Duration::from_secs(30);
const SEED: u64 = 11;

fn standard() -> QueueConfigBuilder {
    QueueConfig::builder().visibility_timeout(VISIBILITY)
}

fn fifo() -> QueueConfigBuilder {
    standard().fifo(true)
}

fn simulator(config: QueueConfigBuilder) -> Simulator {
    Simulator::new(config.build().unwrap(), SEED)
}

/// Whatever comes, it answers this.
fn always(invocation: Invocation) -> impl Consumer {
    from_fn(move |_event, _time_left| {
        let invocation = invocation.clone();
        async move { invocation }
    })
}

fn succeeding() -> impl Consumer {
    always(Invocation::failures([] as [&str; 0]))
}

/// Reports the messages with these bodies as failed.
fn failing_bodies(bodies: &'static [&'static str]) -> impl Consumer {
    from_fn(move |event: Value, _time_left| {
        let failed: Vec<String> = records(&event)
            .iter()
            .filter(|record| bodies.contains(&text(&record["body"])))
            .map(|record| text(&record["messageId"]).to_owned())
            .collect();
        async move { Invocation::failures(failed) }
    })
}

/// Succeeds, and keeps the events.
fn recording(events: &mut Vec<Value>) -> impl Consumer {
    from_fn(move |event, _time_left| {
        events.push(event);
        async { Invocation::failures([] as [&str; 0]) }
    })
}

fn records(event: &Value) -> &[Value] {
    event["Records"].as_array().unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn bodies(event: &Value) -> Vec<&str> {
    records(event).iter().map(|r| text(&r["body"])).collect()
}

fn delivered(report: &PollReport) -> Vec<&str> {
    let ids = report.delivered.iter();
    ids.map(|delivery| delivery.message_id.as_str()).collect()
}

/// The bodies of the next batch, all of which succeed; empty if nothing is visible.
async fn next_bodies(queue: &mut Simulator) -> Vec<String> {
    let mut events = Vec::new();
    queue.poll_once(&mut recording(&mut events)).await;
    let bodies = events.iter().flat_map(bodies);
    bodies.map(str::to_owned).collect()
}

/// Sends these messages and returns their ids.
fn send_all<M: Into<Outgoing>>(
    queue: &mut Simulator,
    messages: impl IntoIterator<Item = M>,
) -> Vec<String> {
    let messages = messages.into_iter();
    messages.map(|m| queue.send(m).unwrap()).collect()
}

fn grouped(body: &str, group: &str) -> Outgoing {
    Outgoing::new(body).group(group)
}
