//! The event as Lambda delivers it, kept as text.
//!
//! A typed event fails as a whole: one record that does not fit would send the other nine back too.
//! So nothing but the shape is looked at here, and each record is decoded on its own.

use aws_lambda_events::sqs::SqsMessage;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::sync::Arc;

/// An invocation's undecoded event. It deserialises from any JSON, so that a wrong event is refused
/// by [`InboxService`](crate::InboxService) with a text that names the fix.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub struct InboxEvent(Box<RawValue>);

impl InboxEvent {
    /// Takes an event's JSON text, for example from a file.
    ///
    /// # Errors
    /// Where `json` is not JSON.
    pub fn from_json(json: impl Into<String>) -> Result<Self, serde_json::Error> {
        RawValue::from_string(json.into()).map(Self)
    }

    /// The messages of an event whose records are all as they should be, which is the rule: one pass over
    /// the text instead of two. `None` where they must be looked at one by one.
    pub(crate) fn messages(&self) -> Option<Vec<Arc<SqsMessage>>> {
        #[derive(Deserialize)]
        struct Messages {
            #[serde(rename = "Records")]
            records: Vec<Arc<SqsMessage>>,
        }
        let Messages { records } = serde_json::from_str(self.0.get()).ok()?;
        let first = records.first()?;
        (first.event_source.as_deref() == Some(SQS)).then_some(records)
    }

    /// The raw records of an SQS event.
    pub(crate) fn records(&self) -> Result<Vec<&RawValue>, EventError> {
        #[derive(Deserialize)]
        struct Records<'a> {
            #[serde(borrow, rename = "Records")]
            records: Vec<&'a RawValue>,
        }
        // The rule is read in one pass; only what is refused is looked at more closely.
        let Ok(Records { records }) = serde_json::from_str(self.0.get()) else {
            return Err(Shape::refusal(self.0.get()));
        };
        match foreign_source(&records) {
            Some(event_source) => Err(EventError::OtherSource { event_source }),
            None => Ok(records),
        }
    }
}

#[derive(Deserialize)]
struct Shape {
    #[serde(rename = "Records")]
    records: Option<IgnoredAny>,
    #[serde(rename = "records")]
    lower_case: Option<IgnoredAny>,
    #[serde(rename = "detail-type")]
    detail_type: Option<IgnoredAny>,
    #[serde(rename = "requestContext")]
    request_context: Option<IgnoredAny>,
}

impl Shape {
    fn refusal(event: &str) -> EventError {
        let Ok(shape) = serde_json::from_str::<Self>(event) else {
            return EventError::NotAnObject;
        };
        if shape.records.is_some() {
            EventError::RecordsNotAList
        } else if shape.lower_case.is_some() {
            EventError::LowerCaseRecords
        } else if shape.detail_type.is_some() {
            EventError::Unrecognised {
                what: "an EventBridge or schedule event",
            }
        } else if shape.request_context.is_some() {
            EventError::Unrecognised {
                what: "an HTTP request",
            }
        } else {
            EventError::Unrecognised {
                what: "an object without \"Records\"",
            }
        }
    }
}

/// The source of an event none of whose records is from SQS. SNS spells the field with a capital.
fn foreign_source(records: &[&RawValue]) -> Option<String> {
    #[derive(Deserialize)]
    struct Source {
        #[serde(rename = "eventSource", alias = "EventSource")]
        source: Option<String>,
    }
    let mut foreign = None;
    for record in records {
        match serde_json::from_str::<Source>(record.get()) {
            Ok(Source {
                source: Some(source),
            }) if source != SQS => foreign = Some(source),
            _ => return None,
        }
    }
    foreign
}

const SQS: &str = "aws:sqs";

/// The invocation's event is not one from SQS.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// The event is a string, a number, a list or null.
    #[error("the event is not a JSON object")]
    NotAnObject,
    /// `Records` has another type.
    #[error("the event's \"Records\" is not a list")]
    RecordsNotAList,
    /// The list is spelt `records`, as hand-made test events often have it.
    #[error("the event has \"records\" where SQS sends \"Records\", with a capital R")]
    LowerCaseRecords,
    /// The event has no `Records`.
    #[error("the event is {what}")]
    Unrecognised {
        /// What it looks like.
        what: &'static str,
    },
    /// The records are another service's.
    #[error("the event's records are from {}", printable(.event_source))]
    OtherSource {
        /// Their `eventSource`.
        event_source: String,
    },
}

/// Enough of a source to recognise it, and nothing that could break a log line.
fn printable(source: &str) -> String {
    source
        .chars()
        .filter(|c| c.is_ascii_graphic())
        .take(40)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(json: &str) -> Result<usize, EventError> {
        let event: InboxEvent = serde_json::from_str(json).unwrap();
        event.records().map(|records| records.len())
    }

    #[test]
    fn an_event_that_is_not_from_sqs_is_an_error_with_a_clear_text() {
        let cases = [
            (
                r#"{"detail-type":"Scheduled Event","source":"aws.events"}"#,
                "schedule event",
            ),
            (r#"{"records":[{"messageId":"1"}]}"#, "capital R"),
            (
                r#"{"Records":[{"eventSource":"aws:kinesis","kinesis":{}}]}"#,
                "aws:kinesis",
            ),
            (
                r#"{"Records":[{"EventSource":"aws:sns","Sns":{}}]}"#,
                "aws:sns",
            ),
            (r#"{"requestContext":{}}"#, "HTTP request"),
            (r#"{"Records":null}"#, "without \"Records\""),
            (r#"{"Records":{}}"#, "not a list"),
            ("{}", "without \"Records\""),
            ("[]", "not a JSON object"),
            ("null", "not a JSON object"),
            ("\"x\"", "not a JSON object"),
        ];
        for (json, text) in cases {
            let error = records(json).unwrap_err().to_string();
            assert!(error.contains(text), "{json}: {error}");
        }
    }

    #[test]
    fn an_sqs_event_gives_its_records_whatever_they_hold() {
        let cases = [
            (r#"{"Records":[]}"#, 0),
            (
                r#"{"Records":[{"messageId":"1","eventSource":"aws:sqs"},null,7]}"#,
                3,
            ),
            (r#"{"Records":[{"messageId":"1"}]}"#, 1),
        ];
        for (json, count) in cases {
            assert_eq!(records(json), Ok(count), "{json}");
        }
    }
}
