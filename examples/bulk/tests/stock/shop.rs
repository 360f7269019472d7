//! The database of a function, and what it shows.

use std::collections::BTreeMap;
use std::time::Duration;

use lambda_inbox_testkit::consumer::Invocation;
use lambda_inbox_testkit::postgres::TestDatabase;
use lambda_inbox_testkit::proxy::Proxy;
use lambda_inbox_testkit::runtime::{LocalRuntime, Sink};
use serde_json::Value;
use sqlx::{ConnectOptions, PgConnection};

use crate::sale::{ITEMS, id, item, quantity};

const TIMEOUT: Duration = Duration::from_secs(60);
/// How long a claim waits for another delivery.
pub(crate) const CLAIM_WAIT: Duration = Duration::from_millis(200);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
const INITIAL_STOCK: i64 = 1_000;

/// The same consumer in two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Bulk,
    Statement,
}

impl Function {
    pub(crate) const BOTH: [Self; 2] = [Self::Bulk, Self::Statement];

    fn binary(self) -> &'static str {
        match self {
            Self::Bulk => env!("CARGO_BIN_EXE_stock-bulk"),
            Self::Statement => env!("CARGO_BIN_EXE_stock-statement"),
        }
    }
}

pub(crate) struct Shop {
    /// Past the proxy.
    pub(crate) connection: PgConnection,
    /// Between the function and the server.
    pub(crate) proxy: Proxy,
    // Last, so that it is dropped when nothing uses it any more.
    database: TestDatabase,
}

impl Shop {
    /// As `function` needs it.
    pub(crate) async fn open(function: Function) -> Self {
        let database = TestDatabase::create().await.unwrap();
        let mut connection = database.connect().await.unwrap();
        lambda_inbox::migrate(&mut connection, &lambda_inbox::Schema::default())
            .await
            .unwrap();
        let options = database.options();
        let proxy = Proxy::start(options.get_host(), options.get_port())
            .await
            .unwrap();
        let mut shop = Self {
            connection,
            proxy,
            database,
        };
        shop.apply(include_str!("../../schema.sql")).await;
        if function == Function::Statement {
            shop.add_trigger().await;
        }
        for n in 0..ITEMS {
            sqlx::query("INSERT INTO stock VALUES ($1, $2)")
                .bind(item(n))
                .bind(INITIAL_STOCK)
                .execute(&mut shop.connection)
                .await
                .unwrap();
        }
        shop
    }

    /// What [`Function::Statement`] needs more than the other.
    pub(crate) async fn add_trigger(&mut self) {
        self.apply(include_str!("../../trigger.sql")).await;
    }

    /// Starts the real binary.
    pub(crate) async fn start(&self, function: Function) -> LocalRuntime {
        let url = self.proxy.options(&self.database.options()).to_url_lossy();
        LocalRuntime::builder(function.binary())
            .function_name("stock")
            .env("DATABASE_URL", url.as_str())
            .env(
                "LAMBDA_INBOX_CLAIM_WAIT_MS",
                CLAIM_WAIT.as_millis().to_string(),
            )
            .timeout(TIMEOUT)
            .stdout(Sink::Null)
            .stderr(Sink::Null)
            .start()
            .await
            .unwrap()
    }

    /// One more connection, past the proxy.
    pub(crate) async fn connect(&self) -> PgConnection {
        self.database.connect().await.unwrap()
    }

    /// Until so many connections to this database wait for a lock.
    pub(crate) async fn wait_for_waiting_backends(&mut self, count: i64) {
        let waiting = "SELECT count(*) FROM pg_stat_activity \
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        while sqlx::query_scalar::<_, i64>(waiting)
            .fetch_one(&mut self.connection)
            .await
            .unwrap()
            != count
        {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// How often each sale was booked.
    pub(crate) async fn booked(&mut self) -> BTreeMap<String, i64> {
        sqlx::query_as("SELECT sale_id, count(*) FROM sale GROUP BY sale_id")
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

    /// Asserts that these good sales and no others were booked, once each, and that the stock says so.
    pub(crate) async fn assert_booked_once(
        &mut self,
        sales: impl IntoIterator<Item = usize>,
        context: &str,
    ) {
        let mut booked = BTreeMap::new();
        let mut stock: BTreeMap<String, i64> =
            (0..ITEMS).map(|n| (item(n), INITIAL_STOCK)).collect();
        for n in sales {
            booked.insert(id(n), 1);
            *stock.get_mut(&item(n)).unwrap() -= quantity(n);
        }
        assert_eq!(self.booked().await, booked, "{context}");
        let found: Vec<(String, i64)> = sqlx::query_as("SELECT item, quantity FROM stock")
            .fetch_all(&mut self.connection)
            .await
            .unwrap();
        let found: BTreeMap<String, i64> = found.into_iter().collect();
        assert_eq!(found, stock, "{context}");
        let keys: i64 = sqlx::query_scalar("SELECT count(*) FROM lambda_inbox.inbox")
            .fetch_one(&mut self.connection)
            .await
            .unwrap();
        assert_eq!(keys as usize, booked.len(), "{context}");
    }

    async fn apply(&mut self, sql: &'static str) {
        sqlx::raw_sql(sql)
            .execute(&mut self.connection)
            .await
            .unwrap();
    }
}

/// Takes the lock of an item's row, as whoever counts the shelf would.
pub(crate) async fn lock_item(connection: &mut PgConnection, item: &str) {
    sqlx::query("SELECT FROM stock WHERE item = $1 FOR UPDATE")
        .bind(item)
        .execute(connection)
        .await
        .unwrap();
}

/// The ids that a response reports.
pub(crate) fn failures(invocation: &Invocation) -> Vec<String> {
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
