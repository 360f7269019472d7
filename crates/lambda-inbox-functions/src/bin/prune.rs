//! The function that forgets old keys, to be run by a schedule.

use lambda_inbox_functions::metrics::Emf;
use lambda_inbox_functions::{install_log, prune};
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    install_log();
    let emf = Emf::install();
    let run = |event: LambdaEvent<Value>| async move {
        let answer = prune(event).await;
        // A gauge keeps its value: a prune that failed would look like the one before it, which finished.
        if answer.as_ref().is_ok_and(|answer| !answer.report.dry_run) {
            emf.flush();
        }
        answer
    };
    lambda_runtime::run(service_fn(run)).await
}
