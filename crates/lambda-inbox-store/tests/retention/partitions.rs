//! Daily partitions: there before they are needed, gone when every key in them is old, and never in the
//! way of a claim.

use crate::support::{DAY, World, consumer, days, in_a_minute, keeping, usual};
use lambda_inbox_store::{
    Partitions, PruneReport, Retention, Schema, Stopped, create_time_ordered,
};
use lambda_inbox_testkit::postgres::{Cluster, TestDatabase};
use sqlx::Connection;
use std::time::Duration;
use tokio::time::Instant;

/// A partition of the day `age` days ago, as the toolkit had made it then.
async fn old_partition(world: &mut World, age: i32) -> String {
    let names = world
        .texts(format!(
            "SELECT to_char((now() AT TIME ZONE 'UTC') - interval '24 hours' * {age}, 'YYYYMMDD')"
        ))
        .await;
    let name = format!("inbox_by_time_{}", names[0]);
    world
        .run(format!(
            "DO $$ DECLARE day timestamp := date_trunc('day', now() AT TIME ZONE 'UTC') \
               - interval '24 hours' * {age}; \
             BEGIN EXECUTE format('CREATE TABLE lambda_inbox.{name} PARTITION OF \
               lambda_inbox.inbox_by_time FOR VALUES FROM (%L) TO (%L)', \
               day::text || '+00', (day + interval '24 hours')::text || '+00'); END $$"
        ))
        .await;
    name
}

async fn partitions(world: &mut World) -> Vec<String> {
    world
        .texts(
            "SELECT inhrelid::regclass::text FROM pg_inherits \
             WHERE inhparent = 'lambda_inbox.inbox_by_time'::regclass ORDER BY 1",
        )
        .await
}

fn dropped(report: &PruneReport) -> Vec<(&str, u64)> {
    let time_ordered = report.time_ordered.as_ref().unwrap();
    let dropped = time_ordered.dropped.iter();
    dropped
        .map(|partition| (partition.name.as_str(), partition.rows))
        .collect()
}

#[tokio::test]
async fn there_is_one_for_every_day_that_a_message_can_be_of() {
    let mut world = World::time_ordered(Partitions::Daily).await;
    for age in [-7.0, -1.0, 0.0, 1.0, 14.0, 15.0] {
        world.sent("payments", 1, age * DAY, 0.0).await;
    }
    assert_eq!(world.count("inbox_by_time").await, 6);
    assert_eq!(partitions(&mut world).await.len(), 23);
    let default = "SELECT count(*) FROM pg_partitioned_table WHERE partdefid <> 0";
    assert_eq!(world.number(default).await, 0);
}

/// E-05 in this layout: a message's send time never changes, so its key is in one partition.
#[tokio::test]
async fn a_redelivery_after_midnight_meets_its_key() {
    let mut world = World::time_ordered(Partitions::Daily).await;
    let claim = "INSERT INTO lambda_inbox.inbox_by_time \
                 (consumer, source, message_id, sent_at, processed_at, fingerprint) \
                 VALUES ('payments', 'sqs', 'm-1', date_trunc('day', now()) - interval '1 second', \
                   date_trunc('day', now()) + interval '1 second' * {offset}, '\\x00') \
                 ON CONFLICT DO NOTHING";
    for offset in ["-1", "1"] {
        world.run(claim.replace("{offset}", offset)).await;
    }
    assert_eq!(world.count("inbox_by_time").await, 1);
}

/// E-06: whoever comes first, prune or migrate, mends it, without moving rows.
#[tokio::test]
async fn tomorrows_partition_that_is_missing_is_created() {
    let mut world = World::time_ordered(Partitions::Daily).await;
    for by_prune in [true, false] {
        let tomorrow = world
            .texts("SELECT 'inbox_by_time_' || to_char((now() AT TIME ZONE 'UTC') + interval '24 hours', 'YYYYMMDD')")
            .await;
        world
            .run(format!("DROP TABLE lambda_inbox.{}", tomorrow[0]))
            .await;
        let created = if by_prune {
            world.prune(usual()).await.time_ordered.unwrap().created
        } else {
            let schema = Schema::default();
            create_time_ordered(&mut world.connection, &schema, Partitions::Daily)
                .await
                .unwrap()
                .partitions
        };
        assert_eq!(created, tomorrow);
        world.sent("payments", 1, -DAY, 0.0).await;
    }
}

#[tokio::test]
async fn partitions_are_created_beside_claims_that_are_under_way() {
    let mut world = World::time_ordered(Partitions::Daily).await;
    let day = world
        .texts("SELECT to_char(now() AT TIME ZONE 'UTC' + interval '48 hours', 'YYYYMMDD')")
        .await;
    world
        .run(format!("DROP TABLE lambda_inbox.inbox_by_time_{}", day[0]))
        .await;
    world.run("BEGIN").await;
    world.sent("payments", 1, 0.0, 0.0).await;
    let report = world.prune(usual()).await;
    assert_eq!(report.time_ordered.unwrap().created.len(), 1);
    // And the claim goes on as it was.
    world.sent("payments", 1, 0.0, 0.0).await;
    world.run("COMMIT").await;
    assert_eq!(world.count("inbox_by_time").await, 2);
}

