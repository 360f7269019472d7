//! A server with an inbox of a given size.

use std::num::NonZeroUsize;

use lambda_inbox_store::{
    Consumer, Layout, Partitions, Profile, Schema, Store, Table, create_time_ordered, migrate,
};
use lambda_inbox_testkit::postgres::Cluster;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};

use crate::error::BenchError;

/// No checkpoint and no vacuum but those that are asked for. Full pages are logged, as on any server.
const SETTINGS: [(&str, &str); 6] = [
    ("shared_buffers", "1GB"),
    ("maintenance_work_mem", "512MB"),
    ("max_wal_size", "32GB"),
    ("checkpoint_timeout", "1d"),
    ("autovacuum", "off"),
    ("wal_compression", "off"),
];

/// Whose keys are measured.
pub(super) const CONSUMER: &str = "bench";

pub(super) struct Filled {
    cluster: Cluster,
    pub(super) admin: PgConnection,
}

impl Filled {
    pub(super) async fn open() -> Result<Self, BenchError> {
        let mut builder = Cluster::builder().fsync(true);
        for (name, value) in SETTINGS {
            builder = builder.setting(name, value);
        }
        let cluster = builder.start().await?;
        let mut admin = PgConnection::connect_with(&cluster.options()).await?;
        migrate(&mut admin, &Schema::default()).await?;
        create_time_ordered(&mut admin, &Schema::default(), Partitions::None).await?;
        Ok(Self { cluster, admin })
    }

    pub(super) fn store(&self, layout: Layout) -> Result<(Store, Consumer), BenchError> {
        let table = Table {
            schema: Schema::default(),
            layout,
            profile: Profile::Direct,
        };
        let store = Store::new(self.cluster.options(), table, NonZeroUsize::MIN);
        Ok((store, Consumer::new(CONSUMER)?))
    }

    pub(super) async fn connect(&self) -> Result<PgConnection, BenchError> {
        Ok(PgConnection::connect_with(&self.cluster.options()).await?)
    }

    pub(super) async fn run(&mut self, sql: &str) -> Result<(), BenchError> {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
            .execute(&mut self.admin)
            .await?;
        Ok(())
    }

    /// The keys of two weeks, in the order in which they would have come. The indexes are built when the
    /// rows are there, which is much faster and makes them as dense as a year of claims would.
    pub(super) async fn fill(&mut self, layout: Layout, rows: u64) -> Result<(), BenchError> {
        let (table, key) = if layout == Layout::TimeOrdered {
            ("inbox_by_time", "sent_at, consumer, source, message_id")
        } else {
            ("inbox", "consumer, source, message_id")
        };
        self.run(&format!(
            "TRUNCATE lambda_inbox.inbox, lambda_inbox.inbox_by_time; \
             ALTER TABLE lambda_inbox.{table} DROP CONSTRAINT {table}_pkey; \
             DROP INDEX IF EXISTS lambda_inbox.inbox_processed_at"
        ))
        .await?;
        self.run(&insert(table, rows, "14 days", "0 days")).await?;
        self.run(&format!(
            "ALTER TABLE lambda_inbox.{table} ADD CONSTRAINT {table}_pkey PRIMARY KEY ({key}); \
             CREATE INDEX inbox_processed_at ON lambda_inbox.inbox (consumer, processed_at)"
        ))
        .await?;
        self.run(&format!("VACUUM ANALYZE lambda_inbox.{table}"))
            .await?;
        self.run("CHECKPOINT").await
    }

    /// Where the server's log ends, in bytes.
    pub(super) async fn log_position(&mut self) -> Result<f64, BenchError> {
        let sql = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8";
        Ok(sqlx::query_scalar(sql).fetch_one(&mut self.admin).await?)
    }
}

/// Rows processed between two times ago.
pub(super) fn insert(table: &str, rows: u64, from: &str, to: &str) -> String {
    format!(
        "INSERT INTO lambda_inbox.{table} \
           (consumer, source, message_id, sent_at, processed_at, fingerprint) \
         SELECT '{CONSUMER}', 'sqs', gen_random_uuid()::text, time, time, \
           sha256(n::text::bytea) || '\\x01' \
         FROM generate_series(1, {rows}) AS n, LATERAL (\
           SELECT now() - interval '{from}' + (interval '{from}' - interval '{to}') * n / {}) AS t (time)",
        rows.max(1)
    )
}
