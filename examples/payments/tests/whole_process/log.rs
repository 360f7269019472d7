//! What a function writes for Lambda to take up.

use crate::bank::{Bank, failures, payment};
use lambda_inbox_testkit::event::{Record, event};
use lambda_inbox_testkit::runtime::{Lines, Sink};
use serde_json::{Value, json};

/// Lambda takes a line without a time for INFO, and drops it where the function's level is above that.
#[tokio::test]
async fn a_warning_has_its_time_and_its_level_and_metrics_are_written_before_the_answer() {
    let bank = Bank::open().await;
    let lines = Lines::default();
    let function = bank.function().stdout(Sink::Lines(lines.clone()));
    let mut function = function.start().await.unwrap();
    let poison = Record::new("no payment").message_id("poison");
    let reported = failures(function.invoke(&event([payment(1), poison])).await);
    assert_eq!(reported, ["poison"]);
    // The same process has written all of it, so it is a matter of reading alone.
    lines.line_with("CloudWatchMetrics").await;

    let lines: Vec<Value> = lines
        .all()
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let warning = lines.iter().find(|line| line["level"] == "WARN").unwrap();
    assert_eq!(warning["fields"]["message_id"], "poison");
    let time = warning["timestamp"].as_str().unwrap();
    assert!(humantime::parse_rfc3339(time).is_ok(), "{time}");

    let metrics = lines.iter().find(|line| line["_aws"].is_object()).unwrap();
    let dimensions = &metrics["_aws"]["CloudWatchMetrics"][0]["Dimensions"];
    assert_eq!(*dimensions, json!([["function_name", "consumer"]]));
    assert_eq!(
        (&metrics["function_name"], &metrics["consumer"]),
        (&json!("payments"), &json!("payments"))
    );
    assert_eq!(metrics["lambda_inbox.inbox.processed"], 1);
    assert_eq!(metrics["lambda_inbox.inbox.poison"], 1);
}

/// A line of metrics holds a hundred values at most, and a batch up to ten thousand messages.
#[tokio::test]
async fn no_duration_of_a_large_batch_is_lost() {
    const MESSAGES: usize = 250;
    let bank = Bank::open().await;
    let lines = Lines::default();
    let function = bank.function().stdout(Sink::Lines(lines.clone()));
    let mut function = function
        .env("LAMBDA_INBOX_CONNECTIONS", "8")
        .start()
        .await
        .unwrap();
    let response = function.invoke(&event((0..MESSAGES).map(payment))).await;
    assert_eq!(failures(response), [""; 0]);
    lines.line_with("lambda_inbox.inbox.processed").await;

    for name in ["messaging.process.duration", "lambda_inbox.claim.duration"] {
        let counts = lines.all().into_iter().map(|line| {
            let line: Value = serde_json::from_str(&line).unwrap();
            assert!(line["_aws"].is_object(), "{line}");
            line[name].as_array().map_or(0, Vec::len)
        });
        let counts: Vec<usize> = counts.collect();
        assert!(counts.iter().all(|count| *count <= 100), "{counts:?}");
        assert_eq!(counts.iter().sum::<usize>(), MESSAGES, "{name}");
    }
}
