//! The handler of single messages, with the same effect as the loop.

use lambda_inbox::sqlx::{self, PgConnection};
use lambda_inbox::{HandlerError, Message};
use serde::Deserialize;

#[derive(Deserialize)]
pub(crate) struct Credit {
    pub(crate) account: i64,
}

pub(crate) async fn credit(
    message: &Message<Credit>,
    connection: &mut PgConnection,
) -> Result<(), HandlerError> {
    sqlx::query("UPDATE account SET balance = balance + 1 WHERE id = $1")
        .bind(message.body.account)
        .execute(connection)
        .await?;
    Ok(())
}
