//! The real binary as a process of its own, before a real Postgres and behind a FIFO queue.

#![allow(clippy::unwrap_used)] // In helpers too, which Clippy does not take for tests.

mod bank;
mod batch;
mod receives;
mod script;
mod traffic;
mod victim;
