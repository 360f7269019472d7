//! The figures for machines: a flat object of ratios and counts, which mean the same on every machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::contender::PAIRS;
use crate::error::BenchError;
use crate::measured::Measured;
use crate::pipeline::{BATCHES, Cost};

pub(crate) type Summary = BTreeMap<String, f64>;

/// What was measured, by name. A ratio at 1 ms has the variant's name, one at 0 ms the suffix `_0ms`.
pub(crate) fn summary(measured: Option<&Measured>, costs: &[Cost]) -> Summary {
    let mut summary = Summary::new();
    if let Some(measured) = measured {
        add_ratios(&mut summary, measured);
        for row in &measured.rows {
            let name = format!("{}_round_trips", row.entry.name);
            summary.insert(name, rounded(row.round_trips));
        }
    }
    for cost in costs {
        // The usual batch is meant where none is named.
        let batch = match cost.batch {
            usual if usual == BATCHES[0] => String::new(),
            other => format!("_{other}"),
        };
        let microseconds = rounded(cost.nanoseconds / 1e3);
        summary.insert(
            format!("pipeline_overhead{batch}_us_per_message"),
            microseconds,
        );
        let allocations = rounded(cost.allocations);
        summary.insert(
            format!("pipeline{batch}_allocations_per_message"),
            allocations,
        );
    }
    summary
}

fn add_ratios(summary: &mut Summary, measured: &Measured) {
    for (index, network) in measured.networks.iter().enumerate() {
        let suffix = match network.delay.as_millis() {
            1 => String::new(),
            other => format!("_{other}ms"),
        };
        for row in &measured.rows {
            if let Some(ratio) = measured.by_baseline(row, index) {
                let name = format!("{}{suffix}", row.entry.name);
                summary.insert(name, rounded(ratio.median));
            }
        }
        for (name, row, other) in PAIRS {
            let (Some(row), Some(other)) = (measured.row(row), measured.row(other)) else {
                continue;
            };
            if let Some(ratio) = row.by(other, index) {
                summary.insert(format!("{name}{suffix}"), rounded(ratio.median));
            }
        }
    }
}

/// Writes it to `bench/summary.json` in Cargo's target folder.
///
/// # Errors
/// [`BenchError::Summary`].
pub(crate) fn write(summary: &Summary) -> Result<PathBuf, BenchError> {
    let path = target().join("bench").join("summary.json");
    let text = serde_json::to_string_pretty(summary)? + "\n";
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|source| BenchError::Summary {
            path: path.clone(),
            source,
        })?;
    Ok(path)
}

/// Cargo's target folder.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .filter(|folder| !folder.is_empty())
        .map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("target"),
            PathBuf::from,
        )
}

/// To four places: there is no more in it.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::contender::ENTRIES;
    use crate::measured::{Network, Row};

    #[test]
    fn ratios_are_named_by_variant_and_network_and_baselines_have_none() {
        let network = |milliseconds| Network {
            delay: Duration::from_millis(milliseconds),
            empty_round_trip: Duration::from_millis(milliseconds),
        };
        let row = |name: &str, at_1: f64, at_0: f64| Row {
            entry: ENTRIES.iter().find(|entry| entry.name == name).unwrap(),
            round_trips: 4.0,
            rates: vec![vec![at_1], vec![at_0]],
        };
        let measured = Measured {
            networks: vec![network(1), network(0)],
            rows: vec![
                row("baseline", 100.0, 1000.0),
                row("pgbench_c10", 400.0, 1500.0),
                row("per_message_k10", 800.0, 1200.0),
            ],
            checkpointed: false,
        };
        let cost = |batch| Cost {
            batch,
            nanoseconds: 4_200.0,
            allocations: 50.0,
        };
        let summary = summary(Some(&measured), &[cost(10), cost(10_000)]);
        let expected = [
            ("baseline_round_trips", 4.0),
            ("per_message_k10", 8.0),
            ("per_message_k10_0ms", 1.2),
            ("per_message_k10_round_trips", 4.0),
            ("per_message_k10_vs_pgbench_c10", 2.0),
            ("per_message_k10_vs_pgbench_c10_0ms", 0.8),
            ("pgbench_c10", 4.0),
            ("pgbench_c10_0ms", 1.5),
            ("pgbench_c10_round_trips", 4.0),
            ("pipeline_10000_allocations_per_message", 50.0),
            ("pipeline_allocations_per_message", 50.0),
            ("pipeline_overhead_10000_us_per_message", 4.2),
            ("pipeline_overhead_us_per_message", 4.2),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(summary, Summary::from(expected));
    }
}
