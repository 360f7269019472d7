//! Money, digit by digit: a detour through binary floats would lose cents.
//!
//! ISO 9735, clause 10: digits without grouping, a minus sign only in front, comma or full stop as
//! the decimal mark. UNA declares which of the two, except in syntax version 4, where it has no say.

/// More digits than any directory allows (5004 is n..35).
const DIGITS_MAX: usize = 35;

/// The amount as Postgres reads a numeric, with the decimals that were written; `None` if it is no
/// amount. `mark` is the decimal mark in force, `None` where both are allowed.
///
/// With a mark in force the other one is refused, not guessed at: 1,234 would be a thousand to one
/// partner and a little more than one to another.
pub(crate) fn exact(written: &str, mark: Option<char>) -> Option<String> {
    let (sign, digits) = match written.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", written),
    };
    let is_mark = |sign: char| mark.map_or(matches!(sign, ',' | '.'), |mark| sign == mark);
    let (whole, decimals) = match digits.split_once(is_mark) {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (digits, ""),
    };
    let count = whole.len() + decimals.len();
    let all_digits = whole
        .bytes()
        .chain(decimals.bytes())
        .all(|b| b.is_ascii_digit());
    if !all_digits || !(1..=DIGITS_MAX).contains(&count) {
        return None;
    }
    let point = if decimals.is_empty() { "" } else { "." };
    Some(format!("{sign}{whole}{point}{decimals}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_keeps_every_digit_that_was_written() {
        for (written, expected) in [
            ("0", "0"),
            ("119", "119"),
            ("1500.00", "1500.00"),
            ("1500,00", "1500.00"),
            ("-1500,5", "-1500.5"),
            (".5", ".5"),
            ("0.1", "0.1"),
            ("007,50", "007.50"),
            (
                "12345678901234567890123456789012,345",
                "12345678901234567890123456789012.345",
            ),
        ] {
            assert_eq!(exact(written, None).as_deref(), Some(expected), "{written}");
        }
    }

    #[test]
    fn what_is_no_amount_by_the_standard_is_refused() {
        for written in [
            "",
            "-",
            ".",
            ",",
            "5.",
            "--5",
            "+5",
            "5-",
            "1.234,50",
            "1,234,50",
            "1 234",
            "1e3",
            "12O",
            "\u{661}",
            "EUR",
            "1234567890123456789012345678901234567",
        ] {
            assert_eq!(exact(written, None), None, "{written}");
        }
    }

    #[test]
    fn a_declared_decimal_mark_excludes_the_other() {
        for (written, mark, expected) in [
            ("1,234", ',', Some("1.234")),
            ("1.234", ',', None),
            ("1.234", '.', Some("1.234")),
            ("1,234", '.', None),
            ("1234", '.', Some("1234")),
        ] {
            assert_eq!(
                exact(written, Some(mark)).as_deref(),
                expected,
                "{written} {mark}"
            );
        }
    }
}
