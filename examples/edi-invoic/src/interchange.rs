//! From an interchange to its invoices: all of them, or a reason why none.

use crate::invoice::{Draft, Invoice};
use crate::refusal::{Fault, Kinds, Name, Refusal};
use crate::segment::{Segment, plain, segments};
use std::collections::BTreeSet;

/// The invoices of an EDIFACT interchange whose header is known to be readable; at least one.
///
/// # Errors
/// [`Refusal`] of the whole interchange: none of it may be booked where a part cannot be.
pub(crate) fn invoices(body: &str) -> Result<Vec<Invoice>, Refusal> {
    let plain = plain(body);
    let mut reader = Reader::default();
    for segment in segments(&plain) {
        match segment.tag() {
            "UNB" => reader.mark = decimal_mark(&segment),
            "UNG" => reader.groups += 1,
            "UNH" => reader.open(&segment)?,
            "UNT" => reader.close(&segment)?,
            "UNZ" => return reader.finish(&segment),
            _ => reader.take(&segment)?,
        }
    }
    Err(not_whole("UNZ", "it is missing"))
}

/// The decimal mark in force; `None` where both are allowed. Syntax version 4 keeps the place in UNA
/// and tells recipients to ignore it.
fn decimal_mark(unb: &Segment<'_>) -> Option<char> {
    let version = unb.value(1, 1);
    let declared = unb.signs.decimal.filter(|mark| matches!(mark, ',' | '.'));
    declared.filter(|_| matches!(version.as_str(), "1" | "2" | "3"))
}

#[derive(Default)]
struct Reader {
    mark: Option<char>,
    groups: u64,
    messages: u64,
    message: Option<Message>,
    invoices: Vec<Invoice>,
    other_kinds: BTreeSet<Name>,
}

/// The message that is being read.
struct Message {
    reference: Name,
    /// So far, UNH included.
    segments: u64,
    /// `None` for a message of another kind.
    draft: Option<Draft>,
}

impl Reader {
    fn open(&mut self, unh: &Segment<'_>) -> Result<(), Refusal> {
        self.expect_no_message()?;
        let kind = unh.value(2, 0);
        let draft = (kind == "INVOIC").then(Draft::default);
        if draft.is_none() {
            self.other_kinds.insert(Name(kind));
        }
        self.messages += 1;
        self.message = Some(Message {
            reference: Name(unh.value(1, 0)),
            segments: 1,
            draft,
        });
        Ok(())
    }

    fn take(&mut self, segment: &Segment<'_>) -> Result<(), Refusal> {
        let Some(message) = &mut self.message else {
            return Ok(());
        };
        message.segments += 1;
        let Some(draft) = &mut message.draft else {
            return Ok(());
        };
        draft
            .take(segment, self.mark)
            .map_err(|fault| message.refuse(fault))
    }

    fn close(&mut self, unt: &Segment<'_>) -> Result<(), Refusal> {
        let missing = || not_whole("UNT", "it ends no message");
        let mut message = self.message.take().ok_or_else(missing)?;
        message.segments += 1;
        if !says(unt, message.segments) {
            let fault = Fault::new("UNT", "it counts other segments than there are");
            return Err(message.refuse(fault));
        }
        if unt.value(2, 0) != message.reference.0 {
            return Err(message.refuse(Fault::new("UNT", "it has another reference than UNH")));
        }
        if let Some(draft) = message.draft.take() {
            let invoice = draft.finish().map_err(|fault| message.refuse(fault))?;
            self.invoices.push(invoice);
        }
        Ok(())
    }

    fn finish(self, unz: &Segment<'_>) -> Result<Vec<Invoice>, Refusal> {
        self.expect_no_message()?;
        // 0036 counts groups where there are any.
        let count = if self.groups > 0 {
            self.groups
        } else {
            self.messages
        };
        if !says(unz, count) {
            let problem = "it counts other messages or groups than there are";
            return Err(not_whole("UNZ", problem));
        }
        if self.invoices.is_empty() {
            return Err(Refusal::NoInvoice(Kinds(self.other_kinds)));
        }
        Ok(self.invoices)
    }

    fn expect_no_message(&self) -> Result<(), Refusal> {
        match &self.message {
            Some(message) => Err(message.refuse(Fault::new("UNT", "it is missing"))),
            None => Ok(()),
        }
    }
}

impl Message {
    fn refuse(&self, fault: Fault) -> Refusal {
        Refusal::Message {
            message: self.reference.clone(),
            fault,
        }
    }
}

fn not_whole(segment: &'static str, problem: &'static str) -> Refusal {
    Refusal::NotWhole(Fault::new(segment, problem))
}

/// Whether a trailer's count is this one.
fn says(trailer: &Segment<'_>, count: u64) -> bool {
    trailer.value(1, 0).parse() == Ok(count)
}

#[cfg(test)]
mod tests;
