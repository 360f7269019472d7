//! The payments function as one writes it by hand, with an inbox table of its own and nothing but
//! lambda_runtime and sqlx. It books what the real one books, with the same statements, so that whatever
//! the two differ in is the toolkit's.

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use lambda_runtime::{Error, LambdaEvent, service_fn, tracing};
use serde::Deserialize;
use sqlx::postgres::{PgConnection, PgPool, PgPoolOptions};
use sqlx::{Acquire, PgTransaction};

#[derive(Deserialize)]
struct Payment {
    payment_id: String,
    from: String,
    to: String,
    amount: i64,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let url = std::env::var("DATABASE_URL")?;
    let pool = PgPoolOptions::new().max_connections(1).connect_lazy(&url)?;
    let pool = &pool;
    lambda_runtime::run(service_fn(|event| handle(pool, event))).await
}

async fn handle(pool: &PgPool, event: LambdaEvent<SqsEvent>) -> Result<SqsBatchResponse, Error> {
    let mut connection = pool.acquire().await?;
    let mut response = SqsBatchResponse::default();
    for record in event.payload.records {
        let id = record.message_id.clone().ok_or("a record without an id")?;
        if let Err(error) = process(&mut connection, &id, &record).await {
            tracing::warn!(%error, "the message comes back");
            response.add_failure(id);
        }
    }
    Ok(response)
}

async fn process(conn: &mut PgConnection, id: &str, record: &SqsMessage) -> Result<(), Error> {
    let payment: Payment = serde_json::from_str(record.body.as_deref().unwrap_or_default())?;
    let mut transaction = conn.begin().await?;
    let claimed = sqlx::query(
        "INSERT INTO inbox (consumer, message_id) VALUES ('payments', $1) ON CONFLICT DO NOTHING",
    )
    .bind(id)
    .execute(&mut *transaction)
    .await?;
    if claimed.rows_affected() == 1 {
        book(&mut transaction, &payment).await?;
    }
    transaction.commit().await?;
    Ok(())
}

async fn book(transaction: &mut PgTransaction<'_>, payment: &Payment) -> Result<(), Error> {
    let mut changes = [
        (&payment.from, -payment.amount),
        (&payment.to, payment.amount),
    ];
    changes.sort();
    for (account, change) in changes {
        let changed = sqlx::query(
            "UPDATE account SET balance = balance + $1 WHERE id = $2 AND balance + $1 >= 0",
        )
        .bind(change)
        .bind(account)
        .execute(&mut **transaction)
        .await?;
        if changed.rows_affected() == 0 {
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
    .execute(&mut **transaction)
    .await?;
    Ok(())
}
