//! EDIFACT text as segments and values (ISO 9735): UNA declares the signs that separate, and a
//! release character makes data of the sign after it. Knows nothing of any message.

use lambda_inbox_edi::line_end_blind;

/// The signs in force.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signs {
    component: char,
    element: char,
    /// The decimal mark that UNA declares.
    pub(crate) decimal: Option<char>,
    release: Option<char>,
    terminator: char,
}

/// Those that hold without UNA. The control characters of level B cannot be in an SQS message.
const STANDARD: Signs = Signs {
    component: ':',
    element: '+',
    decimal: None,
    release: Some('?'),
    terminator: '\'',
};

/// The interchange without blank lines, line wraps and whatever else gateways add: the text that the
/// key's fingerprint covers. Bodies that count as the same are thus read as the same.
pub(crate) fn plain(body: &str) -> String {
    let mut plain = Vec::with_capacity(body.len());
    line_end_blind(body.as_bytes(), |piece| plain.extend_from_slice(piece));
    String::from_utf8_lossy(&plain).into_owned()
}

/// The segments of a plain interchange, from UNB on.
pub(crate) fn segments(plain: &str) -> impl Iterator<Item = Segment<'_>> {
    let (signs, text) = una(plain).unwrap_or((STANDARD, plain));
    split(text, signs.terminator, signs.release)
        .filter(|text| !text.is_empty())
        .map(move |text| Segment { text, signs })
}

/// One segment, without its terminator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    text: &'a str,
    pub(crate) signs: Signs,
}

impl<'a> Segment<'a> {
    /// Its first three letters, if it is in order.
    pub(crate) fn tag(&self) -> &'a str {
        self.written(0, 0)
    }

    /// A value as data, empty if absent: the tag is element 0, components count from 0. Trailing
    /// blanks are padding, and go.
    pub(crate) fn value(&self, element: usize, component: usize) -> String {
        let mut chars = self.written(element, component).chars();
        let data = std::iter::from_fn(|| match chars.next()? {
            sign if Some(sign) == self.signs.release => chars.next(),
            sign => Some(sign),
        });
        let data: String = data.collect();
        data.trim_end_matches(' ').to_owned()
    }

    fn written(&self, element: usize, component: usize) -> &'a str {
        let Signs { release, .. } = self.signs;
        let mut elements = split(self.text, self.signs.element, release);
        let element = elements.nth(element).unwrap_or_default();
        let mut components = split(element, self.signs.component, release);
        components.nth(component).unwrap_or_default()
    }
}

/// The signs that UNA declares, and the text after it.
fn una(plain: &str) -> Option<(Signs, &str)> {
    let mut chars = plain.strip_prefix("UNA")?.chars();
    let mut next = || chars.next();
    let signs = Signs {
        component: next()?,
        element: next()?,
        decimal: next(),
        release: next().filter(|&sign| sign != ' '),
        terminator: {
            next()?; // Reserved; the repetition sign in version 4.
            next()?
        },
    };
    Some((signs, chars.as_str()))
}

/// The pieces of a text between the separators that are not released.
fn split(text: &str, separator: char, release: Option<char>) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = find(text, separator, release) else {
            return rest.take();
        };
        rest = text.get(end + separator.len_utf8()..);
        text.get(..end)
    })
}

fn find(text: &str, separator: char, release: Option<char>) -> Option<usize> {
    let mut chars = text.char_indices();
    while let Some((at, sign)) = chars.next() {
        if Some(sign) == release {
            chars.next();
        } else if sign == separator {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(body: &str) -> Vec<String> {
        let plain = plain(body);
        segments(&plain).map(|it| it.tag().to_owned()).collect()
    }

    /// The value at that place of the segment after UNB.
    fn value(body: &str, element: usize, component: usize) -> String {
        let plain = plain(body);
        let segment = segments(&plain).nth(1).unwrap();
        segment.value(element, component)
    }

    const UNB: &str = "UNB+UNOC:3+A:ZZ+B:ZZ+260105:0930+1'";

    #[test]
    fn a_segment_ends_where_the_terminator_in_force_is_not_released() {
        let unb = "UNB+UNOC:3+A:ZZ+B:ZZ+260105:0930+1";
        for body in [
            format!("{unb}'FTX+it?'s'UNZ+0+1'"),
            format!("UNA:+.? '{unb}'FTX+it?'s'UNZ+0+1'"),
            format!("UNA:+.? ~{unb}~FTX+it's ?~ here~UNZ+0+1~"),
            "UNA^|,\\ ~UNB|UNOC^3|A^ZZ|B^ZZ|260105^0930|1~FTX|\\~+:'~UNZ|0|1~".to_owned(),
            // Line ends as terminators, of either kind.
            format!("UNA:+.? \n{unb}\nFTX+it's\nUNZ+0+1\n"),
            format!("UNA:+.? \r\n{unb}\r\nFTX+it's\r\nUNZ+0+1\r\n"),
            // No release character.
            format!("UNA:+.  '{unb}'FTX+it?'UNZ+0+1'"),
            // What gateways add: blank lines, a byte order mark, hard wrapping.
            format!("\u{feff}'\r\n UNA:+.? '\r\n{unb}'\r\n\r\nFTX+it'UNZ+0+1'\r\n"),
            format!("{unb}'FT\r\nX+it?'s'UN\nZ+0+1'"),
            // What they cut off.
            format!("{unb}'FTX+it?'s'UNZ+0+1"),
        ] {
            assert_eq!(tags(&body), ["UNB", "FTX", "UNZ"], "{body:?}");
        }
    }

    #[test]
    fn a_value_is_found_by_its_place_and_freed_of_release_characters_and_padding() {
        for (segment, element, component, expected) in [
            ("BGM+380+R-1+9", 0, 0, "BGM"),
            ("BGM+380+R-1+9", 2, 0, "R-1"),
            ("BGM+380+R-1:1:2+9", 2, 1, "1"),
            ("BGM+380+R?+1?:2??+9", 2, 0, "R+1:2?"),
            ("BGM+380+R?-1+9", 2, 0, "R-1"),
            ("BGM+380+R-1  +9", 2, 0, "R-1"),
            ("BGM++R-1", 1, 0, ""),
            ("BGM+380", 2, 0, ""),
            ("BGM+380+R-1", 2, 7, ""),
            ("BGM+380+Nº 7 ?'ß?'", 2, 0, "Nº 7 'ß'"),
        ] {
            let body = format!("{UNB}{segment}'UNZ+0+1'");
            assert_eq!(value(&body, element, component), expected, "{segment}");
        }
    }

    #[test]
    fn the_decimal_mark_is_the_one_of_una() {
        for (body, expected) in [
            (UNB.to_owned(), None),
            (format!("UNA:+,? '{UNB}"), Some(',')),
            (format!("UNA:+.? '{UNB}"), Some('.')),
        ] {
            let plain = plain(&body);
            let unb = segments(&plain).next().unwrap();
            assert_eq!(unb.signs.decimal, expected, "{body}");
        }
    }
}
