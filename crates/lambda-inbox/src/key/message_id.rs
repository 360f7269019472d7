//! The default key. Its source is not the queue's ARN: a message met again in its dead-letter queue
//! is the same message.

use super::{Key, KeyFailure, KeyProblem, stored};
use aws_lambda_events::sqs::SqsMessage;

const SOURCE: &str = "sqs";
const STRATEGY: &str = "MessageId";
const FIELD: &str = "messageId";

pub(super) fn key(record: &SqsMessage) -> Result<Key, KeyFailure> {
    let id = record.message_id.as_deref().ok_or_else(|| KeyFailure {
        strategy: STRATEGY.to_owned(),
        problem: KeyProblem::Missing {
            field: FIELD.to_owned(),
        },
    })?;
    stored(|| STRATEGY.to_owned(), || FIELD.to_owned(), SOURCE, id)
}
