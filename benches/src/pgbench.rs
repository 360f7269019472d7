//! Postgres' own benchmark with the loop's SQL: what the server gives to a client written in C.

use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use sqlx::ConnectOptions;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::arena::{ACCOUNTS, Arena};
use crate::error::BenchError;
use crate::window::Rate;

/// The number of transactions in two runs; the difference is free of what connecting takes.
const FEW: u32 = 10;
const MANY: u32 = 60;

pub(crate) struct Pgbench {
    program: PathBuf,
    clients: u32,
}

impl Pgbench {
    /// # Errors
    /// [`BenchError::NoPgbench`].
    pub(crate) fn new(arena: &Arena, clients: u32) -> Result<Self, BenchError> {
        let program = arena.pgbench().ok_or(BenchError::NoPgbench)?;
        Ok(Self { program, clients })
    }

    /// Runs for `length`, rounded up to whole seconds, and counts the rows.
    pub(crate) async fn window(
        &self,
        arena: &mut Arena,
        length: Duration,
    ) -> Result<Rate, BenchError> {
        arena.clear().await?;
        let seconds = length.as_secs() + u64::from(length.subsec_nanos() > 0);
        let seconds = seconds.to_string();
        let report = self.run(arena, self.clients, ["-T", &seconds]).await?;
        arena.expect(report.transactions).await?;
        Ok(report.rate())
    }

    /// Round trips per transaction, counted on the wire.
    pub(crate) async fn round_trips(&self, arena: &mut Arena) -> Result<f64, BenchError> {
        arena.clear().await?;
        let mut counts = [0; 2];
        for (count, transactions) in counts.iter_mut().zip([FEW, MANY]) {
            arena.proxy.reset_round_trips();
            self.run(arena, 1, ["-t", &transactions.to_string()])
                .await?;
            *count = arena.proxy.round_trips();
        }
        arena.expect((FEW + MANY) as usize).await?;
        let [few, many] = counts.map(|count| count as f64);
        Ok((many - few) / f64::from(MANY - FEW))
    }

    async fn run(
        &self,
        arena: &Arena,
        clients: u32,
        length: [&str; 2],
    ) -> Result<Report, BenchError> {
        let mut command = Command::new(&self.program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") {
                command.env_remove(name);
            }
        }
        let mut child = command
            // A name with "://" in it is an address. Here and not as an argument, which everybody can read.
            .env("PGDATABASE", address(arena))
            .args([
                "-n",
                "-M",
                "prepared",
                "-f",
                "-",
                "-c",
                &clients.to_string(),
            ])
            .args(length)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(BenchError::PgbenchIo)?;
        if let Some(mut script) = child.stdin.take() {
            let written = script.write_all(script_text().as_bytes()).await;
            written.map_err(BenchError::PgbenchIo)?;
        }
        let output = child.wait_with_output().await;
        Report::of(&output.map_err(BenchError::PgbenchIo)?)
    }
}

fn script_text() -> String {
    format!(
        "\\set account random(1, {ACCOUNTS})
        BEGIN;
        INSERT INTO inbox (consumer, message_id) VALUES ('bench', gen_random_uuid()::text)
            ON CONFLICT DO NOTHING;
        UPDATE account SET balance = balance + 1 WHERE id = :account;
        COMMIT;"
    )
}

/// The server behind the proxy, for libpq, which refuses parameters that it does not know.
fn address(arena: &Arena) -> String {
    let mut url = arena.options().to_url_lossy();
    url.set_query(Some("sslmode=disable"));
    url.to_string()
}

/// What pgbench says of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Report {
    transactions: usize,
    /// Transactions per second, without the time that connecting took.
    per_second: f64,
}

impl Report {
    fn of(output: &Output) -> Result<Self, BenchError> {
        if !output.status.success() {
            return Err(BenchError::Pgbench {
                status: output.status,
                stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            });
        }
        Self::parse(&String::from_utf8_lossy(&output.stdout))
    }

    /// Reads the report of version 13 or later.
    fn parse(report: &str) -> Result<Self, BenchError> {
        let missing = |what| BenchError::PgbenchReport {
            what,
            report: report.to_owned(),
        };
        let transactions = after(report, "number of transactions actually processed: ")
            // Of a run of so many transactions, "50/50".
            .find_map(|count| count.split('/').next()?.trim().parse().ok())
            .ok_or_else(|| missing("number of transactions"))?;
        let per_second = after(report, "tps = ")
            .filter(|rate| rate.contains("without initial") || rate.contains("excluding"))
            .find_map(|rate| rate.split_whitespace().next()?.parse().ok())
            .ok_or_else(|| missing("rate"))?;
        Ok(Self {
            transactions,
            per_second,
        })
    }

    fn rate(self) -> Rate {
        Rate {
            messages: self.transactions,
            time: Duration::from_secs_f64(self.transactions as f64 / self.per_second),
        }
    }
}

/// What follows `start` on the lines that begin with it.
fn after<'a>(report: &'a str, start: &'static str) -> impl Iterator<Item = &'a str> {
    report
        .lines()
        .filter_map(move |line| line.strip_prefix(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reports_of_old_and_new_versions_are_understood() {
        let cases = [
            (
                "number of transactions actually processed: 193\n\
                 tps = 189.1 (including connections establishing)\n\
                 tps = 193.5 (excluding connections establishing)\n",
                193,
                193.5,
            ),
            (
                "number of transactions actually processed: 50/50\n\
                 number of failed transactions: 0 (0.000%)\n\
                 latency average = 5.1 ms\ninitial connection time = 9.2 ms\n\
                 tps = 195.1 (without initial connection time)\n",
                50,
                195.1,
            ),
        ];
        for (text, transactions, per_second) in cases {
            let expected = Report {
                transactions,
                per_second,
            };
            assert_eq!(Report::parse(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn a_report_without_a_rate_is_an_error() {
        let text = "number of transactions actually processed: 0\n";
        let error = Report::parse(text).unwrap_err();
        assert!(error.to_string().contains("no rate"), "{error}");
    }
}
