//! One run, in order: partitions, keys, the failure log, and the look around at the end.

use super::report::{PartitionPruned, PruneReport, Stopped, TimeOrderedPruned};
use super::{PruneError, Pruner};
use crate::layout::{self, Partitions};
use crate::maintenance::{Patience, begin, finish, lock_key};
use crate::partitions::{PartitionsError, create_ahead, is_wait, retire};
use crate::retention::CutOffs;
use crate::schema::Schema;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, PgConnection};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How many rows one statement looks at.
const SLICE_ROWS: u32 = 250;

/// Between two statements of a batch.
const SLICE_PAUSE: Duration = Duration::from_millis(2);

/// The most time that a batch waits for a lock on its table.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// How often a batch is tried that meets one.
const ATTEMPTS_MAX: u32 = 3;

pub(super) struct Run<'a> {
    pub(super) pruner: &'a Pruner,
    pub(super) schema: &'a Schema,
    pub(super) cut_offs: CutOffs,
    pub(super) connection: &'a mut PgConnection,
    pub(super) report: PruneReport,
    until: Instant,
    began: Instant,
    /// The longest that a batch has taken in this run.
    slowest: Duration,
}

/// Why the rows are left as they are.
pub(super) enum Halt {
    Stopped(Stopped),
    Failed(PruneError),
}

impl From<PruneError> for Halt {
    fn from(error: PruneError) -> Self {
        Self::Failed(error)
    }
}

impl<'a> Run<'a> {
    pub(super) fn new(
        pruner: &'a Pruner,
        connection: &'a mut PgConnection,
        until: Instant,
    ) -> Self {
        let report = PruneReport {
            dry_run: pruner.dry_run,
            ..PruneReport::default()
        };
        Self {
            pruner,
            schema: &pruner.schema,
            cut_offs: CutOffs::new(&pruner.retention),
            connection,
            report,
            until,
            began: Instant::now(),
            slowest: Duration::ZERO,
        }
    }

    pub(super) async fn run(mut self) -> Result<PruneReport, PruneError> {
        match self.all().await {
            Ok(()) => {}
            Err(Halt::Stopped(stopped)) => self.stop(stopped),
            Err(Halt::Failed(error)) => return Err(error),
        }
        self.look_around().await?;
        self.report.finished = self.report.stopped.is_none();
        self.report.seconds = self.began.elapsed().as_secs_f64();
        Ok(self.report)
    }

    async fn all(&mut self) -> Result<(), Halt> {
        self.be_the_only_runner().await?;
        match layout::existing(self.connection, self.schema).await {
            Ok(None) => {}
            Ok(Some(Partitions::None)) => self.walk().await?,
            Ok(Some(Partitions::Daily)) => self.partitions().await?,
            Err(error) => return Err(self.failed(error)),
        }
        self.keys().await?;
        self.failures().await
    }

    /// Partitions are whole or not at all: a consumer with a shorter retention waits for the longest of
    /// its neighbours, which costs room and never a key.
    async fn partitions(&mut self) -> Result<(), Halt> {
        let failed = |error: PartitionsError| {
            if error.is_wait() {
                Halt::Stopped(Stopped::Locked)
            } else {
                Halt::Failed(error.into())
            }
        };
        let created = if self.pruner.dry_run {
            Vec::new()
        } else {
            let created = create_ahead(self.connection, self.schema).await;
            created.map_err(failed)?
        };
        let dry_run = self.pruner.dry_run;
        let retired = retire(
            self.connection,
            self.schema,
            &self.cut_offs,
            dry_run,
            self.until,
        );
        let retired = retired.await.map_err(failed)?;
        let dropped: Vec<PartitionPruned> = retired
            .dropped
            .into_iter()
            .map(|(name, rows)| PartitionPruned {
                name,
                rows: rows.unsigned_abs(),
            })
            .collect();
        let rows = dropped.iter().map(|partition| partition.rows).sum();
        self.report.rows += rows;
        self.report.batches += dropped.len() as u64;
        if retired.is_out_of_time {
            self.stop(Stopped::Deadline);
        } else if !retired.in_use.is_empty() {
            self.stop(Stopped::Locked);
        }
        self.report.time_ordered = Some(TimeOrderedPruned {
            rows,
            oldest_seconds: None,
            created,
            dropped,
            kept: retired.kept,
            in_use: retired.in_use,
        });
        Ok(())
    }

    /// The first reason stays.
    pub(super) fn stop(&mut self, stopped: Stopped) {
        self.report.stopped.get_or_insert(stopped);
    }

    /// A lock that did not come is for the next run; everything else is an error.
    pub(super) fn failed(&self, error: sqlx::Error) -> Halt {
        if !is_wait(&error) {
            Halt::Failed(PruneError::new(self.schema, error))
        } else if Instant::now() >= self.until {
            Halt::Stopped(Stopped::Deadline)
        } else {
            Halt::Stopped(Stopped::Locked)
        }
    }

