//! What a message says, once the envelopes around it are off.
//!
//! Most SQS messages are wrapped by SNS, EventBridge or S3. How deep is declared, never guessed: a
//! producer's own body may look like an envelope.

mod event_bridge;
mod offloaded;
mod s3_test_event;
mod sns;

pub use event_bridge::EventBridgeEnvelope;
pub use offloaded::{BoxFuture, PayloadResolver, S3Pointer};
pub use sns::{SnsAttribute, SnsEnvelope};

pub(crate) use offloaded::{ResolveError, Resolver};
pub(crate) use s3_test_event::is_s3_test_event;

use aws_lambda_events::sqs::SqsMessage;

/// A service that wraps messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Envelope {
    /// An SNS notification; what is in it is its `Message`. Subscriptions with raw message delivery
    /// send no envelope.
    Sns,
    /// An EventBridge event; what is in it is its `detail`.
    EventBridge,
}

impl Envelope {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sns => "SNS",
            Self::EventBridge => "EventBridge",
        }
    }
}

/// The innermost body, and the envelopes that were taken off.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    /// The innermost body, where it is not the record's own.
    pub(crate) inner: Option<String>,
    pub(crate) sns: Option<SnsEnvelope>,
    pub(crate) event_bridge: Option<EventBridgeEnvelope>,
    /// The body stands in S3, and nothing fetched it.
    pub(crate) offloaded: Option<S3Pointer>,
}

impl Content {
    /// The innermost body; `None` where the record has none.
    pub(crate) fn body<'a>(&'a self, record: &'a SqsMessage) -> Option<&'a str> {
        self.inner.as_deref().or(record.body.as_deref())
    }
}

/// Takes the declared envelopes off, outermost first, and fetches bodies that stand in S3 where there
/// is a resolver.
pub(crate) async fn unwrap(
    record: &SqsMessage,
    envelopes: &[Envelope],
    resolver: Option<&Resolver>,
) -> Result<Content, ContentError> {
    let mut content = Content::default();
    fetch(&mut content, record, resolver).await?;
    for envelope in envelopes {
        let failed = |problem| EnvelopeError {
            envelope: *envelope,
            problem,
        };
        if content.offloaded.is_some() {
            return Err(failed(EnvelopeProblem::Offloaded).into());
        }
        let body = content
            .body(record)
            .ok_or_else(|| failed(EnvelopeProblem::NoBody))?;
        let inner = match envelope {
            Envelope::Sns => {
                let (sns, message) = sns::parse(body).map_err(failed)?;
                content.sns = Some(sns);
                message
            }
            Envelope::EventBridge => {
                let (event, detail) = event_bridge::parse(body).map_err(failed)?;
                content.event_bridge = Some(event);
                detail
            }
        };
        content.inner = Some(inner);
        fetch(&mut content, record, resolver).await?;
    }
    Ok(content)
}

async fn fetch(
    content: &mut Content,
    record: &SqsMessage,
    resolver: Option<&Resolver>,
) -> Result<(), ContentError> {
    let pointer = content
        .body(record)
        .and_then(|body| offloaded::pointer(body, record));
    match (pointer, resolver) {
        (Some(pointer), Some(resolver)) => {
            content.inner = Some(resolver.fetch(&pointer).await?);
            content.offloaded = None;
        }
        (pointer, _) => content.offloaded = pointer,
    }
    Ok(())
}

/// A record's content could not be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ContentError {
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    #[error(transparent)]
    Resolve(#[from] ResolveError),
}

/// A body is not wrapped the way that was declared. Never quotes the body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the body is not an envelope of {}: {problem}", envelope.name())]
pub(crate) struct EnvelopeError {
    envelope: Envelope,
    problem: EnvelopeProblem,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EnvelopeProblem {
    #[error("there is no body")]
    NoBody,
    #[error(
        "it is an offloaded payload, a pointer to S3; set a payload resolver, or key by MessageId or \
         Attribute without unwrapping"
    )]
    Offloaded,
    #[error("it is not a JSON object")]
    NotAnObject,
    #[error("{0} is missing or not text")]
    Field(&'static str),
    #[error("its Type is not Notification; confirm subscriptions before sending through them")]
    NotANotification,
    #[error("it has no Type; does the subscription use raw message delivery?")]
    RawDelivery,
}
