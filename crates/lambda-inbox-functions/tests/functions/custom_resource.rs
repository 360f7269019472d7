//! The migrations as a custom resource: whatever happens, CloudFormation is told, and in time.

use crate::server::{Received, Server};
use crate::support::{World, answer, error, migrate_function_at};
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// As S3 signs it: what is escaped must stay escaped.
const SIGNED: &str = "/stack%2Farn%7Corders?X-Amz-Signature=a%2Fb%3D&X-Amz-Date=20261130T000000Z";

fn request(kind: &str, server: &str, properties: Value) -> Value {
    json!({
        "RequestType": kind,
        "ResponseURL": format!("http://{server}{SIGNED}"),
        "StackId": "arn:aws:cloudformation:eu-central-1:111122223333:stack/orders/1",
        "RequestId": "request-1",
        "ResourceType": "Custom::LambdaInbox",
        "LogicalResourceId": "InboxTables",
        "ResourceProperties": properties,
    })
}

async fn s3() -> Server {
    Server::start(|_| (StatusCode::OK, String::new())).await
}

fn told(server: &Server) -> Value {
    let received: Vec<Received> = server.received();
    let [told] = received.as_slice() else {
        panic!("one answer was expected: {received:?}");
    };
    assert_eq!(told.method, Method::PUT);
    assert_eq!(told.uri.path_and_query().unwrap(), SIGNED);
    assert_eq!(told.headers.get("content-type"), None);
    assert_eq!(told.headers["content-length"], told.body.len().to_string());
    assert_eq!(told.headers.get("transfer-encoding"), None);
    let body: Value = serde_json::from_slice(&told.body).unwrap();
    assert_eq!(
        body["StackId"],
        "arn:aws:cloudformation:eu-central-1:111122223333:stack/orders/1"
    );
    assert_eq!(
        (&body["RequestId"], &body["LogicalResourceId"]),
        (&json!("request-1"), &json!("InboxTables"))
    );
    assert!(told.body.len() < 4_096);
    body
}

#[tokio::test]
async fn create_and_update_make_the_tables_and_keep_one_identity() {
    let mut world = World::empty().await;
    let mut function = world.migrate_function().start().await.unwrap();
    let properties =
        json!({"ServiceToken": "arn:aws:lambda", "Layout": "time-ordered", "Partitions": "daily"});

    let server = s3().await;
    answer(
        function
            .invoke(&request("Create", &server.address, properties.clone()))
            .await,
    );
    let created = told(&server);
    assert_eq!(created["Status"], "SUCCESS", "{created}");
    assert_eq!(created["Data"]["VersionBefore"], "0");
    assert_eq!(world.count("lambda_inbox.inbox_by_time").await, 0);

    let server = s3().await;
    let mut update = request("Update", &server.address, properties);
    update["PhysicalResourceId"] = created["PhysicalResourceId"].clone();
    answer(function.invoke(&update).await);
    let updated = told(&server);
    assert_eq!(updated["Status"], "SUCCESS");
    assert_eq!(updated["PhysicalResourceId"], created["PhysicalResourceId"]);
}

#[tokio::test]
async fn delete_succeeds_and_leaves_the_data() {
    let mut world = World::migrated().await;
    world.keys("payments", 3, 1.0).await;
    // Not even a connection: a database that is gone must not keep the stack.
    let mut function = migrate_function_at("postgres://a@127.0.0.1:1/b")
        .start()
        .await
        .unwrap();
    let server = s3().await;
    let mut delete = request("Delete", &server.address, json!({}));
    delete["PhysicalResourceId"] = json!("of-a-create-that-failed");
    answer(function.invoke(&delete).await);
    let deleted = told(&server);
    assert_eq!(deleted["Status"], "SUCCESS");
    assert_eq!(deleted["PhysicalResourceId"], "of-a-create-that-failed");
    assert_eq!(world.count("lambda_inbox.inbox").await, 3);
}

#[tokio::test]
async fn a_failure_is_told_with_its_remedy() {
    let world = World::with_partitions().await;
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!(
        "postgres://app:secret@{}/shop",
        silent.local_addr().unwrap()
    );
    let here = world.database.url();
    for (url, kind, properties, text) in [
        ("", "Create", json!({}), "DATABASE_URL is not set"),
        (
            "postgres://app:secret@127.0.0.1:1/b",
            "Create",
            json!({}),
            "127.0.0.1:1",
        ),
        (
            silent.as_str(),
            "Create",
            json!({}),
            "did not answer in time; check that the function's subnets",
        ),
        (
            here.as_str(),
            "Create",
            json!({"Layout": "columnar"}),
            "time-ordered",
        ),
        (
            here.as_str(),
            "Update",
            json!({"Layout": "time-ordered"}),
            "cannot be changed",
        ),
        (here.as_str(), "Replace", json!({}), "RequestType"),
    ] {
        let mut function = migrate_function_at(url)
            .timeout(Duration::from_secs(6))
            .start()
            .await
            .unwrap();
        let server = s3().await;
        answer(
            function
                .invoke(&request(kind, &server.address, properties))
                .await,
        );
        let failed = told(&server);
        assert_eq!(failed["Status"], "FAILED", "{failed}");
        let reason = failed["Reason"].as_str().unwrap();
        assert!(
            reason.contains(text) && !reason.contains("secret"),
            "{reason}"
        );
        assert!(!failed["PhysicalResourceId"].as_str().unwrap().is_empty());
    }
}

#[tokio::test]
async fn an_answer_that_is_not_taken_is_sent_again() {
    let world = World::empty().await;
    let mut function = world.migrate_function().start().await.unwrap();
    let tries = AtomicUsize::new(0);
    let server = Server::start(move |_| match tries.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => (StatusCode::SERVICE_UNAVAILABLE, "slow down".to_owned()),
        _ => (StatusCode::OK, String::new()),
    })
    .await;
    answer(
        function
            .invoke(&request("Create", &server.address, json!({})))
            .await,
    );
    let bodies: Vec<_> = server
        .received()
        .into_iter()
        .map(|told| told.body)
        .collect();
    assert_eq!(bodies.len(), 3);
    assert!(bodies.iter().all(|body| *body == bodies[0]));
}

/// Lambda then runs it again, which does no harm.
#[tokio::test]
async fn cloudformation_that_cannot_be_told_is_an_error_that_keeps_the_signature() {
    let world = World::empty().await;
    let mut function = world.migrate_function().start().await.unwrap();
    let forbidden = Server::start(|_| (StatusCode::FORBIDDEN, String::new())).await;
    let text = error(
        function
            .invoke(&request("Create", &forbidden.address, json!({})))
            .await,
    );
    assert!(
        text.contains("403") && !text.contains("Signature"),
        "{text}"
    );
    assert_eq!(forbidden.received().len(), 1);

    let mut elsewhere = request("Create", "127.0.0.1:1", json!({}));
    let text = error(function.invoke(&elsewhere).await);
    assert!(text.contains("VPC endpoint for s3"), "{text}");
    elsewhere["ResponseURL"] = json!("http://example.com/?Signature=x");
    let text = error(function.invoke(&elsewhere).await);
    assert!(
        text.contains("not an HTTPS URL") && !text.contains("Signature=x"),
        "{text}"
    );
}
