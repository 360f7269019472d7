//! One test, one database: created on demand, dropped with the value that stands for it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection};

use super::PostgresError;
use super::server;
use super::sql::identifier;

const NAME_PREFIX: &str = "lambda_inbox_test_";
/// For the clean-up of a value that is dropped, so that a lost server cannot hang a test run.
const DROP_TIMEOUT: Duration = Duration::from_secs(20);
/// How long to go on where somebody else is connected to the template.
const CREATE_TIMEOUT: Duration = Duration::from_secs(20);
const CREATE_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// A fresh, empty database with a random name, dropped with this value.
///
/// Dropping it ends all connections to it and blocks the thread, not the runtime, for some
/// milliseconds; failures are ignored there, see [`TestDatabase::drop_now`]. A database on the
/// server of `DATABASE_URL` stays behind if the process is killed; its name begins with
/// `lambda_inbox_test_`.
#[derive(Debug)]
#[must_use = "the database is dropped with this value"]
pub struct TestDatabase {
    pub(super) name: String,
    pub(super) admin: PgConnectOptions,
    /// Made for this database; they go after it.
    pub(super) roles: Mutex<Vec<String>>,
    dropped: bool,
}

impl TestDatabase {
    /// Creates a database on the server of `DATABASE_URL`, or on the private one of this process,
    /// which the first call starts.
    ///
    /// When this future is dropped early, a database may stay behind on the server.
    ///
    /// # Errors
    /// As [`ClusterBuilder::start`](super::ClusterBuilder::start) for the private server;
    /// [`PostgresError::Url`], [`PostgresError::Connect`] and [`PostgresError::MayNotCreate`] for
    /// the one of `DATABASE_URL`.
    pub async fn create() -> Result<Self, PostgresError> {
        Self::create_on(&server::options().await?).await
    }

    /// Creates a database on a server of your choice, such as a [`Cluster`](super::Cluster) with
    /// settings of its own. `admin` is any database of it, and a role that may create databases.
    ///
    /// # Errors
    /// [`PostgresError::Connect`], [`PostgresError::MayNotCreate`] and
    /// [`PostgresError::Statement`].
    pub async fn create_on(admin: &PgConnectOptions) -> Result<Self, PostgresError> {
        let name = format!("{NAME_PREFIX}{}", uuid::Uuid::new_v4().simple());
        let mut connection = server::connect(admin).await?;
        create_database(&mut connection, &name)
            .await
            .map_err(|source| {
                let role = admin.get_username().to_owned();
                if has_code(&source, "42501") {
                    PostgresError::MayNotCreate { role, source }
                } else {
                    PostgresError::Statement {
                        action: "create a test database",
                        source,
                    }
                }
            })?;
        close(connection).await;
        Ok(Self {
            name,
            admin: admin.clone(),
            roles: Mutex::default(),
            dropped: false,
        })
    }

    /// The database's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How to connect to this database as the role that created it: the superuser on a private
    /// server.
    pub fn options(&self) -> PgConnectOptions {
        self.admin.clone().database(&self.name)
    }

    /// [`TestDatabase::options`] as a URL, for `DATABASE_URL` of another process.
    pub fn url(&self) -> String {
        server::url(&self.options())
    }

    /// The same role on the server's own database, where nothing keeps this one from being looked
    /// at or dropped.
    pub fn admin_options(&self) -> PgConnectOptions {
        self.admin.clone()
    }

    /// A new connection with [`TestDatabase::options`].
    ///
    /// # Errors
    /// [`PostgresError::Connect`].
    pub async fn connect(&self) -> Result<PgConnection, PostgresError> {
        server::connect(&self.options()).await
    }

    /// Drops the database and its roles, ends all connections to it, and tells if that failed.
    ///
    /// # Errors
    /// [`PostgresError::Connect`] and [`PostgresError::Statement`]; the drop is then tried once
    /// more, silently.
    pub async fn drop_now(mut self) -> Result<(), PostgresError> {
        self.drop_database().await?;
        self.dropped = true;
        Ok(())
    }

    async fn drop_database(&self) -> Result<(), PostgresError> {
        let failed = PostgresError::statement;
        let mut connection = server::connect(&self.admin).await?;
        let database = identifier(&self.name);
        let statement = format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)");
        execute(&mut connection, statement)
            .await
            .map_err(failed("drop the test database"))?;
        let roles = self
            .roles
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for role in roles {
            let statement = format!("DROP ROLE IF EXISTS {}", identifier(&role));
            execute(&mut connection, statement)
                .await
                .map_err(failed("drop a test role"))?;
        }
        close(connection).await;
        Ok(())
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        if self.dropped {
            return;
        }
        // The runtime of the test, if there still is one, cannot be waited for from here; joined,
        // because the process may be about to end.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                if let Ok(runtime) = runtime {
                    let drop_database = self.drop_database();
                    let _ = runtime.block_on(async {
                        tokio::time::timeout(DROP_TIMEOUT, drop_database).await
                    });
                }
            });
        });
    }
}

/// From `template0`, which nobody may connect to: a session on the template makes the server
/// refuse. Autovacuum still may visit it, hence the retries.
async fn create_database(connection: &mut PgConnection, name: &str) -> Result<(), sqlx::Error> {
    let began = Instant::now();
    loop {
        let statement = format!("CREATE DATABASE {} TEMPLATE template0", identifier(name));
        match execute(connection, statement).await {
            Err(error) if has_code(&error, "55006") && began.elapsed() < CREATE_TIMEOUT => {
                tokio::time::sleep(CREATE_RETRY_INTERVAL).await;
            }
            result => return result,
        }
    }
}

pub(super) async fn execute(
    connection: &mut PgConnection,
    statement: String,
) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(statement))
        .execute(connection)
        .await
        .map(drop)
}

/// Says good-bye, so that the server does not log a lost client; nothing depends on it.
pub(super) async fn close(connection: PgConnection) {
    let _ = connection.close().await;
}

pub(super) fn has_code(error: &sqlx::Error, code: &str) -> bool {
    error
        .as_database_error()
        .and_then(|error| error.code())
        .is_some_and(|found| found == code)
}
