//! The whole consumer is one SQL statement over the fresh messages. Claim and effect go out together as
//! one statement, which is its own transaction: one round trip a batch, and nothing to settle.

use crate::begin::{BEGIN, milliseconds};
use crate::claim::{Entry, Failure};
use crate::claim_many::RowClaim;
use crate::claim_rows::{Columns, Part, Rows, sorted};
use crate::connection::Connection;
use crate::error::{Class, Stage, StoreError};
use crate::statements::composed;
use crate::table::{Profile, Table};
use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};
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
pub struct FreshRow<'a> {
    /// The row to be claimed.
    pub entry: &'a Arc<Entry>,
    /// The body, which must be JSON that `jsonb` takes.
    pub body: &'a str,
    /// `receive_count`.
    pub receive_count: i32,
    /// `group_id`.
    pub group_id: Option<&'a str>,
}

impl Statement {
    /// Composes `sql` with the claim in `table`. It is one INSERT, UPDATE or DELETE that reads the
    /// relation `fresh`: `position`, `message_id` (the SQS MessageId), `source` and `key` (the
    /// inbox key), `body jsonb`, `sent_at`, `receive_count`, `group_id`.
    ///
    /// # Errors
    /// [`StatementError`] where it is none of these, or more than one statement.
    pub fn new(sql: &str, table: &Table) -> Result<Self, StatementError> {
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
        // Of the parts that vary, the schema's name is checked and quoted, and the statement is the user's.
        let sql = AssertSqlSafe(composed(table, sql)).into_sql_str();
        Ok(Self { sql })
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
    /// durable. One round trip, four behind a pooler; one more on a connection's first use, and where rows
    /// committed while the claim waited for them.
    ///
    /// # Errors
    /// [`Failure`] with stage [`Stage::Statement`]: nothing is stored, unless its class is
    /// [`Class::Connection`], which leaves that open.
    pub async fn run_statement(
        mut self,
        statement: &Statement,
        rows: &[FreshRow<'_>],
        wait: Duration,
        until: Instant,
    ) -> Result<(Vec<RowClaim>, Connection), Box<Failure>> {
        let failed = |error, connection| Err(Box::new(Failure { error, connection }));
        if let Err(error) = self.prepare_session(until).await {
            return failed(error, None);
        }
        match timeout_at(until, self.send(statement, rows, wait)).await {
            Ok(Ok(claims)) => Ok((claims, self)),
            // Where not even the roll-back worked, the connection may be inside a transaction.
            Ok(Err(error))
                if error.class() == Class::Connection || error.stage() == Stage::RollBack =>
            {
                failed(error, None)
            }
            Ok(Err(error)) => failed(error, Some(self)),
            Err(_) => failed(StoreError::no_answer(Stage::Statement), None),
        }
    }

    /// The statement's own transaction takes its properties from the session. A connection that has idled
    /// is asked first whether it is alive: a statement that is not answered would be in doubt.
    async fn prepare_session(&mut self, until: Instant) -> Result<(), StoreError> {
        let is_set = self.session.runs_statements || self.is_pooled();
        if is_set && !self.has_idled() {
            return Ok(());
        }
        let settings = format!(
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE; \
             SET synchronous_commit = on; SET statement_timeout = {}; \
             SET client_connection_check_interval = 100",
            milliseconds(STATEMENT_MAX)
        );
        let sql = if is_set {
            "SELECT".to_owned()
        } else {
            settings
        };
        let until = self.first_answer(until, Duration::ZERO);
        match timeout_at(until, self.rows(sql)).await {
            Ok(Ok(_)) => {
                self.session.runs_statements = true;
                self.has_answered();
                Ok(())
            }
            Ok(Err(error)) => Err(StoreError::new(Stage::Begin, error)),
            Err(_) => Err(StoreError::no_answer(Stage::Begin)),
        }
    }

    fn is_pooled(&self) -> bool {
        self.shared.table().profile == Profile::Pooled
    }

    /// Behind a pooler there is no session to set or to prepare in, so the statement needs a transaction of
    /// its own to be in one place for the round trips that it then takes.
    async fn send(
        &mut self,
        statement: &Statement,
        rows: &[FreshRow<'_>],
        wait: Duration,
    ) -> Result<Vec<RowClaim>, StoreError> {
        if !self.is_pooled() {
            return self.send_statement(statement, rows, wait).await;
        }
        let failed = |stage| move |error| StoreError::new(stage, error);
        let begun = self.rows(BEGIN.to_owned()).await;
        begun.map_err(failed(Stage::Begin))?;
        let claims = self.send_statement(statement, rows, wait).await;
        match &claims {
            Ok(_) => {
                let committed = self.rows("COMMIT".to_owned()).await;
                committed.map_err(failed(Stage::Statement))?;
            }
            Err(error) if error.class() == Class::Connection => {}
            Err(_) => {
                let undone = self.rows("ROLLBACK".to_owned()).await;
                undone.map_err(failed(Stage::RollBack))?;
            }
        }
        claims
    }

    async fn send_statement(
        &mut self,
        statement: &Statement,
        rows: &[FreshRow<'_>],
        wait: Duration,
    ) -> Result<Vec<RowClaim>, StoreError> {
        let order = sorted(rows.iter().map(|row| row.entry), self.shared.table().layout);
        let sorted: Vec<&FreshRow<'_>> =
            order.iter().filter_map(|index| rows.get(*index)).collect();
        let columns = Columns::new(sorted.iter().map(|row| row.entry));
        let consumer = rows.first().map(|row| row.entry.consumer.as_str());
        let groups = sorted.iter().any(|row| row.group_id.is_some());
        let groups: Option<Vec<_>> =
            groups.then(|| sorted.iter().map(|row| row.group_id).collect());
        let found = sqlx::query(statement.sql.clone())
            .persistent(!self.is_pooled())
            .bind(consumer)
            .bind(milliseconds(wait).to_string())
            .bind(i64::try_from(rows.len()).unwrap_or(i64::MAX))
            .bind(columns.sources)
            .bind(columns.message_ids)
            .bind(columns.sent_at)
            .bind(columns.statuses)
            .bind(columns.fingerprints)
            .bind(columns.transports)
            .bind(sorted.iter().map(|row| row.body).collect::<Vec<_>>())
            .bind(
                sorted
                    .iter()
                    .map(|row| row.receive_count)
                    .collect::<Vec<_>>(),
            )
            .bind(groups)
            .fetch_all(&mut self.session.pg)
            .await
            .map_err(|error| StoreError::new(Stage::Statement, error))?;
        let part = Part::read(&found)?;
        let entries: Vec<Arc<Entry>> = rows.iter().map(|row| Arc::clone(row.entry)).collect();
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
