//! What an invocation may say beside the environment.

use crate::duration::parse;
use crate::error::FunctionError;
use crate::settings::Settings;
use lambda_inbox_store::{Consumer, Retention};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// The input of the prune. Every field may be left out.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Overrides {
    retention: Option<String>,
    retentions: BTreeMap<String, String>,
    failure_retention: Option<String>,
    batch_rows: Option<u32>,
    pub(crate) dry_run: bool,
    force: Option<bool>,
}

impl Overrides {
    /// Takes any JSON: what EventBridge sends by itself says nothing to us. But an object that is meant
    /// for us is read strictly: `dry-run` where `dry_run` is meant must not delete anything.
    pub(crate) fn read(event: Value) -> Result<Self, FunctionError> {
        match &event {
            Value::Object(fields) if !is_of_event_bridge(fields) => {
                serde_json::from_value(event).map_err(FunctionError::Input)
            }
            Value::Object(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Ok(Self::default()),
        }
    }

    /// The settings with what the input says in their place.
    pub(crate) fn apply(&self, mut settings: Settings) -> Result<Settings, FunctionError> {
        let before = &settings.retention;
        let keys = match &self.retention {
            Some(text) => duration("retention", text)?,
            None => before.of_others(),
        };
        let failures = match &self.failure_retention {
            Some(text) => duration("failure_retention", text)?,
            None => before.of_failures(),
        };
        let mut retention = Retention::new(keys).failures(failures);
        for (consumer, keys) in before.consumers() {
            retention = retention.consumer(consumer.clone(), keys);
        }
        for (name, text) in &self.retentions {
            let consumer = Consumer::new(name.as_str()).map_err(FunctionError::Consumer)?;
            retention = retention.consumer(consumer, duration("retentions", text)?);
        }
        settings.retention = retention;
        settings.batch_rows = self.batch_rows.unwrap_or(settings.batch_rows);
        settings.force = self.force.unwrap_or(settings.force);
        Ok(settings)
    }
}

/// Source: Amazon EventBridge User Guide, "AWS service event metadata".
fn is_of_event_bridge(fields: &serde_json::Map<String, Value>) -> bool {
    fields.contains_key("detail-type") && fields.contains_key("source")
}

fn duration(field: &'static str, text: &str) -> Result<Duration, FunctionError> {
    parse(text).ok_or_else(|| FunctionError::Duration {
        field,
        value: text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whatever_is_not_meant_for_us_overrides_nothing() {
        let scheduled = json!({
            "version": "0", "id": "a", "detail-type": "Scheduled Event", "source": "aws.events",
            "account": "111122223333", "time": "2026-11-30T00:00:00Z", "region": "eu-central-1",
            "resources": [], "detail": {},
        });
        for event in [
            scheduled,
            json!({}),
            json!(null),
            json!("x"),
            json!([1]),
            json!(7),
        ] {
            let overrides = Overrides::read(event.clone()).unwrap();
            assert!(
                !overrides.dry_run && overrides.retention.is_none(),
                "{event}"
            );
        }
    }

    #[test]
    fn a_field_that_is_not_known_is_refused_with_the_known_ones() {
        for event in [
            json!({"dry-run": true}),
            json!({"Retention": "1d"}),
            json!({"dry_run": "yes"}),
        ] {
            let error = Overrides::read(event).unwrap_err();
            let text = crate::chain::chain(&error);
            assert!(
                text.contains("dry_run") || text.contains("boolean"),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_said_takes_the_place_of_the_environments() {
        let overrides = Overrides::read(json!({
            "retention": "21d", "retentions": {"edi": "40d"}, "batch_rows": 10, "force": true,
            "failure_retention": "5d", "dry_run": true,
        }));
        let overrides = overrides.unwrap();
        assert!(overrides.dry_run);
        let variables = |name: &str| match name {
            "LAMBDA_INBOX_RETENTION_PER_CONSUMER" => Some("edi=35d,other=36d".to_owned()),
            _ => None,
        };
        let settings = overrides.apply(Settings::read(variables).unwrap()).unwrap();
        let of = |name: &str| {
            let consumer = Consumer::new(name).unwrap();
            settings.retention.of(&consumer).as_secs() / 86_400
        };
        assert_eq!((of("edi"), of("other"), of("payments")), (40, 36, 21));
        assert_eq!(settings.retention.of_failures().as_secs(), 5 * 86_400);
        assert_eq!((settings.batch_rows, settings.force), (10, true));
    }
}
