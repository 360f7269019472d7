//! A function made of a packaged binary.

use crate::emulator::Emulator;
use crate::queue::Queue;
use crate::wait::eventually;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::Method;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Nothing checks it.
const ROLE: &str = "arn:aws:iam::000000000000:role/function";

/// A function that is deployed.
#[derive(Debug)]
pub struct Function {
    emulator: Emulator,
    name: String,
}

/// How a function is to be deployed.
#[derive(Debug)]
#[must_use = "a builder does nothing until it deploys"]
pub struct FunctionBuilder {
    emulator: Emulator,
    binary: String,
    variables: Map<String, Value>,
    timeout: Duration,
}

impl FunctionBuilder {
    /// An environment variable.
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables
            .insert(name.to_owned(), Value::String(value.into()));
        self
    }

    /// After which Lambda kills it; whole seconds, 8 by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Creates the function and waits until it can be invoked.
    pub async fn deploy(self) -> Function {
        let name = self.emulator.unique(&self.binary);
        let zip = STANDARD.encode(self.emulator.package(&self.binary));
        let input = json!({
            "FunctionName": name, "Runtime": "provided.al2023", "Handler": "bootstrap", "Role": ROLE,
            "Architectures": [Function::ARCHITECTURE], "Timeout": self.timeout.as_secs(),
            "Environment": { "Variables": self.variables }, "Code": { "ZipFile": zip },
        });
        self.emulator
            .lambda(Method::POST, "functions", &input)
            .await;
        let function = Function {
            emulator: self.emulator,
            name,
        };
        let active = Some("Active".to_owned());
        eventually("the function's state", active, async || {
            let path = format!("functions/{}/configuration", function.name);
            let answer = function
                .emulator
                .lambda(Method::GET, &path, &Value::Null)
                .await;
            let configuration: Value = serde_json::from_slice(answer.body()).expect("JSON");
            configuration["State"].as_str().map(str::to_owned)
        })
        .await;
        function
    }
}

impl Function {
    /// This machine's, in Lambda's words.
    pub const ARCHITECTURE: &str = if cfg!(target_arch = "aarch64") {
        "arm64"
    } else {
        "x86_64"
    };

    /// Of a binary that `scripts/package` packs.
    pub fn builder(emulator: &Emulator, binary: &str) -> FunctionBuilder {
        FunctionBuilder {
            emulator: emulator.clone(),
            binary: binary.to_owned(),
            variables: Map::new(),
            timeout: Duration::from_secs(8),
        }
    }

    /// A function that is deployed already.
    pub fn at(emulator: &Emulator, name: &str) -> Self {
        Self {
            emulator: emulator.clone(),
            name: name.to_owned(),
        }
    }

    /// Maps the queue to the function, with `ReportBatchItemFailures`.
    pub async fn map(&self, queue: &Queue, batch_size: u32) {
        let mut input = json!({
            "FunctionName": self.name, "EventSourceArn": queue.arn(), "BatchSize": batch_size,
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
        });
        // Lambda Developer Guide, "Configuring an SQS queue": more than ten messages need a window.
        if batch_size > 10 {
            input["MaximumBatchingWindowInSeconds"] = 1.into();
        }
        self.emulator
            .lambda(Method::POST, "event-source-mappings/", &input)
            .await;
    }

    /// Has EventBridge Scheduler invoke the function.
    pub async fn schedule(&self, expression: &str) {
        let path = format!("functions/{}/configuration", self.name);
        let answer = self.emulator.lambda(Method::GET, &path, &Value::Null).await;
        let configuration: Value = serde_json::from_slice(answer.body()).expect("JSON");
        let input = json!({
            "ScheduleExpression": expression,
            "FlexibleTimeWindow": { "Mode": "OFF" },
            "Target": { "Arn": configuration["FunctionArn"], "RoleArn": ROLE },
        });
        self.emulator.create_schedule(&self.name, &input).await;
    }

    /// Invokes the function and waits for its answer: a value, or the error that it reported.
    ///
    /// # Errors
    /// The function's.
    pub async fn invoke(&self, event: &Value) -> Result<Value, Value> {
        let path = format!("functions/{}/invocations", self.name);
        let answer = self.emulator.lambda(Method::POST, &path, event).await;
        let value = serde_json::from_slice(answer.body()).expect("JSON");
        if answer.headers().contains_key("X-Amz-Function-Error") {
            Err(value)
        } else {
            Ok(value)
        }
    }

    /// What the function has written, and the emulator about it.
    pub async fn log_lines(&self) -> Vec<String> {
        let group = format!("/aws/lambda/{}", self.name);
        self.emulator.log_lines(&group).await
    }

    /// Waits until the log says that the consumer has processed so many messages: what CloudWatch would count
    /// under the name and the dimension that the template's alarms and dashboard ask for.
    pub async fn assert_counted(&self, consumer: &str, expected: u64) {
        eventually("processed, by the log", expected, async || {
            let lines = self.log_lines().await;
            let counts = lines.iter().map(|line| self.processed(line, consumer));
            counts.flatten().sum()
        })
        .await;
    }

    fn processed(&self, line: &str, consumer: &str) -> Option<u64> {
        let line: Value = serde_json::from_str(line).ok()?;
        let directive = &line["_aws"]["CloudWatchMetrics"][0];
        let is_asked_for = directive["Namespace"] == "lambda-inbox"
            && directive["Dimensions"] == json!([["function_name", "consumer"]])
            && line["function_name"] == *self.name
            && line["consumer"] == consumer;
        let count = line["lambda_inbox.inbox.processed"].as_u64();
        count.filter(|_| is_asked_for)
    }

    /// Sends a signal (`KILL`, `STOP`) to every process that runs the function.
    ///
    /// # Panics
    /// Where there is none.
    pub fn signal(&self, signal: &str) {
        let state = std::env::var_os("LOCALSTACK_STATE").map(PathBuf::from);
        let folder = state
            .expect("LOCALSTACK_STATE is not set")
            .join("processes");
        let processes = std::fs::read_dir(folder.join(&self.name)).expect("a process ran");
        let pids: Vec<_> = processes.map(|entry| entry.unwrap().file_name()).collect();
        assert!(!pids.is_empty(), "no process runs {}", self.name);
        // The shell's own kill, because a program of that name is not installed everywhere.
        let status = Command::new("/bin/sh")
            .args(["-c", "kill -s \"$@\"", "sh", signal])
            .args(&pids)
            .status();
        assert!(status.expect("a shell").success(), "{signal} {pids:?}");
    }
}
