//! The signs that structure an EDIFACT interchange: declared by UNA, or those of the standard.

use crate::HeaderFault;
use crate::signs::{Sign, Signs, Terminator, can_separate, can_terminate, is_line_end};
use crate::text::Encoding;

/// The service characters in force.
pub(crate) struct Service {
    pub(crate) component: char,
    pub(crate) element: char,
    pub(crate) release: Option<char>,
    pub(crate) terminator: char,
}

impl Service {
    /// Reads the six signs after `UNA`; with them goes the length they take.
    pub(crate) fn from_una(signs: &str) -> Result<(Self, usize), HeaderFault> {
        let mut chars = signs.char_indices().map(|(at, c)| (at + c.len_utf8(), c));
        let mut next = || chars.next().ok_or(HeaderFault::Unterminated);
        let ((_, component), (_, element), (_, decimal)) = (next()?, next()?, next()?);
        let ((_, release), (_, reserved), (len, terminator)) = (next()?, next()?, next()?);
        let release = Some(release).filter(|&sign| sign != ' ');
        let service = Self {
            component,
            element,
            release,
            terminator,
        };
        // A line end here shows that UNA lost its last signs, as trimming of lines does to it.
        let cut = is_line_end(decimal) || is_line_end(reserved);
        if service.is_usable() && !cut {
            Ok((service, len))
        } else {
            Err(HeaderFault::Signs)
        }
    }

    /// ISO 9735 clause 5: without UNA the signs follow from the character set level. Level B has
    /// the control characters IS1, IS3 and IS4, and needs no release character.
    pub(crate) fn default_for(separator: char) -> Result<Self, HeaderFault> {
        match separator {
            '+' => Ok(Self {
                component: ':',
                element: '+',
                release: Some('?'),
                terminator: '\'',
            }),
            '\u{1d}' => Ok(Self {
                component: '\u{1f}',
                element: '\u{1d}',
                release: None,
                terminator: '\u{1c}',
            }),
            _ => Err(HeaderFault::Signs),
        }
    }

    fn is_usable(&self) -> bool {
        let Self {
            component,
            element,
            release,
            terminator,
        } = *self;
        let distinct = component != element && element != terminator && terminator != component;
        let releases = release.is_none_or(|sign| {
            can_separate(sign) && ![component, element, terminator].contains(&sign)
        });
        distinct
            && releases
            && can_separate(component)
            && can_separate(element)
            && can_terminate(terminator)
    }

    pub(crate) fn ends_segment(&self, sign: char) -> bool {
        sign == self.terminator || (is_line_end(sign) && is_line_end(self.terminator))
    }

    pub(crate) fn ends_within(&self, text: &str) -> bool {
        match self.terminator {
            '\r' | '\n' => text.contains(['\r', '\n']),
            sign => text.contains(sign),
        }
    }

    pub(crate) fn signs(&self, encoding: Encoding) -> Signs {
        Signs {
            element: Sign::new(self.element, encoding),
            terminator: Terminator::new(self.terminator, encoding),
            release: self.release.map(|sign| Sign::new(sign, encoding)),
        }
    }
}
