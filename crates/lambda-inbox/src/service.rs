//! The tower service that Lambda's runtime calls.

use crate::batch::Batch;
use crate::deadline::Deadline;
use crate::error::InboxError;
use crate::event::InboxEvent;
use crate::inbox::Settings;
use crate::plan::Plan;
use crate::scope::Run;
use crate::span;
use aws_lambda_events::sqs::SqsBatchResponse;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use lambda_runtime::LambdaEvent;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::Service;
use tracing::Instrument;

/// A handler behind its inbox: takes SQS events, answers with exactly the messages that did not
/// commit.
///
/// It wraps the handler, not the runtime, and composes with tower layers of your own, which see the
/// undecoded event and the response. Run it with [`run`](crate::run()).
///
/// # Cancellation
/// A dropped call closes the connections that are in use, so that the server rolls back; a COMMIT that
/// is under way is finished in the background.
#[derive(Clone)]
pub struct InboxService {
    settings: Arc<Settings>,
    scope: Arc<dyn Run>,
}

impl InboxService {
    pub(crate) fn new(settings: Arc<Settings>, scope: impl Run + 'static) -> Self {
        Self {
            settings,
            scope: Arc::new(scope),
        }
    }
}

impl fmt::Debug for InboxService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InboxService")
            .field("consumer", &self.settings.consumer)
            .finish_non_exhaustive()
    }
}

impl Service<LambdaEvent<InboxEvent>> for InboxService {
    type Response = SqsBatchResponse;
    type Error = InboxError;
    type Future = BoxFuture<'static, Result<SqsBatchResponse, InboxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), InboxError>> {
        // An error here would end the process, so a database that is down never shows here.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, event: LambdaEvent<InboxEvent>) -> Self::Future {
        self.clone().invoke(event).boxed()
    }
}

impl InboxService {
    async fn invoke(self, event: LambdaEvent<InboxEvent>) -> Result<SqsBatchResponse, InboxError> {
        let settings = &*self.settings;
        let deadline = Deadline::new(event.context.deadline, settings.timing.clone());
        let plan = Plan::new(settings, &deadline, event.payload).await;
        let plan = plan.map_err(|source| InboxError::Event {
            consumer: settings.consumer.clone(),
            source,
        })?;
        if plan.fifo && !self.scope.keeps_order() {
            let consumer = settings.consumer.clone();
            return Err(InboxError::Fifo { consumer });
        }
        let span = span::batch(
            &settings.consumer,
            plan.queue_arn.as_deref(),
            plan.identities.len(),
        );
        let batch = Batch::new(settings, deadline, plan);
        batch.run(&*self.scope).instrument(span).await
    }
}
