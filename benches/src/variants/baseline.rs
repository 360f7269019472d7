//! What one writes without a toolkit, and what everything is compared with: a loop on one connection
//! that is held, with a transaction for each message. Four round trips, three for a duplicate.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::Connection;
use sqlx::postgres::{PgConnectOptions, PgConnection};

use crate::arena::Arena;
use crate::delivery::{Delivery, Message};
use crate::error::BenchError;
use crate::variant::Variant;

/// As many as Lambda delivers at once by default.
const BATCH: usize = 10;

/// Connects with its first delivery.
pub(crate) struct Loop {
    options: PgConnectOptions,
    connection: Option<PgConnection>,
}

impl Loop {
    pub(crate) fn new(arena: &Arena) -> Self {
        Self {
            options: arena.options(),
            connection: None,
        }
    }
}

impl Variant for Loop {
    fn batch(&self) -> usize {
        BATCH
    }

    fn run(&mut self, delivery: Delivery) -> BoxFuture<'_, Result<(), BenchError>> {
        async move {
            let mut connection = match self.connection.take() {
                Some(connection) => connection,
                None => PgConnection::connect_with(&self.options).await?,
            };
            for message in &delivery.messages {
                process(&mut connection, message).await?;
            }
            self.connection = Some(connection);
            Ok(())
        }
        .boxed()
    }
}

async fn process(connection: &mut PgConnection, message: &Message) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let claimed = sqlx::query(
        "INSERT INTO inbox (consumer, message_id) VALUES ('bench', $1) ON CONFLICT DO NOTHING",
    )
    .bind(&message.id)
    .execute(&mut *transaction)
    .await?;
    if claimed.rows_affected() == 1 {
        sqlx::query("UPDATE account SET balance = balance + 1 WHERE id = $1")
            .bind(message.account)
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await
}
