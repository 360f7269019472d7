//! EDI travels as UTF-8 or Latin-1, with byte order marks and blank lines that some gateway added.
//! Here bytes become text, once, for the header only.

use crate::HeaderFault;
use crate::header::Header;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// How the bytes of a header are read. See the crate docs for the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Latin1,
}

impl Encoding {
    /// Bytes in the body for the first `end` bytes of the decoded `text`.
    fn body_len(self, text: &str, end: usize) -> usize {
        match self {
            Self::Utf8 => end,
            Self::Latin1 => text.get(..end).unwrap_or(text).chars().count(),
        }
    }
}

/// Translates an offset in decoded text to one in the bytes it was decoded from.
pub(crate) type ToBody<'a> = &'a dyn Fn(usize) -> usize;

/// Reads a header from `window`, the bytes it may occupy: as UTF-8 if its bytes are valid, else as
/// Latin-1. Bytes after the header have no say.
pub(crate) fn read_header(
    window: &[u8],
    parse: impl Fn(&str, Encoding, ToBody<'_>) -> Result<Header, HeaderFault>,
) -> Result<Header, HeaderFault> {
    let valid = valid_prefix(window);
    let read = parse(valid, Encoding::Utf8, &|end| {
        Encoding::Utf8.body_len(valid, end)
    });
    if read.is_ok() || valid.len() == window.len() {
        return read;
    }
    let text = latin1(window);
    match parse(&text, Encoding::Latin1, &|end| {
        Encoding::Latin1.body_len(&text, end)
    }) {
        Ok(header) if header.end > valid.len() => Ok(header),
        Ok(_) | Err(_) => read,
    }
}

fn valid_prefix(window: &[u8]) -> &str {
    let valid = match std::str::from_utf8(window) {
        Ok(text) => return text,
        Err(error) => window.get(..error.valid_up_to()).unwrap_or_default(),
    };
    std::str::from_utf8(valid).unwrap_or_default()
}

/// Latin-1 is the first 256 code points of Unicode.
pub(crate) fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// The first byte at or after `from` that is neither white space nor a byte order mark.
pub(crate) fn skip_blank(body: &[u8], from: usize) -> usize {
    skip(body, from, |byte| byte.is_ascii_whitespace())
}

/// As [`skip_blank`], and past stray apostrophes: what may stand around an interchange.
pub(crate) fn skip_filler(body: &[u8], from: usize) -> usize {
    skip(body, from, |byte| {
        byte.is_ascii_whitespace() || byte == b'\''
    })
}

fn skip(body: &[u8], mut at: usize, passes: impl Fn(u8) -> bool) -> usize {
    while let Some(rest) = body.get(at..) {
        at += match rest.first() {
            Some(&byte) if passes(byte) => 1,
            Some(_) if rest.starts_with(BYTE_ORDER_MARK) => BYTE_ORDER_MARK.len(),
            Some(_) | None => break,
        };
    }
    at
}
