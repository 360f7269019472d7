//! Producers write one UUID in several ways, so a value that is a UUID is trimmed and lower-cased.
//! Everything else is kept byte for byte.

use std::borrow::Cow;
use uuid::Uuid;

/// The hyphenated form is the only text that counts: 32 hexadecimal digits may be something else.
const HYPHENATED: usize = 36;

pub(super) fn uuid_or_as_written(value: &str) -> Cow<'_, str> {
    let trimmed = value.trim();
    match (trimmed.len(), Uuid::try_parse(trimmed)) {
        (HYPHENATED, Ok(uuid)) => Cow::Owned(uuid.hyphenated().to_string()),
        _ => Cow::Borrowed(value),
    }
}
