//! A source made of variables, and its errors as a log would show them.

use lambda_inbox_rds::{SettingsError, Source};
use lambda_inbox_store::{Opened, SourceError};
use lambda_inbox_testkit::postgres::Cluster;
use lambda_inbox_testkit::tls::Authority;
use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use std::collections::HashMap;
use std::error::Error;
use std::io::Write;
use std::time::Duration;
use tokio::time::Instant;

/// More than any answer takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A server with a certificate for `localhost`, of an authority that nobody knows.
pub(crate) struct Private {
    pub(crate) cluster: Cluster,
    pub(crate) authority: Authority,
}

impl Private {
    pub(crate) async fn start() -> Self {
        let authority = Authority::new("private").unwrap();
        let server = authority.issue(["localhost"]).unwrap();
        let cluster = Cluster::builder().tls(&server).start().await.unwrap();
        Self { cluster, authority }
    }

    /// The authority's certificate in a file, as it is shipped with a function.
    pub(crate) fn ca(&self) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(self.authority.certificate().as_bytes())
            .unwrap();
        file
    }
}

/// `DATABASE_URL` for these options, without anything about TLS.
pub(crate) fn url(options: &PgConnectOptions) -> String {
    let mut url = options.to_url_lossy();
    url.set_query(None);
    url.to_string()
}

pub(crate) fn source(variables: &[(&str, &str)]) -> Result<Source, SettingsError> {
    let variables: HashMap<_, _> = variables.iter().copied().collect();
    Source::from_variables(|name| variables.get(name).map(|value| (*value).to_owned()))
}

pub(crate) async fn connect(variables: &[(&str, &str)]) -> Result<Opened, String> {
    let source = source(variables).unwrap();
    let opened = source.connect(Instant::now() + PATIENCE).await;
    opened.map_err(|error| chain(&error))
}

pub(crate) async fn refusal(variables: &[(&str, &str)]) -> String {
    connect(variables).await.expect_err("a refusal")
}

pub(crate) fn chain(error: &SourceError) -> String {
    let mut texts = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        texts.push(error.to_string());
        cause = error.source();
    }
    texts.join(": ")
}
