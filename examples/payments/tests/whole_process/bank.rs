//! A bank with one till and a hundred shops, and a function that pays the shops from the till.

use std::collections::BTreeMap;
use std::time::Duration;

use lambda_inbox_testkit::consumer::Invocation;
use lambda_inbox_testkit::event::Record;
use lambda_inbox_testkit::postgres::TestDatabase;
use lambda_inbox_testkit::proxy::Proxy;
use lambda_inbox_testkit::runtime::{LocalRuntime, LocalRuntimeBuilder, Sink};
use serde_json::{Value, json};
use sqlx::{ConnectOptions, PgConnection};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_payments");

/// In cents; enough for every test.
pub(crate) const OPENING_BALANCE: i64 = 1_000_000;
/// Of each payment, in cents.
pub(crate) const AMOUNT: i64 = 100;

const POLL_INTERVAL: Duration = Duration::from_millis(5);

pub(crate) struct Bank {
    pub(crate) database: TestDatabase,
    /// Between the function and the server; the tests' own connection goes past it.
    pub(crate) proxy: Proxy,
    pub(crate) connection: PgConnection,
}

impl Bank {
    pub(crate) async fn open() -> Self {
        Self::with(TestDatabase::create().await.unwrap()).await
    }

    /// In a database of the test's own choice.
    pub(crate) async fn with(database: TestDatabase) -> Self {
        let mut connection = database.connect().await.unwrap();
        let schema = lambda_inbox::Schema::default();
        lambda_inbox::migrate(&mut connection, &schema)
            .await
            .unwrap();
        sqlx::raw_sql(include_str!("../../schema.sql"))
            .execute(&mut connection)
            .await
            .unwrap();
        sqlx::query(
            "INSERT INTO account (id, balance) SELECT 'till', $1 \
             UNION ALL SELECT 'shop-' || n, 0 FROM generate_series(0, 99) AS n",
        )
        .bind(OPENING_BALANCE)
        .execute(&mut connection)
        .await
        .unwrap();
        let options = database.options();
        let proxy = Proxy::start(options.get_host(), options.get_port())
            .await
            .unwrap();
        Self {
            database,
            proxy,
            connection,
        }
    }

    /// The real binary, with the proxy between it and the database.
    pub(crate) fn function(&self) -> LocalRuntimeBuilder {
        let url = self.proxy.options(&self.database.options()).to_url_lossy();
        LocalRuntime::builder(BINARY)
            .function_name("payments")
            .env("DATABASE_URL", url.as_str())
            // The server may take longer than the default to notice that a killed client is gone.
            .env("LAMBDA_INBOX_CLAIM_WAIT_MS", "10000")
            .stdout(Sink::Null)
            .stderr(Sink::Null)
    }

    /// How often each payment was booked.
    pub(crate) async fn booked(&mut self) -> BTreeMap<String, i64> {
        sqlx::query_as("SELECT payment_id, count(*) FROM payment GROUP BY payment_id")
            .fetch_all(&mut self.connection)
            .await
            .unwrap()
            .into_iter()
            .collect()
    }

    pub(crate) async fn wait_until_booked(&mut self, count: usize) {
        while self.booked().await.len() < count {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Ids that have a key but no booking, or a booking but no key; looked up in one snapshot.
    pub(crate) async fn halves(&mut self) -> Vec<String> {
        sqlx::query_scalar(
            "SELECT coalesce(message_id, payment_id) FROM lambda_inbox.inbox \
             FULL JOIN payment ON message_id = payment_id \
             WHERE message_id IS NULL OR payment_id IS NULL",
        )
        .fetch_all(&mut self.connection)
        .await
        .unwrap()
    }

    /// Asserts that these payments and no others were booked, once each, and that the balances say so.
    pub(crate) async fn assert_booked_once(&mut self, ids: impl IntoIterator<Item = usize>) {
        let expected: BTreeMap<String, i64> = ids.into_iter().map(|n| (id(n), 1)).collect();
        assert_eq!(self.booked().await, expected);
        assert_eq!(self.halves().await, [""; 0]);
        let moved = AMOUNT * i64::try_from(expected.len()).unwrap();
        let balances: (i64, i64) = sqlx::query_as(
            "SELECT (SELECT balance FROM account WHERE id = 'till'), \
             (SELECT sum(balance)::bigint FROM account WHERE id <> 'till')",
        )
        .fetch_one(&mut self.connection)
        .await
        .unwrap();
        assert_eq!(balances, (OPENING_BALANCE - moved, moved));
    }
}

/// The id of both the payment and its message.
pub(crate) fn id(n: usize) -> String {
    format!("payment-{n}")
}

/// Its name occurs in what the handler sends for a payment, and in nothing else.
pub(crate) fn shop(n: usize) -> String {
    format!("shop-{}", n % 100)
}

pub(crate) fn payment(n: usize) -> Record {
    payment_with(n, json!({}))
}

/// A payment with one more field, which the function does not know.
pub(crate) fn payment_with(n: usize, note: Value) -> Record {
    let body = json!({
        "payment_id": id(n), "from": "till", "to": shop(n), "amount": AMOUNT, "note": note,
    });
    Record::new(body.to_string()).message_id(id(n))
}

/// The ids that a response reports.
pub(crate) fn failures(invocation: Invocation) -> Vec<String> {
    let Invocation::Response(response) = invocation else {
        panic!("a response was expected, not {invocation:?}");
    };
    let response: Value = serde_json::from_slice(&response).unwrap();
    response["batchItemFailures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|failure| failure["itemIdentifier"].as_str().unwrap().to_owned())
        .collect()
}

/// Nothing was reported.
pub(crate) const NONE: [&str; 0] = [];
