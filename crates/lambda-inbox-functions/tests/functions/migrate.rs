//! The migrations as a function of their own.

use crate::support::{World, answer, error};
use lambda_inbox_testkit::runtime::{Lines, Sink};
use serde_json::json;

#[tokio::test]
async fn a_plain_invocation_answers_with_the_versions_before_and_after() {
    let world = World::empty().await;
    let mut function = world.migrate_function().start().await.unwrap();
    let first = answer(function.invoke(&json!({})).await);
    assert_eq!(first["schema"], "lambda_inbox");
    assert_eq!(
        (&first["before"], &first["layout"]),
        (&json!(0), &json!("keyed"))
    );
    let again = answer(function.invoke(&json!(null)).await);
    assert_eq!(
        (&again["before"], &again["after"]),
        (&first["after"], &first["after"])
    );
}

/// Lambda takes a line without a time for INFO, whatever level it has.
#[tokio::test]
async fn every_line_of_the_log_has_its_time_and_its_level() {
    let world = World::empty().await;
    let lines = Lines::default();
    let function = world.migrate_function().stdout(Sink::Lines(lines.clone()));
    let mut function = function.start().await.unwrap();
    answer(function.invoke(&json!({})).await);
    lines.line_with("migrated").await;
    for line in lines.all() {
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        let time = line["timestamp"].as_str().unwrap();
        assert!(humantime::parse_rfc3339(time).is_ok(), "{time}");
        assert!(line["level"].is_string(), "{line}");
    }
}

#[tokio::test]
async fn the_layout_is_taken_from_the_input_or_the_environment() {
    for (input, variables, partitions) in [
        (
            json!({"layout": "time-ordered", "partitions": "daily"}),
            vec![],
            23,
        ),
        (json!({"layout": "time-ordered"}), vec![], 0),
        (
            json!({}),
            vec![
                ("LAMBDA_INBOX_LAYOUT", "time-ordered"),
                ("LAMBDA_INBOX_PARTITIONS", "daily"),
            ],
            23,
        ),
    ] {
        let mut world = World::empty().await;
        let mut function = world.migrate_function();
        for (name, value) in variables {
            function = function.env(name, value);
        }
        let mut function = function.start().await.unwrap();
        let made = answer(function.invoke(&input).await);
        assert_eq!(made["layout"], "time-ordered", "{made}");
        assert_eq!(
            made["partitions_created"].as_array().unwrap().len(),
            partitions
        );
        assert_eq!(world.count("lambda_inbox.inbox_by_time").await, 0);
    }
}

#[tokio::test]
async fn a_layout_that_cannot_be_is_refused() {
    let world = World::with_partitions().await;
    let mut function = world.migrate_function().start().await.unwrap();
    for (input, text) in [
        (json!({"layout": "columnar"}), "time-ordered"),
        (
            json!({"layout": "keyed", "partitions": "daily"}),
            "time-ordered",
        ),
        (json!({"partitions": "hourly"}), "daily or none"),
        (
            json!({"layout": "time-ordered", "partitions": "none"}),
            "cannot be changed",
        ),
    ] {
        let error = error(function.invoke(&input).await);
        assert!(error.contains(text), "{error}");
    }
}

/// C-17: twenty at once, as whole processes five.
#[tokio::test]
async fn many_at_once_migrate_once() {
    let world = World::empty().await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..5 {
        let function = world.migrate_function();
        tasks.spawn(async move {
            let mut function = function.start().await.unwrap();
            let input = json!({"layout": "time-ordered", "partitions": "daily"});
            answer(function.invoke(&input).await)
        });
    }
    let done = tasks.join_all().await;
    assert!(
        done.iter().all(|made| made["after"] == done[0]["after"]),
        "{done:?}"
    );
}
