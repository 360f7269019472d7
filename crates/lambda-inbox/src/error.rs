//! Errors of a whole invocation. A record's failure is an [`Outcome`](crate::Outcome), not an error.

use crate::event::EventError;
use lambda_inbox_store::{Consumer, StoreError};
use lambda_runtime::Diagnostic;
use std::error::Error;

/// The invocation failed: Lambda returns the whole batch to the queue, and the poller backs off.
/// What had committed comes back as duplicates.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InboxError {
    /// The function was invoked with something that is not an SQS event.
    #[error(
        "consumer {consumer} expects an SQS event; invoke it through an event source mapping of an \
         SQS queue"
    )]
    Event {
        /// The consumer.
        consumer: Consumer,
        /// What came instead.
        source: EventError,
    },
    /// The database could not be used, and nothing had committed.
    #[error(
        "consumer {consumer}: the inbox's database cannot be used and nothing was committed; the \
         batch goes back as a whole, so that the poller backs off"
    )]
    Outage {
        /// The consumer.
        consumer: Consumer,
        /// What the database, or the network, said.
        source: Outage,
    },
    /// A handler that takes a batch as a whole cannot keep the order within message groups.
    #[error(
        "consumer {consumer}: this handler takes batches as a whole, which cannot keep the order of a \
         FIFO queue; use a handler of single messages"
    )]
    Fifo {
        /// The consumer.
        consumer: Consumer,
    },
    /// Records without a `messageId` cannot be reported one by one.
    #[error(
        "consumer {consumer}: {count} record(s) have no messageId, so only failing the invocation \
         gets them back; the records that committed will be skipped as duplicates"
    )]
    Unidentified {
        /// The consumer.
        consumer: Consumer,
        /// How many.
        count: usize,
    },
}

/// Why the database could not be used, as text: it may stand for several records.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct Outage(pub(crate) String);

impl From<InboxError> for Diagnostic {
    fn from(error: InboxError) -> Self {
        let error_type = match &error {
            InboxError::Event { .. } => "LambdaInbox.NotAnSqsEvent",
            InboxError::Outage { .. } => "LambdaInbox.DatabaseOutage",
            InboxError::Fifo { .. } => "LambdaInbox.FifoNeedsSingleMessages",
            InboxError::Unidentified { .. } => "LambdaInbox.RecordWithoutMessageId",
        };
        Self {
            error_type: error_type.to_owned(),
            error_message: chain(&error),
        }
    }
}

/// An error with its sources on one line. A source whose text the line has already is left out: some
/// errors, sqlx's among them, print their source themselves.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut line = String::new();
    for error in sources(error) {
        let text = error.to_string();
        if line.is_empty() {
            line = text;
        } else if !line.contains(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
    }
    line
}

/// The error and everything below it.
pub(crate) fn sources<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| {
        (**error).source()
    })
}

/// As [`chain`], naming the SQLSTATE, which is what one searches for.
pub(crate) fn store_chain(error: &StoreError) -> String {
    match error.sqlstate() {
        Some(code) => format!("{} (SQLSTATE {code})", chain(error)),
        None => chain(error),
    }
}
