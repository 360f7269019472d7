//! The example that shows what the inbox makes of an event.

#![allow(clippy::unwrap_used)] // In helpers too, which Clippy does not take for tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lambda_inbox_testkit::event::{Record, event};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Examples are built next to the tests' own folder, by a test run of the whole package.
fn deliver(arguments: &[&str]) -> Output {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples/deliver");
    assert!(
        path.exists(),
        "build it first: cargo build -p lambda-inbox-testkit --examples"
    );
    Command::new(path).args(arguments).output().unwrap()
}

fn file(folder: &TempDir, name: &str, content: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    path
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn lines(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{output:?}");
    let stdout = std::str::from_utf8(&output.stdout).unwrap();
    let lines = stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn each_file_is_a_line_with_response_and_records() {
    let folder = TempDir::new().unwrap();
    let records = ["a", "b"].map(|id| Record::new("not JSON").message_id(id).to_value());
    let good = file(&folder, "good.json", &event(records).to_string());
    let output = deliver(&["--fail", "b", text(&good), text(&good)]);
    let key = |id: &str| json!({"source": "sqs", "message_id": id});
    let record = |id: &str, outcome: &str, reason: Value| json!({"id": id, "outcome": outcome, "key": key(id), "reason": reason});
    let response = json!({"batchItemFailures": [{"itemIdentifier": "b"}]});
    let failed = || record("b", "failed", json!("told to fail by --fail"));
    let duplicate = || record("a", "duplicate", json!("committed by an earlier delivery"));
    let line = |records: Value| json!({"file": text(&good), "response": response, "error": null, "records": records});
    let first = line(json!([record("a", "processed", Value::Null), failed()]));
    // All files share one inbox.
    let second = line(json!([duplicate(), failed()]));
    assert_eq!(lines(&output), [first, second]);
}

#[test]
fn an_error_takes_the_place_of_the_response() {
    let folder = TempDir::new().unwrap();
    let files = [
        file(
            &folder,
            "schedule.json",
            r#"{"detail-type": "Scheduled Event"}"#,
        ),
        file(&folder, "text.json", "nope"),
        file(
            &folder,
            "without-id.json",
            r#"{"Records": [{"body": "x"}]}"#,
        ),
    ];
    let output = deliver(&files.each_ref().map(|path| text(path)));
    let lines = lines(&output);
    for (line, part) in lines
        .iter()
        .zip(["expects an SQS event", "not JSON", "messageId"])
    {
        assert_eq!(line["response"], Value::Null, "{line}");
        assert!(line["error"].as_str().unwrap().contains(part), "{line}");
    }
    assert_eq!(lines[0]["records"], json!([]));
    assert_eq!(lines[2]["records"][0]["id"], Value::Null);
    assert_eq!(lines[2]["records"][0]["outcome"], "poison");
}

#[test]
fn every_strategy_is_an_option() {
    let folder = TempDir::new().unwrap();
    let sns = json!({"Type": "Notification", "MessageId": "n-1", "TopicArn": "arn:topic",
        "Message": json!({"id": "e-1", "source": "shop", "detail-type": "t", "detail": {"n": 7}})
            .to_string()});
    let edi = "UNB+UNOA:1+ACME:ZZ+GLOBEX:14+260105:0930+417'UNZ+0+417'";
    let cases: [(&[&str], &str, &str); 7] = [
        (&["--strategy", "message-id"], "x", "sqs m-1"),
        (
            &["--strategy", "attribute", "--name", "order"],
            "x",
            "order o-1",
        ),
        (
            &["--strategy", "attribute", "--name", "order", "--scope", "s"],
            "x",
            "s o-1",
        ),
        (&["--strategy", "sns"], &sns.to_string(), "arn:topic n-1"),
        (
            &["--strategy", "event-bridge", "--unwrap", "sns"],
            &sns.to_string(),
            "shop e-1",
        ),
        (
            &[
                "--strategy",
                "json-pointer",
                "--pointer",
                "/n",
                "--unwrap",
                "sns,event-bridge",
            ],
            &sns.to_string(),
            "/n 7",
        ),
        (
            &["--strategy", "edi"],
            edi,
            "edifact:P:ZZ:ACME:14:GLOBEX 417",
        ),
    ];
    for (arguments, body, key) in cases {
        let record = Record::new(body)
            .message_id("m-1")
            .attribute("order", "String", "o-1");
        let path = file(
            &folder,
            "event.json",
            &event([record.to_value()]).to_string(),
        );
        let output = deliver(&[arguments, &[text(&path)]].concat());
        let found = &lines(&output)[0]["records"][0]["key"];
        let (source, id) = key.split_once(' ').unwrap();
        assert_eq!(
            *found,
            json!({"source": source, "message_id": id}),
            "{arguments:?}"
        );
    }
}

#[test]
fn what_cannot_be_delivered_is_an_error_that_names_the_fix() {
    let cases: [(&[&str], &str); 4] = [
        (&["no-such-file.json"], "no-such-file.json"),
        (&["--strategy", "attribute", "x.json"], "needs --name"),
        (&["--pointer", "/a", "x.json"], "--pointer goes with"),
        (
            &["--strategy", "json-pointer", "--pointer", "a.b", "x.json"],
            "/order/id",
        ),
    ];
    for (arguments, reason) in cases {
        let output = deliver(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(reason), "{arguments:?}: {stderr}");
    }
}
