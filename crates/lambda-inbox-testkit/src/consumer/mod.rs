//! What the poller needs of a function, and nothing more: an event goes in, and one of four things comes back.
//!
//! The same scenario can then run against a closure, a service in this process ([`InProcess`]) or the real
//! binary ([`LocalRuntime`](crate::runtime::LocalRuntime)).

mod in_process;

use std::future::Future;
use std::time::Duration;

use serde_json::Value;

pub use in_process::InProcess;

/// What one invocation came to, as Lambda tells its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// The function returned; these are the bytes of its response, not yet looked at.
    Response(Vec<u8>),
    /// The function reported an error; the text is whatever it said.
    FunctionError(String),
    /// The function did not answer in time and was stopped.
    TimedOut,
    /// The process ended without an answer.
    Crashed,
}

impl Invocation {
    /// A response with `value` as its JSON.
    pub fn json(value: &Value) -> Self {
        Self::Response(value.to_string().into_bytes())
    }

    /// The response that reports exactly these message ids as failed; none means that all succeeded.
    pub fn failures<I>(message_ids: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        let failures: Vec<Value> = message_ids
            .into_iter()
            .map(|id| serde_json::json!({ "itemIdentifier": id.into() }))
            .collect();
        Self::json(&serde_json::json!({ "batchItemFailures": failures }))
    }
}

/// A function as its event source sees it.
pub trait Consumer {
    /// Hands over one event; `time_left` is the function's timeout.
    ///
    /// An implementation that can be stopped returns [`Invocation::TimedOut`] once `time_left` has passed; one that
    /// cannot may take longer. Dropping the future abandons the invocation, as a crash of the poller would.
    fn invoke(
        &mut self,
        event: Value,
        time_left: Duration,
    ) -> impl Future<Output = Invocation> + Send;
}

impl<C: Consumer + Send> Consumer for &mut C {
    async fn invoke(&mut self, event: Value, time_left: Duration) -> Invocation {
        (**self).invoke(event, time_left).await
    }
}

/// Makes a [`Consumer`] of an async closure.
///
/// ```
/// # use lambda_inbox_testkit::consumer::{from_fn, Invocation};
/// let mut invocations = 0;
/// let mut consumer = from_fn(|_event, _time_left| {
///     invocations += 1;
///     async move { Invocation::failures([] as [&str; 0]) }
/// });
/// # let _ = &mut consumer;
/// ```
pub fn from_fn<F, Fut>(invoke: F) -> FromFn<F>
where
    F: FnMut(Value, Duration) -> Fut + Send,
    Fut: Future<Output = Invocation> + Send,
{
    FromFn(invoke)
}

/// A closure as a [`Consumer`]; made by [`from_fn`].
#[derive(Clone, Copy, Debug)]
pub struct FromFn<F>(F);

impl<F, Fut> Consumer for FromFn<F>
where
    F: FnMut(Value, Duration) -> Fut + Send,
    Fut: Future<Output = Invocation> + Send,
{
    fn invoke(
        &mut self,
        event: Value,
        time_left: Duration,
    ) -> impl Future<Output = Invocation> + Send {
        (self.0)(event, time_left)
    }
}
