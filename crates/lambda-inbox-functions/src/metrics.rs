//! Every name that the functions count under. They go through the `metrics` facade; the
//! functions write them as CloudWatch's embedded metric format.

use lambda_inbox_store::PruneReport;

/// Counter, `{row}`: deleted, those in dropped partitions included.
pub const ROWS: &str = "lambda_inbox.prune.rows";
/// Counter, `{partition}`: dropped.
pub const PARTITIONS_DROPPED: &str = "lambda_inbox.prune.partitions_dropped";
/// Gauge, seconds: the age of the oldest key left, in either table. An alarm on it finds a prune that
/// does not run, or does not keep up.
pub const OLDEST_KEY: &str = "lambda_inbox.prune.oldest_key";
/// Gauge, `{row}`: keys left, as the server estimates them.
pub const ROWS_LEFT: &str = "lambda_inbox.prune.rows_left";
/// Gauge, 1 or 0: whether everything that was due is gone.
pub const FINISHED: &str = "lambda_inbox.prune.finished";
/// Gauge, seconds: the age of the oldest transaction that keeps dead rows from being cleaned up.
pub const OLDEST_TRANSACTION: &str = "lambda_inbox.prune.oldest_transaction";
/// Histogram, seconds: one run.
pub const DURATION: &str = "lambda_inbox.prune.duration";

/// The name space in CloudWatch.
const NAMESPACE: &str = "lambda-inbox";
/// The dimension of every metric: two stacks in one account are told apart by it.
const FUNCTION: &str = "function_name";

/// Counts a run. A dry run is none.
pub(crate) fn record(report: &PruneReport) {
    if report.dry_run {
        return;
    }
    let time_ordered = report.time_ordered.as_ref();
    let dropped = time_ordered.map_or(0, |table| table.dropped.len());
    let oldest_sent = time_ordered.and_then(|table| table.oldest_seconds);
    let oldest = [report.oldest_seconds, oldest_sent].into_iter().flatten();
    metrics::counter!(ROWS).increment(report.rows);
    metrics::counter!(PARTITIONS_DROPPED).increment(dropped as u64);
    metrics::gauge!(OLDEST_KEY).set(oldest.fold(0.0, f64::max));
    metrics::gauge!(ROWS_LEFT).set(report.rows_left as f64);
    metrics::gauge!(FINISHED).set(if report.finished { 1.0 } else { 0.0 });
    metrics::gauge!(OLDEST_TRANSACTION).set(report.oldest_transaction_seconds.unwrap_or_default());
    metrics::histogram!(DURATION).record(report.seconds);
}

/// Writes metrics to standard output, from where CloudWatch takes them.
///
/// Source: Amazon CloudWatch User Guide, "Embedding metrics within logs".
#[derive(Clone, Copy)]
pub struct Emf(Option<&'static metrics_cloudwatch_embedded::Collector>);

impl Emf {
    /// Installs it, unless another recorder is installed already.
    pub fn install() -> Self {
        let function = std::env::var("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_default();
        let installed = metrics_cloudwatch_embedded::Builder::new()
            .cloudwatch_namespace(NAMESPACE)
            .with_dimension(FUNCTION, function)
            .init();
        Self(installed.ok())
    }

    /// Writes what was counted since the last time, and the last value of every gauge. To be called before
    /// the function answers: after that its environment is frozen. Not to be called after a prune that failed,
    /// which would look like the one before it.
    pub fn flush(&self) {
        if let Some(collector) = self.0
            && let Err(error) = collector.flush(std::io::stdout())
        {
            tracing::warn!(%error, "metrics were not written");
        }
    }
}

impl std::fmt::Debug for Emf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Emf").finish_non_exhaustive()
    }
}
