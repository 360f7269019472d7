//! How the poller reads what the function returned; the one place where a message is lost if it is read wrongly.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::consumer::Invocation;

const FAILURES: &str = "batchItemFailures";
const IDENTIFIER: &str = "itemIdentifier";

/// What became of a batch, by the page `services-sqs-errorhandling`.
///
/// | the function | verdict |
/// |---|---|
/// | returned `{"batchItemFailures": []}`, `{"batchItemFailures": null}`, `{}` or `null` | complete |
/// | named messages of the batch | partial: these come back, each once however often it is named |
/// | named one that is not in the batch, `""` or `null`; an entry without `itemIdentifier` or with a misspelt one | failed |
/// | returned what is not JSON | failed |
/// | returned an error, ran out of time, crashed, or was not run for lack of capacity | failed |
/// | returned anything, where the mapping lacks `ReportBatchItemFailures` | complete |
///
/// The page is silent on three inputs, and the safe reading is taken, which loses no message: an object that is not
/// empty but has no `batchItemFailures` (a misspelt name, such as another letter case), a list or entry of
/// another JSON type, and a response that is neither an object nor `null` all fail the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every message is deleted.
    Complete,
    /// The messages with these ids come back, all others are deleted.
    Partial(Vec<String>),
    /// Every message comes back.
    Failed(BatchFailure),
}

/// Why every message of a batch comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchFailure {
    /// Lambda had no capacity; the function did not run.
    Throttled,
    /// The function returned an error, with this text.
    FunctionError(String),
    /// The function ran out of time.
    TimedOut,
    /// The process ended without an answer.
    Crashed,
    /// The response is not JSON.
    InvalidJson,
    /// The response is JSON of another shape; the text says where it goes wrong.
    Malformed(&'static str),
    /// An identifier that no message of the batch has.
    UnknownIdentifier(String),
}

impl Verdict {
    /// Reads the outcome of an invocation with the messages `batch`.
    pub(super) fn of(
        invocation: &Invocation,
        batch: &HashSet<&str>,
        report_batch_item_failures: bool,
    ) -> Self {
        match invocation {
            Invocation::Response(_) if !report_batch_item_failures => Self::Complete,
            Invocation::Response(response) => read(response, batch).unwrap_or_else(Self::Failed),
            Invocation::FunctionError(text) => {
                Self::Failed(BatchFailure::FunctionError(text.clone()))
            }
            Invocation::TimedOut => Self::Failed(BatchFailure::TimedOut),
            Invocation::Crashed => Self::Failed(BatchFailure::Crashed),
        }
    }
}

fn read(response: &[u8], batch: &HashSet<&str>) -> Result<Verdict, BatchFailure> {
    let response = serde_json::from_slice(response).map_err(|_| BatchFailure::InvalidJson)?;
    let response: Map<String, Value> = match response {
        Value::Null => return Ok(Verdict::Complete),
        Value::Object(response) => response,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err(BatchFailure::Malformed("response is no object"));
        }
    };
    let failures = match response.get(FAILURES) {
        Some(Value::Null) => return Ok(Verdict::Complete),
        Some(Value::Array(failures)) => failures,
        Some(_) => return Err(BatchFailure::Malformed("batchItemFailures is no list")),
        None if response.is_empty() => return Ok(Verdict::Complete),
        None => return Err(BatchFailure::Malformed("no batchItemFailures")),
    };
    let mut failed = Vec::new();
    let mut seen = HashSet::new();
    for failure in failures {
        let identifier = match failure.get(IDENTIFIER) {
            Some(Value::String(identifier)) => identifier,
            Some(_) => return Err(BatchFailure::Malformed("itemIdentifier is no text")),
            None => return Err(BatchFailure::Malformed("entry without itemIdentifier")),
        };
        if !batch.contains(identifier.as_str()) {
            return Err(BatchFailure::UnknownIdentifier(identifier.clone()));
        }
        if seen.insert(identifier) {
            failed.push(identifier.clone());
        }
    }
    Ok(if failed.is_empty() {
        Verdict::Complete
    } else {
        Verdict::Partial(failed)
    })
}
