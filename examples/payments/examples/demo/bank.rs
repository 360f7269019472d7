//! The bank's tables in Postgres: opened before the run, read out after it.

use std::collections::BTreeMap;

use lambda_inbox::Schema;
use lambda_inbox_testkit::postgres::{PostgresError, TestDatabase};
use sqlx::PgConnection;

use crate::scenario::{LATE_ACCOUNT, Scenario};

#[derive(Debug)]
pub(crate) struct Bank {
    database: TestDatabase,
    connection: PgConnection,
    opening_balance: i64,
}

/// What Postgres holds.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// How often each payment was booked.
    pub(crate) bookings: BTreeMap<String, i64>,
    /// In cents.
    pub(crate) balances: BTreeMap<String, i64>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum BankError {
    #[error("no database")]
    Postgres(#[from] PostgresError),
    #[error("the inbox's tables cannot be made")]
    Migrate(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the bank's tables cannot be used")]
    Sql(#[from] sqlx::Error),
}

impl Bank {
    pub(crate) async fn open(scenario: &Scenario) -> Result<Self, BankError> {
        let database = TestDatabase::create().await?;
        let mut connection = database.connect().await?;
        lambda_inbox::migrate(&mut connection, &Schema::default())
            .await
            .map_err(|error| BankError::Migrate(error.into()))?;
        sqlx::raw_sql(include_str!("../../schema.sql"))
            .execute(&mut connection)
            .await?;
        let mut bank = Self {
            database,
            connection,
            opening_balance: scenario.opening_balance(),
        };
        bank.open_accounts(&Scenario::accounts()).await?;
        Ok(bank)
    }

    pub(crate) fn url(&self) -> String {
        self.database.url()
    }

    /// Another connection to the same database.
    pub(crate) async fn connect(&self) -> Result<PgConnection, BankError> {
        Ok(self.database.connect().await?)
    }

    pub(crate) async fn open_late_account(&mut self) -> Result<(), BankError> {
        self.open_accounts(&[LATE_ACCOUNT.to_owned()]).await
    }

    pub(crate) async fn ledger(&mut self) -> Result<Ledger, BankError> {
        let bookings: Vec<(String, i64)> =
            sqlx::query_as("SELECT payment_id, count(*) FROM payment GROUP BY payment_id")
                .fetch_all(&mut self.connection)
                .await?;
        let balances: Vec<(String, i64)> = sqlx::query_as("SELECT id, balance FROM account")
            .fetch_all(&mut self.connection)
            .await?;
        Ok(Ledger {
            bookings: bookings.into_iter().collect(),
            balances: balances.into_iter().collect(),
        })
    }

    /// Drops the database.
    pub(crate) async fn close(self) -> Result<(), BankError> {
        drop(self.connection);
        Ok(self.database.drop_now().await?)
    }

    async fn open_accounts(&mut self, ids: &[String]) -> Result<(), BankError> {
        sqlx::query("INSERT INTO account (id, balance) SELECT id, $2 FROM unnest($1) AS id")
            .bind(ids)
            .bind(self.opening_balance)
            .execute(&mut self.connection)
            .await?;
        Ok(())
    }
}

/// How many bookings there are now.
pub(crate) async fn count_bookings(connection: &mut PgConnection) -> Result<usize, sqlx::Error> {
    let count: i64 = sqlx::query_scalar("SELECT count(*) FROM payment")
        .fetch_one(connection)
        .await?;
    Ok(usize::try_from(count).unwrap_or(0))
}
