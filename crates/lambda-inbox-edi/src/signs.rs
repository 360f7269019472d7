//! Separators are characters of the header but bytes of the body: one byte each in most
//! interchanges, two where a sign such as NEL (U+0085) arrives in UTF-8.

use crate::text::Encoding;

/// A separator as the bytes it has in this body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sign {
    bytes: [u8; 4],
    len: usize,
}

impl Sign {
    pub(crate) fn new(sign: char, encoding: Encoding) -> Self {
        let mut bytes = [0; 4];
        let len = match (encoding, u8::try_from(sign)) {
            (Encoding::Latin1, Ok(byte)) => {
                bytes[0] = byte;
                1
            }
            (Encoding::Latin1, Err(_)) | (Encoding::Utf8, _) => sign.encode_utf8(&mut bytes).len(),
        };
        Self { bytes, len }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    pub(crate) fn first(&self) -> u8 {
        self.bytes[0]
    }

    pub(crate) fn is_at(&self, body: &[u8], at: usize) -> bool {
        body.get(at..)
            .is_some_and(|rest| rest.starts_with(self.as_bytes()))
    }
}

/// What ends a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Terminator {
    /// CR or LF was declared. Both then end a segment: gateways turn one into the other, or into
    /// CRLF, and neither can be data where one of them is a terminator.
    LineEnd,
    /// Any other sign.
    Sign(Sign),
}

impl Terminator {
    pub(crate) fn new(sign: char, encoding: Encoding) -> Self {
        match sign {
            '\r' | '\n' => Self::LineEnd,
            other => Self::Sign(Sign::new(other, encoding)),
        }
    }

    /// Length of the terminator at `at`, if there is one.
    pub(crate) fn len_at(&self, body: &[u8], at: usize) -> Option<usize> {
        match self {
            Self::LineEnd => body
                .get(at)
                .filter(|byte| matches!(byte, b'\r' | b'\n'))
                .map(|_| 1),
            Self::Sign(sign) => sign.is_at(body, at).then_some(sign.as_bytes().len()),
        }
    }
}

/// The signs needed to follow segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signs {
    pub(crate) element: Sign,
    pub(crate) terminator: Terminator,
    pub(crate) release: Option<Sign>,
}

/// Whether `sign` can separate: never part of a tag or number, and not lost among padding.
pub(crate) fn can_separate(sign: char) -> bool {
    !sign.is_alphanumeric() && sign != ' ' && !is_line_end(sign)
}

/// Whether `sign` can end a segment.
pub(crate) fn can_terminate(sign: char) -> bool {
    can_separate(sign) || is_line_end(sign)
}

pub(crate) fn is_line_end(sign: char) -> bool {
    matches!(sign, '\r' | '\n')
}
