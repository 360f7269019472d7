//! The examples' real binaries, deployed to an emulator and driven by its event source mappings. The effect
//! is read from Postgres and compared with what was sent.
//!
//! Nothing here counts deliveries: an emulator may hand a message out as often as it likes.

#![allow(clippy::unwrap_used)] // In helpers too, which Clippy does not take for tests.

mod bank;
mod bulk;
mod duplicates;
mod edi;
mod faults;
mod fifo;
mod migrate;
mod partial;
mod prune;
mod stack;
mod throttled;
