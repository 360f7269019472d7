//! The prune as a scheduled function.

use crate::support::{World, answer, error};
use lambda_inbox_testkit::runtime::{Lines, Sink};
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn a_schedule_prunes_by_the_environments_retention_and_reports_in_numbers() {
    let mut world = World::migrated().await;
    world.keys("payments", 3, 20.0).await;
    world.keys("payments", 2, 1.0).await;
    world.keys("edi-invoic", 5, 20.0).await;
    let lines = Lines::default();
    let mut function = world
        .prune_function()
        .env("LAMBDA_INBOX_RETENTION_PER_CONSUMER", "edi-invoic=35d")
        .env("LAMBDA_INBOX_PRUNE_BATCH_ROWS", "2")
        .stdout(Sink::Lines(lines.clone()))
        .start()
        .await
        .unwrap();
    let scheduled = json!({
        "version": "0", "id": "a", "detail-type": "Scheduled Event", "source": "aws.events",
        "account": "111122223333", "time": "2026-11-30T00:00:00Z", "region": "eu-central-1",
        "resources": [], "detail": {},
    });
    let report = answer(function.invoke(&scheduled).await);
    assert_eq!(report["finished"], true, "{report}");
    assert_eq!(
        (&report["rows"], &report["batches"]),
        (&json!(3), &json!(2))
    );
    assert!(report["oldest_seconds"].as_f64().unwrap() > 19.0 * 86_400.0);
    assert!(report["seconds"].as_f64().is_some());
    assert_eq!(world.count("lambda_inbox.inbox").await, 7);

    let metrics = lines.line_with("lambda_inbox.prune.rows").await;
    let metrics: serde_json::Value = serde_json::from_str(&metrics).unwrap();
    assert_eq!(metrics["lambda_inbox.prune.rows"], 3, "{metrics}");
    assert_eq!(metrics["lambda_inbox.prune.finished"], 1.0, "{metrics}");
    assert!(metrics["_aws"]["CloudWatchMetrics"].is_array(), "{metrics}");
}

/// The alarm rings where nothing says "finished" for twelve hours; what a warm process still knows of an
/// earlier run must not keep it quiet.
#[tokio::test]
async fn a_prune_that_fails_or_is_dry_says_nothing_of_the_one_before() {
    let mut world = World::migrated().await;
    let lines = Lines::default();
    let function = world.prune_function().stdout(Sink::Lines(lines.clone()));
    let mut function = function.start().await.unwrap();
    answer(function.invoke(&json!({})).await);
    answer(function.invoke(&json!({"dry_run": true})).await);
    world.run("DROP TABLE lambda_inbox.inbox").await;
    error(function.invoke(&json!({})).await);
    world.database.drop_now().await.unwrap();
    error(function.invoke(&json!({})).await);

    // The last thing that the process says, by the SQLSTATE of a database that is not there.
    lines.line_with("3D000").await;
    let lines = lines.all();
    let finished = lines.iter().filter(|line| line.contains("prune.finished"));
    assert_eq!(finished.count(), 1, "{lines:#?}");
}

#[tokio::test]
async fn the_input_takes_the_place_of_the_environment() {
    let mut world = World::migrated().await;
    world.keys("payments", 3, 20.0).await;
    world.keys("edi-invoic", 3, 40.0).await;
    let mut function = world.prune_function().start().await.unwrap();
    let dry = json!({"dry_run": true});
    let report = answer(function.invoke(&dry).await);
    assert_eq!(
        (&report["dry_run"], &report["rows"]),
        (&json!(true), &json!(6))
    );
    assert_eq!(world.count("lambda_inbox.inbox").await, 6);

    let longer = json!({"retention": "30d", "retentions": {"edi-invoic": "35d"}, "batch_rows": 1});
    assert_eq!(answer(function.invoke(&longer).await)["rows"], 3);
    assert_eq!(world.count("lambda_inbox.inbox").await, 3);

    for (input, text) in [
        (json!({"dry-run": true}), "dry_run"),
        (json!({"retention": "14"}), "14d or 36h"),
        (json!({"batch_rows": 0}), "1 to 100000"),
        (json!({"retentions": {"a b": "14d"}}), "consumer"),
    ] {
        let error = error(function.invoke(&input).await);
        assert!(
            error.contains("LambdaInbox.Input") && error.contains(text),
            "{error}"
        );
    }
    assert_eq!(world.count("lambda_inbox.inbox").await, 3);
}

