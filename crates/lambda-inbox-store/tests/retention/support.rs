//! A migrated database, keys of any age, and a prune.

use lambda_inbox_store::{
    Consumer, Partitions, PruneError, PruneReport, Pruner, PrunerBuilder, Retention, Schema,
    create_time_ordered, migrate,
};
use lambda_inbox_testkit::postgres::TestDatabase;
use sqlx::{AssertSqlSafe, PgConnection};
use std::time::Duration;
use tokio::time::Instant;

pub(crate) const HOUR: f64 = 3600.0;
pub(crate) const DAY: f64 = 24.0 * HOUR;

pub(crate) struct World {
    pub(crate) database: TestDatabase,
    pub(crate) connection: PgConnection,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::on(TestDatabase::create().await.unwrap()).await
    }

    pub(crate) async fn on(database: TestDatabase) -> Self {
        let mut connection = database.connect().await.unwrap();
        migrate(&mut connection, &Schema::default()).await.unwrap();
        Self {
            database,
            connection,
        }
    }

    pub(crate) async fn time_ordered(partitions: Partitions) -> Self {
        let mut world = Self::new().await;
        create_time_ordered(&mut world.connection, &Schema::default(), partitions)
            .await
            .unwrap();
        world
    }

    /// Keys in the keyed table, processed `age` seconds ago.
    pub(crate) async fn keys(&mut self, consumer: &str, count: i32, age: f64) {
        self.insert("inbox", consumer, count, age, age).await;
    }

    /// Keys in the time-ordered table, sent and processed so many seconds ago.
    pub(crate) async fn sent(&mut self, consumer: &str, count: i32, sent: f64, processed: f64) {
        self.insert("inbox_by_time", consumer, count, sent, processed)
            .await;
    }

    async fn insert(&mut self, table: &str, consumer: &str, count: i32, sent: f64, done: f64) {
        let sql = format!(
            "INSERT INTO lambda_inbox.{table} \
             (consumer, source, message_id, sent_at, processed_at, fingerprint) \
             SELECT $1, 'sqs', gen_random_uuid()::text, now() - make_interval(secs => $2), \
               now() - make_interval(secs => $3), '\\x00' FROM generate_series(1, $4)"
        );
        sqlx::query(AssertSqlSafe(sql))
            .bind(consumer)
            .bind(sent)
            .bind(done)
            .bind(count)
            .execute(&mut self.connection)
            .await
            .unwrap();
    }

    pub(crate) async fn run(&mut self, sql: impl Into<String>) {
        sqlx::raw_sql(AssertSqlSafe(sql.into()))
            .execute(&mut self.connection)
            .await
            .unwrap();
    }

    pub(crate) async fn count(&mut self, table: &str) -> i64 {
        self.number(format!("SELECT count(*) FROM lambda_inbox.{table}"))
            .await
    }

    pub(crate) async fn number(&mut self, sql: impl Into<String>) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql.into()))
            .fetch_one(&mut self.connection)
            .await
            .unwrap()
    }

    pub(crate) async fn texts(&mut self, sql: impl Into<String>) -> Vec<String> {
        sqlx::query_scalar(AssertSqlSafe(sql.into()))
            .fetch_all(&mut self.connection)
            .await
            .unwrap()
    }

    /// Prunes on a connection of its own.
    pub(crate) async fn prune(&self, builder: PrunerBuilder) -> PruneReport {
        self.try_prune(builder).await.unwrap()
    }

    pub(crate) async fn try_prune(
        &self,
        builder: PrunerBuilder,
    ) -> Result<PruneReport, PruneError> {
        let mut connection = self.database.connect().await.unwrap();
        let pruner = builder.pause(Duration::ZERO).build().unwrap();
        pruner.run(&mut connection, in_a_minute()).await
    }
}

pub(crate) fn in_a_minute() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

pub(crate) fn days(days: u64) -> Duration {
    Duration::from_secs(days * 24 * 60 * 60)
}

/// Fourteen days for everyone.
pub(crate) fn usual() -> PrunerBuilder {
    keeping(Retention::default())
}

pub(crate) fn keeping(retention: Retention) -> PrunerBuilder {
    Pruner::builder(Schema::default(), retention)
}

pub(crate) fn consumer(name: &str) -> Consumer {
    Consumer::new(name).unwrap()
}
