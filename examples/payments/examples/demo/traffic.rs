//! The queue: what is sent, poll after poll until it is empty.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use lambda_inbox_testkit::queue::{
    ConfigError, InvocationTime, PollReport, QueueConfig, SendError, Simulator, Stats,
};

use crate::bank::{Bank, BankError};
use crate::progress::Progress;
use crate::scenario::{LATE_FAILURES, RECEIVES_MAX, Scenario};
use crate::victim::Victim;

const BATCH_SIZE: usize = 10;
const FUNCTION_TIMEOUT: Duration = Duration::from_secs(30);
/// Six times the function's timeout, as AWS advises.
const VISIBILITY_TIMEOUT: Duration = Duration::from_secs(180);
/// On the queue's virtual clock, where it makes messages come back in the middle of the run.
const INVOCATION_TIME: Duration = Duration::from_secs(5);
/// By which the virtual clock moves on while nothing is visible.
const CLOCK_STEP: Duration = Duration::from_secs(10);

/// The queue and what is known of its messages.
pub(crate) struct Traffic {
    queue: Simulator,
    /// By MessageId: how often a payment from the late account failed; `None` for other payments.
    good: HashMap<String, Option<u32>>,
    /// MessageIds whose second delivery is still to come.
    twice: HashSet<String>,
    late_account_open: bool,
    /// Of good messages.
    pub(crate) deliveries: u64,
    progress: Progress,
    polls_max: u64,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum TrafficError {
    #[error("the queue cannot be set up")]
    Queue(#[from] ConfigError),
    #[error("a message cannot be sent")]
    Send(#[from] SendError),
    #[error("the progress cannot be read")]
    Progress(#[source] sqlx::Error),
    #[error("the late account cannot be opened")]
    LateAccount(#[from] BankError),
    #[error("the queue is not empty after {polls} polls")]
    Endless { polls: u64 },
}

impl Traffic {
    /// Sends everything.
    pub(crate) fn new(scenario: &Scenario) -> Result<Self, TrafficError> {
        let config = QueueConfig::builder()
            .queue_name("payments")
            .batch_size(BATCH_SIZE)
            .shuffle(true)
            .max_receive_count(RECEIVES_MAX)
            .visibility_timeout(VISIBILITY_TIMEOUT)
            .function_timeout(FUNCTION_TIMEOUT)
            .invocation_time(InvocationTime::Fixed(INVOCATION_TIME))
            .build()?;
        let mut queue = Simulator::new(config, scenario.seed);
        let mut ids = Vec::with_capacity(scenario.payments.len());
        for payment in &scenario.payments {
            ids.push(queue.send(payment.body())?);
        }
        for body in &scenario.poison {
            queue.send(body.as_str())?;
        }
        let twice = scenario.twice.iter().map(|&n| ids[n].clone()).collect();
        let failures = scenario.payments.iter().map(|p| p.is_late().then_some(0));
        Ok(Self {
            queue,
            good: ids.into_iter().zip(failures).collect(),
            twice,
            late_account_open: false,
            deliveries: 0,
            progress: Progress::new(scenario.payments.len()),
            // Every message alone in its batch, every time.
            polls_max: u64::from(RECEIVES_MAX) * (scenario.payments.len() as u64 + 10),
        })
    }

    /// Polls until the queue is empty.
    pub(crate) async fn deliver_all(
        &mut self,
        victim: &mut Victim,
        bank: &mut Bank,
    ) -> Result<(), TrafficError> {
        while self.queue.in_queue().len() > 0 {
            let Some(report) = self.queue.poll_once(victim).await else {
                self.queue.advance(CLOCK_STEP);
                continue;
            };
            victim.check().map_err(TrafficError::Progress)?;
            let stats = self.queue.stats();
            if stats.invocations > self.polls_max {
                return Err(TrafficError::Endless {
                    polls: stats.invocations,
                });
            }
            self.take_in(&report);
            if self.late_account_is_due() {
                bank.open_late_account().await?;
                self.late_account_open = true;
            }
            self.progress
                .tell(victim.bookings, self.deliveries, stats.crashes);
        }
        self.progress.finish();
        Ok(())
    }

    /// How many good messages are in the dead-letter queue, and how many others.
    pub(crate) fn dead_letters(&self) -> (usize, usize) {
        let dead = self.queue.dead_letters();
        let good = dead.iter().filter(|m| self.good.contains_key(m.id()));
        let good = good.count();
        (good, dead.len() - good)
    }

    pub(crate) fn stats(&self) -> Stats {
        self.queue.stats()
    }

    fn take_in(&mut self, report: &PollReport) {
        let delivered = report.delivered.iter().map(|d| &d.message_id);
        self.deliveries += delivered.filter(|id| self.good.contains_key(*id)).count() as u64;
        for id in &report.returned {
            if let Some(Some(failures)) = self.good.get_mut(id) {
                *failures += 1;
            }
        }
        for id in &report.deleted {
            if self.twice.remove(id) {
                self.queue.deliver_again(id);
            }
        }
    }

    fn late_account_is_due(&self) -> bool {
        let failures = self.good.values().flatten();
        !self.late_account_open && failures.max().is_some_and(|most| *most >= LATE_FAILURES)
    }
}
