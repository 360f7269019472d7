//! Moves money between accounts. SQS delivers a payment at least once; it is booked exactly once.

use lambda_inbox::emf::Emf;
use lambda_inbox::sqlx::{self, PgConnection};
use lambda_inbox::{HandlerError, Inbox, Message};
use lambda_runtime::tower::Layer;
use serde::Deserialize;

/// The body of a message.
#[derive(Deserialize)]
struct Payment {
    payment_id: String,
    from: String,
    to: String,
    /// In cents.
    amount: i64,
}

/// All of it commits together with the message's key, or none of it does.
async fn book(message: &Message<Payment>, conn: &mut PgConnection) -> Result<(), HandlerError> {
    let payment = &message.body;
    if payment.amount <= 0 {
        return Err(HandlerError::permanent("the amount is not positive"));
    }
    if payment.from == payment.to {
        return Err(HandlerError::permanent("both accounts are the same"));
    }

    let mut changes = [
        (&payment.from, -payment.amount),
        (&payment.to, payment.amount),
    ];
    // Locked in one order by everyone, so that payments in opposite directions cannot deadlock.
    changes.sort();
    for (account, change) in changes {
        let changed = sqlx::query(
            "UPDATE account SET balance = balance + $1 WHERE id = $2 AND balance + $1 >= 0",
        )
        .bind(change)
        .bind(account)
        .execute(&mut *conn)
        .await?;
        if changed.rows_affected() == 0 {
            // Tomorrow the account may be open or hold enough, so the message comes back.
            return Err("an account is not open or does not hold enough".into());
        }
    }

    sqlx::query(
        "INSERT INTO payment (payment_id, from_account, to_account, amount) VALUES ($1, $2, $3, $4)",
    )
    .bind(&payment.payment_id)
    .bind(&payment.from)
    .bind(&payment.to)
    .bind(payment.amount)
    .execute(&mut *conn)
    .await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    let inbox = Inbox::from_env("payments")?;
    let metrics = Emf::install()?;
    lambda_inbox::run(metrics.layer(inbox.handler(book))).await
}
