//! Which records may run at once, and in which order.
//!
//! The unit is a lane: records that run one after the other on one connection, in the order of arrival.
//! Records with one key share a lane, so that the second copy of a message waits for the first, and on
//! a FIFO queue so do records of one message group.

use crate::body::Decode;
use crate::content::{Content, ContentError, ResolveError, is_s3_test_event, unwrap};
use crate::deadline::Deadline;
use crate::error::chain;
use crate::event::{EventError, InboxEvent};
use crate::inbox::{S3TestEvents, Settings};
use crate::key::{Keyed, by_message_id};
use crate::message::{Message, receive_count, sent_at};
use crate::outcome::{Mark, Outcome, Verdict};
use crate::record::{DecodeError, Head, decode};
use aws_lambda_events::sqs::SqsMessage;
use futures_util::future::join_all;
use lambda_inbox_store::{Entry, Fingerprint, Key, Layout, Status};
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
    pub(crate) message_id: Option<Arc<str>>,
    /// `None` where it does not decode or has no key.
    pub(crate) entry: Option<Arc<Entry>>,
    /// How often SQS has handed it out. Known where the failure log asks for it; 1 otherwise.
    pub(crate) receive_count: u32,
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
    pub(crate) work: Result<Prepared, Verdict>,
}

pub(crate) struct Lane {
    pub(crate) jobs: Vec<Job>,
}

pub(crate) struct Plan {
    /// One for each record, by position.
    pub(crate) identities: Vec<Identity>,
    /// In the order of arrival.
    pub(crate) jobs: Vec<Job>,
    pub(crate) queue_arn: Option<Arc<str>>,
    pub(crate) fifo: bool,
}

impl Plan {
    /// Decodes and keys every record. Waits only for bodies that stand in S3.
    ///
    /// # Errors
    /// [`EventError`] where the event is not one of SQS.
    pub(crate) async fn new(
        settings: &Settings,
        deadline: &Deadline,
        event: InboxEvent,
    ) -> Result<Self, EventError> {
        let mut queue_arn = None;
        let (heads, decoded) = heads_and_messages(&event, &mut queue_arn)?;
        // Everything needed has been copied out of the text, which may be 6 MB.
        drop(event);
        let fifo = heads.iter().any(|head| head.fifo);
        let receive_counts = receive_counts(settings, &decoded);
        let mut work = Vec::with_capacity(heads.len());
        let mut preparing = heads
            .iter()
            .zip(decoded)
            .map(|(head, message)| prepare(settings, deadline, head, message));
        // Nothing is waited for but bodies in S3, so only with a resolver is there anything to overlap.
        if settings.resolver.is_some() {
            while work.len() < heads.len() {
                work.extend(join_all(preparing.by_ref().take(FETCHES_MAX)).await);
            }
        } else {
            for prepared in preparing {
                work.push(prepared.await);
            }
        }
        let groups = groups(fifo, &heads);
        let identities = heads.into_iter().zip(&work).map(|(head, work)| Identity {
            message_id: head.message_id,
            entry: work
                .as_ref()
                .ok()
                .map(|prepared| Arc::clone(&prepared.entry)),
            receive_count: 1,
        });
        let mut identities: Vec<Identity> = identities.collect();
        for (identity, receive_count) in identities.iter_mut().zip(receive_counts) {
            identity.receive_count = receive_count;
        }
        let jobs = work.into_iter().zip(groups).enumerate();
        let jobs = jobs.map(|(position, (work, group))| Job {
            position,
            group,
            work,
        });
        let jobs = jobs.collect();
        Ok(Self {
            identities,
            jobs,
            queue_arn,
            fifo,
        })
    }
}

/// Nothing where the failure log is off, which is all that wants to know it of records that fail.
fn receive_counts(
    settings: &Settings,
    decoded: &[Result<Arc<SqsMessage>, DecodeError>],
) -> Vec<u32> {
    if !settings.failure_log {
        return Vec::new();
    }
    let decoded = decoded.iter();
    decoded
        .map(|record| {
            record
                .as_ref()
                .map_or(1, |record| receive_count(record).get())
        })
        .collect()
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

type Decoded = Vec<Result<Arc<SqsMessage>, DecodeError>>;

fn heads_and_messages(
    event: &InboxEvent,
    queue_arn: &mut Option<Arc<str>>,
) -> Result<(Vec<Head>, Decoded), EventError> {
    if let Some(messages) = event.messages() {
        let heads = messages
            .iter()
            .map(|message| Head::of_message(message, queue_arn));
        return Ok((heads.collect(), messages.into_iter().map(Ok).collect()));
    }
    let records = event.records()?;
    Ok(records
        .into_iter()
        .map(|record| head_and_message(record, queue_arn))
        .unzip())
}

/// Keeps the ARN of the event's queue, which is the same in all records, once.
fn head_and_message(
    record: &RawValue,
    queue_arn: &mut Option<Arc<str>>,
) -> (Head, Result<Arc<SqsMessage>, DecodeError>) {
    match decode(record) {
        Ok(message) => (Head::of_message(&message, queue_arn), Ok(Arc::new(message))),
        Err(error) => (Head::of(record, queue_arn), Err(error)),
    }
}

async fn prepare(
    settings: &Settings,
    deadline: &Deadline,
    head: &Head,
    record: Result<Arc<SqsMessage>, DecodeError>,
) -> Result<Prepared, Verdict> {
    let poison = |error: &dyn std::fmt::Display| Verdict::new(Outcome::Poison, error.to_string());
    let Some(message_id) = head.message_id.clone() else {
        return Err(poison(&DecodeError::NoMessageId));
    };
    let record = record.map_err(|error| poison(&error))?;
    let body = record.body.as_deref().unwrap_or_default();
    if settings.s3_test_events == S3TestEvents::Ignore && is_s3_test_event(body) {
        // Whatever the strategy reads is not there, and a copy of it may come through each queue.
        check_layout(settings, head, &record)?;
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
    check_layout(settings, head, &record)?;
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

/// A time-ordered table tells rows by key and send time, so the time must be there and stay the same.
/// SQS sets it anew when it moves a FIFO message to its dead-letter queue.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html>
fn check_layout(settings: &Settings, head: &Head, record: &SqsMessage) -> Result<(), Verdict> {
    if settings.store.table().layout != Layout::TimeOrdered {
        return Ok(());
    }
    let problem = if head.fifo {
        "the time-ordered layout is for standard queues; take the keyed layout for FIFO queues"
    } else if sent_at(record).is_none() {
        "the record has no SentTimestamp, which the time-ordered layout needs"
    } else {
        return Ok(());
    };
    Err(Verdict::new(Outcome::Poison, problem))
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
        transport_message_id: Arc<str>,
        record: Arc<SqsMessage>,
        content: Content,
        keyed: Keyed,
        status: Status,
    ) -> Self {
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
        Self {
            record,
            content: Arc::new(content),
            entry: Arc::new(entry),
        }
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
