//! A translator hands ISA13 on as the number 905, the wire writes `000000905`: both must give one
//! key, whichever way a message reaches the inbox.

use crate::{Excerpt, InvalidValue};

/// Digits of ISA13 (X12 data element I12, N0 9/9).
const DIGITS: usize = 9;

/// The nine-digit form of an X12 interchange control number, as ISA13 writes it.
///
/// `written` is what a translator made of it, such as the text of the JSON integer 905; blanks
/// around it are ignored. EDIFACT references (0020) are text and must not go through here.
///
/// ```
/// assert_eq!(lambda_inbox_edi::x12_control_number("905")?, "000000905");
/// # Ok::<(), lambda_inbox_edi::InvalidValue>(())
/// ```
///
/// # Errors
/// [`InvalidValue::ControlNumber`] if it is not one to nine ASCII digits.
pub fn x12_control_number(written: &str) -> Result<String, InvalidValue> {
    let digits = written.trim_matches(' ');
    let valid = (1..=DIGITS).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    if !valid {
        return Err(InvalidValue::ControlNumber {
            written: Excerpt::of(written.as_bytes()),
        });
    }
    Ok(format!("{digits:0>DIGITS$}"))
}
