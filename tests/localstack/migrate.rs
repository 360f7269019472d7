//! The function that a deployment invokes before the consumer gets its first message.

use crate::bank::id;
use crate::bank::payment;
use lambda_inbox_testkit::postgres::TestDatabase;
use lambda_inbox_tests::{Emulator, Function, Queue, QueueSettings, eventually};
use serde_json::json;

#[tokio::test]
async fn an_invocation_creates_the_tables_and_a_second_one_changes_nothing() {
    let emulator = Emulator::from_env();
    let database = TestDatabase::create().await.unwrap();
    let mut connection = database.connect().await.unwrap();
    sqlx::raw_sql(include_str!("../../examples/payments/schema.sql"))
        .execute(&mut connection)
        .await
        .unwrap();
    sqlx::raw_sql("INSERT INTO account VALUES ('till', 1000), ('shop-1', 0)")
        .execute(&mut connection)
        .await
        .unwrap();
    let migrate = Function::builder(&emulator, "lambda-inbox-migrate")
        .env("DATABASE_URL", database.url())
        .deploy()
        .await;
    let first = migrate.invoke(&json!({})).await.unwrap();
    assert_eq!(first["before"], 0, "{first}");
    let second = migrate.invoke(&json!({})).await.unwrap();
    assert_eq!(second["before"], first["after"], "{second}");
    assert_eq!(second["after"], first["after"], "{second}");

    let queue = Queue::create(&emulator, "payments", QueueSettings::default()).await;
    let consumer = Function::builder(&emulator, "payments")
        .env("DATABASE_URL", database.url())
        .deploy()
        .await;
    queue.send(&payment(1)).await;
    consumer.map(&queue, 10).await;
    eventually("payments", vec![id(1)], async || {
        sqlx::query_scalar("SELECT payment_id FROM payment")
            .fetch_all(&mut connection)
            .await
            .unwrap()
    })
    .await;
}
