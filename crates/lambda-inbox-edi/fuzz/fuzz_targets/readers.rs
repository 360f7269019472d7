//! No bytes make a reader panic, and the readers never contradict each other:
//!
//! ```sh
//! cargo +nightly fuzz run readers -- -max_len=2048
//! ```
//!
//! The same invariants run on stable as `tests/properties.rs`.
#![no_main]

use lambda_inbox_edi::{KeyOptions, first_header, identities, identity, line_end_blind};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    let (first, one, all) = (first_header(body), identity(body), identities(body));
    if let Ok(one) = &one {
        assert_eq!(all.as_deref(), Ok(std::slice::from_ref(one)));
        assert_eq!(first.as_ref(), Ok(one));
        let key = (
            one.source(&KeyOptions::default()),
            one.message_id(&KeyOptions::default()),
        );
        assert_eq!(key.0.split(':').count(), 6);
        assert!(!key.1.is_empty() && !key.1.contains(':'));
        assert!(!key.0.contains(char::is_control) && !key.1.contains(char::is_control));
        // A resend with other line ends around it has the same key.
        let resent = [b"\xEF\xBB\xBF\r\n", body, b"\r\n"].concat();
        assert_eq!(identity(&resent).as_ref(), Ok(one));
    }
    if let Ok(all) = &all {
        assert_eq!(first.as_ref().ok(), all.first());
        assert_eq!(one.is_ok(), all.len() == 1);
    }
    if let Err(error) = &first {
        assert_eq!(
            (one.as_ref().err(), all.as_ref().err()),
            (Some(error), Some(error))
        );
        assert!(error.to_string().is_ascii());
    }
    let mut fed = Vec::new();
    line_end_blind(body, |piece| fed.extend_from_slice(piece));
    if first.is_ok() {
        assert!(!fed.contains(&b'\r') && !fed.windows(2).any(|pair| pair == b"\n\n"));
    }
});
