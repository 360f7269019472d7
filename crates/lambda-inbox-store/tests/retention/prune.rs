//! Deleting keys from the keyed table.

use crate::support::{DAY, HOUR, World, consumer, days, in_a_minute, keeping, usual};
use lambda_inbox_store::{Retention, Stopped};
use sqlx::Connection;
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test]
async fn a_key_goes_once_its_retention_and_the_longest_visibility_are_over() {
    for (age, stays) in [
        (0.0, 1),
        (14.0 * DAY, 1),
        (14.0 * DAY + 11.9 * HOUR, 1),
        (14.0 * DAY + 12.1 * HOUR, 0),
        (400.0 * DAY, 0),
    ] {
        let mut world = World::new().await;
        world.keys("payments", 1, age).await;
        let report = world.prune(usual()).await;
        assert!(report.finished);
        assert_eq!(world.count("inbox").await, stays, "{age}");
        assert_eq!(i64::try_from(report.rows).unwrap(), 1 - stays, "{age}");
    }
}

/// B-15 in its keyed part: a key with a retention of thirty days is there on day twenty.
#[tokio::test]
async fn each_consumer_has_a_retention_of_its_own() {
    let mut world = World::new().await;
    for name in ["payments", "edi-invoic", "telemetry"] {
        world.keys(name, 2, 20.0 * DAY).await;
        world.keys(name, 2, 2.0 * DAY).await;
    }
    let retention = Retention::default()
        .consumer(consumer("edi-invoic"), days(30))
        .consumer(consumer("telemetry"), days(1))
        .consumer(consumer("nobody"), days(1));
    let report = world.prune(keeping(retention)).await;

    let rows: Vec<(&str, u64)> = report
        .consumers
        .iter()
        .map(|pruned| (pruned.consumer.as_str(), pruned.rows))
        .collect();
    for expected in [("payments", 2), ("edi-invoic", 0), ("telemetry", 4)] {
        assert!(rows.contains(&expected), "{rows:?}");
    }
    assert_eq!(report.rows, 6);
    assert_eq!(world.count("inbox").await, 6);
}

/// E-09: many short transactions instead of one that holds its locks for long.
#[tokio::test]
async fn rows_go_in_batches_that_commit_by_themselves() {
    let mut world = World::new().await;
    world.keys("payments", 2_500, 20.0 * DAY).await;
    world.keys("refunds", 1_000, 20.0 * DAY).await;
    let report = world.prune(usual().batch_rows(1_000)).await;
    assert_eq!((report.rows, world.count("inbox").await), (3_500, 0));
    // The second batch of a thousand cannot know that it was the last.
    assert_eq!(report.batches, 3 + 2);
    assert_eq!(report.oldest_seconds, None);
}

#[tokio::test]
async fn many_keys_of_one_moment_go_in_several_batches() {
    let mut world = World::new().await;
    world.run("BEGIN").await;
    world.keys("payments", 50, 20.0 * DAY).await;
    world.run("COMMIT").await;
    let report = world.prune(usual().batch_rows(7)).await;
    assert_eq!((report.rows, report.finished), (50, true));
}

/// E-10: two at once.
#[tokio::test]
async fn two_prunes_at_once_delete_every_old_key_once_and_no_young_one() {
    let mut world = World::new().await;
    world.keys("payments", 3_000, 20.0 * DAY).await;
    world.keys("payments", 100, DAY).await;
    let builder = || usual().batch_rows(100);
    let (first, second) = tokio::join!(world.prune(builder()), world.prune(builder()));
    assert!(first.finished || second.finished, "{first:?} {second:?}");
    assert_eq!(first.rows + second.rows, 3_000, "{first:?} {second:?}");
    assert_eq!(world.count("inbox").await, 100);
}

#[tokio::test]
async fn a_second_runner_says_that_another_one_is_at_work_and_touches_nothing() {
    let mut world = World::new().await;
    world.keys("payments", 1, 20.0 * DAY).await;
    let lock = "SELECT pg_advisory_xact_lock(\
                hashtextextended('lambda_inbox/prune/lambda_inbox', 0))";
    world.run(format!("BEGIN; {lock}")).await;
    let report = world.prune(usual()).await;
    assert_eq!(report.stopped, Some(Stopped::AnotherRunner));
    assert_eq!((report.finished, report.rows), (false, 0));
    // It is let go with its transaction, however that ends.
    world.run("ROLLBACK").await;
    assert_eq!(world.prune(usual()).await.rows, 1);
}

/// A session that was forgotten in its transaction holds a row, and keeps dead ones from going.
#[tokio::test]
async fn a_row_that_someone_holds_is_left_and_the_holder_shows_in_the_report() {
    let mut world = World::new().await;
    world.keys("payments", 10, 20.0 * DAY).await;
    let hold = "BEGIN; UPDATE lambda_inbox.inbox SET status = status \
                WHERE message_id = (SELECT min(message_id) FROM lambda_inbox.inbox)";
    world.run(hold).await;
    let report = world.prune(usual()).await;
    assert_eq!((report.rows, report.finished), (9, true));
    assert!(report.oldest_transaction_seconds.is_some(), "{report:?}");
    assert!(report.oldest_seconds.is_some_and(|age| age > 19.0 * DAY));
    world.run("ROLLBACK").await;

    let report = world.prune(usual()).await;
    assert_eq!(report.rows, 1);
    assert_eq!(report.oldest_transaction_seconds, None);
}

