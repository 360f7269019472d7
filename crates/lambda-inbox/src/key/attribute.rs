//! A key that the producer sets once and repeats when it sends again.

use super::{Key, KeyFailure, KeyProblem, stored};
use aws_lambda_events::sqs::{SqsMessage, SqsMessageAttribute};
use uuid::Uuid;

/// Keys by a message attribute.
///
/// A String or Number attribute is taken as written; a UUID in it is compared without case and outer
/// blanks. A Binary attribute of 16 bytes is the UUID that these bytes are; any other Binary is
/// refused.
#[derive(Clone, Debug)]
pub struct Attribute {
    name: String,
    scope: String,
}

impl Attribute {
    /// Reads the attribute `name`. SQS attribute names are case-sensitive. The scope, which becomes
    /// the key's source, is the name too.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            scope: name.clone(),
            name,
        }
    }

    /// Declares another scope: the space in which the attribute's values are unique. Two producers
    /// whose values may collide need two scopes.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scope = scope.into();
        self
    }

    pub(super) fn key(&self, record: &SqsMessage) -> Result<Key, KeyFailure> {
        let attribute = record.message_attributes.get(&self.name).ok_or_else(|| {
            self.failure(KeyProblem::Missing {
                field: self.field(),
            })
        })?;
        let value = self.value(attribute)?;
        stored(|| self.strategy(), || self.field(), &self.scope, &value)
    }

    fn value(&self, attribute: &SqsMessageAttribute) -> Result<String, KeyFailure> {
        match (&attribute.string_value, &attribute.binary_value) {
            (Some(text), _) => Ok(text.clone()),
            (None, Some(bytes)) => match Uuid::from_slice(bytes) {
                Ok(uuid) => Ok(uuid.hyphenated().to_string()),
                Err(_) => Err(self.failure(KeyProblem::WrongType {
                    field: self.field(),
                    found: format!("{} bytes of binary", bytes.len()),
                    expected: "text, or the 16 bytes of a UUID",
                })),
            },
            (None, None) => Err(self.failure(KeyProblem::WrongType {
                field: self.field(),
                found: "without a value".to_owned(),
                expected: "text, or the 16 bytes of a UUID",
            })),
        }
    }

    fn failure(&self, problem: KeyProblem) -> KeyFailure {
        KeyFailure {
            strategy: self.strategy(),
            problem,
        }
    }

    fn strategy(&self) -> String {
        format!("Attribute({})", self.name)
    }

    fn field(&self) -> String {
        format!("message attribute {:?}", self.name)
    }
}
