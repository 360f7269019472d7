//! The functions that run beside the consumers: `lambda-inbox-migrate` creates and upgrades the tables,
//! `lambda-inbox-prune` forgets old keys. A consumer does neither: DDL at a cold start would let twenty
//! environments fight over it, and a consumer that prunes is late when it is needed most.
//!
//! A consumer with tables of its own makes a migrate function of [`migrate_with`], so that a deployment brings
//! them too.
//!
//! Both read their settings from the environment; see [`Settings`].

mod chain;
mod connect;
mod custom_resource;
mod duration;
mod error;
mod guard;
#[cfg(feature = "sqs")]
mod lifetimes;
mod log;
pub mod metrics;
mod migrate;
mod override_input;
mod prune;
#[cfg(feature = "sqs")]
mod queue_attributes;
mod queues;
mod settings;
mod time_left;

pub use connect::ConnectError;
pub use custom_resource::{AnswerError, CustomResource};
pub use error::FunctionError;
pub use guard::{Lifetime, TooShort, check};
pub use log::install_log;
pub use migrate::{Layout, MigrateAnswer, OwnTables, migrate, migrate_with};
pub use prune::{PruneAnswer, prune};
pub use queues::{DeadLetters, QueueError};
pub use settings::{Settings, SettingsError};
