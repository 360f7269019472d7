//! The user's code for a whole batch.

use crate::handler::{BoxError, HandlerError};
use crate::message::Message;
use sqlx::PgConnection;
use std::future::Future;

/// Handles all messages of a batch that were won, on the connection that holds their claims. For
/// standard queues, whose batches may have up to 10,000 messages.
///
/// Implemented by bare `async fn`s of this shape, and by structs of yours:
///
/// ```
/// use lambda_inbox::{BulkError, Message, sqlx::{self, PgConnection}};
///
/// #[derive(serde::Deserialize)]
/// struct Sale { item: i64, quantity: i64 }
///
/// async fn decrement(
///     sales: &[Message<Sale>],
///     connection: &mut PgConnection,
/// ) -> Result<(), BulkError> {
///     let items: Vec<i64> = sales.iter().map(|sale| sale.body.item).collect();
///     let quantities: Vec<i64> = sales.iter().map(|sale| sale.body.quantity).collect();
///     // Summed first: an UPDATE touches each row once, however many sales name it.
///     sqlx::query(
///         "UPDATE stock SET quantity = stock.quantity - sold.quantity \
///          FROM (SELECT item, sum(quantity) AS quantity \
///                FROM unnest($1::bigint[], $2::bigint[]) AS s (item, quantity) GROUP BY item) AS sold \
///          WHERE stock.item = sold.item",
///     )
///     .bind(items)
///     .bind(quantities)
///     .execute(connection)
///     .await?;
///     Ok(())
/// }
/// ```
///
/// `messages` is never empty, holds no duplicates, and is in the order of arrival. All its effects commit
/// together with all its keys. The rules for the transaction, and what cancelling does, are those of
/// [`Handler`](crate::Handler).
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not handle batches of messages with a body of type `{T}`",
    label = "not a bulk handler",
    note = "a bulk handler is an `async fn(&[Message<{T}>], &mut PgConnection) -> Result<(), BulkError>`, \
            passed by name, or a type that implements `BulkHandler<{T}>`"
)]
pub trait BulkHandler<T>: Send + Sync + 'static {
    /// Handles the messages. `Err` rolls all of them back; see [`BulkError`] for what runs again.
    fn handle(
        &self,
        messages: &[Message<T>],
        connection: &mut PgConnection,
    ) -> impl Future<Output = Result<(), BulkError>> + Send;
}

/// The shape of a bare `async fn`; see [`HandlerFn`](crate::handler::HandlerFn) for the lifetime.
#[doc(hidden)]
pub trait BulkHandlerFn<'a, T>: Send + Sync + 'static {
    type Future: Future<Output = Result<(), BulkError>> + Send + 'a;

    fn call(&self, messages: &'a [Message<T>], connection: &'a mut PgConnection) -> Self::Future;
}

impl<'a, T, F, R> BulkHandlerFn<'a, T> for F
where
    T: 'a,
    F: Fn(&'a [Message<T>], &'a mut PgConnection) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), BulkError>> + Send + 'a,
{
    type Future = R;

    fn call(&self, messages: &'a [Message<T>], connection: &'a mut PgConnection) -> R {
        self(messages, connection)
    }
}

impl<T, F> BulkHandler<T> for F
where
    T: Sync,
    F: for<'a> BulkHandlerFn<'a, T>,
{
    async fn handle(
        &self,
        messages: &[Message<T>],
        connection: &mut PgConnection,
    ) -> Result<(), BulkError> {
        self.call(messages, connection).await
    }
}

/// Why a batch was not handled. Any error converts into [`BulkError::Whole`].
#[derive(Debug)]
#[non_exhaustive]
pub enum BulkError {
    /// The batch as a whole. It is halved and runs again, at last message by message, so that the
    /// messages that can be handled are.
    Whole(HandlerError),
    /// These messages, by their SQS MessageIds. They are reported, and the others run again without
    /// them.
    Messages(Vec<(String, HandlerError)>),
}

impl BulkError {
    /// Names the messages that failed, for example those whose account does not exist.
    pub fn messages<'m, T: 'm>(
        failed: impl IntoIterator<Item = (&'m Message<T>, HandlerError)>,
    ) -> Self {
        let named = failed.into_iter();
        Self::Messages(
            named
                .map(|(m, error)| (m.message_id().to_owned(), error))
                .collect(),
        )
    }
}

// As with HandlerError: an `Error` itself could not have this conversion.
impl<E: Into<BoxError>> From<E> for BulkError {
    fn from(error: E) -> Self {
        Self::Whole(HandlerError::retry(error))
    }
}
