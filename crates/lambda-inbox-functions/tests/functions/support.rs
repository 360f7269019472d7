//! A database, the two functions, and what they answer.

use lambda_inbox_store::{Partitions, Schema, create_time_ordered, migrate};
use lambda_inbox_testkit::consumer::Invocation;
use lambda_inbox_testkit::postgres::TestDatabase;
use lambda_inbox_testkit::runtime::{LocalRuntime, LocalRuntimeBuilder, Sink};
use serde_json::Value;
use sqlx::{AssertSqlSafe, PgConnection};

const PRUNE: &str = env!("CARGO_BIN_EXE_lambda-inbox-prune");
const MIGRATE: &str = env!("CARGO_BIN_EXE_lambda-inbox-migrate");

pub(crate) struct World {
    pub(crate) database: TestDatabase,
    pub(crate) connection: PgConnection,
}

impl World {
    /// Without tables.
    pub(crate) async fn empty() -> Self {
        let database = TestDatabase::create().await.unwrap();
        let connection = database.connect().await.unwrap();
        Self {
            database,
            connection,
        }
    }

    pub(crate) async fn migrated() -> Self {
        let mut world = Self::empty().await;
        migrate(&mut world.connection, &Schema::default())
            .await
            .unwrap();
        world
    }

    pub(crate) async fn with_partitions() -> Self {
        let mut world = Self::migrated().await;
        create_time_ordered(&mut world.connection, &Schema::default(), Partitions::Daily)
            .await
            .unwrap();
        world
    }

    pub(crate) fn prune_function(&self) -> LocalRuntimeBuilder {
        function(PRUNE, &self.database.url())
    }

    pub(crate) fn migrate_function(&self) -> LocalRuntimeBuilder {
        function(MIGRATE, &self.database.url())
    }

    /// Keys that were processed so many days ago.
    pub(crate) async fn keys(&mut self, consumer: &str, count: i32, days: f64) {
        sqlx::query(
            "INSERT INTO lambda_inbox.inbox (consumer, source, message_id, processed_at, fingerprint) \
             SELECT $1, 'sqs', gen_random_uuid()::text, now() - interval '24 hours' * $2, '\\x00' \
             FROM generate_series(1, $3)",
        )
        .bind(consumer)
        .bind(days)
        .bind(count)
        .execute(&mut self.connection)
        .await
        .unwrap();
    }

    pub(crate) async fn run(&mut self, sql: &'static str) {
        sqlx::raw_sql(sql)
            .execute(&mut self.connection)
            .await
            .unwrap();
    }

    pub(crate) async fn count(&mut self, table: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        sqlx::query_scalar(AssertSqlSafe(sql))
            .fetch_one(&mut self.connection)
            .await
            .unwrap()
    }
}

/// The migrate function with another way to the database.
pub(crate) fn migrate_function_at(url: &str) -> LocalRuntimeBuilder {
    function(MIGRATE, url)
}

fn function(binary: &str, url: &str) -> LocalRuntimeBuilder {
    LocalRuntime::builder(binary)
        .env("DATABASE_URL", url)
        .stdout(Sink::Null)
        .stderr(Sink::Null)
}

pub(crate) fn answer(invocation: Invocation) -> Value {
    match invocation {
        Invocation::Response(response) => serde_json::from_slice(&response).unwrap(),
        Invocation::FunctionError(_) | Invocation::TimedOut | Invocation::Crashed => {
            panic!("an answer was expected, not {invocation:?}")
        }
    }
}

pub(crate) fn error(invocation: Invocation) -> String {
    match invocation {
        Invocation::FunctionError(text) => text,
        Invocation::Response(_) | Invocation::TimedOut | Invocation::Crashed => {
            panic!("an error was expected, not {invocation:?}")
        }
    }
}
