//! A missing partition fails claims, and DDL that waits for a lock makes every claim wait behind it. So
//! partitions are created days ahead, each in a short transaction of its own, and detached without a
//! lock that claims would notice before they are dropped.
//!
//! There is no default partition: what it takes in, it keeps out of the partition that is created
//! later, and no partition can be detached concurrently beside one.

mod ahead;
mod care;
mod retire;

pub(crate) use ahead::create_ahead;
pub(crate) use retire::retire;

use std::time::Duration;

/// How many days ahead of today partitions are created: as long as the maintenance may fail before
/// claims do.
pub const DAYS_AHEAD: u32 = 7;

/// How many days back. SQS keeps a message for 14 days at most, and a day has two ends. No partition
/// younger than this is ever dropped: a message that is still under way needs it.
///
/// Source: Amazon SQS Developer Guide, "Amazon SQS message quotas" (message retention).
pub const DAYS_BACK: u32 = 15;

/// The most time that DDL waits for one lock.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// The most time that one DDL statement runs.
const STATEMENT_WAIT: Duration = Duration::from_secs(30);

/// How often DDL is tried that meets a lock.
const ATTEMPTS_MAX: u32 = 5;

/// The first pause before it is tried again; it doubles.
const PAUSE: Duration = Duration::from_millis(200);

/// Partitions could not be looked after.
#[derive(Debug, thiserror::Error)]
#[error(
    "could not {action}; the role must own the time-ordered table and its partitions, and have CREATE \
     on the schema"
)]
pub struct PartitionsError {
    action: &'static str,
    source: sqlx::Error,
}

impl PartitionsError {
    fn to(action: &'static str) -> impl FnOnce(sqlx::Error) -> Self {
        move |source| Self { action, source }
    }

    /// Whether the database had no time for it, rather than refused it.
    pub(crate) fn is_wait(&self) -> bool {
        is_wait(&self.source)
    }
}

/// A lock that did not come, a deadlock, or a statement that was not done in time: tried again, it may
/// work.
pub(crate) fn is_wait(error: &sqlx::Error) -> bool {
    let code = crate::error::sqlstate(error);
    matches!(code.as_deref(), Some("55P03" | "40P01" | "57014"))
}
