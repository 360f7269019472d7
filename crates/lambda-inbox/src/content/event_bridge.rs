//! Source: EventBridge User Guide, "AWS service event metadata" and "Archiving and replaying events".

use super::EnvelopeProblem;
use serde::Deserialize;
use serde_json::value::RawValue;

/// An EventBridge event, without its detail.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventBridgeEnvelope {
    /// EventBridge's id of the event. A delivery retry and a replay keep it; a producer that puts the
    /// event again gets another.
    pub id: String,
    /// The producer's name of itself, such as `shop.orders`.
    pub source: String,
    /// What happened.
    pub detail_type: String,
    /// When, as EventBridge wrote it.
    pub time: Option<String>,
    /// The account it came from.
    pub account: Option<String>,
    /// The replay that sent it again, if one did.
    pub replay_name: Option<String>,
}

pub(super) fn parse(body: &str) -> Result<(EventBridgeEnvelope, String), EnvelopeProblem> {
    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    struct Fields<'a> {
        id: Option<String>,
        source: Option<String>,
        detail_type: Option<String>,
        #[serde(borrow)]
        detail: Option<&'a RawValue>,
        time: Option<String>,
        account: Option<String>,
        replay_name: Option<String>,
    }
    let fields: Fields<'_> =
        serde_json::from_str(body).map_err(|_| EnvelopeProblem::NotAnObject)?;
    let text = |name, value: Option<String>| {
        value
            .filter(|value| !value.is_empty())
            .ok_or(EnvelopeProblem::Field(name))
    };
    let envelope = EventBridgeEnvelope {
        id: text("id", fields.id)?,
        source: text("source", fields.source)?,
        detail_type: text("detail-type", fields.detail_type)?,
        time: fields.time,
        account: fields.account,
        replay_name: fields.replay_name,
    };
    let detail = fields.detail.ok_or(EnvelopeProblem::Field("detail"))?;
    Ok((envelope, detail.get().to_owned()))
}