/// What suits people, such as their time zone, must not move a cut-off. 14 days of which one has 25 hours
/// are 14 times 24 hours all the same.
#[tokio::test]
async fn settings_of_the_role_and_the_session_change_nothing() {
    let mut world = World::new().await;
    world.keys("payments", 3, 14.0 * DAY + 11.5 * HOUR).await;
    world.keys("payments", 4, 14.0 * DAY + 12.5 * HOUR).await;
    let settings = [
        ("default_transaction_read_only", "on"),
        ("default_transaction_isolation", "serializable"),
        ("default_transaction_deferrable", "on"),
        ("standard_conforming_strings", "off"),
        ("enable_indexscan", "off"),
        ("lock_timeout", "1ms"),
    ];
    let role = world.database.create_role(&settings).await.unwrap();
    let name = role.get_username();
    let grant = format!(
        "GRANT USAGE ON SCHEMA lambda_inbox TO {name}; \
         GRANT SELECT, UPDATE, DELETE ON ALL TABLES IN SCHEMA lambda_inbox TO {name}"
    );
    world.run(grant).await;
    let mut connection = sqlx::PgConnection::connect_with(&role).await.unwrap();
    for (zone, rows) in [("Pacific/Kiritimati", 4), ("America/New_York", 0)] {
        let set = format!(
            "SET timezone = '{zone}'; SET datestyle = 'SQL, DMY'; SET intervalstyle = 'iso_8601'"
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(set))
            .execute(&mut connection)
            .await
            .unwrap();
        let pruner = usual().build().unwrap();
        let report = pruner.run(&mut connection, in_a_minute()).await.unwrap();
        assert_eq!((report.rows, report.finished), (rows, true), "{zone}");
    }
    assert_eq!(world.count("inbox").await, 3);
}

#[tokio::test]
async fn a_prune_that_runs_out_of_time_says_so_and_the_next_one_goes_on() {
    let mut world = World::new().await;
    world.keys("payments", 200, 20.0 * DAY).await;
    let mut connection = world.database.connect().await.unwrap();
    // At most forty batches of one row fit in.
    let pause = Duration::from_millis(25);
    let pruner = usual().batch_rows(1).pause(pause).build().unwrap();
    let until = Instant::now() + Duration::from_secs(1);
    let first = pruner.run(&mut connection, until).await.unwrap();
    assert_eq!(
        (first.finished, first.stopped),
        (false, Some(Stopped::Deadline))
    );
    assert!(first.rows < 200);
    assert!(first.oldest_seconds.is_some_and(|age| age > 19.0 * DAY));

    let second = world.prune(usual()).await;
    assert_eq!((first.rows + second.rows, second.finished), (200, true));
}

#[tokio::test]
async fn no_time_at_all_deletes_nothing() {
    let mut world = World::new().await;
    world.keys("payments", 1, 20.0 * DAY).await;
    let pruner = usual().build().unwrap();
    let report = pruner
        .run(&mut world.connection, Instant::now())
        .await
        .unwrap();
    assert_eq!((report.finished, report.rows), (false, 0));
    assert_eq!(world.count("inbox").await, 1);
}

#[tokio::test]
async fn a_table_that_someone_locks_is_left_for_the_next_run() {
    let mut world = World::new().await;
    world.keys("payments", 1, 20.0 * DAY).await;
    world
        .run("BEGIN; LOCK TABLE lambda_inbox.inbox IN ACCESS EXCLUSIVE MODE")
        .await;
    let report = world.prune(usual()).await;
    assert_eq!((report.stopped, report.rows), (Some(Stopped::Locked), 0));
    world.run("ROLLBACK").await;
    assert_eq!(world.prune(usual()).await.rows, 1);
}

#[tokio::test]
async fn a_dry_run_counts_and_changes_nothing() {
    let mut world = World::new().await;
    world.keys("payments", 30, 20.0 * DAY).await;
    world.keys("payments", 3, DAY).await;
    let report = world.prune(usual().batch_rows(10).dry_run(true)).await;
    assert_eq!((report.rows, report.batches, report.dry_run), (30, 0, true));
    assert_eq!(world.count("inbox").await, 33);
}

#[tokio::test]
async fn a_batch_of_nothing_or_of_everything_is_refused() {
    for rows in [0, 100_001, u32::MAX] {
        let error = usual().batch_rows(rows).build().unwrap_err().to_string();
        assert!(error.contains("1 to 100000"), "{error}");
    }
}

#[tokio::test]
async fn a_schema_without_tables_names_the_remedy() {
    let world = World::new().await;
    let schema = lambda_inbox_store::Schema::new("elsewhere").unwrap();
    let builder = lambda_inbox_store::Pruner::builder(schema, Retention::default());
    let error = world.try_prune(builder).await.unwrap_err().to_string();
    assert!(
        error.contains("elsewhere") && error.contains("run the migrations"),
        "{error}"
    );
}

#[tokio::test]
async fn a_role_that_may_not_delete_is_told_what_to_be_granted() {
    let world = World::new().await;
    let role = world.database.create_role(&[]).await.unwrap();
    let mut connection = sqlx::PgConnection::connect_with(&role).await.unwrap();
    let pruner = usual().build().unwrap();
    let error = pruner
        .run(&mut connection, in_a_minute())
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("grant the role USAGE"),
        "{error}"
    );
}

#[tokio::test]
async fn the_report_has_the_servers_estimate_of_what_is_left() {
    let mut world = World::new().await;
    world.keys("payments", 10, DAY).await;
    world.run("ANALYZE lambda_inbox.inbox").await;
    assert_eq!(world.prune(usual()).await.rows_left, 10);
}
