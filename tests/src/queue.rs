//! A queue with its dead-letter queue.

use crate::emulator::Emulator;
use crate::wait::eventually;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// What a test may want to be different.
#[derive(Clone, Copy, Debug)]
pub struct QueueSettings {
    /// How long a received message stays hidden. Above what a run takes, or runs overlap.
    pub visibility: Duration,
    /// How often a message is handed out.
    pub max_receive_count: u32,
    /// Whether both are FIFO queues.
    pub fifo: bool,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            visibility: Duration::from_secs(10),
            max_receive_count: 3,
            fifo: false,
        }
    }
}

/// A queue with its dead-letter queue.
#[derive(Debug)]
pub struct Queue {
    emulator: Emulator,
    url: String,
    arn: String,
    dead_letters_url: String,
}

impl Queue {
    /// Creates both.
    pub async fn create(emulator: &Emulator, name: &str, settings: QueueSettings) -> Self {
        let suffix = if settings.fifo { ".fifo" } else { "" };
        let create = async |name: String, mut attributes: Value| {
            if settings.fifo {
                attributes["FifoQueue"] = "true".into();
            }
            let input = json!({ "QueueName": name, "Attributes": attributes });
            let created = emulator.sqs("CreateQueue", &input).await;
            let url = created["QueueUrl"].as_str().expect("a URL").to_owned();
            let arn = attribute(emulator, &url, "QueueArn").await;
            (url, arn)
        };
        let name = emulator.unique(name);
        let (dead_letters_url, dead_letters_arn) =
            create(format!("{name}-dead{suffix}"), json!({})).await;
        let policy = json!({
            "deadLetterTargetArn": dead_letters_arn,
            "maxReceiveCount": settings.max_receive_count,
        });
        let attributes = json!({
            "VisibilityTimeout": settings.visibility.as_secs().to_string(),
            "RedrivePolicy": policy.to_string(),
        });
        let (url, arn) = create(format!("{name}{suffix}"), attributes).await;
        Self {
            emulator: emulator.clone(),
            url,
            arn,
            dead_letters_url,
        }
    }

    /// Two queues that exist already.
    pub async fn at(emulator: &Emulator, url: &str, dead_letters_url: &str) -> Self {
        Self {
            emulator: emulator.clone(),
            url: url.to_owned(),
            arn: attribute(emulator, url, "QueueArn").await,
            dead_letters_url: dead_letters_url.to_owned(),
        }
    }

    /// The queue's URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The queue's ARN.
    pub fn arn(&self) -> &str {
        &self.arn
    }

    /// Sends a message, and returns its MessageId.
    pub async fn send(&self, body: &str) -> String {
        self.send_with(json!({ "MessageBody": body })).await
    }

    /// Sends a message with more than a body: fields of `SendMessage`.
    pub async fn send_with(&self, mut input: Value) -> String {
        input["QueueUrl"] = self.url.as_str().into();
        let sent = self.emulator.sqs("SendMessage", &input).await;
        sent["MessageId"].as_str().expect("an id").to_owned()
    }

    /// Returns when nothing is left in the queue, hidden or not.
    pub async fn wait_until_empty(&self) {
        eventually("messages in the queue", 0, async || {
            depth(&self.emulator, &self.url).await
        })
        .await;
    }

    /// Messages in the queue, hidden ones among them.
    pub async fn depth(&self) -> u64 {
        depth(&self.emulator, &self.url).await
    }

    /// Returns when as many dead letters as `expected` are there, with exactly these bodies.
    ///
    /// # Panics
    /// Where they do not come, or others do.
    pub async fn assert_dead_letters(&self, expected: impl IntoIterator<Item = String>) {
        let expected: BTreeSet<String> = expected.into_iter().collect();
        let count = expected.len() as u64;
        eventually("dead letters", count, async || {
            depth(&self.emulator, &self.dead_letters_url).await
        })
        .await;
        let mut found = BTreeSet::new();
        while found.len() < expected.len() {
            let input = json!({
                "QueueUrl": self.dead_letters_url, "MaxNumberOfMessages": 10,
                "VisibilityTimeout": 600, "WaitTimeSeconds": 1,
            });
            let received = self.emulator.sqs("ReceiveMessage", &input).await;
            let messages = received["Messages"].as_array().cloned().unwrap_or_default();
            assert!(
                !messages.is_empty(),
                "only these came: {found:?}, of {expected:?}"
            );
            found.extend(messages.iter().map(body));
        }
        assert_eq!(found, expected);
    }
}

fn body(message: &Value) -> String {
    message["Body"].as_str().expect("a body").to_owned()
}

async fn attribute(emulator: &Emulator, url: &str, name: &str) -> String {
    let input = json!({ "QueueUrl": url, "AttributeNames": [name] });
    let attributes = emulator.sqs("GetQueueAttributes", &input).await;
    let value = attributes["Attributes"][name].as_str();
    value.expect("the attribute").to_owned()
}

async fn depth(emulator: &Emulator, url: &str) -> u64 {
    let input = json!({ "QueueUrl": url, "AttributeNames": ["All"] });
    let answer = emulator.sqs("GetQueueAttributes", &input).await;
    let attributes = &answer["Attributes"];
    ["", "NotVisible", "Delayed"]
        .iter()
        .map(|kind| &attributes[format!("ApproximateNumberOfMessages{kind}")])
        .map(|number| number.as_str().expect("a number").parse::<u64>().unwrap())
        .sum()
}
