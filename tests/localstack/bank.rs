//! A bank with one till and ten shops, and what payments has made of it.

use lambda_inbox_testkit::postgres::TestDatabase;
use lambda_inbox_tests::{Emulator, Function, FunctionBuilder, eventually};
use serde_json::json;
use sqlx::PgConnection;
use std::collections::BTreeMap;

/// In cents; enough for every test.
pub(crate) const OPENING_BALANCE: i64 = 1_000_000;
/// Of each payment, in cents.
pub(crate) const AMOUNT: i64 = 100;

pub(crate) struct Bank {
    pub(crate) connection: PgConnection,
    // Last, so that it is dropped when nothing uses it any more.
    pub(crate) database: TestDatabase,
}

impl Bank {
    pub(crate) async fn open() -> Self {
        let (database, mut connection) =
            database(include_str!("../../examples/payments/schema.sql")).await;
        sqlx::query(
            "INSERT INTO account (id, balance) SELECT 'till', $1 \
             UNION ALL SELECT 'shop-' || n, 0 FROM generate_series(0, 9) AS n",
        )
        .bind(OPENING_BALANCE)
        .execute(&mut connection)
        .await
        .unwrap();
        Self {
            connection,
            database,
        }
    }

    pub(crate) fn function(&self, emulator: &Emulator) -> FunctionBuilder {
        Function::builder(emulator, "payments").env("DATABASE_URL", self.database.url())
    }

    /// Returns when these payments have been booked, and asserts that each was booked once, that no other
    /// was, and that every balance says so.
    pub(crate) async fn assert_booked_once(&mut self, numbers: impl IntoIterator<Item = usize>) {
        let expected: BTreeMap<String, i64> =
            numbers.into_iter().map(|number| (id(number), 1)).collect();
        eventually("payments booked", expected.clone(), async || {
            self.booked().await
        })
        .await;
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

    /// How often each payment was booked.
    pub(crate) async fn booked(&mut self) -> BTreeMap<String, i64> {
        sqlx::query_as("SELECT payment_id, count(*) FROM payment GROUP BY payment_id")
            .fetch_all(&mut self.connection)
            .await
            .unwrap()
            .into_iter()
            .collect()
    }

    /// Returns when a statement of the function's waits for a lock.
    pub(crate) async fn wait_until_a_handler_waits(&mut self) {
        eventually("statements that wait for a lock", true, async || {
            let waiting: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM pg_stat_activity \
                 WHERE datname = current_database() AND wait_event_type = 'Lock'",
            )
            .fetch_one(&mut self.connection)
            .await
            .unwrap();
            waiting > 0
        })
        .await;
    }
}

/// A database with the inbox and an example's own tables.
pub(crate) async fn database(schema: &'static str) -> (TestDatabase, PgConnection) {
    let database = TestDatabase::create().await.unwrap();
    let mut connection = database.connect().await.unwrap();
    lambda_inbox::migrate(&mut connection, &lambda_inbox::Schema::default())
        .await
        .unwrap();
    sqlx::raw_sql(schema)
        .execute(&mut connection)
        .await
        .unwrap();
    (database, connection)
}

pub(crate) fn id(number: usize) -> String {
    format!("payment-{number}")
}

/// The body of a payment to one of the shops.
pub(crate) fn payment(number: usize) -> String {
    payment_to(number, &format!("shop-{}", number % 10))
}

pub(crate) fn payment_to(number: usize, account: &str) -> String {
    json!({ "payment_id": id(number), "from": "till", "to": account, "amount": AMOUNT }).to_string()
}
