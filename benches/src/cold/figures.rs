//! The figures, for people and for machines.

use std::collections::BTreeMap;

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};

use super::build::{BARE, Built, PAYMENTS, PAYMENTS_WITH_AWS};
use super::metric::Metric;
use crate::measured::{Ratio, median};
use crate::summary::Summary;

/// Everything that was measured, the function written by hand first.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(super) functions: Vec<Function>,
}

/// One function's figures, by round where there are rounds.
#[derive(Debug)]
pub(super) struct Function {
    name: &'static str,
    samples: BTreeMap<Metric, Vec<f64>>,
}

impl Function {
    /// Its sizes; the rest is added.
    pub(super) fn of(built: &Built) -> Self {
        let mut function = Self {
            name: built.name,
            samples: BTreeMap::new(),
        };
        function.extend([
            (Metric::Binary, built.binary_bytes as f64),
            (Metric::Zip, built.zip_bytes as f64),
        ]);
        function
    }

    pub(super) fn extend(&mut self, samples: impl IntoIterator<Item = (Metric, f64)>) {
        for (metric, value) in samples {
            self.samples.entry(metric).or_default().push(value);
        }
    }

    fn value(&self, metric: Metric) -> Option<f64> {
        self.samples.get(&metric).map(|samples| median(samples))
    }

    /// Each round for itself, as a machine may be slow for a while.
    fn by(&self, other: &Self, metric: Metric) -> Option<Ratio> {
        let pairs = self
            .samples
            .get(&metric)?
            .iter()
            .zip(other.samples.get(&metric)?);
        let ratios: Vec<f64> = pairs.map(|(ours, theirs)| ours / theirs).collect();
        Ratio::of(&ratios)
    }
}

impl Figures {
    /// Ratios of the payments function without the AWS SDK, that of its zip with it, and all medians by
    /// function.
    pub(crate) fn add_to(&self, summary: &mut Summary) {
        for metric in Metric::ALL {
            for function in &self.functions {
                if let Some(value) = function.value(metric) {
                    let name = format!("{}_{}", metric.value_name(), function.name);
                    summary.insert(name, rounded(value));
                }
            }
            let ratio = self.by_bare(PAYMENTS, metric);
            summary
                .extend(ratio.map(|ratio| (metric.ratio_name().to_owned(), rounded(ratio.median))));
        }
        let zip = self.by_bare(PAYMENTS_WITH_AWS, Metric::Zip);
        summary
            .extend(zip.map(|ratio| ("zip_size_ratio_with_aws".to_owned(), rounded(ratio.median))));
    }

    pub(crate) fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(UTF8_BORDERS_ONLY);
        table.set_header(
            ["function"]
                .into_iter()
                .chain(Metric::ALL.map(Metric::heading)),
        );
        for function in &self.functions {
            let cells = Metric::ALL.map(|metric| self.cell(function, metric));
            table.add_row([function.name.to_owned()].into_iter().chain(cells));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        format!(
            "cold start and size: medians, and × the function written by hand (min–max)\n{table}"
        )
    }

    fn cell(&self, function: &Function, metric: Metric) -> String {
        let Some(value) = function.value(metric) else {
            return String::new();
        };
        let value = metric.display(value);
        match self.by_bare(function.name, metric) {
            Some(ratio) if function.name != BARE => format!("{value}\n{}", text(ratio)),
            _ => value,
        }
    }

    fn by_bare(&self, name: &str, metric: Metric) -> Option<Ratio> {
        self.function(name)?.by(self.function(BARE)?, metric)
    }

    fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == name)
    }
}

/// How far the rounds lie apart tells what the median is worth.
fn text(ratio: Ratio) -> String {
    match ratio.min < ratio.max {
        true => format!("× {:.2} ({:.2}–{:.2})", ratio.median, ratio.min, ratio.max),
        false => format!("× {:.2}", ratio.median),
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &'static str, zip: f64, next: [f64; 3]) -> Function {
        let mut function = Function {
            name,
            samples: BTreeMap::new(),
        };
        function.extend([(Metric::Binary, 2.0 * zip), (Metric::Zip, zip)]);
        function.extend(next.map(|next| (Metric::Next, next)));
        function.extend(next.map(|next| (Metric::Commit, 10.0 * next)));
        function
    }

    fn figures() -> Figures {
        Figures {
            functions: vec![
                function(BARE, 2e6, [2.0, 4.0, 2.0]),
                function(PAYMENTS, 2.5e6, [2.2, 4.8, 3.0]),
                function(PAYMENTS_WITH_AWS, 4.5e6, [4.0, 8.0, 4.0]),
            ],
        }
    }

    #[test]
    fn every_name_of_the_summary_says_what_was_measured_and_of_which_function() {
        let mut figures = figures();
        for function in &mut figures.functions {
            function.extend([(Metric::IdleMemory, 5e6), (Metric::MemoryAfter10000, 6e6)]);
        }
        let mut summary = Summary::new();
        figures.add_to(&mut summary);
        let expected = [
            ("binary_size_bytes_bare", 4e6),
            ("binary_size_bytes_payments", 5e6),
            ("binary_size_bytes_payments_with_aws", 9e6),
            ("binary_size_ratio", 1.25),
            ("cold_commit_ms_bare", 20.0),
            ("cold_commit_ms_payments", 30.0),
            ("cold_commit_ms_payments_with_aws", 40.0),
            ("cold_commit_ratio", 1.2),
            ("cold_next_ms_bare", 2.0),
            ("cold_next_ms_payments", 3.0),
            ("cold_next_ms_payments_with_aws", 4.0),
            ("cold_next_ratio", 1.2),
            ("idle_memory_bytes_bare", 5e6),
            ("idle_memory_bytes_payments", 5e6),
            ("idle_memory_bytes_payments_with_aws", 5e6),
            ("idle_memory_ratio", 1.0),
            ("memory_after_10000_bytes_bare", 6e6),
            ("memory_after_10000_bytes_payments", 6e6),
            ("memory_after_10000_bytes_payments_with_aws", 6e6),
            ("memory_after_10000_ratio", 1.0),
            ("zip_size_bytes_bare", 2e6),
            ("zip_size_bytes_payments", 2.5e6),
            ("zip_size_bytes_payments_with_aws", 4.5e6),
            ("zip_size_ratio", 1.25),
            ("zip_size_ratio_with_aws", 2.25),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(summary, Summary::from(expected));
    }

    #[test]
    fn what_a_system_cannot_measure_is_left_out() {
        let mut summary = Summary::new();
        figures().add_to(&mut summary);
        assert!(summary.contains_key("cold_next_ratio"), "{summary:?}");
        assert!(
            !summary.keys().any(|name| name.contains("memory")),
            "{summary:?}"
        );
    }

    /// The machine was twice as slow in the second round.
    #[test]
    fn starts_are_compared_within_a_round() {
        let table = figures().table();
        let line_with = |text: &str| table.lines().find(|line| line.contains(text)).unwrap();
        let words = |line: &str| -> Vec<String> {
            let words = line.split_whitespace().filter(|word| *word != "│");
            words.map(str::to_owned).collect()
        };
        assert_eq!(
            words(line_with("bare "))[1..],
            ["2.0", "20.0", "4.00", "2.00"],
            "{table}"
        );
        let ratios = words(line_with("(1.10–1.50)"));
        assert_eq!(ratios[..3], ["×", "1.20", "(1.10–1.50)"], "{table}");
        assert_eq!(ratios[6..], ["×", "1.25", "×", "1.25"], "{table}");
    }
}
