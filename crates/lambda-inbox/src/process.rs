//! One record, in one direction: begin, claim, handler, settle, outcome.

use crate::body::Decode;
use crate::error::{chain, store_chain};
use crate::handler::{Handler, HandlerError};
use crate::inbox::MismatchPolicy;
use crate::message::Message;
use crate::metrics;
use crate::outcome::{Mark, Outcome, Verdict};
use crate::worker::Worker;
use futures_util::FutureExt;
use lambda_inbox_store::{
    Claim, Claimed, Class, Entry, Existing, Failure, RolledBack, Settled, StoreError, Violation,
    Withdrawal,
};
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::time::timeout_at;

/// How one attempt at a record ended.
pub(crate) enum Attempt {
    Over(Verdict),
    Again(Again),
}

/// Why a record may be tried again within the invocation.
pub(crate) enum Again {
    /// The connection was of no use, and the handler has not run.
    Connection(StoreError),
    /// A deadlock or a serialisation failure; everything was rolled back.
    Conflict(String),
}

impl Again {
    /// The verdict where it is not tried again.
    pub(crate) fn give_up(self) -> Verdict {
        match self {
            Self::Connection(error) => Verdict::failed(store_chain(&error)).marked(Mark::Outage),
            Self::Conflict(reason) => Verdict::failed(reason),
        }
    }
}

/// How the handler ended.
enum Handled {
    Done,
    Failed(HandlerError),
    Panicked(String),
    TimedOut,
}

