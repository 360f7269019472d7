//! What can keep a test from getting its database, said so that the reader knows what to do about
//! it.

use std::io;

/// Why there is no test database, or why a question to it failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PostgresError {
    /// Neither a server nor the binaries to start one.
    #[error(
        "no PostgreSQL to test with: no working initdb and postgres (version {} or later) in PATH \
         or in the usual places; install it (Debian, Ubuntu: apt-get install postgresql; Fedora: \
         dnf install postgresql-server; macOS: brew install postgresql), or set DATABASE_URL to a \
         server whose role may create databases",
        super::binaries::MAJOR_MIN
    )]
    NotInstalled,
    /// The process runs as root, as which PostgreSQL refuses to run, and no other user was found.
    #[error(
        "PostgreSQL does not run as root and there is no user postgres or nobody to run it as; \
         create one, or set DATABASE_URL"
    )]
    NoAccount,
    /// There is no pooler to start.
    #[error(
        "no pgbouncer in PATH or in the usual places; install it (Debian, Ubuntu: apt-get install \
         pgbouncer; Fedora: dnf install pgbouncer; macOS: brew install pgbouncer)"
    )]
    NoPgBouncer,
    /// The shell that supervises a private cluster could not be started or did not answer.
    #[error("could not start the supervisor of a private PostgreSQL cluster")]
    Supervisor(#[source] io::Error),
    /// The private server ended, or accepted no connection in time.
    #[error("PostgreSQL did not start: {reason}; its log ends with:\n{log}")]
    NotStarted {
        /// What was seen of it.
        reason: &'static str,
        /// The end of the server's log.
        log: String,
    },
    /// `DATABASE_URL` is set, but not to a Postgres URL.
    #[error("DATABASE_URL is not a Postgres URL")]
    Url(#[source] sqlx::Error),
    /// The server does not let the role in, or is not there.
    #[error("cannot connect to the test server at {address}")]
    Connect {
        /// Host and port.
        address: String,
        /// The driver's error.
        source: sqlx::Error,
    },
    /// The role may not create what the test needs.
    #[error(
        "role {role:?} may not create databases and roles; as a superuser run ALTER ROLE {role:?} \
         CREATEDB CREATEROLE, or let DATABASE_URL name a role that may, or unset it to test on a \
         private cluster"
    )]
    MayNotCreate {
        /// The role of `DATABASE_URL`.
        role: String,
        /// The server's answer.
        source: sqlx::Error,
    },
    /// The role cannot see what other roles' backends do, so "no open transaction" would prove
    /// nothing.
    #[error(
        "role {role:?} cannot see the transactions of others; as a superuser run GRANT \
         pg_read_all_stats TO {role:?}"
    )]
    MayNotSee {
        /// The role of `DATABASE_URL`.
        role: String,
    },
    /// Backends that were told to end were still there after the wait.
    #[error("{count} backends are still there after being terminated")]
    StillThere {
        /// How many.
        count: i64,
    },
    /// Any other statement of the toolkit failed.
    #[error("could not {action}")]
    Statement {
        /// What it was for.
        action: &'static str,
        /// The driver's error.
        source: sqlx::Error,
    },
}

impl PostgresError {
    pub(super) fn statement(action: &'static str) -> impl FnOnce(sqlx::Error) -> Self {
        move |source| Self::Statement { action, source }
    }
}
