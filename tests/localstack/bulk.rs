//! Whole batches at once, in both ways that the example shows.

use crate::bank::database;
use lambda_inbox_tests::{Emulator, Function, Queue, QueueSettings, eventually};
use serde_json::json;

const SALES: i64 = 40;
const OPENING_STOCK: i64 = 1_000;

#[tokio::test]
async fn a_bulk_handler_books_all_but_the_poison() {
    all_but_the_poison("stock-bulk", "").await;
}

#[tokio::test]
async fn a_statement_books_all_but_the_poison() {
    all_but_the_poison(
        "stock-statement",
        include_str!("../../examples/bulk/trigger.sql"),
    )
    .await;
}

async fn all_but_the_poison(binary: &str, more: &'static str) {
    let emulator = Emulator::from_env();
    let (database, mut connection) = database(include_str!("../../examples/bulk/schema.sql")).await;
    sqlx::raw_sql(more).execute(&mut connection).await.unwrap();
    sqlx::query("INSERT INTO stock (item, quantity) VALUES ('bolt', $1)")
        .bind(OPENING_STOCK)
        .execute(&mut connection)
        .await
        .unwrap();
    let queue = Queue::create(&emulator, binary, QueueSettings::default()).await;
    let function = Function::builder(&emulator, binary)
        .env("DATABASE_URL", database.url())
        .deploy()
        .await;
    let sale = |id: &str, item: &str, quantity: i64| {
        json!({ "sale_id": id, "item": item, "quantity": quantity }).to_string()
    };
    let poison = [
        sale("unknown", "nut", 1),
        sale("negative", "bolt", -1),
        "{}".to_owned(),
    ];
    for body in &poison {
        queue.send(body).await;
    }
    for number in 0..SALES {
        queue
            .send(&sale(&format!("sale-{number}"), "bolt", 2))
            .await;
    }
    function.map(&queue, 100).await;

    let expected = (SALES, SALES, OPENING_STOCK - 2 * SALES);
    let mut look = async || -> (i64, i64, i64) {
        sqlx::query_as(
            "SELECT (SELECT count(*) FROM sale), (SELECT count(DISTINCT sale_id) FROM sale), \
             (SELECT quantity FROM stock)",
        )
        .fetch_one(&mut connection)
        .await
        .unwrap()
    };
    eventually("sales, different ones, stock", expected, &mut look).await;
    queue.assert_dead_letters(poison).await;
    queue.wait_until_empty().await;
    assert_eq!(look().await, expected);
    function.assert_counted("stock", SALES.unsigned_abs()).await;
}
