//! The failure log, where it is asked for: what failed in a batch, written after everything else is done.
//!
//! It is for people, and nothing may come of it: it waits for no connection, takes a fraction of a second
//! at most, and where it cannot be written there is a line in the log and the response stays as it is.

use crate::batch::Batch;
use crate::error::chain;
use crate::outcome::{Mark, Outcome, Verdict};
use crate::plan::Identity;
use lambda_inbox_store::FailedMessage;
use std::time::Duration;
use tokio::time::Instant;

/// The most time that it takes from the response.
const WRITE_MAX: Duration = Duration::from_millis(200);

/// Writes what failed in one statement, on a connection that the batch has left.
pub(crate) async fn write(batch: &Batch<'_>) {
    let failed = batch.failed();
    if failed.is_empty() {
        return;
    }
    let settings = batch.settings;
    let until = batch.deadline.settle().min(Instant::now() + WRITE_MAX);
    let Some(slot) = settings.store.try_slot() else {
        return skipped(batch, failed.len(), "no connection was free");
    };
    let connection = match slot.connection(until).await {
        Ok(connection) => connection,
        Err(error) => return skipped(batch, failed.len(), &chain(&error)),
    };
    let written = connection.log_failures(&settings.consumer, &failed, until);
    let (connection, result) = written.await;
    if let Some(connection) = connection {
        connection.keep();
    }
    if let Err(error) = result {
        skipped(batch, failed.len(), &chain(&error));
    }
}

/// A row of the log, for verdicts that belong in it: what went wrong with the message, and not with the
/// database or the time.
pub(crate) fn row(identity: &Identity, verdict: &Verdict) -> Option<FailedMessage> {
    let is_failure = match verdict.outcome {
        Outcome::Failed | Outcome::Poison | Outcome::Mismatch | Outcome::Unknown => true,
        Outcome::Processed
        | Outcome::Ignored
        | Outcome::Duplicate
        | Outcome::Busy
        | Outcome::NotStarted => false,
    };
    (is_failure && verdict.mark != Mark::Outage).then(|| FailedMessage {
        key: identity.entry.as_ref().map(|entry| entry.key.clone()),
        transport_message_id: identity.message_id.as_deref().map(str::to_owned),
        outcome: verdict.outcome.as_str(),
        sqlstate: verdict.sqlstate.clone(),
        error: verdict.reason.as_deref().unwrap_or_default().to_owned(),
        receive_count: identity.receive_count,
    })
}

fn skipped(batch: &Batch<'_>, count: usize, reason: &str) {
    tracing::warn!(
        consumer = batch.settings.consumer.as_str(),
        count,
        reason,
        "the failure log was not written"
    );
}
