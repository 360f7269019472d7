//! Most outages of a function with a database are connections: an expired token, a rotated password, a
//! failover, an encryption that verifies nobody.
//!
//! A [`Source`] opens connections as the environment says, each with whatever is valid now, and its
//! errors name the fix. [`Source::from_env`] reads:
//!
//! | variable | meaning |
//! |---|---|
//! | `DATABASE_URL` | `postgres://user:password@host:5432/database`, and nothing of what follows but `LAMBDA_INBOX_DB_TLS`, `LAMBDA_INBOX_DB_CA` and `LAMBDA_INBOX_DB_POOLED` |
//! | `LAMBDA_INBOX_DB_HOST`, `_PORT`, `_NAME`, `_USER` | the database; what the secret says, it need not say again; the port is 5432 by default |
//! | `LAMBDA_INBOX_DB_SECRET_ARN` | the secret with the password, as RDS and Secrets Manager write it (feature `secrets-manager`) |
//! | `LAMBDA_INBOX_DB_AUTH` | `iam`: a token instead of a password (feature `iam`) |
//! | `LAMBDA_INBOX_DB_REGION`, else `AWS_REGION` | the database's region, for the token |
//! | `LAMBDA_INBOX_DB_TLS` | `verify-full` (default but for the loopback), `verify-ca`, `require`, `prefer`, `disable` |
//! | `LAMBDA_INBOX_DB_CA` | a file of certificates to trust besides the public authorities, such as the RDS bundle |
//! | `LAMBDA_INBOX_DB_POOLED` | `on` behind RDS Proxy or PgBouncer: nothing is sent at start-up that they refuse |
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use lambda_inbox_rds::Source;
//! use std::time::Duration;
//! use tokio::time::Instant;
//!
//! let source = Source::from_env()?;
//! let mut connection = source.connect(Instant::now() + Duration::from_secs(5)).await?;
//! sqlx::query("SELECT 1").execute(&mut *connection).await?;
//! # Ok(())
//! # }
//! ```
//!
//! With TLS the connection goes through a Unix socket within the process, because sqlx 0.9 waits twice 40 ms
//! otherwise: see `docs/adr/0013-a-relay-for-tls.md`.

#[cfg(feature = "aws")]
mod aws;
mod ca;
mod error;
#[cfg(feature = "iam")]
mod iam;
mod login;
mod relay;
mod secret;
#[cfg(feature = "secrets-manager")]
mod secrets_manager;
mod settings;
mod source;
mod tls;

pub use error::ConnectError;
pub use settings::SettingsError;
pub use source::Source;
