//! One invocation: the records that are open, the verdicts on the others, and the response.

use crate::deadline::Deadline;
use crate::error::{InboxError, Outage};
use crate::failure_log;
use crate::inbox::{OutagePolicy, Settings};
use crate::metrics;
use crate::outcome::{Mark, Outcome, Report, Verdict};
use crate::plan::{Identity, Job, Lane, Plan, lanes};
use crate::response::{Answer, response};
use crate::scope::{Link, NoConnection, Run};
use aws_lambda_events::sqs::SqsBatchResponse;
use lambda_inbox_store::{Consumer, FailedMessage};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use tokio::time::timeout_at;

pub(crate) const NO_TIME: &str =
    "too little time was left to start it; it comes back untouched (see the reserve setting)";

/// The state of one invocation. Nothing of it outlives the response.
pub(crate) struct Batch<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) deadline: Deadline,
    pub(crate) fifo: bool,
    identities: Vec<Identity>,
    open: Mutex<Open>,
    verdicts: Mutex<Vec<Option<Verdict>>>,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(settings: &'a Settings, deadline: Deadline, plan: Plan) -> Self {
        let verdicts = vec![None; plan.identities.len()];
        Self {
            settings,
            deadline,
            fifo: plan.fifo,
            identities: plan.identities,
            open: Mutex::new(Open {
                jobs: plan.jobs,
                lanes: VecDeque::new(),
            }),
            verdicts: Mutex::new(verdicts),
        }
    }

    /// Runs the whole batch and makes the response.
    pub(crate) async fn run(self, scope: &dyn Run) -> Result<SqsBatchResponse, InboxError> {
        let lost = scope.run(&self).await.err();
        self.record_untouched(lost);
        if self.settings.failure_log {
            failure_log::write(&self).await;
        }
        self.finish()
    }

    /// Links to as many connections as are free and of use, at most `wanted`. Waits for the first one
    /// only, and holds none while it waits: two invocations of one environment cannot block each
    /// other. Empty where there is nothing to do or no time for it.
    pub(crate) async fn links(&self, wanted: usize) -> Vec<Link<'_>> {
        let wanted = wanted.min(self.settings.connections.get());
        let wanted = wanted.min(self.open().count_lanes(wanted));
        if wanted == 0 || !self.deadline.may_start() {
            return Vec::new();
        }
        let store = &self.settings.store;
        let Ok(first) = timeout_at(self.deadline.before_handler(), store.slot()).await else {
            return Vec::new();
        };
        let slots = std::iter::once(first).chain(std::iter::from_fn(|| store.try_slot()));
        slots
            .take(wanted)
            .map(|slot| Link::new(self, slot))
            .collect()
    }

    /// Takes all records, in the order of arrival.
    pub(crate) fn take_jobs(&self) -> Vec<Job> {
        let Open { mut jobs, lanes } = std::mem::take(&mut *self.open());
        jobs.extend(lanes.into_iter().flat_map(|lane| lane.jobs));
        jobs.sort_by_key(|job| job.position);
        jobs
    }

    /// Gives records back that have no verdict yet.
    pub(crate) fn put_jobs(&self, mut jobs: Vec<Job>) {
        jobs.sort_by_key(|job| job.position);
        self.open().jobs = jobs;
    }

    pub(crate) fn next_lane(&self) -> Option<Lane> {
        self.open().lanes().pop_front()
    }

    fn open(&self) -> std::sync::MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a verdict down and tells everyone who wants to know.
    pub(crate) fn record(&self, position: usize, verdict: Verdict) {
        let Some(identity) = self.identities.get(position) else {
            return;
        };
        let settings = self.settings;
        log(&settings.consumer, identity, &verdict);
        if let Some(hook) = &settings.hook {
            let report = Report {
                consumer: settings.consumer.clone(),
                position,
                message_id: identity.message_id.as_deref().map(str::to_owned),
                key: identity.entry.as_ref().map(|entry| entry.key.clone()),
                outcome: verdict.outcome,
                reason: verdict.reason.as_deref().map(str::to_owned),
            };
            if catch_unwind(AssertUnwindSafe(|| hook(&report))).is_err() {
                tracing::error!(consumer = %settings.consumer, "the outcome hook panicked");
            }
        }
        let mut verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = verdicts.get_mut(position) {
            *place = Some(verdict);
        }
    }

    /// What the failure log is to say.
    pub(crate) fn failed(&self) -> Vec<FailedMessage> {
        let verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        let pairs = self.identities.iter().zip(verdicts.iter());
        pairs
            .filter_map(|(identity, verdict)| failure_log::row(identity, verdict.as_ref()?))
            .collect()
    }

    fn finish(self) -> Result<SqsBatchResponse, InboxError> {
        let verdicts = self
            .verdicts
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let verdicts: Vec<Verdict> = verdicts
            .into_iter()
            .map(|verdict| verdict.unwrap_or_else(|| Verdict::not_started(NO_TIME)))
            .collect();
        let consumer = self.settings.consumer.clone();
        metrics::count(&consumer, verdicts.iter().map(|verdict| verdict.outcome));
        let unidentified = self
            .identities
            .iter()
            .filter(|i| i.message_id.is_none())
            .count();
        if unidentified > 0 {
            return Err(InboxError::Unidentified {
                consumer,
                count: unidentified,
            });
        }
        let outage = verdicts.iter().find(|verdict| verdict.is_outage());
        let committed = verdicts
            .iter()
            .any(|verdict| verdict.outcome.is_committed());
        if let (Some(outage), false, OutagePolicy::FailInvocation) =
            (outage, committed, self.settings.outage)
        {
            metrics::increment(metrics::OUTAGES, consumer.as_str());
            let source = Outage(outage.reason.clone().unwrap_or_default().into_owned());
            return Err(InboxError::Outage { consumer, source });
        }
        let answers: Vec<_> = self
            .identities
            .iter()
            .zip(&verdicts)
            .map(|(identity, verdict)| Answer {
                message_id: identity.message_id.as_deref(),
                key: identity.entry.as_ref().map(|entry| &entry.key),
                fingerprint: identity.entry.as_ref().map(|entry| &entry.fingerprint),
                verdict,
            })
            .collect();
        Ok(response(&answers))
    }

    /// What no worker took: there was no connection, or the time was up.
    fn record_untouched(&self, lost: Option<NoConnection>) {
        while let Some(lane) = self.next_lane() {
            for job in lane.jobs {
                let untouched = match &lost {
                    Some(NoConnection(reason)) => {
                        Verdict::not_started(reason.clone()).marked(Mark::Outage)
                    }
                    None => Verdict::not_started(NO_TIME),
                };
                self.record(job.position, job.work.err().unwrap_or(untouched));
            }
        }
    }
}

