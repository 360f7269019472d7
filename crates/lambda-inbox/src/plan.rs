//! Which records may run at once, and in which order.
//!
//! The unit is a lane: records that run one after the other on one connection, in the order of arrival.
//! Records with one key share a lane, so that the second copy of a message waits for the first, and on
//! a FIFO queue so do records of one message group.

use crate::body::Decode;
use crate::content::{Content, ContentError, ResolveError, is_s3_test_event, unwrap};
use crate::deadline::Deadline;
use crate::error::chain;
use crate::inbox::{S3TestEvents, Settings};
use crate::key::{Keyed, by_message_id};
use crate::message::{Message, receive_count, sent_at};
use crate::outcome::{Mark, Outcome, Verdict};
use crate::record::{DecodeError, Head, decode};
use aws_lambda_events::sqs::SqsMessage;
use futures_util::future::join_all;
use lambda_inbox_store::{Entry, Fingerprint, Key, Status};
use serde_json::value::RawValue;
use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tokio::time::timeout_at;

/// How many offloaded bodies are fetched at once.
const FETCHES_MAX: usize = 8;

/// What is told of a record, whatever becomes of it.
pub(crate) struct Identity {
    pub(crate) message_id: Option<String>,
    pub(crate) key: Option<Key>,
    pub(crate) fingerprint: Option<Fingerprint>,
}

/// A record that has a key. Cloning is cheap: a batch that fails as a whole is run again.
#[derive(Clone)]
pub(crate) struct Prepared {
    pub(crate) record: Arc<SqsMessage>,
    pub(crate) content: Arc<Content>,
    /// Its status says whether there is anything to do beside claiming the key.
    pub(crate) entry: Arc<Entry>,
}

pub(crate) struct Job {
    pub(crate) position: usize,
    /// The message group, on FIFO queues only: a failure stops what stands behind it in its group.
    pub(crate) group: Option<Arc<str>>,
    /// The verdict is given already where the record does not decode or has no key.
    pub(crate) work: Result<Box<Prepared>, Verdict>,
}

pub(crate) struct Lane {
    pub(crate) jobs: Vec<Job>,
}

pub(crate) struct Plan {
    /// One for each record, by position.
    pub(crate) identities: Vec<Identity>,
    pub(crate) lanes: VecDeque<Lane>,
    pub(crate) queue_arn: Option<String>,
    pub(crate) fifo: bool,
}

impl Plan {
    /// Decodes and keys every record. Waits only for bodies that stand in S3.
    pub(crate) async fn new(
        settings: &Settings,
        deadline: &Deadline,
        records: &[&RawValue],
    ) -> Self {
        let (heads, decoded): (Vec<Head>, Vec<_>) = records
            .iter()
            .map(|record| head_and_message(record))
            .unzip();
        let fifo = heads.iter().any(Head::is_fifo);
        let queue_arn = heads.iter().find_map(|head| head.queue_arn.clone());
        // Nothing is waited for but bodies in S3, so only with a resolver is there anything to overlap.
        let at_once = if settings.resolver.is_some() {
            FETCHES_MAX
        } else {
            1
        };
        let mut pairs = heads.iter().zip(decoded);
        let mut work = Vec::with_capacity(records.len());
        while work.len() < records.len() {
            let part = pairs.by_ref().take(at_once);
            let prepared = part.map(|(head, message)| prepare(settings, deadline, head, message));
            work.extend(join_all(prepared).await);
        }
        let groups = groups(fifo, &heads);
        let identities = heads.into_iter().zip(&work).map(|(head, work)| Identity {
            message_id: head.message_id,
            key: work
                .as_ref()
                .ok()
                .map(|prepared| prepared.entry.key.clone()),
            fingerprint: work
                .as_ref()
                .ok()
                .map(|prepared| prepared.entry.fingerprint.clone()),
        });
        let identities = identities.collect();
        let jobs = work.into_iter().zip(groups).enumerate();
        let jobs = jobs.map(|(position, (work, group))| Job {
            position,
            group,
            work,
        });
        let lanes = lanes(jobs.collect());
        Self {
            identities,
            lanes,
            queue_arn,
            fifo,
        }
    }
}

/// The message group of each record of a FIFO queue. Where one does not tell its group, all are taken
/// for one group: what it would have to wait for is not known.
fn groups(fifo: bool, heads: &[Head]) -> Vec<Option<Arc<str>>> {
    if !fifo {
        return vec![None; heads.len()];
    }
    let known = heads.iter().all(|head| head.group.is_some());
    let groups = heads
        .iter()
        .map(|head| head.group.as_deref().filter(|_| known));
    groups
        .map(|group| Some(Arc::from(group.unwrap_or_default())))
        .collect()
}

fn head_and_message(record: &RawValue) -> (Head, Result<SqsMessage, DecodeError>) {
    match decode(record) {
        Ok(message) => (Head::of_message(&message), Ok(message)),
        Err(error) => (Head::of(record), Err(error)),
    }
}

async fn prepare(
    settings: &Settings,
    deadline: &Deadline,
    head: &Head,
    record: Result<SqsMessage, DecodeError>,
) -> Result<Box<Prepared>, Verdict> {
    let poison = |error: &dyn std::fmt::Display| Verdict::new(Outcome::Poison, error.to_string());
    let Some(message_id) = head.message_id.clone() else {
        return Err(poison(&DecodeError::NoMessageId));
    };
    let record = record.map_err(|error| poison(&error))?;
    let body = record.body.as_deref().unwrap_or_default();
    if settings.s3_test_events == S3TestEvents::Ignore && is_s3_test_event(body) {
        // Whatever the strategy reads is not there, and a copy of it may come through each queue.
        let keyed = by_message_id(&record).map_err(|error| poison(&error))?;
        let content = Content::default();
        return Ok(Prepared::new(
            settings,
            message_id,
            record,
            content,
            keyed,
            Status::Ignored,
        ));
    }
    let content = content(settings, deadline, &record).await?;
    let keyed = settings
        .key
        .key(&record, &content)
        .map_err(|error| poison(&error))?;
    Ok(Prepared::new(
        settings,
        message_id,
        record,
        content,
        keyed,
        Status::Processed,
    ))
}

