//! The server side of the Lambda Runtime API, as the docs page `runtimes-api` states it, for one process.
//!
//! Every process gets a server of its own: nothing a dead process left in flight can meet its successor.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// The limit for a response, in bytes (page `gettingstarted-limits`).
const RESPONSE_BYTES_MAX: usize = 6 * 1024 * 1024;

const FUNCTION_ERROR_TYPE: &str = "lambda-runtime-function-error-type";

/// An event to hand out.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) request_id: String,
    pub(super) event: Vec<u8>,
    pub(super) time_left: Duration,
    pub(super) function_arn: String,
    /// Fires when the process has asked for the event, which is when its time starts to run.
    pub(super) taken: oneshot::Sender<()>,
    pub(super) answer: oneshot::Sender<Answer>,
}

/// What the process said about the event it holds.
#[derive(Debug)]
pub(super) enum Answer {
    Response(Vec<u8>),
    Error(String),
}

/// How far the process has come with its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Init {
    Running,
    Done,
    Failed(String),
}

/// One process's Runtime API; closes when dropped.
#[derive(Debug)]
pub(super) struct Api {
    address: SocketAddr,
    jobs: mpsc::UnboundedSender<Job>,
    init: watch::Receiver<Init>,
    server: JoinHandle<()>,
}

impl Api {
    /// Listens on a free loopback port.
    pub(super) async fn open() -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (jobs, queue) = mpsc::unbounded_channel();
        let (init_sender, init) = watch::channel(Init::Running);
        let router = router(Arc::new(Desk {
            queue: tokio::sync::Mutex::new(queue),
            current: Mutex::new(None),
            init: init_sender,
        }));
        let server = tokio::spawn(async move {
            // Serving ends with the task: an accept error is waited out inside.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self {
            address,
            jobs,
            init,
            server,
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn init(&self) -> watch::Receiver<Init> {
        self.init.clone()
    }

    pub(super) fn hand_out(&self, job: Job) {
        // The receiver lives as long as the server, which lives as long as self.
        let _ = self.jobs.send(job);
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        self.server.abort();
    }
}

struct Desk {
    queue: tokio::sync::Mutex<mpsc::UnboundedReceiver<Job>>,
    current: Mutex<Option<(String, oneshot::Sender<Answer>)>>,
    init: watch::Sender<Init>,
}

impl Desk {
    /// Answers the open invocation; `false` if `request_id` is not it.
    fn answer(&self, request_id: &str, answer: Answer) -> bool {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((_, sender)) = current.take_if(|(open, _)| open == request_id) else {
            return false;
        };
        // Nobody listens any more if the caller gave up; the process is not to blame.
        let _ = sender.send(answer);
        true
    }

    fn set_current(&self, request_id: String, answer: oneshot::Sender<Answer>) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some((request_id, answer));
    }
}

fn router(desk: Arc<Desk>) -> Router {
    Router::new()
        .route("/2018-06-01/runtime/invocation/next", get(next))
        .route(
            "/2018-06-01/runtime/invocation/{request_id}/response",
            post(response),
        )
        .route(
            "/2018-06-01/runtime/invocation/{request_id}/error",
            post(error),
        )
        .route("/2018-06-01/runtime/init/error", post(init_error))
        .layer(DefaultBodyLimit::max(RESPONSE_BYTES_MAX))
        .with_state(desk)
}

async fn next(State(desk): State<Arc<Desk>>) -> Response {
    desk.init.send_replace(Init::Done);
    let Some(job) = desk.queue.lock().await.recv().await else {
        return refusal(StatusCode::FORBIDDEN, "ShuttingDown", "the runtime stops");
    };
    let deadline = SystemTime::now() + job.time_left;
    let deadline_ms = deadline
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_millis();
    let headers = [
        ("lambda-runtime-aws-request-id", job.request_id.clone()),
        ("lambda-runtime-deadline-ms", deadline_ms.to_string()),
        ("lambda-runtime-invoked-function-arn", job.function_arn),
        ("lambda-runtime-trace-id", trace_id(deadline_ms)),
        (header::CONTENT_TYPE.as_str(), "application/json".to_owned()),
    ];
    desk.set_current(job.request_id, job.answer);
    let _ = job.taken.send(());
    (headers, job.event).into_response()
}

async fn response(
    State(desk): State<Arc<Desk>>,
    Path(request_id): Path<String>,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    match body {
        Ok(body) => accepted(desk.answer(&request_id, Answer::Response(body.to_vec()))),
        Err(rejection) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            let text = format!("response of more than {RESPONSE_BYTES_MAX} bytes");
            desk.answer(
                &request_id,
                Answer::Error(format!("Function.ResponseSizeTooLarge: {text}")),
            );
            refusal(
                StatusCode::PAYLOAD_TOO_LARGE,
                "RequestEntityTooLarge",
                &text,
            )
        }
        Err(rejection) => rejection.into_response(),
    }
}

async fn error(
    State(desk): State<Arc<Desk>>,
    Path(request_id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    accepted(desk.answer(&request_id, Answer::Error(error_text(&headers, &body))))
}

async fn init_error(State(desk): State<Arc<Desk>>, headers: HeaderMap, body: Bytes) -> Response {
    desk.init
        .send_replace(Init::Failed(error_text(&headers, &body)));
    accepted(true)
}

fn accepted(known: bool) -> Response {
    if known {
        (StatusCode::ACCEPTED, r#"{"status":"OK"}"#).into_response()
    } else {
        refusal(
            StatusCode::BAD_REQUEST,
            "InvalidRequestID",
            "no invocation with this request id is open",
        )
    }
}

fn refusal(status: StatusCode, kind: &str, message: &str) -> Response {
    let body = serde_json::json!({ "errorType": kind, "errorMessage": message });
    (status, body.to_string()).into_response()
}

/// The error document if there is one; it is optional, the header's type is not.
fn error_text(headers: &HeaderMap, body: &[u8]) -> String {
    if !body.is_empty() {
        return String::from_utf8_lossy(body).into_owned();
    }
    headers
        .get(FUNCTION_ERROR_TYPE)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .unwrap_or_default()
}

/// A tracing header that is never sampled.
fn trace_id(epoch_ms: u128) -> String {
    let random = Uuid::new_v4().simple().to_string();
    let (root, parent) = (&random[..24], &random[16..]);
    format!(
        "Root=1-{:08x}-{root};Parent={parent};Sampled=0",
        epoch_ms / 1000
    )
}
