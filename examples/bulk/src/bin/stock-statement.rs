//! The consumer of stock-bulk as one SQL statement. Claim and effect go to the database together, so a
//! batch of ten or of ten thousand sales is one round trip.
//!
//! The statement says what a sale is, and no more; a trigger on `sale` decrements the stock
//! (`trigger.sql`). It could have been an UPDATE of `stock` alone, without a trigger. But an UPDATE
//! finds no row for a sale of an unknown item, and is content: the sale would count as processed and be
//! lost. An INSERT into a table with constraints refuses what is wrong:
//!
//! | the sale | refused by |
//! |---|---|
//! | is not JSON, or has a NUL in a text, which `jsonb` does not take | the inbox, before the statement |
//! | lacks a field | NOT NULL |
//! | is of an unknown item | the foreign key |
//! | has a quantity that is not positive, or no number | CHECK, or the cast |
//!
//! A batch that is refused is halved again and again, until what is wrong stands alone and everything
//! else has committed. A sale that was refused comes back, and goes to the dead-letter queue in the end.
//!
//! Needs `schema.sql` and `trigger.sql`, a standard queue, and a mapping with
//! `ReportBatchItemFailures`, a large batch size (up to 10,000) and a batching window. Its name is that
//! of stock-bulk's consumer, so each knows what the other has booked.

use lambda_inbox::Inbox;
use lambda_inbox::emf::Emf;
use lambda_runtime::tower::Layer;

const BOOK: &str = "
    INSERT INTO sale (sale_id, item, quantity)
    SELECT body ->> 'sale_id', body ->> 'item', (body ->> 'quantity')::bigint FROM fresh";

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    let inbox = Inbox::from_env("stock")?;
    let metrics = Emf::install()?;
    lambda_inbox::run(metrics.layer(inbox.statement(BOOK)?)).await
}
