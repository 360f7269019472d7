//! A message on its way: as the producer sends it, as the queue keeps it, and as the poller writes it down.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::config::QueueConfig;
use crate::event::Record;

/// The limit for a body with its attributes, in bytes (SDG `quotas-messages`).
const MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// The most attributes of one message (SDG `sqs-message-metadata`).
const ATTRIBUTES_MAX: usize = 10;

/// A message to send: its body, and what a producer may add to it.
///
/// ```
/// # use lambda_inbox_testkit::queue::Outgoing;
/// Outgoing::new(r#"{"order": 1}"#).group("customer-7").attribute("trace", "String", "42");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a message does nothing until it is sent"]
pub struct Outgoing {
    body: String,
    attributes: BTreeMap<String, Attribute>,
    trace_header: Option<String>,
    group: Option<String>,
    deduplication_id: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Attribute {
    Text { data_type: String, value: String },
    Binary(Vec<u8>),
}

/// A message that SQS would refuse to take.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// FIFO queues need a group.
    #[error("message for a FIFO queue has no group")]
    GroupMissing,
    /// FIFO queues need a deduplication id, or content-based deduplication.
    #[error("message for a FIFO queue without content-based deduplication has no deduplication id")]
    DeduplicationIdMissing,
    /// Standard queues do not take one.
    #[error("message for a standard queue has a deduplication id")]
    DeduplicationIdOnStandard,
    /// A body has at least one character.
    #[error("message has an empty body")]
    EmptyBody,
    /// Outside the characters that SQS allows, which are XML's (API reference, `SendMessage`).
    #[error("body has the character {0:?}, which is not allowed")]
    Character(char),
    /// Body and attributes are limited to 1 MiB.
    #[error("message has {0} bytes, more than 1 MiB")]
    TooLarge(usize),
    /// Ten attributes are the most.
    #[error("message has {0} attributes, more than ten")]
    TooManyAttributes(usize),
}

impl Outgoing {
    /// A message with this body and nothing else.
    pub fn new(body: impl Into<String>) -> Self {
        Self {
            body: body.into(),
            attributes: BTreeMap::new(),
            trace_header: None,
            group: None,
            deduplication_id: None,
        }
    }

    /// Adds a message attribute with a text value; `data_type` is `String`, `Number`, or one with a label
    /// (`String.uuid`).
    pub fn attribute(
        mut self,
        name: impl Into<String>,
        data_type: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        let attribute = Attribute::Text {
            data_type: data_type.into(),
            value: value.into(),
        };
        self.attributes.insert(name.into(), attribute);
        self
    }

    /// Adds a message attribute of the type `Binary`.
    pub fn binary_attribute(mut self, name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        self.attributes
            .insert(name.into(), Attribute::Binary(bytes.into()));
        self
    }

    /// The producer's X-Ray trace.
    pub fn trace_header(mut self, header: impl Into<String>) -> Self {
        self.trace_header = Some(header.into());
        self
    }

    /// The message group: order on a FIFO queue, fairness on a standard one.
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// The deduplication id, for FIFO queues only.
    pub fn deduplication_id(mut self, id: impl Into<String>) -> Self {
        self.deduplication_id = Some(id.into());
        self
    }

    /// Fails as SendMessage would.
    pub(super) fn check(&self, config: &QueueConfig) -> Result<(), SendError> {
        if config.fifo && self.group.is_none() {
            return Err(SendError::GroupMissing);
        }
        if config.fifo && self.deduplication_id.is_none() && !config.content_based_deduplication {
            return Err(SendError::DeduplicationIdMissing);
        }
        if !config.fifo && self.deduplication_id.is_some() {
            return Err(SendError::DeduplicationIdOnStandard);
        }
        if self.body.is_empty() {
            return Err(SendError::EmptyBody);
        }
        if let Some(character) = self.body.chars().find(|&c| !is_allowed(c)) {
            return Err(SendError::Character(character));
        }
        let attributes = self.attributes.len();
        if attributes > ATTRIBUTES_MAX {
            return Err(SendError::TooManyAttributes(attributes));
        }
        let bytes = self.bytes();
        if bytes > MESSAGE_BYTES_MAX {
            return Err(SendError::TooLarge(bytes));
        }
        Ok(())
    }

