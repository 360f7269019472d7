//! A gateway that adds or removes line ends must not make a resend look like other content under
//! the same key: a fingerprint has to be blind to them.

use memchr::memchr2_iter;

use crate::header;
use crate::segments::Segments;
use crate::signs::Terminator;
use crate::text::latin1;

/// Feeds the body to `sink`, piece by piece, without what gateways change in passing. Hash the
/// pieces in order; where one ends carries no meaning.
///
/// - What may stand before the first header is left out, as are blanks before a segment, empty
///   segments and a missing last terminator.
/// - Where CR or LF is the segment terminator, any run of them counts as one LF: CRLF and LF give
///   the same pieces, but the line end still separates.
/// - Elsewhere every CR and LF is left out, also inside a segment, so hard wrapping makes no
///   difference. The price: two bodies that differ only by a line end inside a text count as the
///   same. Neither standard has line ends in its character sets, and all other bytes stay, in
///   order, every separator and terminator among them.
/// - A body that is not valid UTF-8 from its first header on is read as Latin-1 and fed as UTF-8.
///
/// A body without a readable header is fed as it is.
pub fn line_end_blind(body: &[u8], mut sink: impl FnMut(&[u8])) {
    let Ok(header) = header::read_first(body) else {
        return sink(body);
    };
    let is_utf8 = std::str::from_utf8(body.get(header.fixed.start..).unwrap_or_default()).is_ok();
    let mut feed = |piece: &[u8]| {
        if is_utf8 || piece.is_ascii() {
            sink(piece);
        } else {
            sink(latin1(piece).as_bytes());
        }
    };
    let terminator: &[u8] = match &header.signs.terminator {
        Terminator::LineEnd => b"\n",
        Terminator::Sign(sign) => sign.as_bytes(),
    };
    if !header.fixed.is_empty() {
        feed(body.get(header.fixed.clone()).unwrap_or_default());
        feed(terminator);
    }
    for segment in Segments::new(body, header.segments, &header.signs) {
        let content = body.get(segment.start..segment.end).unwrap_or_default();
        if !content.is_empty() {
            feed_without_line_ends(content, &mut feed);
            feed(terminator);
        }
    }
}

fn feed_without_line_ends(content: &[u8], feed: &mut impl FnMut(&[u8])) {
    let mut from = 0;
    for at in memchr2_iter(b'\r', b'\n', content) {
        feed(content.get(from..at).unwrap_or_default());
        from = at + 1;
    }
    feed(content.get(from..).unwrap_or_default());
}
