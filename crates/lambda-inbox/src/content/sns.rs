//! Source: SNS Developer Guide, "HTTP/HTTPS notification JSON format", which SQS subscriptions without
//! raw message delivery get too.

use super::EnvelopeProblem;
use serde::Deserialize;
use std::collections::HashMap;

/// An SNS notification, without its message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnsEnvelope {
    /// SNS's id of the message, the same for every subscription and every retry of SNS's own.
    pub message_id: String,
    /// The topic.
    pub topic_arn: String,
    /// The subject, where the publisher gave one.
    pub subject: Option<String>,
    /// When SNS took the message, as SNS wrote it.
    pub timestamp: Option<String>,
    /// The publisher's message attributes.
    pub attributes: HashMap<String, SnsAttribute>,
}

/// One message attribute as SNS writes it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct SnsAttribute {
    /// `String`, `Number`, `Binary` or `String.Array`.
    #[serde(rename = "Type")]
    pub data_type: String,
    /// The value; base64 for Binary.
    #[serde(rename = "Value")]
    pub value: String,
}

pub(super) fn parse(body: &str) -> Result<(SnsEnvelope, String), EnvelopeProblem> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Fields {
        r#type: Option<String>,
        message_id: Option<String>,
        topic_arn: Option<String>,
        message: Option<String>,
        subject: Option<String>,
        timestamp: Option<String>,
        message_attributes: Option<HashMap<String, SnsAttribute>>,
    }
    let fields: Fields = serde_json::from_str(body).map_err(|_| EnvelopeProblem::NotAnObject)?;
    match fields.r#type.as_deref() {
        Some("Notification") => {}
        Some(_) => return Err(EnvelopeProblem::NotANotification),
        None => return Err(EnvelopeProblem::RawDelivery),
    }
    let text = |name, value: Option<String>| {
        value
            .filter(|value| !value.is_empty())
            .ok_or(EnvelopeProblem::Field(name))
    };
    let envelope = SnsEnvelope {
        message_id: text("MessageId", fields.message_id)?,
        topic_arn: text("TopicArn", fields.topic_arn)?,
        subject: fields.subject,
        timestamp: fields.timestamp,
        attributes: fields.message_attributes.unwrap_or_default(),
    };
    Ok((
        envelope,
        fields.message.ok_or(EnvelopeProblem::Field("Message"))?,
    ))
}
