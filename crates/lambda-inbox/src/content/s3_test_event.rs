//! S3 sends a test message when notifications are set up. There is nothing to do about it, and a
//! consumer that fails on it keeps it coming until it lands in the dead-letter queue.
//!
//! Source: S3 User Guide, "Event message structure".

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Fields {
    service: Option<String>,
    event: Option<String>,
    r#type: Option<String>,
    message: Option<String>,
}

/// Whether a body is S3's test message, bare or inside an SNS notification.
pub(crate) fn is_s3_test_event(body: &str) -> bool {
    // Most bodies are not, and are told apart without being parsed.
    if !body.contains("s3:TestEvent") {
        return false;
    }
    let Ok(fields) = serde_json::from_str::<Fields>(body) else {
        return false;
    };
    match (fields.r#type.as_deref(), &fields.message) {
        (Some("Notification"), Some(message)) => {
            serde_json::from_str(message).is_ok_and(|fields| is_test(&fields))
        }
        _ => is_test(&fields),
    }
}

fn is_test(fields: &Fields) -> bool {
    fields.service.as_deref() == Some("Amazon S3")
        && fields.event.as_deref() == Some("s3:TestEvent")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D-06, and what only resembles it.
    #[test]
    fn only_the_test_message_itself_is_one() {
        let bare = r#"{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"b"}"#;
        let inside = serde_json::json!({"Type": "Notification", "Message": bare}).to_string();
        for body in [bare, &inside] {
            assert!(is_s3_test_event(body), "{body}");
        }
        for body in [
            "s3:TestEvent",
            r#"{"note":"s3:TestEvent"}"#,
            r#"{"Service":"Amazon S3","Event":"s3:ObjectCreated:Put","note":"s3:TestEvent"}"#,
            r#"{"Service":"Other","Event":"s3:TestEvent"}"#,
            r#"{"Type":"Notification","Message":"s3:TestEvent"}"#,
        ] {
            assert!(!is_s3_test_event(body), "{body}");
        }
    }
}
