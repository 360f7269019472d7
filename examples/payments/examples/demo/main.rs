//! Shows the promise on this machine: the real function, a real Postgres, a simulated queue that
//! delivers at least once, and SIGKILLs in mid-batch. At the end the ledger has the last word.

mod bank;
mod binaries;
mod log;
mod progress;
mod run;
mod scenario;
mod traffic;
mod verdict;
mod victim;

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;

use crate::binaries::Binary;
use crate::scenario::Scenario;

/// Sends payments through a simulated SQS queue to the payments function, kills the function in
/// mid-batch, and then compares the ledger with what was sent.
///
/// The queue delivers a tenth of the messages twice, some payments fail at first, and some messages
/// are poison. Postgres is the server of DATABASE_URL, or else a private one that is started from the
/// installed binaries; either way a fresh database is made, and dropped at the end. Needs no AWS
/// account and no Docker.
///
/// Exit codes: 0 if every payment was booked exactly once, 1 if not, 2 if the demo could not run.
#[derive(Debug, Parser)]
#[command(name = "demo")]
struct Arguments {
    /// Run the naive twin, which has no inbox, to see what it books twice.
    #[arg(long)]
    no_inbox: bool,

    /// How many payments to send.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    messages: u32,

    /// Draws payments, order and moments of the kills. The moments also depend on the machine.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

#[tokio::main]
async fn main() -> ExitCode {
    match show(&Arguments::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("demo: {}", chain(&*error));
            ExitCode::from(2)
        }
    }
}

async fn show(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    let binary = Binary::find(arguments.no_inbox)?;
    let scenario = Scenario::new(arguments.messages, arguments.seed);
    println!("{scenario}");
    let result = run::run(&binary, &scenario).await?;
    let verdict = verdict::Verdict::new(&scenario, &result);
    println!("{verdict}");
    Ok(verdict.is_exactly_once())
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
