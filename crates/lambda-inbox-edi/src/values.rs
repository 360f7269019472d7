//! UNB as values: split at separators that are not released, without copying what needs no change.

use std::borrow::Cow;

use crate::HeaderFault;
use crate::service::Service;
use crate::signs::is_line_end;

/// Elements of UNB that are kept: up to 0035.
const ELEMENTS: usize = 12;
/// With more elements than this the segment is no UNB: its terminator is missing. The bound keeps a
/// long run of lookalikes from being read once for each of them.
const ELEMENTS_MAX: usize = 2 * ELEMENTS;
/// Components of an element that are kept: S002 and S003 have four.
const COMPONENTS: usize = 4;

/// The values of UNB by element and component, as written.
pub(crate) struct Values<'a> {
    raw: [[&'a str; COMPONENTS]; ELEMENTS],
    release: Option<char>,
}

impl<'a> Values<'a> {
    /// Splits what follows the tag, up to the terminator; with the values goes the length read,
    /// terminator included.
    pub(crate) fn split(text: &'a str, service: &Service) -> Result<(Self, usize), HeaderFault> {
        // Spares lookalikes of a header in a long segment the loop below.
        if !service.ends_within(text) {
            return Err(HeaderFault::Unterminated);
        }
        let mut values = Self {
            raw: Default::default(),
            release: service.release,
        };
        let (mut element, mut component, mut start) = (0, 0, 0);
        let mut chars = text.char_indices();
        while let Some((at, sign)) = chars.next() {
            if Some(sign) == service.release {
                let (_, released) = chars.next().ok_or(HeaderFault::Unterminated)?;
                if is_line_end(released) {
                    return Err(HeaderFault::LineEnd);
                }
                continue;
            }
            let ends = service.ends_segment(sign);
            if ends || sign == service.element || sign == service.component {
                let value = text.get(start..at).unwrap_or_default();
                start = at + sign.len_utf8();
                values.keep(element, component, value);
            } else if is_line_end(sign) {
                return Err(HeaderFault::LineEnd);
            }
            if ends {
                return Ok((values, start));
            } else if element == ELEMENTS_MAX {
                return Err(HeaderFault::Unterminated);
            } else if sign == service.element {
                (element, component) = (element + 1, 0);
            } else if sign == service.component {
                component += 1;
            }
        }
        Err(HeaderFault::Unterminated)
    }

    fn keep(&mut self, element: usize, component: usize, value: &'a str) {
        if let Some(place) = self.raw.get_mut(element).and_then(|e| e.get_mut(component)) {
            *place = value;
        }
    }

    /// A value as data: empty if absent. The sign after a release character is data; the release
    /// character is not, not even a needless one before an ordinary character.
    pub(crate) fn value(&self, element: usize, component: usize) -> Cow<'a, str> {
        let raw = self
            .raw
            .get(element)
            .and_then(|e| e.get(component))
            .copied()
            .unwrap_or_default();
        let Some(release) = self.release.filter(|&sign| raw.contains(sign)) else {
            return Cow::Borrowed(raw);
        };
        let mut chars = raw.chars();
        let next = || {
            chars
                .next()
                .and_then(|c| if c == release { chars.next() } else { Some(c) })
        };
        Cow::Owned(std::iter::from_fn(next).collect())
    }
}
