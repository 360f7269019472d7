//! Every name that this crate counts under. They go through the [`metrics`] facade, so an exporter of
//! the user's own takes them up; without one they cost nothing.
//!
//! Each is labelled with `consumer`.

use crate::outcome::Outcome;
use lambda_inbox_store::Consumer;
use std::collections::HashMap;
use std::time::Duration;

/// Histogram, seconds: one message, from its first statement to its verdict. The name is
/// OpenTelemetry's.
pub const PROCESS_DURATION: &str = "messaging.process.duration";

/// Histogram, seconds: one claim of a message or of a set, with the BEGIN in front of it and the wait for
/// other deliveries of the same keys.
pub const CLAIM_DURATION: &str = "lambda_inbox.claim.duration";

/// Counter, `{message}`: committed now.
pub const PROCESSED: &str = "lambda_inbox.inbox.processed";
/// Counter, `{message}`: committed as explicitly nothing to do.
pub const IGNORED: &str = "lambda_inbox.inbox.ignored";
/// Counter, `{message}`: skipped, because an earlier delivery had committed.
pub const DUPLICATES: &str = "lambda_inbox.inbox.duplicates";
/// Counter, `{message}`: the key was committed for another body.
pub const MISMATCHES: &str = "lambda_inbox.inbox.mismatches";
/// Counter, `{message}`: another delivery held the key.
pub const BUSY: &str = "lambda_inbox.inbox.busy";
/// Counter, `{message}`: returned untouched.
pub const NOT_STARTED: &str = "lambda_inbox.inbox.not_started";
/// Counter, `{message}`: the handler or the database failed.
pub const FAILED: &str = "lambda_inbox.inbox.failed";
/// Counter, `{message}`: can never be processed.
pub const POISON: &str = "lambda_inbox.inbox.poison";
/// Counter, `{message}`: the answer to COMMIT was lost.
pub const UNKNOWN: &str = "lambda_inbox.inbox.unknown";
/// Counter, `{message}`: the handler ended the transaction or ignored an SQL error. A bug.
pub const BOUNDARY_VIOLATIONS: &str = "lambda_inbox.inbox.boundary_violations";
/// Counter, `{invocation}`: failed because the database could not be used.
pub const OUTAGES: &str = "lambda_inbox.inbox.outages";

/// Counts a batch's outcomes, each name once: a counter's labels cost more than its increment.
pub(crate) fn count(consumer: &Consumer, outcomes: impl Iterator<Item = Outcome>) {
    let mut counts: HashMap<&'static str, u64> = HashMap::new();
    for outcome in outcomes {
        *counts.entry(name(outcome)).or_default() += 1;
    }
    for (name, count) in counts {
        metrics::counter!(name, "consumer" => consumer.as_str().to_owned()).increment(count);
    }
}

fn name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Processed => PROCESSED,
        Outcome::Ignored => IGNORED,
        Outcome::Duplicate => DUPLICATES,
        Outcome::Mismatch => MISMATCHES,
        Outcome::Busy => BUSY,
        Outcome::NotStarted => NOT_STARTED,
        Outcome::Failed => FAILED,
        Outcome::Poison => POISON,
        Outcome::Unknown => UNKNOWN,
    }
}

pub(crate) fn increment(name: &'static str, consumer: &str) {
    metrics::counter!(name, "consumer" => consumer.to_owned()).increment(1);
}

pub(crate) fn duration(consumer: &str, elapsed: Duration) {
    record(PROCESS_DURATION, consumer, elapsed);
}

pub(crate) fn claim_duration(consumer: &Consumer, elapsed: Duration) {
    record(CLAIM_DURATION, consumer.as_str(), elapsed);
}

fn record(name: &'static str, consumer: &str, elapsed: Duration) {
    metrics::histogram!(name, "consumer" => consumer.to_owned()).record(elapsed.as_secs_f64());
    #[cfg(feature = "emf")]
    crate::emf::recorded();
}
