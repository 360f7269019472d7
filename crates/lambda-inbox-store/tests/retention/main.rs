//! How keys are forgotten: by deleting rows, by dropping partitions, never too early.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod failures;
mod layout;
mod partitions;
mod prune;
mod support;
mod walk;
