//! The real binary as a process of its own, before a real Postgres, fed with the collected interchanges.

#![allow(clippy::unwrap_used)] // In helpers too, which Clippy does not take for tests.

mod batch;
mod booked;
mod hub;
mod identity;
mod queue;
mod refused;
mod sample;
