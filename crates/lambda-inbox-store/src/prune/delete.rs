//! Deleting rows that an index finds by their time: keys of the keyed table, and the failure log.

use super::report::{ConsumerPruned, TablePruned};
use super::run::{Halt, Run, Steps, Value};
use super::sql;
use sqlx::Row;
use sqlx::postgres::PgRow;

impl Run<'_> {
    /// One consumer after the other, the one with the oldest key first.
    pub(super) async fn keys(&mut self) -> Result<(), Halt> {
        for present in self.consumers().await.map_err(|error| self.failed(error))? {
            let mut pruned = ConsumerPruned {
                kept_seconds: self.cut_offs.of(&present.consumer),
                consumer: present.consumer,
                rows: 0,
                oldest_seconds: None,
            };
            let result = if present.oldest_seconds > pruned.kept_seconds {
                self.keys_of(&mut pruned, present.oldest).await
            } else {
                Ok(())
            };
            self.report.rows += pruned.rows;
            self.report.consumers.push(pruned);
            result?;
        }
        Ok(())
    }

    async fn keys_of(&mut self, pruned: &mut ConsumerPruned, oldest: i64) -> Result<(), Halt> {
        let kept = Value::Seconds(pruned.kept_seconds);
        let fixed = vec![Value::Text(pruned.consumer.clone()), kept];
        if self.pruner.dry_run {
            let (rows, _) = self
                .batch(&sql::count_keys(self.schema), (), &Count(fixed))
                .await?;
            pruned.rows = rows;
            return Ok(());
        }
        let mut place = Some(oldest);
        while let Some(from) = place {
            let sql = sql::delete_keys(self.schema);
            let (rows, next) = self.batch(&sql, from, &ByTime(fixed.clone())).await?;
            pruned.rows += rows;
            place = next;
        }
        Ok(())
    }

    /// The failure log, where there is one.
    pub(super) async fn failures(&mut self) -> Result<(), Halt> {
        let there = self.has_table("inbox_failure").await;
        if !there.map_err(|error| self.failed(error))? {
            return Ok(());
        }
        let mut pruned = TablePruned::default();
        let result = self.failure_rows(&mut pruned).await;
        self.report.rows += pruned.rows;
        self.report.failures = Some(pruned);
        result
    }

    async fn failure_rows(&mut self, pruned: &mut TablePruned) -> Result<(), Halt> {
        let kept = self.cut_offs.failure_seconds();
        let oldest = self.oldest_failure().await;
        let Some((oldest, age)) = oldest.map_err(|error| self.failed(error))? else {
            return Ok(());
        };
        if age <= kept {
            return Ok(());
        }
        let fixed = vec![Value::Seconds(kept)];
        if self.pruner.dry_run {
            let sql = sql::count_failures(self.schema);
            let (rows, _) = self.batch(&sql, (), &Count(fixed)).await?;
            pruned.rows = rows;
            return Ok(());
        }
        let mut place = Some(oldest);
        while let Some(from) = place {
            let sql = sql::delete_failures(self.schema);
            let (rows, next) = self.batch(&sql, from, &ByTime(fixed.clone())).await?;
            pruned.rows += rows;
            place = next;
        }
        Ok(())
    }
}

/// Deletes in the order of time. The fixed parameters come first, then the time to go on from and the
/// number of rows.
struct ByTime(Vec<Value>);

impl Steps<i64> for ByTime {
    fn values(&self, from: &i64, rows: u32) -> Vec<Value> {
        let mut values = self.0.clone();
        values.extend([Value::Number(*from), Value::Number(rows.into())]);
        values
    }

    fn read(&self, row: &PgRow, rows: u32) -> Result<(u64, Option<i64>), sqlx::Error> {
        let deleted = count(row)?;
        let next: Option<i64> = row.try_get(1)?;
        Ok((deleted, next.filter(|_| deleted >= rows.into())))
    }
}

/// Counts at once, as far as [`sql::COUNT_MAX`], which is the last parameter.
struct Count(Vec<Value>);

impl Steps<()> for Count {
    fn values(&self, (): &(), _: u32) -> Vec<Value> {
        let mut values = self.0.clone();
        values.push(Value::Number(sql::COUNT_MAX));
        values
    }

    fn read(&self, row: &PgRow, _: u32) -> Result<(u64, Option<()>), sqlx::Error> {
        Ok((count(row)?, None))
    }
}

fn count(row: &PgRow) -> Result<u64, sqlx::Error> {
    let count: i64 = row.try_get(0)?;
    Ok(count.unsigned_abs())
}
