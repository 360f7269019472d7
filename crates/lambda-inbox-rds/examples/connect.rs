//! Whether this environment's database can be reached, and how: for every line of standard input it connects
//! and says who it is there, or why not.
//!
//! `DATABASE_URL=... cargo run -p lambda-inbox-rds --all-features --example connect`

use lambda_inbox_rds::Source;
use lambda_inbox_store::{Schema, Store, StoreError};
use std::error::Error;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::Instant;

/// Of a function's time.
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let source = match Source::from_env() {
        Ok(source) => source,
        Err(error) => {
            eprintln!("{}", chain(&error));
            return ExitCode::FAILURE;
        }
    };
    let store = Store::with_source(Arc::new(source), Schema::default(), NonZeroUsize::MIN);
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(_)) = lines.next_line().await {
        match connect(&store).await {
            Ok(()) => println!("connected"),
            Err(error) => println!(
                "{}: {}",
                chain(&error),
                error.sqlstate().unwrap_or_default()
            ),
        }
    }
    ExitCode::SUCCESS
}

/// As an invocation does that has no connection left.
async fn connect(store: &Store) -> Result<(), StoreError> {
    let slot = store.slot().await;
    slot.fresh_connection(Instant::now() + PATIENCE).await?;
    Ok(())
}

fn chain(error: &dyn Error) -> String {
    let mut texts = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        texts.push(error.to_string());
        cause = error.source();
    }
    texts.join(": ")
}
