//! The two queues: what is in them, what can be received now, and what a delete really removes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, SystemTime};

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::config::QueueConfig;
use super::message::StoredMessage;

/// A message's place in the queue: the order of sending.
pub(super) type Sequence = u64;

/// The source queue and the dead-letter queue.
#[derive(Debug, Default)]
pub(super) struct Store {
    queue: BTreeMap<Sequence, StoredMessage>,
    dead_letters: Vec<StoredMessage>,
    /// By id, for deliveries after the delete; SQS names no time after which they cannot come any more.
    deleted: HashMap<String, (Sequence, StoredMessage)>,
    last_sequence: Sequence,
    /// No message expires before.
    next_expiry: Option<SystemTime>,
}

impl Store {
    pub(super) fn push(&mut self, message: StoredMessage, retention: Duration) {
        self.last_sequence += 1;
        self.insert(self.last_sequence, message, retention);
    }

    pub(super) fn queue(&self) -> impl ExactSizeIterator<Item = &StoredMessage> {
        self.queue.values()
    }

    pub(super) fn dead_letters(&self) -> &[StoredMessage] {
        &self.dead_letters
    }

    pub(super) fn take_dead_letters(&mut self) -> Vec<StoredMessage> {
        std::mem::take(&mut self.dead_letters)
    }

    pub(super) fn get(&self, sequence: Sequence) -> Option<&StoredMessage> {
        self.queue.get(&sequence)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The next moment after `now` at which a message in flight becomes visible.
    pub(super) fn next_visible(&self, now: SystemTime) -> Option<SystemTime> {
        let visible = self.queue.values().map(|message| message.visible_at);
        visible.filter(|&visible_at| visible_at > now).min()
    }

    /// The groups of a FIFO queue that have a message in flight; later messages of theirs wait.
    pub(super) fn groups_in_flight(&self, now: SystemTime) -> HashSet<String> {
        let in_flight = self.queue.values().filter(|m| m.visible_at > now);
        in_flight
            .filter_map(|message| message.group().map(str::to_owned))
            .collect()
    }

    /// Up to `limit` messages that can be received now: in order, or in any order if a generator is given.
    pub(super) fn visible(
        &self,
        now: SystemTime,
        limit: usize,
        blocked_groups: &HashSet<String>,
        shuffle: Option<&mut ChaCha8Rng>,
    ) -> Vec<Sequence> {
        let is_blocked = |m: &StoredMessage| m.group().is_some_and(|g| blocked_groups.contains(g));
        let visible = self
            .queue
            .iter()
            .filter(|(_, message)| message.visible_at <= now && !is_blocked(message))
            .map(|(&sequence, _)| sequence);
        match shuffle {
            None => visible.take(limit).collect(),
            Some(rng) => {
                let mut all: Vec<Sequence> = visible.collect();
                all.shuffle(rng);
                all.truncate(limit);
                all
            }
        }
    }

    /// Counts a receive and takes the message out of sight.
    pub(super) fn receive(&mut self, sequence: Sequence, now: SystemTime, visibility: Duration) {
        if let Some(message) = self.queue.get_mut(&sequence) {
            message.receive_count += 1;
            message.first_received_at.get_or_insert(now);
            message.visible_at = now + visibility;
        }
    }

    /// Removes a message for good, as far as the poller knows.
    pub(super) fn delete(&mut self, sequence: Sequence) {
        if let Some(message) = self.queue.remove(&sequence) {
            self.deleted.insert(message.id.clone(), (sequence, message));
        }
    }

    /// Moves a message to the dead-letter queue and returns its id.
    pub(super) fn dead_letter(
        &mut self,
        sequence: Sequence,
        now: SystemTime,
        config: &QueueConfig,
    ) -> Option<String> {
        let mut message = self.queue.remove(&sequence)?;
        self.deleted.remove(&message.id);
        if config.fifo {
            message.sent_at = now;
            message.deduplication_id = Some(message.id.clone());
        }
        let id = message.id.clone();
        self.expect_expiry(message.sent_at + config.dead_letter_retention);
        self.dead_letters.push(message);
        Some(id)
    }

    /// Puts a copy of a message back that is deleted, or (not on a FIFO queue) still there; `false` if none is kept.
    pub(super) fn repeat(&mut self, id: &str, now: SystemTime, config: &QueueConfig) -> bool {
        match self.queue.values().find(|message| message.id == id) {
            // A FIFO queue has one copy, in its place.
            Some(_) if config.fifo => false,
            Some(message) => {
                let copy = message.clone();
                self.last_sequence += 1;
                self.insert_copy(self.last_sequence, copy, now, config.retention);
                true
            }
            None => self.repeat_deleted(id, now, now, config),
        }
    }

    /// Puts a copy of a deleted message back, to be seen from `visible_at` on.
    pub(super) fn repeat_deleted(
        &mut self,
        id: &str,
        now: SystemTime,
        visible_at: SystemTime,
        config: &QueueConfig,
    ) -> bool {
        let Some((sequence, message)) = self.deleted.get(id) else {
            return false;
        };
        if message.sent_at + config.retention <= now {
            return false;
        }
        let (mut sequence, copy) = (*sequence, message.clone());
        if !config.fifo {
            self.last_sequence += 1;
            sequence = self.last_sequence;
        }
        self.insert_copy(sequence, copy, visible_at, config.retention);
        true
    }

    /// Drops what has outlived its retention and returns how many.
    pub(super) fn expire(&mut self, now: SystemTime, config: &QueueConfig) -> u64 {
        if self.next_expiry.is_none_or(|expiry| now < expiry) {
            return 0;
        }
        let before = self.queue.len() + self.dead_letters.len();
        let queue_expiry = |m: &StoredMessage| m.sent_at + config.retention;
        let dead_letter_expiry = |m: &StoredMessage| m.sent_at + config.dead_letter_retention;
        self.queue.retain(|_, m| queue_expiry(m) > now);
        self.dead_letters.retain(|m| dead_letter_expiry(m) > now);
        let left = self.queue.values().map(queue_expiry);
        let dead = self.dead_letters.iter().map(dead_letter_expiry);
        self.next_expiry = left.chain(dead).min();
        let after = self.queue.len() + self.dead_letters.len();
        (before - after) as u64
    }

    fn insert_copy(
        &mut self,
        sequence: Sequence,
        mut copy: StoredMessage,
        visible_at: SystemTime,
        retention: Duration,
    ) {
        // The server that kept this copy has not seen the latest receive.
        copy.receive_count = copy.receive_count.saturating_sub(1);
        copy.visible_at = visible_at;
        self.insert(sequence, copy, retention);
    }

    fn insert(&mut self, sequence: Sequence, message: StoredMessage, retention: Duration) {
        self.expect_expiry(message.sent_at + retention);
        self.queue.insert(sequence, message);
    }

    fn expect_expiry(&mut self, expiry: SystemTime) {
        self.next_expiry = Some(self.next_expiry.map_or(expiry, |next| next.min(expiry)));
    }
}
