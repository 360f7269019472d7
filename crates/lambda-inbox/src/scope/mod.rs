//! How a batch runs: a transaction for each message, one for the batch, or a handler for all at once.

mod bulk;
mod link;
mod per_batch;
mod per_message;
mod process;
mod set;
mod statement;
mod supervise;
mod verdicts;
mod worker;

pub(crate) use bulk::Bulk;
pub(crate) use link::{Link, NoConnection};
pub(crate) use per_message::PerMessage;
pub(crate) use statement::StatementScope;

use crate::batch::Batch;
use futures_util::future::BoxFuture;

/// A handler with its way of running. Object-safe, so that the service's type does not name it.
pub(crate) trait Run: Send + Sync {
    /// Runs what is open of a batch and records the verdicts.
    ///
    /// # Errors
    /// Why there was no connection, or none any more; the records without a verdict were not touched.
    fn run<'a>(&'a self, batch: &'a Batch<'a>) -> BoxFuture<'a, Result<(), NoConnection>>;

    /// Whether order between the messages of a group can be kept.
    fn keeps_order(&self) -> bool;
}
