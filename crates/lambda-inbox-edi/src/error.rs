//! A refused body goes to the dead-letter queue, where a person reads the reason: every error says
//! what was found, shows no more of the payload than its first bytes, and names the fix.

use std::fmt;

use crate::Standard;

/// Why a body yields no identity. All of them are permanent: the same bytes fail again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EdiError {
    /// Nothing but blanks.
    #[error("body holds no interchange, it is empty or blank; check what the producer sends")]
    Empty,
    /// The body starts with something that is no interchange header.
    #[error("not an X12 or EDIFACT interchange, starts with \"{start}\"; {fix}")]
    NotAnInterchange {
        /// The first bytes after leading blanks.
        start: Excerpt,
        /// What to do about it.
        fix: &'static str,
    },
    /// ISA, UNA or UNB was found, but the header cannot be read.
    #[error("malformed {standard} header at byte {at}, \"{start}\": {fault}")]
    Header {
        /// The standard that the tag announces.
        standard: Standard,
        /// Byte offset of the header in the body.
        at: usize,
        /// What is wrong.
        fault: HeaderFault,
        /// The first bytes of the header.
        start: Excerpt,
    },
    /// A second interchange starts in the same body.
    #[error(
        "a second interchange starts at byte {at}; one key cannot stand for both, so send each \
         interchange as a message of its own"
    )]
    SeveralInterchanges {
        /// Byte offset of the second header.
        at: usize,
    },
    /// Something other than an interchange follows a trailer.
    #[error(
        "content that is no interchange follows the trailer at byte {at}, \"{start}\"; send \
         nothing after IEA or UNZ"
    )]
    TrailingContent {
        /// Byte offset of the content.
        at: usize,
        /// Its first bytes.
        start: Excerpt,
    },
}

/// What is wrong with a header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderFault {
    /// The body ends inside the header, or the header does not end within 2 KiB.
    #[error("it does not end; the body is truncated or its segment terminator is missing")]
    Unterminated,
    /// The fixed-length layout of ISA is broken at this character.
    #[error(
        "no element separator at character {offset}; ISA has fixed length, so pad every element \
         and keep blanks and line ends as they were"
    )]
    Layout {
        /// Character offset from the `I` of ISA.
        offset: usize,
    },
    /// A letter, a digit or a blank, or the same sign twice, where separators must stand.
    #[error(
        "its separators are no usable signs; they must be distinct, no letters, digits, blanks"
    )]
    Signs,
    /// UNA is not followed by UNB.
    #[error("UNA is not followed by UNB; send the whole interchange")]
    NoUnb,
    /// A line end inside ISA or UNB.
    #[error("a line end inside it; undo the line wrapping, or end the segment with its terminator")]
    LineEnd,
    /// A value that identifies the interchange is unusable.
    #[error(transparent)]
    Value(#[from] InvalidValue),
}

/// Why a value cannot be part of an identity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidValue {
    /// A mandatory value is empty or blank: unrelated interchanges would share one key.
    #[error("{name} is empty, and an interchange without it cannot be told from others")]
    Empty {
        /// The element by its name in the standard.
        name: &'static str,
    },
    /// An X12 control number that is not one to nine digits.
    #[error("\"{written}\" is no X12 control number; ISA13 is one to nine digits")]
    ControlNumber {
        /// The first bytes of the value.
        written: Excerpt,
    },
}

/// At most the first 16 bytes of a body, escaped so that a log line stays one line of ASCII.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt(String);

impl Excerpt {
    /// Length of the longest excerpt, in bytes of the body.
    pub const BYTES_MAX: usize = 16;

    pub(crate) fn of(bytes: &[u8]) -> Self {
        let shown = bytes.get(..Self::BYTES_MAX).unwrap_or(bytes);
        Self(shown.escape_ascii().to_string())
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
