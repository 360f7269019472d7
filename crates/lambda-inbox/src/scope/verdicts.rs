//! What the store says of a record, as a verdict. One place for all scopes.

use super::process::Again;
use crate::error::store_chain;
use crate::inbox::MismatchPolicy;
use crate::metrics;
use crate::outcome::{Mark, Outcome, Verdict};
use lambda_inbox_store::{Class, Consumer, Entry, StoreError, StoredFingerprint, Violation};
use std::borrow::Cow;

pub(super) const STOPPED: &str =
    "the handler was stopped, because Lambda's deadline came near; its transaction is rolled back";

pub(super) const HELD: &str = "another delivery of the same message is at work on it";

/// A committed row was there.
pub(super) fn existing(
    other_body: Option<StoredFingerprint>,
    entry: &Entry,
    policy: MismatchPolicy,
) -> Verdict {
    let Some(other) = other_body else {
        return Verdict::new(Outcome::Duplicate, "committed by an earlier delivery");
    };
    let reason = format!(
        "the same key was committed for another body (fingerprint {other}, this one has {}): the \
         key is too coarse, or its numbers start over (see the mismatch policy)",
        entry.fingerprint
    );
    let verdict = Verdict::new(Outcome::Mismatch, reason);
    match policy {
        MismatchPolicy::Report => verdict,
        MismatchPolicy::Skip => verdict.marked(Mark::Skipped),
    }
}

/// A statement of the inbox's own did not work: worth another try, or a verdict.
pub(super) fn refused(error: StoreError) -> Result<Again, Verdict> {
    let reason = store_chain(&error);
    let sqlstate = error.sqlstate();
    match error.class() {
        Class::Busy => Err(busy(reason)),
        Class::Conflict => Ok(Again::Conflict(reason)),
        Class::Connection => Ok(Again::Connection(error)),
        Class::Setup => Err(Verdict::failed(reason).marked(Mark::Outage)),
        Class::Refused => Err(Verdict::failed(reason).with_sqlstate(sqlstate)),
    }
}

pub(super) fn busy(reason: impl Into<Cow<'static, str>>) -> Verdict {
    Verdict::new(Outcome::Busy, reason)
}

/// The answer to COMMIT did not come back.
pub(super) fn unknown(error: &StoreError) -> Verdict {
    let reason = format!("{}; the next delivery finds out", store_chain(error));
    Verdict::new(Outcome::Unknown, reason)
}

/// The handler broke the transaction.
pub(super) fn violated(violation: Violation, consumer: &Consumer) -> Verdict {
    metrics::increment(metrics::BOUNDARY_VIOLATIONS, consumer.as_str());
    Verdict::failed(format!("BoundaryViolation: {violation}")).marked(Mark::HandlerBug)
}

pub(super) fn panicked(text: &str) -> Verdict {
    Verdict::failed(format!("the handler panicked: {text}")).marked(Mark::HandlerBug)
}
