//! Claim and effect as one statement, which is its own transaction.

use lambda_inbox::Inbox;

use crate::arena::Arena;
use crate::error::BenchError;
use crate::variants::Function;

/// Counted first: an UPDATE touches each row once.
const CREDIT: &str = "
    UPDATE account SET balance = balance + credit.amount
    FROM (SELECT (body ->> 'account')::bigint AS id, count(*) AS amount FROM fresh GROUP BY 1) AS credit
    WHERE account.id = credit.id";

pub(crate) fn statement(arena: &Arena, batch: usize) -> Result<Function, BenchError> {
    let inbox = Inbox::builder("bench", arena.options()).build()?;
    let service = inbox.statement(CREDIT);
    let service = service.map_err(|error| BenchError::Statement(error.into()))?;
    Ok(Function::new(batch, service))
}
