//! Queues are asked how long they keep their messages.

use crate::server::{Received, Server};
use crate::support::{World, answer, error};
use axum::http::StatusCode;
use lambda_inbox_testkit::runtime::LocalRuntimeBuilder;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::time::{Duration, Instant};

const DAY: u64 = 86_400;

/// Answers as SQS does, for queues that keep their messages for 4 days and, where their name says dead, 14.
fn sqs(received: &Received) -> (StatusCode, String) {
    let body: Value = serde_json::from_slice(&received.body).unwrap();
    let target = received.headers["x-amz-target"].to_str().unwrap();
    let answer = match target {
        "AmazonSQS.GetQueueUrl" => {
            let name = body["QueueName"].as_str().unwrap();
            json!({"QueueUrl": format!("https://sqs.eu-central-1.amazonaws.com/111122223333/{name}")})
        }
        "AmazonSQS.GetQueueAttributes" => {
            let url = body["QueueUrl"].as_str().unwrap();
            if url.contains("missing") {
                let gone =
                    json!({"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "gone"});
                return (StatusCode::BAD_REQUEST, gone.to_string());
            }
            let days = if url.contains("dead") { 14 } else { 4 };
            let mut attributes = json!({"MessageRetentionPeriod": (days * DAY).to_string()});
            if !url.contains("dead") {
                let fifo = if url.ends_with(".fifo") { ".fifo" } else { "" };
                let target = format!("arn:aws:sqs:eu-central-1:111122223333:dead{fifo}");
                attributes["RedrivePolicy"] =
                    json!(json!({"deadLetterTargetArn": target, "maxReceiveCount": 5}).to_string());
            }
            json!({"Attributes": attributes})
        }
        other => panic!("{other}"),
    };
    (StatusCode::OK, answer.to_string())
}

fn asking(world: &World, endpoint: &str, queues: &str) -> LocalRuntimeBuilder {
    world
        .prune_function()
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .env("AWS_ENDPOINT_URL_SQS", format!("http://{endpoint}"))
        .env("LAMBDA_INBOX_QUEUES", queues)
}

/// B-15 with what the queues themselves say.
#[tokio::test]
async fn a_retention_is_compared_with_what_the_queues_say() {
    let world = World::migrated().await;
    let server = Server::start(sqs).await;
    let url = "https://sqs.eu-central-1.amazonaws.com/111122223333/orders";
    let arn = "arn:aws:sqs:eu-central-1:111122223333:orders";
    let fifo = "payments=arn:aws:sqs:eu-central-1:111122223333:orders.fifo";
    for (queues, dead_letters, least) in [
        (url, "stay", 4),
        (arn, "stay", 4),
        (arn, "come-back", 18),
        // A FIFO queue's clock starts over on the move.
        (&format!("{arn},{fifo}"), "stay", 18),
    ] {
        for (days, is_enough) in [(least, true), (least - 1, false)] {
            let mut function = asking(&world, &server.address, queues)
                .env("LAMBDA_INBOX_DEAD_LETTERS", dead_letters)
                .env("LAMBDA_INBOX_RETENTION", format!("{days}d"))
                .start()
                .await
                .unwrap();
            let invocation = function.invoke(&json!({})).await;
            if is_enough {
                answer(invocation);
            } else {
                let text = error(invocation);
                assert!(text.contains("queue orders"), "{queues}: {text}");
                assert!(text.contains(&format!("{least}d 12h")), "{queues}: {text}");
            }
        }
    }
}

#[tokio::test]
async fn a_queue_that_is_not_there_is_named_with_what_to_allow() {
    let world = World::migrated().await;
    let server = Server::start(sqs).await;
    let queue = "https://sqs.eu-central-1.amazonaws.com/111122223333/missing";
    let mut function = asking(&world, &server.address, queue)
        .start()
        .await
        .unwrap();
    let text = error(function.invoke(&json!({})).await);
    for part in [
        "LambdaInbox.QueueUnknown",
        "queue missing",
        "sqs:GetQueueAttributes",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let forced = answer(function.invoke(&json!({"force": true})).await);
    assert!(
        forced["warnings"][0]
            .as_str()
            .unwrap()
            .contains("queue missing")
    );
}

/// G-05: a private subnet without an endpoint must not cost the function its whole time.
#[tokio::test]
async fn an_endpoint_that_does_not_answer_is_named_in_time() {
    let world = World::migrated().await;
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = silent.local_addr().unwrap().to_string();
    let queue = "arn:aws:sqs:eu-central-1:111122223333:orders";
    let mut function = asking(&world, &endpoint, queue).start().await.unwrap();
    let began = Instant::now();
    let text = error(function.invoke(&json!({})).await);
    for part in ["does not answer", endpoint.as_str(), "VPC endpoint for sqs"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(began.elapsed() < Duration::from_secs(20));
}
