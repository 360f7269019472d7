//! How a message's body becomes what the handler takes.

use crate::record::DecodeError;
use aws_lambda_events::sqs::SqsMessage;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;

/// Turns a record into the body that the handler takes. Chosen by the method that takes the handler:
/// [`Inbox::handler`](crate::Inbox::handler), [`Inbox::text_handler`](crate::Inbox::text_handler) or
/// [`Inbox::record_handler`](crate::Inbox::record_handler).
pub trait Decode: Send + Sync + 'static {
    /// What the handler finds in [`Message::body`](crate::Message::body).
    type Body: Send + Sync + 'static;

    /// Decodes one record, whose innermost body is `body`: the text within the envelopes that were
    /// taken off. A failure is permanent: the same bytes fail again.
    ///
    /// # Errors
    /// [`DecodeError`] for this record alone.
    fn decode(record: &SqsMessage, body: Option<&str>) -> Result<Self::Body, DecodeError>;
}

/// A JSON body, as any type that serde can read.
#[derive(Debug)]
pub struct Json<T>(PhantomData<fn() -> T>);

impl<T: DeserializeOwned + Send + Sync + 'static> Decode for Json<T> {
    type Body = T;

    fn decode(_: &SqsMessage, body: Option<&str>) -> Result<T, DecodeError> {
        let body = body.ok_or(DecodeError::NoBody)?;
        serde_json::from_str(body).map_err(|error| DecodeError::Body {
            problem: problem(&error),
            line: error.line(),
            column: error.column(),
        })
    }
}

/// The innermost body, byte for byte.
#[derive(Debug)]
pub struct Text;

impl Decode for Text {
    type Body = String;

    fn decode(_: &SqsMessage, body: Option<&str>) -> Result<String, DecodeError> {
        body.map(str::to_owned).ok_or(DecodeError::NoBody)
    }
}

/// The whole record as it came, envelopes and all. The body may be absent.
#[derive(Debug)]
pub struct Raw;

impl Decode for Raw {
    type Body = SqsMessage;

    fn decode(record: &SqsMessage, _: Option<&str>) -> Result<SqsMessage, DecodeError> {
        Ok(record.clone())
    }
}

/// serde's texts quote the value that did not fit, and a body must not reach a log. Only the name of
/// a missing field is the program's own.
fn problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let missing = text
        .strip_prefix("missing field `")
        .and_then(|rest| rest.split('`').next());
    match (missing, error.classify()) {
        (Some(field), _) => format!("field `{field}` is missing"),
        (None, serde_json::error::Category::Eof) => "the text ends too early".to_owned(),
        (None, serde_json::error::Category::Syntax | serde_json::error::Category::Io) => {
            "not valid JSON".to_owned()
        }
        (None, serde_json::error::Category::Data) => {
            "a value does not fit the handler's type".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct Payment {
        #[expect(dead_code, reason = "only its decoding matters")]
        amount: u64,
    }

    #[test]
    fn a_body_that_does_not_fit_is_told_without_quoting_it() {
        let cases = [
            (Some(r#"{"amount":"4111-secret"}"#), "does not fit"),
            (Some(r#"{"secret":1}"#), "field `amount` is missing"),
            (Some("secret"), "not valid JSON"),
            (Some(r#"{"amount":"#), "ends too early"),
            (Some(""), "ends too early"),
            (None, "no body"),
        ];
        for (body, text) in cases {
            let error = Json::<Payment>::decode(&SqsMessage::default(), body);
            let error = error.unwrap_err().to_string();
            assert!(error.contains(text), "{body:?}: {error}");
            assert!(!error.contains("secret"), "{body:?}: {error}");
        }
    }
}
