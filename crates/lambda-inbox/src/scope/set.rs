//! Records that are claimed together.

use super::link::Link;
use super::process::Again;
use super::verdicts;
use crate::batch::Batch;
use crate::body::Decode;
use crate::message::Message;
use crate::metrics;
use crate::outcome::Verdict;
use crate::plan::{Job, Prepared};
use lambda_inbox_store::{ClaimedMany, Entry, Failure, Key, RowClaim, StoreError};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

/// One record of a set.
pub(super) struct Unit<B> {
    pub(super) position: usize,
    pub(super) prepared: Prepared,
    /// `None` where there is nothing to do but to claim.
    pub(super) message: Option<Message<B>>,
}

impl<B> Unit<B> {
    /// Decodes a record that has no verdict yet.
    pub(super) fn new<D: Decode<Body = B>>(
        batch: &Batch<'_>,
        job: Job,
    ) -> Result<Self, (usize, Verdict)> {
        let position = job.position;
        let prepared = job.work.map_err(|verdict| (position, verdict))?;
        let message = prepared.message::<D>(&batch.deadline);
        let message = message.map_err(|verdict| (position, verdict))?;
        Ok(Self {
            position,
            prepared,
            message,
        })
    }

    /// The verdict once it has committed.
    pub(super) fn done(&self) -> Verdict {
        if self.message.is_some() {
            Verdict::processed()
        } else {
            Verdict::ignored()
        }
    }

    pub(super) fn into_job(self) -> Job {
        Job {
            position: self.position,
            group: None,
            work: Ok(self.prepared),
        }
    }
}

/// Splits records into those whose keys are all different and the further copies, which must wait for
/// the first of each. The order of arrival stays.
pub(super) fn first_copies(jobs: Vec<Job>) -> (Vec<Job>, Vec<Job>) {
    let mut seen: HashSet<Key> = HashSet::with_capacity(jobs.len());
    jobs.into_iter().partition(|job| match &job.work {
        Ok(prepared) => seen.insert(prepared.entry.key.clone()),
        Err(_) => true,
    })
}

/// Why a set was not claimed.
pub(super) enum Trouble {
    /// It is worth another try.
    Again(Again),
    /// The same for every record of it.
    Verdict(Verdict),
}

/// Opens a transaction and claims a set in it.
pub(super) async fn claim(
    batch: &Batch<'_>,
    link: &mut Link<'_>,
    entries: &[Arc<Entry>],
    fresh: bool,
) -> Result<ClaimedMany, Trouble> {
    let limits = batch.deadline.limits();
    let connection = link.connection(fresh).await.map_err(trouble)?;
    let started = Instant::now();
    let claimed = connection.claim_many(entries, &limits).await;
    metrics::claim_duration(&batch.settings.consumer, started.elapsed());
    claimed.map_err(|failure| {
        let Failure { error, connection } = *failure;
        link.put_back(connection);
        trouble(error)
    })
}

pub(super) fn trouble(error: StoreError) -> Trouble {
    match verdicts::refused(error) {
        Ok(again) => Trouble::Again(again),
        Err(verdict) => Trouble::Verdict(verdict),
    }
}

/// The verdict on a row that was not won.
pub(super) fn not_won(batch: &Batch<'_>, entry: &Entry, row: RowClaim) -> Option<Verdict> {
    match row {
        RowClaim::Won => None,
        RowClaim::Existing { other_body } => Some(verdicts::existing(
            other_body,
            entry,
            batch.settings.mismatch,
        )),
        RowClaim::Busy => Some(verdicts::busy(verdicts::HELD)),
    }
}
