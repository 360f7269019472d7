//! A pooler between function and database breaks whatever relies on a session, so it is the real one.

use std::io::Write;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::account::Account;
use super::cluster::free_port;
use super::server;
use super::{PostgresError, TestDatabase};

/// Not in the PATH of every user.
const USUAL_PLACES: [&str; 4] = [
    "/usr/sbin",
    "/usr/bin",
    "/usr/local/bin",
    "/opt/homebrew/bin",
];

const READY_WITHIN: Duration = Duration::from_secs(10);

/// Reads the settings from stdin up to a line with a dot. Ends the pooler when our process ends, however
/// it does: the kernel then closes stdin.
const SCRIPT: &str = r#"
trap '' INT TERM HUP PIPE
umask 077
file=$(mktemp) || exit 1
while IFS= read -r line && [ "$line" != . ]; do
    printf '%s\n' "$line"
done >"$file"
exec 3<&0 </dev/null
"$1" -q "$file" 3<&- >/dev/null 2>&1 &
pooler=$!
cat <&3 >/dev/null
kill -s KILL "$pooler"
wait
rm -f "$file"
"#;

/// PgBouncer in transaction mode in front of one database; stopped when dropped.
#[derive(Debug)]
pub struct PgBouncer {
    port: u16,
    user: String,
    database: String,
    child: Child,
    stdin: Option<ChildStdin>,
}

impl PgBouncer {
    /// Starts the installed PgBouncer with `sessions` connections to the server, and waits for it.
    ///
    /// # Errors
    /// [`PostgresError::NoPgBouncer`], [`PostgresError::NoAccount`] and [`PostgresError::Supervisor`].
    pub async fn start(database: &TestDatabase, sessions: u32) -> Result<Self, PostgresError> {
        Self::start_with(database, sessions, "").await
    }

    /// As [`PgBouncer::start`], with sessions in which `query` has been run, as if other clients had
    /// left something in them. It must have no quotes in it.
    ///
    /// # Errors
    /// As [`PgBouncer::start`].
    pub async fn start_with(
        database: &TestDatabase,
        sessions: u32,
        query: &str,
    ) -> Result<Self, PostgresError> {
        let program = find().ok_or(PostgresError::NoPgBouncer)?;
        let account = Account::find()?;
        let options = database.options();
        let port = free_port().map_err(PostgresError::Supervisor)?;
        let settings = settings(&options, port, sessions, query);
        let mut child = account
            .command("/bin/sh")
            .args(["-c", SCRIPT, "pgbouncer.sh"])
            .arg(&program)
            .stdin(Stdio::piped())
            .spawn()
            .map_err(PostgresError::Supervisor)?;
        let mut pooler = Self {
            port,
            user: options.get_username().to_owned(),
            database: database.name().to_owned(),
            stdin: child.stdin.take(),
            child,
        };
        if let Some(stdin) = &mut pooler.stdin {
            writeln!(stdin, "{settings}.").map_err(PostgresError::Supervisor)?;
        }
        pooler.until_ready().await?;
        Ok(pooler)
    }

    /// How to connect through it.
    pub fn options(&self) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(self.port)
            .username(&self.user)
            .database(&self.database)
            .ssl_mode(PgSslMode::Disable)
    }

    /// [`PgBouncer::options`] as a URL.
    pub fn url(&self) -> String {
        let (user, port, database) = (&self.user, self.port, &self.database);
        format!("postgres://{user}@127.0.0.1:{port}/{database}?sslmode=disable")
    }

    async fn until_ready(&self) -> Result<(), PostgresError> {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            match TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() > deadline => {
                    return Err(PostgresError::Supervisor(error));
                }
                Err(_) => sleep(Duration::from_millis(20)).await,
            }
        }
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // The script kills it at once.
        let _ = self.child.wait();
    }
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(USUAL_PLACES.into_iter().map(PathBuf::from))
        .map(|folder| folder.join("pgbouncer"))
        .find(|program| program.is_file())
}

/// Whoever reaches the port is let in; it is on loopback, and the database is a test's. No start-up
/// parameter is ignored that PgBouncer refuses by default.
fn settings(options: &PgConnectOptions, port: u16, sessions: u32, query: &str) -> String {
    let password = server::password(options);
    let query = match query {
        "" => String::new(),
        query => format!(" connect_query='{query}'"),
    };
    format!(
        "[databases]\n* = host={} port={} user={} password={password}{query}\n\
         [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
         auth_type = any\npool_mode = transaction\nmax_client_conn = 200\n\
         default_pool_size = {sessions}\nserver_tls_sslmode = disable\n",
        options.get_host(),
        options.get_port(),
        options.get_username(),
    )
}
