//! The tower service that Lambda's runtime calls.

use crate::batch::Batch;
use crate::body::Decode;
use crate::deadline::Deadline;
use crate::error::InboxError;
use crate::event::InboxEvent;
use crate::handler::Handler;
use crate::inbox::Settings;
use crate::plan::Plan;
use crate::span;
use aws_lambda_events::sqs::SqsBatchResponse;
use lambda_runtime::LambdaEvent;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
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
pub struct InboxService<D, H> {
    settings: Arc<Settings>,
    handler: Arc<H>,
    decode: PhantomData<fn() -> D>,
}

impl<D, H> InboxService<D, H> {
    pub(crate) fn new(settings: Arc<Settings>, handler: H) -> Self {
        Self {
            settings,
            handler: Arc::new(handler),
            decode: PhantomData,
        }
    }
}

// By hand: a derived one would ask for D: Clone and H: Clone.
impl<D, H> Clone for InboxService<D, H> {
    fn clone(&self) -> Self {
        Self {
            settings: Arc::clone(&self.settings),
            handler: Arc::clone(&self.handler),
            decode: PhantomData,
        }
    }
}

impl<D, H> fmt::Debug for InboxService<D, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InboxService")
            .field("consumer", &self.settings.consumer)
            .finish_non_exhaustive()
    }
}

impl<D, H> Service<LambdaEvent<InboxEvent>> for InboxService<D, H>
where
    D: Decode,
    H: Handler<D::Body>,
{
    type Response = SqsBatchResponse;
    type Error = InboxError;
    type Future = Pin<Box<dyn Future<Output = Result<SqsBatchResponse, InboxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), InboxError>> {
        // An error here would end the process, so a database that is down never shows here.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, event: LambdaEvent<InboxEvent>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { service.invoke(event).await })
    }
}

impl<D, H> InboxService<D, H>
where
    D: Decode,
    H: Handler<D::Body>,
{
    async fn invoke(self, event: LambdaEvent<InboxEvent>) -> Result<SqsBatchResponse, InboxError> {
        let settings = &*self.settings;
        let deadline = Deadline::new(event.context.deadline, settings.timing.clone());
        let plan = match event.payload.records() {
            Ok(records) => Plan::new(settings, &deadline, &records).await,
            Err(source) => {
                let consumer = settings.consumer.clone();
                return Err(InboxError::Event { consumer, source });
            }
        };
        // Everything needed has been copied out of the text, which may be 6 MB.
        drop(event);
        let span = span::batch(
            &settings.consumer,
            plan.queue_arn.as_deref(),
            plan.identities.len(),
        );
        let batch = Batch::new(settings, deadline, plan);
        batch.run::<D, H>(&*self.handler).instrument(span).await
    }
}
