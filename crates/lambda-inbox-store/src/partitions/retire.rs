//! Dropping partitions whose keys are all old. Millions of keys go with a few catalogue rows of WAL.
//!
//! DROP and a plain DETACH lock claims out, and while they wait for a lock, every claim waits behind
//! them. DETACH CONCURRENTLY takes no such lock: it waits for the transactions under way instead. Once a
//! partition is detached no claim comes near it.
//!
//! Source: PostgreSQL documentation, ALTER TABLE, "DETACH PARTITION".

use super::ahead::attach_sql;
use super::care::{Partition, State, partitions};
use super::{ATTEMPTS_MAX, LOCK_WAIT, PAUSE, PartitionsError, STATEMENT_WAIT, is_wait};
use crate::layout::table_name;
use crate::maintenance::{Patience, begin, finish, milliseconds};
use crate::retention::CutOffs;
use crate::schema::Schema;
use sqlx::{AssertSqlSafe, PgConnection};
use tokio::time::{Instant, sleep};

/// What became of the partitions that ended before the shortest retention.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Retired {
    /// Dropped, or to be dropped: the name and how many keys.
    pub(crate) dropped: Vec<(String, i64)>,
    /// Kept, because a key in it is still young: it was processed late, or its consumer's retention is
    /// longer.
    pub(crate) kept: Vec<String>,
    /// Left for the next run, because a transaction elsewhere was in the way.
    pub(crate) in_use: Vec<String>,
    /// Whether the time was up before all were looked at.
    pub(crate) is_out_of_time: bool,
}

enum Fate {
    Dropped(i64),
    Kept,
    /// It had been left detached, and takes part again.
    BackIn,
}

/// Drops, oldest first, the partitions whose keys are all older than their consumers' cut-offs, and ends
/// what a broken run left half done. A dry run changes nothing.
pub(crate) async fn retire(
    connection: &mut PgConnection,
    schema: &Schema,
    cut_offs: &CutOffs,
    dry_run: bool,
    until: Instant,
) -> Result<Retired, PartitionsError> {
    let mut run = Retirement {
        connection,
        schema,
        cut_offs,
        dry_run,
        until,
    };
    let found = run
        .find()
        .await
        .map_err(PartitionsError::to("list the partitions"))?;
    let mut retired = Retired::default();
    for partition in found {
        if partition.state == State::Attached && !partition.is_old
            || dry_run && partition.state != State::Attached
        {
            continue;
        }
        if Instant::now() >= until {
            retired.is_out_of_time = true;
            break;
        }
        match run.retire(&partition).await {
            Ok(Fate::Dropped(rows)) => retired.dropped.push((partition.name, rows)),
            Ok(Fate::Kept) => retired.kept.push(partition.name),
            Ok(Fate::BackIn) => {}
            Err(error) if is_in_use(&error) => retired.in_use.push(partition.name),
            Err(error) => return Err(PartitionsError::to("drop old partitions")(error)),
        }
    }
    Ok(retired)
}

/// Another transaction, or another runner that is at the same partition: it has detached it (55000) or
/// dropped it (42P01) meanwhile.
fn is_in_use(error: &sqlx::Error) -> bool {
    let code = crate::error::sqlstate(error);
    is_wait(error) || matches!(code.as_deref(), Some("55000" | "42P01"))
}

struct Retirement<'a> {
    connection: &'a mut PgConnection,
    schema: &'a Schema,
    cut_offs: &'a CutOffs,
    dry_run: bool,
    until: Instant,
}

