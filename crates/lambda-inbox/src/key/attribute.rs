//! A key that the producer sets once and repeats when it sends again.

use super::{Key, KeyProblem, Keyed, StrategyError, Subject};
use aws_lambda_events::sqs::SqsMessageAttribute;
use uuid::Uuid;

const EXPECTED: &str = "text, or the 16 bytes of a UUID";

/// Keys by a message attribute.
///
/// A String or Number attribute is taken as written; a UUID in it is compared without case and outer
/// blanks. A Binary attribute of 16 bytes is the UUID that these bytes are; any other Binary is
/// refused. Where an SNS envelope is unwrapped, its attributes count after the record's own.
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
    /// whose values may collide need two scopes, and so two consumers.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scope = scope.into();
        self
    }

    pub(super) fn name(&self) -> String {
        format!("Attribute({})", self.name)
    }

    pub(super) fn check(&self) -> Result<(), StrategyError> {
        if self.name.trim().is_empty() {
            return Err(StrategyError::NoAttributeName);
        }
        check_scope(&self.scope, || self.name())
    }

    pub(super) fn find(&self, message: &Subject<'_>) -> Result<Keyed, KeyProblem> {
        let attributes = &message.record.message_attributes;
        let value = match (attributes.get(&self.name), &message.content.sns) {
            (Some(attribute), _) => self.value(attribute)?,
            (None, Some(sns)) => match sns.attributes.get(&self.name) {
                Some(attribute) if attribute.data_type != "Binary" => attribute.value.clone(),
                Some(_) => return Err(self.wrong_type("binary within SNS".to_owned())),
                None => return Err(self.missing()),
            },
            (None, None) => return Err(self.missing()),
        };
        Keyed::new(self.scope.clone(), &value, || self.field())
    }

    fn value(&self, attribute: &SqsMessageAttribute) -> Result<String, KeyProblem> {
        match (&attribute.string_value, &attribute.binary_value) {
            (Some(text), _) => Ok(text.clone()),
            (None, Some(bytes)) => match Uuid::from_slice(bytes) {
                Ok(uuid) => Ok(uuid.hyphenated().to_string()),
                Err(_) => Err(self.wrong_type(format!("{} bytes of binary", bytes.len()))),
            },
            (None, None) => Err(self.wrong_type("without a value".to_owned())),
        }
    }

    fn missing(&self) -> KeyProblem {
        KeyProblem::Missing {
            field: self.field(),
        }
    }

    fn wrong_type(&self, found: String) -> KeyProblem {
        KeyProblem::WrongType {
            field: self.field(),
            found,
            expected: EXPECTED,
        }
    }

    fn field(&self) -> String {
        format!(
            "message attribute {:?} (names are case-sensitive)",
            self.name
        )
    }
}

pub(super) fn check_scope(
    scope: &str,
    strategy: impl FnOnce() -> String,
) -> Result<(), StrategyError> {
    // The id is one that is good for certain, so the scope alone is judged.
    Key::new(scope.to_owned(), "id")
        .map(drop)
        .map_err(|error| StrategyError::Scope {
            strategy: strategy(),
            error,
        })
}
