//! A decoded record: the typed body and everything that came with it.

use crate::content::{Content, EventBridgeEnvelope, SnsEnvelope};
use aws_lambda_events::sqs::{SqsMessage, SqsMessageAttribute};
use lambda_inbox_store::{Consumer, Entry, Key};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;
use uuid::Uuid;

/// The name space of idempotency keys. Changing it would make remote services run requests twice.
const IDEMPOTENCY_KEYS: Uuid = Uuid::from_u128(0x6c61_6d62_6461_5d69_8e62_6f78_0000_0001);

/// One message as the handler sees it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Message<T> {
    /// The decoded body.
    pub body: T,
    consumer: Consumer,
    key: Key,
    record: Arc<SqsMessage>,
    content: Arc<Content>,
    handler_deadline: Option<Instant>,
}

impl<T> Message<T> {
    pub(crate) fn new(
        body: T,
        entry: &Entry,
        record: Arc<SqsMessage>,
        content: Arc<Content>,
        handler_deadline: Option<Instant>,
    ) -> Self {
        Self {
            body,
            consumer: entry.consumer.clone(),
            key: entry.key.clone(),
            record,
            content,
            handler_deadline,
        }
    }

    /// The SQS MessageId of this delivery. A redrive from a dead-letter queue changes it.
    pub fn message_id(&self) -> &str {
        self.record.message_id.as_deref().unwrap_or_default()
    }

    /// The identity by which the inbox knows the message.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// A UUID that is the same for every delivery of this message to this consumer, for remote
    /// services that take an idempotency key. It depends on the consumer's name and the key alone.
    pub fn idempotency_key(&self) -> String {
        let mut name = Vec::new();
        for part in [
            self.consumer.as_str(),
            self.key.source(),
            self.key.message_id(),
        ] {
            // The length in front keeps ("ab", "c") apart from ("a", "bc").
            name.extend_from_slice(&(part.len() as u64).to_be_bytes());
            name.extend_from_slice(part.as_bytes());
        }
        Uuid::new_v5(&IDEMPOTENCY_KEYS, &name).to_string()
    }

    /// How often SQS has handed the message out, this time included; 1 where the record does not say.
    /// It rises with each receive, also with those that never reached the function.
    pub fn receive_count(&self) -> NonZeroU32 {
        receive_count(&self.record)
    }

    /// When SQS took the message.
    pub fn sent_at(&self) -> Option<SystemTime> {
        sent_at(&self.record)
    }

    /// The message group: the unit of order on FIFO queues, the tenant on fair queues.
    pub fn group_id(&self) -> Option<&str> {
        self.system_attribute("MessageGroupId")
    }

    /// The deduplication id of a FIFO message.
    pub fn deduplication_id(&self) -> Option<&str> {
        self.system_attribute("MessageDeduplicationId")
    }

    /// The producer's trace, as X-Ray writes it.
    pub fn trace_header(&self) -> Option<&str> {
        self.system_attribute("AWSTraceHeader")
    }

    /// A message attribute of the producer's. Names are case-sensitive.
    pub fn attribute(&self, name: &str) -> Option<&SqsMessageAttribute> {
        self.record.message_attributes.get(name)
    }

    /// The text of a message attribute; `None` where it is absent or binary.
    pub fn attribute_text(&self, name: &str) -> Option<&str> {
        self.attribute(name)?.string_value.as_deref()
    }

    /// An attribute that SQS itself set, such as `SenderId`.
    pub fn system_attribute(&self, name: &str) -> Option<&str> {
        self.record.attributes.get(name).map(String::as_str)
    }

    /// The SNS envelope that was taken off.
    pub fn sns(&self) -> Option<&SnsEnvelope> {
        self.content.sns.as_ref()
    }

    /// The EventBridge envelope that was taken off.
    pub fn event_bridge(&self) -> Option<&EventBridgeEnvelope> {
        self.content.event_bridge.as_ref()
    }

    /// How long the handler may still take before it is stopped; `None` where Lambda gave no deadline.
    pub fn remaining_time(&self) -> Option<Duration> {
        Some(
            self.handler_deadline?
                .saturating_duration_since(Instant::now()),
        )
    }

    /// The whole record as it came, envelopes and all.
    pub fn record(&self) -> &SqsMessage {
        &self.record
    }
}

pub(crate) fn receive_count(record: &SqsMessage) -> NonZeroU32 {
    record
        .attributes
        .get("ApproximateReceiveCount")
        .and_then(|count| count.parse().ok())
        .unwrap_or(NonZeroU32::MIN)
}

pub(crate) fn sent_at(record: &SqsMessage) -> Option<SystemTime> {
    let milliseconds = record.attributes.get("SentTimestamp")?.parse().ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lambda_inbox_store::{Fingerprint, Status};

    fn message(consumer: &str, source: &str, id: &str) -> Message<()> {
        let entry = Entry {
            consumer: Consumer::new(consumer).unwrap(),
            key: Key::new(source.to_owned(), id).unwrap(),
            sent_at: None,
            status: Status::Processed,
            fingerprint: Fingerprint::of_body(""),
            transport_message_id: id.into(),
        };
        Message::new((), &entry, Arc::default(), Arc::default(), None)
    }

    #[test]
    fn the_idempotency_key_depends_on_consumer_and_key_alone() {
        let key = message("payments", "sqs", "m-1").idempotency_key();
        assert_eq!(key, message("payments", "sqs", "m-1").idempotency_key());
        for (consumer, source, id) in [
            ("payments", "sqs", "m-2"),
            ("refunds", "sqs", "m-1"),
            ("payments", "sqsm", "-1"),
        ] {
            assert_ne!(key, message(consumer, source, id).idempotency_key());
        }
    }

    #[test]
    fn metadata_that_makes_no_sense_is_absent_and_harmless() {
        let mut record = SqsMessage::default();
        for (count, sent) in [("0", "-1"), ("x", "soon"), ("", "99999999999999999999")] {
            record
                .attributes
                .insert("ApproximateReceiveCount".into(), count.into());
            record
                .attributes
                .insert("SentTimestamp".into(), sent.into());
            assert_eq!(receive_count(&record).get(), 1);
            assert_eq!(sent_at(&record), None);
        }
    }
}
