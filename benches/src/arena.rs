//! Where all variants compete: one server that waits for its disk, one network, one set of tables.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lambda_inbox::Schema;
use lambda_inbox_testkit::postgres::Cluster;
use lambda_inbox_testkit::proxy::Proxy;
use sqlx::Connection;
use sqlx::postgres::{PgConnectOptions, PgConnection};

use crate::delivery::Traffic;
use crate::error::BenchError;
use crate::measured::median;

/// So many that two messages rarely want the same one.
pub(crate) const ACCOUNTS: i64 = 100_000;

/// The hand-written loop's inbox is what one writes by hand; ours is made by its migrations. The fill
/// factor leaves room for new versions of a row on its page, as in any table that is updated a lot.
const SCHEMA: &str = "
    CREATE TABLE inbox (
        consumer text NOT NULL,
        message_id text NOT NULL,
        processed_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (message_id, consumer)
    );
    CREATE TABLE account (id bigint PRIMARY KEY, balance bigint NOT NULL) WITH (fillfactor = 50);
    INSERT INTO account SELECT id, 0 FROM generate_series(1, 100000) AS id;";

/// Nothing of the server's own making may fall into a window: no checkpoint, no vacuum.
const SETTINGS: [(&str, &str); 5] = [
    ("shared_buffers", "512MB"),
    ("max_wal_size", "8GB"),
    ("min_wal_size", "1GB"),
    ("checkpoint_timeout", "1d"),
    ("autovacuum", "off"),
];

/// Log segments made beforehand, of 16 MB each. A server that has run for a while re-uses old ones; a new
/// one would write each twice.
const LOG_SEGMENTS: u32 = 32;

const PINGS: usize = 50;

/// Server, network and tables. The server and the proxy stop when this is dropped.
pub(crate) struct Arena {
    pub(crate) traffic: Traffic,
    pub(crate) proxy: Proxy,
    cluster: Cluster,
    /// Not through the proxy, so that it counts nothing of ours.
    admin: PgConnection,
    balance: i64,
    pgbench: Option<PathBuf>,
}

/// What the database holds since [`Arena::clear`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) inbox: i64,
    /// By how much the balances have risen.
    pub(crate) effects: i64,
}

impl Arena {
    pub(crate) async fn open() -> Result<Self, BenchError> {
        let mut builder = Cluster::builder().fsync(true);
        for (name, value) in SETTINGS {
            builder = builder.setting(name, value);
        }
        let cluster = builder.start().await?;
        let options = cluster.options();
        let mut admin = PgConnection::connect_with(&options).await?;
        make_log_segments(&mut admin).await?;
        // After the last checkpoint, so that no later change of these pages logs the whole page.
        for statements in [SCHEMA, "VACUUM ANALYZE account"] {
            sqlx::raw_sql(statements).execute(&mut admin).await?;
        }
        lambda_inbox::migrate(&mut admin, &Schema::default()).await?;
        let pgbench = find_pgbench(&mut admin).await?;
        let proxy = Proxy::start(options.get_host(), options.get_port())
            .await
            .map_err(BenchError::Proxy)?;
        Ok(Self {
            traffic: Traffic::new(),
            proxy,
            cluster,
            admin,
            balance: 0,
            pgbench,
        })
    }

    /// How every variant reaches the server: through the proxy.
    pub(crate) fn options(&self) -> PgConnectOptions {
        self.proxy.options(&self.cluster.options())
    }

    pub(crate) fn pgbench(&self) -> Option<PathBuf> {
        self.pgbench.clone()
    }

    /// The time of a round trip that does nothing, the median of some.
    pub(crate) async fn empty_round_trip(&self) -> Result<Duration, BenchError> {
        let mut connection = PgConnection::connect_with(&self.options()).await?;
        let mut times = Vec::new();
        for _ in 0..PINGS {
            let start = Instant::now();
            connection.ping().await?;
            times.push(start.elapsed().as_secs_f64());
        }
        connection.close().await?;
        Ok(Duration::from_secs_f64(median(&times)))
    }

    /// Where the last checkpoint is in the log: if it moves during a run, the run is not worth much.
    pub(crate) async fn checkpoint(&mut self) -> Result<String, BenchError> {
        let sql = "SELECT checkpoint_lsn::text FROM pg_control_checkpoint()";
        Ok(sqlx::query_scalar(sql).fetch_one(&mut self.admin).await?)
    }

    /// Empties the inboxes and starts to count effects from 0.
    pub(crate) async fn clear(&mut self) -> Result<(), BenchError> {
        sqlx::raw_sql("TRUNCATE inbox, lambda_inbox.inbox")
            .execute(&mut self.admin)
            .await?;
        self.balance = self.sum_of_balances().await?;
        Ok(())
    }

    /// # Errors
    /// [`BenchError::Mismatch`] unless there is one row and one effect for each of `sent` messages.
    pub(crate) async fn expect(&mut self, sent: usize) -> Result<(), BenchError> {
        let rows = self.rows().await?;
        let expected = i64::try_from(sent).unwrap_or(i64::MAX);
        if rows
            == (Rows {
                inbox: expected,
                effects: expected,
            })
        {
            Ok(())
        } else {
            Err(BenchError::Mismatch { sent, rows })
        }
    }

    async fn rows(&mut self) -> Result<Rows, BenchError> {
        let sql = "SELECT (SELECT count(*) FROM inbox) + (SELECT count(*) FROM lambda_inbox.inbox)";
        let inbox = sqlx::query_scalar(sql).fetch_one(&mut self.admin).await?;
        let effects = self.sum_of_balances().await? - self.balance;
        Ok(Rows { inbox, effects })
    }

    async fn sum_of_balances(&mut self) -> Result<i64, BenchError> {
        let sql = "SELECT sum(balance)::bigint FROM account";
        Ok(sqlx::query_scalar(sql).fetch_one(&mut self.admin).await?)
    }
}

async fn make_log_segments(admin: &mut PgConnection) -> Result<(), BenchError> {
    for _ in 0..LOG_SEGMENTS {
        // A segment without content is not left.
        sqlx::raw_sql("SELECT pg_logical_emit_message(false, 'bench', ''); SELECT pg_switch_wal()")
            .execute(&mut *admin)
            .await?;
    }
    sqlx::raw_sql("CHECKPOINT").execute(admin).await?;
    Ok(())
}

/// The server's own, or else the one in PATH; some packages have it apart from the server.
async fn find_pgbench(admin: &mut PgConnection) -> Result<Option<PathBuf>, BenchError> {
    let sql = "SELECT setting FROM pg_config WHERE name = 'BINDIR'";
    let beside: Option<String> = sqlx::query_scalar(sql).fetch_optional(admin).await?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = beside
        .map(PathBuf::from)
        .into_iter()
        .chain(std::env::split_paths(&path));
    let program = Path::new("pgbench").with_extension(std::env::consts::EXE_EXTENSION);
    Ok(folders
        .map(|folder| folder.join(&program))
        .find(|path| path.is_file()))
}