async fn content(
    settings: &Settings,
    deadline: &Deadline,
    record: &SqsMessage,
) -> Result<Content, Verdict> {
    let unwrapped = unwrap(record, &settings.envelopes, settings.resolver.as_ref());
    let unwrapped = match settings.resolver {
        None => Ok(unwrapped.await),
        Some(_) => timeout_at(deadline.before_handler(), unwrapped).await,
    };
    let unwrapped =
        unwrapped.map_err(|_| Verdict::failed("its offloaded payload was not fetched in time"))?;
    unwrapped.map_err(|error| {
        let id = record.message_id.as_deref().unwrap_or_default();
        let reason = format!("message {id}: {}", chain(&error));
        match error {
            // It may be there the next time.
            ContentError::Resolve(ResolveError::Fetch(_)) => Verdict::failed(reason),
            ContentError::Resolve(ResolveError::Bucket(_)) | ContentError::Envelope(_) => {
                Verdict::new(Outcome::Poison, reason)
            }
        }
    })
}

impl Prepared {
    fn new(
        settings: &Settings,
        transport_message_id: String,
        record: SqsMessage,
        content: Content,
        keyed: Keyed,
        status: Status,
    ) -> Box<Self> {
        let Keyed {
            key,
            sent_at: original,
            fingerprint,
        } = keyed;
        let body = content.body(&record).unwrap_or_default();
        let entry = Entry {
            consumer: settings.consumer.clone(),
            key,
            sent_at: original.or_else(|| sent_at(&record)),
            status,
            fingerprint: fingerprint.unwrap_or_else(|| Fingerprint::of_body(body)),
            transport_message_id,
        };
        Box::new(Self {
            record: Arc::new(record),
            content: Arc::new(content),
            entry: Arc::new(entry),
        })
    }

    /// The message for the handler; `None` where there is nothing for it to do.
    pub(crate) fn message<D: Decode>(
        &self,
        deadline: &Deadline,
    ) -> Result<Option<Message<D::Body>>, Verdict> {
        if self.entry.status == Status::Ignored {
            return Ok(None);
        }
        // A type's own way of decoding is the user's code too.
        let decode = || D::decode(&self.record, self.content.body(&self.record));
        let body = catch_unwind(AssertUnwindSafe(decode))
            .map_err(|_| Verdict::failed("decoding the body panicked").marked(Mark::HandlerBug))?;
        let body = body.map_err(|error| {
            let offloaded = self.content.offloaded.is_some();
            let error = if offloaded {
                DecodeError::Offloaded
            } else {
                error
            };
            Verdict::new(Outcome::Poison, error.to_string())
        })?;
        Ok(Some(Message::new(
            body,
            &self.entry,
            Arc::clone(&self.record),
            Arc::clone(&self.content),
            deadline.handler(),
        )))
    }
}

/// Puts records into one lane that have the key or the message group in common.
///
/// The lanes with the highest receive count come first: a batch that runs out of time must not leave
/// the same records behind each time, until they land in the dead-letter queue untouched.
pub(crate) fn lanes(jobs: Vec<Job>) -> VecDeque<Lane> {
    let mut lanes: Vec<Vec<Job>> = Vec::new();
    let mut by_key: HashMap<Key, usize> = HashMap::new();
    let mut by_group: HashMap<Arc<str>, usize> = HashMap::new();
    for job in jobs {
        let key = job
            .work
            .as_ref()
            .ok()
            .map(|prepared| prepared.entry.key.clone());
        let of_key = key.as_ref().and_then(|key| by_key.get(key).copied());
        let of_group = job
            .group
            .as_ref()
            .and_then(|group| by_group.get(group).copied());
        let lane = match (of_key, of_group) {
            (Some(a), Some(b)) if a != b => {
                let (into, from) = (a.min(b), a.max(b));
                merge(&mut lanes, into, from);
                let known = by_key.values_mut().chain(by_group.values_mut());
                known
                    .filter(|lane| **lane == from)
                    .for_each(|lane| *lane = into);
                into
            }
            (Some(lane), _) | (None, Some(lane)) => lane,
            (None, None) => {
                lanes.push(Vec::new());
                lanes.len() - 1
            }
        };
        by_key.extend(key.map(|key| (key, lane)));
        by_group.extend(job.group.clone().map(|group| (group, lane)));
        if let Some(lane) = lanes.get_mut(lane) {
            lane.push(job);
        }
    }
    lanes.retain(|jobs| !jobs.is_empty());
    let mut lanes: Vec<Lane> = lanes.into_iter().map(|jobs| Lane { jobs }).collect();
    lanes.sort_by_cached_key(|lane| Reverse(lane.jobs.iter().map(receives).max()));
    lanes.into()
}

fn merge(lanes: &mut [Vec<Job>], into: usize, from: usize) {
    let moved = lanes.get_mut(from).map(std::mem::take).unwrap_or_default();
    if let Some(lane) = lanes.get_mut(into) {
        lane.extend(moved);
        lane.sort_by_key(|job| job.position);
    }
}

fn receives(job: &Job) -> u32 {
    let prepared = job.work.as_ref();
    prepared.map_or(0, |prepared| receive_count(&prepared.record).get())
}
