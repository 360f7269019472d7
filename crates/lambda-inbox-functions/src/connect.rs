//! The one connection of an invocation.

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

const DATABASE_URL: &str = "DATABASE_URL";

/// The most time that connecting takes.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// Connects to the database of `DATABASE_URL`.
///
/// # Errors
/// [`ConnectError`]; never quotes the password.
pub(crate) async fn connect(until: Instant) -> Result<PgConnection, ConnectError> {
    let url = std::env::var(DATABASE_URL).unwrap_or_default();
    if url.is_empty() {
        return Err(ConnectError::NotSet);
    }
    // sqlx's error for a broken URL misleads about passwords with a "#" or "/" in them.
    let options: PgConnectOptions = url.parse().map_err(|_| ConnectError::Url)?;
    let place = format!("{}:{}", options.get_host(), options.get_port());
    let until = until.min(Instant::now() + CONNECT_MAX);
    match timeout_at(until, PgConnection::connect_with(&options)).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(source)) => Err(ConnectError::Refused { place, source }),
        Err(_) => Err(ConnectError::NoAnswer { place }),
    }
}

/// There is no connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The database is not named.
    #[error("DATABASE_URL is not set; it looks like postgres://user:password@host:5432/database")]
    NotSet,
    /// Its URL cannot be read. Its text is not repeated: it holds the password.
    #[error(
        "DATABASE_URL is not a URL like postgres://user:password@host:5432/database; write # / ? @ \
         and % of the password as %23 %2F %3F %40 and %25"
    )]
    Url,
    /// The server, or the network, said no.
    #[error("cannot connect to the database at {place}")]
    Refused {
        /// Host and port.
        place: String,
        /// The driver's error.
        source: sqlx::Error,
    },
    /// Nothing came back.
    #[error(
        "the database at {place} does not answer; check that the function is in the database's \
         network, and that the database's security group lets the function's in"
    )]
    NoAnswer {
        /// Host and port.
        place: String,
    },
}
