//! A handler that commits by itself leaves a claim without proof of its effect. The claim is taken
//! back, so that the message runs again: twice is what a handler that ends the transaction gets, not
//! at all is what nobody must get.

use crate::begin::Limits;
use crate::claim::{Ticket, epoch_milliseconds};
use crate::connection::Slot;
use crate::error::{Stage, StoreError};
use crate::literal::Arguments;
use sqlx::AssertSqlSafe;
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
            let keys = || entries.iter().map(|entry| &entry.key);
            let arguments = Arguments::default()
                .text(consumer)
                .texts(keys().map(|key| Some(key.source())))
                .texts(keys().map(|key| Some(key.message_id())))
                .numbers(
                    entries
                        .iter()
                        .map(|entry| entry.sent_at.and_then(epoch_milliseconds)),
                )
                .text(Some(&transaction_id.0.to_string()));
            let connection = &mut transaction.connection;
            let sql = connection.shared.statements.withdraw.with(&arguments);
            let sql = AssertSqlSafe(format!("{sql}; COMMIT"));
            let deleted = sqlx::raw_sql(sql)
                .execute(&mut connection.session.pg)
                .await?
                .rows_affected();
            Ok(deleted > 0)
        })
        .await
        .map_err(|_| StoreError::no_answer(Stage::Withdraw))?
        .map_err(|error| StoreError::new(Stage::Withdraw, error))?;
        transaction.connection.keep();
        Ok(deleted)
    }
}