#[tokio::test]
async fn a_partition_goes_when_every_key_in_it_is_old() {
    let mut world = World::time_ordered(Partitions::Daily).await;
    let gone = old_partition(&mut world, 40).await;
    world.sent("payments", 30, 40.0 * DAY, 40.0 * DAY).await;
    // Processed late: a redrive that kept its stamp.
    let late = old_partition(&mut world, 30).await;
    world.sent("payments", 30, 30.0 * DAY, 30.0 * DAY).await;
    world.sent("payments", 1, 30.0 * DAY, 3.0 * DAY).await;
    // One consumer's retention is longer.
    let longer = old_partition(&mut world, 20).await;
    world.sent("payments", 30, 20.0 * DAY, 20.0 * DAY).await;
    world.sent("edi-invoic", 1, 20.0 * DAY, 20.0 * DAY).await;
    let empty = old_partition(&mut world, 50).await;
    let retention = || Retention::default().consumer(consumer("edi-invoic"), days(35));

    let before = partitions(&mut world).await;
    let dry = world.prune(keeping(retention()).dry_run(true)).await;
    assert_eq!(dropped(&dry), [(empty.as_str(), 0), (gone.as_str(), 30)]);
    assert_eq!(partitions(&mut world).await, before);

    let report = world.prune(keeping(retention())).await;
    assert!(report.finished, "{report:?}");
    assert_eq!(dropped(&report), [(empty.as_str(), 0), (gone.as_str(), 30)]);
    assert_eq!(report.rows, 30);
    let kept = report.time_ordered.unwrap().kept;
    assert_eq!(kept, [late, longer]);
    assert_eq!(world.count("inbox_by_time").await, 62);
    let tables =
        "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'inbox_by_time%'";
    assert_eq!(world.number(tables).await, 25);
}

/// A message that is under way needs its partition, whatever someone thinks of the retention.
#[tokio::test]
async fn no_partition_goes_that_a_message_may_still_need() {
    let mut world = World::time_ordered(Partitions::Daily).await;
    let old = old_partition(&mut world, 16).await;
    let report = world.prune(keeping(Retention::new(days(1)))).await;
    assert_eq!(dropped(&report), [(old.as_str(), 0)]);
    assert_eq!(partitions(&mut world).await.len(), 23);
    world.sent("payments", 1, 14.0 * DAY, 0.0).await;
}

/// A transaction that uses the table cannot be waited for without end, and the detachment is left half
/// done. Claims go on, and the next run ends it.
#[tokio::test]
async fn a_transaction_elsewhere_delays_the_drop_and_holds_up_nobody() {
    let mut world = World::time_ordered(Partitions::Daily).await;
    let old = old_partition(&mut world, 40).await;
    world.sent("payments", 5, 40.0 * DAY, 40.0 * DAY).await;
    let mut idle = world.database.connect().await.unwrap();
    sqlx::raw_sql("BEGIN; SELECT count(*) FROM lambda_inbox.inbox_by_time")
        .execute(&mut idle)
        .await
        .unwrap();

    let mut connection = world.database.connect().await.unwrap();
    let until = Instant::now() + Duration::from_secs(4);
    let pruner = usual().build().unwrap();
    let report = pruner.run(&mut connection, until).await.unwrap();
    assert_eq!(report.stopped, Some(Stopped::Locked), "{report:?}");
    assert_eq!(report.time_ordered.unwrap().in_use, [old.as_str()]);
    world.run("SET lock_timeout = '1s'").await;
    world.sent("payments", 1, 0.0, 0.0).await;

    sqlx::raw_sql("COMMIT").execute(&mut idle).await.unwrap();
    let report = pruner.run(&mut connection, in_a_minute()).await.unwrap();
    assert!(report.finished, "{report:?}");
    assert_eq!(dropped(&report), [(old.as_str(), 5)]);
}

/// A claim never stands behind the drop: it takes no lock that a claim would wait for.
#[tokio::test]
async fn claims_go_on_while_a_partition_is_being_detached() {
    let mut world = World::time_ordered(Partitions::Daily).await;
    old_partition(&mut world, 40).await;
    let mut idle = world.database.connect().await.unwrap();
    sqlx::raw_sql("BEGIN; SELECT count(*) FROM lambda_inbox.inbox_by_time")
        .execute(&mut idle)
        .await
        .unwrap();
    world.run("SET lock_timeout = '500ms'").await;
    let mut connection = world.database.connect().await.unwrap();
    let pruner = usual().build().unwrap();
    let until = Instant::now() + Duration::from_secs(3);
    let claims = async {
        let mut claimed = 0;
        while Instant::now() < until {
            world.sent("payments", 1, 0.0, 0.0).await;
            claimed += 1;
        }
        claimed
    };
    let (report, claimed) = tokio::join!(pruner.run(&mut connection, until), claims);
    assert_eq!(report.unwrap().stopped, Some(Stopped::Locked));
    assert_eq!(world.count("inbox_by_time").await, claimed);
}

