//! A Lambda function as a whole process, without Lambda: what no in-process test can show is what a SIGKILL in the
//! middle of an invocation leaves behind.
//!
//! [`LocalRuntime`] runs a bootstrap binary under a Runtime API of its own on 127.0.0.1, one invocation at a time,
//! with the environment variables that Lambda sets. It follows the Lambda Developer Guide's pages `runtimes-api`,
//! `lambda-runtime-environment` and `configuration-envvars`. Not imitated: freezing between invocations, memory
//! limits, extensions, and response streaming.
//!
//! ```no_run
//! # async fn demo() -> Result<(), lambda_inbox_testkit::runtime::StartError> {
//! use lambda_inbox_testkit::consumer::Invocation;
//! use lambda_inbox_testkit::runtime::LocalRuntime;
//!
//! let mut function = LocalRuntime::builder("target/release/payments")
//!     .env("DATABASE_URL", "postgres://localhost/payments")
//!     .start()
//!     .await?;
//! let killer = function.killer();
//! let kill = async {
//!     // ... wait until the handler is where it shall end, then:
//!     killer.kill();
//! };
//! let event = serde_json::json!({ "Records": [] });
//! let (invocation, ()) = tokio::join!(function.invoke(&event), kill);
//! assert_eq!(invocation, Invocation::Crashed);
//! # Ok(()) }
//! ```

mod api;
mod builder;
mod environment;
mod local;
mod process;
mod sink;

pub use builder::LocalRuntimeBuilder;
pub use local::{LocalRuntime, StartError};
pub use process::Killer;
pub use sink::{Lines, Sink};