impl<D, H> Worker<'_, D, H>
where
    D: Decode,
    H: Handler<D::Body>,
{
    /// The whole product, for one message. Without a message there is nothing to do but to claim.
    pub(crate) async fn attempt(
        &mut self,
        message: Option<&Message<D::Body>>,
        entry: &Arc<Entry>,
        fresh: bool,
    ) -> Attempt {
        let limits = self.batch.deadline.limits();
        let connection = match self.connection(fresh).await {
            Ok(connection) => connection,
            Err(error) => return self.refused(error),
        };
        let transaction = match connection.begin(&limits).await {
            Ok(transaction) => transaction,
            Err(error) => return self.refused(error),
        };
        let mut claim = match transaction.claim(Arc::clone(entry), &limits).await {
            Ok(Claimed::Won(claim)) => claim,
            Ok(Claimed::Existing(existing)) => {
                return Attempt::Over(self.existing(existing, entry));
            }
            Err(failure) => {
                let Failure { error, connection } = *failure;
                self.put_back(connection);
                return self.refused(error);
            }
        };
        let Some(message) = message else {
            return self.settle(claim, Verdict::ignored()).await;
        };
        match self.handle(message, &mut claim).await {
            Handled::Done => self.settle(claim, Verdict::processed()).await,
            Handled::Failed(error) => self.failed(claim, &error).await,
            Handled::Panicked(text) => {
                let reason = format!("the handler panicked: {text}");
                Attempt::Over(self.stopped(claim, reason).await.marked(Mark::HandlerBug))
            }
            Handled::TimedOut => {
                let reason = "the handler was stopped, because Lambda's deadline came near; its \
                              transaction is rolled back";
                Attempt::Over(self.stopped(claim, reason.to_owned()).await)
            }
        }
    }

    async fn handle(&self, message: &Message<D::Body>, claim: &mut Claim) -> Handled {
        // Within the block, so that a panic before the first await is caught as well.
        let work = async { self.handler.handle(message, claim.connection()).await };
        let work = AssertUnwindSafe(work).catch_unwind();
        let ended = match self.batch.deadline.handler() {
            Some(deadline) => timeout_at(deadline, work).await,
            None => Ok(work.await),
        };
        match ended {
            Ok(Ok(Ok(()))) => Handled::Done,
            Ok(Ok(Err(error))) => Handled::Failed(error),
            Ok(Err(panic)) => Handled::Panicked(panic_text(&*panic)),
            Err(_) => Handled::TimedOut,
        }
    }

    async fn settle(&mut self, claim: Claim, done: Verdict) -> Attempt {
        match claim.settle(self.batch.deadline.settle()).await {
            Settled::Committed(connection) => {
                self.put_back(Some(connection));
                Attempt::Over(done)
            }
            Settled::Refused(failure) => {
                let Failure { error, connection } = *failure;
                self.put_back(connection);
                self.refused(error)
            }
            Settled::Violated {
                violation,
                withdrawal,
            } => Attempt::Over(self.violated(violation, withdrawal).await),
            Settled::Unknown(error) => Attempt::Over(Verdict::new(
                Outcome::Unknown,
                format!("{}; the next delivery finds out", store_chain(&error)),
            )),
        }
    }

    /// The handler said no.
    async fn failed(&mut self, claim: Claim, error: &HandlerError) -> Attempt {
        match claim.roll_back(self.batch.deadline.settle()).await {
            RolledBack::Proven(connection) => self.put_back(Some(connection)),
            RolledBack::Unproven(withdrawal) => {
                if self.withdraw(withdrawal).await {
                    let violation = Violation::EndedTransaction;
                    return Attempt::Over(self.violated(violation, None).await);
                }
            }
        }
        let reason = chain(error.error());
        if error.is_permanent() {
            Attempt::Over(Verdict::new(Outcome::Poison, reason))
        } else if error.is_conflict() {
            Attempt::Again(Again::Conflict(reason))
        } else {
            Attempt::Over(Verdict::failed(reason))
        }
    }

    /// The handler was stopped in the middle, so its connection may be too, and is closed.
    async fn stopped(&mut self, claim: Claim, reason: String) -> Verdict {
        if self.withdraw(claim.abandon()).await {
            return self.violated(Violation::EndedTransaction, None).await;
        }
        Verdict::failed(reason)
    }

    async fn violated(&mut self, violation: Violation, withdrawal: Option<Withdrawal>) -> Verdict {
        if let Some(withdrawal) = withdrawal {
            self.withdraw(withdrawal).await;
        }
        let consumer = self.batch.settings.consumer.as_str();
        metrics::increment(metrics::BOUNDARY_VIOLATIONS, consumer);
        Verdict::failed(format!("BoundaryViolation: {violation}")).marked(Mark::HandlerBug)
    }

    /// Returns whether the handler had committed the claim.
    async fn withdraw(&mut self, withdrawal: Withdrawal) -> bool {
        match withdrawal
            .run(&self.slot, &self.batch.deadline.closing_limits())
            .await
        {
            Ok(committed) => committed,
            Err(error) => {
                tracing::warn!(
                    consumer = self.batch.settings.consumer.as_str(),
                    reason = store_chain(&error),
                    "could not look whether the handler had committed by itself"
                );
                false
            }
        }
    }

    fn existing(&mut self, existing: Existing, entry: &Entry) -> Verdict {
        self.put_back(existing.connection);
        let Some(other) = existing.other_body else {
            return Verdict::new(Outcome::Duplicate, "committed by an earlier delivery");
        };
        let reason = format!(
            "the same key was committed for another body (fingerprint {other}, this one has {}): \
             the key is too coarse, or its numbers start over (see the mismatch policy)",
            entry.fingerprint
        );
        let verdict = Verdict::new(Outcome::Mismatch, reason);
        match self.batch.settings.mismatch {
            MismatchPolicy::Report => verdict,
            MismatchPolicy::Skip => verdict.marked(Mark::Skipped),
        }
    }

    /// A statement of the inbox's own did not work.
    fn refused(&self, error: StoreError) -> Attempt {
        let reason = store_chain(&error);
        match error.class() {
            Class::Busy => Attempt::Over(Verdict::new(Outcome::Busy, reason)),
            Class::Conflict => Attempt::Again(Again::Conflict(reason)),
            Class::Connection => Attempt::Again(Again::Connection(error)),
            Class::Setup => Attempt::Over(Verdict::failed(reason).marked(Mark::Outage)),
            Class::Refused => Attempt::Over(Verdict::failed(reason)),
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "(no text)".to_owned())
}
