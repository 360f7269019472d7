//! SQS and Lambda over plain HTTP. The AWS SDK would take minutes to build, and an emulator checks no
//! signature.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE};
use hyper::{Method, Request, Response, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use std::path::PathBuf;

pub(crate) const REGION: &str = "eu-central-1";

/// The emulator of this test run.
#[derive(Clone, Debug)]
pub struct Emulator {
    endpoint: String,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Emulator {
    /// As the environment names it.
    ///
    /// # Panics
    /// Where it names none, or one that is not on this machine.
    pub fn from_env() -> Self {
        let endpoint = std::env::var("AWS_ENDPOINT_URL")
            .expect("AWS_ENDPOINT_URL is not set; these tests are run by `make test-localstack`");
        let uri: Uri = endpoint.parse().expect("AWS_ENDPOINT_URL is not a URL");
        assert_eq!(
            uri.host(),
            Some("127.0.0.1"),
            "AWS_ENDPOINT_URL must be an emulator on this machine"
        );
        Self {
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            client: Client::builder(TokioExecutor::new()).build_http(),
        }
    }

    /// A name that no other test has.
    pub fn unique(&self, name: &str) -> String {
        let id = uuid::Uuid::new_v4().simple().to_string();
        format!("{name}-{}", &id[..12])
    }

    /// The zip of a binary, as `scripts/package` made it.
    pub(crate) fn package(&self, binary: &str) -> Vec<u8> {
        let folder = std::env::var_os("LAMBDA_INBOX_FUNCTIONS").map(PathBuf::from);
        let folder = folder.expect("LAMBDA_INBOX_FUNCTIONS is not set");
        let path = folder.join(format!("{binary}.zip"));
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// One call of SQS.
    ///
    /// # Panics
    /// Where SQS refuses.
    pub async fn sqs(&self, operation: &str, input: &Value) -> Value {
        let target = format!("AmazonSQS.{operation}");
        let request = request("sqs", Method::POST, &self.endpoint)
            .header(CONTENT_TYPE, "application/x-amz-json-1.0")
            .header("X-Amz-Target", target);
        let response = self.send(request, input).await;
        let is_success = response.status().is_success();
        let body = response.into_body();
        assert!(
            is_success,
            "{operation} of {input}: {}",
            String::from_utf8_lossy(&body)
        );
        serde_json::from_slice(&body).unwrap_or_default()
    }

    /// What functions have written to a group of CloudWatch's logs.
    pub(crate) async fn log_lines(&self, group: &str) -> Vec<String> {
        let request = request("logs", Method::POST, &self.endpoint)
            .header(CONTENT_TYPE, "application/x-amz-json-1.1")
            .header("X-Amz-Target", "Logs_20140328.FilterLogEvents");
        let input = serde_json::json!({ "logGroupName": group });
        let response = self.send(request, &input).await;
        let answer: Value = serde_json::from_slice(response.body()).unwrap_or_default();
        let events = answer["events"].as_array().cloned().unwrap_or_default();
        events
            .iter()
            .filter_map(|event| event["message"].as_str().map(str::to_owned))
            .collect()
    }

    /// One call of Lambda.
    ///
    /// # Panics
    /// Where Lambda refuses.
    pub async fn lambda(&self, method: Method, path: &str, input: &Value) -> Response<Bytes> {
        let uri = format!("{}/2015-03-31/{path}", self.endpoint);
        let request = request("lambda", method, &uri).header(CONTENT_TYPE, "application/json");
        let response = self.send(request, input).await;
        assert!(
            response.status().is_success(),
            "{path}: {}",
            String::from_utf8_lossy(response.body())
        );
        response
    }

    /// Of EventBridge Scheduler.
    pub(crate) async fn create_schedule(&self, name: &str, input: &Value) {
        let uri = format!("{}/schedules/{name}", self.endpoint);
        let request =
            request("scheduler", Method::POST, &uri).header(CONTENT_TYPE, "application/json");
        let response = self.send(request, input).await;
        assert!(
            response.status().is_success(),
            "{input}: {}",
            String::from_utf8_lossy(response.body())
        );
    }

    async fn send(&self, request: hyper::http::request::Builder, input: &Value) -> Response<Bytes> {
        let body = if input.is_null() {
            Bytes::new()
        } else {
            Bytes::from(input.to_string())
        };
        let request = request.body(Full::new(body)).expect("a request");
        let response = self
            .client
            .request(request)
            .await
            .expect("the emulator answers");
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("a whole answer").to_bytes();
        Response::from_parts(parts, body)
    }
}

/// The signature is none, but its scope tells the emulator which service is meant.
fn request(service: &str, method: Method, uri: &str) -> hyper::http::request::Builder {
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential=test/20260101/{REGION}/{service}/aws4_request, \
         SignedHeaders=host, Signature=0"
    );
    Request::builder()
        .method(method)
        .uri(uri)
        .header(AUTHORIZATION, authorization)
}
