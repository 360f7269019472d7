//! What a user configures, once, at start-up.

use crate::body::{Decode, Json, Raw, Text};
use crate::builder::InboxBuilder;
use crate::bulk_handler::BulkHandler;
use crate::content::{Envelope, Resolver};
use crate::deadline::Timing;
use crate::handler::Handler;
use crate::key::KeyStrategy;
use crate::outcome::Report;
use crate::scope::{Bulk, PerMessage, StatementScope};
use crate::service::InboxService;
use aws_lambda_events::sqs::SqsMessage;
use lambda_inbox_rds::Source;
use lambda_inbox_store::{ConnectionSource, Consumer, Statement, StatementError, Store};
use serde::de::DeserializeOwned;
use sqlx::postgres::PgConnectOptions;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Whether an invocation during a database outage fails, or reports each record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutagePolicy {
    /// The invocation fails where no record could use the database and nothing committed. The poller
    /// then backs off, instead of using up the receive counts of good messages at full speed.
    #[default]
    FailInvocation,
    /// Each record is reported as failed.
    ReportEach,
}

/// What happens to a message whose key was committed for another body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MismatchPolicy {
    /// It is reported, and goes to the dead-letter queue in the end.
    #[default]
    Report,
    /// It is skipped like a duplicate, with a warning. What it said is lost.
    Skip,
}

/// How a handler of single messages runs a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// A transaction for each message, on up to as many connections as there are.
    #[default]
    PerMessage,
    /// One transaction for the batch, on one connection: two round trips and the handlers' own. Where
    /// anything fails it is rolled back, and the messages run by themselves: a handler then runs twice
    /// for a message, and its effects outside the transaction happen twice.
    PerBatch,
}

/// What happens to the test message that S3 sends when notifications are set up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum S3TestEvents {
    /// It is acknowledged with the outcome `ignored`, and the handler does not run.
    #[default]
    Ignore,
    /// It is a message like any other.
    Handle,
}

pub(crate) type OutcomeHook = Arc<dyn Fn(&Report) + Send + Sync>;

/// A consumer's inbox, ready to take a handler. Cloning is cheap and shares the connections.
#[derive(Clone)]
pub struct Inbox {
    pub(crate) settings: Arc<Settings>,
}

pub(crate) struct Settings {
    pub(crate) consumer: Consumer,
    pub(crate) store: Store,
    pub(crate) connections: NonZeroUsize,
    pub(crate) key: KeyStrategy,
    pub(crate) scope: Scope,
    /// Outermost first.
    pub(crate) envelopes: Vec<Envelope>,
    pub(crate) resolver: Option<Resolver>,
    pub(crate) s3_test_events: S3TestEvents,
    pub(crate) timing: Timing,
    pub(crate) outage: OutagePolicy,
    pub(crate) mismatch: MismatchPolicy,
    pub(crate) hook: Option<OutcomeHook>,
    pub(crate) failure_log: bool,
}

impl Inbox {
    /// An inbox for `consumer` in the database that `options` name. Never connects: an outage must
    /// not become an init loop.
    ///
    /// `consumer` is the handler's stable, declared name and part of every key. Renaming it forgets
    /// what has been processed.
    pub fn builder(consumer: impl Into<String>, options: PgConnectOptions) -> InboxBuilder {
        Self::builder_with_source(consumer, Source::from(options))
    }

    /// As [`Inbox::builder`], with connections that `source` opens: a [`Source`], whose password or token
    /// changes, or one of your own. Behind RDS Proxy or PgBouncer in transaction mode it must be
    /// [pooled](Source::pooled), as in `Source::from(options).pooled()`: see "Connecting" in the guide for the
    /// role's timeouts, and keep handlers to `sqlx::query(..).persistent(false)`.
    pub fn builder_with_source(
        consumer: impl Into<String>,
        source: impl ConnectionSource,
    ) -> InboxBuilder {
        InboxBuilder::new(consumer.into(), Arc::new(source))
    }

    /// Takes a handler of JSON bodies.
    pub fn handler<T, H>(self, handler: H) -> InboxService
    where
        T: DeserializeOwned + Send + Sync + 'static,
        H: Handler<T>,
    {
        self.service::<Json<T>, H>(handler)
    }

    /// Takes a handler of bodies as they came, byte for byte.
    pub fn text_handler<H: Handler<String>>(self, handler: H) -> InboxService {
        self.service::<Text, H>(handler)
    }

    /// Takes a handler of whole records; the body may be absent.
    pub fn record_handler<H: Handler<SqsMessage>>(self, handler: H) -> InboxService {
        self.service::<Raw, H>(handler)
    }

    /// Takes a handler of whole batches of JSON bodies. For standard queues only.
    pub fn bulk_handler<T, H>(self, handler: H) -> InboxService
    where
        T: DeserializeOwned + Send + Sync + 'static,
        H: BulkHandler<T>,
    {
        InboxService::new(self.settings, Bulk::<Json<T>, H>::new(handler))
    }

    /// Takes one SQL statement for a handler: an INSERT, UPDATE or DELETE that reads the relation
    /// `fresh`, which has a row for each message that was won. Claim and effect are one statement, one
    /// transaction and one round trip a batch. For standard queues only.
    ///
    /// | column of `fresh` | type | |
    /// |---|---|---|
    /// | `position` | `integer` | place in the batch by key, from 1 |
    /// | `message_id` | `text` | the SQS MessageId |
    /// | `source`, `key` | `text` | the inbox key |
    /// | `body` | `jsonb` | the innermost body; one that is not JSON is poison by itself |
    /// | `sent_at` | `timestamptz` | when SQS took the message |
    /// | `receive_count` | `integer` | how often it was handed out |
    /// | `group_id` | `text` | its message group |
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let options = lambda_inbox::sqlx::postgres::PgConnectOptions::new();
    /// use lambda_inbox::Inbox;
    ///
    /// let inbox = || Inbox::builder("orders", options.clone()).build();
    /// // A row for each message:
    /// inbox()?.statement(
    ///     "INSERT INTO orders (id, customer)
    ///      SELECT (body ->> 'id')::bigint, body ->> 'customer' FROM fresh",
    /// )?;
    /// // An UPDATE touches each row once, so what goes to one row is summed first:
    /// inbox()?.statement(
    ///     "UPDATE account SET balance = balance + paid.amount
    ///      FROM (SELECT (body ->> 'account')::bigint AS id, sum((body ->> 'amount')::bigint) AS amount
    ///            FROM fresh GROUP BY 1) AS paid
    ///      WHERE account.id = paid.id",
    /// )?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A batch whose statement fails is halved, at last to single messages.
    ///
    /// # Errors
    /// [`StatementError`] where it is not one INSERT, UPDATE or DELETE.
    pub fn statement(self, sql: &str) -> Result<InboxService, StatementError> {
        let statement = Statement::new(sql, self.settings.store.table())?;
        Ok(InboxService::new(
            self.settings,
            StatementScope::new(statement),
        ))
    }

    fn service<D: Decode, H: Handler<D::Body>>(self, handler: H) -> InboxService {
        InboxService::new(self.settings, PerMessage::<D, H>::new(handler))
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox")
            .field("consumer", &self.settings.consumer)
            .field("store", &self.settings.store)
            .field("connections", &self.settings.connections)
            .field("key", &self.settings.key)
            .finish_non_exhaustive()
    }
}
