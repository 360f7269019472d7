//! One client's connection: two directions, each a reader that stamps what arrives with the time it
//! may leave, a queue, and a writer that waits for that time. Reading never waits for a delay, so
//! delays do not add up.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};

use super::rules::{Action, Rule, Tail};
use super::shared::{Faults, Shared};

const CHUNK_BYTES: usize = 16 * 1024;
/// Chunks on their way; a sender that is further ahead is not read from.
const QUEUE_CHUNKS: usize = 1024;
/// The end of a reply: ReadyForQuery, then one byte for the transaction's state.
/// <https://www.postgresql.org/docs/current/protocol-message-formats.html>
const READY_FOR_QUERY: [u8; 5] = *b"Z\0\0\0\x05";

/// Something on its way, not to arrive before `due`.
struct Parcel {
    due: Instant,
    content: Content,
}

enum Content {
    Bytes(Vec<u8>, Option<Rule>),
    /// The sender closed its side.
    End,
    /// The sender's side broke.
    Broken(io::Error),
}

/// What the two directions of one connection need to know of each other.
struct Link {
    shared: Arc<Shared>,
    /// How often connections had been cut when this one began.
    cuts: u64,
    /// Whether the client has been sent something since it last sent something itself.
    clients_turn: AtomicBool,
    client_gone: watch::Sender<bool>,
    reply: watch::Sender<Reply>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reply {
    Forward,
    ThrowAway,
    ThrownAway,
}

/// Serves `client` until one side ends or the connection is cut.
pub(super) async fn serve(client: TcpStream, shared: Arc<Shared>) {
    let mut faults = shared.faults.subscribe();
    let cuts = faults.borrow().cuts;
    let link = Link {
        shared,
        cuts,
        clients_turn: AtomicBool::new(true),
        client_gone: watch::Sender::new(false),
        reply: watch::Sender::new(Reply::Forward),
    };
    tokio::select! {
        biased;
        _ = faults.wait_for(|faults| faults.cuts != cuts) => {}
        // However it ends, what is left to do is to close both sockets.
        _ = link.relay(client) => {}
    }
}

impl Link {
    async fn relay(&self, mut client: TcpStream) -> io::Result<()> {
        self.until_open().await?;
        let upstream = (
            self.shared.upstream_host.as_str(),
            self.shared.upstream_port,
        );
        let mut server = TcpStream::connect(upstream).await?;
        // Otherwise the kernel keeps small packets back, up to 40 ms, waiting for more.
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let (send_request, requests) = mpsc::channel(QUEUE_CHUNKS);
        let (send_reply, replies) = mpsc::channel(QUEUE_CHUNKS);
        tokio::try_join!(
            self.read_client(from_client, send_request),
            self.write_server(to_server, requests),
            self.read_server(from_server, send_reply),
            self.write_client(to_client, replies),
        )
        .map(drop)
    }

    async fn read_client(
        &self,
        mut from: ReadHalf<'_>,
        queue: mpsc::Sender<Parcel>,
    ) -> io::Result<()> {
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut tail = Tail::default();
        loop {
            let read = from.read(&mut buffer).await;
            let due = Instant::now() + self.shared.delay();
            let content = match read {
                Ok(0) => Content::End,
                Err(error) => Content::Broken(error),
                Ok(length) => {
                    let chunk = &buffer[..length];
                    if self.clients_turn.swap(false, Ordering::Relaxed) {
                        self.shared.round_trips.fetch_add(1, Ordering::Relaxed);
                    }
                    let rule = self.shared.rules.take(&tail, chunk);
                    tail.push(chunk);
                    Content::Bytes(chunk.to_vec(), rule)
                }
            };
            let over = !matches!(content, Content::Bytes(..));
            self.client_gone.send_replace(over);
            if queue.send(Parcel { due, content }).await.is_err() || over {
                return Ok(());
            }
        }
    }

