//! The figures, for people and for machines.

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use lambda_inbox_store::Layout;

use super::claims::Claims;
use super::prune::Pruned;
use crate::summary::Summary;

/// Everything that was measured.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(super) claims: Vec<(Layout, u64, Claims)>,
    pub(super) by_delete: Option<Pruned>,
    pub(super) by_partition: Option<Pruned>,
}

pub(super) fn name(layout: Layout) -> &'static str {
    if layout == Layout::TimeOrdered {
        "time_ordered"
    } else {
        "keyed"
    }
}

/// As people write it: 0, 1m, 10m.
fn size(rows: u64) -> String {
    match rows / 1_000_000 {
        0 => rows.to_string(),
        millions => format!("{millions}m"),
    }
}

impl Figures {
    /// By name: `claim_<size>_vs_empty_<layout>`, `wal_bytes_per_claim_<size>_<layout>`, and of the prunes.
    pub(crate) fn add_to(&self, summary: &mut Summary) {
        for (layout, rows, claims) in &self.claims {
            let (layout, size) = (*layout, size(*rows));
            let name = name(layout);
            summary.insert(
                format!("wal_bytes_per_claim_{size}_{name}"),
                claims.log_bytes.round(),
            );
            if let Some(ratio) = self.by_empty(layout, claims).filter(|_| *rows > 0) {
                summary.insert(format!("claim_{size}_vs_empty_{name}"), rounded(ratio));
            }
        }
        if let Some(pruned) = self.by_delete {
            summary.insert("prune_p99_ratio".to_owned(), rounded(pruned.p99_ratio()));
        }
        if let Some(pruned) = self.by_partition {
            let ratio = rounded(pruned.p99_ratio());
            summary.insert("prune_by_partition_p99_ratio".to_owned(), ratio);
            summary.extend(
                pruned
                    .log_bytes
                    .map(|bytes| ("partition_drop_wal_bytes".to_owned(), bytes.round())),
            );
        }
    }

    fn by_empty(&self, layout: Layout, claims: &Claims) -> Option<f64> {
        let empty = self
            .claims
            .iter()
            .find(|(other, rows, _)| *other == layout && *rows == 0)?;
        Some(claims.per_second / empty.2.per_second)
    }

    pub(crate) fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(UTF8_BORDERS_ONLY);
        table.set_header([
            "rows kept",
            "layout",
            "claims/s",
            "× empty",
            "log bytes\nper claim",
        ]);
        for (layout, rows, claims) in &self.claims {
            let ratio = self.by_empty(*layout, claims).unwrap_or(f64::NAN);
            table.add_row([
                size(*rows),
                name(*layout).to_owned(),
                format!("{:.0}", claims.per_second),
                format!("{ratio:.2}"),
                format!("{:.0}", claims.log_bytes),
            ]);
        }
        for column in table.column_iter_mut().skip(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let mut text = format!("claims in batches of 1,000\n{table}");
        for (what, pruned) in [
            ("by delete", self.by_delete),
            ("by partition", self.by_partition),
        ] {
            let Some(pruned) = pruned else { continue };
            let milliseconds = |time: std::time::Duration| time.as_secs_f64() * 1e3;
            text.push_str(&format!(
                "\na million rows pruned {what} in {:.1} s: p99 of a claim {:.1} ms, {:.1} ms before",
                pruned.seconds,
                milliseconds(pruned.p99_during),
                milliseconds(pruned.p99_before)
            ));
            if let Some(bytes) = pruned.log_bytes {
                text.push_str(&format!("; {:.0} kB of log", bytes / 1e3));
            }
        }
        text
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn figures_are_named_by_size_and_layout() {
        let claims = |per_second, log_bytes| Claims {
            per_second,
            log_bytes,
        };
        let figures = Figures {
            claims: vec![
                (Layout::Keyed, 0, claims(100.0, 300.0)),
                (Layout::Keyed, 10_000_000, claims(25.0, 8000.4)),
                (Layout::TimeOrdered, 0, claims(100.0, 300.0)),
                (Layout::TimeOrdered, 10_000_000, claims(90.0, 310.0)),
            ],
            by_delete: Some(Pruned {
                seconds: 3.0,
                p99_before: Duration::from_millis(4),
                p99_during: Duration::from_millis(5),
                log_bytes: None,
            }),
            by_partition: None,
        };
        let mut summary = Summary::new();
        figures.add_to(&mut summary);
        let expected = [
            ("claim_10m_vs_empty_keyed", 0.25),
            ("claim_10m_vs_empty_time_ordered", 0.9),
            ("prune_p99_ratio", 1.25),
            ("wal_bytes_per_claim_0_keyed", 300.0),
            ("wal_bytes_per_claim_0_time_ordered", 300.0),
            ("wal_bytes_per_claim_10m_keyed", 8000.0),
            ("wal_bytes_per_claim_10m_time_ordered", 310.0),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(summary, Summary::from(expected));
        assert!(figures.table().contains("10m"), "{}", figures.table());
    }
}
