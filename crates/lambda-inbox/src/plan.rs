//! Which records may run at once, and in which order.
//!
//! The unit is a lane: records that run one after the other on one connection. On a standard queue a
//! lane is one key, so that the second copy of a message waits for the first. A FIFO batch is one
//! lane in the order of arrival.

use crate::inbox::Settings;
use crate::message::{receive_count, sent_at};
use crate::outcome::{Outcome, Verdict};
use crate::record::{DecodeError, Head, decode};
use aws_lambda_events::sqs::SqsMessage;
use lambda_inbox_store::{Entry, Fingerprint, Key, Status};
use serde_json::value::RawValue;
use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// What is told of a record, whatever becomes of it.
pub(crate) struct Identity {
    pub(crate) message_id: Option<String>,
    pub(crate) key: Option<Key>,
}

/// A record that has a key.
pub(crate) struct Prepared {
    pub(crate) record: SqsMessage,
    pub(crate) entry: Arc<Entry>,
}

pub(crate) struct Job {
    pub(crate) position: usize,
    /// The verdict is given already where the record does not decode or has no key.
    pub(crate) work: Result<Box<Prepared>, Verdict>,
}

pub(crate) struct Lane {
    pub(crate) jobs: Vec<Job>,
    /// Whether a failure stops the records behind it.
    pub(crate) ordered: bool,
}

pub(crate) struct Plan {
    /// One for each record, by position.
    pub(crate) identities: Vec<Identity>,
    pub(crate) lanes: VecDeque<Lane>,
    pub(crate) queue_arn: Option<String>,
}

impl Plan {
    pub(crate) fn new(settings: &Settings, records: &[&RawValue]) -> Self {
        let mut identities = Vec::with_capacity(records.len());
        let mut jobs = Vec::with_capacity(records.len());
        let mut queue_arn = None;
        let mut fifo = false;
        for (position, record) in records.iter().enumerate() {
            let head = Head::of(record);
            fifo |= head.is_fifo();
            let work = prepare(settings, &head, record);
            let key = work
                .as_ref()
                .ok()
                .map(|prepared| prepared.entry.key.clone());
            identities.push(Identity {
                message_id: head.message_id,
                key,
            });
            queue_arn = queue_arn.or(head.queue_arn);
            jobs.push(Job { position, work });
        }
        let lanes = if fifo { in_order(jobs) } else { by_key(jobs) };
        Self {
            identities,
            lanes,
            queue_arn,
        }
    }
}

fn prepare(settings: &Settings, head: &Head, record: &RawValue) -> Result<Box<Prepared>, Verdict> {
    let poison = |error: &dyn std::fmt::Display| Verdict::new(Outcome::Poison, error.to_string());
    let Some(message_id) = head.message_id.clone() else {
        return Err(poison(&DecodeError::NoMessageId));
    };
    let record = decode(record).map_err(|error| poison(&error))?;
    let key = settings.key.key(&record).map_err(|error| poison(&error))?;
    let entry = Entry {
        consumer: settings.consumer.clone(),
        key,
        sent_at: sent_at(&record),
        status: Status::Processed,
        fingerprint: Fingerprint::of_body(record.body.as_deref().unwrap_or_default()),
        transport_message_id: message_id,
    };
    Ok(Box::new(Prepared {
        record,
        entry: Arc::new(entry),
    }))
}

fn in_order(jobs: Vec<Job>) -> VecDeque<Lane> {
    VecDeque::from([Lane {
        jobs,
        ordered: true,
    }])
}

/// The lanes with the highest receive count come first: a batch that runs out of time must not leave
/// the same records behind each time, until they land in the dead-letter queue untouched.
fn by_key(jobs: Vec<Job>) -> VecDeque<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    let mut lane_of: HashMap<Key, usize> = HashMap::new();
    for job in jobs {
        let lane = match &job.work {
            Ok(prepared) => *lane_of
                .entry(prepared.entry.key.clone())
                .or_insert(lanes.len()),
            Err(_) => lanes.len(),
        };
        match lanes.get_mut(lane) {
            Some(lane) => lane.jobs.push(job),
            None => lanes.push(Lane {
                jobs: vec![job],
                ordered: false,
            }),
        }
    }
    lanes.sort_by_cached_key(|lane| Reverse(lane.jobs.iter().map(receives).max()));
    lanes.into()
}

fn receives(job: &Job) -> u32 {
    job.work
        .as_ref()
        .map_or(0, |prepared| receive_count(&prepared.record).get())
}
