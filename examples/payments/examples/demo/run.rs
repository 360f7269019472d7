//! The run itself, and what it left in queue, log and database.

use std::io;

use lambda_inbox_testkit::queue::Stats;
use lambda_inbox_testkit::runtime::{LocalRuntime, StartError};

use crate::bank::{Bank, BankError, Ledger};
use crate::binaries::Binary;
use crate::log::Log;
use crate::scenario::Scenario;
use crate::traffic::{Traffic, TrafficError};
use crate::victim::Victim;

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) stats: Stats,
    pub(crate) ledger: Ledger,
    /// How often a good message was handed to the function.
    pub(crate) deliveries: u64,
    pub(crate) duplicates_skipped: u64,
    /// Good messages in the dead-letter queue.
    pub(crate) good_dead_letters: usize,
    /// All others there.
    pub(crate) poison_dead_letters: usize,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error("the bank is not there")]
    Bank(#[from] BankError),
    #[error("the {name} function does not start")]
    Start {
        name: &'static str,
        source: StartError,
    },
    #[error("the messages cannot be delivered")]
    Traffic(#[from] TrafficError),
    #[error("the function's output cannot be read")]
    Log(#[from] io::Error),
}

/// Runs the scenario with the function `binary`.
pub(crate) async fn run(binary: &Binary, scenario: &Scenario) -> Result<Run, RunError> {
    let log = Log::new()?;
    let mut bank = Bank::open(scenario).await?;
    let result = run_logged(binary, scenario, &mut bank, &log).await;
    if result.is_err() {
        eprintln!("the function's output ends with:\n{}", log.tail());
    }
    let closed = bank.close().await;
    let run = result?;
    closed?;
    Ok(run)
}

async fn run_logged(
    binary: &Binary,
    scenario: &Scenario,
    bank: &mut Bank,
    log: &Log,
) -> Result<Run, RunError> {
    let function = LocalRuntime::builder(&binary.path)
        .function_name(binary.name)
        .env("DATABASE_URL", bank.url())
        // One line for each record, which tells its outcome.
        .env("AWS_LAMBDA_LOG_LEVEL", "info,lambda_inbox=debug")
        .stdout(log.sink())
        .stderr(log.sink())
        .start()
        .await
        .map_err(|source| RunError::Start {
            name: binary.name,
            source,
        })?;
    let mut victim = Victim::new(function, bank.connect().await?, scenario);
    let mut traffic = Traffic::new(scenario)?;
    traffic.deliver_all(&mut victim, bank).await?;
    drop(victim);
    let (good_dead_letters, poison_dead_letters) = traffic.dead_letters();
    Ok(Run {
        stats: traffic.stats(),
        ledger: bank.ledger().await?,
        deliveries: traffic.deliveries,
        duplicates_skipped: log.duplicates()?,
        good_dead_letters,
        poison_dead_letters,
    })
}
