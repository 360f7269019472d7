//! The consumer is one SQL statement: claim and effect are one round trip a batch.
//!
//! The statement is its own transaction, so there is nothing to settle and nothing to roll back. Where
//! the answer to it is lost, it may simply be sent again: what had committed is then a duplicate.

use super::Run;
use super::link::{Link, NoConnection};
use super::process::Again;
use super::set::{Trouble, first_copies, not_won, trouble};
use super::verdicts;
use super::worker::{CONFLICT_PAUSE, CONFLICT_RETRIES_MAX};
use crate::batch::{Batch, NO_TIME};
use crate::jsonb::for_jsonb;
use crate::message::receive_count;
use crate::outcome::{Outcome, Verdict};
use crate::plan::Job;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use lambda_inbox_store::{Class, Failure, FreshRow, Stage, Statement, Status, StoreError};
use std::time::Duration;
use tokio::time::sleep;

/// How long a part of a batch waits while the busy key is being looked for.
const PART_WAIT: Duration = Duration::from_millis(5);

pub(crate) struct StatementScope {
    statement: Statement,
}

/// Records that go into one statement, and how long it waits for a busy key.
struct Set {
    jobs: Vec<Job>,
    wait: Duration,
}

impl StatementScope {
    pub(crate) fn new(statement: Statement) -> Self {
        Self { statement }
    }

    async fn run_sets(&self, batch: &Batch<'_>) -> Result<(), NoConnection> {
        let Some(mut link) = batch.links(1).await.pop() else {
            return Ok(());
        };
        link.connect(true).await?;
        let mut sets = sets(batch);
        while let Some(set) = sets.pop() {
            if !batch.deadline.may_start() {
                set.record(batch, &Verdict::not_started(NO_TIME));
                continue;
            }
            match self.run_set(batch, &mut link, &set).await {
                Ended::Done => {}
                Ended::Halve(verdict, wait) => sets.extend(set.halves(batch, &verdict, wait)),
                Ended::Lost(lost) => {
                    sets.push(set);
                    batch.put_jobs(sets.into_iter().flat_map(|set| set.jobs).collect());
                    return Err(lost);
                }
            }
        }
        link.keep();
        Ok(())
    }

    async fn run_set(&self, batch: &Batch<'_>, link: &mut Link<'_>, set: &Set) -> Ended {
        let (mut fresh, mut conflicts) = (false, 0);
        // No answer to a later try tells what became of one without an answer.
        let mut in_doubt = None;
        loop {
            let error = match self.attempt(batch, link, set, fresh).await {
                Ok(()) => return Ended::Done,
                Err(error) => error,
            };
            if error.class() == Class::Busy {
                return Ended::Halve(verdicts::busy(verdicts::HELD), PART_WAIT);
            }
            if error.stage() == Stage::Statement && error.is_in_doubt() {
                in_doubt = Some(verdicts::unknown(&error));
            }
            match trouble(error) {
                Trouble::Again(Again::Connection(_)) if !fresh && batch.deadline.may_start() => {
                    fresh = true;
                }
                Trouble::Again(Again::Conflict(_))
                    if conflicts < CONFLICT_RETRIES_MAX && batch.deadline.may_start() =>
                {
                    sleep(CONFLICT_PAUSE * 2_u32.pow(conflicts)).await;
                    conflicts += 1;
                }
                Trouble::Again(Again::Connection(error)) => {
                    if let Some(unknown) = in_doubt {
                        set.record(batch, &unknown);
                        return Ended::Done;
                    }
                    let verdict = Again::Connection(error).give_up();
                    return Ended::Lost(NoConnection(
                        verdict.reason.unwrap_or_default().into_owned(),
                    ));
                }
                Trouble::Again(conflict @ Again::Conflict(_)) => {
                    return Ended::Halve(conflict.give_up(), set.wait);
                }
                Trouble::Verdict(verdict) if verdict.is_outage() => {
                    set.record(batch, &verdict);
                    return Ended::Done;
                }
                Trouble::Verdict(verdict) => return Ended::Halve(verdict, set.wait),
            }
        }
    }

