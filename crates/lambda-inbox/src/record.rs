//! One raw entry of the event's `Records`, decoded by itself.

use aws_lambda_events::sqs::SqsMessage;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;

/// What is known of a record before it is decoded: enough to report it, and to know its queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head {
    /// The id for the response; `None` where it cannot be reported.
    pub(crate) message_id: Option<Arc<str>>,
    /// Whether the record is from a FIFO queue. That is told by the queue's name; a group id is not a
    /// sign of it: since July 2025 fair queues carry one on standard queues.
    pub(crate) fifo: bool,
    /// The message group, on FIFO queues.
    pub(crate) group: Option<String>,
}

impl Head {
    /// The head of a record that decodes.
    pub(crate) fn of_message(message: &SqsMessage, queue_arn: &mut Option<Arc<str>>) -> Self {
        let arn = message.event_source_arn.as_deref();
        remember(queue_arn, arn);
        // Most queues have no groups that matter, and so nothing to copy.
        let standard = arn.is_some_and(|arn| !is_fifo(Some(arn)));
        Self {
            message_id: reportable(message.message_id.as_deref()),
            fifo: is_fifo(arn),
            group: message
                .attributes
                .get("MessageGroupId")
                .filter(|_| !standard)
                .cloned(),
        }
    }

    /// What can be told of a record that does not.
    pub(crate) fn of(record: &RawValue, known_arn: &mut Option<Arc<str>>) -> Self {
        #[derive(Deserialize)]
        struct Fields {
            #[serde(rename = "messageId")]
            message_id: Option<Value>,
            #[serde(rename = "eventSourceARN")]
            queue_arn: Option<Value>,
            attributes: Option<Value>,
        }
        let Ok(fields) = serde_json::from_str::<Fields>(record.get()) else {
            return Self::default();
        };
        let arn = text(fields.queue_arn);
        remember(known_arn, arn.as_deref());
        Self {
            message_id: reportable(text(fields.message_id).as_deref()),
            fifo: is_fifo(arn.as_deref()),
            group: text(
                fields
                    .attributes
                    .and_then(|mut a| a.get_mut("MessageGroupId").map(Value::take)),
            ),
        }
    }
}

fn is_fifo(arn: Option<&str>) -> bool {
    arn.is_some_and(|arn| arn.ends_with(".fifo"))
}

fn remember(queue_arn: &mut Option<Arc<str>>, arn: Option<&str>) {
    if queue_arn.is_none() {
        *queue_arn = arn.map(Arc::from);
    }
}

/// An empty identifier in the response would fail the whole batch.
fn reportable(id: Option<&str>) -> Option<Arc<str>> {
    id.filter(|id| !id.trim().is_empty()).map(Arc::from)
}

/// The last part of a queue's ARN.
pub(crate) fn queue_name(arn: Option<&str>) -> &str {
    arn.and_then(|arn| arn.rsplit(':').next())
        .unwrap_or("unknown")
}

