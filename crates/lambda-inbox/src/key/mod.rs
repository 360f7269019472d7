//! Which messages count as the same.
//!
//! | strategy | catches, beside redeliveries by SQS | source | message id |
//! |---|---|---|---|
//! | [`MessageId`] | a redrive that stamps | `sqs` | redrive stamp, else MessageId |
//! | [`Attribute`] | a producer's retry, any redrive | a declared scope | the attribute |
//! | [`Sns`] | SNS's own retries, any redrive | topic ARN | SNS MessageId |
//! | [`EventBridge`] | EventBridge's own retries, any redrive | the event's source | its id |
//! | [`DeduplicationId`] | a producer's retry, also after five minutes | queue name and group | the id |
//! | [`JsonPointer`] | a producer's retry, any redrive | a declared scope | a value in the body |
//! | `Edi` (feature `edi`) | a partner's resend, any redrive | parties | control number |
//! | [`Custom`] | what you make of it | yours | yours |
//!
//! No key, no claim: a key that is missing or malformed is a permanent failure of that record, never
//! a shared key and never a fallback to another strategy behind the caller's back.

mod attribute;
mod custom;
mod deduplication_id;
#[cfg(feature = "edi")]
mod edi;
mod envelope;
mod failure;
mod json_pointer;
mod message_id;
mod normal;

pub use attribute::Attribute;
pub use custom::{Content, Custom};
pub use deduplication_id::DeduplicationId;
#[cfg(feature = "edi")]
pub use edi::Edi;
pub use envelope::{EventBridge, Sns};
pub use failure::{KeyFailure, KeyProblem, StrategyError};
pub use json_pointer::JsonPointer;
pub use lambda_inbox_store::{Key, KeyError};
pub use message_id::MessageId;

pub(crate) use message_id::by_message_id;

use crate::content::{self, Envelope};
use aws_lambda_events::sqs::SqsMessage;
use failure::Context;
use lambda_inbox_store::Fingerprint;
use std::borrow::Cow;
use std::time::SystemTime;

/// How a message's [`Key`] is found. Each strategy converts into one, so
/// [`InboxBuilder::key`](crate::InboxBuilder::key) takes them as they are.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum KeyStrategy {
    /// By the SQS MessageId.
    MessageId(MessageId),
    /// By a message attribute.
    Attribute(Attribute),
    /// By the id of the SNS envelope.
    Sns(Sns),
    /// By the id of the EventBridge envelope.
    EventBridge(EventBridge),
    /// By the deduplication id of a FIFO queue.
    DeduplicationId(DeduplicationId),
    /// By a value in a JSON body.
    JsonPointer(JsonPointer),
    /// By the header of an EDI interchange.
    #[cfg(feature = "edi")]
    Edi(Edi),
    /// By a function of the user's.
    Custom(Custom),
}

impl KeyStrategy {
    /// Whether a key always comes with the same send time.
    pub(crate) fn has_a_send_time(&self) -> bool {
        matches!(self, Self::MessageId(_))
    }
}

impl Default for KeyStrategy {
    fn default() -> Self {
        Self::MessageId(MessageId::default())
    }
}

macro_rules! strategies {
    ($($(#[$attribute:meta])* $name:ident),* $(,)?) => {
        $(
            $(#[$attribute])*
            impl From<$name> for KeyStrategy {
                fn from(strategy: $name) -> Self {
                    Self::$name(strategy)
                }
            }
        )*

        impl KeyStrategy {
            fn find(&self, message: &Subject<'_>) -> Result<Keyed, KeyProblem> {
                match self {
                    $($(#[$attribute])* Self::$name(strategy) => strategy.find(message),)*
                }
            }

            fn name(&self) -> String {
                match self {
                    $($(#[$attribute])* Self::$name(strategy) => strategy.name(),)*
                }
            }
        }
    };
}

strategies!(
    MessageId,
    Attribute,
    Sns,
    EventBridge,
    DeduplicationId,
    JsonPointer,
    #[cfg(feature = "edi")]
    Edi,
    Custom,
);

impl KeyStrategy {
    /// Keys by the message attribute `name`, in a scope of the same name.
    pub fn attribute(name: impl Into<String>) -> Self {
        Attribute::new(name).into()
    }

    /// Keys by the value at a JSON pointer of the body, in a scope of the same name.
    pub fn json_pointer(pointer: impl Into<String>) -> Self {
        JsonPointer::new(pointer).into()
    }

    pub(crate) fn key(
        &self,
        record: &SqsMessage,
        content: &content::Content,
    ) -> Result<Keyed, KeyFailure> {
        let subject = Subject { record, content };
        self.find(&subject).map_err(|problem| {
            KeyFailure::new(
                problem,
                Context {
                    strategy: self.name(),
                    message_id: record.message_id.clone(),
                },
            )
        })
    }

    /// The envelope whose id is the key, which is then taken off too.
    pub(crate) fn envelope(&self) -> Option<Envelope> {
        match self {
            Self::Sns(_) => Some(Envelope::Sns),
            Self::EventBridge(_) => Some(Envelope::EventBridge),
            Self::MessageId(_)
            | Self::Attribute(_)
            | Self::DeduplicationId(_)
            | Self::JsonPointer(_)
            | Self::Custom(_) => None,
            #[cfg(feature = "edi")]
            Self::Edi(_) => None,
        }
    }

    /// Checks what the user declared.
    pub(crate) fn check(&self) -> Result<(), StrategyError> {
        match self {
            Self::Attribute(attribute) => attribute.check(),
            Self::JsonPointer(pointer) => pointer.check(),
            Self::MessageId(_)
            | Self::Sns(_)
            | Self::EventBridge(_)
            | Self::DeduplicationId(_)
            | Self::Custom(_) => Ok(()),
            #[cfg(feature = "edi")]
            Self::Edi(edi) => edi.check(),
        }
    }
}

/// What a strategy looks at.
struct Subject<'a> {
    record: &'a SqsMessage,
    content: &'a content::Content,
}

impl Subject<'_> {
    /// The innermost body, for strategies that read it.
    fn body(&self) -> Result<&str, KeyProblem> {
        if self.content.offloaded.is_some() {
            return Err(KeyProblem::Offloaded);
        }
        self.content.body(self.record).ok_or(KeyProblem::Missing {
            field: "the body".to_owned(),
        })
    }
}

/// A key, and what else the strategy knows of the message.
#[derive(Debug)]
pub(crate) struct Keyed {
    pub(crate) key: Key,
    /// When the message was first sent, where the strategy knows better than the record.
    pub(crate) sent_at: Option<SystemTime>,
    /// The body's fingerprint, where the strategy knows which differences do not count.
    pub(crate) fingerprint: Option<Fingerprint>,
}

impl Keyed {
    /// Makes a key of a value found in `field`. A value that is a UUID is trimmed and lower-cased.
    fn new(
        source: impl Into<Cow<'static, str>>,
        value: &str,
        field: impl FnOnce() -> String,
    ) -> Result<Self, KeyProblem> {
        let key = Key::new(source, normal::uuid_or_as_written(value)).map_err(|error| {
            KeyProblem::Unusable {
                field: field(),
                error,
            }
        })?;
        Ok(Self {
            key,
            sent_at: None,
            fingerprint: None,
        })
    }
}

#[cfg(test)]
mod properties;
