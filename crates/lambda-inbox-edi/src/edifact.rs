//! UNB is an ordinary segment of variable length, so its values must be split with the release
//! character in mind: a sender called `ACME+CO` is written `ACME?+CO`.
//!
//! Layout and code lists: [ISO 9735 service segments] of the Joint Syntax Working Group; UNA:
//! [GS1 EANCOM]. S002 is 0004:0007:0008:0042, S003 is 0010:0007:0014:0046, S004 is 0017:0019.
//!
//! [ISO 9735 service segments]: https://www.gefeg.com/jswg/v4/se/sed.htm
//! [GS1 EANCOM]: https://www.gs1.org/standards/eancom

use crate::header::Header;
use crate::service::Service;
use crate::text::{Encoding, ToBody, read_header, skip_blank};
use crate::values::Values;
use crate::{HeaderFault, Interchange, Party};

/// Twice what the longest legal UNB takes with every sign released, UNA and blank lines included.
const HEADER_BYTES_MAX: usize = 2048;

/// Positions in UNB, counting the tag as 0.
const S001: usize = 1;
const S002: usize = 2;
const S003: usize = 3;
const S004: usize = 4;
const REFERENCE_0020: usize = 5;
const TEST_INDICATOR_0035: usize = 11;

/// Reads the header at the start of `bytes`, which begin with `UNA` or `UNB`.
pub(crate) fn read(bytes: &[u8]) -> Result<Header, HeaderFault> {
    read_header(bytes.get(..HEADER_BYTES_MAX).unwrap_or(bytes), parse)
}

fn parse(text: &str, encoding: Encoding, to_body: ToBody<'_>) -> Result<Header, HeaderFault> {
    let advice = text
        .strip_prefix("UNA")
        .map(Service::from_una)
        .transpose()?;
    let after_una = advice.as_ref().map_or(0, |(_, len)| 3 + len);
    let unb = skip_blank(text.as_bytes(), after_una);
    let segment = text.get(unb..).unwrap_or_default();
    let Some(values) = segment.strip_prefix("UNB") else {
        let cut_off = "UNB".starts_with(segment);
        return Err(if cut_off {
            HeaderFault::Unterminated
        } else {
            HeaderFault::NoUnb
        });
    };
    let separator = values.chars().next().ok_or(HeaderFault::Unterminated)?;
    let service = match advice {
        Some((service, _)) => service,
        None => Service::default_for(separator)?,
    };
    if separator != service.element {
        return Err(HeaderFault::Signs);
    }
    let (unb_values, len) = Values::split(values, &service)?;
    let una_signs = if after_una == 0 {
        0
    } else {
        after_una - service.terminator.len_utf8()
    };
    Ok(Header {
        interchange: interchange(&unb_values)?,
        signs: service.signs(encoding),
        fixed: 0..to_body(una_signs),
        segments: to_body(unb),
        end: to_body(unb + "UNB".len() + len),
        unmistakable: is_unmistakable(&unb_values),
    })
}

fn interchange(unb: &Values<'_>) -> Result<Interchange, HeaderFault> {
    let party = |element| {
        Party::new(&unb.value(element, 1), &unb.value(element, 0))
            .with_internal(&unb.value(element, 2), &unb.value(element, 3))
    };
    let reference = unb.value(REFERENCE_0020, 0);
    let test = unb.value(TEST_INDICATOR_0035, 0);
    let (sender, receiver) = (party(S002), party(S003));
    let it = Interchange::edifact(sender, receiver, test.trim_matches(' '), &reference)?;
    Ok(it.with_date_time(&unb.value(S004, 0), &unb.value(S004, 1)))
}

/// S001 is `a4:n1`, and the date is digits: no run of ordinary elements looks like that.
fn is_unmistakable(unb: &Values<'_>) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let syntax = unb.value(S001, 0);
    syntax.len() == 4
        && syntax.bytes().all(|b| b.is_ascii_uppercase())
        && digits(&unb.value(S001, 1))
        && digits(&unb.value(S004, 0))
}