fn text(value: Option<Value>) -> Option<String> {
    match value {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// Decodes a record as the SQS message it should be.
///
/// Emulators and hand-made events write nulls where AWS leaves a field out, and numbers where AWS
/// writes strings. Such a record is mended and tried once more.
pub(crate) fn decode(record: &RawValue) -> Result<SqsMessage, DecodeError> {
    match serde_json::from_str(record.get()) {
        Ok(message) => Ok(message),
        Err(error) => {
            let mended = serde_json::from_str(record.get()).map(mend);
            mended
                .and_then(serde_json::from_value)
                .map_err(|_| DecodeError::Record {
                    line: error.line(),
                    column: error.column(),
                })
        }
    }
}

fn mend(mut record: Value) -> Value {
    if let Some(fields) = record.as_object_mut() {
        for (name, value) in fields.iter_mut() {
            match (name.as_str(), value) {
                ("attributes", Value::Object(attributes)) => {
                    attributes.retain(|_, value| !value.is_null());
                    for value in attributes.values_mut() {
                        if value.is_number() || value.is_boolean() {
                            *value = Value::String(value.to_string());
                        }
                    }
                }
                ("messageAttributes", Value::Object(attributes)) => {
                    attributes.retain(|_, value| !value.is_null());
                    for attribute in attributes.values_mut().filter_map(Value::as_object_mut) {
                        attribute.retain(|_, value| !value.is_null());
                    }
                }
                _ => {}
            }
        }
    }
    record
}

/// A record, or its body, is not what it should be. The text never quotes the body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The record has no `messageId`, so it cannot be reported by itself.
    #[error("the record has no messageId, so the whole invocation fails to get it back")]
    NoMessageId,
    /// The record is not an SQS message.
    #[error("the record is not an SQS message (line {line}, column {column} of the record)")]
    Record {
        /// Line within the record's JSON.
        line: usize,
        /// Column within that line.
        column: usize,
    },
    /// The body stands in S3, and the handler cannot take the pointer to it.
    #[error("the body is an offloaded payload, a pointer to S3; set a payload resolver")]
    Offloaded,
    /// The record has no body, or a null one.
    #[error("the message has no body")]
    NoBody,
    /// The body has a NUL, which Postgres's `jsonb` cannot hold.
    #[error("the body has a NUL character in a text, which jsonb cannot hold")]
    Nul,
    /// The body does not fit the handler's type.
    #[error("the body is not the expected JSON: {problem} at line {line} column {column}")]
    Body {
        /// What is wrong, without a word of the body.
        problem: String,
        /// Line within the body.
        line: usize,
        /// Column within that line.
        column: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn an_id_that_cannot_be_reported_is_no_id() {
        let cases = [
            (r#"{"messageId":"a"}"#, Some("a")),
            (r#"{"messageId":""}"#, None),
            (r#"{"messageId":" "}"#, None),
            (r#"{"messageId":null}"#, None),
            (r#"{"messageId":7}"#, None),
            ("{}", None),
            ("null", None),
            ("[1]", None),
        ];
        for (json, id) in cases {
            assert_eq!(
                Head::of(&raw(json), &mut None).message_id.as_deref(),
                id,
                "{json}"
            );
        }
    }

    #[test]
    fn the_queue_is_the_last_part_of_its_arn() {
        assert_eq!(
            queue_name(Some("arn:aws:sqs:eu-central-1:111122223333:orders")),
            "orders"
        );
        assert_eq!(queue_name(None), "unknown");
    }

    #[test]
    fn fifo_is_told_by_the_queue_name_and_never_by_a_group_id() {
        let cases = [
            (
                r#"{"eventSourceARN":"arn:aws:sqs:eu-central-1:111122223333:orders.fifo"}"#,
                true,
            ),
            (
                r#"{"eventSourceARN":"arn:aws:sqs:eu-central-1:111122223333:orders"}"#,
                false,
            ),
            (r#"{"attributes":{"MessageGroupId":"tenant-1"}}"#, false),
        ];
        for (json, fifo) in cases {
            assert_eq!(Head::of(&raw(json), &mut None).fifo, fifo, "{json}");
        }
    }

    /// D-02 and D-31: nulls and numbers where AWS writes nothing and strings.
    #[test]
    fn nulls_and_numbers_of_emulators_are_mended() {
        let message = decode(&raw(
            r#"{"messageId":"a","body":"b","attributes":{"ApproximateReceiveCount":3,"x":null},
                "messageAttributes":{"k":{"stringValue":"v","binaryValue":null,
                "stringListValues":null,"dataType":"String"}},"md5OfMessageAttributes":null}"#,
        ))
        .unwrap();
        assert_eq!(message.attributes["ApproximateReceiveCount"], "3");
        assert_eq!(
            message.message_attributes["k"].string_value.as_deref(),
            Some("v")
        );
    }

    #[test]
    fn a_record_beyond_mending_is_an_error_that_quotes_nothing() {
        let error = decode(&raw(r#"{"messageId":"a","body":{"secret":1}}"#)).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
