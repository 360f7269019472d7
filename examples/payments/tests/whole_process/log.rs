//! What a function writes for Lambda to take up.

use crate::bank::{Bank, failures, payment};
use lambda_inbox_testkit::event::{Record, event};
use lambda_inbox_testkit::runtime::{Lines, Sink};
use serde_json::Value;

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
    assert_eq!(metrics["consumer"], "payments");
    assert_eq!(metrics["lambda_inbox.inbox.processed"], 1);
    assert_eq!(metrics["lambda_inbox.inbox.poison"], 1);
}
