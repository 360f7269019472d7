//! What accounting needs of one INVOIC.
//!
//! The message has a header, lines and a summary, and the same codes mean other things in each. So a
//! value counts only where the message type puts it ([UN/EDIFACT D.96A], [EANCOM]): the total, for
//! example, is a MOA after UNS, but not one of the tax rates or allowances that follow there, which
//! may have code 77 as well.
//!
//! [UN/EDIFACT D.96A]: https://service.unece.org/trade/untdid/d96a/trmd/invoic_d.htm
//! [EANCOM]: https://ref.gs1.org/standards/eancom/1997/

use crate::amount;
use crate::refusal::Fault;
use crate::segment::Segment;
use time::{Date, Month};

/// One row to book.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Invoice {
    /// BGM 1004.
    pub(crate) number: String,
    /// BGM 1001; empty if absent.
    pub(crate) kind: String,
    /// DTM 137.
    pub(crate) date: Option<Date>,
    /// Decimal digits with a full stop.
    pub(crate) amount: String,
    /// ISO 4217.
    pub(crate) currency: String,
}

/// MOA 5025 of a total, best first: invoice amount, amount due, message total.
const TOTALS: [&str; 3] = ["77", "9", "86"];

/// An INVOIC that is being read.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    part: Part,
    /// Number and type.
    document: Option<(String, String)>,
    date: Option<Date>,
    /// Of CUX.
    currency: Option<String>,
    /// In the order of [`TOTALS`]; the currency may be empty.
    totals: [Option<(String, String)>; TOTALS.len()],
}

/// Where in the message the reader is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    /// What is said of the document itself.
    #[default]
    Document,
    /// References, parties, currencies, terms.
    Header,
    Lines,
    /// The amounts of the whole message.
    Totals,
    /// Those of tax rates and allowances.
    Breakdown,
}

impl Part {
    fn after(self, tag: &str) -> Self {
        match (self, tag) {
            (_, "UNS") => Self::Totals,
            (Self::Totals, "TAX" | "ALC") => Self::Breakdown,
            (Self::Document | Self::Header, "LIN") => Self::Lines,
            (Self::Document, "BGM" | "DTM" | "PAI" | "ALI" | "IMD" | "FTX") => Self::Document,
            (Self::Document, _) => Self::Header,
            (part, _) => part,
        }
    }
}

impl Draft {
    /// Takes the next segment. `mark` is the decimal mark in force.
    pub(crate) fn take(&mut self, segment: &Segment<'_>, mark: Option<char>) -> Result<(), Fault> {
        let tag = segment.tag();
        self.part = self.part.after(tag);
        match (self.part, tag) {
            (Part::Document, "BGM") => self.take_document(segment),
            (Part::Document, "DTM") => self.take_date(segment),
            (Part::Header, "CUX") => self.take_currency(segment),
            (Part::Totals, "MOA") => self.take_total(segment, mark),
            _ => Ok(()),
        }
    }

    /// The message is over.
    pub(crate) fn finish(self) -> Result<Invoice, Fault> {
        let fault = |segment, problem| move || Fault::new(segment, problem);
        let (number, kind) = self.document.ok_or_else(fault("BGM", "it is missing"))?;
        if !matches!(self.part, Part::Totals | Part::Breakdown) {
            return Err(Fault::new("UNS", "it is missing, and with it the summary"));
        }
        let total = self.totals.into_iter().flatten().next();
        let missing = "the summary has no total (5025 is 77, 9 or 86)";
        let (amount, currency) = total.ok_or_else(fault("MOA", missing))?;
        let currency = Some(currency)
            .filter(|code| !code.is_empty())
            .or(self.currency)
            .ok_or_else(fault(
                "MOA",
                "the total has no currency, and no CUX gives one",
            ))?;
        Ok(Invoice {
            number,
            kind,
            date: self.date,
            amount,
            currency,
        })
    }

    fn take_document(&mut self, bgm: &Segment<'_>) -> Result<(), Fault> {
        let number = bgm.value(2, 0);
        if number.is_empty() {
            return Err(Fault::new("BGM", "the document number (1004) is missing"));
        }
        self.document.get_or_insert((number, bgm.value(1, 0)));
        Ok(())
    }

    fn take_date(&mut self, dtm: &Segment<'_>) -> Result<(), Fault> {
        if dtm.value(1, 0) == "137" {
            let read = date(&dtm.value(1, 1), &dtm.value(1, 2));
            let date = read.ok_or(Fault::new("DTM", "the date (137) cannot be read"))?;
            self.date.get_or_insert(date);
        }
        Ok(())
    }

    /// The reference currency; a target currency may stand beside it.
    fn take_currency(&mut self, cux: &Segment<'_>) -> Result<(), Fault> {
        let Some(element) = [1, 2].into_iter().find(|&it| cux.value(it, 0) == "2") else {
            return Ok(());
        };
        let code = currency(cux.value(element, 1));
        let code = code.ok_or(Fault::new("CUX", "the currency (6345) is not a code"))?;
        self.currency.get_or_insert(code);
        Ok(())
    }

    fn take_total(&mut self, moa: &Segment<'_>, mark: Option<char>) -> Result<(), Fault> {
        let qualifier = moa.value(1, 0);
        let mut totals = TOTALS.iter().zip(&mut self.totals);
        let Some((_, total)) = totals.find(|(code, _)| **code == qualifier) else {
            return Ok(());
        };
        let amount = amount::exact(&moa.value(1, 1), mark);
        let amount = amount.ok_or(Fault::new("MOA", "the total (5004) is not an amount"))?;
        let code = moa.value(1, 2);
        let code = if code.is_empty() {
            code
        } else {
            currency(code).ok_or(Fault::new("MOA", "the currency (6345) is not a code"))?
        };
        // In another currency it may stand there again.
        total.get_or_insert((amount, code));
        Ok(())
    }
}

fn currency(code: String) -> Option<String> {
    let is_code = code.len() == 3 && code.bytes().all(|b| b.is_ascii_uppercase());
    is_code.then_some(code)
}

/// A date in one of the formats of 2379 that begin with it. The time of day is not looked at, and a
/// year of two digits is of this century.
fn date(written: &str, format: &str) -> Option<Date> {
    let (century, digits) = match format {
        "101" => ("20", 6),
        "102" => ("", 8),
        "203" => ("", 12),
        "204" => ("", 14),
        _ => return None,
    };
    if written.len() != digits || !written.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let day = format!("{century}{written}");
    let number = |from, to| day.get(from..to)?.parse::<u16>().ok();
    let month = Month::try_from(u8::try_from(number(4, 6)?).ok()?).ok()?;
    let day_of_month = u8::try_from(number(6, 8)?).ok()?;
    Date::from_calendar_date(i32::from(number(0, 4)?), month, day_of_month).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_read_in_the_formats_that_begin_with_one() {
        for (written, format, expected) in [
            ("20260105", "102", Some("2026-01-05")),
            ("260105", "101", Some("2026-01-05")),
            ("202601050930", "203", Some("2026-01-05")),
            ("20260105093015", "204", Some("2026-01-05")),
            ("20240229", "102", Some("2024-02-29")),
            ("20260229", "102", None),
            ("20261301", "102", None),
            ("20260100", "102", None),
            ("260105", "102", None),
            ("20260105", "101", None),
            ("20260105", "", None),
            ("202602", "610", None),
            ("2026-1-5", "102", None),
            ("", "102", None),
        ] {
            let read = date(written, format).map(|date| date.to_string());
            assert_eq!(read.as_deref(), expected, "{written}:{format}");
        }
    }
}
