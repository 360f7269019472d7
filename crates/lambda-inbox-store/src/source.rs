//! Where connections come from. A password in a secret is changed while a function is warm, and a token
//! lasts for minutes: so the store asks somebody for a connection, instead of keeping what it takes to
//! open one.

use crate::error::{Class, Stage, class_of};
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection};
use std::any::Any;
use std::error::Error;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use tokio::time::Instant;

/// A connection being opened.
pub type Connecting<'a> = Pin<Box<dyn Future<Output = Result<Opened, SourceError>> + Send + 'a>>;

/// Opens connections to one database.
///
/// [`PgConnectOptions`] are the simplest source: the same password for ever.
pub trait ConnectionSource: fmt::Debug + Send + Sync + 'static {
    /// Opens a new connection. The caller gives up at `until`; a source that knows what kept it waiting
    /// should say so by then.
    ///
    /// The future must be cancel safe: dropping it closes what it has opened.
    fn connect(&self, until: Instant) -> Connecting<'_>;

    /// Forgets passwords, tokens and whatever else must not outlive the process's environment, as before
    /// a snapshot of it is taken. Nothing by default.
    fn forget(&self) {}

    /// Whether the connections go through RDS Proxy, or PgBouncer in transaction mode. The inbox then keeps
    /// nothing in a session. No by default.
    fn is_pooled(&self) -> bool {
        false
    }
}

impl ConnectionSource for PgConnectOptions {
    fn connect(&self, _until: Instant) -> Connecting<'_> {
        Box::pin(async {
            let connection = PgConnection::connect_with(self).await;
            connection.map(Opened::new).map_err(SourceError::database)
        })
    }
}

/// A new connection, and what has to live and die with it. Derefs to the connection.
#[must_use = "dropping it closes the connection"]
pub struct Opened {
    // In this order: the guard goes when the connection is gone.
    connection: PgConnection,
    guard: Option<Guard>,
}

pub(crate) type Guard = Box<dyn Any + Send + Sync>;

impl Opened {
    /// A connection by itself.
    pub fn new(connection: PgConnection) -> Self {
        Self {
            connection,
            guard: None,
        }
    }

    /// A connection that works as long as `guard` lives, such as one through a tunnel. The guard is
    /// dropped right after the connection, and what is open on the server's side must end with that
    /// drop: a transaction must not survive the connection.
    pub fn guarded(connection: PgConnection, guard: impl Any + Send + Sync) -> Self {
        Self {
            connection,
            guard: Some(Box::new(guard)),
        }
    }

    pub(crate) fn into_parts(self) -> (PgConnection, Option<Guard>) {
        (self.connection, self.guard)
    }
}

impl Deref for Opened {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for Opened {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").finish_non_exhaustive()
    }
}

/// A source opened no connection. `Display` is the text of what it was made from.
#[derive(Debug)]
pub struct SourceError {
    class: Class,
    cause: Box<dyn Error + Send + Sync>,
}

impl SourceError {
    /// The database's answer, or the lack of one; what can be done about it follows from the SQLSTATE.
    pub fn database(error: sqlx::Error) -> Self {
        Self {
            class: class_of(Stage::Connect, &error),
            cause: Box::new(error),
        }
    }

    /// Something on the way did not answer, the database or what keeps its password: it may next time.
    pub fn unreachable(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            class: Class::Connection,
            cause: cause.into(),
        }
    }

    /// Somebody has to mend something; the text of `cause` should name the fix.
    pub fn setup(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            class: Class::Setup,
            cause: cause.into(),
        }
    }

    /// What can be done about it.
    pub fn class(&self) -> Class {
        self.class
    }

    pub(crate) fn into_cause(self) -> Box<dyn Error + Send + Sync> {
        self.cause
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl Error for SourceError {
    // It stands for its cause, whose text it has.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.source()
    }
}
