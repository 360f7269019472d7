//! The settings, each with a default that is safe on a standard queue, checked before anything runs.

use crate::content::{Envelope, PayloadResolver, Resolver};
use crate::deadline::{Clock, SystemClock, Timing};
use crate::inbox::{
    Inbox, MismatchPolicy, OutagePolicy, OutcomeHook, S3TestEvents, Scope, Settings,
};
use crate::key::{KeyError, KeyStrategy, StrategyError};
use crate::outcome::Report;
use crate::snapstart;
use lambda_inbox_store::{ConnectionSource, Consumer, Layout, Profile, Schema, Store, Table};
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

/// Builds an [`Inbox`]. Every setting has a default that is safe on a standard queue.
pub struct InboxBuilder {
    consumer: String,
    source: Arc<dyn ConnectionSource>,
    table: Table,
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
    failure_log: bool,
}

impl InboxBuilder {
    pub(crate) fn new(consumer: String, source: Arc<dyn ConnectionSource>) -> Self {
        let profile = match source.is_pooled() {
            true => Profile::Pooled,
            false => Profile::Direct,
        };
        Self {
            consumer,
            source,
            table: Table {
                profile,
                ..Table::default()
            },
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
            failure_log: false,
        }
    }

    /// The schema of the inbox table; `lambda_inbox` by default.
    #[must_use]
    pub fn schema(mut self, schema: Schema) -> Self {
        self.table.schema = schema;
        self
    }

    /// The order of the inbox table; by key by default. [`Layout::TimeOrdered`] is for inboxes of many
    /// million keys: its table is made by `migrate` on demand, it takes keys by
    /// [`MessageId`](crate::key::MessageId) only, and refuses records of FIFO queues and records without a
    /// send time. Changing it while messages are in flight lets each of them run once more.
    #[must_use]
    pub fn layout(mut self, layout: Layout) -> Self {
        self.table.layout = layout;
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

    /// Whether what fails is also written to the table `inbox_failure`, after the batch is done; off by
    /// default. It takes a fifth of a second at most and never changes an outcome. An error's text is
    /// written as it is: where it may quote what is private, leave it off.
    #[must_use]
    pub fn failure_log(mut self, failure_log: bool) -> Self {
        self.failure_log = failure_log;
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
        if self.table.layout == Layout::TimeOrdered && !self.key.has_a_send_time() {
            return Err(BuildError::Layout);
        }
        let mut envelopes = self.envelopes;
        if let Some(envelope) = self.key.envelope()
            && !envelopes.contains(&envelope)
        {
            envelopes.push(envelope);
        }
        let settings = Settings {
            consumer,
            store: Store::with_source(self.source, self.table, connections),
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
            failure_log: self.failure_log,
        };
        let settings = Arc::new(settings);
        snapstart::register(&settings);
        Ok(Inbox { settings })
    }
}

impl fmt::Debug for InboxBuilder {
    // Written by hand: the source may hold the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InboxBuilder")
            .field("consumer", &self.consumer)
            .field("table", &self.table)
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
    /// The key can come with two send times, which would be two rows of a time-ordered table.
    #[error(
        "the time-ordered layout takes keys by MessageId only: one key with two send times would run \
         twice; take the keyed layout for this consumer"
    )]
    Layout,
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
