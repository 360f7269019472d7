//! What a simulator tells about its polls.

use std::time::SystemTime;

use super::response::Verdict;
use crate::consumer::Invocation;

/// One message in a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its MessageId.
    pub message_id: String,
    /// Its ApproximateReceiveCount, this receive included.
    pub receive_count: u32,
}

/// One poll that received messages.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PollReport {
    /// When it received them, on the virtual clock.
    pub received_at: SystemTime,
    /// What it received, in the order of the event.
    pub delivered: Vec<Delivery>,
    /// What came of the invocation; `None` if Lambda was throttled.
    pub invocation: Option<Invocation>,
    /// How the poller read it.
    pub verdict: Verdict,
    /// The ids that the poller deleted. A duplicate of one may still turn up.
    pub deleted: Vec<String>,
    /// The ids that come back after their visibility timeout, or go to the dead-letter queue.
    pub returned: Vec<String>,
    /// The ids that this poll's receive moved to the dead-letter queue.
    pub dead_lettered: Vec<String>,
}

/// Counts since the simulator was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Messages taken from producers.
    pub sent: u64,
    /// Messages not taken, because a FIFO queue had their deduplication id in the last five minutes.
    pub deduplicated: u64,
    /// Records handed to the function, in all invocations.
    pub deliveries: u64,
    /// Runs of the function.
    pub invocations: u64,
    /// Batches that were received but not run, for lack of capacity.
    pub throttles: u64,
    /// Ids that responses reported as failed.
    pub failures_returned: u64,
    /// Responses that failed their batch because of their shape.
    pub malformed_responses: u64,
    /// Invocations that ended in an error of the function.
    pub function_errors: u64,
    /// Invocations that ran out of time.
    pub timeouts: u64,
    /// Invocations whose process ended.
    pub crashes: u64,
    /// Deletes by the poller.
    pub deleted: u64,
    /// Moves to the dead-letter queue.
    pub dead_lettered: u64,
    /// Moves back from it.
    pub redriven: u64,
    /// Deletes that did not take, and explicit repetitions.
    pub duplicates_injected: u64,
    /// Messages dropped at the end of a retention, in either queue.
    pub expired: u64,
}

/// How a run to the end went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "a run that was cut short has not drained the queue"]
pub struct Summary {
    /// Whether the queue is empty; `false` if the polls were used up before.
    pub drained: bool,
    /// The polls of this run that received messages.
    pub polls: u64,
    /// The simulator's counts after this run, from its beginning.
    pub stats: Stats,
}

/// A message that a redrive moved back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redriven {
    /// Its MessageId in the dead-letter queue.
    pub dead_letter_id: String,
    /// Its new MessageId in the source queue.
    pub message_id: String,
}
