//! The function that creates and upgrades the tables, to be run by a deployment.

use lambda_inbox_functions::migrate;
use lambda_runtime::{service_fn, tracing};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    tracing::init_default_subscriber();
    lambda_runtime::run(service_fn(migrate)).await
}