impl Retirement<'_> {
    async fn retire(&mut self, partition: &Partition) -> Result<Fate, sqlx::Error> {
        match partition.state {
            State::Attached => {
                if self.has_young(partition).await? {
                    return Ok(Fate::Kept);
                }
                if self.dry_run {
                    return self.count(partition).await.map(Fate::Dropped);
                }
                self.detach(partition).await?;
            }
            State::HalfDetached => self.detach(partition).await?,
            State::Detached => {}
        }
        self.drop_or_attach(partition).await
    }

    /// A detachment that was interrupted is only half done, and goes on with FINALIZE.
    async fn detach(&mut self, partition: &Partition) -> Result<(), sqlx::Error> {
        let mut word = match partition.state {
            State::HalfDetached => "FINALIZE",
            State::Attached | State::Detached => "CONCURRENTLY",
        };
        let mut attempt = 1;
        loop {
            match self.send_detach(partition, word).await {
                Err(error) if is_wait(&error) && attempt < ATTEMPTS_MAX && self.has_time() => {
                    if self.is_half_detached(partition).await? {
                        word = "FINALIZE";
                    }
                    sleep(PAUSE * 2_u32.pow(attempt - 1)).await;
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    /// CONCURRENTLY refuses to run in a transaction, so the timeouts are the session's for the while.
    async fn send_detach(&mut self, partition: &Partition, word: &str) -> Result<(), sqlx::Error> {
        let patience = self.patience();
        let set = format!(
            "SET lock_timeout = {}; SET statement_timeout = {}",
            milliseconds(patience.lock),
            milliseconds(patience.statement)
        );
        sqlx::raw_sql(AssertSqlSafe(set))
            .execute(&mut *self.connection)
            .await?;
        let sql = format!(
            "ALTER TABLE {} DETACH PARTITION {} {word}",
            table_name(self.schema),
            self.quoted(partition)
        );
        let detached = sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut *self.connection)
            .await;
        sqlx::raw_sql("RESET lock_timeout; RESET statement_timeout")
            .execute(&mut *self.connection)
            .await?;
        detached.map(drop)
    }

    /// Once it is detached no claim can write to it any more, so what is found now stays true. A key that
    /// came in between the first look and the detachment brings the partition back.
    async fn drop_or_attach(&mut self, partition: &Partition) -> Result<Fate, sqlx::Error> {
        begin(self.connection, self.patience()).await?;
        let fate = self.decide(partition).await;
        finish(self.connection, fate).await
    }

    async fn decide(&mut self, partition: &Partition) -> Result<Fate, sqlx::Error> {
        let (rows, young) = self.count_young(partition).await?;
        let name = self.quoted(partition);
        let (sql, fate) = if young == 0 && partition.is_old {
            (format!("DROP TABLE {name}"), Fate::Dropped(rows))
        } else {
            let parent = table_name(self.schema);
            let attach = attach_sql(&parent, &name, &partition.lower, &partition.upper);
            let fate = if partition.is_old {
                Fate::Kept
            } else {
                Fate::BackIn
            };
            (attach, fate)
        };
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut *self.connection)
            .await?;
        Ok(fate)
    }

    async fn find(&mut self) -> Result<Vec<Partition>, sqlx::Error> {
        let seconds = self.cut_offs.shortest();
        begin(self.connection, self.patience()).await?;
        let found = partitions(self.connection, self.schema, seconds).await;
        finish(self.connection, found).await
    }

    async fn is_half_detached(&mut self, partition: &Partition) -> Result<bool, sqlx::Error> {
        let found = self.find().await?;
        Ok(found
            .iter()
            .any(|p| p.name == partition.name && p.state == State::HalfDetached))
    }

    /// Stops at the first young key it meets.
    async fn has_young(&mut self, partition: &Partition) -> Result<bool, sqlx::Error> {
        let sql = format!(
            "SELECT EXISTS (SELECT FROM {} WHERE {})",
            self.joined(partition),
            CutOffs::IS_YOUNG
        );
        self.ask(sql).await
    }

    async fn count_young(&mut self, partition: &Partition) -> Result<(i64, i64), sqlx::Error> {
        let sql = format!(
            "SELECT count(*), count(*) FILTER (WHERE {}) FROM {}",
            CutOffs::IS_YOUNG,
            self.joined(partition)
        );
        sqlx::query_as(AssertSqlSafe(sql))
            .persistent(false)
            .bind(self.cut_offs.consumers())
            .bind(self.cut_offs.seconds())
            .bind(self.cut_offs.default_seconds())
            .fetch_one(&mut *self.connection)
            .await
    }

    async fn count(&mut self, partition: &Partition) -> Result<i64, sqlx::Error> {
        begin(self.connection, self.patience()).await?;
        let counted = self.count_young(partition).await;
        finish(self.connection, counted).await.map(|(rows, _)| rows)
    }

    async fn ask(&mut self, sql: String) -> Result<bool, sqlx::Error> {
        begin(self.connection, self.patience()).await?;
        let answer = sqlx::query_scalar(AssertSqlSafe(sql))
            .persistent(false)
            .bind(self.cut_offs.consumers())
            .bind(self.cut_offs.seconds())
            .bind(self.cut_offs.default_seconds())
            .fetch_one(&mut *self.connection)
            .await;
        finish(self.connection, answer).await
    }

    fn joined(&self, partition: &Partition) -> String {
        format!("{} AS i {}", self.quoted(partition), CutOffs::JOIN)
    }

    /// The name is the server's, and may have been chosen by anyone.
    fn quoted(&self, partition: &Partition) -> String {
        let name = partition.name.replace('"', "\"\"");
        format!("{}.\"{name}\"", self.schema.quoted())
    }

    fn has_time(&self) -> bool {
        Instant::now() < self.until
    }

    fn patience(&self) -> Patience {
        let left = self.until.saturating_duration_since(Instant::now());
        Patience {
            lock: LOCK_WAIT.min(left),
            statement: STATEMENT_WAIT.min(left),
        }
    }
}
