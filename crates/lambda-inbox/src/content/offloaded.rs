//! Bodies too large for SQS stand in S3, and the message is a pointer to them.
//!
//! Sources: the Amazon SQS Extended Client Libraries for Java (both generations) and Python, whose
//! pointers these are.

use aws_lambda_events::sqs::SqsMessage;
use futures_util::FutureExt;
use serde::Deserialize;
use std::collections::HashSet;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

/// Tags that the libraries put in front of a pointer.
const TAGS: [&str; 2] = [
    "com.amazon.sqs.javamessaging.MessageS3Pointer",
    "software.amazon.payloadoffloading.PayloadS3Pointer",
];

/// Attributes by which the libraries mark a message whose body is a pointer without a tag.
const MARKS: [&str; 2] = ["ExtendedPayloadSize", "SQSLargePayloadSize"];

/// Where an offloaded body stands.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct S3Pointer {
    /// The bucket.
    #[serde(rename = "s3BucketName")]
    pub bucket: String,
    /// The object's key.
    #[serde(rename = "s3Key")]
    pub key: String,
}

/// The pointer that a body is, in any of the three shapes.
pub(super) fn pointer(body: &str, record: &SqsMessage) -> Option<S3Pointer> {
    if !body.contains("s3BucketName") {
        return None;
    }
    if let Ok((tag, pointer)) = serde_json::from_str::<(String, S3Pointer)>(body) {
        return TAGS.contains(&tag.as_str()).then_some(pointer);
    }
    // Without a tag it is only a pointer where the sender says so.
    let marked = MARKS
        .iter()
        .any(|mark| record.message_attributes.contains_key(*mark));
    marked.then(|| serde_json::from_str(body).ok()).flatten()
}

/// A boxed future, as in the trait below.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Fetches offloaded bodies, for example with aws-sdk-s3, which this crate does not depend on.
pub trait PayloadResolver: Send + Sync + 'static {
    /// Fetches one body. Called before the message's transaction is opened, and dropped when Lambda's
    /// deadline comes near.
    ///
    /// # Errors
    /// Any; the record is reported and comes back.
    fn fetch<'a>(
        &'a self,
        pointer: &'a S3Pointer,
    ) -> BoxFuture<'a, Result<String, crate::BoxError>>;
}

/// A resolver with the buckets that it may be sent to: a pointer is input from outside, and must not
/// make the function read whatever its role can.
#[derive(Clone)]
pub(crate) struct Resolver {
    resolver: Arc<dyn PayloadResolver>,
    buckets: HashSet<String>,
}

impl Resolver {
    pub(crate) fn new(
        buckets: impl IntoIterator<Item = String>,
        resolver: impl PayloadResolver,
    ) -> Self {
        Self {
            resolver: Arc::new(resolver),
            buckets: buckets.into_iter().collect(),
        }
    }

    pub(super) async fn fetch(&self, pointer: &S3Pointer) -> Result<String, ResolveError> {
        if !self.buckets.contains(&pointer.bucket) {
            return Err(ResolveError::Bucket(pointer.bucket.clone()));
        }
        // Within a block, so that a panic before the first await is caught as well.
        let fetched = async { self.resolver.fetch(pointer).await };
        match AssertUnwindSafe(fetched).catch_unwind().await {
            Ok(fetched) => fetched.map_err(ResolveError::Fetch),
            Err(_) => Err(ResolveError::Fetch("the payload resolver panicked".into())),
        }
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver")
            .field("buckets", &self.buckets)
            .finish_non_exhaustive()
    }
}

/// An offloaded body could not be fetched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResolveError {
    #[error("offloaded payload in bucket {0:?}, which is not on the list of allowed buckets")]
    Bucket(String),
    #[error("offloaded payload could not be fetched")]
    Fetch(#[source] crate::BoxError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lambda_events::sqs::SqsMessageAttribute;

    /// D-13, and a body of a producer's own that only looks like a pointer.
    #[test]
    fn a_pointer_is_told_by_its_tag_or_its_mark() {
        let object = r#"{"s3BucketName":"big","s3Key":"k"}"#;
        let plain = SqsMessage::default();
        for tag in TAGS {
            assert!(
                pointer(&format!("[\"{tag}\",{object}]"), &plain).is_some(),
                "{tag}"
            );
        }
        assert_eq!(pointer(&format!("[\"other\",{object}]"), &plain), None);
        assert_eq!(pointer(object, &plain), None);
        let mut marked = SqsMessage::default();
        let mark = SqsMessageAttribute::default();
        marked
            .message_attributes
            .insert("ExtendedPayloadSize".into(), mark);
        assert_eq!(
            pointer(object, &marked).map(|p| p.key),
            Some("k".to_owned())
        );
        assert_eq!(pointer(r#"{"note":"s3BucketName"}"#, &marked), None);
    }
}
