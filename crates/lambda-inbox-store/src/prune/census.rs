//! What there is before, and what is left after. Every question is a few look-ups in an index.

use super::PruneError;
use super::report::ConsumerPruned;
use super::run::Run;
use super::sql;
use crate::layout;
use crate::maintenance::{Patience, begin, finish};
use sqlx::AssertSqlSafe;
use std::time::Duration;

/// For the look around at the end, which has a little time of its own: a prune that ran out of time still
/// tells what is left.
const LOOK: Duration = Duration::from_secs(1);

/// A consumer that has keys in the keyed table.
pub(super) struct Present {
    pub(super) consumer: String,
    /// When its oldest key was processed, in microseconds of the epoch.
    pub(super) oldest: i64,
    pub(super) oldest_seconds: f64,
}

impl Run<'_> {
    /// The consumer with the oldest key first.
    pub(super) async fn consumers(&mut self) -> Result<Vec<Present>, sqlx::Error> {
        begin(self.connection, self.patience()).await?;
        let found = self.find_consumers().await;
        finish(self.connection, found).await
    }

    async fn find_consumers(&mut self) -> Result<Vec<Present>, sqlx::Error> {
        let rows: Vec<(String, i64, f64)> =
            sqlx::query_as(AssertSqlSafe(sql::consumers(self.schema)))
                .persistent(false)
                .fetch_all(&mut *self.connection)
                .await?;
        let present = |(consumer, oldest, oldest_seconds)| Present {
            consumer,
            oldest,
            oldest_seconds,
        };
        Ok(rows.into_iter().map(present).collect())
    }

    /// Time (in microseconds of the epoch) and age (in seconds) of the failure log's oldest row.
    pub(super) async fn oldest_failure(&mut self) -> Result<Option<(i64, f64)>, sqlx::Error> {
        begin(self.connection, self.patience()).await?;
        let found = self.find_oldest_failure().await;
        finish(self.connection, found).await
    }

    async fn find_oldest_failure(&mut self) -> Result<Option<(i64, f64)>, sqlx::Error> {
        sqlx::query_as(AssertSqlSafe(sql::oldest_failure(self.schema)))
            .persistent(false)
            .fetch_optional(&mut *self.connection)
            .await
    }

    pub(super) async fn has_table(&mut self, name: &str) -> Result<bool, sqlx::Error> {
        sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL")
            .persistent(false)
            .bind(format!("{}.{name}", self.schema.quoted()))
            .fetch_one(&mut *self.connection)
            .await
    }

    /// Fills in what is left. A look that takes too long is left out of the report; it decides nothing.
    pub(super) async fn look_around(&mut self) -> Result<(), PruneError> {
        let patience = Patience {
            lock: LOOK,
            statement: LOOK,
        };
        let looked = async {
            begin(self.connection, patience).await?;
            let looked = self.look().await;
            finish(self.connection, looked).await
        };
        match looked.await {
            Err(error) if crate::partitions::is_wait(&error) => Ok(()),
            result => result.map_err(|error| PruneError::new(self.schema, error)),
        }
    }

    async fn look(&mut self) -> Result<(), sqlx::Error> {
        for present in self.find_consumers().await? {
            let oldest = Some(present.oldest_seconds);
            let report = &mut self.report;
            report.oldest_seconds = report.oldest_seconds.max_of(oldest);
            let known = report
                .consumers
                .iter_mut()
                .find(|pruned| pruned.consumer == present.consumer);
            match known {
                Some(pruned) => pruned.oldest_seconds = oldest,
                None => report.consumers.push(ConsumerPruned {
                    kept_seconds: self.cut_offs.of(&present.consumer),
                    consumer: present.consumer,
                    rows: 0,
                    oldest_seconds: oldest,
                }),
            }
        }
        if self.report.failures.is_some() {
            let oldest = self.find_oldest_failure().await?;
            if let Some(failures) = &mut self.report.failures {
                failures.oldest_seconds = oldest.map(|(_, age)| age);
            }
        }
        if layout::existing(self.connection, self.schema)
            .await?
            .is_some()
        {
            let oldest: Option<f64> =
                sqlx::query_scalar(AssertSqlSafe(sql::oldest_sent(self.schema)))
                    .persistent(false)
                    .fetch_optional(&mut *self.connection)
                    .await?;
            let time_ordered = self.report.time_ordered.get_or_insert_default();
            time_ordered.oldest_seconds = oldest;
        }
        self.report.rows_left = sqlx::query_scalar(AssertSqlSafe(sql::rows_left(self.schema)))
            .persistent(false)
            .fetch_one(&mut *self.connection)
            .await?;
        self.report.oldest_transaction_seconds = sqlx::query_scalar(sql::OLDEST_TRANSACTION)
            .persistent(false)
            .fetch_one(&mut *self.connection)
            .await?;
        Ok(())
    }
}

/// The larger of two ages, either of which may be missing.
trait MaxOf {
    fn max_of(self, other: Self) -> Self;
}

impl MaxOf for Option<f64> {
    fn max_of(self, other: Self) -> Self {
        match (self, other) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        }
    }
}
