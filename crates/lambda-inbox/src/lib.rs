//! SQS delivers at least once, and a Lambda function that charges a card, decrements stock or books an
//! invoice must not do it twice.
//!
//! This crate wraps the handler of an SQS consumer. Each message's key is written to an inbox table in
//! Postgres in the same transaction as the handler's effect, so that both exist or neither does, and
//! the function's response names exactly the messages that did not commit.
//!
//! ```no_run
//! use lambda_inbox::{HandlerError, Inbox, Message, sqlx::{self, PgConnection}};
//!
//! #[derive(serde::Deserialize)]
//! struct Payment { account: i64, amount: i64 }
//!
//! async fn charge(payment: &Message<Payment>, conn: &mut PgConnection) -> Result<(), HandlerError> {
//!     sqlx::query("UPDATE account SET balance = balance - $1 WHERE id = $2")
//!         .bind(payment.body.amount)
//!         .bind(payment.body.account)
//!         .execute(&mut *conn)
//!         .await?;
//!     Ok(())
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), lambda_runtime::Error> {
//!     let inbox = Inbox::from_env("payments")?;
//!     lambda_inbox::run(inbox.handler(charge)).await
//! }
//! ```
//!
//! # The promise
//!
//! - Effects inside the handler's transaction: exactly once per key, for as long as the key is kept.
//! - Effects outside it, and effects of a handler that ends the transaction itself: at least once.
//!
//! One message's way, one file a step: [`InboxEvent`] (raw), record, body, [`key`], claim,
//! [`Handler`], settle, [`Outcome`], response.

mod batch;
mod body;
mod builder;
mod bulk_handler;
mod content;
mod deadline;
#[cfg(feature = "emf")]
pub mod emf;
mod env;
mod error;
mod event;
mod failure_log;
mod handler;
mod inbox;
mod jsonb;
pub mod key;
mod message;
pub mod metrics;
mod outcome;
mod plan;
mod pointer;
mod record;
mod response;
mod run;
mod scope;
mod service;
mod snapstart;
mod span;

pub use body::{Decode, Json, Raw, Text};
pub use builder::{BuildError, InboxBuilder};
pub use bulk_handler::{BulkError, BulkHandler};
pub use content::{
    BoxFuture, Envelope, EventBridgeEnvelope, PayloadResolver, S3Pointer, SnsAttribute, SnsEnvelope,
};
pub use deadline::{Clock, SystemClock};
pub use env::EnvError;
pub use error::{InboxError, Outage};
pub use event::{EventError, InboxEvent};
pub use handler::{BoxError, Handler, HandlerError};
pub use inbox::{Inbox, MismatchPolicy, OutagePolicy, S3TestEvents, Scope};
pub use key::{Key, KeyStrategy};
pub use lambda_inbox_rds::{ConnectError, SettingsError, Source};
pub use lambda_inbox_store::{Connecting, ConnectionSource, Opened, SourceError};
pub use lambda_inbox_store::{
    Consumer, Layout, MigrateError, Migrated, Schema, SchemaError, migrate,
};
pub use lambda_inbox_store::{LayoutError, Partitions, TimeOrdered, create_time_ordered};
pub use message::Message;
pub use outcome::{Outcome, Report};
pub use record::DecodeError;
pub use run::run;
pub use service::InboxService;

pub use aws_lambda_events;
#[cfg(feature = "edi")]
pub use lambda_inbox_edi as edi;
pub use lambda_runtime;
pub use sqlx;

/// The examples of the documentation, compiled.
#[cfg(doctest)]
mod documentation {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/guide/choosing-a-key.md")]
    struct ChoosingAKey;
    #[doc = include_str!("../../../docs/guide/how-a-batch-runs.md")]
    struct HowABatchRuns;
    #[doc = include_str!("../../../docs/guide/testing.md")]
    struct Testing;
}
