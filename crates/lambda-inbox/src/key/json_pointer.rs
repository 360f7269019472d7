//! A business id in the body.

use super::attribute::check_scope;
use super::{KeyProblem, Keyed, StrategyError, Subject};
use crate::pointer::{NotFound, Pointer};
use serde_json::value::RawValue;

const EXPECTED: &str = "text or a number";

/// Keys by a value of a JSON body, found by a JSON pointer (RFC 6901) such as `/order/id`.
///
/// Text is taken as it reads after JSON's escapes; a number as it is written, digit by digit: `1e2` and
/// `100` are two keys, and so are `12345678901234567890123` and `12345678901234567890124`. The number
/// `100` and the text `"100"` are one. A field that stands twice in its object is refused.
#[derive(Clone, Debug)]
pub struct JsonPointer {
    pointer: String,
    scope: String,
    // None where the text is no pointer, which `build` refuses.
    parsed: Option<Pointer>,
}

impl JsonPointer {
    /// Reads the value at `pointer`. The scope, which becomes the key's source, is the pointer too.
    /// [`InboxBuilder::build`](crate::InboxBuilder::build) refuses a text that is not a pointer.
    pub fn new(pointer: impl Into<String>) -> Self {
        let pointer = pointer.into();
        Self {
            scope: pointer.clone(),
            parsed: Pointer::new(&pointer),
            pointer,
        }
    }

    /// Declares another scope: the space in which the values are unique, such as `orders`.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scope = scope.into();
        self
    }

    pub(super) fn name(&self) -> String {
        format!("JsonPointer({})", self.pointer)
    }

    pub(super) fn check(&self) -> Result<(), StrategyError> {
        if self.parsed.is_none() {
            return Err(StrategyError::Pointer {
                pointer: self.pointer.clone(),
            });
        }
        check_scope(&self.scope, || self.name())
    }

    pub(super) fn find(&self, message: &Subject<'_>) -> Result<Keyed, KeyProblem> {
        let value = self.value(message.body()?)?;
        Keyed::new(self.scope.clone(), &value, || self.field())
    }

    fn value(&self, body: &str) -> Result<String, KeyProblem> {
        let found = self
            .parsed
            .as_ref()
            .map_or(Err(NotFound::Missing), |p| p.find(body));
        match found {
            Ok(value) => text_or_number(value).map_err(|found| KeyProblem::WrongType {
                field: self.field(),
                found: found.to_owned(),
                expected: EXPECTED,
            }),
            Err(NotFound::Missing) => Err(KeyProblem::Missing {
                field: self.field(),
            }),
            Err(NotFound::Ambiguous) => Err(KeyProblem::NotAnIdentity {
                field: self.field(),
                problem: "stands more than once in its object",
            }),
            Err(NotFound::NotJson) => Err(KeyProblem::Body("the body is not JSON".to_owned())),
        }
    }

    fn field(&self) -> String {
        format!("body field {:?}", self.pointer)
    }
}

/// The value as text, or what it is instead.
pub(super) fn text_or_number(value: &RawValue) -> Result<String, &'static str> {
    let json = value.get();
    match json.as_bytes().first() {
        Some(b'"') => serde_json::from_str(json).map_err(|_| "text with half of a surrogate pair"),
        Some(b'-' | b'0'..=b'9') => Ok(json.to_owned()),
        Some(b'n') => Err("null"),
        Some(b't' | b'f') => Err("a boolean"),
        Some(b'[') => Err("a list"),
        _ => Err("an object"),
    }
}
