//! Events as Lambda's poller delivers them, because a handler tested with less meets the rest in
//! production.
//!
//! The shape is that of the example events on
//! <https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html>: every number a string, the digests
//! real, the list values of attributes present and empty.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};
use serde_json::{Map, Value, json};
use uuid::Uuid;

const REGION: &str = "eu-central-1";
/// AWS's own placeholder for documentation.
const ACCOUNT: &str = "111122223333";
const DEFAULT_QUEUE: &str = "orders-in";
const SENDER_ID: &str = "AROAEXAMPLEEXAMPLE00:producer";
/// Between sending a message and receiving it for the first time.
const FIRST_RECEIVE_AFTER: Duration = Duration::from_millis(10);

/// One record of an event: a message as it is received.
///
/// ```
/// use lambda_inbox_testkit::event::{Record, event};
///
/// let record = Record::new(r#"{"order": 1}"#).queue("orders.fifo").group("customer-7");
/// let event = event([record.receive_count(2)]);
/// assert_eq!(event["Records"][0]["attributes"]["ApproximateReceiveCount"], "2");
/// ```
#[derive(Clone, Debug)]
#[must_use = "a record is only a description until it is turned into a value"]
pub struct Record {
    body: String,
    message_id: String,
    receive_count: u32,
    sent_at: SystemTime,
    queue: String,
    system_attributes: BTreeMap<&'static str, String>,
    attributes: BTreeMap<String, Attribute>,
}

#[derive(Clone, Debug)]
enum Attribute {
    Text { data_type: String, value: String },
    Binary(Vec<u8>),
}

impl Record {
    /// A message with this body and a random id, sent now to the standard queue `orders-in` and
    /// received for the first time.
    pub fn new(body: impl Into<String>) -> Self {
        Self {
            body: body.into(),
            message_id: Uuid::new_v4().to_string(),
            receive_count: 1,
            sent_at: SystemTime::now(),
            queue: DEFAULT_QUEUE.to_owned(),
            system_attributes: BTreeMap::new(),
            attributes: BTreeMap::new(),
        }
    }

    /// The id that SQS gave the message.
    pub fn message_id(mut self, id: impl Into<String>) -> Self {
        self.message_id = id.into();
        self
    }

    /// How often the message has been received, this time included.
    pub fn receive_count(mut self, count: u32) -> Self {
        self.receive_count = count;
        self
    }

    /// When the message was sent; SQS keeps milliseconds. A time before 1970 becomes 1970.
    pub fn sent_at(mut self, sent_at: SystemTime) -> Self {
        self.sent_at = sent_at;
        self
    }

    /// The message group. Standard queues have groups too, for fairness.
    pub fn group(self, group: impl Into<String>) -> Self {
        self.system_attribute("MessageGroupId", group.into())
    }

    /// The deduplication id, which every message of a FIFO queue has.
    pub fn deduplication_id(self, id: impl Into<String>) -> Self {
        self.system_attribute("MessageDeduplicationId", id.into())
    }

    /// The sequence number, which every message of a FIFO queue has: up to 39 digits.
    pub fn sequence_number(self, number: impl Into<String>) -> Self {
        self.system_attribute("SequenceNumber", number.into())
    }

    /// The producer's X-Ray trace, such as `Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1`.
    pub fn trace_header(self, header: impl Into<String>) -> Self {
        self.system_attribute("AWSTraceHeader", header.into())
    }

    /// A message attribute with a text value; `data_type` is `String`, `Number`, or one of them
    /// with a label (`Number.int`).
    pub fn attribute(
        mut self,
        name: impl Into<String>,
        data_type: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        let attribute = Attribute::Text {
            data_type: data_type.into(),
            value: value.into(),
        };
        self.attributes.insert(name.into(), attribute);
        self
    }

    /// A message attribute of the type `Binary`.
    pub fn binary_attribute(mut self, name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        self.attributes
            .insert(name.into(), Attribute::Binary(bytes.into()));
        self
    }

