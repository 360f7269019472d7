//! One handler for all messages of a batch: set-based statements, in two round trips and the handler's
//! own, however many messages there are.
//!
//! One poison row must not take ten thousand messages with it. A set that fails is halved, at last to
//! single messages; a handler that names the messages it could not take saves the search.

use super::Run;
use super::link::{Link, NoConnection};
use super::process::Again;
use super::set::{Trouble, Unit, claim, first_copies, not_won};
use super::supervise::{Handled, supervise};
use super::verdicts;
use super::worker::{CONFLICT_PAUSE, CONFLICT_RETRIES_MAX};
use crate::batch::{Batch, NO_TIME};
use crate::body::Decode;
use crate::bulk_handler::{BulkError, BulkHandler};
use crate::error::chain;
use crate::handler::HandlerError;
use crate::message::Message;
use crate::outcome::{Outcome, Verdict};
use crate::plan::Prepared;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use lambda_inbox_store::{Claim, ClaimedMany, Entry, Failure, Held, Settled};
use std::marker::PhantomData;
use std::sync::Arc;
use tokio::time::sleep;

pub(crate) struct Bulk<D, H> {
    handler: H,
    decode: PhantomData<fn() -> D>,
}

impl<D, H> Bulk<D, H> {
    pub(crate) fn new(handler: H) -> Self {
        Self {
            handler,
            decode: PhantomData,
        }
    }
}

impl<D: Decode, H: BulkHandler<D::Body>> Run for Bulk<D, H> {
    fn run<'a>(&'a self, batch: &'a Batch<'a>) -> BoxFuture<'a, Result<(), NoConnection>> {
        self.run_sets(batch).boxed()
    }

    fn keeps_order(&self) -> bool {
        false
    }
}

/// How an attempt at a set ended.
enum Ended<B> {
    /// Every record has its verdict.
    Done,
    /// These run again, each set by itself.
    Split(Vec<Vec<Unit<B>>>),
    /// The same records run again.
    Again(Again, Vec<Unit<B>>),
}

impl<D: Decode, H: BulkHandler<D::Body>> Bulk<D, H> {
    async fn run_sets(&self, batch: &Batch<'_>) -> Result<(), NoConnection> {
        let Some(mut link) = batch.links(1).await.pop() else {
            return Ok(());
        };
        link.connect(true).await?;
        let mut sets = sets::<D>(batch);
        while let Some(set) = sets.pop() {
            if !batch.deadline.may_start() {
                set.iter()
                    .for_each(|u| batch.record(u.position, Verdict::not_started(NO_TIME)));
                continue;
            }
            match self.run_set(batch, &mut link, set).await {
                Ok(parts) => sets.extend(parts),
                Err((lost, set)) => {
                    sets.push(set);
                    batch.put_jobs(sets.into_iter().flatten().map(Unit::into_job).collect());
                    return Err(lost);
                }
            }
        }
        link.keep();
        Ok(())
    }

    /// Runs a set until it has its verdicts or falls into parts.
    async fn run_set(
        &self,
        batch: &Batch<'_>,
        link: &mut Link<'_>,
        mut set: Vec<Unit<D::Body>>,
    ) -> Result<Vec<Vec<Unit<D::Body>>>, (NoConnection, Vec<Unit<D::Body>>)> {
        let (mut fresh, mut conflicts) = (false, 0);
        loop {
            let again = match self.attempt(batch, link, set, fresh).await {
                Ended::Done => return Ok(Vec::new()),
                Ended::Split(parts) => return Ok(parts),
                Ended::Again(again, units) => {
                    set = units;
                    again
                }
            };
            match again {
                Again::Connection(_) if !fresh && batch.deadline.may_start() => fresh = true,
                Again::Conflict(_)
                    if conflicts < CONFLICT_RETRIES_MAX && batch.deadline.may_start() =>
                {
                    sleep(CONFLICT_PAUSE * 2_u32.pow(conflicts)).await;
                    conflicts += 1;
                }
                Again::Connection(error) => {
                    let verdict = Again::Connection(error).give_up();
                    return Err((
                        NoConnection(verdict.reason.unwrap_or_default().into_owned()),
                        set,
                    ));
                }
                conflict @ Again::Conflict(_) => {
                    return Ok(halves(batch, set, &conflict.give_up()));
                }
            }
        }
    }

