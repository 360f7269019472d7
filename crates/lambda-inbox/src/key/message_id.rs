//! The default key.

use super::{KeyProblem, Keyed, Subject};
use aws_lambda_events::sqs::SqsMessage;
use std::time::{Duration, SystemTime};

/// Not the queue's ARN: a message met again in its dead-letter queue is the same message.
const SOURCE: &str = "sqs";

/// The attribute by which a redrive tells whose copy a message is.
const STAMP: &str = "inbox-redrive";

/// Keys by the SQS MessageId, with source `sqs`.
///
/// Covers every redelivery by SQS, also of a message read from its dead-letter queue. Does not cover a
/// producer that sends twice. AWS's own redrive (StartMessageMoveTask) makes new MessageIds, so a
/// message that had committed runs again after it; a redrive that stamps keeps the key.
///
/// The stamp is a String attribute `inbox-redrive` = `v1;<message id>;<sent_at in ms>`. A malformed one
/// is a key failure. Whoever may send to the queue can forge one, and so suppress a message whose id
/// they know; [`MessageId::ignoring_redrive_stamps`] is for queues that strangers send to.
#[derive(Clone, Debug, Default)]
pub struct MessageId {
    ignores_stamps: bool,
}

impl MessageId {
    /// Honours redrive stamps.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes no notice of redrive stamps.
    #[must_use]
    pub fn ignoring_redrive_stamps(mut self) -> Self {
        self.ignores_stamps = true;
        self
    }

    pub(super) fn name(&self) -> String {
        "MessageId".to_owned()
    }

    pub(super) fn find(&self, message: &Subject<'_>) -> Result<Keyed, KeyProblem> {
        if !self.ignores_stamps && message.record.message_attributes.contains_key(STAMP) {
            return stamped(message.record);
        }
        by_message_id(message.record)
    }
}

/// The key that every record has.
pub(crate) fn by_message_id(record: &SqsMessage) -> Result<Keyed, KeyProblem> {
    let field = || "messageId".to_owned();
    let id = record
        .message_id
        .as_deref()
        .ok_or_else(|| KeyProblem::Missing { field: field() })?;
    Keyed::new(SOURCE, id, field)
}

fn stamped(record: &SqsMessage) -> Result<Keyed, KeyProblem> {
    let field = || format!("message attribute {STAMP:?}");
    let malformed = || KeyProblem::NotAnIdentity {
        field: field(),
        problem: "is malformed; it looks like v1;<message id>;<milliseconds>, as a String",
    };
    let stamp = record
        .message_attributes
        .get(STAMP)
        .and_then(|attribute| attribute.string_value.as_deref())
        .ok_or_else(malformed)?;
    let mut parts = stamp.split(';');
    let (Some("v1"), Some(id), Some(milliseconds), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(malformed());
    };
    if id.is_empty() || !milliseconds.bytes().all(|b| b.is_ascii_digit()) {
        return Err(malformed());
    }
    let milliseconds = milliseconds.parse().map_err(|_| malformed())?;
    let sent_at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds));
    let keyed = Keyed::new(SOURCE, id, field)?;
    Ok(Keyed {
        sent_at: Some(sent_at.ok_or_else(malformed)?),
        ..keyed
    })
}
