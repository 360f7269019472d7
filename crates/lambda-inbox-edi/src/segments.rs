//! Following segments is how the end of an interchange is found: letters that look like a tag are
//! one only at the start of a segment. Vectorised search keeps that at memory speed.

use memchr::{memchr, memchr2, memchr3};

use crate::signs::{Signs, Terminator};
use crate::text::skip_blank;

/// A segment's place in a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// Its tag's first byte: blanks before it belong to no segment.
    pub(crate) start: usize,
    /// After its last byte, before the terminator.
    pub(crate) end: usize,
    /// After the terminator, or the end of the body where there is none.
    pub(crate) next: usize,
}

/// The segments of a body from some position on. Stray terminators give empty segments.
pub(crate) struct Segments<'a> {
    body: &'a [u8],
    at: usize,
    signs: &'a Signs,
}

impl<'a> Segments<'a> {
    pub(crate) fn new(body: &'a [u8], at: usize, signs: &'a Signs) -> Self {
        Self { body, at, signs }
    }

    /// The next byte that may be a terminator or a release character.
    fn next_sign(&self, from: usize) -> Option<usize> {
        let rest = self.body.get(from..)?;
        let found = match (self.signs.terminator, self.signs.release) {
            (Terminator::Sign(sign), None) => memchr(sign.first(), rest),
            (Terminator::Sign(sign), Some(release)) => memchr2(sign.first(), release.first(), rest),
            (Terminator::LineEnd, None) => memchr2(b'\r', b'\n', rest),
            (Terminator::LineEnd, Some(release)) => memchr3(b'\r', b'\n', release.first(), rest),
        };
        found.map(|offset| from + offset)
    }
}

impl Iterator for Segments<'_> {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        let start = skip_blank(self.body, self.at);
        if start >= self.body.len() {
            return None;
        }
        let mut from = start;
        while let Some(at) = self.next_sign(from) {
            if let Some(release) = self.signs.release.filter(|sign| sign.is_at(self.body, at)) {
                // The released character's first byte is passed over; its others are no signs.
                from = at + release.as_bytes().len() + 1;
            } else if let Some(len) = self.signs.terminator.len_at(self.body, at) {
                self.at = at + len;
                return Some(Segment {
                    start,
                    end: at,
                    next: self.at,
                });
            } else {
                from = at + 1;
            }
        }
        self.at = self.body.len();
        Some(Segment {
            start,
            end: self.at,
            next: self.at,
        })
    }
}
