//! Configuration by environment variables, the way a deployed function gets it.

use crate::builder::{BuildError, InboxBuilder};
use crate::inbox::{Inbox, MismatchPolicy, OutagePolicy, Scope};
use lambda_inbox_rds::{SettingsError, Source};
use lambda_inbox_store::{Layout, SchemaError};
use std::time::Duration;

const SCHEMA: &str = "LAMBDA_INBOX_SCHEMA";
const CONNECTIONS: &str = "LAMBDA_INBOX_CONNECTIONS";
const CLAIM_WAIT: &str = "LAMBDA_INBOX_CLAIM_WAIT_MS";
const SETTLE_MARGIN: &str = "LAMBDA_INBOX_SETTLE_MARGIN_MS";
const RESERVE: &str = "LAMBDA_INBOX_RESERVE_MS";
const SCOPE: &str = "LAMBDA_INBOX_SCOPE";
const OUTAGE: &str = "LAMBDA_INBOX_OUTAGE_POLICY";
const MISMATCH: &str = "LAMBDA_INBOX_MISMATCH_POLICY";
const FAILURE_LOG: &str = "LAMBDA_INBOX_FAILURE_LOG";
const LAYOUT: &str = "LAMBDA_INBOX_LAYOUT";

impl Inbox {
    /// An inbox for `consumer`, configured by the environment: the database as
    /// [`Source::from_env`] reads it, such as `DATABASE_URL`, and optionally
    /// `LAMBDA_INBOX_SCHEMA`, `LAMBDA_INBOX_CONNECTIONS`, `LAMBDA_INBOX_CLAIM_WAIT_MS`,
    /// `LAMBDA_INBOX_SETTLE_MARGIN_MS`, `LAMBDA_INBOX_RESERVE_MS`, `LAMBDA_INBOX_SCOPE` (`per-message`
    /// or `per-batch`), `LAMBDA_INBOX_OUTAGE_POLICY`
    /// (`fail-invocation` or `report-each`), `LAMBDA_INBOX_MISMATCH_POLICY` (`report` or `skip`)
    /// `LAMBDA_INBOX_FAILURE_LOG` (`on` or `off`) and `LAMBDA_INBOX_LAYOUT` (`keyed` or
    /// `time-ordered`).
    /// Never connects.
    ///
    /// # Errors
    /// [`EnvError`] that names the variable and its rule.
    pub fn from_env(consumer: impl Into<String>) -> Result<Self, EnvError> {
        Ok(Self::builder_from_env(consumer)?.build()?)
    }

    /// As [`Inbox::from_env`], for settings that are code, such as the key.
    ///
    /// # Errors
    /// [`EnvError`] that names the variable and its rule.
    pub fn builder_from_env(consumer: impl Into<String>) -> Result<InboxBuilder, EnvError> {
        builder(consumer.into(), |name| std::env::var(name).ok())
    }
}

fn builder(
    consumer: String,
    read: impl Fn(&str) -> Option<String>,
) -> Result<InboxBuilder, EnvError> {
    let read = |name: &'static str| read(name).filter(|value| !value.is_empty());
    let source = Source::from_variables(read)?;
    let mut builder = Inbox::builder_with_source(consumer, source);
    if let Some(schema) = read(SCHEMA) {
        builder = builder.schema(schema.parse()?);
    }
    if let Some(connections) = number(CONNECTIONS, &read)? {
        builder = builder.connections(usize::try_from(connections).unwrap_or(usize::MAX));
    }
    if let Some(milliseconds) = number(CLAIM_WAIT, &read)? {
        builder = builder.claim_wait(Duration::from_millis(milliseconds));
    }
    if let Some(milliseconds) = number(SETTLE_MARGIN, &read)? {
        builder = builder.settle_margin(Duration::from_millis(milliseconds));
    }
    if let Some(milliseconds) = number(RESERVE, &read)? {
        builder = builder.reserve(Duration::from_millis(milliseconds));
    }
    if let Some(scope) = read(SCOPE) {
        builder = builder.scope(match scope.as_str() {
            "per-message" => Scope::PerMessage,
            "per-batch" => Scope::PerBatch,
            _ => return Err(invalid(SCOPE, scope, "per-message or per-batch")),
        });
    }
    if let Some(policy) = read(OUTAGE) {
        builder = builder.outage_policy(match policy.as_str() {
            "fail-invocation" => OutagePolicy::FailInvocation,
            "report-each" => OutagePolicy::ReportEach,
            _ => return Err(invalid(OUTAGE, policy, "fail-invocation or report-each")),
        });
    }
    if let Some(policy) = read(MISMATCH) {
        builder = builder.mismatch_policy(match policy.as_str() {
            "report" => MismatchPolicy::Report,
            "skip" => MismatchPolicy::Skip,
            _ => return Err(invalid(MISMATCH, policy, "report or skip")),
        });
    }
    if let Some(layout) = read(LAYOUT) {
        builder = builder.layout(match layout.as_str() {
            "keyed" => Layout::Keyed,
            "time-ordered" => Layout::TimeOrdered,
            _ => return Err(invalid(LAYOUT, layout, "keyed or time-ordered")),
        });
    }
    if let Some(word) = read(FAILURE_LOG) {
        builder = builder.failure_log(match word.as_str() {
            "on" => true,
            "off" => false,
            _ => return Err(invalid(FAILURE_LOG, word, "on or off")),
        });
    }
    Ok(builder)
}

