//! Which messages count as the same.
//!
//! No key, no claim: a key that is missing or malformed is a permanent failure of that record, never
//! a shared key and never a fallback to another strategy behind the caller's back.

mod attribute;
mod message_id;

pub use attribute::Attribute;
pub use lambda_inbox_store::{Key, KeyError};

use aws_lambda_events::sqs::SqsMessage;
use uuid::Uuid;

/// How a message's [`Key`] is found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum KeyStrategy {
    /// The SQS MessageId, with source `sqs`. Covers every redelivery by SQS, also from the
    /// dead-letter queue read as a queue. Does not cover a producer that sends twice, nor AWS's own
    /// redrive, which makes new MessageIds.
    #[default]
    MessageId,
    /// A message attribute that the producer sets.
    Attribute(Attribute),
}

impl KeyStrategy {
    /// Keys by the message attribute `name`, in a scope of the same name.
    pub fn attribute(name: impl Into<String>) -> Self {
        Self::Attribute(Attribute::new(name))
    }

    pub(crate) fn key(&self, record: &SqsMessage) -> Result<Key, KeyFailure> {
        match self {
            Self::MessageId => message_id::key(record),
            Self::Attribute(attribute) => attribute.key(record),
        }
    }
}

/// A record has no usable key. Names the strategy and the field; never quotes the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no key by {strategy}: {problem}")]
pub struct KeyFailure {
    strategy: String,
    problem: KeyProblem,
}

/// What is wrong with a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyProblem {
    /// The record does not have the field.
    #[error("{field} is missing")]
    Missing {
        /// The field that the strategy reads.
        field: String,
    },
    /// The field holds something that is not text or a UUID's bytes.
    #[error("{field} is {found}, expected {expected}")]
    WrongType {
        /// The field that the strategy reads.
        field: String,
        /// What is there.
        found: String,
        /// What should be there.
        expected: &'static str,
    },
    /// The value cannot be stored as a key.
    #[error("{field} is not usable: {error}")]
    Unusable {
        /// The field that the strategy reads.
        field: String,
        /// Why not.
        error: KeyError,
    },
}

/// Producers write one UUID in several ways, so a value that is a UUID is trimmed and lower-cased.
/// Everything else is kept byte for byte.
fn normalised(value: &str) -> String {
    let trimmed = value.trim();
    match (trimmed.len(), Uuid::try_parse(trimmed)) {
        (36, Ok(uuid)) => uuid.hyphenated().to_string(),
        _ => value.to_owned(),
    }
}

fn stored(
    strategy: impl Fn() -> String,
    field: impl Fn() -> String,
    source: &str,
    value: &str,
) -> Result<Key, KeyFailure> {
    Key::new(source, normalised(value)).map_err(|error| KeyFailure {
        strategy: strategy(),
        problem: KeyProblem::Unusable {
            field: field(),
            error,
        },
    })
}
