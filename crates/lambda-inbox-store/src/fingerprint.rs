//! A key can be chosen too coarsely, and numbers start over. The fingerprint tells "the same again",
//! which is skipped, from "the same key for something else", which is money if it is skipped.

use crate::canonical_json;
use sha2::{Digest, Sha256};
use std::fmt;

/// A version byte and a hash of the body.
///
/// Version 1 is the SHA-256 of the [canonical form](Fingerprint::of_body) of a JSON body, and of the
/// bytes of any other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; Self::BYTES]);

impl Fingerprint {
    const VERSION: u8 = 1;
    const BYTES: usize = 33;

    /// The fingerprint of a message's body. For JSON, the order of fields, white space and the
    /// spelling of characters (`A` or `\u0041`) do not matter, while numbers count as written: `1e2`
    /// is not `100`. A body that is not JSON is taken byte for byte.
    pub fn of_body(body: &str) -> Self {
        let mut canonical = Vec::with_capacity(body.len());
        match canonical_json::write(body, &mut canonical) {
            Some(()) => Self::of_bytes(&canonical),
            None => Self::of_bytes(body.as_bytes()),
        }
    }

    /// The fingerprint of bytes whose meaningless differences have been taken out already.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let mut fingerprint = [Self::VERSION; Self::BYTES];
        fingerprint[1..].copy_from_slice(&Sha256::digest(bytes));
        Self(fingerprint)
    }

    /// The bytes as stored: the version, then the hash.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether a stored fingerprint is of the same body. One of another version cannot be compared
    /// and agrees: after an upgrade, redeliveries of old messages must not turn into failures.
    pub fn agrees_with(&self, stored: &StoredFingerprint) -> bool {
        stored.0.first() != self.0.first() || stored.0 == self.0
    }
}

/// A fingerprint as the table has it, perhaps of another version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFingerprint(pub(crate) Vec<u8>);

/// The version and the first eight bytes, in hexadecimal: enough to compare two of them by eye.
fn abbreviated(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    const SHOWN: usize = 9;
    bytes
        .iter()
        .take(SHOWN)
        .try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        abbreviated(&self.0, f)
    }
}

impl fmt::Display for StoredFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        abbreviated(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agree(a: &str, b: &str) -> bool {
        let stored = StoredFingerprint(Fingerprint::of_body(b).as_bytes().to_vec());
        Fingerprint::of_body(a).agrees_with(&stored)
    }

    /// B-09: a relay that re-serialises must not send good messages to the dead-letter queue.
    #[test]
    fn a_reordered_json_body_has_the_same_fingerprint() {
        assert!(agree(r#"{"a":1,"b":2}"#, r#"{ "b":2, "a":1 }"#));
        assert!(!agree(r#"{"a":1,"b":2}"#, r#"{"a":1,"b":3}"#));
    }

    #[test]
    fn a_body_that_is_not_json_counts_byte_for_byte() {
        assert!(agree("a b", "a b"));
        assert!(!agree("a b", "a  b"));
    }

    #[test]
    fn another_version_cannot_disagree() {
        let stored = StoredFingerprint(vec![9, 1, 2, 3]);
        assert!(Fingerprint::of_body("x").agrees_with(&stored));
    }

    #[test]
    fn a_fingerprint_is_shown_short_enough_to_compare_by_eye() {
        assert_eq!(Fingerprint::of_body("x").to_string(), "012d711642b726b044");
    }
}
