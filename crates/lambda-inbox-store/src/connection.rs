//! Connections are owned and kept by the process, not lent by a pool.
//!
//! A Lambda environment is frozen between invocations, so a pool's background work (pings, reaping,
//! a ROLLBACK in a spawned task) runs at the wrong time or not at all, and a pool hands on what a
//! cancelled caller left behind. Here a connection comes back only through [`Connection::keep`],
//! which is called when its transaction is known to be over. Every other way out closes the socket.

use crate::error::{Stage, StoreError};
use crate::role::warn_of_missing_timeouts;
use crate::schema::Schema;
use crate::source::{ConnectionSource, Guard};
use crate::statements::Statements;
use crate::table::{Profile, Table};
use sqlx::PgConnection;
use sqlx::postgres::PgConnectOptions;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// The most time that one attempt to connect may take.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// How long a connection may have been idle and still be taken for alive.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// The first server version with `client_connection_check_interval`.
const SERVER_VERSION_MIN: u32 = 140_000;

/// The inbox of one database: where it is, and the connections to it.
///
/// Cloning is cheap and shares the connections. Building a store never connects.
#[derive(Clone)]
pub struct Store {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    source: Arc<dyn ConnectionSource>,
    table: Table,
    pub(crate) statements: Statements,
    slots: Arc<Semaphore>,
    idle: Mutex<Vec<Session>>,
    /// Whether the role's settings have been looked at, which is done once.
    role_is_known: AtomicBool,
}

/// A socket and what sqlx believes about it.
pub(crate) struct Session {
    pub(crate) pg: PgConnection,
    // After the connection, so that it is dropped after it.
    _guard: Option<Guard>,
    /// Whether sqlx has been told, once and for ever, that the connection is inside a transaction.
    pub(crate) entered: bool,
    /// Whether the session's own defaults are set for statements outside a transaction of ours.
    pub(crate) runs_statements: bool,
    /// The statements that the session knows by name.
    pub(crate) prepared: Vec<&'static str>,
    /// By the wall clock, which goes on while the environment is frozen.
    pub(crate) kept_at: SystemTime,
}

impl Store {
    /// Describes the inbox in `table` of the database that `options` name, used through at most
    /// `connections` connections at once.
    pub fn new(
        options: PgConnectOptions,
        table: impl Into<Table>,
        connections: NonZeroUsize,
    ) -> Self {
        Self::with_source(Arc::new(options), table, connections)
    }

    /// As [`Store::new`], with connections that `source` opens.
    pub fn with_source(
        source: Arc<dyn ConnectionSource>,
        table: impl Into<Table>,
        connections: NonZeroUsize,
    ) -> Self {
        let table = table.into();
        let statements = Statements::new(&table);
        let slots = Arc::new(Semaphore::new(
            connections.get().min(Semaphore::MAX_PERMITS),
        ));
        let idle = Mutex::new(Vec::new());
        Self {
            shared: Arc::new(Shared {
                source,
                table,
                statements,
                slots,
                idle,
                role_is_known: AtomicBool::new(false),
            }),
        }
    }

    /// The schema of the tables.
    pub fn schema(&self) -> &Schema {
        &self.shared.table.schema
    }

    /// The consumer's table.
    pub fn table(&self) -> &Table {
        &self.shared.table
    }

    /// Closes the kept connections, and has the source forget what it knows by heart. Connections that
    /// are in use stay open; new ones are opened when they are needed.
    ///
    /// For the moment before a snapshot of the process is taken, after which every copy of it would hold
    /// the same sockets.
    pub fn forget_connections(&self) {
        let kept = std::mem::take(&mut *self.shared.idle());
        drop(kept);
        self.shared.source.forget();
    }

    /// Waits for the right to hold one connection. Whoever waits must hold no other slot, or two
    /// holders can wait for each other.
    ///
    /// Cancel safe: a dropped wait leaves the queue.
    pub async fn slot(&self) -> Slot {
        let permit = Arc::clone(&self.shared.slots).acquire_owned().await.ok();
        Slot {
            shared: Arc::clone(&self.shared),
            _permit: permit,
        }
    }

    /// The right to hold one connection, if it is free now.
    pub fn try_slot(&self) -> Option<Slot> {
        let permit = Arc::clone(&self.shared.slots).try_acquire_owned().ok()?;
        Some(Slot {
            shared: Arc::clone(&self.shared),
            _permit: Some(permit),
        })
    }
}

