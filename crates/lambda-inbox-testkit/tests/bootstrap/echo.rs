//! A function that does as its event says, for the tests of the local runtime.

use std::io::{Read, Write};
use std::net::TcpStream;

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), Error> {
    match std::env::var("ECHO_INIT").as_deref() {
        Ok("exit") => std::process::exit(3),
        Ok("error") => {
            let document = r#"{"errorType":"Init","errorMessage":"no configuration"}"#;
            post("/2018-06-01/runtime/init/error", document)?;
            std::process::exit(1);
        }
        Ok(_) | Err(_) => {}
    }
    lambda_runtime::run(service_fn(obey)).await
}

async fn obey(event: LambdaEvent<Value>) -> Result<Value, Error> {
    let (order, context) = event.into_parts();
    match order["do"].as_str().unwrap_or_default() {
        "echo" => Ok(order),
        "fail" => Err("as ordered".into()),
        "panic" => panic!("as ordered"),
        "exit" => {
            println!("leaving");
            std::process::exit(1)
        }
        "hang" => {
            println!("hanging");
            std::future::pending().await
        }
        "context" => Ok(json!({
            "deadline": context.deadline,
            "request_id": context.request_id,
            "arn": context.invoked_function_arn,
            "trace": context.xray_trace_id,
        })),
        "environment" => Ok(std::env::vars().collect::<Value>()),
        "answer for another" => {
            let status = post("/2018-06-01/runtime/invocation/another/response", "{}")?;
            Ok(json!(status))
        }
        "size" => Ok(json!(
            "x".repeat(order["bytes"].as_u64().unwrap_or(0) as usize)
        )),
        other => Err(format!("unknown order {other:?}").into()),
    }
}

/// Posts to the Runtime API by hand, as a faulty runtime would, and returns the status code.
fn post(path: &str, body: &str) -> Result<u16, Error> {
    let api = std::env::var("AWS_LAMBDA_RUNTIME_API")?;
    let mut stream = TcpStream::connect(&api)?;
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: {api}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status = answer.split(' ').nth(1).ok_or("no status line")?;
    Ok(status.parse()?)
}
