//! Rounds: every contender once, in a fixed order, again and again, so that what slows the machine down
//! for a while hits all of them.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::arena::Arena;
use crate::contender::{Contender, Entry};
use crate::error::BenchError;
use crate::measured::{Measured, Network, Row};
use crate::progress::Progress;

/// What the simulated networks add to a round trip, half of it each way.
const DELAYS: [Duration; 2] = [Duration::from_millis(1), Duration::ZERO];

pub(crate) struct Plan {
    pub(crate) rounds: NonZeroU32,
    pub(crate) window: Duration,
}

/// Runs everything there is to run.
///
/// # Errors
/// Any error ends the run: figures without all of their rows are worth nothing.
pub(crate) async fn run(
    arena: &mut Arena,
    mut contenders: Vec<(&'static Entry, Contender)>,
    plan: &Plan,
) -> Result<Measured, BenchError> {
    let rounds = plan.rounds.get() as usize;
    let mut progress = Progress::new((DELAYS.len() * rounds + 1) * contenders.len());
    let checkpoint = arena.checkpoint().await?;
    let mut rows = count_round_trips(arena, &mut contenders, &mut progress).await?;
    let mut networks = Vec::new();
    for delay in DELAYS {
        arena.proxy.set_delay(delay / 2);
        networks.push(Network {
            delay,
            empty_round_trip: arena.empty_round_trip().await?,
        });
        for row in &mut rows {
            row.rates.push(Vec::new());
        }
        for round in 1..=rounds {
            progress.phase(&format!(
                "{} ms, round {round} of {rounds}",
                delay.as_millis()
            ));
            for (row, (entry, contender)) in rows.iter_mut().zip(&mut contenders) {
                progress.step(entry.name);
                let rate = contender.window(arena, entry.feed, plan.window).await;
                let rate = rate.map_err(BenchError::of(entry.name))?;
                if let Some(rates) = row.rates.last_mut() {
                    rates.push(rate.per_second());
                }
            }
        }
    }
    progress.finish();
    let checkpointed = arena.checkpoint().await? != checkpoint;
    Ok(Measured {
        networks,
        rows,
        checkpointed,
    })
}

async fn count_round_trips(
    arena: &mut Arena,
    contenders: &mut [(&'static Entry, Contender)],
    progress: &mut Progress,
) -> Result<Vec<Row>, BenchError> {
    // With a delay all connections of a variant are opened at once, and none of them later.
    arena.proxy.set_delay(DELAYS[0] / 2);
    progress.phase("counting round trips");
    let mut rows = Vec::new();
    for (entry, contender) in contenders {
        progress.step(entry.name);
        let round_trips = contender.round_trips(arena, entry.feed).await;
        rows.push(Row {
            entry,
            round_trips: round_trips.map_err(BenchError::of(entry.name))?,
            rates: Vec::new(),
        });
    }
    Ok(rows)
}