fn number(
    name: &'static str,
    read: &impl Fn(&'static str) -> Option<String>,
) -> Result<Option<u64>, EnvError> {
    read(name)
        .map(|value| {
            value
                .parse()
                .map_err(|_| invalid(name, value, "a whole number"))
        })
        .transpose()
}

fn invalid(name: &'static str, value: String, expected: &'static str) -> EnvError {
    EnvError::Invalid {
        name,
        value,
        expected,
    }
}

/// The environment does not describe an inbox.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvError {
    /// The database is not named, or not as it should be.
    #[error(transparent)]
    Database(#[from] SettingsError),
    /// A variable's value.
    #[error("{name} is {value:?}, expected {expected}")]
    Invalid {
        /// The variable.
        name: &'static str,
        /// What it says.
        value: String,
        /// What it may say.
        expected: &'static str,
    },
    /// The schema's name.
    #[error("{SCHEMA} cannot be used")]
    Schema(#[from] SchemaError),
    /// Values that do not go together.
    #[error("the inbox's settings cannot work")]
    Build(#[from] BuildError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn build(variables: &[(&str, &str)]) -> Result<Inbox, EnvError> {
        let variables: HashMap<_, _> = variables.iter().copied().collect();
        let builder = builder("payments".into(), |name| {
            variables.get(name).map(|v| (*v).to_owned())
        })?;
        Ok(builder.build()?)
    }

    const URL: (&str, &str) = ("DATABASE_URL", "postgres://app:secret@db.example:5432/shop");

    #[test]
    fn every_variable_is_read() {
        let inbox = build(&[
            URL,
            (SCHEMA, "other"),
            (CONNECTIONS, "4"),
            (CLAIM_WAIT, "100"),
            (SETTLE_MARGIN, "200"),
            (RESERVE, "3000"),
            (SCOPE, "per-batch"),
            (OUTAGE, "report-each"),
            (MISMATCH, "skip"),
            (FAILURE_LOG, "on"),
            (LAYOUT, "time-ordered"),
            ("LAMBDA_INBOX_DB_POOLED", "on"),
        ])
        .unwrap();
        let settings = &inbox.settings;
        assert_eq!(settings.store.schema().name(), "other");
        assert_eq!(settings.connections.get(), 4);
        assert_eq!(settings.timing.claim_wait, Duration::from_millis(100));
        assert_eq!(settings.timing.settle_margin, Duration::from_millis(200));
        assert_eq!(settings.timing.reserve, Duration::from_secs(3));
        assert_eq!(settings.scope, Scope::PerBatch);
        assert_eq!(settings.outage, OutagePolicy::ReportEach);
        assert_eq!(settings.mismatch, MismatchPolicy::Skip);
        assert!(settings.failure_log);
        assert_eq!(settings.store.table().layout, Layout::TimeOrdered);
        let profile = settings.store.table().profile;
        assert_eq!(profile, lambda_inbox_store::Profile::Pooled);
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_rule_and_never_shows_the_password() {
        let cases: [(&[(&str, &str)], &str); 7] = [
            (&[], "DATABASE_URL is not set"),
            (
                &[("DATABASE_URL", "postgres://app:secret#w/x@db/shop")],
                "%23",
            ),
            (&[("DATABASE_URL", "secret")], "postgres://"),
            (&[URL, (SCHEMA, "a b")], "letters, digits"),
            (&[URL, (CONNECTIONS, "two")], "a whole number"),
            (&[URL, (OUTAGE, "ignore")], "report-each"),
            (&[URL, (RESERVE, "100")], "at most reserve"),
        ];
        for (variables, text) in cases {
            let error = crate::error::chain(&build(variables).unwrap_err());
            assert!(error.contains(text), "{variables:?}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn the_password_is_in_no_debug_output() {
        let inbox = build(&[URL]).unwrap();
        assert!(!format!("{inbox:?}").contains("secret"));
    }
}