/// E-06, and the drop in the other direction.
#[tokio::test]
async fn a_run_creates_tomorrows_partition() {
    let mut world = World::with_partitions().await;
    world
        .run(
            "DO $$ BEGIN EXECUTE 'DROP TABLE lambda_inbox.inbox_by_time_' || \
             to_char((now() AT TIME ZONE 'UTC') + interval '24 hours', 'YYYYMMDD'); END $$",
        )
        .await;
    let mut function = world.prune_function().start().await.unwrap();
    let report = answer(function.invoke(&json!({})).await);
    let created = report["time_ordered"]["created"].as_array().unwrap();
    assert_eq!(created.len(), 1, "{report}");
}

/// The Scheduler invokes asynchronously and may do so twice.
#[tokio::test]
async fn two_runs_at_once_both_end_well() {
    let mut world = World::migrated().await;
    world.keys("payments", 500, 20.0).await;
    let start = || {
        world
            .prune_function()
            .env("LAMBDA_INBOX_PRUNE_BATCH_ROWS", "50")
            .start()
    };
    let (first, second) = tokio::join!(start(), start());
    let (mut first, mut second) = (first.unwrap(), second.unwrap());
    let event = json!({});
    let (first, second) = tokio::join!(first.invoke(&event), second.invoke(&event));
    let (first, second) = (answer(first), answer(second));
    let rows = |report: &serde_json::Value| report["rows"].as_i64().unwrap();
    assert_eq!(rows(&first) + rows(&second), 500, "{first} {second}");
    assert_eq!(world.count("lambda_inbox.inbox").await, 0);
}

#[tokio::test]
async fn a_run_that_has_too_little_time_answers_before_lambda_stops_it() {
    let mut world = World::migrated().await;
    world.keys("payments", 2_000, 20.0).await;
    let mut function = world
        .prune_function()
        .env("LAMBDA_INBOX_PRUNE_BATCH_ROWS", "1")
        .start()
        .await
        .unwrap();
    let short = Duration::from_secs(4);
    let report = answer(function.invoke_within(&json!({}), short).await);
    assert_eq!(report["finished"], false, "{report}");
    assert_eq!(report["stopped"], "deadline", "{report}");
    assert_eq!(function.starts(), 1);
}

#[tokio::test]
async fn a_retention_shorter_than_the_queues_is_refused_unless_forced() {
    let mut world = World::migrated().await;
    world.keys("payments", 3, 10.0).await;
    let mut function = world
        .prune_function()
        .env("LAMBDA_INBOX_RETENTION", "7d")
        .start()
        .await
        .unwrap();
    let text = error(function.invoke(&json!({})).await);
    for part in [
        "RetentionTooShort",
        "7d 12h",
        "14d 12h",
        "LAMBDA_INBOX_RETENTION=14d",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(world.count("lambda_inbox.inbox").await, 3);

    let report = answer(function.invoke(&json!({"force": true})).await);
    assert_eq!(report["rows"], 3);
    assert!(
        report["warnings"][0].as_str().unwrap().contains("forced"),
        "{report}"
    );
}

#[tokio::test]
async fn what_the_queues_keep_can_be_said_where_they_cannot_be_asked() {
    let mut world = World::migrated().await;
    world.keys("payments", 3, 10.0).await;
    for (retention, queues, is_enough) in [
        ("4d", "4d", true),
        ("4d", "payments=4d", false),
        ("14d", "payments=28d", false),
        ("14d", "payments=14d", true),
    ] {
        let mut function = world
            .prune_function()
            .env("LAMBDA_INBOX_RETENTION", retention)
            .env("LAMBDA_INBOX_QUEUE_RETENTION", queues)
            .start()
            .await
            .unwrap();
        let invocation = function.invoke(&json!({"dry_run": true})).await;
        let is_answer = matches!(
            invocation,
            lambda_inbox_testkit::consumer::Invocation::Response(_)
        );
        assert_eq!(is_answer, is_enough, "{retention} {queues}: {invocation:?}");
    }
}

#[tokio::test]
async fn what_is_missing_is_named_and_the_password_is_not() {
    let world = World::empty().await;
    for (url, text) in [
        ("", "DATABASE_URL is not set"),
        ("postgres://app:secret#w@db/shop", "%23"),
        ("postgres://app:secret@127.0.0.1:1/shop", "127.0.0.1:1"),
        (world.database.url().as_str(), "run the migrations"),
    ] {
        let mut function = world
            .prune_function()
            .env("DATABASE_URL", url)
            .start()
            .await
            .unwrap();
        let error = error(function.invoke(&json!({})).await);
        assert!(error.contains(text) && !error.contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn a_pooler_is_refused_because_it_keeps_no_lock() {
    let world = World::empty().await;
    let mut function = world
        .prune_function()
        .env("LAMBDA_INBOX_DB_POOLED", "on")
        .start()
        .await
        .unwrap();
    let error = error(function.invoke(&json!({})).await);
    assert!(error.contains("LAMBDA_INBOX_DB_POOLED off"), "{error}");
}