/// The records without a verdict, in the order of arrival until somebody asks for their lanes.
#[derive(Default)]
struct Open {
    jobs: Vec<Job>,
    lanes: VecDeque<Lane>,
}

impl Open {
    /// How many lanes there are, as far as `wanted`.
    fn count_lanes(&mut self, wanted: usize) -> usize {
        match wanted {
            1 if !self.jobs.is_empty() => 1,
            _ => self.lanes().len(),
        }
    }

    fn lanes(&mut self) -> &mut VecDeque<Lane> {
        if !self.jobs.is_empty() {
            self.lanes.extend(lanes(std::mem::take(&mut self.jobs)));
        }
        &mut self.lanes
    }
}

/// One line for each record that needs someone's attention.
fn log(consumer: &Consumer, identity: &Identity, verdict: &Verdict) {
    let (consumer, outcome) = (consumer.as_str(), verdict.outcome.as_str());
    let message_id = identity.message_id.as_deref().unwrap_or("(none)");
    let reason = verdict.reason.as_deref().unwrap_or_default();
    match (verdict.outcome, verdict.mark) {
        (_, Mark::HandlerBug) => {
            tracing::error!(
                consumer,
                message_id,
                outcome,
                reason,
                "the handler has a bug"
            );
        }
        (_, Mark::Skipped) => {
            tracing::warn!(consumer, message_id, outcome, reason, "record skipped");
        }
        (Outcome::Processed | Outcome::Ignored | Outcome::Duplicate, _) => {
            tracing::debug!(consumer, message_id, outcome, reason, "record done");
        }
        (Outcome::Busy | Outcome::NotStarted, _) => {
            tracing::info!(consumer, message_id, outcome, reason, "record goes back");
        }
        (Outcome::Failed | Outcome::Poison | Outcome::Unknown | Outcome::Mismatch, _) => {
            tracing::warn!(consumer, message_id, outcome, reason, "record goes back");
        }
    }
}
