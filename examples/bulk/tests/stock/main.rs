//! Both functions as processes of their own, before a real Postgres. Every test runs both.

#![allow(clippy::unwrap_used)] // In helpers too, which Clippy does not take for tests.

mod batch;
mod kill;
mod overlap;
mod queue;
mod sale;
mod shop;
mod size;
