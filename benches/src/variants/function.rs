//! A function built with lambda-inbox, called in this process the way Lambda's runtime calls it.

use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use lambda_inbox::InboxService;
use lambda_inbox::lambda_runtime::{Context, LambdaEvent};
use tower::{Service, ServiceExt};

use crate::delivery::Delivery;
use crate::error::BenchError;
use crate::variant::Variant;

/// More than any delivery takes.
const TIME_LEFT: Duration = Duration::from_secs(300);

/// Any scope's service as a [`Variant`].
pub(crate) struct Function {
    batch: usize,
    service: InboxService,
}

impl Function {
    pub(crate) fn new(batch: usize, service: InboxService) -> Self {
        Self { batch, service }
    }
}

impl Variant for Function {
    fn batch(&self) -> usize {
        self.batch
    }

    fn run(&mut self, delivery: Delivery) -> BoxFuture<'_, Result<(), BenchError>> {
        async move {
            let sent = delivery.messages.len();
            let event = LambdaEvent::new(delivery.event, context(TIME_LEFT));
            let response = self.service.ready().await?.call(event).await?;
            match response.batch_item_failures.len() {
                0 => Ok(()),
                reported => Err(BenchError::Reported { sent, reported }),
            }
        }
        .boxed()
    }
}

/// An invocation that Lambda would stop after `time_left`.
pub(crate) fn context(time_left: Duration) -> Context {
    let deadline = (SystemTime::now() + time_left)
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let mut context = Context::default();
    context.deadline = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
    context
}
