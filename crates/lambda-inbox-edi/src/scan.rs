//! A key that stands for two interchanges loses one of them, so a body must be known to hold one
//! before its header becomes a key.
//!
//! Only reading on can prove that: looking at the last trailer from behind misses two interchanges
//! with the same number, and a second one without a trailer. So [`identity`] follows the segments
//! to the trailer, at memory speed, and [`first_header`] is there for whoever needs no proof.
//!
//! An interchange ends at whichever comes first:
//!
//! - its trailer, IEA or UNZ, at the start of a segment; whatever its number is, and with or
//!   without a terminator. After it only another interchange may follow;
//! - a header at the start of a segment, of either standard: `UNA`, or `ISA` or `UNB` with the
//!   separator in force, even if the rest of it cannot be read; with another separator it must be
//!   whole and readable;
//! - a whole header in the middle of a segment, after a line end or with the separator in force, as
//!   two files glued together leave it. Of UNB the digits and letters that ISO 9735 demands in S001
//!   and S004 must be there too, so that no run of ordinary elements passes for one;
//! - the end of the body: a missing trailer is no reason to refuse.
//!
//! Elsewhere the letters `ISA` and `UNB` are text; so is a tag after a released terminator. Tags
//! are recognised across hard line wraps. Binary data (X12 BIN and BDS, EDIFACT UNO) is not skipped
//! by its length: such data that looks like a trailer or a header makes the body refused, never
//! mistaken.

use crate::embedded;
use crate::header::{self, Header};
use crate::segments::{Segment, Segments};
use crate::signs::{Signs, Terminator};
use crate::text::skip_filler;
use crate::{EdiError, Excerpt, Interchange, Standard};

/// The identity of the body's first interchange, from the header alone.
///
/// It does not look for a second one, so it must not make keys: use [`identity`] for that. Reads at
/// most 2 KiB after leading blanks, whatever the size of the body.
///
/// # Errors
/// [`EdiError::Empty`], [`EdiError::NotAnInterchange`], [`EdiError::Header`].
pub fn first_header(body: &[u8]) -> Result<Interchange, EdiError> {
    header::read_first(body).map(|header| header.interchange)
}

/// The identity of the one interchange that the body holds.
///
/// # Errors
/// As [`first_header`]; also [`EdiError::SeveralInterchanges`], be the second one readable or not,
/// and [`EdiError::TrailingContent`].
pub fn identity(body: &[u8]) -> Result<Interchange, EdiError> {
    let header = header::read_first(body)?;
    match next_header(body, &header)? {
        Some(at) => Err(EdiError::SeveralInterchanges { at }),
        None => Ok(header.interchange),
    }
}

/// The identities of all interchanges of the body, in order; at least one.
///
/// # Errors
/// As [`first_header`], for any of the headers, and [`EdiError::TrailingContent`]. Nothing is
/// returned of a body of which a part is unreadable.
pub fn identities(body: &[u8]) -> Result<Vec<Interchange>, EdiError> {
    let mut header = header::read_first(body)?;
    let mut found = Vec::new();
    loop {
        let next = next_header(body, &header)?;
        found.push(header.interchange);
        let Some(at) = next else { return Ok(found) };
        header = header::read_at(body, at)?;
    }
}

/// Where the interchange after this one starts, if there is one.
fn next_header(body: &[u8], header: &Header) -> Result<Option<usize>, EdiError> {
    let after_trailer = match follow(body, header) {
        Boundary::Header(at) => return Ok(Some(at)),
        Boundary::EndOfBody => return Ok(None),
        Boundary::Trailer(next) => skip_after_trailer(body, next, &header.signs.terminator),
    };
    match body.get(after_trailer..).unwrap_or_default() {
        [] => Ok(None),
        rest if announces_header(rest) => Ok(Some(after_trailer)),
        rest => Err(EdiError::TrailingContent {
            at: after_trailer,
            start: Excerpt::of(rest),
        }),
    }
}

/// Passes what may stand after a trailer: filler, and stray terminators.
fn skip_after_trailer(body: &[u8], next: usize, terminator: &Terminator) -> usize {
    let mut at = skip_filler(body, next);
    while let Some(len) = terminator.len_at(body, at) {
        at = skip_filler(body, at + len);
    }
    at
}

enum Boundary {
    /// A header starts here.
    Header(usize),
    /// The trailer ends before here.
    Trailer(usize),
    EndOfBody,
}

fn follow(body: &[u8], header: &Header) -> Boundary {
    let mut boundary = Boundary::EndOfBody;
    let mut end = body.len();
    for segment in Segments::new(body, header.end, &header.signs) {
        // The tags sought begin with these letters.
        if !matches!(body.get(segment.start), Some(b'I' | b'U')) {
            continue;
        }
        if opens_interchange(body, segment, header) {
            (boundary, end) = (Boundary::Header(segment.start), segment.start);
            break;
        }
        if is_trailer(body, segment, header) {
            (boundary, end) = (Boundary::Trailer(segment.next), segment.next);
            break;
        }
    }
    embedded::find(body, header.end..end, header).map_or(boundary, Boundary::Header)
}

fn opens_interchange(body: &[u8], segment: Segment, header: &Header) -> bool {
    let content = body.get(segment.start..segment.end).unwrap_or_default();
    let own = match header.interchange.standard() {
        Standard::X12 => has_tag(content, b"ISA", &header.signs),
        Standard::Edifact => has_tag(content, b"UNB", &header.signs) || is_advice(content),
    };
    own || (announces_header(content) && header::read_at(body, segment.start).is_ok())
}

fn is_trailer(body: &[u8], segment: Segment, header: &Header) -> bool {
    let content = body.get(segment.start..segment.end).unwrap_or_default();
    match header.interchange.standard() {
        Standard::X12 => has_tag(content, b"IEA", &header.signs),
        Standard::Edifact => has_tag(content, b"UNZ", &header.signs),
    }
}

/// Whether a segment is `tag` alone, or begins with it and the element separator, wherever lines
/// are wrapped.
fn has_tag(segment: &[u8], tag: &[u8; 3], signs: &Signs) -> bool {
    let mut unwrapped = segment
        .iter()
        .filter(|byte| !matches!(byte, b'\r' | b'\n'))
        .peekable();
    tag.iter().all(|wanted| unwrapped.next() == Some(wanted))
        && (unwrapped.peek().is_none()
            || signs
                .element
                .as_bytes()
                .iter()
                .all(|wanted| unwrapped.next() == Some(wanted)))
}

/// EDIFACT has no other segment of this name.
fn is_advice(segment: &[u8]) -> bool {
    segment
        .strip_prefix(b"UNA")
        .is_some_and(|signs| !signs.first().is_some_and(u8::is_ascii_alphanumeric))
}

fn announces_header(bytes: &[u8]) -> bool {
    matches!(bytes.get(..3), Some(b"ISA" | b"UNA" | b"UNB"))
}
