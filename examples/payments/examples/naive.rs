//! The same consumer as people write it today, without an inbox: a transaction for each record and a
//! partial batch response. It is correct until a message is delivered twice, and SQS delivers messages
//! twice. The demo with `--no-inbox` shows what then happens.

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde::Deserialize;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

#[derive(Deserialize)]
struct Payment {
    payment_id: String,
    from: String,
    to: String,
    amount: i64,
}

async fn handle(pool: &PgPool, event: LambdaEvent<SqsEvent>) -> Result<SqsBatchResponse, Error> {
    let mut response = SqsBatchResponse::default();
    for record in event.payload.records {
        if let Err(error) = book(pool, &record).await {
            tracing::warn!(%error, "payment failed");
            response.add_failure(record.message_id.unwrap_or_default());
        }
    }
    Ok(response)
}

async fn book(pool: &PgPool, record: &SqsMessage) -> Result<(), Error> {
    let payment: Payment = serde_json::from_str(record.body.as_deref().unwrap_or_default())?;
    if payment.amount <= 0 || payment.from == payment.to {
        return Err("the payment makes no sense".into());
    }
    let mut transaction = pool.begin().await?;
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
        .execute(&mut *transaction)
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
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    lambda_runtime::tracing::init_default_subscriber();
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .connect_lazy(&std::env::var("DATABASE_URL")?)?;
    let pool = &pool;
    lambda_runtime::run(service_fn(|event| handle(pool, event))).await
}
