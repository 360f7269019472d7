//! The template itself, deployed by SAM as a user would: everything of it but network and RDS, which an
//! emulator without an account does not have.

use crate::bank::{AMOUNT, id, payment, payment_to};
use lambda_inbox_testkit::postgres::TestDatabase;
use lambda_inbox_tests::{Emulator, Function, Queue, eventually};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs SAM in the project's folder and returns what it says.
fn sam(arguments: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let output = Command::new(root.join("scripts/tool"))
        .arg("sam")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}{complained}");
    said
}

fn deploy(stack: &str, parameters: &[String]) -> Value {
    let template = std::env::var("LAMBDA_INBOX_TEMPLATE").unwrap();
    let mut arguments = vec![
        "deploy",
        "--template",
        &template,
        "--stack-name",
        stack,
        "--resolve-s3",
        "--no-progressbar",
        "--no-confirm-changeset",
        "--capabilities",
        "CAPABILITY_IAM",
        "--parameter-overrides",
    ];
    arguments.extend(parameters.iter().map(String::as_str));
    sam(&arguments);
    let outputs = sam(&[
        "list",
        "stack-outputs",
        "--stack-name",
        stack,
        "--output",
        "json",
    ]);
    let outputs: Value = serde_json::from_str(&outputs).unwrap();
    let pairs = outputs.as_array().unwrap().iter().map(|output| {
        let name = output["OutputKey"].as_str().unwrap();
        (name.to_owned(), output["OutputValue"].clone())
    });
    Value::Object(pairs.collect())
}

#[tokio::test]
async fn the_deployed_template_books_payments_once_and_prunes() {
    let emulator = Emulator::from_env();
    let database = TestDatabase::create().await.unwrap();
    let mut connection = database.connect().await.unwrap();
    let url = format!("DatabaseUrl={}", database.url());
    let stack = deploy(
        &emulator.unique("inbox"),
        &[url, "FunctionTimeout=10".to_owned()],
    );
    let text = |name: &str| stack[name].as_str().unwrap().to_owned();

    // CloudFormation invokes it on AWS; this emulator knows no custom resources. The database was empty until
    // now.
    let migrate = Function::at(&emulator, &text("MigrateFunctionName"));
    let migrated = migrate.invoke(&json!({})).await.unwrap();
    assert_eq!(migrated["schema"], "lambda_inbox", "{migrated}");

    let queue = Queue::at(&emulator, &text("QueueUrl"), &text("DeadLetterQueueUrl")).await;
    queue.send(&payment(1)).await;
    queue.send(&payment_to(2, "nobody")).await;
    queue.send(&payment(11)).await;
    let mut booked: Vec<String> = Vec::new();
    eventually("payments booked", 2, async || {
        booked = sqlx::query_scalar("SELECT payment_id FROM payment ORDER BY payment_id")
            .fetch_all(&mut connection)
            .await
            .unwrap();
        booked.len()
    })
    .await;
    assert_eq!(booked, [id(1), id(11)]);
    let balance: i64 = sqlx::query_scalar("SELECT balance FROM account WHERE id = 'shop-1'")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(balance, 2 * AMOUNT);
    // The mapping that the template made tells SQS what failed.
    eventually("messages that are left", 1, async || queue.depth().await).await;

    let consumer = Function::at(&emulator, &text("ConsumerFunctionName"));
    consumer.assert_counted("payments", 2).await;

    let prune = Function::at(&emulator, &text("PruneFunctionName"));
    let pruned = prune.invoke(&json!({})).await.unwrap();
    assert_eq!(pruned["finished"], true, "{pruned}");
}
