//! A day of sales through a queue that delivers in any order and sometimes twice.

use std::collections::BTreeSet;
use std::time::Duration;

use lambda_inbox_testkit::queue::{QueueConfig, Simulator};

use crate::sale::{POISONS, good};
use crate::shop::{Function, Shop};

const SEED: u64 = 20;
const SALES: usize = 3_000;
/// Of each kind.
const POISON: usize = 3;
const TIMEOUT: Duration = Duration::from_secs(60);
/// Of batching: duplicates turn up one by one.
const WINDOW: Duration = Duration::from_secs(20);
const INVOCATIONS_MAX: u64 = 100;

#[tokio::test]
async fn every_good_sale_is_counted_once_and_poison_ends_in_the_dead_letter_queue() {
    for function in Function::BOTH {
        for batch_size in [1_000, 10_000] {
            let context = format!("{function:?}, batches of {batch_size}");
            let mut shop = Shop::open(function).await;
            let mut process = shop.start(function).await;
            let config = QueueConfig::builder()
                .batch_size(batch_size)
                .function_timeout(TIMEOUT)
                .visibility_timeout(TIMEOUT)
                .max_receive_count(3)
                .duplicate_rate(0.1)
                .shuffle(true)
                .build()
                .unwrap();
            let mut queue = Simulator::new(config, SEED);
            for n in 0..SALES {
                queue.send(good(n)).unwrap();
            }
            let poison = POISONS.iter().flat_map(|(_, body)| (0..POISON).map(body));
            let poison: BTreeSet<String> = poison.collect();
            for body in &poison {
                queue.send(body.as_str()).unwrap();
            }

            while queue.in_queue().len() > 0 {
                if queue.poll_once(&mut process).await.is_none() {
                    queue.advance(WINDOW);
                }
                let stats = queue.stats();
                assert!(stats.invocations < INVOCATIONS_MAX, "{context}: {stats:?}");
            }

            let stats = queue.stats();
            assert!(stats.duplicates_injected > 100, "{context}: {stats:?}");
            shop.assert_booked_once(0..SALES, &context).await;
            let dead = queue.dead_letters();
            assert_eq!(dead.len(), poison.len(), "{context}");
            let dead: BTreeSet<String> = dead.iter().map(|it| it.body().to_owned()).collect();
            assert_eq!(dead, poison, "{context}");
        }
    }
}
