//! sqlx 0.9.0 leaves Nagle's algorithm on. A TLS handshake sends two small packets in a row, twice, and each
//! time the second one is kept back until the server acknowledges the first, which it does 40 ms later. So
//! does every statement of more than one TLS record. sqlx gives no way to its socket, so it is given one
//! of ours: a Unix socket, which has no such delay, and behind it a TCP connection without the delay. What
//! passes is encrypted by sqlx; nothing is read here.
//!
//! Fixed in sqlx by its pull request 4336, which is not in a release yet. See
//! `docs/adr/0013-a-relay-for-tls.md`.

use sqlx::postgres::PgConnectOptions;
use std::fs::DirBuilder;
use std::io;
use std::net::Shutdown;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{TcpStream, UnixListener};
use tokio::task::AbortHandle;

/// Of each direction's buffer: a TLS record has at most that much of content.
const BUFFER_BYTES: usize = 16 * 1024;

static NO_DOOR: Once = Once::new();

/// Connects to the server of `options`, and starts a relay to it; the options returned lead through the relay.
/// `None` where the temporary folder cannot be written.
///
/// Cancel safe.
pub(crate) async fn start(
    options: &PgConnectOptions,
) -> io::Result<Option<(PgConnectOptions, Relay)>> {
    let door = match Door::open(options.get_port()) {
        Ok(door) => door,
        Err(error) => {
            NO_DOOR.call_once(|| {
                tracing::warn!(
                    reason = %error,
                    "connecting takes a tenth of a second longer, because no socket can be made in the \
                     temporary folder"
                );
            });
            return Ok(None);
        }
    };
    let server = TcpStream::connect((options.get_host(), options.get_port())).await?;
    server.set_nodelay(true)?;
    let inside = options.clone().socket(&door.folder);
    Ok(Some((inside, Relay::start(door, server)?)))
}

/// A running relay. Dropping it ends the server's side at once, not when the task next gets to run: an
/// environment that is frozen first would hold its locks until it is thawed.
pub(crate) struct Relay {
    server: std::net::TcpStream,
    task: AbortHandle,
}

impl Relay {
    fn start(door: Door, server: TcpStream) -> io::Result<Self> {
        let server = server.into_std()?;
        let twin = server.try_clone()?;
        let mut server = TcpStream::from_std(server)?;
        let task = tokio::spawn(async move {
            let Ok((mut client, _)) = door.listener.accept().await else {
                return;
            };
            drop(door);
            // However it ends, both sides are closed.
            let _ =
                copy_bidirectional_with_sizes(&mut client, &mut server, BUFFER_BYTES, BUFFER_BYTES)
                    .await;
        });
        Ok(Self {
            server: twin,
            task: task.abort_handle(),
        })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // Fails where the server has closed it already.
        let _ = self.server.shutdown(Shutdown::Both);
        self.task.abort();
    }
}

/// A socket for one client, in a folder that only this user may enter. Gone when dropped, which does not
/// disturb the client that has come in.
struct Door {
    listener: UnixListener,
    folder: PathBuf,
    socket: PathBuf,
}

impl Door {
    /// sqlx builds the socket's name from the folder and the port.
    fn open(port: u16) -> io::Result<Self> {
        let folder = std::env::temp_dir().join(unique_name());
        // Fails where it exists, so nobody can have put one there for us.
        DirBuilder::new().mode(0o700).create(&folder)?;
        let socket = folder.join(format!(".s.PGSQL.{port}"));
        match UnixListener::bind(&socket) {
            Ok(listener) => Ok(Self {
                listener,
                folder,
                socket,
            }),
            Err(error) => {
                remove(&socket, &folder);
                Err(error)
            }
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        remove(&self.socket, &self.folder);
    }
}

fn remove(socket: &Path, folder: &Path) {
    let _ = std::fs::remove_file(socket);
    let _ = std::fs::remove_dir(folder);
}

/// Short, because a socket's path has room for about a hundred bytes.
fn unique_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let nanos = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.subsec_nanos());
    format!("lambda-inbox-{}-{count}-{nanos:x}", std::process::id())
}
