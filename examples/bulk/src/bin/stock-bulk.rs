//! Sales come in by the thousand and decrement the stock. This function takes a whole batch at once:
//! one claim, the three statements below and one COMMIT, however many sales there are.
//!
//! All sales of a batch commit together, and yet none takes the others with it:
//!
//! | the sale | is found out | costs |
//! |---|---|---|
//! | cannot be read | by the inbox, before the handler runs | nothing |
//! | is of an unknown item | by the handler, which names it ([`BulkError::messages`]) | one more run, without it |
//! | is refused by the database, such as one of a negative quantity | by the inbox, which halves the batch again and again | about twice the logarithm of the batch's size |
//!
//! So whatever is to be expected is best named. Each of them is reported, comes back, and goes to the
//! dead-letter queue in the end.
//!
//! Needs `schema.sql`, a standard queue, and a mapping with `ReportBatchItemFailures`, a large batch
//! size (up to 10,000) and a batching window. stock-statement is the same consumer in one statement.

use lambda_inbox::emf::Emf;
use lambda_inbox::sqlx::{self, PgConnection};
use lambda_inbox::{BulkError, HandlerError, Inbox, Message};
use lambda_runtime::tower::Layer;
use serde::Deserialize;
use std::collections::HashSet;

/// The body of a message.
#[derive(Deserialize)]
struct Sale {
    sale_id: String,
    item: String,
    quantity: i64,
}

/// All of it commits together with the messages' keys, or none of it does.
async fn book(sales: &[Message<Sale>], conn: &mut PgConnection) -> Result<(), BulkError> {
    let ids: Vec<&str> = sales.iter().map(|it| it.body.sale_id.as_str()).collect();
    let items: Vec<&str> = sales.iter().map(|it| it.body.item.as_str()).collect();
    let quantities: Vec<i64> = sales.iter().map(|it| it.body.quantity).collect();

    // Locked in one order by everyone, so that batches that overlap cannot deadlock.
    let known: Vec<String> = sqlx::query_scalar(
        "SELECT item FROM stock WHERE item = ANY ($1) ORDER BY item FOR NO KEY UPDATE",
    )
    .bind(&items)
    .fetch_all(&mut *conn)
    .await?;
    let known: HashSet<String> = known.into_iter().collect();
    let unknown: Vec<_> = sales
        .iter()
        .filter(|sale| !known.contains(&sale.body.item))
        // Tomorrow the item may be there, so the sale comes back.
        .map(|sale| (sale, HandlerError::retry("the item is not in stock")))
        .collect();
    if !unknown.is_empty() {
        return Err(BulkError::messages(unknown));
    }

    sqlx::query(
        "INSERT INTO sale (sale_id, item, quantity) \
         SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])",
    )
    .bind(&ids)
    .bind(&items)
    .bind(&quantities)
    .execute(&mut *conn)
    .await?;

    // Summed first: an UPDATE touches each row once, however many sales name it.
    sqlx::query(
        "UPDATE stock SET quantity = stock.quantity - sold.quantity \
         FROM (SELECT item, sum(quantity) AS quantity \
               FROM unnest($1::text[], $2::bigint[]) AS sale (item, quantity) \
               GROUP BY item) AS sold \
         WHERE stock.item = sold.item",
    )
    .bind(&items)
    .bind(&quantities)
    .execute(&mut *conn)
    .await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    let inbox = Inbox::from_env("stock")?;
    let metrics = Emf::install()?;
    lambda_inbox::run(metrics.layer(inbox.bulk_handler(book))).await
}
