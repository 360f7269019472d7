//! One connection's share of an invocation.

use crate::batch::{Batch, NO_TIME};
use crate::body::Decode;
use crate::error::store_chain;
use crate::handler::Handler;
use crate::message::Message;
use crate::metrics;
use crate::outcome::{Outcome, Verdict};
use crate::plan::{Job, Lane, Prepared};
use crate::process::{Again, Attempt};
use crate::record::DecodeError;
use crate::span;
use lambda_inbox_store::{Connection, Slot, Status, StoreError};
use std::marker::PhantomData;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tracing::{Instrument, Span};

/// How often a record that meets a deadlock or a serialisation failure runs again at once.
const CONFLICT_RETRIES_MAX: u32 = 3;

/// The first pause before such a run; it doubles.
const CONFLICT_PAUSE: Duration = Duration::from_millis(10);

const BEHIND_A_FAILURE: &str =
    "an earlier message of the FIFO batch did not finish, and order is kept";

pub(crate) struct Worker<'a, D, H> {
    pub(crate) batch: &'a Batch<'a>,
    pub(crate) handler: &'a H,
    pub(crate) slot: Slot,
    connection: Option<Connection>,
    decode: PhantomData<fn() -> D>,
}

impl<'a, D, H> Worker<'a, D, H>
where
    D: Decode,
    H: Handler<D::Body>,
{
    pub(crate) fn new(batch: &'a Batch<'a>, handler: &'a H, slot: Slot) -> Self {
        Self {
            batch,
            handler,
            slot,
            connection: None,
            decode: PhantomData,
        }
    }

    /// Works lanes off. Takes none before it has a connection, so that one that gets no connection
    /// leaves them to the others.
    ///
    /// # Errors
    /// Why there was no connection, or none any more.
    pub(crate) async fn run(mut self, first: bool) -> Result<(), NoConnection> {
        let connection = match self.connection(false).await {
            // The first is the one that must have it; the others are a help where they get one.
            Err(_) if first => self.connection(true).await,
            connection => connection,
        };
        self.connection = Some(connection.map_err(|error| NoConnection(store_chain(&error)))?);
        while self.batch.deadline.may_start() {
            let Some(lane) = self.batch.next_lane() else {
                break;
            };
            self.run_lane(lane).await?;
        }
        if let Some(connection) = self.connection.take() {
            connection.keep();
        }
        Ok(())
    }

    async fn run_lane(&mut self, lane: Lane) -> Result<(), NoConnection> {
        let mut behind = None;
        let mut lost = None;
        for Job { position, work } in lane.jobs {
            let (verdict, span) = match (work, &behind) {
                (Err(verdict), _) => (verdict, Span::none()),
                (Ok(_), Some(reason)) => (Verdict::not_started(reason), Span::none()),
                (Ok(_), None) if !self.batch.deadline.may_start() => {
                    (Verdict::not_started(NO_TIME), Span::none())
                }
                (Ok(prepared), None) => self.run_message(*prepared).await,
            };
            if verdict.is_outage() {
                lost = verdict.reason.clone();
                behind = lost.clone();
            } else if lane.ordered && verdict.is_reported() && behind.is_none() {
                behind = Some(BEHIND_A_FAILURE.to_owned());
            }
            span.in_scope(|| self.batch.record(position, verdict));
        }
        lost.map_or(Ok(()), |reason| Err(NoConnection(reason)))
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
        let Prepared {
            record,
            content,
            entry,
        } = prepared;
        let body = match D::decode(&record, content.body.as_deref()) {
            _ if entry.status == Status::Ignored => None,
            Ok(body) => Some(body),
            Err(_) if content.offloaded.is_some() => {
                return Verdict::new(Outcome::Poison, DecodeError::Offloaded.to_string());
            }
            Err(error) => return Verdict::new(Outcome::Poison, error.to_string()),
        };
        let deadline = self.batch.deadline.handler();
        let message = body.map(|body| Message::new(body, &entry, record, content, deadline));
        let mut fresh = false;
        let mut conflicts = 0;
        loop {
            let again = match self.attempt(message.as_ref(), &entry, fresh).await {
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

    /// The connection of the record before, a kept one, or a new one.
    pub(crate) async fn connection(&mut self, fresh: bool) -> Result<Connection, StoreError> {
        let until = self.batch.deadline.before_handler();
        match self.connection.take() {
            _ if fresh => self.slot.fresh_connection(until).await,
            Some(connection) => Ok(connection),
            None => self.slot.connection(until).await,
        }
    }

    /// Takes a connection back for the next record.
    pub(crate) fn put_back(&mut self, connection: Option<Connection>) {
        self.connection = connection;
    }
}

/// A worker has no connection and could not get one; the text says why.
pub(crate) struct NoConnection(pub(crate) String);
