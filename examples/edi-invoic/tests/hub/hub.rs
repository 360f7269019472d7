//! The hub with its database, and what it makes of a delivery.

use lambda_inbox_testkit::consumer::Invocation;
use lambda_inbox_testkit::event::{Record, event};
use lambda_inbox_testkit::postgres::TestDatabase;
use lambda_inbox_testkit::runtime::{LocalRuntime, Sink};
use serde_json::Value;
use sqlx::PgConnection;
use tempfile::NamedTempFile;

pub(crate) struct Hub {
    pub(crate) connection: PgConnection,
    pub(crate) function: LocalRuntime,
    log: NamedTempFile,
    log_read: usize,
    // Last, so that it is dropped when nothing uses it any more.
    _database: TestDatabase,
}

/// What became of a record.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) outcome: String,
    /// Empty where it was processed.
    pub(crate) reason: String,
}

/// Sender, receiver, control reference, document number, amount, currency.
pub(crate) type Row = (String, String, String, String, String, String);

impl Hub {
    /// As it runs in production.
    pub(crate) async fn open() -> Self {
        Self::open_with(&[]).await
    }

    pub(crate) async fn open_with(variables: &[(&str, &str)]) -> Self {
        let database = TestDatabase::create().await.unwrap();
        let mut connection = database.connect().await.unwrap();
        lambda_inbox::migrate(&mut connection, &lambda_inbox::Schema::default())
            .await
            .unwrap();
        sqlx::raw_sql(include_str!("../../schema.sql"))
            .execute(&mut connection)
            .await
            .unwrap();
        let log = NamedTempFile::new().unwrap();
        let sink = || Sink::File(log.path().to_owned());
        let mut builder = LocalRuntime::builder(env!("CARGO_BIN_EXE_edi-invoic"))
            .function_name("edi-invoic")
            .env("DATABASE_URL", database.url())
            // One line for each record, which tells its outcome.
            .env("AWS_LAMBDA_LOG_LEVEL", "info,lambda_inbox=debug")
            .stdout(sink())
            .stderr(sink());
        for (name, value) in variables {
            builder = builder.env(name, value);
        }
        Self {
            function: builder.start().await.unwrap(),
            connection,
            log,
            log_read: 0,
            _database: database,
        }
    }

    /// Delivers the body once, in a message of its own.
    pub(crate) async fn send(&mut self, body: &str) -> Verdict {
        let mut verdicts = self.deliver([Record::new(body)]).await;
        verdicts.remove(0)
    }

    /// Delivers a batch and returns its verdicts in order, having checked that the response reports
    /// exactly what did not commit.
    pub(crate) async fn deliver(
        &mut self,
        records: impl IntoIterator<Item = Record>,
    ) -> Vec<Verdict> {
        let records: Vec<Record> = records.into_iter().collect();
        let response = self.function.invoke(&event(records.clone())).await;
        let reported = failures(&response);
        let log = self.new_log();
        let mut verdicts = Vec::new();
        for record in &records {
            let verdict = verdict(&log, record.id());
            let committed = ["processed", "duplicate"].contains(&verdict.outcome.as_str());
            assert_eq!(
                reported.contains(&record.id().to_owned()),
                !committed,
                "{verdict:?}"
            );
            verdicts.push(verdict);
        }
        verdicts
    }

    /// Everything that was booked, in order.
    pub(crate) async fn rows(&mut self) -> Vec<Row> {
        sqlx::query_as(
            "SELECT sender, receiver, control_reference, document_number, amount::text, currency \
             FROM accounting_entry ORDER BY number",
        )
        .fetch_all(&mut self.connection)
        .await
        .unwrap()
    }

    /// The document numbers of everything that was booked, in order.
    pub(crate) async fn documents(&mut self) -> Vec<String> {
        self.rows().await.into_iter().map(|row| row.3).collect()
    }

    /// Empties the tables, for the next case.
    pub(crate) async fn clear(&mut self) {
        sqlx::raw_sql("TRUNCATE accounting_entry, lambda_inbox.inbox")
            .execute(&mut self.connection)
            .await
            .unwrap();
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap()
    }

    /// Complete when a response is there: the process writes it itself.
    fn new_log(&mut self) -> String {
        let log = self.log().split_off(self.log_read);
        self.log_read += log.len();
        log
    }
}

fn failures(invocation: &Invocation) -> Vec<String> {
    let Invocation::Response(response) = invocation else {
        panic!("a response was expected, not {invocation:?}");
    };
    let response: Value = serde_json::from_slice(response).unwrap();
    let failures = response["batchItemFailures"].as_array().unwrap();
    failures
        .iter()
        .map(|failure| failure["itemIdentifier"].as_str().unwrap().to_owned())
        .collect()
}

fn verdict(log: &str, message_id: &str) -> Verdict {
    let lines = log.lines().map(|line| serde_json::from_str(line).unwrap());
    let fields = lines.map(|line: Value| line["fields"].clone());
    let mut own = fields.filter(|it| it["message_id"] == message_id && it["outcome"].is_string());
    let fields = own.next().unwrap();
    let text = |name: &str| fields[name].as_str().unwrap_or_default().to_owned();
    Verdict {
        outcome: text("outcome"),
        reason: text("reason"),
    }
}
