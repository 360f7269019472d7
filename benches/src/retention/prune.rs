//! Claims before and during a prune of a million rows.

use std::cell::Cell;
use std::time::Duration;

use lambda_inbox_store::{Layout, Partitions, Pruner, Retention, Schema, create_time_ordered};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::claims::Claimer;
use super::filled::{CONSUMER, Filled, insert};
use crate::error::BenchError;

const ROWS: u64 = 1_000_000;
/// One claim in so much time: a queue that is read at two hundred messages a second.
const EVERY: Duration = Duration::from_millis(5);
const BEFORE: Duration = Duration::from_secs(5);
const LONG: Duration = Duration::from_secs(300);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What a prune did to claims.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pruned {
    pub(crate) seconds: f64,
    pub(crate) p99_before: Duration,
    pub(crate) p99_during: Duration,
    /// What the prune alone writes to the server's log, where that was measured.
    pub(crate) log_bytes: Option<f64>,
}

impl Pruned {
    pub(crate) fn p99_ratio(self) -> f64 {
        self.p99_during.as_secs_f64() / self.p99_before.as_secs_f64()
    }
}

/// The keyed table, row by row.
pub(super) async fn by_delete(server: &mut Filled) -> Result<Pruned, BenchError> {
    server.fill(Layout::Keyed, 0).await?;
    server
        .run(&insert("inbox", ROWS, "30 days", "20 days"))
        .await?;
    settle(server, "inbox").await?;
    beside_claims(server, Layout::Keyed).await
}

/// The time-ordered table, a partition of an old day at once. The log is that of a second prune, without
/// claims beside it.
pub(super) async fn by_partition(server: &mut Filled) -> Result<Pruned, BenchError> {
    server.run("DROP TABLE lambda_inbox.inbox_by_time").await?;
    create_time_ordered(&mut server.admin, &Schema::default(), Partitions::Daily).await?;
    add_old_partition(server).await?;
    let pruned = beside_claims(server, Layout::TimeOrdered).await?;

    add_old_partition(server).await?;
    let mut runner = server.connect().await?;
    let log = server.log_position().await?;
    pruner()?.run(&mut runner, Instant::now() + LONG).await?;
    let log_bytes = Some(server.log_position().await? - log);
    Ok(Pruned {
        log_bytes,
        ..pruned
    })
}

async fn add_old_partition(server: &mut Filled) -> Result<(), BenchError> {
    let day = "(date_trunc('day', now() AT TIME ZONE 'UTC') - interval '30 days')";
    server
        .run(&format!(
            "DO $$ BEGIN EXECUTE format('CREATE TABLE lambda_inbox.inbox_by_time_%s PARTITION OF \
               lambda_inbox.inbox_by_time FOR VALUES FROM (%L) TO (%L)', \
               to_char({day}, 'YYYYMMDD'), {day} AT TIME ZONE 'UTC', \
               ({day} + interval '1 day') AT TIME ZONE 'UTC'); END $$"
        ))
        .await?;
    server
        .run(&format!(
            "INSERT INTO lambda_inbox.inbox_by_time \
               (consumer, source, message_id, sent_at, processed_at, fingerprint) \
             SELECT '{CONSUMER}', 'sqs', gen_random_uuid()::text, time, time, '\\x01' \
             FROM generate_series(1, {ROWS}) AS n, LATERAL (SELECT {day} AT TIME ZONE 'UTC' \
               + interval '1 day' * (n - 1) / {ROWS}) AS t (time)"
        ))
        .await?;
    settle(server, "inbox_by_time").await
}

async fn settle(server: &mut Filled, table: &str) -> Result<(), BenchError> {
    server
        .run(&format!("VACUUM ANALYZE lambda_inbox.{table}"))
        .await?;
    server.run("CHECKPOINT").await
}

fn pruner() -> Result<Pruner, BenchError> {
    Ok(Pruner::builder(Schema::default(), Retention::new(14 * DAY)).build()?)
}

async fn beside_claims(server: &mut Filled, layout: Layout) -> Result<Pruned, BenchError> {
    let mut claimer = Claimer::new(server, layout).await?;
    let mut runner = server.connect().await?;
    let end = Instant::now() + BEFORE;
    let before = claims(&mut claimer, || Instant::now() >= end).await?;

    let pruner = pruner()?;
    let over = Cell::new(false);
    let prune = async {
        let report = pruner.run(&mut runner, Instant::now() + LONG).await;
        over.set(true);
        report
    };
    // A partition is dropped in less time than it takes to say what one claim in a hundred feels.
    let end = Instant::now() + BEFORE;
    let is_over = || over.get() && Instant::now() >= end;
    let (report, during) = tokio::join!(prune, claims(&mut claimer, is_over));
    let report = report?;
    if report.rows != ROWS || !report.finished {
        return Err(BenchError::NotPruned { rows: report.rows });
    }
    Ok(Pruned {
        seconds: report.seconds,
        p99_before: p99(before),
        p99_during: p99(during?),
        log_bytes: None,
    })
}

/// How long each claim took, until `is_over`.
async fn claims(
    claimer: &mut Claimer,
    is_over: impl Fn() -> bool,
) -> Result<Vec<Duration>, BenchError> {
    let mut times = Vec::new();
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !is_over() {
        ticks.tick().await;
        times.push(claimer.one().await?);
    }
    Ok(times)
}

fn p99(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    let place = (times.len() * 99).div_ceil(100).saturating_sub(1);
    times.get(place).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_a_hundred_is_longer_than_the_p99() {
        let times = (1..=1_000).rev().map(Duration::from_millis).collect();
        assert_eq!(p99(times), Duration::from_millis(990));
        assert_eq!(
            p99(vec![Duration::from_millis(7)]),
            Duration::from_millis(7)
        );
    }
}