    /// The name of the queue; one that ends in `.fifo` is a FIFO queue.
    pub fn queue(mut self, name: impl Into<String>) -> Self {
        self.queue = name.into();
        self
    }

    /// The message's id, by which a response names it.
    pub fn id(&self) -> &str {
        &self.message_id
    }

    /// The record as an entry of `Records`. Each call makes a new receipt handle, as each receive
    /// does.
    pub fn to_value(&self) -> Value {
        let mut record = json!({
            "messageId": self.message_id,
            "receiptHandle": STANDARD.encode(Uuid::new_v4()),
            "body": self.body,
            "attributes": self.system_attributes(),
            "messageAttributes": self.message_attributes(),
            "md5OfBody": hexadecimal(&Md5::digest(&self.body)),
            "eventSource": "aws:sqs",
            "eventSourceARN": format!("arn:aws:sqs:{REGION}:{ACCOUNT}:{}", self.queue),
            "awsRegion": REGION,
        });
        if !self.attributes.is_empty() {
            record["md5OfMessageAttributes"] = self.md5_of_attributes().into();
        }
        record
    }

    fn system_attribute(mut self, name: &'static str, value: String) -> Self {
        self.system_attributes.insert(name, value);
        self
    }

    fn system_attributes(&self) -> Map<String, Value> {
        let always = [
            ("ApproximateReceiveCount", self.receive_count.to_string()),
            ("SentTimestamp", milliseconds(self.sent_at)),
            ("SenderId", SENDER_ID.to_owned()),
            (
                "ApproximateFirstReceiveTimestamp",
                milliseconds(self.sent_at + FIRST_RECEIVE_AFTER),
            ),
        ];
        always
            .into_iter()
            .chain(self.system_attributes.clone())
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect()
    }

    fn message_attributes(&self) -> Map<String, Value> {
        self.attributes
            .iter()
            .map(|(name, attribute)| (name.clone(), attribute.to_value()))
            .collect()
    }

    /// "Calculating the MD5 message digest for message attributes" on
    /// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html>.
    fn md5_of_attributes(&self) -> String {
        let mut digest = Md5::new();
        for (name, attribute) in &self.attributes {
            let (kind, value) = match attribute {
                Attribute::Text { value, .. } => (1, value.as_bytes()),
                Attribute::Binary(bytes) => (2, bytes.as_slice()),
            };
            update_with_length(&mut digest, name.as_bytes());
            update_with_length(&mut digest, attribute.data_type().as_bytes());
            digest.update([kind]);
            update_with_length(&mut digest, value);
        }
        hexadecimal(&digest.finalize())
    }
}

impl From<Record> for Value {
    fn from(record: Record) -> Self {
        record.to_value()
    }
}

impl Attribute {
    fn data_type(&self) -> &str {
        match self {
            Self::Text { data_type, .. } => data_type,
            Self::Binary(_) => "Binary",
        }
    }

    fn to_value(&self) -> Value {
        let (name, value) = match self {
            Self::Text { value, .. } => ("stringValue", value.clone()),
            Self::Binary(bytes) => ("binaryValue", STANDARD.encode(bytes)),
        };
        json!({
            name: value,
            "stringListValues": [],
            "binaryListValues": [],
            "dataType": self.data_type(),
        })
    }
}

/// An event of these records, in this order: [`Record`]s, or values where a test needs what SQS
/// would never send.
pub fn event<R: Into<Value>>(records: impl IntoIterator<Item = R>) -> Value {
    json!({ "Records": records.into_iter().map(Into::into).collect::<Vec<Value>>() })
}

fn milliseconds(time: SystemTime) -> String {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_millis()
        .to_string()
}

fn update_with_length(digest: &mut Md5, bytes: &[u8]) {
    // SQS allows a megabyte, so the length always fits.
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    digest.update(length.to_be_bytes());
    digest.update(bytes);
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
