//! Databases fail between two bytes: this proxy delays, counts, holds and breaks what flows between
//! client and server.
//!
//! It listens on 127.0.0.1 and forwards to one Postgres server. It runs on threads of its own, so a
//! test that blocks its runtime does not block the connection, and one proxy serves tests on any
//! kind of runtime. It sees bytes, not statements: patterns are looked for in what the client
//! sends, which therefore must not be encrypted.
//!
//! ```no_run
//! # use sqlx::postgres::PgConnectOptions;
//! # async fn test(options: PgConnectOptions) -> Result<(), Box<dyn std::error::Error>> {
//! use lambda_inbox_testkit::proxy::Proxy;
//! use sqlx::Connection;
//!
//! let proxy = Proxy::start(options.get_host(), options.get_port()).await?;
//! let mut connection = sqlx::PgConnection::connect_with(&proxy.options(&options)).await?;
//! let lost = proxy.lose_reply_to(b"COMMIT");
//! assert!(sqlx::raw_sql("BEGIN; COMMIT").execute(&mut connection).await.is_err());
//! assert!(lost.fired());
//! # Ok(())
//! # }
//! ```

mod clock;
mod link;
mod rules;
mod shared;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use tokio::sync::oneshot;

use rules::Action;
pub use rules::{Hold, Trigger};
use shared::Shared;

/// After a failed accept, such as for want of file descriptors.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// A TCP proxy in front of one server; see the [module docs](self).
///
/// Everything it does, its connections included, ends when it is dropped.
#[derive(Debug)]
#[must_use = "the proxy stops when this is dropped"]
pub struct Proxy {
    addr: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Listens on a free port of 127.0.0.1. The server is not contacted before a client comes.
    ///
    /// # Errors
    /// Where the operating system gives no port or no thread, or `upstream_host` is the folder of a
    /// Unix socket.
    pub async fn start(upstream_host: &str, port: u16) -> io::Result<Self> {
        if upstream_host.starts_with('/') {
            let message = "the proxy cannot stand before a Unix socket";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared::new(upstream_host.to_owned(), port)?);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let for_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("proxy".into())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        _ = stopped => {}
                        () = accept(listener, for_thread) => {}
                    }
                });
            })?;
        Ok(Self {
            addr,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where clients connect.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `options` with the proxy for the server. Optional encryption is switched off; demanded
    /// encryption stays, and then no pattern is ever found. Options made with a Unix socket's folder
    /// (`PgConnectOptions::socket`) go past the proxy.
    pub fn options(&self, options: &PgConnectOptions) -> PgConnectOptions {
        let options = options
            .clone()
            .host(&self.addr.ip().to_string())
            .port(self.addr.port());
        match options.get_ssl_mode() {
            PgSslMode::Disable | PgSslMode::Allow | PgSslMode::Prefer => {
                options.ssl_mode(PgSslMode::Disable)
            }
            PgSslMode::Require | PgSslMode::VerifyCa | PgSslMode::VerifyFull => options,
        }
    }

    /// From now on bytes received at `t` leave at `t + one_way`, in each direction, which adds
    /// twice that to a round trip. Chunks keep their order and do not wait for each other's delay.
    /// The error is some tens of microseconds, more where processors are short.
    pub fn set_delay(&self, one_way: Duration) {
        self.shared.set_delay(one_way);
    }

    /// Round trips so far, over all connections: how often a client sent after it had been sent
    /// something, or for the first time. Connecting takes some too.
    pub fn round_trips(&self) -> u64 {
        self.shared.round_trips.load(Ordering::Relaxed)
    }

    /// Counts round trips from 0 again.
    pub fn reset_round_trips(&self) {
        self.shared.round_trips.store(0, Ordering::Relaxed);
    }

    /// Connections accepted so far, the refused ones included.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Closes both sides of every live connection. Nothing passes through them once this has
    /// returned.
    pub fn cut(&self) {
        self.shared.faults.send_modify(|faults| faults.cuts += 1);
    }

    /// While on, new connections are closed at once; live ones go on.
    pub fn refuse(&self, on: bool) {
        self.shared.refuse.store(on, Ordering::Relaxed);
    }

    /// While on, nothing is forwarded either way, the end of a connection included, and all sockets
    /// stay open; new connections are accepted and get no answer. What was sent meanwhile is
    /// forwarded when it is switched off, as after a network partition.
    pub fn black_hole(&self, on: bool) {
        self.shared
            .faults
            .send_modify(|faults| faults.black_hole = on);
    }

    /// The next bytes of a client that contain `pattern` are not delivered; both sides of that
    /// connection are closed instead. Once only. The server does not execute a statement that is
    /// cut like this.
    ///
    /// Here and below: an empty pattern is contained in any bytes; a pattern may arrive in parts,
    /// and it is its last part that counts; of several faults set for the same bytes the first one
    /// set happens and the others wait for the next match.
    pub fn cut_before(&self, pattern: &[u8]) -> Trigger {
        self.shared.rules.arm(pattern, Action::Cut)
    }

    /// The next bytes of a client that contain `pattern` are delivered; what the server answers is
    /// thrown away until it is ready for the next query, and then both sides of that connection are
    /// closed. Once only.
    ///
    /// When this has fired, the server has done what it was asked and the client cannot know.
    pub fn lose_reply_to(&self, pattern: &[u8]) -> Trigger {
        self.shared.rules.arm(pattern, Action::LoseReply)
    }

    /// From the next bytes that contain `pattern`, what that client sends is held back, until
    /// [`Hold::release`]. Once only. If the client goes away while held, as by being killed, the
    /// held bytes are never delivered and the server's side is closed.
    pub fn hold_before(&self, pattern: &[u8]) -> Hold {
        Hold::new(self.shared.rules.arm(pattern, Action::Hold))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                shared.connections.fetch_add(1, Ordering::Relaxed);
                if !shared.refuse.load(Ordering::Relaxed) {
                    tokio::spawn(link::serve(client, Arc::clone(&shared)));
                }
            }
            Err(_) => tokio::time::sleep(ACCEPT_RETRY_INTERVAL).await,
        }
    }
}
