//! One way into both standards: a position in a body either holds a whole readable header, or an
//! error that says why not.

use crate::signs::Signs;
use crate::text::skip_filler;
use crate::{EdiError, Excerpt, HeaderFault, Interchange, Standard, edifact, refusal, x12};

/// A header and where it lies. All offsets are bytes of the body.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) interchange: Interchange,
    pub(crate) signs: Signs,
    /// The part read by position, without its terminator: ISA, or UNA. Empty where there is no UNA.
    pub(crate) fixed: std::ops::Range<usize>,
    /// Where segments can be followed from: after ISA, after UNA, or at UNB.
    pub(crate) segments: usize,
    /// After the header segment and its terminator.
    pub(crate) end: usize,
    /// Whether this can hardly be anything but a header, even in the middle of a segment: values
    /// that the standard restricts to digits or letters are such.
    pub(crate) unmistakable: bool,
}

/// Reads the header that starts exactly at `at`.
pub(crate) fn read_at(body: &[u8], at: usize) -> Result<Header, EdiError> {
    let rest = body.get(at..).unwrap_or_default();
    let (standard, header) = match rest.get(..3) {
        Some(b"ISA") => (Standard::X12, x12::read(rest)),
        Some(b"UNA" | b"UNB") => (Standard::Edifact, edifact::read(rest)),
        Some(_) | None => return Err(refusal::refuse(rest)),
    };
    match header {
        Ok(header) => Ok(header.moved_by(at)),
        Err(fault) => Err(malformed(standard, at, fault, rest)),
    }
}

/// Reads the header of a body, past what may stand before it.
pub(crate) fn read_first(body: &[u8]) -> Result<Header, EdiError> {
    read_at(body, skip_filler(body, 0))
}

fn malformed(standard: Standard, at: usize, fault: HeaderFault, rest: &[u8]) -> EdiError {
    EdiError::Header {
        standard,
        at,
        fault,
        start: Excerpt::of(rest),
    }
}

impl Header {
    fn moved_by(self, by: usize) -> Self {
        Self {
            fixed: self.fixed.start + by..self.fixed.end + by,
            segments: self.segments + by,
            end: self.end + by,
            ..self
        }
    }
}
