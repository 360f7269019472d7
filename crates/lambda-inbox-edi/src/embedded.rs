//! A body cut off in the middle of a segment and followed by the next interchange has no segment
//! start where the second header stands. Such a header is still found, by its shape.
//!
//! In the middle of a segment a header counts only where it cannot be data: after a line end, or
//! with the element separator of the interchange around it, unreleased. A header quoted in a text
//! with other separators is data.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::header::{self, Header};
use crate::signs::Sign;

/// A body may hold thousands of interchanges, and building a searcher costs more than using it.
static TAGS: LazyLock<[Finder<'static>; 3]> =
    LazyLock::new(|| [Finder::new("ISA"), Finder::new("UNA"), Finder::new("UNB")]);

/// The first header within `range` of the body, inside the interchange that `outer` opens.
pub(crate) fn find(body: &[u8], range: Range<usize>, outer: &Header) -> Option<usize> {
    let region = body.get(range.clone())?;
    let first = |tag: &Finder<'static>| {
        tag.find_iter(region)
            .map(|offset| range.start + offset)
            .find(|&at| is_header(body, at, outer))
    };
    TAGS.iter().filter_map(first).min()
}

fn is_header(body: &[u8], at: usize, outer: &Header) -> bool {
    // Most candidates are words such as ISABEL, and end here.
    if body.get(at + 3).is_none_or(u8::is_ascii_alphanumeric) {
        return false;
    }
    let possible = follows_line_end(body, at)
        || (outer.signs.element.is_at(body, at + 3) && !touches_release(body, at, outer));
    possible && header::read_at(body, at).is_ok_and(|header| header.unmistakable)
}

fn follows_line_end(body: &[u8], at: usize) -> bool {
    let before = body.get(..at).unwrap_or_default();
    let text = before.trim_ascii_end();
    before
        .get(text.len()..)
        .is_some_and(|blanks| memchr::memchr2(b'\r', b'\n', blanks).is_some())
}

/// Whether the tag at `at` is part of a text: its first character is released, or the separator
/// before it is.
fn touches_release(body: &[u8], at: usize, outer: &Header) -> bool {
    let Some(release) = outer.signs.release else {
        return false;
    };
    let before = at.saturating_sub(1);
    is_released(body, at, &release)
        || (!release.is_at(body, before) && is_released(body, before, &release))
}

/// Two release characters in a row are one as data, so only an odd run releases what follows.
fn is_released(body: &[u8], at: usize, release: &Sign) -> bool {
    let mut before = body.get(..at).unwrap_or_default();
    let mut run = 0_usize;
    while let Some(rest) = before.strip_suffix(release.as_bytes()) {
        before = rest;
        run += 1;
    }
    run % 2 == 1
}
