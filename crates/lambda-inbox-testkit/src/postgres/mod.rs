//! A database of its own for every test, because tests that share one cannot run in parallel.
//!
//! [`TestDatabase::create`] makes a fresh, empty database on the server that `DATABASE_URL` names
//! or, without that variable, on a private [`Cluster`]: a server started from the installed
//! PostgreSQL binaries, once per process. A private cluster cannot outlive the process that started
//! it, however that process ends, and it leaves no file behind.
//!
//! PostgreSQL 13 or later is needed (`DROP DATABASE .. WITH (FORCE)`).
//!
//! ```no_run
//! # async fn test() -> Result<(), Box<dyn std::error::Error>> {
//! use lambda_inbox_testkit::postgres::TestDatabase;
//!
//! let database = TestDatabase::create().await?;
//! let mut connection = database.connect().await?;
//! sqlx::raw_sql("CREATE TABLE account (id int PRIMARY KEY)").execute(&mut connection).await?;
//! assert!(database.open_transactions().await?.is_empty());
//! # Ok(())
//! # }
//! ```

mod account;
mod activity;
mod binaries;
mod cluster;
mod database;
mod error;
mod pgbouncer;
mod role;
mod server;
mod sql;
mod supervisor;

pub use activity::OpenTransaction;
pub use cluster::{Cluster, ClusterBuilder};
pub use database::TestDatabase;
pub use error::PostgresError;
pub use pgbouncer::PgBouncer;
