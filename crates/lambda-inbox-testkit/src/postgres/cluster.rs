//! A server of our own, so that a clean clone can be tested on a machine with nothing but the
//! PostgreSQL package.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use sqlx::Connection;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgSslMode};
use tokio::sync::oneshot;

use super::account::Account;
use super::supervisor::Supervisor;
use super::{PostgresError, binaries, server};
use crate::tls::Identity;

/// A cold, busy machine initialises a cluster in a few seconds.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// A free port can be taken by somebody else before the server listens on it.
const START_ATTEMPTS: u32 = 5;

/// A private PostgreSQL server on 127.0.0.1, with its files below the system's temporary folder.
///
/// It stops, and its files go, when this value is dropped or the process ends, be it by SIGKILL.
/// Dropping blocks the thread until then, usually for a tenth of a second.
#[derive(Debug)]
#[must_use = "the server stops when this is dropped"]
pub struct Cluster {
    options: PgConnectOptions,
    supervisor: Supervisor,
}

impl Cluster {
    /// Starts a server with the defaults of [`Cluster::builder`].
    ///
    /// # Errors
    /// As [`ClusterBuilder::start`].
    pub async fn start() -> Result<Self, PostgresError> {
        Self::builder().start().await
    }

    /// Settings for a server that differs from the default one, which trades durability for speed.
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder {
            fsync: false,
            settings: Vec::new(),
            tls: None,
            primary: None,
        }
    }

    /// Starts a hot standby of this server, as it is after a failover for those who still reach the old
    /// primary: what is committed here arrives there, and it takes no writes.
    ///
    /// # Errors
    /// As [`ClusterBuilder::start`].
    pub async fn standby(&self) -> Result<Self, PostgresError> {
        let mut builder = Self::builder();
        builder.primary = Some(self.options());
        builder.start().await
    }

    /// The superuser, on the database `postgres`.
    pub fn options(&self) -> PgConnectOptions {
        self.options.clone()
    }

    /// [`Cluster::options`] as a `DATABASE_URL`.
    pub fn url(&self) -> String {
        server::url(&self.options)
    }

    /// Where the server keeps its files; `log` in it is the server's log, and the Unix socket is in
    /// it too.
    pub fn folder(&self) -> &Path {
        self.supervisor.folder()
    }

    /// Stops the server and returns when its files are gone. Blocks the thread.
    pub fn stop(self) {
        drop(self);
    }
}

/// How a [`Cluster`] is to be set up.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is started"]
pub struct ClusterBuilder {
    fsync: bool,
    settings: Vec<(String, String)>,
    tls: Option<Identity>,
    primary: Option<PgConnectOptions>,
}

impl ClusterBuilder {
    /// Whether commits wait for the disk. Off by default; measurements want it on.
    pub fn fsync(mut self, fsync: bool) -> Self {
        self.fsync = fsync;
        self
    }

    /// One more setting, as in `postgresql.conf`; of equal names the last one counts, defaults
    /// included.
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// The server has this certificate and offers encryption, which clients may still do without.
    pub fn tls(mut self, identity: &Identity) -> Self {
        self.tls = Some(identity.clone());
        self
    }

    /// Initialises a cluster, starts the server and waits, for a minute at most, until it accepts
    /// connections.
    ///
    /// When this future is dropped early, the server is started and then stopped in the background.
    ///
    /// # Errors
    /// [`PostgresError::NotInstalled`], [`PostgresError::NoAccount`],
    /// [`PostgresError::Supervisor`], or [`PostgresError::NotStarted`] with the end of the server's
    /// log.
    pub async fn start(self) -> Result<Cluster, PostgresError> {
        // Not a blocking task of this runtime: a shared cluster outlives the runtime of the test
        // that started it.
        let (sender, receiver) = oneshot::channel();
        std::thread::Builder::new()
            .name("postgres-start".into())
            .spawn(move || drop(sender.send(self.start_blocking())))
            .map_err(PostgresError::Supervisor)?;
        receiver
            .await
            .map_err(|lost| PostgresError::Supervisor(std::io::Error::other(lost)))?
    }

    fn start_blocking(&self) -> Result<Cluster, PostgresError> {
        let account = Account::find()?;
        let binaries = binaries::find(account)?;
        let mut attempt = 1;
        loop {
            let port = free_port().map_err(PostgresError::Supervisor)?;
            let result = self.attempt(account, &binaries, port);
            let port_was_taken = || TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_err();
            if result.is_ok() || attempt == START_ATTEMPTS || !port_was_taken() {
                return result;
            }
            attempt += 1;
        }
    }

    fn attempt(
        &self,
        account: Account,
        binaries: &Path,
        port: u16,
    ) -> Result<Cluster, PostgresError> {
        // Other users of the machine can reach the port, and a superuser can run programs as us. It
        // also tells our server from another one that took the port first.
        let password = match &self.primary {
            Some(primary) => server::password(primary),
            None => uuid::Uuid::new_v4().simple().to_string(),
        };
        let supervisor = Supervisor::start(
            account,
            binaries,
            &password,
            self.primary.as_ref().map(PgConnectOptions::get_port),
            self.tls.as_ref(),
            &self.arguments(port),
        )
        .map_err(PostgresError::Supervisor)?;
        let options = PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(port)
            .username("postgres")
            .password(&password)
            .database("postgres")
            .ssl_mode(PgSslMode::Disable);
        wait_until_ready(&supervisor, &options)?;
        Ok(Cluster {
            options,
            supervisor,
        })
    }

    fn arguments(&self, port: u16) -> Vec<String> {
        let on_off = |on: bool| if on { "on" } else { "off" }.to_owned();
        let on = self.tls.is_some();
        let defaults = [
            // Relative to the data folder.
            ("ssl_cert_file", "../server.crt".to_owned()),
            ("ssl_key_file", "../server.key".to_owned()),
            ("ssl", on_off(on)),
            ("listen_addresses", "127.0.0.1".to_owned()),
            ("port", port.to_string()),
            ("max_connections", "200".to_owned()),
            ("fsync", on_off(self.fsync)),
            ("full_page_writes", on_off(self.fsync)),
        ];
        let defaults = defaults
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"));
        let settings = self
            .settings
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        defaults
            .chain(settings)
            .flat_map(|setting| ["-c".to_owned(), setting])
            .collect()
    }
}

pub(super) fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

fn wait_until_ready(
    supervisor: &Supervisor,
    options: &PgConnectOptions,
) -> Result<(), PostgresError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(PostgresError::Supervisor)?;
    let began = Instant::now();
    let not_started = |reason| PostgresError::NotStarted {
        reason,
        log: supervisor.log_tail(),
    };
    loop {
        if runtime.block_on(accepts_connections(options)) {
            return Ok(());
        }
        if supervisor.server_ended() {
            return Err(not_started("it ended"));
        }
        if began.elapsed() > START_TIMEOUT {
            return Err(not_started("it accepts no connection"));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

async fn accepts_connections(options: &PgConnectOptions) -> bool {
    let connect = async { PgConnection::connect_with(options).await?.close().await };
    matches!(
        tokio::time::timeout(CONNECT_TIMEOUT, connect).await,
        Ok(Ok(()))
    )
}
