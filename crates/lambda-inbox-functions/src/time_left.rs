//! Lambda stops a function at its deadline without notice, so what it has to say must be said before.

use lambda_runtime::Context;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// Where Lambda gave no deadline.
const UNKNOWN: Duration = Duration::from_secs(60);

/// The time kept for the answer: a tenth of what is left, within these.
const MARGIN_MIN: Duration = Duration::from_millis(1_500);
const MARGIN_MAX: Duration = Duration::from_secs(10);

/// When the work must be done, so that the answer still gets out.
pub(crate) fn work_until(context: &Context) -> Instant {
    let left = if context.deadline == 0 {
        UNKNOWN
    } else {
        let deadline = SystemTime::UNIX_EPOCH + Duration::from_millis(context.deadline);
        deadline
            .duration_since(SystemTime::now())
            .unwrap_or_default()
    };
    Instant::now() + left.saturating_sub(margin(left))
}

/// As [`work_until`], with a third of the time for the answer, which goes over the network.
pub(crate) fn work_until_with_answer(context: &Context) -> Instant {
    let now = Instant::now();
    now + work_until(context).saturating_duration_since(now) * 2 / 3
}

fn margin(left: Duration) -> Duration {
    (left / 10).clamp(MARGIN_MIN, MARGIN_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_time_is_kept_for_the_answer() {
        for (left, kept) in [(1, 1_500), (3, 1_500), (30, 3_000), (900, 10_000)] {
            let margin = margin(Duration::from_secs(left));
            assert_eq!(margin, Duration::from_millis(kept), "{left} s");
        }
    }
}
