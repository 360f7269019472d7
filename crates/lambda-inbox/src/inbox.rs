//! What a user configures, once, at start-up.

use crate::body::{Decode, Json, Raw, Text};
use crate::bulk_handler::BulkHandler;
use crate::content::{Envelope, PayloadResolver, Resolver};
use crate::deadline::{Clock, SystemClock, Timing};
use crate::handler::Handler;
use crate::key::{KeyError, KeyStrategy, StrategyError};
use crate::outcome::Report;
use crate::scope::{Bulk, PerMessage, StatementScope};
use crate::service::InboxService;
use aws_lambda_events::sqs::SqsMessage;
use lambda_inbox_store::{Consumer, Schema, Statement, StatementError, Store};
use serde::de::DeserializeOwned;
use sqlx::postgres::PgConnectOptions;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

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
    /// One transaction for the batch, on one connection: three round trips and the handlers' own. Where
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
}

impl Inbox {
    /// An inbox for `consumer` in the database that `options` name. Never connects: an outage must
    /// not become an init loop.
    ///
    /// `consumer` is the handler's stable, declared name and part of every key. Renaming it forgets
    /// what has been processed.
    pub fn builder(consumer: impl Into<String>, options: PgConnectOptions) -> InboxBuilder {
        InboxBuilder::new(consumer.into(), options)
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
        let statement = Statement::new(sql, self.settings.store.schema())?;
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

/// Builds an [`Inbox`]. Every setting has a default that is safe on a standard queue.
pub struct InboxBuilder {
    consumer: String,
    options: PgConnectOptions,
    schema: Schema,
    connections: usize,
    key: KeyStrategy,
    scope: Scope,
    envelopes: Vec<Envelope>,
    resolver: Option<Resolver>,
    s3_test_events: S3TestEvents,
    claim_wait: Duration,
    settle_margin: Duration,
    reserve: Duration,
    clock: Arc<dyn Clock>,
    outage: OutagePolicy,
    mismatch: MismatchPolicy,
    hook: Option<OutcomeHook>,
}

impl InboxBuilder {
    fn new(consumer: String, options: PgConnectOptions) -> Self {
        Self {
            consumer,
            options,
            schema: Schema::default(),
            connections: 1,
            key: KeyStrategy::default(),
            scope: Scope::default(),
            envelopes: Vec::new(),
            resolver: None,
            s3_test_events: S3TestEvents::default(),
            claim_wait: Duration::from_millis(250),
            settle_margin: Duration::from_millis(500),
            reserve: Duration::from_secs(1),
            clock: Arc::new(SystemClock),
            outage: OutagePolicy::default(),
            mismatch: MismatchPolicy::default(),
            hook: None,
        }
    }

    /// The schema of the inbox table; `lambda_inbox` by default.
    #[must_use]
    pub fn schema(mut self, schema: Schema) -> Self {
        self.schema = schema;
        self
    }

    /// How many connections an execution environment holds, which is also how many messages run at
    /// once; 1 by default. Environments times connections must fit the server's `max_connections`.
    #[must_use]
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// How a message's key is found; the SQS MessageId by default. Changing it while messages are in
    /// flight lets each of them run once more: see "Choosing a key" in the guide.
    #[must_use]
    pub fn key(mut self, key: impl Into<KeyStrategy>) -> Self {
        self.key = key.into();
        self
    }

    /// How a handler of single messages runs a batch; a transaction for each message by default.
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// The envelopes that messages come in, outermost first, such as `[Envelope::Sns,
    /// Envelope::EventBridge]` for EventBridge through SNS. All are taken off for the handler's body
    /// and for keys that read the body. A key by an envelope's id takes that envelope off by itself,
    /// innermost, where it is not named here.
    #[must_use]
    pub fn unwrap(mut self, envelopes: impl IntoIterator<Item = Envelope>) -> Self {
        self.envelopes = envelopes.into_iter().collect();
        self
    }

    /// Fetches bodies that stand in S3, from these buckets only. Without it a handler of records or
    /// of text sees the pointer, and everything that reads the body refuses the message.
    #[must_use]
    pub fn payload_resolver<B: Into<String>>(
        mut self,
        buckets: impl IntoIterator<Item = B>,
        resolver: impl PayloadResolver,
    ) -> Self {
        self.resolver = Some(Resolver::new(buckets.into_iter().map(Into::into), resolver));
        self
    }

    /// What happens to the test message that S3 sends when notifications are set up.
    #[must_use]
    pub fn s3_test_events(mut self, s3_test_events: S3TestEvents) -> Self {
        self.s3_test_events = s3_test_events;
        self
    }

    /// How long a claim waits for another delivery of the same message before the record is reported
    /// as busy; 250 ms by default.
    #[must_use]
    pub fn claim_wait(mut self, claim_wait: Duration) -> Self {
        self.claim_wait = claim_wait;
        self
    }

    /// How long before Lambda's deadline handlers are stopped, so that COMMIT, ROLLBACK and the
    /// response still fit; 500 ms by default.
    #[must_use]
    pub fn settle_margin(mut self, settle_margin: Duration) -> Self {
        self.settle_margin = settle_margin;
        self
    }

    /// How much time must be left, counted to Lambda's deadline, for a record to start; 1 s by
    /// default. What does not start comes back untouched. Set it above the time that one message
    /// usually takes.
    #[must_use]
    pub fn reserve(mut self, reserve: Duration) -> Self {
        self.reserve = reserve;
        self
    }

    /// The clock that Lambda's deadline is compared with; the system's by default.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// What an invocation does during a database outage.
    #[must_use]
    pub fn outage_policy(mut self, policy: OutagePolicy) -> Self {
        self.outage = policy;
        self
    }

    /// What happens to a message whose key was committed for another body.
    #[must_use]
    pub fn mismatch_policy(mut self, policy: MismatchPolicy) -> Self {
        self.mismatch = policy;
        self
    }

    /// Called once for each record, as soon as its verdict is known and before the response goes out.
    /// It must return quickly; a panic in it is logged and changes nothing.
    #[must_use]
    pub fn on_outcome(mut self, hook: impl Fn(&Report) + Send + Sync + 'static) -> Self {
        self.hook = Some(Arc::new(hook));
        self
    }

    /// Checks the settings. Does not connect.
    ///
    /// # Errors
    /// [`BuildError`] that names the setting and its rule.
    pub fn build(self) -> Result<Inbox, BuildError> {
        let consumer = Consumer::new(self.consumer).map_err(BuildError::Consumer)?;
        let connections = NonZeroUsize::new(self.connections).ok_or(BuildError::NoConnections)?;
        if self.claim_wait.is_zero() {
            return Err(BuildError::NoClaimWait);
        }
        if self.settle_margin.is_zero() || self.reserve < self.settle_margin {
            return Err(BuildError::Margins {
                settle_margin: self.settle_margin,
                reserve: self.reserve,
            });
        }
        self.key.check().map_err(BuildError::Key)?;
        let mut envelopes = self.envelopes;
        if let Some(envelope) = self.key.envelope()
            && !envelopes.contains(&envelope)
        {
            envelopes.push(envelope);
        }
        let settings = Settings {
            consumer,
            store: Store::new(self.options, self.schema, connections),
            connections,
            key: self.key,
            scope: self.scope,
            envelopes,
            resolver: self.resolver,
            s3_test_events: self.s3_test_events,
            timing: Timing {
                claim_wait: self.claim_wait,
                settle_margin: self.settle_margin,
                reserve: self.reserve,
                clock: self.clock,
            },
            outage: self.outage,
            mismatch: self.mismatch,
            hook: self.hook,
        };
        Ok(Inbox {
            settings: Arc::new(settings),
        })
    }
}

impl fmt::Debug for InboxBuilder {
    // Written by hand: the options hold the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InboxBuilder")
            .field("consumer", &self.consumer)
            .field("schema", &self.schema)
            .field("connections", &self.connections)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// A setting that cannot work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The consumer's name.
    #[error(transparent)]
    Consumer(KeyError),
    /// The key strategy.
    #[error("the key strategy cannot work")]
    Key(#[source] StrategyError),
    /// Zero connections.
    #[error("connections must be at least 1")]
    NoConnections,
    /// A claim that waits for ever would hold the batch for ever.
    #[error("claim_wait must be longer than zero")]
    NoClaimWait,
    /// A record that starts within the settle margin would be stopped at once.
    #[error(
        "settle_margin ({settle_margin:?}) must be longer than zero and at most reserve \
         ({reserve:?})"
    )]
    Margins {
        /// As given.
        settle_margin: Duration,
        /// As given.
        reserve: Duration,
    },
}
