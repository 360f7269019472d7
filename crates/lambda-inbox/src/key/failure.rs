//! Why a record has no key, told so that its producer can be mended.

use lambda_inbox_store::KeyError;

/// A record has no usable key, which is permanent: the same bytes have none again. Names the strategy,
/// the field and the message, and never quotes the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no key by {} for message {}: {problem}", context.strategy, context.message())]
pub struct KeyFailure {
    problem: KeyProblem,
    context: Context,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Context {
    pub(super) strategy: String,
    pub(super) message_id: Option<String>,
}

impl Context {
    fn message(&self) -> &str {
        self.message_id.as_deref().unwrap_or("(without id)")
    }
}

impl KeyFailure {
    pub(super) fn new(problem: KeyProblem, context: Context) -> Self {
        Self { problem, context }
    }

    /// What is wrong.
    pub fn problem(&self) -> &KeyProblem {
        &self.problem
    }
}

/// What is wrong with a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyProblem {
    /// The record does not have the field.
    #[error("{field} is missing; let the producer set it, or choose another key strategy")]
    Missing {
        /// The field that the strategy reads.
        field: String,
    },
    /// The field holds a value of another type.
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
    /// The body stands in S3.
    #[error(
        "the body is an offloaded payload, a pointer to S3; set a payload resolver, or key by \
         MessageId or Attribute"
    )]
    Offloaded,
    /// The field's value is not one that tells messages apart.
    #[error("{field} {problem}")]
    NotAnIdentity {
        /// The field that the strategy reads.
        field: String,
        /// Why it does not.
        problem: &'static str,
    },
    /// The body is not what the strategy reads.
    #[error("{0}")]
    Body(String),
}

/// A key strategy that can never find a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StrategyError {
    /// The scope of a logical key.
    #[error("the scope of {strategy} cannot be used: {error}")]
    Scope {
        /// The strategy.
        strategy: String,
        /// Why not.
        error: KeyError,
    },
    /// An attribute without a name.
    #[error("the attribute strategy needs the name of a message attribute")]
    NoAttributeName,
    /// The text is not a JSON pointer.
    #[error(
        "{pointer:?} is not a JSON pointer (RFC 6901); it looks like /order/id, with ~0 for ~ and ~1 \
         for / in a name"
    )]
    Pointer {
        /// The text as given.
        pointer: String,
    },
}
