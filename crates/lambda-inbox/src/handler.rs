//! The user's code.

use crate::error::sources;
use crate::message::Message;
use lambda_inbox_store::sqlstate;
use sqlx::PgConnection;
use sqlx::postgres::PgDatabaseError;
use std::error::Error;
use std::fmt;
use std::future::Future;

/// A boxed error of any kind.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Handles one message on the connection that holds its claim.
///
/// Implemented by bare `async fn`s of this shape, and by structs of yours that write `handle` as a
/// plain `async fn`:
///
/// ```
/// use lambda_inbox::{Handler, HandlerError, Message, sqlx::PgConnection};
///
/// struct Fulfil { warehouse: i64 }
///
/// impl Handler<String> for Fulfil {
///     async fn handle(
///         &self,
///         order: &Message<String>,
///         connection: &mut PgConnection,
///     ) -> Result<(), HandlerError> {
///         # let _ = (self.warehouse, order, connection);
///         Ok(())
///     }
/// }
/// ```
///
/// What a handler does on `connection` is committed together with the message's key, after it has
/// returned `Ok`. It must not end that transaction: its own COMMIT or ROLLBACK, an SQL error that it
/// ignores and a nested transaction that it leaves open are found out and reported as failures. A
/// nested `connection.begin()` is a savepoint and is welcome.
///
/// Behind RDS Proxy or PgBouncer ([`Source::pooled`](crate::Source::pooled)) run queries with
/// `.persistent(false)`, and send no SET: no session is the handler's own.
///
/// What it does elsewhere (HTTP, other connections) happens at least once: give remote services the
/// message's [`idempotency_key`](Message::idempotency_key).
///
/// # Cancellation
/// The future is dropped when Lambda's deadline comes near. Its connection is then closed, so that
/// the server rolls back.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not handle messages with a body of type `{T}`",
    label = "not a handler",
    note = "a handler is an `async fn(&Message<{T}>, &mut PgConnection) -> Result<(), HandlerError>`, \
            passed by name, or a type that implements `Handler<{T}>`"
)]
pub trait Handler<T>: Send + Sync + 'static {
    /// Handles one message. `Ok` commits its effect; `Err` rolls it back and reports the message.
    fn handle(
        &self,
        message: &Message<T>,
        connection: &mut PgConnection,
    ) -> impl Future<Output = Result<(), HandlerError>> + Send;
}

/// The shape of a bare `async fn`. The lifetime is on the trait because the future borrows both
/// arguments, which a bound on `Fn` alone cannot say.
#[doc(hidden)]
pub trait HandlerFn<'a, T>: Send + Sync + 'static {
    type Future: Future<Output = Result<(), HandlerError>> + Send + 'a;

    fn call(&self, message: &'a Message<T>, connection: &'a mut PgConnection) -> Self::Future;
}

impl<'a, T, F, R> HandlerFn<'a, T> for F
where
    T: 'a,
    F: Fn(&'a Message<T>, &'a mut PgConnection) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), HandlerError>> + Send + 'a,
{
    type Future = R;

    fn call(&self, message: &'a Message<T>, connection: &'a mut PgConnection) -> R {
        self(message, connection)
    }
}

impl<T, F> Handler<T> for F
where
    T: Sync,
    F: for<'a> HandlerFn<'a, T>,
{
    async fn handle(
        &self,
        message: &Message<T>,
        connection: &mut PgConnection,
    ) -> Result<(), HandlerError> {
        self.call(message, connection).await
    }
}

/// Why a handler did not do its work. Any error converts into one, so `?` works on all of them, and
/// then means "try again". Where trying again is of no use, say so:
/// `.map_err(HandlerError::permanent)?`.
pub struct HandlerError {
    source: BoxError,
    permanent: bool,
}

impl HandlerError {
    /// Trying again is of no use: the message counts as poison. It is reported like any failure, and
    /// goes to the dead-letter queue after its receives are used up.
    pub fn permanent(error: impl Into<BoxError>) -> Self {
        Self {
            source: error.into(),
            permanent: true,
        }
    }

    /// The same as converting with `?`: the message is reported and comes back.
    pub fn retry(error: impl Into<BoxError>) -> Self {
        Self {
            source: error.into(),
            permanent: false,
        }
    }

    /// Whether it was made by [`HandlerError::permanent`].
    pub fn is_permanent(&self) -> bool {
        self.permanent
    }

    /// The error itself, with its sources.
    pub fn error(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.source
    }

    /// Whether a second run within the same invocation mends it: a serialisation failure, a deadlock, or
    /// [statements that the session no longer knows](Self::is_of_the_session).
    pub(crate) fn is_worth_another_run(&self) -> bool {
        self.has_sqlstate(&["40001", "40P01"]) || self.is_of_the_session()
    }

    /// A prepared statement that the server has dropped, or whose result a migration has changed. sqlx
    /// would run it again and again, so only a new session mends it.
    pub(crate) fn is_of_the_session(&self) -> bool {
        self.has_sqlstate(&["26000"]) || self.answers().any(is_outdated_plan)
    }

    fn has_sqlstate(&self, codes: &[&str]) -> bool {
        self.sqlstates().any(|code| codes.contains(&code.as_str()))
    }

    /// The server's codes in the error and its sources, outermost first.
    pub(crate) fn sqlstates(&self) -> impl Iterator<Item = String> {
        self.answers().filter_map(sqlstate)
    }

    fn answers(&self) -> impl Iterator<Item = &sqlx::Error> {
        sources(&*self.source).filter_map(|error| error.downcast_ref::<sqlx::Error>())
    }
}

/// Its SQLSTATE, 0A000, is also that of statements that will never work, and its text is translated; but
/// only one function of the server's raises it.
fn is_outdated_plan(error: &sqlx::Error) -> bool {
    let answer = error.as_database_error();
    let answer = answer.and_then(|answer| answer.try_downcast_ref::<PgDatabaseError>());
    answer.is_some_and(|answer| {
        answer.code() == "0A000" && answer.routine() == Some("RevalidateCachedQuery")
    })
}

// HandlerError is not an `Error` itself, or this conversion would collide with the reflexive one.
impl<E: Into<BoxError>> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self::retry(error)
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.source, f)
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerError")
            .field("source", &self.source)
            .field("permanent", &self.permanent)
            .finish()
    }
}
