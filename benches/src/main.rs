//! How fast the inbox is, said in ratios: every scope against a hand-written loop, on one Postgres,
//! through one simulated network, in one run. Absolute rates differ between two machines, and
//! between two minutes of one; ratios of the same round hardly do.
//!
//! The way of a run: [`arena`] (server, network, tables), [`contender`] (who is measured),
//! [`rounds`] (in a fixed order, again and again), [`measured`] (medians), [`report`] and [`summary`].
//! To measure another scope: one file like `variants/per_message.rs` and one line in [`contender`].

mod arena;
mod cold;
mod contender;
mod delivery;
mod error;
mod measured;
mod pgbench;
mod pipeline;
mod progress;
mod report;
mod retention;
mod rounds;
mod summary;
mod variant;
mod variants;
mod window;

use std::num::NonZeroU32;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use clap::builder::PossibleValuesParser;

use crate::arena::Arena;
use crate::error::{BenchError, chain};
use crate::measured::Measured;
use crate::pipeline::Cost;
use crate::rounds::Plan;

/// In every thread, or the counts of the pipeline's allocations would be of nothing.
#[global_allocator]
static ALLOCATOR: alloc_tracker::Allocator<std::alloc::System> = alloc_tracker::Allocator::system();

/// Measures lambda-inbox against a hand-written loop (BEGIN, INSERT INTO inbox .. ON CONFLICT DO NOTHING,
/// UPDATE, COMMIT on one held connection) and against pgbench with the same SQL.
///
/// Starts a private Postgres with fsync on and reaches it through a proxy that simulates a network with a
/// round trip of 1 ms, and then without that. In each round every variant runs once, in the order of the
/// table; a ratio is the median over the rounds of the variant's rate by the loop's rate of the same round.
/// After every variant and round the rows are counted.
///
/// Then what a function costs before it does anything: the payments example, with and without the AWS SDK,
/// next to the same function written by hand. Cold start, size, and memory on Linux.
///
/// Needs the PostgreSQL programs (pgbench among them, or its rows are left out). Takes a few minutes, and a
/// few more the first time, to build those functions in release.
/// Writes bench/summary.json in Cargo's target folder.
///
/// Exit codes: 0 if everything was measured, 1 if the rows do not match what was sent, 2 if the benchmark
/// could not run.
#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Arguments {
    /// How often each variant is measured at each network.
    #[arg(long, value_name = "N", default_value = "5")]
    rounds: NonZeroU32,

    /// How long a variant runs in a round, at least; pgbench takes whole seconds.
    #[arg(long, value_name = "MS", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    window_ms: u32,

    /// Measure the inbox at ten million kept keys too, which takes minutes to fill.
    #[arg(long)]
    large: bool,

    /// Measure these only, and what they are compared with.
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = PossibleValuesParser::new(names()))]
    only: Vec<String>,
}

impl Arguments {
    fn window(&self) -> Duration {
        Duration::from_millis(self.window_ms.into())
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}

fn names() -> Vec<&'static str> {
    let contenders = contender::ENTRIES.iter().map(|entry| entry.name);
    contenders
        .chain([pipeline::NAME, retention::NAME, cold::NAME])
        .collect()
}

// One thread, as the loop has; the proxy and the server have theirs.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match bench(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {}", chain(&error));
            error.exit_code()
        }
    }
}

async fn bench(arguments: &Arguments) -> Result<(), BenchError> {
    // First, because it can fail for want of a network, and the rest takes minutes.
    let functions = functions(arguments).await?;
    let costs = costs(arguments).await?;
    let measured = compete(arguments).await?;
    if let Some(measured) = &measured {
        println!("{}", report::table(measured));
    }
    for cost in &costs {
        println!("{cost}");
    }
    let mut summary = summary::summary(measured.as_ref(), &costs);
    if arguments.wants(retention::NAME) {
        let figures = retention::measure(arguments.large, arguments.window()).await;
        let figures = figures.map_err(BenchError::of(retention::NAME))?;
        println!("{}", figures.table());
        figures.add_to(&mut summary);
    }
    if !functions.is_empty() {
        let figures = cold::measure(&functions).await;
        let figures = figures.map_err(BenchError::of(cold::NAME))?;
        println!("{}", figures.table());
        figures.add_to(&mut summary);
    }
    let path = summary::write(&summary)?;
    eprintln!("written: {}", path.display());
    Ok(())
}

async fn functions(arguments: &Arguments) -> Result<Vec<cold::Built>, BenchError> {
    if !arguments.wants(cold::NAME) {
        return Ok(Vec::new());
    }
    cold::build().await.map_err(BenchError::of(cold::NAME))
}

async fn costs(arguments: &Arguments) -> Result<Vec<Cost>, BenchError> {
    if !arguments.wants(pipeline::NAME) {
        return Ok(Vec::new());
    }
    eprintln!("measuring the pipeline without a database ...");
    let mut costs = Vec::new();
    for batch in pipeline::BATCHES {
        let cost = pipeline::measure(batch, arguments.window()).await;
        costs.push(cost.map_err(BenchError::of(pipeline::NAME))?);
    }
    Ok(costs)
}

async fn compete(arguments: &Arguments) -> Result<Option<Measured>, BenchError> {
    let wanted = contender::with_baselines(|name| arguments.wants(name));
    if wanted.is_empty() {
        return Ok(None);
    }
    eprintln!("starting Postgres ...");
    let mut arena = Arena::open().await?;
    let mut contenders = Vec::new();
    for entry in wanted {
        match (entry.make)(&arena) {
            Err(BenchError::NoPgbench) if arguments.only.is_empty() => {
                eprintln!("no pgbench found, so {} is left out", entry.name);
            }
            contender => contenders.push((entry, contender?)),
        }
    }
    let plan = Plan {
        rounds: arguments.rounds,
        window: arguments.window(),
    };
    rounds::run(&mut arena, contenders, &plan).await.map(Some)
}
