//! From what SQS says of a queue to how long its messages can come back.

use crate::guard::Lifetime;
use crate::queues::{Address, Arn, DeadLetters, Queue};
use std::collections::HashMap;
use std::time::Duration;

/// What SQS keeps a message for where nothing is set.
///
/// Source: Amazon SQS API Reference, "SetQueueAttributes", `MessageRetentionPeriod`.
const RETENTION_DEFAULT: Duration = Duration::from_secs(4 * 24 * 60 * 60);

impl Address {
    /// The queue's name.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Url(url) => url.rsplit('/').next().unwrap_or(url),
            Self::Arn(arn) => &arn.name,
        }
    }
}

/// What SQS says of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attributes {
    pub(crate) retention: Duration,
    pub(crate) dead_letter_queue: Option<Arn>,
}

impl Attributes {
    pub(crate) fn new(attributes: &HashMap<String, String>) -> Self {
        #[derive(serde::Deserialize)]
        struct RedrivePolicy {
            #[serde(rename = "deadLetterTargetArn")]
            target: String,
        }
        let retention = attributes
            .get("MessageRetentionPeriod")
            .and_then(|seconds| seconds.parse().ok())
            .map_or(RETENTION_DEFAULT, Duration::from_secs);
        let policy = attributes.get("RedrivePolicy");
        let policy = policy.and_then(|json| serde_json::from_str::<RedrivePolicy>(json).ok());
        Self {
            retention,
            dead_letter_queue: policy.and_then(|policy| Arn::parse(&policy.target)),
        }
    }
}

/// Whether the dead-letter queue's time counts: a FIFO queue's clock starts over on the move to it, and
/// otherwise only what comes back from there matters.
pub(crate) fn dead_letters_count(queue: &Address, dead_letters: DeadLetters) -> bool {
    dead_letters == DeadLetters::ComeBack || queue.name().ends_with(".fifo")
}

pub(crate) fn lifetime(
    queue: &Queue,
    attributes: &Attributes,
    dead_letter_queue: Option<&Attributes>,
) -> Lifetime {
    Lifetime {
        consumer: queue.consumer.clone(),
        origin: format!("queue {}", queue.address.name()),
        queue: attributes.retention,
        dead_letters: dead_letter_queue.map_or(Duration::ZERO, |dead| dead.retention),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queues::RETENTION_MAX;

    #[test]
    fn the_dead_letter_queue_counts_on_fifo_queues_and_where_messages_come_back() {
        for (name, dead_letters, counts) in [
            ("orders", DeadLetters::Stay, false),
            ("orders", DeadLetters::ComeBack, true),
            ("orders.fifo", DeadLetters::Stay, true),
        ] {
            let arn = format!("arn:aws:sqs:eu-central-1:111122223333:{name}");
            let address = Address::parse(&arn).unwrap();
            assert_eq!(dead_letters_count(&address, dead_letters), counts, "{name}");
        }
    }

    #[test]
    fn what_sqs_says_is_read_and_what_it_leaves_out_is_its_default() {
        let attributes = |pairs: &[(&str, &str)]| {
            let pairs = pairs
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
            Attributes::new(&pairs.collect())
        };
        let policy = r#"{"deadLetterTargetArn":"arn:aws:sqs:eu-central-1:111122223333:dead","maxReceiveCount":5}"#;
        let read = attributes(&[
            ("MessageRetentionPeriod", "1209600"),
            ("RedrivePolicy", policy),
        ]);
        assert_eq!(read.retention, RETENTION_MAX);
        assert_eq!(read.dead_letter_queue.unwrap().name, "dead");
        let read = attributes(&[]);
        assert_eq!(
            (read.retention, read.dead_letter_queue),
            (RETENTION_DEFAULT, None)
        );
    }
}
