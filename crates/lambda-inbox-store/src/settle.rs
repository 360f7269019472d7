//! COMMIT proves nothing by itself: sqlx says `Ok` when the server answers it with ROLLBACK, and a
//! handler can have ended the transaction and begun another. So the proof that the transaction is
//! still the claim's goes out in front of the COMMIT, in the same round trip.

use crate::claim::{Claim, Failure};
use crate::connection::Connection;
use crate::error::{Class, Stage, StoreError, sqlstate};
use crate::roll_back::RolledBack;
use crate::withdraw::Withdrawal;
use sqlx::postgres::PgTransactionManager;
use sqlx::{AssertSqlSafe, Connection as _};
use sqlx_core::transaction::TransactionManager;
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

/// How a claim's transaction ended.
#[derive(Debug)]
#[must_use = "only a committed claim may be reported as success"]
pub enum Settled {
    /// Row and effect are durable.
    Committed(Connection),
    /// The server refused the COMMIT; nothing is stored.
    Refused(Box<Failure>),
    /// The transaction was no longer the claim's, or was aborted: the handler swallowed an SQL
    /// error, ended the transaction or left a nested one open.
    Violated {
        /// Which sign gave it away.
        violation: Violation,
        /// What is left to do where it is not proven that nothing was stored.
        withdrawal: Option<Withdrawal>,
    },
    /// The answer did not come back. Row and effect are both there or both not, and the next delivery
    /// finds out.
    Unknown(StoreError),
}

/// What a handler did to the transaction. Always a bug in the handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// An SQL error had aborted the transaction, and the handler said that all is well.
    #[error("the handler ignored an SQL error and returned Ok; return the error instead")]
    SwallowedError,
    /// The transaction is not the one that holds the claim.
    #[error(
        "the handler ended the inbox's transaction; remove its COMMIT or ROLLBACK, the inbox \
         commits after the handler returns"
    )]
    EndedTransaction,
    /// A nested transaction was neither committed nor rolled back.
    #[error(
        "the handler left a nested transaction open; end it with commit().await or \
         rollback().await before returning"
    )]
    OpenNested,
}

impl Claim {
    /// Proves that the transaction is still this claim's, and commits. One round trip.
    ///
    /// Runs in a task of its own, so that dropping the call neither cancels the COMMIT nor leaves the
    /// connection in the middle of it. An answer that is not back at `until` is given up by closing
    /// the socket.
    pub async fn settle(mut self, until: Instant) -> Settled {
        if self.has_open_nested() {
            return self.violated(Violation::OpenNested, until).await;
        }
        let task = async move {
            match timeout_at(until, self.send_settle()).await {
                Ok(Ok(())) => Settled::Committed(self.connection),
                Ok(Err(error)) => self.not_committed(error, until).await,
                Err(_) => Settled::Unknown(StoreError::no_answer(Stage::Settle)),
            }
        };
        match tokio::spawn(task.in_current_span()).await {
            Ok(settled) => settled,
            // The runtime is going down, or sqlx panicked: either way the answer is lost.
            Err(_) => Settled::Unknown(StoreError::no_answer(Stage::Settle)),
        }
    }

    /// A forgotten nested transaction shows in sqlx's depth. A dropped one shows in the ROLLBACK that
    /// sqlx has queued but not sent: its effect is lost, and the handler says that all is well.
    fn has_open_nested(&mut self) -> bool {
        let pg = &self.connection.session.pg;
        PgTransactionManager::get_transaction_depth(pg) > 1 || pg.should_flush()
    }

    async fn send_settle(&mut self) -> Result<(), sqlx::Error> {
        let id = self.ticket.transaction_id.0;
        // Dividing by zero is the one way to fail a SELECT without a function of our own; the COMMIT
        // behind a failed statement is never run.
        let sql = format!(
            "SELECT 1 / coalesce(pg_current_xact_id_if_assigned() = '{id}'::xid8, false)::int; \
             COMMIT"
        );
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut self.connection.session.pg)
            .await?;
        Ok(())
    }

    async fn not_committed(self, error: sqlx::Error, until: Instant) -> Settled {
        match sqlstate(&error).as_deref() {
            Some("22012") => return self.violated(Violation::EndedTransaction, until).await,
            Some("25P02") => return self.violated(Violation::SwallowedError, until).await,
            _ => {}
        }
        let error = StoreError::new(Stage::Settle, error);
        match error.class() {
            // The server may have committed before it, or the network, went away.
            Class::Connection => Settled::Unknown(error),
            Class::Busy | Class::Conflict | Class::Setup | Class::Refused => {
                match self.roll_back(until).await {
                    RolledBack::Proven(connection) => Settled::Refused(Box::new(Failure {
                        error,
                        connection: Some(connection),
                    })),
                    RolledBack::Unproven(_) => Settled::Unknown(error),
                }
            }
        }
    }

    async fn violated(self, violation: Violation, until: Instant) -> Settled {
        let withdrawal = match self.roll_back(until).await {
            // Closed all the same: who knows what else the handler did to the session.
            RolledBack::Proven(_) => None,
            RolledBack::Unproven(withdrawal) => Some(withdrawal),
        };
        Settled::Violated {
            violation,
            withdrawal,
        }
    }
}
