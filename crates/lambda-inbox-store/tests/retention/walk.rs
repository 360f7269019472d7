//! Deleting keys from the time-ordered table that has no partitions.

use crate::support::{DAY, World, consumer, days, keeping, usual};
use lambda_inbox_store::{Partitions, Retention};

/// B-22 for keys: what counts is when a message was processed, not when it was sent.
#[tokio::test]
async fn a_message_sent_long_ago_and_processed_lately_keeps_its_key() {
    let mut world = World::time_ordered(Partitions::None).await;
    world.sent("payments", 30, 20.0 * DAY, 20.0 * DAY).await;
    world.sent("payments", 3, 20.0 * DAY, 7.0 * DAY).await;
    world.sent("payments", 2, DAY, DAY).await;
    let report = world.prune(usual().batch_rows(4)).await;
    assert_eq!((report.rows, report.finished), (30, true));
    assert_eq!(world.count("inbox_by_time").await, 5);
    let time_ordered = report.time_ordered.unwrap();
    assert_eq!(time_ordered.rows, 30);
    assert!(time_ordered.oldest_seconds.unwrap() > 19.0 * DAY);
    assert_eq!(world.prune(usual()).await.rows, 0);
}

#[tokio::test]
async fn each_consumer_of_the_time_ordered_table_has_a_retention_of_its_own() {
    let mut world = World::time_ordered(Partitions::None).await;
    for name in ["payments", "edi-invoic", "telemetry"] {
        world.sent(name, 10, 20.0 * DAY, 20.0 * DAY).await;
        world.sent(name, 10, 2.0 * DAY, 2.0 * DAY).await;
    }
    let retention = Retention::default()
        .consumer(consumer("edi-invoic"), days(30))
        .consumer(consumer("telemetry"), days(1));
    let report = world.prune(keeping(retention).batch_rows(7)).await;
    assert_eq!(report.rows, 10 + 20);
    let left = world
        .texts(
            "SELECT consumer || ' ' || count(*) FROM lambda_inbox.inbox_by_time \
             GROUP BY consumer ORDER BY consumer",
        )
        .await;
    assert_eq!(left, ["edi-invoic 20", "payments 10"]);
}

#[tokio::test]
async fn keyed_and_time_ordered_consumers_share_a_schema() {
    let mut world = World::time_ordered(Partitions::None).await;
    world.keys("payments", 2, 20.0 * DAY).await;
    world.sent("orders", 3, 20.0 * DAY, 20.0 * DAY).await;
    let dry = world.prune(usual().dry_run(true)).await;
    assert_eq!((dry.rows, dry.time_ordered.unwrap().rows), (5, 3));
    assert_eq!(world.prune(usual()).await.rows, 5);
}

#[tokio::test]
async fn a_key_that_someone_holds_is_left() {
    let mut world = World::time_ordered(Partitions::None).await;
    world.sent("payments", 5, 20.0 * DAY, 20.0 * DAY).await;
    world
        .run(
            "BEGIN; SELECT FROM lambda_inbox.inbox_by_time ORDER BY message_id LIMIT 1 \
             FOR UPDATE",
        )
        .await;
    assert_eq!(world.prune(usual().batch_rows(2)).await.rows, 4);
}
