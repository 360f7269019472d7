//! The queues whose messages must not outlive their keys, as configuration names them and as SQS describes
//! them.

use lambda_inbox_store::{Consumer, KeyError};
use std::time::Duration;

/// What SQS keeps a message for at most.
///
/// Source: Amazon SQS API Reference, "SetQueueAttributes", `MessageRetentionPeriod`.
pub(crate) const RETENTION_MAX: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// Whether messages come back from dead-letter queues: by a redrive, or because a consumer reads one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeadLetters {
    /// They stay where they are, or come back as new messages with new keys.
    #[default]
    Stay,
    /// They come back under their keys.
    ComeBack,
}

/// A queue to be asked how long it keeps its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Queue {
    /// Whose it is; `None` where it counts for every consumer.
    pub(crate) consumer: Option<Consumer>,
    pub(crate) address: Address,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Url(String),
    Arn(Arn),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arn {
    pub(crate) region: String,
    pub(crate) account: String,
    pub(crate) name: String,
}

impl Arn {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split(':').collect();
        match parts.as_slice() {
            ["arn", _, "sqs", region, account, name]
                if !region.is_empty() && !account.is_empty() && !name.is_empty() =>
            {
                Some(Self {
                    region: (*region).to_owned(),
                    account: (*account).to_owned(),
                    name: (*name).to_owned(),
                })
            }
            _ => None,
        }
    }
}

impl Address {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.starts_with("https://") || text.starts_with("http://") {
            return Some(Self::Url(text.to_owned()));
        }
        Arn::parse(text).map(Self::Arn)
    }
}

/// `[consumer=]value, ...`. The value may have an equals sign in it where it is a URL, a consumer's name
/// may not.
pub(crate) fn entries(text: &str) -> Result<Vec<(Option<Consumer>, &str)>, KeyError> {
    text.split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
        .map(|entry| match entry.split_once('=') {
            Some((consumer, value)) if !entry.starts_with("http") => {
                Ok((Some(Consumer::new(consumer.trim())?), value.trim()))
            }
            _ => Ok((None, entry)),
        })
        .collect()
}

/// A queue could not be asked how long it keeps its messages.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// Nothing came back in time.
    #[error(
        "SQS at {endpoint} does not answer, so how long queue {queue} keeps its messages is not known; \
         a private subnet needs a VPC endpoint for sqs, or say it with LAMBDA_INBOX_QUEUE_RETENTION"
    )]
    Unreachable {
        /// The queue's name.
        queue: String,
        /// Where it was asked.
        endpoint: String,
        /// The SDK's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// SQS refused.
    #[error(
        "SQS does not tell how long queue {queue} keeps its messages; check its address, and allow \
         the function's role sqs:GetQueueAttributes and sqs:GetQueueUrl on it, or say it with \
         LAMBDA_INBOX_QUEUE_RETENTION"
    )]
    Refused {
        /// The queue's name.
        queue: String,
        /// What SQS said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The function was built without the AWS SDK.
    #[error(
        "this function was built without the feature sqs and cannot ask queues; say how long they \
         keep their messages with LAMBDA_INBOX_QUEUE_RETENTION"
    )]
    NotBuiltIn,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_named_by_url_or_arn_and_may_have_a_consumer() {
        let text = "https://sqs.eu-central-1.amazonaws.com/111122223333/orders?a=b, \
                    edi=arn:aws:sqs:eu-central-1:111122223333:edi.fifo,";
        let entries = entries(text).unwrap();
        let names: Vec<(Option<&str>, String)> = entries
            .iter()
            .map(|(consumer, value)| {
                let name = match Address::parse(value).unwrap() {
                    Address::Url(url) => url,
                    Address::Arn(arn) => arn.name,
                };
                (consumer.as_ref().map(Consumer::as_str), name)
            })
            .collect();
        assert_eq!(
            names,
            [
                (
                    None,
                    "https://sqs.eu-central-1.amazonaws.com/111122223333/orders?a=b".to_owned()
                ),
                (Some("edi"), "edi.fifo".to_owned())
            ]
        );
        for text in [
            "orders",
            "arn:aws:sns:eu-central-1:111122223333:topic",
            "arn:aws:sqs:::",
        ] {
            assert_eq!(Address::parse(text), None, "{text}");
        }
    }
}
