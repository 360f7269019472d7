//! Everything lambda-inbox says to Postgres.
//!
//! SQS delivers at least once; the table behind this crate makes the second delivery harmless. Its
//! row is written in the same transaction as the message's effect, so both exist or neither does.
//! One message's way through this crate:
//!
//! 1. [`Slot::connection`] hands out a [`Connection`] that the process owns and keeps.
//! 2. [`Connection::claim`] opens a transaction whose properties do not depend on the role, and writes
//!    the key in it. It is either [won](Claimed::Won) or was [there before](Claimed::Existing).
//! 3. The handler works on [`Claim::connection`].
//! 4. [`Claim::settle`] proves that the transaction is still the claim's, and commits.
//!
//! No other crate of the workspace holds SQL, and this one knows nothing of Lambda or the AWS SDK.
//!
//! PostgreSQL 14 or later is needed, for `client_connection_check_interval`.

mod access;
mod begin;
mod canonical_json;
mod claim;
mod claim_many;
mod claim_rows;
mod connection;
mod error;
mod failure;
mod fingerprint;
mod key;
mod layout;
mod literal;
mod maintenance;
mod migrate;
mod partitions;
mod prune;
mod retention;
mod role;
mod roll_back;
mod schema;
mod settle;
mod source;
mod statement;
mod statements;
mod table;
mod withdraw;

pub use access::{Duty, GrantError, Role, RoleError, grant};
pub use begin::Limits;
pub use claim::{Claim, Claimed, Entry, Existing, Failure, Status};
pub use claim_many::{ClaimedMany, Held, RowClaim};
pub use connection::{Connection, Slot, Store};
pub use error::{Class, Stage, StoreError, sqlstate};
pub use failure::{FailedMessage, FailureLogError};
pub use fingerprint::{Fingerprint, StoredFingerprint};
pub use key::{Consumer, Key, KeyError, PART_BYTES_MAX};
pub use layout::{LayoutError, Partitions, TimeOrdered, create_time_ordered};
pub use migrate::{MigrateError, Migrated, migrate};
pub use partitions::{DAYS_AHEAD, DAYS_BACK, PartitionsError};
pub use prune::{
    BatchRowsError, ConsumerPruned, PartitionPruned, PruneError, PruneReport, Pruner,
    PrunerBuilder, Stopped, TablePruned, TimeOrderedPruned,
};
pub use retention::{GRACE, Retention};
pub use roll_back::RolledBack;
pub use schema::{Schema, SchemaError};
pub use settle::{Settled, Violation};
pub use source::{Connecting, ConnectionSource, Opened, SourceError};
pub use statement::{FreshRow, Statement, StatementError};
pub use table::{Layout, Profile, Table};
pub use withdraw::Withdrawal;
