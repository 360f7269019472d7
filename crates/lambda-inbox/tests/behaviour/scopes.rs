//! The four ways to run a batch, each with one row in `effect` for a message: for tests of what must hold
//! in all of them.

use lambda_inbox::sqlx::{self, PgConnection};
use lambda_inbox::{BulkError, HandlerError, InboxBuilder, InboxService, Message, Scope};
use serde_json::Value;

type Serve = fn(InboxBuilder) -> InboxService;

pub(crate) const SCOPES: [(&str, Serve); 4] = [
    ("per message", |inbox| {
        inbox.build().unwrap().handler(one_effect)
    }),
    ("per batch", |inbox| {
        let inbox = inbox.scope(Scope::PerBatch).build().unwrap();
        inbox.handler(one_effect)
    }),
    ("bulk", |inbox| {
        inbox.build().unwrap().bulk_handler(all_effects)
    }),
    ("statement", |inbox| {
        let sql = "INSERT INTO effect (message_id) SELECT message_id FROM fresh";
        inbox.build().unwrap().statement(sql).unwrap()
    }),
];

// Not persistent, for the pooled profile.
pub(crate) async fn one_effect(
    message: &Message<Value>,
    conn: &mut PgConnection,
) -> Result<(), HandlerError> {
    sqlx::query("INSERT INTO effect (message_id) VALUES ($1)")
        .bind(message.message_id())
        .persistent(false)
        .execute(conn)
        .await?;
    Ok(())
}

async fn all_effects(
    messages: &[Message<Value>],
    conn: &mut PgConnection,
) -> Result<(), BulkError> {
    let ids: Vec<&str> = messages.iter().map(Message::message_id).collect();
    sqlx::query("INSERT INTO effect (message_id) SELECT unnest($1::text[])")
        .bind(ids)
        .persistent(false)
        .execute(conn)
        .await?;
    Ok(())
}
