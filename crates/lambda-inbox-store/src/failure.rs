//! The failure log: an optional record of what went wrong, for people. It is written after the roll-back,
//! in a transaction of its own, and nothing depends on it: a log that cannot be written changes no
//! outcome.

use crate::begin::milliseconds;
use crate::connection::Connection;
use crate::error::sqlstate;
use crate::key::{Consumer, Key};
use crate::literal::Arguments;
use crate::schema::Schema;
use crate::table::{Profile, Table};
use sqlx::AssertSqlSafe;
use tokio::time::{Instant, timeout_at};

/// The most characters of an error's text that are kept.
const ERROR_CHARACTERS_MAX: usize = 2_000;

/// One row of the failure log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedMessage {
    /// The key; `None` where the record has none.
    pub key: Option<Key>,
    /// The SQS MessageId; `None` where the record has none.
    pub transport_message_id: Option<String>,
    /// The outcome's word.
    pub outcome: &'static str,
    /// The server's code, where a statement failed.
    pub sqlstate: Option<String>,
    /// What went wrong, without the body and without the server's DETAIL. Cut after 2,000 characters; NUL
    /// characters, which Postgres cannot store, are left out.
    pub error: String,
    /// How often SQS had handed the message out.
    pub receive_count: u32,
}

impl Connection {
    /// Writes a batch's failures in one round trip. The server gives up at `until`, so that nothing waits
    /// on in it; behind a pooler it is the role's timeouts that see to that. Comes back with the
    /// connection where it is still good.
    ///
    /// Cancel safe: a dropped call closes the connection; the rows are written all or not at all.
    ///
    /// # Errors
    /// [`FailureLogError`], which may be ignored.
    pub async fn log_failures(
        mut self,
        consumer: &Consumer,
        failed: &[FailedMessage],
        until: Instant,
    ) -> (Option<Self>, Result<(), FailureLogError>) {
        let Table {
            schema, profile, ..
        } = self.shared.table();
        let insert = insert(schema, consumer, failed);
        let sql = match profile {
            Profile::Direct => format!("{}; {insert}", settings(until)),
            Profile::Pooled => insert,
        };
        let sent = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut self.session.pg);
        match timeout_at(until + ANSWER_WAIT, sent).await {
            Ok(Ok(_)) => (Some(self), Ok(())),
            // An answer of the server's own, so the connection is as it was.
            Ok(Err(error)) if sqlstate(&error).is_some_and(|code| !code.starts_with("57P")) => {
                (Some(self), Err(FailureLogError::Refused(error)))
            }
            Ok(Err(error)) => (None, Err(FailureLogError::Refused(error))),
            Err(_) => (None, Err(FailureLogError::NoAnswer)),
        }
    }
}

/// For the server's own answer that the time is up.
const ANSWER_WAIT: std::time::Duration = std::time::Duration::from_millis(50);

/// Several statements in one query are one transaction, which ends with the query whatever becomes of
/// it, and these settings with it.
fn settings(until: Instant) -> String {
    let left = until.saturating_duration_since(Instant::now());
    format!(
        "SET LOCAL transaction_read_only = off; SET LOCAL statement_timeout = {}; \
         SET LOCAL synchronous_commit = off",
        milliseconds(left)
    )
}

fn insert(schema: &Schema, consumer: &Consumer, failed: &[FailedMessage]) -> String {
    let keys = || failed.iter().map(|row| row.key.as_ref());
    let errors: Vec<String> = failed.iter().map(|row| shown(&row.error)).collect();
    let arguments = Arguments::default()
        .text(Some(consumer.as_str()))
        .texts(keys().map(|key| key.map(Key::source)))
        .texts(keys().map(|key| key.map(Key::message_id)))
        .texts(failed.iter().map(|row| row.transport_message_id.as_deref()))
        .texts(failed.iter().map(|row| Some(row.outcome)))
        .texts(failed.iter().map(|row| row.sqlstate.as_deref()))
        .texts(errors.iter().map(|error| Some(error.as_str())))
        .numbers(failed.iter().map(|row| Some(i64::from(row.receive_count))));
    let (consumer, columns) = arguments.literals().split_at(1);
    format!(
        "INSERT INTO {}.inbox_failure (consumer, source, message_id, transport_message_id, outcome, \
           sqlstate, error, receive_count) \
         SELECT {}, r.* FROM ROWS FROM ({}) AS r",
        schema.quoted(),
        consumer.concat(),
        columns
            .iter()
            .map(|column| format!("unnest({column})"))
            .collect::<Vec<_>>()
            .join(", ")
    )
}

fn shown(error: &str) -> String {
    error
        .chars()
        .filter(|c| *c != '\0')
        .take(ERROR_CHARACTERS_MAX)
        .collect()
}

/// The failure log was not written. Nothing depends on it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FailureLogError {
    /// The server refused it, or the connection broke.
    #[error(
        "the failure log was not written; run the migrations, grant the role INSERT on \
         inbox_failure, or switch the log off"
    )]
    Refused(#[source] sqlx::Error),
    /// There was no answer in time; the connection is closed.
    #[error("the failure log was not written in time")]
    NoAnswer,
}
