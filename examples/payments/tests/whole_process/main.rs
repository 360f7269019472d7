//! The real binary as a process of its own, before a real Postgres: what no in-process test can show.

#![allow(clippy::unwrap_used)] // In helpers too, which Clippy does not take for tests.

mod bank;
mod deadline;
mod demo;
#[cfg(feature = "migrate")]
mod deployed;
// Where it is used most.
#[cfg(feature = "secrets-manager")]
#[path = "../../../../crates/lambda-inbox-rds/tests/connecting/emulator.rs"]
mod emulator;
mod kill;
mod log;
#[cfg(feature = "secrets-manager")]
mod rotation;
mod size;