    async fn attempt(
        &self,
        batch: &Batch<'_>,
        link: &mut Link<'_>,
        set: Vec<Unit<D::Body>>,
        fresh: bool,
    ) -> Ended<D::Body> {
        let entries: Vec<Arc<Entry>> = set
            .iter()
            .map(|unit| Arc::clone(&unit.prepared.entry))
            .collect();
        let ClaimedMany { rows, held } = match claim(batch, link, &entries, fresh).await {
            Ok(claimed) => claimed,
            Err(Trouble::Again(again)) => return Ended::Again(again, set),
            Err(Trouble::Verdict(verdict)) if verdict.is_outage() => {
                set.iter()
                    .for_each(|unit| batch.record(unit.position, verdict.clone()));
                return Ended::Done;
            }
            // One key that the server refuses must not hold up the others.
            Err(Trouble::Verdict(verdict)) => return Ended::Split(halves(batch, set, &verdict)),
        };
        let mut won = Vec::with_capacity(set.len());
        for (unit, row) in set.into_iter().zip(rows) {
            match not_won(batch, &unit.prepared.entry, row) {
                Some(verdict) => batch.record(unit.position, verdict),
                None => won.push(unit),
            }
        }
        match held {
            Held::Nothing(connection) => {
                link.put_back(connection);
                Ended::Done
            }
            Held::Claim(claim) => self.handle(batch, link, claim, won).await,
        }
    }

    async fn handle(
        &self,
        batch: &Batch<'_>,
        link: &mut Link<'_>,
        mut claim: Claim,
        won: Vec<Unit<D::Body>>,
    ) -> Ended<D::Body> {
        let mut taken = Taken::new(won);
        let handled = if taken.messages.is_empty() {
            Handled::Done
        } else {
            // Within a block, so that a panic before the first await is caught as well.
            let work = async {
                self.handler
                    .handle(&taken.messages, claim.connection())
                    .await
            };
            supervise(&batch.deadline, work).await
        };
        match handled {
            Handled::Done => settle(batch, link, claim, taken.into_units()).await,
            Handled::Failed(error) => {
                link.roll_back(claim).await;
                match error {
                    BulkError::Whole(error) if error.is_worth_another_run() => {
                        if error.is_of_the_session() {
                            link.discard();
                        }
                        let reason = chain(error.error());
                        Ended::Again(Again::Conflict(reason), taken.into_units())
                    }
                    BulkError::Whole(error) => {
                        Ended::Split(halves(batch, taken.into_units(), &verdict(&error)))
                    }
                    BulkError::Messages(failed) => {
                        for (id, error) in failed {
                            taken.fail(batch, &id, &verdict(&error));
                        }
                        taken.rest(batch)
                    }
                }
            }
            Handled::Panicked(text) => {
                link.withdraw(claim.abandon()).await;
                Ended::Split(halves(
                    batch,
                    taken.into_units(),
                    &verdicts::panicked(&text),
                ))
            }
            Handled::TimedOut => {
                link.withdraw(claim.abandon()).await;
                let stopped = Verdict::failed(verdicts::STOPPED);
                taken
                    .into_units()
                    .iter()
                    .for_each(|u| batch.record(u.position, stopped.clone()));
                Ended::Done
            }
        }
    }
}

/// The won records, with the messages in one slice for the handler.
struct Taken<B> {
    /// Position and record of each message, in the messages' order.
    of_messages: Vec<(usize, Prepared)>,
    messages: Vec<Message<B>>,
    /// Records without a message.
    others: Vec<Unit<B>>,
    named: bool,
}

impl<B> Taken<B> {
    fn new(won: Vec<Unit<B>>) -> Self {
        let mut taken = Self {
            of_messages: Vec::with_capacity(won.len()),
            messages: Vec::with_capacity(won.len()),
            others: Vec::new(),
            named: false,
        };
        for Unit {
            position,
            prepared,
            message,
        } in won
        {
            match message {
                Some(message) => {
                    taken.of_messages.push((position, prepared));
                    taken.messages.push(message);
                }
                None => taken.others.push(Unit {
                    position,
                    prepared,
                    message: None,
                }),
            }
        }
        taken
    }