    async fn attempt(
        &self,
        batch: &Batch<'_>,
        link: &mut Link<'_>,
        set: &Set,
        fresh: bool,
    ) -> Result<(), StoreError> {
        let connection = link.connection(fresh).await?;
        let until = batch.deadline.before_handler();
        let rows: Vec<FreshRow<'_>> = set.jobs.iter().filter_map(row).collect();
        let sent = connection
            .run_statement(&self.statement, &rows, set.wait, until)
            .await;
        let (claims, connection) = sent.map_err(|failure| {
            let Failure { error, connection } = *failure;
            link.put_back(connection);
            error
        })?;
        link.put_back(Some(connection));
        for ((job, row), claim) in set.jobs.iter().zip(&rows).zip(claims) {
            let verdict = not_won(batch, row.entry, claim).unwrap_or_else(|| row_done(row));
            batch.record(job.position, verdict);
        }
        Ok(())
    }
}

impl Run for StatementScope {
    fn run<'a>(&'a self, batch: &'a Batch<'a>) -> BoxFuture<'a, Result<(), NoConnection>> {
        self.run_sets(batch).boxed()
    }

    fn keeps_order(&self) -> bool {
        false
    }
}

/// How an attempt at a set ended.
enum Ended {
    /// Every record has its verdict.
    Done,
    /// The halves run by themselves; a single record gets the verdict.
    Halve(Verdict, Duration),
    Lost(NoConnection),
}

fn row_done(row: &FreshRow<'_>) -> Verdict {
    match row.entry.status {
        Status::Processed => Verdict::processed(),
        Status::Ignored => Verdict::ignored(),
    }
}

impl Set {
    fn record(&self, batch: &Batch<'_>, verdict: &Verdict) {
        self.jobs
            .iter()
            .for_each(|job| batch.record(job.position, verdict.clone()));
    }

    fn halves(mut self, batch: &Batch<'_>, verdict: &Verdict, wait: Duration) -> Vec<Self> {
        if self.jobs.len() < 2 {
            self.record(batch, verdict);
            return Vec::new();
        }
        let middle = self.jobs.len() / 2;
        let right = Self {
            jobs: self.jobs.split_off(middle),
            wait,
        };
        self.wait = wait;
        // The left half is taken first.
        vec![right, self]
    }
}

/// All records with different keys, then the further copies in sets of their own, the first set last.
fn sets(batch: &Batch<'_>) -> Vec<Set> {
    let mut open = batch.take_jobs();
    let mut sets = Vec::new();
    while !open.is_empty() {
        let (first, copies) = first_copies(open);
        let wait = batch.settings.timing.claim_wait;
        let mut set = Set {
            jobs: Vec::new(),
            wait,
        };
        for job in first {
            match runnable(&job) {
                Ok(()) => set.jobs.push(job),
                Err(verdict) => batch.record(job.position, verdict),
            }
        }
        sets.push(set);
        open = copies;
    }
    sets.retain(|set| !set.jobs.is_empty());
    sets.reverse();
    sets
}

/// Whether the database will take the job's body.
fn runnable(job: &Job) -> Result<(), Verdict> {
    let prepared = job.work.as_ref().map_err(Verdict::clone)?;
    match prepared.entry.status {
        Status::Ignored => Ok(()),
        Status::Processed => for_jsonb(&prepared.record, &prepared.content)
            .map(drop)
            .map_err(|error| Verdict::new(Outcome::Poison, error.to_string())),
    }
}

/// What the statement sees of a [`runnable`] job.
fn row(job: &Job) -> Option<FreshRow<'_>> {
    let prepared = job.work.as_ref().ok()?;
    let body = match prepared.entry.status {
        // It is claimed like the others, but no row of `fresh`.
        Status::Ignored => "null",
        Status::Processed => prepared.content.body(&prepared.record)?,
    };
    let receives = receive_count(&prepared.record).get();
    let group = prepared.record.attributes.get("MessageGroupId");
    Some(FreshRow {
        entry: &prepared.entry,
        body,
        receive_count: i32::try_from(receives).unwrap_or(i32::MAX),
        group_id: group.map(String::as_str),
    })
}
