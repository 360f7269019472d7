//! CloudFormation waits for an answer at a URL, for an hour, before it gives a stack up. So there is an
//! answer to everything, before the function's time is over.
//!
//! Source: AWS CloudFormation User Guide, "Custom resource request and response reference".

use crate::chain::chain;
use crate::error::FunctionError;
use crate::migrate::MigrateAnswer;
use bytes::Bytes;
use http_body_util::Full;
use hyper::{Method, Request as HttpRequest, StatusCode, Uri};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// The most characters of a reason: the whole answer may have 4,096 bytes.
const REASON_CHARACTERS_MAX: usize = 900;

/// How often the answer is sent that does not get through.
const ATTEMPTS_MAX: u32 = 3;

/// For one of them.
const ATTEMPT_MAX: Duration = Duration::from_secs(5);

/// The first pause in between; it doubles.
const PAUSE: Duration = Duration::from_millis(200);

/// Where a part of the request is missing.
const PHYSICAL_ID: &str = "lambda-inbox-tables";

/// A request of CloudFormation's.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct CustomResource {
    request_type: String,
    #[serde(rename = "ResponseURL")]
    response_url: String,
    #[serde(default)]
    stack_id: Value,
    #[serde(default)]
    request_id: Value,
    #[serde(default)]
    logical_resource_id: Value,
    physical_resource_id: Option<String>,
    #[serde(default)]
    resource_properties: Value,
}

/// What it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    CreateOrUpdate,
    Delete,
    Unknown,
}

impl CustomResource {
    /// `None` where the event is none.
    pub(crate) fn read(event: &Value) -> Option<Self> {
        event.get("RequestType")?;
        Self::deserialize(event).ok()
    }

    pub(crate) fn request(&self) -> Request {
        match self.request_type.as_str() {
            "Create" | "Update" => Request::CreateOrUpdate,
            "Delete" => Request::Delete,
            _ => Request::Unknown,
        }
    }

    pub(crate) fn properties(&self) -> Value {
        self.resource_properties.clone()
    }

    /// Tells CloudFormation what came of it.
    ///
    /// # Errors
    /// [`AnswerError`] where it was not told; Lambda then runs the function again.
    pub(crate) async fn answer(
        &self,
        result: &Result<Option<MigrateAnswer>, FunctionError>,
        until: Instant,
    ) -> Result<(), AnswerError> {
        let uri = self.uri()?;
        let body = Bytes::from(self.body(result).to_string());
        let host = || uri.host().unwrap_or_default().to_owned();
        let mut attempt = 1;
        loop {
            let attempt_until = until.min(Instant::now() + ATTEMPT_MAX);
            let sent = timeout_at(attempt_until, put(uri.clone(), body.clone())).await;
            let error = match sent {
                Ok(Ok(status)) if status.is_success() => return Ok(()),
                Ok(Ok(status)) => AnswerError::Refused {
                    host: host(),
                    status,
                },
                Ok(Err(source)) => AnswerError::Unreachable {
                    host: host(),
                    source,
                },
                Err(_) => AnswerError::NoAnswer { host: host() },
            };
            let is_worth_it =
                !matches!(&error, AnswerError::Refused { status, .. } if status.is_client_error());
            if attempt == ATTEMPTS_MAX || !is_worth_it || Instant::now() >= until {
                return Err(error);
            }
            sleep(PAUSE * 2_u32.pow(attempt - 1)).await;
            attempt += 1;
        }
    }

    /// The same for every request, or CloudFormation takes an update for a replacement and deletes the
    /// old one.
    fn physical_id(&self) -> &str {
        self.physical_resource_id.as_deref().unwrap_or(PHYSICAL_ID)
    }

    fn body(&self, result: &Result<Option<MigrateAnswer>, FunctionError>) -> Value {
        let (status, reason, data) = match result {
            Ok(answer) => ("SUCCESS", "done".to_owned(), data(answer.as_ref())),
            Err(error) => ("FAILED", chain(error), json!({})),
        };
        json!({
            "Status": status,
            "Reason": reason.chars().take(REASON_CHARACTERS_MAX).collect::<String>(),
            "PhysicalResourceId": self.physical_id(),
            "StackId": self.stack_id,
            "RequestId": self.request_id,
            "LogicalResourceId": self.logical_resource_id,
            "Data": data,
        })
    }

    /// The URL is signed, so it is sent as it is. Plain HTTP is for tests on this machine.
    fn uri(&self) -> Result<Uri, AnswerError> {
        let uri: Uri = self.response_url.parse().map_err(|_| AnswerError::Url)?;
        let is_local = matches!(uri.host(), Some("127.0.0.1" | "localhost" | "[::1]"));
        match uri.scheme_str() {
            Some("https") => Ok(uri),
            Some("http") if is_local => Ok(uri),
            _ => Err(AnswerError::Url),
        }
    }
}

fn data(answer: Option<&MigrateAnswer>) -> Value {
    answer.map_or(json!({}), |answer| {
        json!({
            "Schema": answer.schema,
            "VersionBefore": answer.before.to_string(),
            "VersionAfter": answer.after.to_string(),
            "Layout": answer.layout,
        })
    })
}

/// Without a content type: the URL's signature covers that there is none.
async fn put(
    uri: Uri,
    body: Bytes,
) -> Result<StatusCode, Box<dyn std::error::Error + Send + Sync>> {
    let connector = HttpsConnectorBuilder::new()
        .with_webpki_roots()
        .https_or_http()
        .enable_http1()
        .build();
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let request = HttpRequest::builder()
        .method(Method::PUT)
        .uri(uri)
        .body(Full::new(body))?;
    Ok(client.request(request).await?.status())
}

/// CloudFormation was not told. Never quotes the URL, whose signature lets anyone answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The URL is none, or not of HTTPS.
    #[error("ResponseURL is not an HTTPS URL")]
    Url,
    /// The network said no.
    #[error(
        "{host} cannot be reached; a private subnet needs a VPC endpoint for s3, or a NAT gateway"
    )]
    Unreachable {
        /// Where to.
        host: String,
        /// What happened.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Nothing came back.
    #[error(
        "{host} does not answer; a private subnet needs a VPC endpoint for s3, or a NAT gateway"
    )]
    NoAnswer {
        /// Where to.
        host: String,
    },
    /// It was not taken.
    #[error("{host} answered with status {status}")]
    Refused {
        /// Where to.
        host: String,
        /// The HTTP status.
        status: StatusCode,
    },
}