/// A run that died between detaching and dropping.
#[tokio::test]
async fn a_partition_that_was_left_detached_is_dropped_or_taken_back() {
    for (processed, is_back) in [(40.0 * DAY, false), (3.0 * DAY, true)] {
        let mut world = World::time_ordered(Partitions::Daily).await;
        let old = old_partition(&mut world, 40).await;
        world.sent("payments", 5, 40.0 * DAY, processed).await;
        world
            .run(format!(
                "ALTER TABLE lambda_inbox.inbox_by_time DETACH PARTITION lambda_inbox.{old}"
            ))
            .await;
        assert_eq!(world.count("inbox_by_time").await, 0);
        let report = world.prune(usual()).await;
        assert_eq!(report.rows, if is_back { 0 } else { 5 });
        assert_eq!(
            world.count("inbox_by_time").await,
            if is_back { 5 } else { 0 }
        );
        let there = format!("SELECT count(*) FROM pg_class WHERE relname = '{old}'");
        assert_eq!(world.number(there).await, i64::from(is_back));
    }
}

#[tokio::test]
async fn two_prunes_at_once_drop_each_partition_once() {
    let mut world = World::time_ordered(Partitions::Daily).await;
    for age in [40, 41, 42, 43] {
        old_partition(&mut world, age).await;
        world
            .sent("payments", 5, f64::from(age) * DAY, 40.0 * DAY)
            .await;
    }
    let (first, second) = tokio::join!(world.prune(usual()), world.prune(usual()));
    let third = world.prune(usual()).await;
    assert!(third.finished, "{third:?}");
    assert_eq!(
        first.rows + second.rows + third.rows,
        20,
        "{first:?} {second:?} {third:?}"
    );
    assert_eq!(partitions(&mut world).await.len(), 23);
}

/// Bounds are read back from the server as text, which a session's settings shape.
#[tokio::test]
async fn the_sessions_time_zone_and_date_style_move_no_bound() {
    let mut world = World::time_ordered(Partitions::Daily).await;
    let old = old_partition(&mut world, 40).await;
    let before = partitions(&mut world).await;
    let mut connection = world.database.connect().await.unwrap();
    let set = "SET timezone = 'America/New_York'; SET datestyle = 'German, DMY'; \
               SET standard_conforming_strings = off";
    sqlx::raw_sql(set).execute(&mut connection).await.unwrap();
    let pruner = usual().build().unwrap();
    let report = pruner.run(&mut connection, in_a_minute()).await.unwrap();
    assert_eq!(dropped(&report), [(old.as_str(), 0)]);
    let time_ordered = report.time_ordered.unwrap();
    assert_eq!(time_ordered.created, Vec::<String>::new());
    assert_eq!(partitions(&mut world).await.len(), before.len() - 1);
}

#[tokio::test]
async fn a_role_that_does_not_own_the_table_is_told_so() {
    let mut world = World::time_ordered(Partitions::Daily).await;
    old_partition(&mut world, 40).await;
    let role = world.database.create_role(&[]).await.unwrap();
    let name = role.get_username();
    world
        .run(format!(
            "GRANT USAGE, CREATE ON SCHEMA lambda_inbox TO {name}; \
             GRANT SELECT, UPDATE, DELETE ON ALL TABLES IN SCHEMA lambda_inbox TO {name}"
        ))
        .await;
    let mut connection = sqlx::PgConnection::connect_with(&role).await.unwrap();
    let pruner = usual().build().unwrap();
    let error = pruner
        .run(&mut connection, in_a_minute())
        .await
        .unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("must own the time-ordered table"), "{cause}");
}

/// Many keys go with a few catalogue rows. On a server of its own: others write WAL too.
#[tokio::test]
async fn dropping_a_partition_writes_next_to_no_wal() {
    const KEYS: i32 = 50_000;
    let cluster = Cluster::builder().start().await.unwrap();
    let database = TestDatabase::create_on(&cluster.options()).await.unwrap();
    let mut world = World::on(database).await;
    let schema = Schema::default();
    create_time_ordered(&mut world.connection, &schema, Partitions::Daily)
        .await
        .unwrap();
    old_partition(&mut world, 40).await;
    world.sent("payments", KEYS, 40.0 * DAY, 40.0 * DAY).await;
    world.run("CHECKPOINT").await;
    let place = "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::int8";
    let before = world.number(place).await;
    let report = world.prune(usual()).await;
    let written = world.number(place).await - before;
    assert_eq!(report.rows, u64::from(KEYS.unsigned_abs()));
    assert!(written < 1 << 20, "{written} bytes");
}
