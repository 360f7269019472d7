//! What a prune tells: in numbers, ready to be logged, counted and answered as JSON.

use serde::Serialize;

/// What a prune did, or in a dry run would do.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PruneReport {
    /// Whether everything that was due is gone. If not, the next run goes on.
    pub finished: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Rows deleted, those in dropped partitions included.
    pub rows: u64,
    /// Transactions that deleted them, a dropped partition being one.
    pub batches: u64,
    /// How long it took.
    pub seconds: f64,
    /// The age, since it was processed, of the oldest key left in the keyed table.
    pub oldest_seconds: Option<f64>,
    /// How many rows the tables of keys have left, as the server estimates it since the last analysis.
    pub rows_left: i64,
    /// The keyed table, by consumer.
    pub consumers: Vec<ConsumerPruned>,
    /// The time-ordered table, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ordered: Option<TimeOrderedPruned>,
    /// The failure log, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures: Option<TablePruned>,
    /// The age of the oldest transaction of this database that keeps dead rows from being cleaned up, as
    /// far as the role may see it. Hours mean that a session was forgotten in a transaction.
    pub oldest_transaction_seconds: Option<f64>,
}

/// Why a prune stopped early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// The deadline came near.
    Deadline,
    /// Another runner is at work.
    AnotherRunner,
    /// A lock on a table, or a transaction that uses a partition, was in the way.
    Locked,
}

/// One consumer's keys in the keyed table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ConsumerPruned {
    /// The consumer.
    pub consumer: String,
    /// How long its keys are kept, the grace included.
    pub kept_seconds: f64,
    /// Rows deleted.
    pub rows: u64,
    /// The age of its oldest key left; `None` where none is.
    pub oldest_seconds: Option<f64>,
}

/// A table without consumers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TablePruned {
    /// Rows deleted.
    pub rows: u64,
    /// The age of the oldest row left; `None` where none is.
    pub oldest_seconds: Option<f64>,
}

/// The time-ordered table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TimeOrderedPruned {
    /// Keys deleted, those in dropped partitions included.
    pub rows: u64,
    /// The age, since it was sent, of the oldest key left; `None` where none is.
    pub oldest_seconds: Option<f64>,
    /// Partitions created ahead.
    pub created: Vec<String>,
    /// Partitions dropped.
    pub dropped: Vec<PartitionPruned>,
    /// Old partitions kept, because a key in them is still young: its message was processed late, or
    /// its consumer's retention is longer.
    pub kept: Vec<String>,
    /// Old partitions left for the next run, because a transaction elsewhere uses them.
    pub in_use: Vec<String>,
}

/// A dropped partition.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PartitionPruned {
    /// Its name, without the schema.
    pub name: String,
    /// The keys that were in it.
    pub rows: u64,
}
