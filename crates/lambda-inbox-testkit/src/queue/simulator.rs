//! The poller: receive, invoke, read the response, delete; and the clock that all of it goes by.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use uuid::Uuid;

use super::config::{InvocationTime, QueueConfig};
use super::message::{Outgoing, SendError, StoredMessage};
use super::report::{Delivery, PollReport, Redriven, Stats, Summary};
use super::response::{BatchFailure, Verdict};
use super::store::{Sequence, Store};
use crate::consumer::{Consumer, Invocation};
use crate::event::event;

/// How long a FIFO queue remembers a deduplication id.
const DEDUPLICATION_WINDOW: Duration = Duration::from_secs(5 * 60);
/// The limit for an invocation's payload, in bytes; the rest of a larger batch stays in the queue.
const EVENT_BYTES_MAX: usize = 6 * 1024 * 1024;

/// A queue, its dead-letter queue and Lambda's poller, in virtual time. See the [module docs](super).
#[derive(Debug)]
pub struct Simulator {
    config: QueueConfig,
    rng: ChaCha8Rng,
    now: SystemTime,
    store: Store,
    /// By deduplication id: when it was first sent, and the MessageId it got.
    deduplication: HashMap<String, (SystemTime, String)>,
    throttled_polls: u32,
    stats: Stats,
}

/// What a poll took out of the queue.
#[derive(Default)]
struct Batch {
    sequences: Vec<Sequence>,
    deliveries: Vec<Delivery>,
    records: Vec<Value>,
    bytes: usize,
    dead_lettered: Vec<String>,
}

impl Simulator {
    /// An empty queue. Ids, handles, shuffling and duplicates come from `seed`.
    pub fn new(config: QueueConfig, seed: u64) -> Self {
        Self {
            now: config.clock_start,
            config,
            rng: ChaCha8Rng::seed_from_u64(seed),
            store: Store::default(),
            deduplication: HashMap::new(),
            throttled_polls: 0,
            stats: Stats::default(),
        }
    }

    /// Sends a message and returns its MessageId.
    ///
    /// A FIFO queue that has met the deduplication id in the last five minutes takes the message without delivering it,
    /// and answers with the first one's MessageId.
    ///
    /// # Errors
    /// [`SendError`] for a message that SQS would refuse.
    pub fn send(&mut self, message: impl Into<Outgoing>) -> Result<String, SendError> {
        let outgoing = message.into();
        outgoing.check(&self.config)?;
        let deduplication_id = self
            .config
            .fifo
            .then(|| outgoing.effective_deduplication_id());
        if let Some(id) = &deduplication_id
            && let Some((sent_at, message_id)) = self.deduplication.get(id)
            && self.now < *sent_at + DEDUPLICATION_WINDOW
        {
            self.stats.deduplicated += 1;
            return Ok(message_id.clone());
        }
        let message_id = self.push(Arc::new(outgoing), deduplication_id.clone());
        if let Some(id) = deduplication_id {
            self.deduplication
                .insert(id, (self.now, message_id.clone()));
        }
        self.stats.sent += 1;
        Ok(message_id)
    }

    /// Receives what is visible now and runs the function once; `None` if nothing is.
    ///
    /// Messages that have used up their receives go to the dead-letter queue on the way, also where `None` is returned.
    ///
    /// Cancelling it is a crash of the poller: what it had received comes back after the visibility timeout.
    pub async fn poll_once<C: Consumer>(&mut self, consumer: &mut C) -> Option<PollReport> {
        self.stats.expired += self.store.expire(self.now, &self.config);
        let received_at = self.now;
        let mut batch = self.receive();
        if batch.deliveries.is_empty() {
            return None;
        }
        let records = std::mem::take(&mut batch.records);
        let invocation = self.invoke(consumer, event(records)).await;
        let verdict = self.read(invocation.as_ref(), &batch.deliveries);
        let (deleted, returned) = self.settle(&batch, &verdict);
        Some(PollReport {
            received_at,
            delivered: batch.deliveries,
            invocation,
            verdict,
            deleted,
            returned,
            dead_lettered: batch.dead_lettered,
        })
    }

