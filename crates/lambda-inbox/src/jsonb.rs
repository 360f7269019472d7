//! Postgres's `jsonb` takes less than JSON: no NUL in a text, and no half of a surrogate pair. One such
//! body would fail a whole statement, so it is found before.

use crate::content::Content;
use crate::record::DecodeError;
use aws_lambda_events::sqs::SqsMessage;
use serde::de::IgnoredAny;
use serde_json::Value;

/// The innermost body, as text that `jsonb` takes.
pub(crate) fn for_jsonb<'a>(
    record: &'a SqsMessage,
    content: &'a Content,
) -> Result<&'a str, DecodeError> {
    if content.offloaded.is_some() {
        return Err(DecodeError::Offloaded);
    }
    let body = content.body(record).ok_or(DecodeError::NoBody)?;
    let not_json = |error: serde_json::Error| DecodeError::Body {
        problem: "not JSON that Postgres takes".to_owned(),
        line: error.line(),
        column: error.column(),
    };
    // Only an escape can be what JSON has and `jsonb` has not; the rule is read without a value tree.
    if body.contains("\\u") {
        let value: Value = serde_json::from_str(body).map_err(not_json)?;
        if has_nul(&value) {
            return Err(DecodeError::Nul);
        }
    } else {
        serde_json::from_str::<IgnoredAny>(body).map_err(not_json)?;
    }
    Ok(body)
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(values) => values.iter().any(has_nul),
        Value::Object(fields) => fields
            .iter()
            .any(|(name, v)| name.contains('\0') || has_nul(v)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_jsonb_refuses_is_refused_before() {
        let cases = [
            (r#"{"a":1}"#, true),
            ("17", true),
            (r#""back\\u0000slash""#, true),
            (r#"{"a":"left\u0000right"}"#, false),
            (r#"{"a\u0000":1}"#, false),
            (r#"{"a":"\ud83d"}"#, false),
            ("nope", false),
            ("", false),
        ];
        for (body, taken) in cases {
            let mut record = SqsMessage::default();
            record.body = Some(body.to_owned());
            assert_eq!(
                for_jsonb(&record, &Content::default()).is_ok(),
                taken,
                "{body}"
            );
        }
    }
}
