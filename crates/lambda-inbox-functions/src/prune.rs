//! One run of the prune: settings, guard, connection, prune, report.

use crate::connect::connect;
use crate::error::FunctionError;
use crate::guard::{Lifetime, check};
use crate::metrics;
use crate::override_input::Overrides;
use crate::queues::{QueueError, RETENTION_MAX};
use crate::settings::{QUEUE_RETENTION, QUEUES, Settings};
use crate::time_left::work_until;
use lambda_inbox_store::{PruneReport, Pruner};
use lambda_runtime::LambdaEvent;
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout_at;

/// What the function answers.
#[derive(Clone, Debug, Serialize)]
pub struct PruneAnswer {
    /// What was done.
    #[serde(flatten)]
    pub report: PruneReport,
    /// What was done in spite of a doubt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Forgets old keys. The event is a schedule of EventBridge, or an object with any of `retention` (`"14d"`),
/// `retentions` (`{"edi-invoic": "35d"}`), `failure_retention`, `batch_rows`, `dry_run` and `force`, which
/// take the place of the environment's.
///
/// # Errors
/// [`FunctionError`]. Running out of time is none: the answer then says that it has not finished.
pub async fn prune(event: LambdaEvent<Value>) -> Result<PruneAnswer, FunctionError> {
    let until = work_until(&event.context);
    let overrides = Overrides::read(event.payload)?;
    let settings = overrides.apply(Settings::from_env()?)?;
    let pruner = Pruner::builder(settings.schema.clone(), settings.retention.clone())
        .batch_rows(settings.batch_rows)
        .dry_run(overrides.dry_run)
        .build()?;
    let mut warnings = Vec::new();
    // Boxed: the SDK's futures are deeper than the compiler likes.
    let guarded = timeout_at(until, Box::pin(guard(&settings))).await;
    if let Err(doubt) = guarded.unwrap_or(Err(FunctionError::OutOfTime)) {
        if !settings.force {
            return Err(doubt);
        }
        let text = format!("forced: {}", crate::chain::chain(&doubt));
        tracing::warn!("{text}");
        warnings.push(text);
    }
    let mut connection = connect(until).await?;
    let report = pruner.run(&mut connection, until).await?;
    metrics::record(&report);
    log(&report);
    Ok(PruneAnswer { report, warnings })
}

/// Refuses a retention that is shorter than what can still come back.
async fn guard(settings: &Settings) -> Result<(), FunctionError> {
    let mut lifetimes: Vec<Lifetime> = settings
        .queue_retention
        .iter()
        .map(|(consumer, queue)| Lifetime {
            consumer: consumer.clone(),
            origin: QUEUE_RETENTION.to_owned(),
            queue: *queue,
            dead_letters: Duration::ZERO,
        })
        .collect();
    lifetimes.extend(ask_queues(settings).await?);
    if !lifetimes.iter().any(|lifetime| lifetime.consumer.is_none()) {
        lifetimes.push(Lifetime {
            consumer: None,
            origin: format!(
                "the most that SQS keeps, as neither {QUEUES} nor {QUEUE_RETENTION} says less"
            ),
            queue: RETENTION_MAX,
            dead_letters: Duration::ZERO,
        });
    }
    Ok(check(&settings.retention, &lifetimes)?)
}

#[cfg(feature = "sqs")]
async fn ask_queues(settings: &Settings) -> Result<Vec<Lifetime>, QueueError> {
    if settings.queues.is_empty() {
        return Ok(Vec::new());
    }
    crate::queue_attributes::lifetimes(&settings.queues, settings.dead_letters).await
}

#[cfg(not(feature = "sqs"))]
async fn ask_queues(settings: &Settings) -> Result<Vec<Lifetime>, QueueError> {
    if settings.queues.is_empty() {
        Ok(Vec::new())
    } else {
        Err(QueueError::NotBuiltIn)
    }
}

fn log(report: &PruneReport) {
    let PruneReport {
        rows,
        batches,
        seconds,
        ..
    } = report;
    if report.finished {
        tracing::info!(rows, batches, seconds, dry_run = report.dry_run, "pruned");
    } else {
        let stopped = report.stopped;
        tracing::warn!(
            rows,
            batches,
            seconds,
            ?stopped,
            "pruned in part; the next run goes on"
        );
    }
}