    /// Polls until the queue is empty, moving the clock to the next visible message whenever nothing is; at most
    /// `max_polls` polls that receive something.
    ///
    /// Cancelling it is as for [`poll_once`](Self::poll_once).
    pub async fn run_until_drained<C: Consumer>(
        &mut self,
        consumer: &mut C,
        max_polls: u64,
    ) -> Summary {
        let mut polls = 0;
        while polls < max_polls && !self.store.is_empty() {
            if self.poll_once(consumer).await.is_some() {
                polls += 1;
            } else if let Some(visible_at) = self.store.next_visible(self.now) {
                self.now = visible_at;
            }
        }
        Summary {
            drained: self.store.is_empty(),
            polls,
            stats: self.stats,
        }
    }

    /// The virtual time.
    pub fn now(&self) -> SystemTime {
        self.now
    }

    /// Lets virtual time pass; messages whose retention ends are dropped.
    pub fn advance(&mut self, time: Duration) {
        self.now += time;
        self.stats.expired += self.store.expire(self.now, &self.config);
    }

    /// The messages in the queue, visible or in flight, in order.
    pub fn in_queue(&self) -> impl ExactSizeIterator<Item = &StoredMessage> {
        self.store.queue()
    }

    /// The messages in the dead-letter queue, oldest move first.
    pub fn dead_letters(&self) -> &[StoredMessage] {
        self.store.dead_letters()
    }

    /// Moves all dead letters back to the queue, as StartMessageMoveTask does: each becomes a new message.
    pub fn redrive(&mut self) -> Vec<Redriven> {
        let dead_letters = self.store.take_dead_letters();
        self.stats.redriven += dead_letters.len() as u64;
        dead_letters
            .into_iter()
            .map(|dead_letter| Redriven {
                message_id: self.push(dead_letter.outgoing, dead_letter.deduplication_id),
                dead_letter_id: dead_letter.id,
            })
            .collect()
    }

    /// Makes a copy of a message visible now, whether the message was deleted or is still in the queue.
    ///
    /// `false`, and nothing happens, if the queue has never had the id, has lost it to the dead-letter queue or to the
    /// retention, or is a FIFO queue and still has it.
    pub fn deliver_again(&mut self, message_id: &str) -> bool {
        let repeated = self.store.repeat(message_id, self.now, &self.config);
        self.stats.duplicates_injected += u64::from(repeated);
        repeated
    }

    /// Lets the next `polls` polls that receive something find Lambda without capacity.
    pub fn throttle_next(&mut self, polls: u32) {
        self.throttled_polls += polls;
    }

