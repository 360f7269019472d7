//! The function that forgets old keys, to be run by a schedule.

use lambda_inbox_functions::metrics::Exporter;
use lambda_inbox_functions::{install_log, prune};
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    install_log();
    let exporter = Exporter::install();
    let run = |event: LambdaEvent<Value>| async move {
        let answer = prune(event).await;
        exporter.flush();
        answer
    };
    lambda_runtime::run(service_fn(run)).await
}
