//! Transactions of DDL and of the prune. They take nothing from the role: a time zone, a date style or
//! a timeout that suits people would move a cut-off or let DDL hold up the claims.

use crate::schema::Schema;
use sqlx::{AssertSqlSafe, PgConnection};
use std::time::Duration;

/// How long a transaction may sit idle beyond the time for its statements: for whoever died in it.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// How long the parts of a maintenance transaction may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// For any one lock.
    pub(crate) lock: Duration,
    /// For any one statement.
    pub(crate) statement: Duration,
}

/// Opens a transaction. Whoever drops it in the middle must close the connection.
///
/// Not durable at once (`synchronous_commit = off`): what a crash undoes, the next run does again, and
/// claims do not queue for the disk behind it.
pub(crate) async fn begin(
    connection: &mut PgConnection,
    patience: Patience,
) -> Result<(), sqlx::Error> {
    let sql = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
         SET LOCAL lock_timeout = {}; SET LOCAL statement_timeout = {}; \
         SET LOCAL idle_in_transaction_session_timeout = {}; \
         SET LOCAL timezone = 'UTC'; SET LOCAL datestyle = 'ISO, YMD'; \
         SET LOCAL synchronous_commit = off",
        milliseconds(patience.lock),
        milliseconds(patience.statement),
        milliseconds(patience.statement + IDLE_MAX),
    );
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(connection)
        .await
        .map(drop)
}

/// Commits where the work succeeded, and rolls back where it did not.
pub(crate) async fn finish<T>(
    connection: &mut PgConnection,
    result: Result<T, sqlx::Error>,
) -> Result<T, sqlx::Error> {
    match result {
        Ok(value) => {
            sqlx::raw_sql("COMMIT").execute(connection).await?;
            Ok(value)
        }
        Err(error) => {
            // Where the connection is gone the server rolls back by itself.
            let _ = sqlx::raw_sql("ROLLBACK").execute(connection).await;
            Err(error)
        }
    }
}

/// An advisory lock's key, as SQL: one for each schema and purpose. The schema's name is checked, so the
/// text is safe.
pub(crate) fn lock_key(schema: &Schema, purpose: &str) -> String {
    format!("hashtextextended('lambda_inbox/{purpose}/{schema}', 0)")
}

/// At least one, because zero means "no limit" to Postgres.
pub(crate) fn milliseconds(duration: Duration) -> i32 {
    crate::begin::milliseconds(duration)
}
