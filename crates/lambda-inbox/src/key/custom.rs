//! A key that only the user's own code can tell.

use super::{KeyProblem, Keyed, Subject};
use crate::content::{EventBridgeEnvelope, SnsEnvelope};
use crate::handler::BoxError;
use aws_lambda_events::sqs::SqsMessage;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Finds the source and the id.
type Find = dyn Fn(&Content<'_>) -> Result<(String, String), BoxError> + Send + Sync;

/// Keys by a function: it gives the source, which is the space that the id is unique in, and the id.
/// Both must be the same for every delivery of a message, and different for different messages.
///
/// An error is a permanent failure of the record, and its text is logged: it must not quote the body. A
/// panic counts as an error.
#[derive(Clone)]
pub struct Custom {
    find: Arc<Find>,
}

/// A message as a key function sees it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Content<'a> {
    /// The record as it came.
    pub record: &'a SqsMessage,
    /// The innermost body; `None` where there is none, or where it stands in S3 unfetched.
    pub body: Option<&'a str>,
    /// The SNS envelope that was taken off.
    pub sns: Option<&'a SnsEnvelope>,
    /// The EventBridge envelope that was taken off.
    pub event_bridge: Option<&'a EventBridgeEnvelope>,
}

impl Custom {
    /// Takes the function that gives (source, id).
    pub fn new(
        find: impl Fn(&Content<'_>) -> Result<(String, String), BoxError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            find: Arc::new(find),
        }
    }

    pub(super) fn name(&self) -> String {
        "Custom".to_owned()
    }

    pub(super) fn find(&self, message: &Subject<'_>) -> Result<Keyed, KeyProblem> {
        let content = Content {
            record: message.record,
            body: message
                .content
                .body(message.record)
                .filter(|_| message.content.offloaded.is_none()),
            sns: message.content.sns.as_ref(),
            event_bridge: message.content.event_bridge.as_ref(),
        };
        let found = catch_unwind(AssertUnwindSafe(|| (self.find)(&content)))
            .map_err(|_| KeyProblem::Body("the key function panicked".to_owned()))?;
        let (source, id) = found.map_err(|error| KeyProblem::Body(crate::error::chain(&*error)))?;
        Keyed::new(source, &id, || "the key function's result".to_owned())
    }
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Custom").finish_non_exhaustive()
    }
}
