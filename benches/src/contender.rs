//! Everything that is measured, in the order in which it is.

use std::time::Duration;

use crate::arena::Arena;
use crate::error::BenchError;
use crate::pgbench::Pgbench;
use crate::variant::{Feed, Variant};
use crate::variants::{Loop, bulk, per_batch, per_message, statement};
use crate::window::{self, Rate};

/// A contender's name and how to make it.
pub(crate) struct Entry {
    /// In the table, on the command line and in the summary.
    pub(crate) name: &'static str,
    pub(crate) feed: Feed,
    pub(crate) make: fn(&Arena) -> Result<Contender, BenchError>,
}

pub(crate) enum Contender {
    InProcess(Box<dyn Variant>),
    Pgbench(Pgbench),
}

/// Baselines stand before what is compared with them.
pub(crate) const ENTRIES: &[Entry] = &[
    fresh("baseline", |arena| in_process(Ok(Loop::new(arena)))),
    fresh("pgbench_c1", |arena| pgbench(arena, 1)),
    fresh("pgbench_c10", |arena| pgbench(arena, 10)),
    fresh("per_message_k1", |arena| in_process(per_message(arena, 1))),
    fresh("per_message_k4", |arena| in_process(per_message(arena, 4))),
    fresh("per_message_k10", |arena| {
        in_process(per_message(arena, 10))
    }),
    fresh("per_batch_10", |arena| in_process(per_batch(arena, 10))),
    fresh("per_batch_1000", |arena| {
        in_process(per_batch(arena, 1_000))
    }),
    fresh("bulk_10", |arena| in_process(bulk(arena, 10))),
    fresh("bulk_1000", |arena| in_process(bulk(arena, 1_000))),
    fresh("bulk_10000", |arena| in_process(bulk(arena, 10_000))),
    fresh("statement_10", |arena| in_process(statement(arena, 10))),
    fresh("statement_1000", |arena| {
        in_process(statement(arena, 1_000))
    }),
    fresh("statement_10000", |arena| {
        in_process(statement(arena, 10_000))
    }),
    duplicates("baseline_duplicates", |arena| {
        in_process(Ok(Loop::new(arena)))
    }),
    duplicates("duplicates_per_message_k10", |arena| {
        in_process(per_message(arena, 10))
    }),
    duplicates("duplicates_10", |arena| in_process(per_batch(arena, 10))),
];

/// What is divided by another row than its baseline too: the name in the summary, the row, the other row.
pub(crate) const PAIRS: &[(&str, &str, &str)] = &[(
    "per_message_k10_vs_pgbench_c10",
    "per_message_k10",
    "pgbench_c10",
)];

/// The entries that are wanted, and those they are compared with.
pub(crate) fn with_baselines(wants: impl Fn(&str) -> bool) -> Vec<&'static Entry> {
    let wanted: Vec<&Entry> = ENTRIES.iter().filter(|entry| wants(entry.name)).collect();
    let is_needed = |entry: &&Entry| {
        wants(entry.name)
            || wanted
                .iter()
                .any(|other| other.feed.baseline() == entry.name)
    };
    ENTRIES.iter().filter(is_needed).collect()
}

impl Contender {
    /// Round trips per message, counted on the wire once the connections are warm.
    pub(crate) async fn round_trips(
        &mut self,
        arena: &mut Arena,
        feed: Feed,
    ) -> Result<f64, BenchError> {
        match self {
            Self::InProcess(variant) => window::round_trips(&mut **variant, arena, feed).await,
            Self::Pgbench(pgbench) => pgbench.round_trips(arena).await,
        }
    }

    /// Runs for at least `length` and then counts the rows.
    pub(crate) async fn window(
        &mut self,
        arena: &mut Arena,
        feed: Feed,
        length: Duration,
    ) -> Result<Rate, BenchError> {
        match self {
            Self::InProcess(variant) => window::run(&mut **variant, arena, feed, length).await,
            Self::Pgbench(pgbench) => pgbench.window(arena, length).await,
        }
    }
}

type Make = fn(&Arena) -> Result<Contender, BenchError>;

const fn fresh(name: &'static str, make: Make) -> Entry {
    let feed = Feed::Fresh;
    Entry { name, feed, make }
}

const fn duplicates(name: &'static str, make: Make) -> Entry {
    let feed = Feed::Duplicates;
    Entry { name, feed, make }
}

fn in_process(
    variant: Result<impl Variant + 'static, BenchError>,
) -> Result<Contender, BenchError> {
    Ok(Contender::InProcess(Box::new(variant?)))
}

fn pgbench(arena: &Arena, clients: u32) -> Result<Contender, BenchError> {
    Pgbench::new(arena, clients).map(Contender::Pgbench)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(wanted: &[&str]) -> Vec<&'static str> {
        let entries = with_baselines(|name| wanted.contains(&name));
        entries.iter().map(|entry| entry.name).collect()
    }

    #[test]
    fn what_is_wanted_comes_with_its_baseline_first() {
        assert_eq!(names(&["per_message_k4"]), ["baseline", "per_message_k4"]);
        assert_eq!(
            names(&["duplicates_per_message_k10"]),
            ["baseline_duplicates", "duplicates_per_message_k10"]
        );
        assert_eq!(names(&["baseline"]), ["baseline"]);
        assert!(names(&["pipeline"]).is_empty());
    }

    #[test]
    fn baselines_and_pairs_name_entries_that_stand_before() {
        let place = |name: &str| ENTRIES.iter().position(|entry| entry.name == name);
        for entry in ENTRIES {
            assert!(
                place(entry.feed.baseline()) <= place(entry.name),
                "{}",
                entry.name
            );
            assert!(place(entry.feed.baseline()).is_some(), "{}", entry.name);
        }
        for (pair, row, other) in PAIRS {
            assert!(place(row).is_some() && place(other).is_some(), "{pair}");
        }
    }
}
