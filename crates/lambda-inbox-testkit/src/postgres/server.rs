//! Which server the databases of this process are made on.

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};
use tokio::sync::OnceCell;

use super::{Cluster, PostgresError};

/// Never dropped: its server stops when the process ends.
static SHARED: OnceCell<Cluster> = OnceCell::const_new();

/// The server of `DATABASE_URL`, else this process's private one, which the first caller starts.
pub(super) async fn options() -> Result<PgConnectOptions, PostgresError> {
    match std::env::var("DATABASE_URL") {
        Ok(url) if !url.is_empty() => url.parse().map_err(PostgresError::Url),
        _ => Ok(SHARED.get_or_try_init(Cluster::start).await?.options()),
    }
}

pub(super) async fn connect(options: &PgConnectOptions) -> Result<PgConnection, PostgresError> {
    PgConnection::connect_with(options)
        .await
        .map_err(|source| PostgresError::Connect {
            address: format!("{}:{}", options.get_host(), options.get_port()),
            source,
        })
}

/// Which sqlx tells in a URL only. As it stands there, where a private server's needs no escapes.
pub(super) fn password(options: &PgConnectOptions) -> String {
    let url = options.to_url_lossy();
    url.password().unwrap_or_default().to_owned()
}

/// As a URL that libpq's programs understand too, psql and pgbench among them: they refuse
/// parameters they do not know.
pub(super) fn url(options: &PgConnectOptions) -> String {
    let mut url = options.to_url_lossy();
    let known: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(name, _)| name != "statement-cache-capacity")
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    url.query_pairs_mut().clear().extend_pairs(known);
    url.to_string()
}
