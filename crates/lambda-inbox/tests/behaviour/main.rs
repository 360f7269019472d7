//! What the inbox promises, each as a test against a real Postgres.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod batch;
mod boundary;
mod bulk;
mod cases;
mod claim_text;
mod connection;
mod crowd;
mod deadline;
#[cfg(feature = "edi")]
mod edi;
mod envelopes;
mod failure_log;
mod fifo;
mod handlers;
mod isolation;
mod keys;
mod mismatch;
mod observation;
mod order;
mod outage;
mod overlap;
mod per_batch;
mod pooled;
mod retention;
mod round_trips;
mod scopes;
mod standby;
mod statement;
mod support;
mod time_ordered;
