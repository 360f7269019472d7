//! A roll-back is awaited: one that is only queued, as sqlx does for a dropped transaction, holds its
//! locks for as long as the environment is frozen.

use crate::begin::Transaction;
use crate::claim::Claim;
use crate::connection::Connection;
use crate::error::{Stage, StoreError};
use crate::withdraw::Withdrawal;
use sqlx::{AssertSqlSafe, Row};
use tokio::time::{Instant, timeout_at};

/// How a claim's roll-back ended.
#[derive(Debug)]
pub enum RolledBack {
    /// The claim's transaction is proven to have stored nothing.
    Proven(Connection),
    /// It is not proven, because the handler committed it or the connection broke. The connection is
    /// closed, and the [`Withdrawal`] takes the claim back if it is there.
    Unproven(Withdrawal),
}

impl Transaction {
    /// Ends a transaction that holds no claim.
    ///
    /// # Errors
    /// [`StoreError`] of stage [`Stage::RollBack`]; the connection is closed, which rolls back too.
    pub(crate) async fn roll_back(mut self, until: Instant) -> Result<Connection, StoreError> {
        let sent = sqlx::raw_sql("ROLLBACK").execute(&mut self.connection.session.pg);
        match timeout_at(until, sent).await {
            Ok(Ok(_)) => Ok(self.connection),
            Ok(Err(error)) => Err(StoreError::new(Stage::RollBack, error)),
            Err(_) => Err(StoreError::no_answer(Stage::RollBack)),
        }
    }
}

impl Claim {
    /// Rolls back, and asks in the same round trip whether the handler had committed behind our
    /// back.
    ///
    /// Cancel safe: a dropped call closes the connection.
    pub async fn roll_back(mut self, until: Instant) -> RolledBack {
        match timeout_at(until, self.send_roll_back()).await {
            Ok(Ok(true)) => RolledBack::Proven(self.connection),
            _ => RolledBack::Unproven(self.abandon()),
        }
    }

    /// Closes the connection of a handler that was stopped in the middle of its work.
    pub fn abandon(self) -> Withdrawal {
        Withdrawal::new(self.ticket)
    }

    async fn send_roll_back(&mut self) -> Result<bool, sqlx::Error> {
        let id = self.ticket.transaction_id.0;
        let sql = format!("ROLLBACK; SELECT pg_xact_status('{id}'::xid8)");
        let row = sqlx::raw_sql(AssertSqlSafe(sql))
            .fetch_one(&mut self.connection.session.pg)
            .await?;
        let status: Option<String> = row.try_get(0)?;
        Ok(status.as_deref() == Some("aborted"))
    }
}