impl fmt::Debug for Store {
    // Written by hand: the source may hold the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("table", &self.shared.table)
            .finish_non_exhaustive()
    }
}

/// The right to hold one connection. Dropping it lets the next one in.
pub struct Slot {
    shared: Arc<Shared>,
    // None only if the semaphore were closed, which nothing does.
    _permit: Option<OwnedSemaphorePermit>,
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

impl Slot {
    /// A kept connection, or a fresh one where none is kept. A kept one may have died meanwhile: the
    /// first statement on it tells, and [`Connection::is_reused`] says that a fresh one is worth a
    /// try.
    ///
    /// # Errors
    /// As [`Slot::fresh_connection`].
    pub async fn connection(&self, until: Instant) -> Result<Connection, StoreError> {
        // A statement of its own, so that the lock is released before anything is awaited.
        let kept = self.shared.idle().pop();
        match kept {
            Some(session) => Ok(self.wrap(session, true)),
            None => self.fresh_connection(until).await,
        }
    }

    /// Opens a new connection, in at most five seconds and not beyond `until`.
    ///
    /// Cancel safe: a dropped attempt closes its socket.
    ///
    /// # Errors
    /// [`StoreError`] of stage [`Stage::Connect`] where the source has no connection in time, or the
    /// server is older than PostgreSQL 14.
    pub async fn fresh_connection(&self, until: Instant) -> Result<Connection, StoreError> {
        self.shared.make_room();
        let until = until.min(Instant::now() + CONNECT_MAX);
        let opened = timeout_at(until, self.shared.source.connect(until))
            .await
            .map_err(|_| StoreError::no_answer(Stage::Connect))?
            .map_err(StoreError::no_connection)?;
        let (mut pg, guard) = opened.into_parts();
        if let Some(version) = pg.server_version_num().filter(|v| *v < SERVER_VERSION_MIN) {
            let text = format!("the server is version {version}, PostgreSQL 14 or later is needed");
            return Err(StoreError::setup(Stage::Connect, text));
        }
        if self.shared.table.profile == Profile::Pooled
            && !self.shared.role_is_known.swap(true, Ordering::Relaxed)
        {
            timeout_at(until, warn_of_missing_timeouts(&mut pg))
                .await
                .map_err(|_| StoreError::no_answer(Stage::Connect))?
                .map_err(|error| StoreError::new(Stage::Connect, error))?;
        }
        Ok(self.wrap(
            Session {
                pg,
                _guard: guard,
                entered: false,
                runs_statements: false,
                prepared: Vec::new(),
                kept_at: SystemTime::now(),
            },
            false,
        ))
    }

    fn wrap(&self, session: Session, reused: bool) -> Connection {
        Connection {
            session,
            reused,
            shared: Arc::clone(&self.shared),
        }
    }
}

impl Shared {
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Session>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes a kept connection where its place is taken by a slot that opens a fresh one, so that
    /// kept and held ones together never exceed the limit.
    fn make_room(&self) {
        let mut idle = self.idle();
        if idle.len() > self.slots.available_permits() {
            idle.remove(0);
        }
    }
}

/// A connection outside any transaction. Dropping it closes the socket.
pub struct Connection {
    pub(crate) session: Session,
    reused: bool,
    pub(crate) shared: Arc<Shared>,
}

impl Connection {
    /// Whether it was kept from an earlier use and has not answered since, so that it may have died
    /// meanwhile.
    pub fn is_reused(&self) -> bool {
        self.reused
    }

    /// What has answered is alive, and is given all the time that there is.
    pub(crate) fn has_answered(&mut self) {
        self.reused = false;
    }

    /// Whether so much time has passed since it was last used that it may be dead.
    pub(crate) fn has_idled(&self) -> bool {
        // A clock that was set back tells nothing, so the connection is asked.
        let idle = self.session.kept_at.elapsed();
        self.reused && !idle.is_ok_and(|idle| idle <= IDLE_MAX)
    }

    /// Gives it back for the next use.
    pub fn keep(mut self) {
        self.session.kept_at = SystemTime::now();
        self.shared.idle().push(self.session);
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("reused", &self.reused)
            .finish_non_exhaustive()
    }
}
