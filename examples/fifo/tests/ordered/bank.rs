//! The database of the function, and what it shows.

use std::sync::Arc;
use std::time::Duration;

use lambda_inbox_testkit::postgres::TestDatabase;
use lambda_inbox_testkit::proxy::Proxy;
use lambda_inbox_testkit::runtime::{LocalRuntime, Sink};
use sqlx::{ConnectOptions, PgConnection};

const POLL_INTERVAL: Duration = Duration::from_millis(5);

pub(crate) struct Bank {
    /// Past the proxy.
    pub(crate) connection: PgConnection,
    /// Between the function and the server.
    pub(crate) proxy: Arc<Proxy>,
    // Last, so that it is dropped when nothing uses it any more.
    pub(crate) database: TestDatabase,
}

impl Bank {
    /// Without any account.
    pub(crate) async fn open() -> Self {
        let database = TestDatabase::create().await.unwrap();
        let mut connection = database.connect().await.unwrap();
        lambda_inbox::migrate(&mut connection, &lambda_inbox::Schema::default())
            .await
            .unwrap();
        sqlx::raw_sql(include_str!("../../schema.sql"))
            .execute(&mut connection)
            .await
            .unwrap();
        let options = database.options();
        let proxy = Proxy::start(options.get_host(), options.get_port())
            .await
            .unwrap();
        Self {
            connection,
            proxy: Arc::new(proxy),
            database,
        }
    }

    /// The real binary.
    pub(crate) async fn function(&self, variables: &[(&str, &str)]) -> LocalRuntime {
        let url = self.proxy.options(&self.database.options()).to_url_lossy();
        let mut builder = LocalRuntime::builder(env!("CARGO_BIN_EXE_fifo"))
            .function_name("fifo")
            .env("DATABASE_URL", url.as_str())
            // The server may take longer than the default to notice that a killed client is gone.
            .env("LAMBDA_INBOX_CLAIM_WAIT_MS", "10000")
            .stdout(Sink::Null)
            .stderr(Sink::Null);
        for (name, value) in variables {
            builder = builder.env(name, value);
        }
        builder.start().await.unwrap()
    }

    /// For the next case.
    pub(crate) async fn clear(&mut self) {
        sqlx::raw_sql("TRUNCATE account, account_entry, lambda_inbox.inbox")
            .execute(&mut self.connection)
            .await
            .unwrap();
    }

    /// An account with one command behind it: its opening, with number 1.
    pub(crate) async fn with_account(&mut self, id: &str, balance: i64) {
        sqlx::query("INSERT INTO account VALUES ($1, $2, 1, false, false)")
            .bind(id)
            .bind(balance)
            .execute(&mut self.connection)
            .await
            .unwrap();
    }

    pub(crate) async fn set_hold(&mut self, id: &str, on: bool) {
        sqlx::query("UPDATE account SET on_hold = $2 WHERE id = $1")
            .bind(id)
            .bind(on)
            .execute(&mut self.connection)
            .await
            .unwrap();
    }

    /// The numbers of the commands that were carried out, in the order in which they committed.
    pub(crate) async fn entries(&mut self, account: &str) -> Vec<i64> {
        sqlx::query_scalar("SELECT number FROM account_entry WHERE account = $1 ORDER BY seq")
            .bind(account)
            .fetch_all(&mut self.connection)
            .await
            .unwrap()
    }

    pub(crate) async fn wait_for_entries(&mut self, account: &str, count: usize) {
        while self.entries(account).await.len() < count {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Balance, and whether it is closed.
    pub(crate) async fn account(&mut self, id: &str) -> (i64, bool) {
        sqlx::query_as("SELECT balance, closed FROM account WHERE id = $1")
            .bind(id)
            .fetch_one(&mut self.connection)
            .await
            .unwrap()
    }

    /// How many keys the inbox has, and how many commands were carried out.
    pub(crate) async fn keys_and_entries(&mut self) -> (i64, i64) {
        sqlx::query_as(
            "SELECT (SELECT count(*) FROM lambda_inbox.inbox), (SELECT count(*) FROM account_entry)",
        )
        .fetch_one(&mut self.connection)
        .await
        .unwrap()
    }
}
