//! A handler that commits by itself leaves a claim without proof of its effect. The claim is taken
//! back, so that the message runs again: twice is what a handler that ends the transaction gets, not
//! at all is what nobody must get.

use crate::begin::Limits;
use crate::claim::Ticket;
use crate::connection::Slot;
use crate::error::{Stage, StoreError};
use tokio::time::timeout_at;

/// A claim that may have been committed by someone other than [`Claim::settle`].
///
/// [`Claim::settle`]: crate::Claim::settle
#[derive(Debug)]
#[must_use = "a claim without proof of its effect stays until it is withdrawn"]
pub struct Withdrawal {
    ticket: Ticket,
}

impl Withdrawal {
    pub(crate) fn new(ticket: Ticket) -> Self {
        Self { ticket }
    }

    /// Looks, on a fresh connection, whether this very transaction committed the claim, and if so
    /// deletes its rows. Returns whether it did. A row of another delivery is never touched.
    ///
    /// # Errors
    /// [`StoreError`]; the claim, if there is one, is still there.
    pub async fn run(self, slot: &Slot, limits: &Limits) -> Result<bool, StoreError> {
        let connection = slot.fresh_connection(limits.until).await?;
        let mut transaction = connection.begin(limits).await?;
        let deleted = timeout_at(limits.until, async {
            let Ticket {
                entries,
                transaction_id,
            } = &self.ticket;
            let consumer = entries.first().map(|entry| entry.consumer.as_str());
            let sources: Vec<&str> = entries.iter().map(|entry| entry.key.source()).collect();
            let ids: Vec<&str> = entries.iter().map(|entry| entry.key.message_id()).collect();
            let shared = &transaction.connection.shared;
            let pg = &mut transaction.connection.session.pg;
            let deleted = sqlx::query(shared.statements.withdraw())
                .bind(consumer)
                .bind(sources)
                .bind(ids)
                .bind(transaction_id.0.to_string())
                .execute(&mut *pg)
                .await?
                .rows_affected();
            sqlx::raw_sql("COMMIT").execute(pg).await?;
            Ok(deleted > 0)
        })
        .await
        .map_err(|_| StoreError::no_answer(Stage::Withdraw))?
        .map_err(|error| StoreError::new(Stage::Withdraw, error))?;
        transaction.connection.keep();
        Ok(deleted)
    }
}
