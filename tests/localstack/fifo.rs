//! A FIFO queue: what cannot be carried out yet holds its own group up, and no other.

use crate::bank::database;
use lambda_inbox_tests::{Emulator, Function, Queue, QueueSettings, eventually};
use serde_json::json;
use sqlx::PgConnection;

#[tokio::test]
async fn a_failed_command_holds_up_its_group_alone_and_order_is_kept() {
    let emulator = Emulator::from_env();
    let (database, mut connection) = database(include_str!("../../examples/fifo/schema.sql")).await;
    let settings = QueueSettings {
        max_receive_count: 50,
        fifo: true,
        ..QueueSettings::default()
    };
    let queue = Queue::create(&emulator, "commands", settings).await;
    let function = Function::builder(&emulator, "fifo")
        .env("DATABASE_URL", database.url())
        .deploy()
        .await;
    function.map(&queue, 10).await;
    for account in ["held", "free"] {
        send(&queue, account, 1, json!({ "action": "open" })).await;
    }
    assert_carried_out(&mut connection, "held", &[1]).await;
    assert_carried_out(&mut connection, "free", &[1]).await;
    queue.wait_until_empty().await;
    hold(&mut connection, true).await;

    for account in ["held", "free"] {
        for number in 2..=4 {
            send(
                &queue,
                account,
                number,
                json!({ "action": "deposit", "amount": 100 }),
            )
            .await;
        }
        send(
            &queue,
            account,
            5,
            json!({ "action": "withdraw", "amount": 300 }),
        )
        .await;
        send(&queue, account, 6, json!({ "action": "close" })).await;
    }
    assert_carried_out(&mut connection, "free", &[1, 2, 3, 4, 5, 6]).await;
    eventually("commands that wait", 5, async || queue.depth().await).await;
    assert_carried_out(&mut connection, "held", &[1]).await;

    hold(&mut connection, false).await;
    assert_carried_out(&mut connection, "held", &[1, 2, 3, 4, 5, 6]).await;
    queue.wait_until_empty().await;
    queue.assert_dead_letters([]).await;
    function.assert_counted("account-commands", 12).await;
}

async fn send(queue: &Queue, account: &str, number: i64, mut command: serde_json::Value) {
    command["account"] = account.into();
    command["number"] = number.into();
    let input = json!({
        "MessageBody": command.to_string(), "MessageGroupId": account,
        "MessageDeduplicationId": format!("{account}-{number}"),
    });
    queue.send_with(input).await;
}

/// Returns when these commands have been carried out, each once and in this order, and no other.
async fn assert_carried_out(connection: &mut PgConnection, account: &str, numbers: &[i64]) {
    eventually("commands", numbers.to_vec(), async || {
        sqlx::query_scalar("SELECT number FROM account_entry WHERE account = $1 ORDER BY seq")
            .bind(account)
            .fetch_all(&mut *connection)
            .await
            .unwrap()
    })
    .await;
}

async fn hold(connection: &mut PgConnection, on: bool) {
    sqlx::query("UPDATE account SET on_hold = $1 WHERE id = 'held'")
        .bind(on)
        .execute(connection)
        .await
        .unwrap();
}