    pub(super) fn patience(&self) -> Patience {
        let left = self.until.saturating_duration_since(Instant::now());
        Patience {
            lock: LOCK_WAIT.min(left),
            statement: left,
        }
    }

    /// Tells whether another runner is at work before anything is touched.
    async fn be_the_only_runner(&mut self) -> Result<(), Halt> {
        begin(self.connection, self.patience())
            .await
            .map_err(|error| self.failed(error))?;
        let mine = self.try_lock().await;
        let mine = finish(self.connection, mine).await;
        match mine {
            Ok(true) => Ok(()),
            Ok(false) => Err(Halt::Stopped(Stopped::AnotherRunner)),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// The lock lasts as long as the transaction, so a runner that dies lets go of it, and nothing of it
    /// is left in a pooled session.
    pub(super) async fn try_lock(&mut self) -> Result<bool, sqlx::Error> {
        let key = lock_key(self.schema, "prune");
        sqlx::query_scalar(AssertSqlSafe(format!(
            "SELECT pg_try_advisory_xact_lock({key})"
        )))
        .persistent(false)
        .fetch_one(&mut *self.connection)
        .await
    }

    /// Stops where another batch, should it take twice as long as the slowest, might not fit.
    pub(super) fn check_time(&self) -> Result<(), Halt> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() || left < self.slowest * 2 {
            return Err(Halt::Stopped(Stopped::Deadline));
        }
        Ok(())
    }

    /// Runs a statement from `place` on, again and again, in a transaction that has the runner's lock. The
    /// statement does little at a time and rests in between, because what it does at once is felt by the
    /// claims beside it: its log goes to the disk in front of theirs.
    ///
    /// Returns how many rows that were, and the place to go on from; `None` where all is done.
    pub(super) async fn batch<P: Clone>(
        &mut self,
        sql: &str,
        place: P,
        steps: &impl Steps<P>,
    ) -> Result<(u64, Option<P>), Halt> {
        let mut attempt = 1;
        loop {
            self.check_time()?;
            let began = Instant::now();
            let result = self.attempt(sql, place.clone(), steps).await;
            self.slowest = self.slowest.max(began.elapsed());
            match result {
                Ok(Some(done)) => {
                    if !self.pruner.dry_run {
                        self.report.batches += 1;
                        sleep(self.pruner.pause).await;
                    }
                    return Ok(done);
                }
                Ok(None) => return Err(Halt::Stopped(Stopped::AnotherRunner)),
                Err(error) if is_wait(&error) => {
                    self.check_time()?;
                    if attempt == ATTEMPTS_MAX {
                        return Err(Halt::Stopped(Stopped::Locked));
                    }
                    attempt += 1;
                }
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    /// `None` where another runner has the lock.
    async fn attempt<P: Clone>(
        &mut self,
        sql: &str,
        place: P,
        steps: &impl Steps<P>,
    ) -> Result<Option<(u64, Option<P>)>, sqlx::Error> {
        begin(self.connection, self.patience()).await?;
        let result = match self.try_lock().await {
            Ok(true) => self.slices(sql, place, steps).await.map(Some),
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        };
        finish(self.connection, result).await
    }

    async fn slices<P: Clone>(
        &mut self,
        sql: &str,
        mut place: P,
        steps: &impl Steps<P>,
    ) -> Result<(u64, Option<P>), sqlx::Error> {
        let mut rows = 0;
        let mut left = self.pruner.batch_rows.get();
        loop {
            let slice = left.min(SLICE_ROWS);
            let row = self.ask(sql, &steps.values(&place, slice)).await?;
            let (done, next) = steps.read(&row, slice)?;
            rows += done;
            left -= slice;
            match next {
                Some(next) if left > 0 => place = next,
                next => return Ok((rows, next)),
            }
            sleep(SLICE_PAUSE).await;
        }
    }

    async fn ask(&mut self, sql: &str, values: &[Value]) -> Result<PgRow, sqlx::Error> {
        // Planned anew each time: what a statement has to skip changes from batch to batch.
        let query = sqlx::query(AssertSqlSafe(sql.to_owned())).persistent(false);
        let bound = values.iter().fold(query, |query, value| match value {
            Value::Text(text) => query.bind(text),
            Value::Number(number) => query.bind(number),
            Value::Seconds(seconds) => query.bind(seconds),
            Value::Texts(texts) => query.bind(texts),
            Value::AllSeconds(seconds) => query.bind(seconds),
        });
        bound.fetch_one(&mut *self.connection).await
    }
}

/// How a statement goes from place to place.
pub(super) trait Steps<P> {
    /// Its parameters for the next `rows` rows.
    fn values(&self, place: &P, rows: u32) -> Vec<Value>;

    /// Its answer: how many rows, and where to go on.
    fn read(&self, row: &PgRow, rows: u32) -> Result<(u64, Option<P>), sqlx::Error>;
}

/// A parameter of a batch's statement.
#[derive(Clone)]
pub(super) enum Value {
    Text(String),
    Number(i64),
    Seconds(f64),
    Texts(Vec<String>),
    AllSeconds(Vec<f64>),
}
