//! Time, as Lambda gives it: a wall-clock instant at which the environment is stopped without notice.

use lambda_inbox_store::Limits;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// How long a statement may run where Lambda gave no deadline.
const STATEMENT_MAX: Duration = Duration::from_secs(30);

/// How long a transaction may sit idle where Lambda gave no deadline.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// How long to wait for any one answer of the server where Lambda gave no deadline; past the server's
/// own limit, so that its error arrives first.
const ANSWER_MAX: Duration = Duration::from_secs(35);

/// The part of the settle margin that is kept for posting the response.
const RESPONSE_PART: u32 = 5;

/// Tells the wall-clock time. Lambda's deadline is a wall-clock time, so this is what it is compared
/// with, once for each invocation.
pub trait Clock: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> SystemTime;
}

/// The system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// How the time of an invocation is divided.
#[derive(Clone)]
pub(crate) struct Timing {
    pub(crate) claim_wait: Duration,
    pub(crate) settle_margin: Duration,
    pub(crate) reserve: Duration,
    pub(crate) clock: Arc<dyn Clock>,
}

/// One invocation's deadline, on the monotonic clock.
#[derive(Clone)]
pub(crate) struct Deadline {
    lambda: Option<Instant>,
    timing: Timing,
}

impl Deadline {
    /// `epoch_milliseconds` as Lambda's context has it; 0 means that there is none.
    pub(crate) fn new(epoch_milliseconds: u64, timing: Timing) -> Self {
        let lambda = (epoch_milliseconds != 0).then(|| {
            let deadline = SystemTime::UNIX_EPOCH + Duration::from_millis(epoch_milliseconds);
            let left = deadline
                .duration_since(timing.clock.now())
                .unwrap_or_default();
            Instant::now() + left
        });
        Self { lambda, timing }
    }

    /// When handlers are stopped.
    pub(crate) fn handler(&self) -> Option<Instant> {
        let lambda = self.lambda?;
        Some(
            lambda
                .checked_sub(self.timing.settle_margin)
                .unwrap_or_else(Instant::now),
        )
    }

    /// When to stop waiting for a COMMIT or a ROLLBACK.
    pub(crate) fn settle(&self) -> Instant {
        match self.lambda {
            Some(lambda) => lambda
                .checked_sub(self.timing.settle_margin / RESPONSE_PART)
                .unwrap_or_else(Instant::now),
            None => Instant::now() + ANSWER_MAX,
        }
    }

    /// Whether enough is left to start a record.
    pub(crate) fn may_start(&self) -> bool {
        self.lambda.is_none_or(|lambda| {
            lambda.saturating_duration_since(Instant::now()) >= self.timing.reserve
        })
    }

    /// When to stop waiting for the server before the handler runs.
    pub(crate) fn before_handler(&self) -> Instant {
        self.handler()
            .unwrap_or_else(|| Instant::now() + ANSWER_MAX)
    }

    /// The limits of a record's transaction.
    pub(crate) fn limits(&self) -> Limits {
        let now = Instant::now();
        Limits {
            claim: self.timing.claim_wait,
            statement: self
                .handler()
                .map_or(STATEMENT_MAX, |at| at.saturating_duration_since(now)),
            idle: self
                .lambda
                .map_or(IDLE_MAX, |at| at.saturating_duration_since(now)),
            until: self.before_handler(),
        }
    }

    /// The limits of taking back a claim, which may use the settle margin.
    pub(crate) fn closing_limits(&self) -> Limits {
        let until = self.settle();
        let left = until.saturating_duration_since(Instant::now());
        Limits {
            claim: left,
            statement: left,
            idle: left,
            until,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct At(SystemTime);

    impl Clock for At {
        fn now(&self) -> SystemTime {
            self.0
        }
    }

    fn deadline(epoch_milliseconds: u64, now_milliseconds: u64) -> Deadline {
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(now_milliseconds);
        let timing = Timing {
            claim_wait: Duration::from_millis(250),
            settle_margin: Duration::from_millis(500),
            reserve: Duration::from_secs(1),
            clock: Arc::new(At(now)),
        };
        Deadline::new(epoch_milliseconds, timing)
    }

    #[tokio::test(start_paused = true)]
    async fn records_start_while_the_reserve_is_left() {
        for (left, may_start) in [
            (0, false),
            (50, false),
            (999, false),
            (1000, true),
            (5000, true),
        ] {
            assert_eq!(
                deadline(100_000 + left, 100_000).may_start(),
                may_start,
                "{left} ms"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn handlers_stop_half_a_second_before_lambda_does() {
        let deadline = deadline(103_000, 100_000);
        let left = |at: Instant| at.saturating_duration_since(Instant::now()).as_millis();
        assert_eq!(deadline.handler().map(left), Some(2500));
        assert_eq!(left(deadline.settle()), 2900);
        assert_eq!(deadline.limits().statement.as_millis(), 2500);
    }

    #[tokio::test(start_paused = true)]
    async fn no_deadline_means_a_bounded_statement_and_an_unbounded_handler() {
        let deadline = deadline(0, 100_000);
        assert!(deadline.may_start());
        assert_eq!(deadline.handler(), None);
        assert_eq!(deadline.limits().statement, Duration::from_secs(30));
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_in_the_past_starts_nothing() {
        let deadline = deadline(1, 100_000);
        assert!(!deadline.may_start());
        assert!(deadline.handler().is_some_and(|at| at <= Instant::now()));
    }
}