    async fn read_server(
        &self,
        mut from: ReadHalf<'_>,
        queue: mpsc::Sender<Parcel>,
    ) -> io::Result<()> {
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut tail = Tail::default();
        loop {
            let read = from.read(&mut buffer).await;
            let due = Instant::now() + self.shared.delay();
            let content = match read {
                Ok(0) => Content::End,
                Err(error) => Content::Broken(error),
                Ok(length) => Content::Bytes(buffer[..length].to_vec(), None),
            };
            let over = match &content {
                Content::Bytes(chunk, _) => {
                    tail.push(chunk);
                    false
                }
                Content::End | Content::Broken(_) => true,
            };
            let throw_away = *self.reply.borrow() != Reply::Forward;
            if over || (throw_away && tail.ends_with(&READY_FOR_QUERY, 1)) {
                self.reply.send_replace(Reply::ThrownAway);
            }
            if !throw_away && queue.send(Parcel { due, content }).await.is_err() {
                return Ok(());
            }
            if over {
                return Ok(());
            }
        }
    }

    async fn write_server(
        &self,
        mut to: WriteHalf<'_>,
        mut queue: mpsc::Receiver<Parcel>,
    ) -> io::Result<()> {
        while let Some(parcel) = queue.recv().await {
            self.arrival(parcel.due).await?;
            match parcel.content {
                Content::Bytes(bytes, None) => to.write_all(&bytes).await?,
                Content::Bytes(bytes, Some(rule)) => self.apply(rule, &bytes, &mut to).await?,
                Content::End => to.shutdown().await?,
                Content::Broken(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn write_client(
        &self,
        mut to: WriteHalf<'_>,
        mut queue: mpsc::Receiver<Parcel>,
    ) -> io::Result<()> {
        while let Some(parcel) = queue.recv().await {
            self.arrival(parcel.due).await?;
            match parcel.content {
                Content::Bytes(bytes, _) => {
                    self.clients_turn.store(true, Ordering::Relaxed);
                    to.write_all(&bytes).await?;
                }
                Content::End => to.shutdown().await?,
                Content::Broken(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// An error closes the connection.
    async fn apply(&self, rule: Rule, bytes: &[u8], to: &mut WriteHalf<'_>) -> io::Result<()> {
        match rule.action {
            Action::Cut => {
                rule.trigger.fire();
                Err(aborted())
            }
            Action::LoseReply => {
                self.reply.send_if_modified(|reply| {
                    let forwarding = *reply == Reply::Forward;
                    if forwarding {
                        *reply = Reply::ThrowAway;
                    }
                    forwarding
                });
                to.write_all(bytes).await?;
                let mut reply = self.reply.subscribe();
                let _ = reply.wait_for(|reply| *reply == Reply::ThrownAway).await;
                rule.trigger.fire();
                Err(aborted())
            }
            Action::Hold => {
                rule.trigger.fire();
                tokio::select! {
                    biased;
                    () = self.client_is_gone() => return Err(aborted()),
                    () = rule.trigger.released() => {}
                }
                self.until_open().await?;
                to.write_all(bytes).await
            }
        }
    }

    async fn client_is_gone(&self) {
        let _ = self.client_gone.subscribe().wait_for(|gone| *gone).await;
    }

    /// Waits until something due then may be handed over.
    async fn arrival(&self, due: Instant) -> io::Result<()> {
        self.shared.clock.wait_until(due).await;
        self.until_open().await
    }

    /// Waits while nothing may pass; an error once the connection is cut.
    async fn until_open(&self) -> io::Result<()> {
        let mut faults = self.shared.faults.subscribe();
        let open = |faults: &Faults| !faults.black_hole || faults.cuts != self.cuts;
        let cuts = match faults.wait_for(open).await {
            Ok(faults) => faults.cuts,
            Err(_) => return Err(aborted()),
        };
        if cuts == self.cuts {
            Ok(())
        } else {
            Err(aborted())
        }
    }
}

/// Nobody sees it: every error closes the connection.
fn aborted() -> io::Error {
    io::ErrorKind::ConnectionAborted.into()
}
