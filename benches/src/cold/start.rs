//! Processes under the local runtime, started cold.

use std::time::{Duration, Instant};

use lambda_inbox_testkit::consumer::Invocation;
use lambda_inbox_testkit::runtime::{LocalRuntime, LocalRuntimeBuilder, Sink};
use serde::Deserialize;

use super::bank::Bank;
use super::build::Built;
use super::memory::resident;
use super::metric::Metric;
use crate::error::BenchError;

/// One function is fed with so many in the end.
pub(super) const MESSAGES: usize = 10_000;
/// As many as Lambda delivers at once by default.
const BATCH: usize = 10;
/// Until a process that waits has nothing more to set up.
const IDLE: Duration = Duration::from_millis(50);

/// Starts a process twice: for the first event, and for the first commit.
pub(super) async fn samples(
    program: &Built,
    bank: &mut Bank,
) -> Result<Vec<(Metric, f64)>, BenchError> {
    let start = Instant::now();
    let function = function(program, bank).start().await?;
    let next = milliseconds(start);
    tokio::time::sleep(IDLE).await;
    let idle = function.pid().and_then(resident);
    drop(function);

    let commit = first_commit(program, bank).await?;
    let times = [(Metric::Next, next), (Metric::Commit, commit)];
    let idle = idle.map(|bytes| (Metric::IdleMemory, bytes));
    Ok(times.into_iter().chain(idle).collect())
}

async fn first_commit(program: &Built, bank: &mut Bank) -> Result<f64, BenchError> {
    let event = bank.payments(1);
    let start = Instant::now();
    let mut function = function(program, bank).start().await?;
    let invocation = function.invoke(&event).await;
    let commit = milliseconds(start);
    expect_success(invocation, 1)?;
    Ok(commit)
}

/// Resident bytes after [`MESSAGES`], where they can be told.
pub(super) async fn memory_after_messages(
    program: &Built,
    bank: &mut Bank,
) -> Result<Option<f64>, BenchError> {
    let mut function = function(program, bank).start().await?;
    for _ in 0..MESSAGES / BATCH {
        let event = bank.payments(BATCH);
        expect_success(function.invoke(&event).await, BATCH)?;
    }
    Ok(function.pid().and_then(resident))
}

fn function(program: &Built, bank: &Bank) -> LocalRuntimeBuilder {
    LocalRuntime::builder(&program.path)
        .function_name("payments")
        .env("DATABASE_URL", bank.url())
        .stdout(Sink::Null)
        .stderr(Sink::Null)
}

fn milliseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    batch_item_failures: Vec<serde::de::IgnoredAny>,
}

fn expect_success(invocation: Invocation, sent: usize) -> Result<(), BenchError> {
    let Invocation::Response(response) = invocation else {
        return Err(BenchError::NoResponse(invocation));
    };
    let response: Response = serde_json::from_slice(&response)?;
    match response.batch_item_failures.len() {
        0 => Ok(()),
        reported => Err(BenchError::Reported { sent, reported }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_response_that_reports_nothing_is_a_success() {
        assert!(expect_success(Invocation::failures([""; 0]), 1).is_ok());
        for invocation in [
            Invocation::failures(["payment-1"]),
            Invocation::FunctionError("no".to_owned()),
            Invocation::Crashed,
            Invocation::TimedOut,
        ] {
            let text = format!("{invocation:?}");
            assert!(expect_success(invocation, 1).is_err(), "{text}");
        }
    }
}
