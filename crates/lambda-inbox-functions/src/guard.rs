//! A key that is forgotten while its message can still come back lets the message have its effect a second
//! time. So a retention is compared with what the queues can still deliver.
//!
//! A message comes back until its queue forgets it. On the move to a dead-letter queue, a FIFO queue's
//! clock starts over, and so does every queue's on the way back by a redrive; a standard dead-letter queue
//! counts from the first send. Whatever is handed out in the last moment may be worked on for as long as
//! the longest visibility timeout.
//!
//! Sources: Amazon SQS Developer Guide, "Setting up dead-letter queue message retention", "Learn how to
//! configure a dead-letter queue redrive" and "Amazon SQS visibility timeout".

use crate::duration::show;
use lambda_inbox_store::{Consumer, GRACE, Retention};
use std::time::Duration;

/// The longest visibility timeout.
const VISIBILITY_MAX: Duration = Duration::from_secs(12 * 60 * 60);

/// How long a message of a queue can come back after it was first handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Whose queue it is; `None` where it counts for every consumer that has none of its own.
    pub consumer: Option<Consumer>,
    /// What the number was taken from, for people.
    pub origin: String,
    /// How long the queue keeps a message.
    pub queue: Duration,
    /// How long its dead-letter queue does, where messages can come back from there.
    pub dead_letters: Duration,
}

impl Lifetime {
    /// Queue, dead letters and the longest visibility timeout together.
    pub fn total(&self) -> Duration {
        self.queue + self.dead_letters + VISIBILITY_MAX
    }
}

/// Compares what is kept (with the grace that every retention gets) with what can come back.
///
/// # Errors
/// The shortest of the retentions that are too short.
pub fn check(retention: &Retention, lifetimes: &[Lifetime]) -> Result<(), TooShort> {
    let shortfalls = lifetimes
        .iter()
        .flat_map(|lifetime| compared(retention, lifetime, lifetimes));
    let worst = shortfalls
        .filter(|found| found.kept < found.needed)
        .max_by_key(|found| found.needed.saturating_sub(found.kept));
    worst.map_or(Ok(()), Err)
}

/// A lifetime with each retention that it counts for.
fn compared(retention: &Retention, lifetime: &Lifetime, all: &[Lifetime]) -> Vec<TooShort> {
    let has_its_own =
        |consumer: &Consumer| all.iter().any(|l| l.consumer.as_ref() == Some(consumer));
    let found = |consumer: Option<&Consumer>, keys: Duration| TooShort {
        consumer: consumer.cloned(),
        kept: keys + GRACE,
        needed: lifetime.total(),
        lifetime: lifetime.clone(),
    };
    match &lifetime.consumer {
        Some(consumer) => vec![found(Some(consumer), retention.of(consumer))],
        None => std::iter::once(found(None, retention.of_others()))
            .chain(
                retention
                    .consumers()
                    .filter(|(consumer, _)| !has_its_own(consumer))
                    .map(|(consumer, keys)| found(Some(consumer), keys)),
            )
            .collect(),
    }
}

/// Keys would be forgotten before their messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooShort {
    /// Whose keys; `None` for consumers without a retention of their own.
    pub consumer: Option<Consumer>,
    /// How long they are kept, the grace included.
    pub kept: Duration,
    /// How long their messages can come back.
    pub needed: Duration,
    /// What that was taken from.
    pub lifetime: Lifetime,
}

impl std::error::Error for TooShort {}

impl std::fmt::Display for TooShort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let least = show(self.needed.saturating_sub(GRACE));
        let fix = match &self.consumer {
            Some(consumer) => {
                write!(f, "keys of {consumer}")?;
                format!("LAMBDA_INBOX_RETENTION_PER_CONSUMER={consumer}={least}")
            }
            None => {
                f.write_str("keys")?;
                format!("LAMBDA_INBOX_RETENTION={least}")
            }
        };
        write!(
            f,
            " are kept for {} (12h of grace included), but their messages can come back for {} ({}: \
             {} in the queue",
            show(self.kept),
            show(self.needed),
            self.lifetime.origin,
            show(self.lifetime.queue),
        )?;
        if !self.lifetime.dead_letters.is_zero() {
            write!(f, ", {} as dead letters", show(self.lifetime.dead_letters))?;
        }
        write!(
            f,
            ", 12h of visibility), and would then have their effect a second time; set {fix} or \
             more, or LAMBDA_INBOX_PRUNE_FORCE=on where you know better"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn lifetime(consumer: Option<&str>, queue: u32, dead_letters: u32) -> Lifetime {
        Lifetime {
            consumer: consumer.map(|name| Consumer::new(name).unwrap()),
            origin: "orders".into(),
            queue: DAY * queue,
            dead_letters: DAY * dead_letters,
        }
    }

    /// B-15 among them: source 14 days, dead letters 14 days, kept for 14 days.
    #[test]
    fn a_retention_covers_the_queue_and_the_dead_letters_that_come_back() {
        for (keys, queue, dead_letters, is_enough) in [
            (14, 4, 0, true),
            (14, 14, 0, true),
            (13, 14, 0, false),
            (14, 14, 14, false),
            (27, 14, 14, false),
            (28, 14, 14, true),
            (35, 14, 14, true),
        ] {
            let retention = Retention::new(DAY * keys);
            let checked = check(&retention, &[lifetime(None, queue, dead_letters)]);
            assert_eq!(checked.is_ok(), is_enough, "{keys} {queue} {dead_letters}");
        }
    }

    #[test]
    fn a_consumers_queue_counts_for_that_consumer_alone() {
        let edi = Consumer::new("edi").unwrap();
        let retention = Retention::new(DAY * 4).consumer(edi, DAY * 35);
        let lifetimes = [
            lifetime(Some("payments"), 4, 0),
            lifetime(Some("edi"), 14, 14),
        ];
        assert_eq!(check(&retention, &lifetimes), Ok(()));
        let short = check(&retention, &[lifetime(Some("payments"), 14, 0)]).unwrap_err();
        assert_eq!(short.consumer.unwrap().as_str(), "payments");
    }

    #[test]
    fn a_queue_of_nobody_in_particular_counts_for_every_consumer_without_one() {
        let telemetry = Consumer::new("telemetry").unwrap();
        let retention = Retention::default().consumer(telemetry, DAY);
        let everyone = lifetime(None, 4, 0);
        let short = check(&retention, std::slice::from_ref(&everyone)).unwrap_err();
        assert_eq!(short.consumer.unwrap().as_str(), "telemetry");
        let own = lifetime(Some("telemetry"), 1, 0);
        assert_eq!(check(&retention, &[everyone, own]), Ok(()));
    }

    #[test]
    fn the_worst_is_named_with_both_numbers_and_the_variable() {
        let short = check(
            &Retention::new(DAY * 7),
            &[lifetime(None, 10, 0), lifetime(None, 14, 14)],
        );
        let text = short.unwrap_err().to_string();
        for part in [
            "kept for 7d 12h",
            "come back for 28d 12h",
            "14d as dead letters",
            "LAMBDA_INBOX_RETENTION=28d",
            "LAMBDA_INBOX_PRUNE_FORCE=on",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}
