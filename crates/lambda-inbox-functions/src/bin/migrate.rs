//! The function that creates and upgrades the tables, to be run by a deployment.

use lambda_inbox_functions::{install_log, migrate};
use lambda_runtime::service_fn;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    install_log();
    lambda_runtime::run(service_fn(migrate)).await
}