    /// What deduplication goes by on a FIFO queue: the given id, or the SHA-256 of the body.
    pub(super) fn effective_deduplication_id(&self) -> String {
        match &self.deduplication_id {
            Some(id) => id.clone(),
            None => {
                let digest = Sha256::digest(&self.body);
                digest.iter().map(|byte| format!("{byte:02x}")).collect()
            }
        }
    }

    fn bytes(&self) -> usize {
        let attributes = self.attributes.iter().map(|(name, attribute)| {
            name.len()
                + match attribute {
                    Attribute::Text { data_type, value } => data_type.len() + value.len(),
                    Attribute::Binary(bytes) => "Binary".len() + bytes.len(),
                }
        });
        self.body.len() + attributes.sum::<usize>()
    }

    fn record(&self) -> Record {
        let mut record = Record::new(&self.body);
        for (name, attribute) in &self.attributes {
            record = match attribute {
                Attribute::Text { data_type, value } => record.attribute(name, data_type, value),
                Attribute::Binary(bytes) => record.binary_attribute(name, bytes.as_slice()),
            };
        }
        if let Some(header) = &self.trace_header {
            record = record.trace_header(header);
        }
        if let Some(group) = &self.group {
            record = record.group(group);
        }
        record
    }
}

impl From<&str> for Outgoing {
    fn from(body: &str) -> Self {
        Self::new(body)
    }
}

impl From<String> for Outgoing {
    fn from(body: String) -> Self {
        Self::new(body)
    }
}

impl From<Value> for Outgoing {
    fn from(body: Value) -> Self {
        Self::new(body.to_string())
    }
}

/// A message as a queue keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMessage {
    pub(super) id: String,
    pub(super) outgoing: Arc<Outgoing>,
    pub(super) deduplication_id: Option<String>,
    pub(super) sent_at: SystemTime,
    pub(super) receive_count: u32,
    pub(super) first_received_at: Option<SystemTime>,
    pub(super) visible_at: SystemTime,
}

impl StoredMessage {
    /// Its MessageId, in this queue.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its body.
    pub fn body(&self) -> &str {
        &self.outgoing.body
    }

    /// Its group.
    pub fn group(&self) -> Option<&str> {
        self.outgoing.group.as_deref()
    }

    /// Its deduplication id, on FIFO queues.
    pub fn deduplication_id(&self) -> Option<&str> {
        self.deduplication_id.as_deref()
    }

    /// The text of a message attribute, if there is one by this name that is not binary.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        match self.outgoing.attributes.get(name)? {
            Attribute::Text { value, .. } => Some(value),
            Attribute::Binary(_) => None,
        }
    }

    /// Its SentTimestamp.
    pub fn sent_at(&self) -> SystemTime {
        self.sent_at
    }

    /// How often it was received, as far as SQS knows.
    pub fn receive_count(&self) -> u32 {
        self.receive_count
    }

    /// When it can be received next; in the past if it is visible.
    pub fn visible_at(&self) -> SystemTime {
        self.visible_at
    }

    /// One entry of the event's `Records`.
    pub(super) fn record(&self, queue: &str, sequence: u64, receipt_handle: &str) -> Value {
        let mut record = self
            .outgoing
            .record()
            .queue(queue)
            .message_id(&self.id)
            .sent_at(self.sent_at)
            .receive_count(self.receive_count);
        if let Some(id) = &self.deduplication_id {
            record = record
                .deduplication_id(id)
                .sequence_number(format!("1885{sequence:016}"));
        }
        let first_received_at = self.first_received_at.unwrap_or(self.sent_at);
        let first_received_ms = first_received_at
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_millis();
        // The record's own values are for tests of one event: a random handle, and an assumed first receive.
        let mut value = record.to_value();
        value["receiptHandle"] = receipt_handle.into();
        value["attributes"]["ApproximateFirstReceiveTimestamp"] =
            first_received_ms.to_string().into();
        value
    }
}

fn is_allowed(character: char) -> bool {
    // Surrogates cannot occur in a `char`.
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}
