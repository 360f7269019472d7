//! A transaction left open is invisible to the test that left it: only the server knows, so the
//! server is asked.

use std::time::{Duration, Instant};

use sqlx::postgres::PgConnection;

use super::database::close;
use super::{PostgresError, TestDatabase, server};

/// A terminated backend ends at its next check for interrupts, which on a busy machine can take a
/// while.
const TERMINATE_TIMEOUT: Duration = Duration::from_secs(10);
const TERMINATE_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A backend in a transaction, as `pg_stat_activity` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenTransaction {
    /// The backend's process id on the server.
    pub pid: i32,
    /// Such as `active`, `idle in transaction`, `idle in transaction (aborted)`.
    pub state: String,
    /// The running statement, or the last one.
    pub query: String,
}

impl TestDatabase {
    /// The transactions open in this database now, in the order of the backends' ids. Autovacuum's
    /// are left out.
    ///
    /// # Errors
    /// [`PostgresError::Connect`], [`PostgresError::Statement`], and [`PostgresError::MayNotSee`]
    /// if the answer would be incomplete.
    pub async fn open_transactions(&self) -> Result<Vec<OpenTransaction>, PostgresError> {
        let failed = || PostgresError::statement("list the open transactions");
        let mut connection = server::connect(&self.admin).await?;
        let sees_all: bool = sqlx::query_scalar("SELECT pg_has_role('pg_read_all_stats', 'USAGE')")
            .fetch_one(&mut connection)
            .await
            .map_err(failed())?;
        if !sees_all {
            return Err(PostgresError::MayNotSee {
                role: self.admin.get_username().to_owned(),
            });
        }
        // The server clears xact_start when a transaction fails, though it stays open.
        let rows: Vec<(i32, String, String)> = sqlx::query_as(
            "SELECT pid, coalesce(state, ''), query FROM pg_stat_activity \
             WHERE datname = $1 AND pid <> pg_backend_pid() \
             AND (xact_start IS NOT NULL OR state = 'idle in transaction (aborted)') \
             AND backend_type <> 'autovacuum worker' ORDER BY pid",
        )
        .bind(&self.name)
        .fetch_all(&mut connection)
        .await
        .map_err(failed())?;
        close(connection).await;
        Ok(rows
            .into_iter()
            .map(|(pid, state, query)| OpenTransaction { pid, state, query })
            .collect())
    }

    /// Ends all client connections to this database from the server's side, as a failover does,
    /// waits until they are gone and returns how many there were. The clients see SQLSTATE 57P01.
    ///
    /// # Errors
    /// [`PostgresError::Connect`], [`PostgresError::Statement`], and [`PostgresError::StillThere`]
    /// after ten seconds.
    pub async fn terminate_backends(&self) -> Result<u64, PostgresError> {
        let failed = PostgresError::statement("terminate the backends");
        let mut connection = server::connect(&self.admin).await?;
        // In the select list, because the conditions of WHERE may be evaluated in any order.
        let signalled: Vec<(i32, bool)> = sqlx::query_as(
            "SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = $1 AND pid <> pg_backend_pid() AND backend_type = 'client backend'",
        )
        .bind(&self.name)
        .fetch_all(&mut connection)
        .await
        .map_err(failed)?;
        let pids: Vec<i32> = signalled
            .into_iter()
            .filter(|(_, sent)| *sent)
            .map(|(pid, _)| pid)
            .collect();
        wait_until_gone(&mut connection, &pids).await?;
        close(connection).await;
        Ok(pids.len() as u64)
    }
}

async fn wait_until_gone(connection: &mut PgConnection, pids: &[i32]) -> Result<(), PostgresError> {
    let began = Instant::now();
    loop {
        let count: i64 =
            sqlx::query_scalar("SELECT count(*) FROM pg_stat_activity WHERE pid = ANY($1)")
                .bind(pids)
                .fetch_one(&mut *connection)
                .await
                .map_err(PostgresError::statement("look for terminated backends"))?;
        if count == 0 {
            return Ok(());
        }
        if began.elapsed() > TERMINATE_TIMEOUT {
            return Err(PostgresError::StillThere { count });
        }
        tokio::time::sleep(TERMINATE_POLL_INTERVAL).await;
    }
}
