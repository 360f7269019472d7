//! The id by which a FIFO queue itself tells duplicates, for five minutes; here for as long as the key
//! is kept.

use super::{KeyProblem, Keyed, Subject};
use crate::record::queue_name;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

const FIELD: &str = "MessageDeduplicationId";

/// Keys by the deduplication id of a FIFO queue, in the space of queue and message group.
///
/// On a queue with content-based deduplication the id is the SHA-256 of the body, and two true events
/// with equal bodies would be one: such an id is refused, unless
/// [`DeduplicationId::asserted_unique`] says that bodies never repeat. A move to the dead-letter queue
/// replaces the id, so messages must not be read from there by this key.
///
/// Source: SQS Developer Guide, "Using the message deduplication ID".
#[derive(Clone, Debug, Default)]
pub struct DeduplicationId {
    asserted_unique: bool,
}

impl DeduplicationId {
    /// Refuses content-based ids.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes content-based ids too: two messages of a group with equal bodies are then one.
    #[must_use]
    pub fn asserted_unique(mut self) -> Self {
        self.asserted_unique = true;
        self
    }

    pub(super) fn name(&self) -> String {
        "DeduplicationId".to_owned()
    }

    pub(super) fn find(&self, message: &Subject<'_>) -> Result<Keyed, KeyProblem> {
        let record = message.record;
        let attribute = |name: &str| record.attributes.get(name).filter(|v| !v.is_empty());
        let id = attribute(FIELD).ok_or_else(|| self.missing(FIELD, message))?;
        let group =
            attribute("MessageGroupId").ok_or_else(|| self.missing("MessageGroupId", message))?;
        let body = record.body.as_deref().unwrap_or_default();
        if !self.asserted_unique && id.eq_ignore_ascii_case(&sha256(body)) {
            return Err(KeyProblem::NotAnIdentity {
                field: FIELD.to_owned(),
                problem: "is the SHA-256 of the body (content-based deduplication), so equal bodies \
                          would be one message; let the producer set ids, or assert that bodies \
                          never repeat",
            });
        }
        // A queue's name has no slash, so the first one ends it.
        let source = format!("{}/{group}", queue_name(record.event_source_arn.as_deref()));
        Keyed::new(source, id, || FIELD.to_owned())
    }

    fn missing(&self, field: &str, message: &Subject<'_>) -> KeyProblem {
        let queue = message.record.event_source_arn.as_deref();
        let kind = match queue {
            Some(arn) if arn.ends_with(".fifo") => "on this FIFO queue",
            _ => "because this is a standard queue, and only FIFO queues have it",
        };
        KeyProblem::Missing {
            field: format!("{field} ({kind})"),
        }
    }
}

fn sha256(body: &str) -> String {
    Sha256::digest(body)
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            // Writing to a String cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}