    fn into_units(self) -> Vec<Unit<B>> {
        let units = self.of_messages.into_iter().zip(self.messages);
        let units = units.map(|((position, prepared), message)| Unit {
            position,
            prepared,
            message: Some(message),
        });
        units.chain(self.others).collect()
    }

    /// Gives the messages with this id their verdict and takes them out.
    fn fail(&mut self, batch: &Batch<'_>, id: &str, verdict: &Verdict) {
        while let Some(index) = self.messages.iter().position(|m| m.message_id() == id) {
            self.messages.remove(index);
            let (position, _) = self.of_messages.remove(index);
            batch.record(position, verdict.clone());
            self.named = true;
        }
    }

    /// What is left after the handler has named the messages that failed runs again without them.
    fn rest(self, batch: &Batch<'_>) -> Ended<B> {
        let named = self.named;
        let units = self.into_units();
        if named {
            return Ended::Split(if units.is_empty() {
                Vec::new()
            } else {
                vec![units]
            });
        }
        let nobody = Verdict::failed("the handler named no message of the batch as failed");
        Ended::Split(halves(batch, units, &nobody))
    }
}

async fn settle<B>(
    batch: &Batch<'_>,
    link: &mut Link<'_>,
    claim: Claim,
    won: Vec<Unit<B>>,
) -> Ended<B> {
    match claim.settle(batch.deadline.settle()).await {
        Settled::Committed(connection) => {
            link.put_back(Some(connection));
            won.iter()
                .for_each(|unit| batch.record(unit.position, unit.done()));
            Ended::Done
        }
        Settled::Refused(failure) => {
            let Failure { error, connection } = *failure;
            link.put_back(connection);
            match super::set::trouble(error) {
                Trouble::Again(again) => Ended::Again(again, won),
                Trouble::Verdict(verdict) => Ended::Split(halves(batch, won, &verdict)),
            }
        }
        Settled::Violated {
            violation,
            withdrawal,
        } => {
            if let Some(withdrawal) = withdrawal {
                link.withdraw(withdrawal).await;
            }
            let verdict = verdicts::violated(violation, &batch.settings.consumer);
            Ended::Split(halves(batch, won, &verdict))
        }
        Settled::Unknown(error) => {
            let unknown = verdicts::unknown(&error);
            won.iter()
                .for_each(|unit| batch.record(unit.position, unknown.clone()));
            Ended::Done
        }
    }
}

/// All records with different keys, then the further copies in sets of their own, the first set last.
fn sets<D: Decode>(batch: &Batch<'_>) -> Vec<Vec<Unit<D::Body>>> {
    let mut jobs = batch.take_jobs();
    let mut sets = Vec::new();
    while !jobs.is_empty() {
        let (first, copies) = first_copies(jobs);
        let mut set = Vec::with_capacity(first.len());
        for job in first {
            match Unit::new::<D>(batch, job) {
                Ok(unit) => set.push(unit),
                Err((position, verdict)) => batch.record(position, verdict),
            }
        }
        sets.push(set);
        jobs = copies;
    }
    sets.retain(|set| !set.is_empty());
    sets.reverse();
    sets
}

/// A set that failed falls in two; a single record has failed for good.
pub(super) fn halves<B>(
    batch: &Batch<'_>,
    mut set: Vec<Unit<B>>,
    verdict: &Verdict,
) -> Vec<Vec<Unit<B>>> {
    if let [unit] = set.as_slice() {
        batch.record(unit.position, verdict.clone());
        return Vec::new();
    }
    let right = set.split_off(set.len() / 2);
    // The left half is taken first.
    [right, set]
        .into_iter()
        .filter(|half| !half.is_empty())
        .collect()
}

fn verdict(error: &HandlerError) -> Verdict {
    let outcome = if error.is_permanent() {
        Outcome::Poison
    } else {
        Outcome::Failed
    };
    Verdict::new(outcome, chain(error.error())).with_sqlstate(error.sqlstates().next())
}
