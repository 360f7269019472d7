//! More functions than the database has connections for.

use crate::bank::{Bank, payment};
use lambda_inbox_tests::{Emulator, Queue, QueueSettings, eventually};
use sqlx::{AssertSqlSafe, ConnectOptions};
use std::time::Duration;

const CONNECTIONS: u32 = 2;
const FUNCTIONS: usize = 4;
/// At a time, until a function was refused.
const PAYMENTS: usize = 10;

#[tokio::test]
async fn functions_that_get_no_connection_lose_nothing_and_double_nothing() {
    let emulator = Emulator::from_env();
    let mut bank = Bank::open().await;
    let role = bank.database.create_role(&[]).await.unwrap();
    let name = role.get_username();
    let statements = format!(
        "ALTER ROLE \"{name}\" CONNECTION LIMIT {CONNECTIONS};
         GRANT USAGE ON SCHEMA lambda_inbox TO \"{name}\";
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA lambda_inbox, public TO \"{name}\""
    );
    sqlx::raw_sql(AssertSqlSafe(statements))
        .execute(&mut bank.connection)
        .await
        .unwrap();
    let settings = QueueSettings {
        visibility: Duration::from_secs(5),
        max_receive_count: 200,
        ..QueueSettings::default()
    };
    let queue = Queue::create(&emulator, "payments", settings).await;
    let mut functions = Vec::new();
    for _ in 0..FUNCTIONS {
        let function = bank
            .function(&emulator)
            .env("DATABASE_URL", role.to_url_lossy().as_str())
            .timeout(Duration::from_secs(4))
            .deploy()
            .await;
        function.map(&queue, 5).await;
        functions.push(function);
    }
    let mut sent = 0;
    eventually(
        "functions that were refused a connection",
        true,
        async || {
            for number in sent..sent + PAYMENTS {
                queue.send(&payment(number)).await;
            }
            sent += PAYMENTS;
            let mut refused = false;
            for function in &functions {
                let lines = function.log_lines().await;
                refused |= lines
                    .iter()
                    .any(|line| line.contains("lambda_inbox.inbox.outages"));
            }
            refused
        },
    )
    .await;
    bank.assert_booked_once(0..sent).await;
    queue.wait_until_empty().await;
    bank.assert_booked_once(0..sent).await;
    queue.assert_dead_letters([]).await;
}
