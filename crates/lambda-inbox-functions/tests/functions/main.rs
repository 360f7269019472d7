//! The functions as whole processes, on a local Lambda runtime and a real Postgres.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod custom_resource;
#[cfg(feature = "sqs")]
mod guard;
mod migrate;
mod prune;
mod server;
mod support;
