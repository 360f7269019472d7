//! How long keys are kept. A key that is forgotten too early lets a late delivery have its effect a
//! second time.

use crate::key::Consumer;
use std::collections::HashMap;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What is added to every retention: the longest visibility timeout. A message that is handed out in the
/// last moment of its life may be worked on for so long.
///
/// Source: Amazon SQS Developer Guide, "Amazon SQS visibility timeout" (12 hours at most).
pub const GRACE: Duration = Duration::from_secs(12 * 60 * 60);

/// Longer ones are cut to this: further back than any key, and within Postgres's times.
const RETENTION_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// How long keys are kept after their message was processed, for each consumer, and how long the failure
/// log's rows are. Counted by the database's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retention {
    keys: Duration,
    consumers: HashMap<Consumer, Duration>,
    failures: Duration,
}

impl Retention {
    /// Of keys: the longest that a standard queue keeps a message.
    pub const KEYS_DEFAULT: Duration = Duration::from_secs(14 * DAY.as_secs());

    /// Of the failure log.
    pub const FAILURES_DEFAULT: Duration = Duration::from_secs(30 * DAY.as_secs());

    /// Keeps every consumer's keys for `keys`, and [`GRACE`] on top.
    pub fn new(keys: Duration) -> Self {
        Self {
            keys,
            consumers: HashMap::new(),
            failures: Self::FAILURES_DEFAULT,
        }
    }

    /// Keeps the keys of one consumer for another time, and [`GRACE`] on top.
    #[must_use]
    pub fn consumer(mut self, consumer: Consumer, keys: Duration) -> Self {
        self.consumers.insert(consumer, keys);
        self
    }

    /// Keeps the failure log's rows for `failures`, without grace; 30 days by default.
    #[must_use]
    pub fn failures(mut self, failures: Duration) -> Self {
        self.failures = failures;
        self
    }

    /// How long this consumer's keys are kept, without the grace.
    pub fn of(&self, consumer: &Consumer) -> Duration {
        self.consumers.get(consumer).copied().unwrap_or(self.keys)
    }

    /// What is kept of consumers that have no retention of their own, without the grace.
    pub fn of_others(&self) -> Duration {
        self.keys
    }

    /// The consumers with a retention of their own, without the grace.
    pub fn consumers(&self) -> impl Iterator<Item = (&Consumer, Duration)> {
        self.consumers
            .iter()
            .map(|(consumer, keys)| (consumer, *keys))
    }

    /// How long the failure log's rows are kept.
    pub fn of_failures(&self) -> Duration {
        self.failures
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self::new(Self::KEYS_DEFAULT)
    }
}

/// A [`Retention`] as statements take it: in seconds, with the grace. Never in days, which have 23 or 25
/// hours twice a year.
#[derive(Clone, Debug)]
pub(crate) struct CutOffs {
    consumers: Vec<String>,
    seconds: Vec<f64>,
    default_seconds: f64,
    failure_seconds: f64,
}

impl CutOffs {
    /// Joins each row `i` of a table with its consumer's retention. Parameters 1 to 3 are
    /// [`Self::consumers`], [`Self::seconds`] and [`Self::default_seconds`].
    pub(crate) const JOIN: &str = "LEFT JOIN unnest($1::text[], $2::float8[]) \
         AS kept (consumer, seconds) ON kept.consumer = i.consumer";

    /// Whether a joined row is to be kept.
    pub(crate) const IS_YOUNG: &str =
        "i.processed_at >= now() - make_interval(secs => coalesce(kept.seconds, $3::float8))";

    pub(crate) fn new(retention: &Retention) -> Self {
        let (consumers, seconds) = retention
            .consumers()
            .map(|(consumer, keys)| (consumer.as_str().to_owned(), with_grace(keys)))
            .unzip();
        Self {
            consumers,
            seconds,
            default_seconds: with_grace(retention.of_others()),
            failure_seconds: retention.of_failures().min(RETENTION_MAX).as_secs_f64(),
        }
    }

    pub(crate) fn consumers(&self) -> &[String] {
        &self.consumers
    }

    pub(crate) fn seconds(&self) -> &[f64] {
        &self.seconds
    }

    pub(crate) fn default_seconds(&self) -> f64 {
        self.default_seconds
    }

    pub(crate) fn failure_seconds(&self) -> f64 {
        self.failure_seconds
    }

    pub(crate) fn of(&self, consumer: &str) -> f64 {
        let mut own = self.consumers.iter().zip(&self.seconds);
        own.find(|(name, _)| name.as_str() == consumer)
            .map_or(self.default_seconds, |(_, seconds)| *seconds)
    }

    pub(crate) fn shortest(&self) -> f64 {
        self.seconds
            .iter()
            .copied()
            .fold(self.default_seconds, f64::min)
    }
}

fn with_grace(keys: Duration) -> f64 {
    (keys.min(RETENTION_MAX) + GRACE).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_consumer_has_its_own_cut_off_with_the_grace_on_top() {
        let edi = Consumer::new("edi-invoic").unwrap();
        let retention = Retention::default().consumer(edi, 35 * DAY);
        let cut_offs = CutOffs::new(&retention);
        assert_eq!(cut_offs.of("payments"), 14.5 * DAY.as_secs_f64());
        assert_eq!(cut_offs.of("edi-invoic"), 35.5 * DAY.as_secs_f64());
        assert_eq!(cut_offs.shortest(), 14.5 * DAY.as_secs_f64());
        assert_eq!(cut_offs.failure_seconds(), 30.0 * DAY.as_secs_f64());
    }

    #[test]
    fn a_retention_beyond_every_calendar_is_a_century() {
        let cut_offs = CutOffs::new(&Retention::new(Duration::MAX));
        assert!(cut_offs.shortest() < 3.2e9);
    }
}
