//! What lands in an EDI queue by mistake is nearly always one of a few things; whoever finds it in
//! the dead-letter queue is told which.

use crate::{EdiError, Excerpt};

/// The error for bytes that are no interchange header. `bytes` start after leading blanks.
pub(crate) fn refuse(bytes: &[u8]) -> EdiError {
    if bytes.is_empty() {
        return EdiError::Empty;
    }
    EdiError::NotAnInterchange {
        start: Excerpt::of(bytes),
        fix: fix_for(bytes),
    }
}

fn fix_for(bytes: &[u8]) -> &'static str {
    const FIXES: [(&[&[u8]], &str); 7] = [
        (
            &[b"{", b"[", b"\""],
            "it looks like JSON: take the interchange out of it first",
        ),
        (&[b"<"], "it looks like XML: send the raw interchange"),
        (
            &[b"GS"],
            "a functional group without its ISA: send the interchange from ISA to IEA",
        ),
        (
            &[b"UNH", b"UNG"],
            "a message or group without its UNB: send the interchange from UNA or UNB to UNZ",
        ),
        (
            &[b"SVNB", b"VU5B", b"VU5C"],
            "it looks like base64: decode it first",
        ),
        (
            &[b"STX="],
            "it looks like TRADACOMS, which has no X12 or EDIFACT identity",
        ),
        (
            &[b"\xFF\xFE", b"\xFE\xFF", b"I\0", b"U\0", b"\0I", b"\0U"],
            "it looks like UTF-16: send UTF-8 or Latin-1",
        ),
    ];
    let starts = |start: &&[u8]| bytes.starts_with(start);
    if let Some((_, fix)) = FIXES.iter().find(|(signs, _)| signs.iter().any(starts)) {
        return fix;
    }
    let tag = bytes.get(..3).unwrap_or_default().to_ascii_uppercase();
    match tag.as_slice() {
        b"ISA" | b"UNA" | b"UNB" => "segment tags are upper case: correct them at the sender",
        _ => "send only interchanges that start with ISA, UNA or UNB, or use another key strategy",
    }
}
