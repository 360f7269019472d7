//! An interchange is the same however often a partner sends it.

use super::json_pointer::text_or_number;
use super::{KeyProblem, Keyed, StrategyError, Subject};
use crate::error::chain;
use crate::pointer::Pointer;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lambda_inbox_edi::{KeyOptions, identity, line_end_blind};
use lambda_inbox_store::Fingerprint;
use std::borrow::Cow;

/// Keys by the header of an X12 or EDIFACT interchange: sender and receiver with their qualifiers,
/// production or test, and the control number (ISA13, 0020). See [`lambda_inbox_edi`] for the rules and
/// their sources.
///
/// One body must hold one interchange. An interchange that was cut off still has its header, and so a
/// key: a handler that finds it incomplete must fail, or the whole one is a mismatch when it comes. The
/// body is the interchange, or a JSON document with the
/// interchange at a pointer, as text or as base64.
#[derive(Clone, Debug, Default)]
pub struct Edi {
    options: KeyOptions,
    // The text, and the pointer where it is one; `build` refuses the rest.
    within: Option<(String, Option<Pointer>)>,
    base64: bool,
}

impl Edi {
    /// The body is the interchange.
    pub fn new() -> Self {
        Self::default()
    }

    /// The interchange is the text at a JSON pointer (RFC 6901) of a JSON body.
    #[must_use]
    pub fn within(mut self, pointer: impl Into<String>) -> Self {
        let pointer = pointer.into();
        let parsed = Pointer::new(&pointer);
        self.within = Some((pointer, parsed));
        self
    }

    /// The text is base64 (RFC 4648, with padding) of the interchange's bytes, as Latin-1 interchanges
    /// often travel.
    #[must_use]
    pub fn base64(mut self) -> Self {
        self.base64 = true;
        self
    }

    /// Adds the header's date and time to the key, for partners whose numbers start over while keys
    /// are still kept.
    #[must_use]
    pub fn with_date_time(mut self) -> Self {
        self.options.with_date_time = true;
        self
    }

    /// Leaves the internal routing ids of UNB (0008, 0014, 0042, 0046) out of the key.
    #[must_use]
    pub fn ignoring_internal_routing(mut self) -> Self {
        self.options.ignore_internal_routing = true;
        self
    }

    pub(super) fn name(&self) -> String {
        "Edi".to_owned()
    }

    pub(super) fn check(&self) -> Result<(), StrategyError> {
        match &self.within {
            Some((pointer, None)) => Err(StrategyError::Pointer {
                pointer: pointer.clone(),
            }),
            Some((_, Some(_))) | None => Ok(()),
        }
    }

    pub(super) fn find(&self, message: &Subject<'_>) -> Result<Keyed, KeyProblem> {
        let bytes = self.interchange(message.body()?)?;
        let found = identity(&bytes).map_err(|error| KeyProblem::Body(chain(&error)))?;
        let source = found.source(&self.options);
        let keyed = Keyed::new(source, &found.message_id(&self.options), || {
            "the interchange".to_owned()
        })?;
        let mut blind = Vec::with_capacity(bytes.len());
        line_end_blind(&bytes, |piece| blind.extend_from_slice(piece));
        Ok(Keyed {
            fingerprint: Some(Fingerprint::of_bytes(&blind)),
            ..keyed
        })
    }

    fn interchange<'a>(&self, body: &'a str) -> Result<Cow<'a, [u8]>, KeyProblem> {
        let text = match &self.within {
            None => Cow::Borrowed(body),
            Some((name, pointer)) => {
                let field = || format!("body field {name:?}");
                let value = pointer
                    .as_ref()
                    .and_then(|pointer| pointer.find(body).ok())
                    .ok_or_else(|| KeyProblem::Missing { field: field() })?;
                let text = text_or_number(value).map_err(|found| KeyProblem::WrongType {
                    field: field(),
                    found: found.to_owned(),
                    expected: "the text of an interchange",
                })?;
                Cow::Owned(text)
            }
        };
        if !self.base64 {
            return Ok(match text {
                Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                Cow::Owned(text) => Cow::Owned(text.into_bytes()),
            });
        }
        let decoded = STANDARD.decode(text.trim());
        decoded
            .map(Cow::Owned)
            .map_err(|_| KeyProblem::Body("the interchange is not base64".into()))
    }
}
