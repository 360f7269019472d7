//! One record, in one direction: begin, claim, handler, settle, outcome.

use super::supervise::{Handled, supervise};
use super::verdicts;
use super::worker::Worker;
use crate::body::Decode;
use crate::error::{chain, store_chain};
use crate::handler::{Handler, HandlerError};
use crate::message::Message;
use crate::metrics;
use crate::outcome::{Mark, Outcome, Verdict};
use lambda_inbox_store::{
    Claim, Claimed, Entry, Failure, Settled, StoreError, Violation, Withdrawal,
};
use std::sync::Arc;
use std::time::Instant;

/// How one attempt at a record ended.
pub(crate) enum Attempt {
    Over(Verdict),
    Again(Again),
}

/// Why a record may be tried again within the invocation.
pub(crate) enum Again {
    /// The connection was of no use, and the handler has not run.
    Connection(StoreError),
    /// A deadlock, a serialisation failure or the like; everything was rolled back.
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
        let connection = match self.link.connection(fresh).await {
            Ok(connection) => connection,
            Err(error) => return self.refused(error),
        };
        let started = Instant::now();
        let claimed = connection.claim(Arc::clone(entry), &limits).await;
        metrics::claim_duration(&self.batch.settings.consumer, started.elapsed());
        let mut claim = match claimed {
            Ok(Claimed::Won(claim)) => claim,
            Ok(Claimed::Existing(existing)) => {
                self.link.put_back(existing.connection);
                let policy = self.batch.settings.mismatch;
                return Attempt::Over(verdicts::existing(existing.other_body, entry, policy));
            }
            Err(failure) => {
                let Failure { error, connection } = *failure;
                self.link.put_back(connection);
                return self.refused(error);
            }
        };
        let Some(message) = message else {
            return self.settle(claim, Verdict::ignored()).await;
        };
        // Within a block, so that a panic before the first await is caught as well.
        let work = async { self.handler.handle(message, claim.connection()).await };
        match supervise(&self.batch.deadline, work).await {
            Handled::Done => self.settle(claim, Verdict::processed()).await,
            Handled::Failed(error) => self.failed(claim, &error).await,
            Handled::Panicked(text) => {
                Attempt::Over(self.stopped(claim, verdicts::panicked(&text)).await)
            }
            Handled::TimedOut => Attempt::Over(
                self.stopped(claim, Verdict::failed(verdicts::STOPPED))
                    .await,
            ),
        }
    }

    async fn settle(&mut self, claim: Claim, done: Verdict) -> Attempt {
        match claim.settle(self.batch.deadline.settle()).await {
            Settled::Committed(connection) => {
                self.link.put_back(Some(connection));
                Attempt::Over(done)
            }
            Settled::Refused(failure) => {
                let Failure { error, connection } = *failure;
                self.link.put_back(connection);
                self.refused(error)
            }
            Settled::Violated {
                violation,
                withdrawal,
            } => Attempt::Over(self.violated(violation, withdrawal).await),
            Settled::Unknown(error) => Attempt::Over(verdicts::unknown(&error)),
        }
    }

    /// The handler said no.
    async fn failed(&mut self, claim: Claim, error: &HandlerError) -> Attempt {
        if self.link.roll_back(claim).await {
            return Attempt::Over(self.violated(Violation::EndedTransaction, None).await);
        }
        if error.is_of_the_session() {
            self.link.discard();
        }
        let reason = chain(error.error());
        let sqlstate = error.sqlstates().next();
        if error.is_permanent() {
            Attempt::Over(Verdict::new(Outcome::Poison, reason).with_sqlstate(sqlstate))
        } else if error.is_worth_another_run() {
            Attempt::Again(Again::Conflict(reason))
        } else {
            Attempt::Over(Verdict::failed(reason).with_sqlstate(sqlstate))
        }
    }

    /// The handler was stopped in the middle, so its connection may be too, and is closed.
    async fn stopped(&mut self, claim: Claim, verdict: Verdict) -> Verdict {
        if self.link.withdraw(claim.abandon()).await {
            return self.violated(Violation::EndedTransaction, None).await;
        }
        verdict
    }

    async fn violated(&mut self, violation: Violation, withdrawal: Option<Withdrawal>) -> Verdict {
        if let Some(withdrawal) = withdrawal {
            self.link.withdraw(withdrawal).await;
        }
        verdicts::violated(violation, &self.batch.settings.consumer)
    }

    /// A statement of the inbox's own did not work.
    fn refused(&self, error: StoreError) -> Attempt {
        match verdicts::refused(error) {
            Ok(again) => Attempt::Again(again),
            Err(verdict) => Attempt::Over(verdict),
        }
    }
}
