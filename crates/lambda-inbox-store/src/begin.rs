//! A transaction that does not depend on the role's defaults: a reader's isolation level or a lost
//! `synchronous_commit` would break the promise silently.

use crate::connection::Connection;
use crate::error::{Stage, StoreError};
use sqlx::postgres::PgTransactionManager;
use sqlx::{AssertSqlSafe, SqlSafeStr};
use sqlx_core::transaction::TransactionManager;
use std::fmt;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The most time that the first statement on a kept connection may take. Its socket may have been
/// dropped by a firewall while the environment was frozen, and then nothing ever comes back.
const REUSED_BEGIN_MAX: Duration = Duration::from_secs(2);

/// How long the parts of one transaction may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long the claim waits for another delivery of the same message (`lock_timeout`).
    pub claim: Duration,
    /// How long any one statement runs (`statement_timeout`).
    pub statement: Duration,
    /// How long the transaction may sit idle (`idle_in_transaction_session_timeout`).
    pub idle: Duration,
    /// When to stop waiting for an answer of the server at all; the connection is then closed.
    pub until: Instant,
}

/// An open transaction that holds no claim yet. Dropping it closes the socket, which the server
/// answers by rolling back.
#[must_use = "dropping a transaction closes its connection"]
pub struct Transaction {
    pub(crate) connection: Connection,
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").finish_non_exhaustive()
    }
}

impl Connection {
    /// Opens a transaction: READ COMMITTED, read-write, durable, with its own timeouts, and free of
    /// whatever an earlier handler SET in the session. One round trip.
    ///
    /// Cancel safe: a dropped call closes the connection.
    ///
    /// # Errors
    /// [`StoreError`] of stage [`Stage::Begin`]; the connection is closed.
    pub async fn begin(mut self, limits: &Limits) -> Result<Transaction, StoreError> {
        let until = if self.is_reused() {
            limits.until.min(Instant::now() + REUSED_BEGIN_MAX)
        } else {
            limits.until
        };
        match timeout_at(until, self.send_begin(limits)).await {
            Ok(Ok(())) => Ok(Transaction { connection: self }),
            Ok(Err(error)) => Err(StoreError::new(Stage::Begin, error)),
            Err(_) => Err(StoreError::no_answer(Stage::Begin)),
        }
    }

    async fn send_begin(&mut self, limits: &Limits) -> Result<(), sqlx::Error> {
        let sql = AssertSqlSafe(begin_sql(limits)).into_sql_str();
        let session = &mut self.session;
        // RESET takes them back.
        session.runs_statements = false;
        if session.entered {
            sqlx::raw_sql(sql).execute(&mut session.pg).await?;
        } else {
            // Tells sqlx that it is inside a transaction, so that a handler's own `begin()` makes a
            // savepoint. It stays told: COMMIT goes out raw, together with the proof.
            PgTransactionManager::begin(&mut session.pg, Some(sql)).await?;
            session.entered = true;
        }
        Ok(())
    }
}

/// Every value is a number of ours, so the text is safe to build.
pub(crate) fn begin_sql(limits: &Limits) -> String {
    format!(
        "RESET ROLE; RESET ALL; BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
         SET LOCAL statement_timeout = {}; \
         SET LOCAL idle_in_transaction_session_timeout = {}; \
         SET LOCAL synchronous_commit = on; \
         SET LOCAL client_connection_check_interval = 100",
        milliseconds(limits.statement),
        milliseconds(limits.idle),
    )
}

/// At least one, because zero means "no limit" to Postgres.
pub(crate) fn milliseconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis())
        .unwrap_or(i32::MAX)
        .max(1)
}
