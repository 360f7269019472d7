//! Figures of many rounds, and what is said of them: the median, and how far they lie apart.

use std::time::Duration;

use crate::contender::Entry;

/// A whole run.
pub(crate) struct Measured {
    pub(crate) networks: Vec<Network>,
    pub(crate) rows: Vec<Row>,
    pub(crate) checkpointed: bool,
}

/// A simulated network.
pub(crate) struct Network {
    /// What it adds to a round trip.
    pub(crate) delay: Duration,
    /// How long a round trip really takes that does nothing.
    pub(crate) empty_round_trip: Duration,
}

/// One contender's figures.
pub(crate) struct Row {
    pub(crate) entry: &'static Entry,
    pub(crate) round_trips: f64,
    /// Messages per second, by network and round.
    pub(crate) rates: Vec<Vec<f64>>,
}

/// The ratio of two rows, over the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Measured {
    pub(crate) fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.entry.name == name)
    }

    /// `row` by its baseline; none for a baseline itself.
    pub(crate) fn by_baseline(&self, row: &Row, network: usize) -> Option<Ratio> {
        let baseline = row.entry.feed.baseline();
        if row.entry.name == baseline {
            return None;
        }
        row.by(self.row(baseline)?, network)
    }
}

impl Row {
    pub(crate) fn rate(&self, network: usize) -> f64 {
        self.rates
            .get(network)
            .map_or(f64::NAN, |rates| median(rates))
    }

    /// This row by the other one, each round for itself.
    pub(crate) fn by(&self, other: &Row, network: usize) -> Option<Ratio> {
        let pairs = self
            .rates
            .get(network)?
            .iter()
            .zip(other.rates.get(network)?);
        Ratio::of(
            &pairs
                .map(|(ours, theirs)| ours / theirs)
                .collect::<Vec<_>>(),
        )
    }
}

impl Ratio {
    /// None of none.
    pub(crate) fn of(ratios: &[f64]) -> Option<Self> {
        Some(Self {
            median: median(ratios),
            min: ratios.iter().copied().reduce(f64::min)?,
            max: ratios.iter().copied().reduce(f64::max)?,
        })
    }
}

/// The middle one, or the mean of the two in the middle; not a number where there is none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.get(middle), sorted.len() % 2) {
        (None, _) => f64::NAN,
        (Some(value), 1) => *value,
        (Some(value), _) => f64::midpoint(*value, sorted[middle - 1]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::ENTRIES;

    fn row(place: usize, rates: &[f64]) -> Row {
        Row {
            entry: &ENTRIES[place],
            round_trips: 4.0,
            rates: vec![rates.to_vec()],
        }
    }

    #[test]
    fn a_median_is_the_middle_value_or_between_the_two_middle_ones() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    /// The machine was five times slower in the second round: the ratio does not show it.
    #[test]
    fn rates_are_compared_within_a_round() {
        let measured = Measured {
            networks: Vec::new(),
            rows: vec![row(0, &[100.0, 20.0, 100.0]), row(3, &[200.0, 60.0, 150.0])],
            checkpointed: false,
        };
        let ratio = measured.by_baseline(&measured.rows[1], 0);
        let expected = Ratio {
            median: 2.0,
            min: 1.5,
            max: 3.0,
        };
        assert_eq!(ratio, Some(expected));
        assert_eq!(measured.by_baseline(&measured.rows[0], 0), None);
    }
}
