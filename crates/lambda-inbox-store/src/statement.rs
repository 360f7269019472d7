//! The whole consumer is one SQL statement over the fresh messages. Claim and effect go out together as
//! one statement, which is its own transaction: one round trip a batch, and nothing to settle.

use crate::begin::milliseconds;
use crate::claim::{Entry, Failure};
use crate::claim_many::{Columns, Part, RowClaim, Rows};
use crate::connection::Connection;
use crate::error::{Class, Stage, StoreError};
use crate::key::Key;
use crate::schema::Schema;
use crate::statements::composed;
use sqlx::SqlStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How long a composed statement may run in the server. Set once a connection: one limit per invocation
/// would cost the round trip that this scope saves. The client's own deadline closes the socket.
const STATEMENT_MAX: Duration = Duration::from_secs(30);

/// A user's statement, composed with the claim.
#[derive(Clone, Debug)]
pub struct Statement {
    sql: SqlStr,
}

/// One message as the relation `fresh` shows it.
#[derive(Clone, Debug)]
pub struct FreshRow {
    /// The row to be claimed.
    pub entry: Arc<Entry>,
    /// The body, which must be JSON that `jsonb` takes.
    pub body: String,
    /// `receive_count`.
    pub receive_count: i32,
    /// `group_id`.
    pub group_id: Option<String>,
}

impl Statement {
    /// Composes `sql` with the claim in `schema`. It is one INSERT, UPDATE or DELETE that reads the
    /// relation `fresh`: `position`, `message_id` (the SQS MessageId), `source` and `key` (the
    /// inbox key), `body jsonb`, `sent_at`, `receive_count`, `group_id`.
    ///
    /// # Errors
    /// [`StatementError`] where it is none of these, or more than one statement.
    pub fn new(sql: &str, schema: &Schema) -> Result<Self, StatementError> {
        let sql = sql.trim().trim_end_matches(';').trim_end();
        let verb = sql.split_whitespace().next().unwrap_or_default();
        if !["INSERT", "UPDATE", "DELETE"]
            .iter()
            .any(|known| verb.eq_ignore_ascii_case(known))
        {
            return Err(StatementError::Verb);
        }
        if sql.contains(';') {
            return Err(StatementError::Several);
        }
        Ok(Self {
            sql: composed(schema, sql),
        })
    }
}

/// A text that cannot be composed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StatementError {
    /// It begins with another word. Of a SELECT Postgres would run nothing.
    #[error("the statement must begin with INSERT, UPDATE or DELETE")]
    Verb,
    /// A semicolon within it, which may also stand in a text: pass such texts as parameters of a
    /// function, or write them as `chr(59)`.
    #[error(
        "the statement has a semicolon in it; it must be one statement (write chr(59) in texts)"
    )]
    Several,
}

impl Connection {
    /// Claims the rows and runs the statement over those that were won. When this returns, both are
    /// durable. One round trip; one more on a connection's first use, and where rows committed while
    /// the claim waited for them.
    ///
    /// # Errors
    /// [`Failure`] with stage [`Stage::Statement`]: nothing is stored, unless its class is
    /// [`Class::Connection`], which leaves that open.
    pub async fn run_statement(
        mut self,
        statement: &Statement,
        rows: &[FreshRow],
        wait: Duration,
        until: Instant,
    ) -> Result<(Vec<RowClaim>, Connection), Box<Failure>> {
        let failed = |error, connection| Err(Box::new(Failure { error, connection }));
        if let Err(error) = self.prepare_session(until).await {
            return failed(error, None);
        }
        match timeout_at(until, self.send_statement(statement, rows, wait)).await {
            Ok(Ok(claims)) => Ok((claims, self)),
            Ok(Err(error)) if error.class() == Class::Connection => failed(error, None),
            Ok(Err(error)) => failed(error, Some(self)),
            Err(_) => failed(StoreError::no_answer(Stage::Statement), None),
        }
    }

    /// The statement's own transaction takes its properties from the session.
    async fn prepare_session(&mut self, until: Instant) -> Result<(), StoreError> {
        if self.session.runs_statements {
            return Ok(());
        }
        let sql = format!(
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE; \
             SET synchronous_commit = on; SET statement_timeout = {}; \
             SET client_connection_check_interval = 100",
            milliseconds(STATEMENT_MAX)
        );
        let sent = sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut self.session.pg);
        match timeout_at(until, sent).await {
            Ok(Ok(_)) => self.session.runs_statements = true,
            Ok(Err(error)) => return Err(StoreError::new(Stage::Begin, error)),
            Err(_) => return Err(StoreError::no_answer(Stage::Begin)),
        }
        Ok(())
    }

    async fn send_statement(
        &mut self,
        statement: &Statement,
        rows: &[FreshRow],
        wait: Duration,
    ) -> Result<Vec<RowClaim>, StoreError> {
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by(|a, b| key_of(rows, *a).cmp(&key_of(rows, *b)));
        let sorted: Vec<&FreshRow> = order.iter().filter_map(|index| rows.get(*index)).collect();
        let columns = Columns::new(sorted.iter().map(|row| &row.entry));
        let consumer = rows.first().map(|row| row.entry.consumer.as_str());
        let transports: Vec<&str> = sorted
            .iter()
            .map(|row| row.entry.transport_message_id.as_str())
            .collect();
        let found = sqlx::query(statement.sql.clone())
            .bind(consumer)
            .bind(milliseconds(wait).to_string())
            .bind(i32::try_from(rows.len()).unwrap_or(i32::MAX))
            .bind(columns.sources)
            .bind(columns.message_ids)
            .bind(columns.sent_at)
            .bind(columns.statuses)
            .bind(columns.fingerprints)
            .bind(columns.transports)
            .bind(transports)
            .bind(
                sorted
                    .iter()
                    .map(|row| row.body.as_str())
                    .collect::<Vec<_>>(),
            )
            .bind(
                sorted
                    .iter()
                    .map(|row| row.receive_count)
                    .collect::<Vec<_>>(),
            )
            .bind(
                sorted
                    .iter()
                    .map(|row| row.group_id.as_deref())
                    .collect::<Vec<_>>(),
            )
            .fetch_all(&mut self.session.pg)
            .await
            .map_err(|error| StoreError::new(Stage::Statement, error))?;
        let part = Part::read(&found).map_err(|error| StoreError::new(Stage::Statement, error))?;
        let entries: Vec<Arc<Entry>> = rows.iter().map(|row| Arc::clone(&row.entry)).collect();
        let mut claims = Rows(vec![None; rows.len()]);
        part.apply(&entries, &order, &mut claims);
        self.read_rest(&entries, &mut claims).await?;
        // A row that came and went meanwhile is told as busy: it is reported, and comes back.
        Ok(claims
            .0
            .into_iter()
            .map(|row| row.unwrap_or(RowClaim::Busy))
            .collect())
    }
}

fn key_of(rows: &[FreshRow], index: usize) -> Option<&Key> {
    rows.get(index).map(|row| &row.entry.key)
}
