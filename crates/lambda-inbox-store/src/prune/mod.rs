//! Forgetting keys. An inbox that is never pruned grows until it dies; one that is pruned wrongly forgets
//! keys that can still come back. So the cut-off is the database's clock's, every delete repeats it, and
//! what cannot be done in time is left for the next run.
//!
//! It runs beside the claims: short transactions, rows that someone holds are skipped, no lock that a
//! claim would wait for.

mod census;
mod delete;
#[cfg(test)]
mod plans;
mod report;
mod run;
mod sql;
mod walk;

pub use report::{
    ConsumerPruned, PartitionPruned, PruneReport, Stopped, TablePruned, TimeOrderedPruned,
};

use crate::partitions::PartitionsError;
use crate::retention::Retention;
use crate::schema::Schema;
use sqlx::PgConnection;
use std::num::NonZeroU32;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Past the deadline, for the answer to a statement that the server itself is about to stop.
const ANSWER_WAIT: Duration = Duration::from_millis(1_200);

/// Deletes keys, and rows of the failure log, that are older than their [`Retention`].
#[derive(Clone, Debug)]
pub struct Pruner {
    schema: Schema,
    retention: Retention,
    batch_rows: NonZeroU32,
    pause: Duration,
    dry_run: bool,
}

impl Pruner {
    /// The rows of a transaction where nothing else is said.
    pub const BATCH_ROWS_DEFAULT: u32 = 5_000;

    /// More rows in a transaction hold locks for too long.
    pub const BATCH_ROWS_MAX: u32 = 100_000;

    /// Begins to describe a prune of `schema`.
    pub fn builder(schema: Schema, retention: Retention) -> PrunerBuilder {
        PrunerBuilder {
            schema,
            retention,
            batch_rows: Self::BATCH_ROWS_DEFAULT,
            pause: PAUSE_DEFAULT,
            dry_run: false,
        }
    }

    /// Prunes until all is done, or until `until` is so near that another batch might not fit.
    ///
    /// First the time-ordered table's partitions, which are dropped and created ahead; then rows, one
    /// consumer after the other, the one with the oldest key first; at last the failure log. Where
    /// another runner is at work it stops at once and says so; running twice does no harm.
    ///
    /// Cancelling it, or an error, leaves the connection in the middle of something: close it. Batches
    /// that have committed stay deleted.
    ///
    /// # Errors
    /// [`PruneError`] where the tables are missing, the role may not delete or the connection is lost.
    /// A lock that is held elsewhere and a lack of time are no errors: the report has them.
    pub async fn run(
        &self,
        connection: &mut PgConnection,
        until: Instant,
    ) -> Result<PruneReport, PruneError> {
        let run = run::Run::new(self, connection, until);
        timeout_at(until + ANSWER_WAIT, run.run())
            .await
            .map_err(|_| PruneError::NoAnswer)?
    }
}

/// Between batches, so that claims get the disk and the processor.
const PAUSE_DEFAULT: Duration = Duration::from_millis(10);

/// Builds a [`Pruner`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct PrunerBuilder {
    schema: Schema,
    retention: Retention,
    batch_rows: u32,
    pause: Duration,
    dry_run: bool,
}

impl PrunerBuilder {
    /// How many rows a transaction deletes at most; 5,000 by default.
    pub fn batch_rows(mut self, batch_rows: u32) -> Self {
        self.batch_rows = batch_rows;
        self
    }

    /// How long to rest between two batches; 10 ms by default.
    pub fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Counts and changes nothing. A count ends at a million for each consumer and table.
    pub fn dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// [`BatchRowsError`].
    pub fn build(self) -> Result<Pruner, BatchRowsError> {
        let batch_rows = NonZeroU32::new(self.batch_rows)
            .filter(|rows| rows.get() <= Pruner::BATCH_ROWS_MAX)
            .ok_or(BatchRowsError(self.batch_rows))?;
        Ok(Pruner {
            schema: self.schema,
            retention: self.retention,
            batch_rows,
            pause: self.pause,
            dry_run: self.dry_run,
        })
    }
}

/// A number of rows that is no size for a batch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a batch of {0} rows cannot be; take 1 to {max}", max = Pruner::BATCH_ROWS_MAX)]
pub struct BatchRowsError(u32);

/// The prune could not go on. What it had deleted stays deleted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PruneError {
    /// The tables are missing, or the role may not use them.
    #[error(
        "schema {schema} cannot be pruned: run the migrations, check the schema's name and grant the \
         role USAGE on the schema and SELECT, UPDATE and DELETE on its tables"
    )]
    Setup {
        /// The schema.
        schema: Schema,
        /// The server's answer.
        source: sqlx::Error,
    },
    /// The time-ordered table's partitions.
    #[error("the time-ordered table's partitions could not be looked after")]
    Partitions(#[from] PartitionsError),
    /// Any other failure of a statement.
    #[error("the prune's statement failed")]
    Database(#[source] sqlx::Error),
    /// The database did not answer by the deadline.
    #[error("no answer from the database by the deadline")]
    NoAnswer,
}

impl PruneError {
    fn new(schema: &Schema, source: sqlx::Error) -> Self {
        match crate::error::sqlstate(&source).as_deref() {
            Some("42P01" | "42703" | "42501" | "3F000") => Self::Setup {
                schema: schema.clone(),
                source,
            },
            _ => Self::Database(source),
        }
    }
}
