//! The table.

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};

use crate::measured::{Measured, Network, Ratio, Row};

/// The figures of a run, with a line above for each network.
pub(crate) fn table(measured: &Measured) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    let mut header = vec!["variant".to_owned(), "round trips\nper message".to_owned()];
    for network in &measured.networks {
        let delay = network.delay.as_millis();
        header.push(format!("{delay} ms:\nmsgs/s"));
        header.push(format!("{delay} ms:\n× baseline (min–max)"));
    }
    table.set_header(header);
    for row in &measured.rows {
        table.add_row(cells(measured, row));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text: String = measured.networks.iter().map(line).collect();
    text.push_str(&table.to_string());
    if measured.checkpointed {
        text.push_str("\nThe server made a checkpoint in between: run it again.");
    }
    text
}

fn line(network: &Network) -> String {
    format!(
        "{} ms: an empty round trip takes {:.2} ms\n",
        network.delay.as_millis(),
        network.empty_round_trip.as_secs_f64() * 1e3
    )
}

fn cells(measured: &Measured, row: &Row) -> Vec<String> {
    let mut cells = vec![row.entry.name.to_owned(), round_trips(row.round_trips)];
    for network in 0..measured.networks.len() {
        cells.push(format!("{:.0}", row.rate(network)));
        let ratio = measured.by_baseline(row, network);
        cells.push(ratio.map_or_else(|| "1".to_owned(), text));
    }
    cells
}

/// Large batches take some for thousands of messages.
fn round_trips(per_message: f64) -> String {
    if per_message < 0.1 {
        format!("{per_message:.4}")
    } else {
        format!("{per_message:.2}")
    }
}

fn text(ratio: Ratio) -> String {
    format!("{:.2} ({:.2}–{:.2})", ratio.median, ratio.min, ratio.max)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::contender::ENTRIES;

    #[test]
    fn a_row_says_its_rate_its_ratio_and_how_far_the_rounds_lie_apart() {
        let row = |place: usize, rates: [f64; 3]| Row {
            entry: &ENTRIES[place],
            round_trips: 4.0,
            rates: vec![rates.to_vec()],
        };
        let measured = Measured {
            networks: vec![Network {
                delay: Duration::from_millis(1),
                empty_round_trip: Duration::from_micros(1140),
            }],
            rows: vec![row(0, [180.0, 190.0, 185.0]), row(3, [180.0, 95.0, 370.0])],
            checkpointed: false,
        };
        let table = table(&measured);
        assert!(
            table.contains("an empty round trip takes 1.14 ms"),
            "{table}"
        );
        let words: Vec<&str> = table
            .lines()
            .find(|line| line.contains(ENTRIES[3].name))
            .unwrap()
            .split_whitespace()
            .collect();
        assert_eq!(
            words[1..words.len() - 1],
            [ENTRIES[3].name, "4.00", "180", "1.00", "(0.50–2.00)"]
        );
    }
}
