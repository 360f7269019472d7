//! ISA is the one X12 segment of fixed length, because it declares the separators of all others:
//! an id in it may contain the separator sign, so it is read by offset and never split.
//!
//! The offsets are those of the [ASC X12 protocol manager guide] (Oracle/Sun), counted in
//! characters from the `I`: element separators at [`SEPARATORS`], component separator at 104,
//! terminator at 105.
//!
//! [ASC X12 protocol manager guide]: https://docs.oracle.com/cd/E19398-01/820-1278/agebg

use crate::header::Header;
use crate::signs::{Sign, Signs, Terminator, can_separate, can_terminate, is_line_end};
use crate::text::{Encoding, ToBody, read_header};
use crate::{HeaderFault, Interchange, Party, Usage};

/// Where element separators stand. The last one may be missing along with ISA16.
const SEPARATORS: [usize; 16] = [
    3, 6, 17, 20, 31, 34, 50, 53, 69, 76, 81, 83, 89, 99, 101, 103,
];
/// ISA16, if it is present.
const COMPONENT: usize = 104;
/// Characters of a complete header, with its terminator.
const HEADER_CHARS: usize = 106;
/// Bytes of one, if every character takes four.
const HEADER_BYTES_MAX: usize = HEADER_CHARS * 4;

/// Reads the header at the start of `bytes`, which begin with `ISA`.
pub(crate) fn read(bytes: &[u8]) -> Result<Header, HeaderFault> {
    read_header(bytes.get(..HEADER_BYTES_MAX).unwrap_or(bytes), parse)
}

fn parse(text: &str, encoding: Encoding, to_body: ToBody<'_>) -> Result<Header, HeaderFault> {
    let isa = Isa::new(text);
    let element = isa.char(SEPARATORS[0]).ok_or(HeaderFault::Unterminated)?;
    if !can_separate(element) {
        return Err(HeaderFault::Signs);
    }
    // The last separator is looked at by `terminator`.
    for &offset in &SEPARATORS[1..15] {
        match isa.char(offset) {
            Some(sign) if sign == element => {}
            Some(_) => return Err(HeaderFault::Layout { offset }),
            None => return Err(HeaderFault::Unterminated),
        }
    }
    if isa
        .between(SEPARATORS[0], SEPARATORS[15])
        .contains(is_line_end)
    {
        return Err(HeaderFault::LineEnd);
    }
    let terminator = terminator(&isa, element)?;
    let (end_of_isa, after) = (isa.start(terminator), isa.start(terminator + 1));
    let sign = isa.char(terminator).ok_or(HeaderFault::Unterminated)?;
    Ok(Header {
        interchange: interchange(&isa)?,
        signs: Signs {
            element: Sign::new(element, encoding),
            terminator: Terminator::new(sign, encoding),
            release: None,
        },
        fixed: 0..to_body(end_of_isa),
        segments: to_body(after),
        end: to_body(after),
        unmistakable: true,
    })
}

fn interchange(isa: &Isa<'_>) -> Result<Interchange, HeaderFault> {
    let sender = Party::new(isa.between(31, 34), isa.between(34, 50));
    let receiver = Party::new(isa.between(50, 53), isa.between(53, 69));
    let usage = Usage::from_isa15(isa.char(102).ok_or(HeaderFault::Unterminated)?);
    let it = Interchange::x12(sender, receiver, usage, isa.between(89, 99))?;
    Ok(it.with_date_time(isa.between(69, 76), isa.between(76, 81)))
}

/// The offset of the terminator. ISA16 may be missing, with or without the separator before it:
/// then the terminator stands earlier, which shows by a line end in its place, or by the letter of
/// the next tag after it.
fn terminator(isa: &Isa<'_>, element: char) -> Result<usize, HeaderFault> {
    let last = SEPARATORS[15];
    let sign = |offset| isa.char(offset).ok_or(HeaderFault::Unterminated);
    let at = if sign(last)? != element {
        if !is_line_end(sign(last)?) && !sign(last + 1)?.is_ascii_uppercase() {
            return Err(HeaderFault::Layout { offset: last });
        }
        last
    } else if is_line_end(sign(COMPONENT)?) || sign(COMPONENT + 1)?.is_ascii_uppercase() {
        COMPONENT
    } else if can_separate(sign(COMPONENT)?) && sign(COMPONENT)? != element {
        COMPONENT + 1
    } else {
        return Err(HeaderFault::Signs);
    };
    let terminator = sign(at)?;
    let taken = terminator == element || (at > COMPONENT && terminator == sign(COMPONENT)?);
    if can_terminate(terminator) && !taken {
        Ok(at)
    } else {
        Err(HeaderFault::Signs)
    }
}

/// The first characters of a text by their offset.
struct Isa<'a> {
    text: &'a str,
    /// Byte offsets in `text`: where each character starts, and where the last one ends.
    starts: [usize; HEADER_CHARS + 1],
    count: usize,
}

impl<'a> Isa<'a> {
    fn new(text: &'a str) -> Self {
        let mut starts = [0; HEADER_CHARS + 1];
        let mut count = 0;
        for (at, c) in text.char_indices().take(HEADER_CHARS) {
            starts[count] = at;
            count += 1;
            starts[count] = at + c.len_utf8();
        }
        Self {
            text,
            starts,
            count,
        }
    }

    fn char(&self, offset: usize) -> Option<char> {
        if offset >= self.count {
            return None;
        }
        self.text.get(self.start(offset)..)?.chars().next()
    }

    fn start(&self, offset: usize) -> usize {
        self.starts[offset.min(self.count)]
    }

    /// The text between two separators.
    fn between(&self, before: usize, after: usize) -> &'a str {
        self.text
            .get(self.start(before + 1)..self.start(after))
            .unwrap_or_default()
    }
}
