//! A consumer is more than its code: a binary in a zip, a queue, a mapping, a database. Here the real ones
//! are put together on an emulator of SQS and Lambda, and driven by its event source mapping.
//!
//! What AWS does is tested with the poller simulator of the test kit, which follows AWS's documentation. An
//! emulator shows that the real binary, the real wire format and the real deployment work. No test asserts
//! on what emulators do differently: batching windows, receive counts, what a redrive keeps, when a message
//! moves to the dead-letter queue.
//!
//! The tests are started by `make test-localstack`, which sets:
//!
//! | variable | meaning |
//! |---|---|
//! | `AWS_ENDPOINT_URL` | the emulator, on 127.0.0.1 and nowhere else |
//! | `LAMBDA_INBOX_FUNCTIONS` | the folder of `scripts/package` with the zips |
//! | `LAMBDA_INBOX_TEMPLATE` | the template to deploy: SAM's build of it, or the one beside the zips |
//! | `DATABASE_URL` | the server for the test databases |
//! | `LOCALSTACK_STATE` | the emulator's folder, for `processes/<function>/<pid>` |
//!
//! Everything here panics where something fails, and says what: it is a test's.

#![allow(clippy::unwrap_used, clippy::expect_used)] // A test's, where there is nobody to return an error to.

mod emulator;
mod function;
mod queue;
mod wait;

pub use emulator::Emulator;
pub use function::{Function, FunctionBuilder};
pub use queue::{Queue, QueueSettings};
pub use wait::eventually;
