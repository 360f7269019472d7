//! The quickest way to drive a function: call its service in this process, the way `lambda_runtime` would.

use std::any::Any;
use std::fmt::{self, Display};
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lambda_runtime::{Context, LambdaEvent};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tower::{Service, ServiceExt};
use uuid::Uuid;

use super::{Consumer, Invocation};

const FUNCTION_ARN: &str = "arn:aws:lambda:eu-central-1:111122223333:function:in-process";

/// A service that takes `LambdaEvent<E>`, as a [`Consumer`].
///
/// The event goes through its JSON bytes, and the context carries a fresh request id and the wall-clock deadline. An
/// event that does not deserialise, an error of the service and a panic are [`Invocation::FunctionError`]s, as under
/// `lambda_runtime`. When the time is up the service's future is dropped, which is as close to Lambda's SIGKILL as one
/// process gets: tasks that the service has spawned keep running.
pub struct InProcess<S, E> {
    service: S,
    event: PhantomData<fn(E)>,
}

impl<S, E> InProcess<S, E> {
    /// Wraps the service.
    pub fn new(service: S) -> Self {
        Self {
            service,
            event: PhantomData,
        }
    }
}

impl<S: fmt::Debug, E> fmt::Debug for InProcess<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcess")
            .field("service", &self.service)
            .finish_non_exhaustive()
    }
}

impl<S, E> Consumer for InProcess<S, E>
where
    S: Service<LambdaEvent<E>> + Send,
    S::Future: Send,
    S::Response: Serialize + Send,
    S::Error: Display + Send,
    E: DeserializeOwned + Send,
{
    async fn invoke(&mut self, event: Value, time_left: Duration) -> Invocation {
        let run = panics_as_errors(call(&mut self.service, event, time_left));
        match tokio::time::timeout(time_left, run).await {
            Ok(Ok(response)) => Invocation::Response(response),
            Ok(Err(error)) => Invocation::FunctionError(error),
            Err(_elapsed) => Invocation::TimedOut,
        }
    }
}

async fn call<S, E>(service: &mut S, event: Value, time_left: Duration) -> Result<Vec<u8>, String>
where
    S: Service<LambdaEvent<E>>,
    S::Response: Serialize,
    S::Error: Display,
    E: DeserializeOwned,
{
    // Through bytes, not `from_value`: raw JSON values only deserialise from text.
    let payload = serde_json::from_slice(event.to_string().as_bytes()).map_err(text)?;
    let ready = service.ready().await.map_err(text)?;
    let response = ready.call(LambdaEvent::new(payload, context(time_left)));
    serde_json::to_vec(&response.await.map_err(text)?).map_err(text)
}

fn context(time_left: Duration) -> Context {
    let deadline = SystemTime::now() + time_left;
    let since_epoch = deadline.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut context = Context::default();
    context.request_id = Uuid::new_v4().to_string();
    context.deadline = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
    context.invoked_function_arn = FUNCTION_ARN.to_owned();
    context
}

async fn panics_as_errors<F>(run: F) -> Result<Vec<u8>, String>
where
    F: Future<Output = Result<Vec<u8>, String>>,
{
    let mut run = pin!(run);
    // The future is never polled again after a panic, so nothing observes what it left half done.
    poll_fn(
        |cx| match catch_unwind(AssertUnwindSafe(|| run.as_mut().poll(cx))) {
            Ok(poll) => poll,
            Err(panic) => Poll::Ready(Err(format!("panicked: {}", panic_text(panic.as_ref())))),
        },
    )
    .await
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)")
}

fn text(error: impl Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use serde::Deserialize;
    use serde_json::json;
    use serde_json::value::RawValue;
    use tower::service_fn;

    use super::*;

    const TIME_LEFT: Duration = Duration::from_secs(60);

    fn function_error(invocation: Invocation) -> String {
        match invocation {
            Invocation::FunctionError(text) => text,
            other @ (Invocation::Response(_) | Invocation::TimedOut | Invocation::Crashed) => {
                panic!("an error was expected, not {other:?}")
            }
        }
    }

    #[tokio::test]
    async fn a_response_is_its_json() {
        #[derive(Deserialize)]
        struct Event {
            raw: Box<RawValue>,
        }
        let echo = async |event: LambdaEvent<Event>| {
            Ok::<_, Infallible>(json!({ "raw": event.payload.raw.get() }))
        };
        let mut consumer = InProcess::new(service_fn(echo));
        let invocation = consumer.invoke(json!({ "raw": [1, 2] }), TIME_LEFT).await;
        assert_eq!(invocation, Invocation::json(&json!({ "raw": "[1,2]" })));
    }

    #[tokio::test]
    async fn the_context_has_a_fresh_request_id_and_the_deadline() {
        let contexts = async |event: LambdaEvent<Value>| {
            let context = event.context;
            Ok::<_, Infallible>((context.request_id, context.deadline))
        };
        let mut consumer = InProcess::new(service_fn(contexts));
        let mut seen: Vec<(String, u64)> = Vec::new();
        let before = SystemTime::now();
        for _ in 0..2 {
            match consumer.invoke(Value::Null, TIME_LEFT).await {
                Invocation::Response(response) => {
                    seen.push(serde_json::from_slice(&response).unwrap());
                }
                other @ (Invocation::FunctionError(_)
                | Invocation::TimedOut
                | Invocation::Crashed) => panic!("{other:?}"),
            }
        }
        assert_ne!(seen[0].0, seen[1].0);
        let earliest = (before + TIME_LEFT).duration_since(UNIX_EPOCH).unwrap();
        assert!(u128::from(seen[0].1) >= earliest.as_millis());
        let latest = SystemTime::now() + TIME_LEFT;
        let latest = latest.duration_since(UNIX_EPOCH).unwrap();
        assert!(u128::from(seen[1].1) <= latest.as_millis());
    }

    #[tokio::test]
    async fn an_event_of_another_shape_an_error_and_a_panic_are_function_errors() {
        let moody = async |event: LambdaEvent<String>| match event.payload.as_str() {
            "panic" => panic!("no mood"),
            other => Err::<(), _>(format!("no {other}")),
        };
        let mut consumer = InProcess::new(service_fn(moody));
        for (event, text) in [
            (json!("luck"), "no luck"),
            (json!("panic"), "panicked: no mood"),
            (json!(1), "invalid type: integer `1`, expected a string"),
        ] {
            let error = function_error(consumer.invoke(event, TIME_LEFT).await);
            assert!(error.starts_with(text), "{error}");
        }
    }

    #[tokio::test]
    async fn a_service_that_runs_out_of_time_is_dropped() {
        let (sender, dropped) = tokio::sync::oneshot::channel::<()>();
        let mut held = Some(sender);
        let hang = move |_: LambdaEvent<Value>| {
            let held = held.take();
            async move {
                std::future::pending::<()>().await;
                drop(held);
                Ok::<_, Infallible>(())
            }
        };
        let mut consumer = InProcess::new(service_fn(hang));
        let invocation = consumer.invoke(Value::Null, Duration::from_millis(1)).await;
        assert_eq!(invocation, Invocation::TimedOut);
        assert!(dropped.await.is_err());
    }
}
