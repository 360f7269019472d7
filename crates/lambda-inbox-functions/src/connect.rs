//! The one connection of an invocation.

use lambda_inbox_rds::{SettingsError, Source};
use lambda_inbox_store::{ConnectionSource, Opened, SourceError};
use tokio::time::Instant;

/// Connects to the database that the environment names, as [`Source::from_env`] reads it. These functions
/// take locks that a pooler does not keep, so the connection must be direct.
///
/// # Errors
/// [`ConnectError`]; never quotes the password.
pub(crate) async fn connect(until: Instant) -> Result<Opened, ConnectError> {
    let source = Source::from_env()?;
    if source.is_pooled() {
        return Err(ConnectError::Pooled);
    }
    // As the trait has it, boxed: the SDK's futures are deeper than the compiler likes.
    Ok(ConnectionSource::connect(&source, until).await?)
}

/// There is no connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The environment does not name a database.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The environment names a pooler.
    #[error(
        "LAMBDA_INBOX_DB_POOLED is on, but DDL and the prune need the server itself: name the instance's \
         or cluster's own endpoint, and leave LAMBDA_INBOX_DB_POOLED off"
    )]
    Pooled,
    /// The server, its password or the way to it.
    #[error(transparent)]
    Source(#[from] SourceError),
}
