//! The last line of a function's `main`.

use crate::event::InboxEvent;
use crate::snapstart::Inboxes;
use aws_lambda_events::sqs::SqsBatchResponse;
use lambda_runtime::layers::TracingLayer;
use lambda_runtime::{Diagnostic, LambdaEvent, Runtime};
use std::fmt::Debug;
use std::sync::Arc;
use tower::Service;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Serves Lambda's invocations with an [`InboxService`](crate::InboxService), bare or in tower layers
/// of your own. Returns only where the Runtime API is gone.
///
/// With SnapStart, every inbox's connections are closed before the snapshot and opened again after it.
///
/// Installs a subscriber that writes JSON lines, unless one is installed already. Its level is
/// `AWS_LAMBDA_LOG_LEVEL`, else `RUST_LOG`, else `info`. Each line has its time: Lambda takes one without for
/// INFO, and drops it where the function's level is above that (AWS Lambda Developer Guide, "Log-level
/// filtering"). Warns where the build makes panics abort.
///
/// # Errors
/// Where the Runtime API cannot be talked to.
///
/// # Panics
/// Outside of Lambda, where the variables of its environment are missing.
pub async fn run<S>(service: S) -> Result<(), lambda_runtime::Error>
where
    S: Service<LambdaEvent<InboxEvent>, Response = SqsBatchResponse> + Clone + Send + 'static,
    S::Error: Into<Diagnostic> + Debug + Send,
    S::Future: Send + 'static,
{
    install_subscriber();
    if cfg!(panic = "abort") {
        tracing::warn!(
            fix = "[profile.release] panic = \"unwind\" in Cargo.toml; cargo-lambda aborts where nothing is said",
            "built so that panics abort: a message whose handler panics takes its whole batch along"
        );
    }
    Runtime::new(service)
        .layer(TracingLayer::new())
        .register_snapstart_resource(Arc::new(Inboxes))
        .run_concurrent()
        .await
}

fn install_subscriber() {
    let level = std::env::var("AWS_LAMBDA_LOG_LEVEL").or_else(|_| std::env::var("RUST_LOG"));
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::INFO.into())
        .parse_lossy(known(&level.unwrap_or_default()));
    let installed = tracing_subscriber::fmt()
        .json()
        // The list of spans has it already.
        .with_current_span(false)
        .with_env_filter(without_bodies(filter))
        .try_init();
    if installed.is_err() {
        tracing::debug!("a tracing subscriber was there already");
    }
}

/// Lambda's quietest level has no name among tracing's.
fn known(level: &str) -> &str {
    if level.eq_ignore_ascii_case("fatal") {
        "error"
    } else {
        level
    }
}

/// lambda_runtime writes whole events, bodies and all, at TRACE.
fn without_bodies(filter: EnvFilter) -> EnvFilter {
    let level = filter
        .max_level_hint()
        .unwrap_or(LevelFilter::INFO)
        .min(LevelFilter::DEBUG);
    match format!("lambda_runtime={level}").parse() {
        Ok(directive) => filter.add_directive(directive),
        Err(_) => filter,
    }
}
