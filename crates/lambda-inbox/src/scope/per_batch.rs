//! One transaction for the batch: one claim, the handlers in the order of arrival on one connection, one
//! proof, one COMMIT. Two round trips and the handlers' own.
//!
//! It is a shortcut for batches in which nothing fails. Where anything does, it is rolled back, and the
//! records run one by one, which then finds out which of them it was.

use super::link::{Link, NoConnection};
use super::process::Again;
use super::set::{Trouble, Unit, claim, first_copies, not_won};
use super::supervise::{Handled, supervise};
use super::verdicts;
use crate::batch::Batch;
use crate::body::Decode;
use crate::handler::Handler;
use crate::metrics;
use crate::outcome::Verdict;
use crate::plan::Job;
use crate::span;
use lambda_inbox_store::{Claim, ClaimedMany, Entry, Held, Settled};
use std::sync::Arc;
use tokio::time::Instant;
use tracing::Instrument;

/// Below this there is nothing to gain.
const RECORDS_MIN: usize = 2;

/// The verdicts that are certain; records without one run by themselves.
type Certain = Vec<(usize, Verdict)>;

/// Tries a batch as one, and leaves open what has no verdict.
///
/// # Errors
/// As [`Link::connect`]; nothing was touched.
pub(super) async fn try_as_one<D: Decode, H: Handler<D::Body>>(
    handler: &H,
    batch: &Batch<'_>,
) -> Result<(), NoConnection> {
    let Some(mut link) = batch.links(1).await.pop() else {
        return Ok(());
    };
    link.connect(true).await?;
    let (mut open, copies) = first_copies(batch.take_jobs());
    // A copy may turn out to be a mismatch, which stops what stands behind it in its group: on a FIFO
    // queue a batch with copies runs one by one.
    let keeps_order = !batch.fifo || copies.is_empty();
    if open.len() >= RECORDS_MIN && keeps_order {
        let mut attempt = attempt::<D, H>(handler, batch, &mut link, &open, false).await;
        if let Err(Again::Connection(_)) = attempt {
            attempt = self::attempt::<D, H>(handler, batch, &mut link, &open, true).await;
        }
        for (position, verdict) in attempt.unwrap_or_default() {
            open.retain(|job| job.position != position);
            batch.record(position, verdict);
        }
    }
    link.keep();
    open.extend(copies);
    batch.put_jobs(open);
    Ok(())
}

async fn attempt<D: Decode, H: Handler<D::Body>>(
    handler: &H,
    batch: &Batch<'_>,
    link: &mut Link<'_>,
    jobs: &[Job],
    fresh: bool,
) -> Result<Certain, Again> {
    let (units, mut certain) = units::<D>(batch, jobs);
    if units.is_empty() || batch.fifo && !certain.is_empty() {
        // What stands behind a failure in its group must not run, and that is told one by one.
        return Ok(if batch.fifo { Vec::new() } else { certain });
    }
    let entries: Vec<Arc<Entry>> = units
        .iter()
        .map(|unit| Arc::clone(&unit.prepared.entry))
        .collect();
    let ClaimedMany { rows, held } = match claim(batch, link, &entries, fresh).await {
        Ok(claimed) => claimed,
        Err(Trouble::Again(again)) => return Err(again),
        Err(Trouble::Verdict(_)) => return Ok(certain),
    };
    let mut won = Vec::new();
    for (unit, row) in units.into_iter().zip(rows) {
        match not_won(batch, &unit.prepared.entry, row) {
            Some(verdict) => certain.push((unit.position, verdict)),
            None => won.push(unit),
        }
    }
    let stops_a_group = batch.fifo && certain.iter().any(|(_, verdict)| verdict.is_reported());
    match held {
        Held::Nothing(connection) => link.put_back(connection),
        Held::Claim(claim) if stops_a_group => {
            link.roll_back(claim).await;
        }
        Held::Claim(claim) => certain.extend(run(handler, batch, link, claim, won).await),
    }
    Ok(if stops_a_group { Vec::new() } else { certain })
}

fn units<D: Decode>(batch: &Batch<'_>, jobs: &[Job]) -> (Vec<Unit<D::Body>>, Certain) {
    let (mut units, mut certain) = (Vec::with_capacity(jobs.len()), Vec::new());
    for job in jobs {
        let job = Job {
            position: job.position,
            group: None,
            work: job.work.clone(),
        };
        match Unit::new::<D>(batch, job) {
            Ok(unit) => units.push(unit),
            Err(verdict) => certain.push(verdict),
        }
    }
    (units, certain)
}

/// Runs the handlers and settles. Gives no verdict on records that must run by themselves.
async fn run<B: Send + Sync + 'static, H: Handler<B>>(
    handler: &H,
    batch: &Batch<'_>,
    link: &mut Link<'_>,
    mut claim: Claim,
    won: Vec<Unit<B>>,
) -> Certain {
    for unit in &won {
        let Some(message) = &unit.message else {
            continue;
        };
        if !batch.deadline.may_start() {
            link.roll_back(claim).await;
            return Vec::new();
        }
        let span = span::message(&batch.settings.consumer, &unit.prepared.record);
        let started = Instant::now();
        // Within a block, so that a panic before the first await is caught as well.
        let work = async { handler.handle(message, claim.connection()).await };
        let handled = supervise(&batch.deadline, work.instrument(span)).await;
        metrics::duration(batch.settings.consumer.as_str(), started.elapsed());
        match handled {
            Handled::Done => {}
            Handled::Failed(error) => {
                link.roll_back(claim).await;
                if error.is_of_the_session() {
                    link.discard();
                }
                return Vec::new();
            }
            Handled::Panicked(_) | Handled::TimedOut => {
                link.withdraw(claim.abandon()).await;
                return Vec::new();
            }
        }
    }
    match claim.settle(batch.deadline.settle()).await {
        Settled::Committed(connection) => {
            link.put_back(Some(connection));
            won.iter()
                .map(|unit| (unit.position, unit.done()))
                .collect()
        }
        Settled::Refused(failure) => {
            link.put_back(failure.connection);
            Vec::new()
        }
        Settled::Violated { withdrawal, .. } => {
            if let Some(withdrawal) = withdrawal {
                link.withdraw(withdrawal).await;
            }
            Vec::new()
        }
        Settled::Unknown(error) => won
            .iter()
            .map(|unit| (unit.position, verdicts::unknown(&error)))
            .collect(),
    }
}
