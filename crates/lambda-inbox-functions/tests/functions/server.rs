//! A small HTTP server on this machine, for what the functions call.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// One request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

pub(crate) type Answer = dyn Fn(&Received) -> (StatusCode, String) + Send + Sync;

pub(crate) struct Server {
    pub(crate) address: String,
    received: Arc<Mutex<Vec<Received>>>,
    task: JoinHandle<()>,
}

#[derive(Clone)]
struct Desk {
    received: Arc<Mutex<Vec<Received>>>,
    answer: Arc<Answer>,
}

impl Server {
    pub(crate) async fn start(
        answer: impl Fn(&Received) -> (StatusCode, String) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let desk = Desk {
            received: Arc::clone(&received),
            answer: Arc::new(answer),
        };
        let router = Router::new().fallback(serve).with_state(desk);
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        Self {
            address,
            received,
            task,
        }
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(State(desk): State<Desk>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let received = Received {
        method: parts.method,
        uri: parts.uri,
        headers: parts.headers,
        body: axum::body::to_bytes(body, 1 << 20).await.unwrap(),
    };
    let answer = (desk.answer)(&received);
    desk.received.lock().unwrap().push(received);
    answer.into_response()
}
