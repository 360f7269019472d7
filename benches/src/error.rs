//! What can keep the benchmark from a result, or make a result worthless.

use std::error::Error;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};

use lambda_inbox::{BuildError, InboxError, LayoutError, MigrateError};
use lambda_inbox_store::{BatchRowsError, KeyError, PruneError, StoreError};
use lambda_inbox_testkit::consumer::Invocation;
use lambda_inbox_testkit::postgres::PostgresError;
use lambda_inbox_testkit::runtime::StartError;

use crate::arena::Rows;

#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    #[error("{name} cannot be measured")]
    Contender {
        name: &'static str,
        source: Box<BenchError>,
    },
    #[error(
        "{sent} messages were sent, but there are {} rows in the inbox and {} effects",
        rows.inbox,
        rows.effects
    )]
    Mismatch { sent: usize, rows: Rows },
    #[error("{reported} of {sent} messages came back")]
    Reported { sent: usize, reported: usize },
    #[error("the service failed")]
    Invocation(#[from] InboxError),
    #[error("no Postgres to measure on")]
    Postgres(#[from] PostgresError),
    #[error("the proxy did not start")]
    Proxy(#[source] std::io::Error),
    #[error("a statement failed")]
    Sql(#[from] sqlx::Error),
    #[error("the inbox's tables cannot be made")]
    Migrate(#[from] MigrateError),
    #[error("the time-ordered table cannot be made")]
    Layout(#[from] LayoutError),
    #[error("a key or a consumer cannot be")]
    Key(#[from] KeyError),
    #[error("a claim failed")]
    Claim(#[from] StoreError),
    #[error("a fresh key was not claimed and committed")]
    NotClaimed,
    #[error("the prune failed")]
    Prune(#[from] PruneError),
    #[error("the prune cannot be set up")]
    BatchRows(#[from] BatchRowsError),
    #[error("the prune left rows: it deleted {rows}")]
    NotPruned { rows: u64 },
    #[error("the inbox cannot be set up")]
    Build(#[from] BuildError),
    #[error("the effect is not a statement for the inbox")]
    Statement(#[source] Box<dyn Error + Send + Sync>),
    #[error("an event or a response is not JSON")]
    Json(#[from] serde_json::Error),
    #[error("there is no pgbench beside the server's programs and none in PATH")]
    NoPgbench,
    #[error("pgbench does not run")]
    PgbenchIo(#[source] std::io::Error),
    #[error("pgbench failed ({status}): {stderr}")]
    Pgbench { status: ExitStatus, stderr: String },
    #[error("pgbench's report has no {what}: {report}")]
    PgbenchReport { what: &'static str, report: String },
    #[error("cargo does not run")]
    Cargo(#[source] std::io::Error),
    #[error("{package} cannot be built ({status})")]
    CargoBuild {
        package: &'static str,
        status: ExitStatus,
    },
    #[error("a binary or its zip cannot be copied to {}", path.display())]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("a function did not start")]
    Start(#[from] StartError),
    #[error("a function gave no response: {0:?}")]
    NoResponse(Invocation),
    #[error("{} cannot be written", path.display())]
    Summary {
        path: PathBuf,
        source: std::io::Error,
    },
}

impl BenchError {
    /// Says whose error it is.
    pub(crate) fn of(name: &'static str) -> impl Fn(Self) -> Self {
        move |source| Self::Contender {
            name,
            source: Box::new(source),
        }
    }

    /// 1 where the database does not hold what was sent, 2 where nothing can be said about that.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Contender { source, .. } => source.exit_code(),
            Self::Mismatch { .. } | Self::Reported { .. } => ExitCode::from(1),
            Self::Invocation(_)
            | Self::Postgres(_)
            | Self::Proxy(_)
            | Self::Sql(_)
            | Self::Migrate(_)
            | Self::Build(_)
            | Self::Layout(_)
            | Self::Key(_)
            | Self::Claim(_)
            | Self::NotClaimed
            | Self::Prune(_)
            | Self::BatchRows(_)
            | Self::NotPruned { .. }
            | Self::Statement(_)
            | Self::Json(_)
            | Self::NoPgbench
            | Self::PgbenchIo(_)
            | Self::Pgbench { .. }
            | Self::PgbenchReport { .. }
            | Self::Cargo(_)
            | Self::CargoBuild { .. }
            | Self::File { .. }
            | Self::Start(_)
            | Self::NoResponse(_)
            | Self::Summary { .. } => ExitCode::from(2),
        }
    }
}

/// The error and its sources, on one line. A source whose text is there already is left out.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = error.source();
    }
    text
}