    /// What has happened so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    fn push(&mut self, outgoing: Arc<Outgoing>, deduplication_id: Option<String>) -> String {
        let id = self.random_id().to_string();
        let message = StoredMessage {
            id: id.clone(),
            outgoing,
            deduplication_id,
            sent_at: self.now,
            receive_count: 0,
            first_received_at: None,
            visible_at: self.now,
        };
        self.store.push(message, self.config.retention);
        id
    }

    fn receive(&mut self) -> Batch {
        let mut batch = Batch::default();
        let blocked = if self.config.fifo {
            self.store.groups_in_flight(self.now)
        } else {
            HashSet::new()
        };
        // Dead letters leave room in the batch, so look again until it is full or nothing is left.
        loop {
            let room = self.config.batch_size - batch.sequences.len();
            let shuffle = (self.config.shuffle && !self.config.fifo).then_some(&mut self.rng);
            let visible = self.store.visible(self.now, room, &blocked, shuffle);
            if visible.is_empty() {
                return batch;
            }
            for sequence in visible {
                if !self.receive_one(sequence, &mut batch) {
                    return batch;
                }
            }
        }
    }

    /// Adds a message to the batch, or to the dead letters; `false` if it no longer fits.
    fn receive_one(&mut self, sequence: Sequence, batch: &mut Batch) -> bool {
        let Some(message) = self.store.get(sequence) else {
            return true;
        };
        let max_receive_count = self.config.max_receive_count;
        if max_receive_count.is_some_and(|max| message.receive_count >= max) {
            let moved = self.store.dead_letter(sequence, self.now, &self.config);
            self.stats.dead_lettered += 1;
            batch.dead_lettered.extend(moved);
            return true;
        }
        let mut received = message.clone();
        received.receive_count += 1;
        received.first_received_at.get_or_insert(self.now);
        let receipt_handle = format!("{}-{sequence}", self.random_id().simple());
        let record = received.record(&self.config.queue_name, sequence, &receipt_handle);
        let bytes = record.to_string().len();
        if batch.bytes + bytes > EVENT_BYTES_MAX && !batch.sequences.is_empty() {
            return false;
        }
        self.store
            .receive(sequence, self.now, self.config.visibility_timeout);
        batch.bytes += bytes;
        batch.sequences.push(sequence);
        batch.records.push(record);
        batch.deliveries.push(Delivery {
            message_id: received.id,
            receive_count: received.receive_count,
        });
        true
    }

    /// Runs the function, if Lambda has capacity, and lets the time pass that it takes.
    async fn invoke<C: Consumer>(&mut self, consumer: &mut C, event: Value) -> Option<Invocation> {
        if self.throttled_polls > 0 {
            self.throttled_polls -= 1;
            self.stats.throttles += 1;
            return None;
        }
        self.stats.invocations += 1;
        let start = Instant::now();
        let invocation = consumer.invoke(event, self.config.function_timeout).await;
        self.now += match self.config.invocation_time {
            InvocationTime::Zero => Duration::ZERO,
            InvocationTime::Measured => start.elapsed(),
            InvocationTime::Fixed(time) => time,
        };
        Some(invocation)
    }

    fn read(&mut self, invocation: Option<&Invocation>, deliveries: &[Delivery]) -> Verdict {
        let Some(invocation) = invocation else {
            return Verdict::Failed(BatchFailure::Throttled);
        };
        self.stats.deliveries += deliveries.len() as u64;
        let ids = deliveries.iter().map(|d| d.message_id.as_str()).collect();
        let verdict = Verdict::of(invocation, &ids, self.config.report_batch_item_failures);
        match &verdict {
            Verdict::Complete | Verdict::Failed(BatchFailure::Throttled) => {}
            Verdict::Partial(failed) => self.stats.failures_returned += failed.len() as u64,
            Verdict::Failed(BatchFailure::FunctionError(_)) => self.stats.function_errors += 1,
            Verdict::Failed(BatchFailure::TimedOut) => self.stats.timeouts += 1,
            Verdict::Failed(BatchFailure::Crashed) => self.stats.crashes += 1,
            Verdict::Failed(
                BatchFailure::InvalidJson
                | BatchFailure::Malformed(_)
                | BatchFailure::UnknownIdentifier(_),
            ) => self.stats.malformed_responses += 1,
        }
        verdict
    }

    /// Deletes what the verdict lets go; returns the ids deleted and the ids that come back.
    fn settle(&mut self, batch: &Batch, verdict: &Verdict) -> (Vec<String>, Vec<String>) {
        let failed: HashSet<&str> = match verdict {
            Verdict::Complete => HashSet::new(),
            Verdict::Partial(failed) => failed.iter().map(String::as_str).collect(),
            Verdict::Failed(_) => batch
                .deliveries
                .iter()
                .map(|d| d.message_id.as_str())
                .collect(),
        };
        let (mut deleted, mut returned) = (Vec::new(), Vec::new());
        for (&sequence, delivery) in batch.sequences.iter().zip(&batch.deliveries) {
            let id = &delivery.message_id;
            if !failed.contains(id.as_str()) && self.delete(sequence, id) {
                deleted.push(id.clone());
            } else {
                returned.push(id.clone());
            }
        }
        (deleted, returned)
    }

    /// Deletes a message, or seems to; `false` if SQS refuses.
    fn delete(&mut self, sequence: Sequence, id: &str) -> bool {
        let visible_again = |m: &StoredMessage| m.visible_at <= self.now;
        if self.config.fifo && self.store.get(sequence).is_none_or(visible_again) {
            // The receipt handle has expired with the visibility timeout.
            return false;
        }
        self.stats.deleted += 1;
        let lost = self.rng.random_bool(self.config.duplicate_rate);
        if lost && self.config.fifo {
            self.stats.duplicates_injected += 1;
            return true;
        }
        self.store.delete(sequence);
        if lost {
            let after = self.config.visibility_timeout.mul_f64(self.rng.random());
            let visible_at = self.now + after;
            let repeated = self
                .store
                .repeat_deleted(id, self.now, visible_at, &self.config);
            self.stats.duplicates_injected += u64::from(repeated);
        }
        true
    }

    fn random_id(&mut self) -> Uuid {
        uuid::Builder::from_random_bytes(self.rng.random()).into_uuid()
    }
}
