//! Metrics as lines of the function's log. CloudWatch counts what stands in them, so that no invocation waits
//! for another service, and nothing is lost when the environment is frozen after the answer.

use metrics_cloudwatch_embedded::{Builder, Collector};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use tower::{Layer, Service};

/// The name space in CloudWatch, which alarms and dashboards ask for.
const NAMESPACE: &str = "lambda-inbox";
/// The dimension of every metric, beside its labels: two stacks in one account are told apart by it.
const FUNCTION: &str = "function_name";

/// A line holds a hundred values of a histogram, and the collector throws away what is beyond. The rest is
/// for threads that record one in this moment.
const RECORDED_MAX: usize = 80;

/// The one of this process.
static INSTALLED: OnceLock<Emf> = OnceLock::new();
/// Values of histograms since the last line.
static RECORDED: AtomicUsize = AtomicUsize::new(0);

/// A layer for [`run`](crate::run) that writes what was counted in an invocation, before it is answered, as
/// one line to standard output for each set of labels, and more lines in a large batch. A histogram of your own may
/// have a hundred values between two lines, and loses what is beyond.
///
/// ```no_run
/// # use lambda_inbox::{HandlerError, Inbox, Message, sqlx::PgConnection};
/// use lambda_inbox::emf::Emf;
/// use lambda_inbox::lambda_runtime::tower::Layer;
///
/// # async fn charge(_: &Message<String>, _: &mut PgConnection) -> Result<(), HandlerError> { Ok(()) }
/// # #[tokio::main]
/// # async fn main() -> Result<(), lambda_runtime::Error> {
/// let inbox = Inbox::from_env("payments")?;
/// let metrics = Emf::install()?;
/// lambda_inbox::run(metrics.layer(inbox.handler(charge))).await
/// # }
/// ```
///
/// Source: Amazon CloudWatch User Guide, "Embedding metrics within logs".
#[derive(Clone, Copy)]
pub struct Emf {
    collector: &'static Collector,
}

impl Emf {
    /// Takes up everything that goes through the [`metrics`] facade from now on, under the name space
    /// `lambda-inbox`. Dimensions are the labels, and `function_name`.
    ///
    /// # Errors
    /// [`EmfError`] where the process has another recorder already.
    pub fn install() -> Result<Self, EmfError> {
        let function = std::env::var("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_default();
        let installed = Builder::new()
            .cloudwatch_namespace(NAMESPACE)
            .with_dimension(FUNCTION, function)
            .init();
        let collector = installed.map_err(|_| EmfError)?;
        Ok(*INSTALLED.get_or_init(|| Self { collector }))
    }

    /// A metric that cannot be written is no reason to fail an invocation.
    fn write(self) {
        RECORDED.store(0, Ordering::Relaxed);
        // Locked, or the log's lines would come in between.
        if let Err(error) = self.collector.flush(std::io::stdout().lock()) {
            tracing::warn!(%error, "metrics were not written");
        }
    }
}

/// To be called for each value of a histogram.
pub(crate) fn recorded() {
    if let Some(emf) = INSTALLED.get()
        && RECORDED.fetch_add(1, Ordering::Relaxed) + 1 >= RECORDED_MAX
    {
        emf.write();
    }
}

impl fmt::Debug for Emf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emf").finish_non_exhaustive()
    }
}

impl<S> Layer<S> for Emf {
    type Service = EmfService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        EmfService { emf: *self, inner }
    }
}

/// What [`Emf`] makes of a service.
#[derive(Clone, Debug)]
pub struct EmfService<S> {
    emf: Emf,
    inner: S,
}

impl<S, Request> Service<Request> for EmfService<S>
where
    S: Service<Request>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let emf = self.emf;
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            emf.write();
            answer
        })
    }
}

/// Metrics go somewhere else already.
#[derive(Debug, thiserror::Error)]
#[error("the process has a metrics recorder already; leave one of the two out")]
#[non_exhaustive]
pub struct EmfError;
