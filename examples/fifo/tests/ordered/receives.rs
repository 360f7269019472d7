//! What SQS's count of receives does to the commands behind a hopeless one.

use std::time::Duration;

use lambda_inbox_testkit::queue::{Outgoing, QueueConfig, Simulator};
use serde_json::json;

use crate::bank::Bank;

const SEED: u64 = 5;
const TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_hopeless_command_takes_along_only_what_is_received_with_it_every_time() {
    for (batch_size, carried_out, dead) in [(10, vec![2], 2), (1, vec![2, 4], 1)] {
        let mut bank = Bank::open().await;
        bank.with_account("a", 0).await;
        let mut function = bank.function(&[]).await;
        let config = QueueConfig::builder()
            .queue_name("account-commands")
            .fifo(true)
            .batch_size(batch_size)
            .visibility_timeout(TIMEOUT)
            .function_timeout(TIMEOUT)
            .max_receive_count(5)
            .build()
            .unwrap();
        let mut queue = Simulator::new(config, SEED);
        for (number, action) in [(2, "deposit"), (3, "open"), (4, "withdraw")] {
            let body = json!({ "account": "a", "number": number, "action": action, "amount": 1 });
            let message = Outgoing::from(body).group("a");
            queue.send(message).unwrap();
        }
        let summary = queue.run_until_drained(&mut function, 50).await;
        assert!(summary.drained, "batches of {batch_size}: {summary:?}");
        let found = bank.entries("a").await;
        assert_eq!(found, carried_out, "batches of {batch_size}");
        let found = queue.dead_letters().len();
        assert_eq!(found, dead, "batches of {batch_size}");
    }
}
