//! One transaction for a batch, and a handler that takes all of its messages at once.

use lambda_inbox::sqlx::{self, PgConnection};
use lambda_inbox::{BulkError, Inbox, Message};

use crate::arena::Arena;
use crate::error::BenchError;
use crate::variants::{Credit, Function};

pub(crate) fn bulk(arena: &Arena, batch: usize) -> Result<Function, BenchError> {
    let inbox = Inbox::builder("bench", arena.options()).build()?;
    Ok(Function::new(batch, inbox.bulk_handler(credit_all)))
}

/// Counted first: an UPDATE touches each row once.
async fn credit_all(
    messages: &[Message<Credit>],
    connection: &mut PgConnection,
) -> Result<(), BulkError> {
    let accounts: Vec<i64> = messages
        .iter()
        .map(|message| message.body.account)
        .collect();
    sqlx::query(
        "UPDATE account SET balance = balance + credit.amount \
         FROM (SELECT id, count(*) AS amount FROM unnest($1::bigint[]) AS id GROUP BY id) AS credit \
         WHERE account.id = credit.id",
    )
    .bind(accounts)
    .execute(connection)
    .await?;
    Ok(())
}
