//! The figures, and the one line that counts.

use std::fmt;

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};

use crate::run::Run;
use crate::scenario::Scenario;

#[derive(Debug)]
pub(crate) struct Verdict<'a> {
    scenario: &'a Scenario,
    run: &'a Run,
    effects: i64,
    booked_more_than_once: usize,
    not_booked: usize,
    wrong_balances: usize,
    total_unchanged: bool,
}

impl<'a> Verdict<'a> {
    /// Compares what Postgres holds with what was sent.
    pub(crate) fn new(scenario: &'a Scenario, run: &'a Run) -> Self {
        let ledger = &run.ledger;
        let expected = scenario.balances();
        let accounts = expected.keys().chain(ledger.balances.keys());
        let mut wrong: Vec<&String> = accounts
            .filter(|account| expected.get(*account) != ledger.balances.get(*account))
            .collect();
        wrong.sort();
        wrong.dedup();
        let is_booked = |id: &String| ledger.bookings.contains_key(id);
        Self {
            scenario,
            run,
            effects: ledger.bookings.values().sum(),
            booked_more_than_once: ledger.bookings.values().filter(|n| **n > 1).count(),
            not_booked: scenario
                .payments
                .iter()
                .filter(|p| !is_booked(&p.id))
                .count(),
            wrong_balances: wrong.len(),
            total_unchanged: expected.values().sum::<i64>()
                == ledger.balances.values().sum::<i64>(),
        }
    }

    /// Whether each payment was booked once, nothing else was, and the dead-letter queue holds exactly
    /// the poison.
    pub(crate) fn is_exactly_once(&self) -> bool {
        self.booked_more_than_once == 0
            && self.not_booked == 0
            && self.effects == i64::try_from(self.scenario.payments.len()).unwrap_or(i64::MAX)
            && self.is_balanced()
            && self.run.good_dead_letters == 0
            && self.run.poison_dead_letters == self.scenario.poison.len()
    }

    fn is_balanced(&self) -> bool {
        self.wrong_balances == 0 && self.total_unchanged
    }

    fn ledger(&self) -> String {
        if self.is_balanced() {
            return "ledger balanced".to_owned();
        }
        let money = if self.total_unchanged {
            ""
        } else {
            ", its total too"
        };
        format!(
            "ledger wrong in {} of {} accounts{money}",
            self.wrong_balances,
            self.run.ledger.balances.len()
        )
    }

    fn table(&self) -> Table {
        let stats = &self.run.stats;
        let mut table = Table::new();
        table.load_style(UTF8_BORDERS_ONLY);
        table.set_header(["", "count", "as told by"]);
        let poison_deliveries = stats.deliveries - self.run.deliveries;
        for (figure, count, source) in [
            (
                "good messages",
                self.scenario.payments.len() as u64,
                "the driver",
            ),
            ("their deliveries", self.run.deliveries, "the queue"),
            (
                "duplicates skipped",
                self.run.duplicates_skipped,
                "the function's log",
            ),
            (
                "failures returned, those of poison included",
                stats.failures_returned,
                "the function's responses",
            ),
            ("deliveries of poison", poison_deliveries, "the queue"),
            ("crashes (SIGKILL in mid-batch)", stats.crashes, "the queue"),
            (
                "poison in the dead-letter queue",
                self.run.poison_dead_letters as u64,
                "the queue",
            ),
            (
                "good messages in it",
                self.run.good_dead_letters as u64,
                "the queue",
            ),
            ("payments not booked", self.not_booked as u64, "Postgres"),
        ] {
            table.add_row([figure, &count.to_string(), source]);
        }
        if let Some(column) = table.column_mut(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

impl fmt::Display for Verdict<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.table())?;
        let (messages, deliveries) = (self.scenario.payments.len(), self.run.deliveries);
        let (effects, ledger) = (self.effects, self.ledger());
        if self.is_exactly_once() {
            return write!(
                f,
                "exactly once: yes ({messages} messages, {deliveries} deliveries, \
                 {effects} effects, {ledger})"
            );
        }
        write!(
            f,
            "exactly once: no ({messages} messages, {deliveries} deliveries, {effects} effects, \
             {} payments booked more than once, {ledger})",
            self.booked_more_than_once
        )
    }
}
