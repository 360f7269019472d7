//! One connection's share of an invocation.

use super::link::{Link, NoConnection};
use super::process::{Again, Attempt};
use crate::batch::{Batch, NO_TIME};
use crate::body::Decode;
use crate::handler::Handler;
use crate::metrics;
use crate::outcome::Verdict;
use crate::plan::{Job, Lane, Prepared};
use crate::span;
use std::collections::HashSet;
use std::marker::PhantomData;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tracing::{Instrument, Span};

/// How often a record that meets a deadlock or a serialisation failure runs again at once.
pub(super) const CONFLICT_RETRIES_MAX: u32 = 3;

/// The first pause before such a run; it doubles.
pub(super) const CONFLICT_PAUSE: Duration = Duration::from_millis(10);

const BEHIND_A_FAILURE: &str = "an earlier message of its group did not finish, and order is kept";

pub(crate) struct Worker<'a, D, H> {
    pub(crate) batch: &'a Batch<'a>,
    pub(crate) handler: &'a H,
    pub(crate) link: Link<'a>,
    decode: PhantomData<fn() -> D>,
}

impl<'a, D, H> Worker<'a, D, H>
where
    D: Decode,
    H: Handler<D::Body>,
{
    pub(crate) fn new(batch: &'a Batch<'a>, handler: &'a H, link: Link<'a>) -> Self {
        Self {
            batch,
            handler,
            link,
            decode: PhantomData,
        }
    }

    /// Works lanes off. Takes none before it has a connection, so that one that gets no connection
    /// leaves them to the others.
    ///
    /// # Errors
    /// Why there was no connection, or none any more.
    pub(crate) async fn run(mut self, first: bool) -> Result<(), NoConnection> {
        self.link.connect(first).await?;
        while self.batch.deadline.may_start() {
            let Some(lane) = self.batch.next_lane() else {
                break;
            };
            self.run_lane(lane).await?;
        }
        self.link.keep();
        Ok(())
    }

    async fn run_lane(&mut self, lane: Lane) -> Result<(), NoConnection> {
        let mut stopped = HashSet::new();
        let mut lost: Option<String> = None;
        for Job {
            position,
            group,
            work,
        } in lane.jobs
        {
            let (verdict, span) = match work {
                Err(verdict) => (verdict, Span::none()),
                Ok(prepared) => match self.obstacle(&lost, stopped.contains(&group)) {
                    Some(reason) => (Verdict::not_started(reason), Span::none()),
                    None => self.run_message(prepared).await,
                },
            };
            if verdict.is_outage() {
                lost = verdict.reason.as_deref().map(str::to_owned);
            }
            if verdict.is_reported() && group.is_some() {
                stopped.insert(group);
            }
            span.in_scope(|| self.batch.record(position, verdict));
        }
        lost.map_or(Ok(()), |reason| Err(NoConnection(reason)))
    }

    /// Why the next record may not start.
    fn obstacle(&self, lost: &Option<String>, group_stopped: bool) -> Option<String> {
        if group_stopped {
            Some(BEHIND_A_FAILURE.to_owned())
        } else if !self.batch.deadline.may_start() {
            Some(NO_TIME.to_owned())
        } else {
            lost.clone()
        }
    }

    async fn run_message(&mut self, prepared: Prepared) -> (Verdict, Span) {
        let consumer = &self.batch.settings.consumer;
        let span = span::message(consumer, &prepared.record);
        let started = Instant::now();
        let verdict = self.process(prepared).instrument(span.clone()).await;
        metrics::duration(consumer.as_str(), started.elapsed());
        span.record("lambda_inbox.outcome", verdict.outcome.as_str());
        if !verdict.outcome.is_committed() {
            span.record("error.type", verdict.outcome.as_str());
        }
        (verdict, span)
    }

    async fn process(&mut self, prepared: Prepared) -> Verdict {
        let message = match prepared.message::<D>(&self.batch.deadline) {
            Ok(message) => message,
            Err(verdict) => return verdict,
        };
        let mut fresh = false;
        let mut conflicts = 0;
        loop {
            let again = match self.attempt(message.as_ref(), &prepared.entry, fresh).await {
                Attempt::Over(verdict) => return verdict,
                Attempt::Again(again) => again,
            };
            if !self.batch.deadline.may_start() {
                return again.give_up();
            }
            match again {
                Again::Connection(_) if !fresh => fresh = true,
                Again::Conflict(_) if conflicts < CONFLICT_RETRIES_MAX => {
                    sleep(CONFLICT_PAUSE * 2_u32.pow(conflicts)).await;
                    conflicts += 1;
                }
                Again::Connection(_) | Again::Conflict(_) => return again.give_up(),
            }
        }
    }
}
