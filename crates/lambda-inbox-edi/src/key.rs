//! A key is two columns of text, an interchange has up to ten values: joined carelessly, two
//! interchanges would share a key, and the second would be dropped as a duplicate.
//!
//! Inside a value, `:`, `/`, `%` and control characters are written as `%` and two hexadecimal
//! digits for each UTF-8 byte, so `:` and `/` in a key always separate. Every source has exactly six parts:
//! standard, usage, sender's qualifier and id, receiver's qualifier and id.

use std::fmt::Write as _;

use crate::{Interchange, Party, Standard, Usage};

/// What enters a key beside the identity that the standards define. The default adds nothing and
/// leaves nothing out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyOptions {
    /// Adds date and time to the message id. For partners whose numbers start over (after
    /// 999999999, or every year) while the key is still kept: X12 RFI 723 names date and time as
    /// the further discriminator. A resend with a fresh date then counts as new.
    pub with_date_time: bool,
    /// Leaves EDIFACT's internal routing ids (0008, 0042, 0014, 0046) out, against UNB note 2: for
    /// partners that send the same interchange again with other routing. Where departments number
    /// on their own, this drops true interchanges.
    pub ignore_internal_routing: bool,
}

impl Interchange {
    /// The id space of the control number: `x12:P:ZZ:ACMESUPPLY:01:123456789`, or for EDIFACT with
    /// internal routing `edifact:P:ZZ:ACMESUPPLY/DEPT7:14:4012345000009/PLANT2`.
    ///
    /// Two interchanges that differ in standard, usage or a party never share it (leaving out what
    /// `options` ignore).
    pub fn source(&self, options: &KeyOptions) -> String {
        let mut out = String::with_capacity(64);
        out.push_str(match self.standard() {
            Standard::X12 => "x12",
            Standard::Edifact => "edifact",
        });
        out.push(':');
        push_usage(&mut out, self.usage());
        push_party(&mut out, self.sender(), options);
        push_party(&mut out, self.receiver(), options);
        out
    }

    /// The control number, such as `000000905`; with [`KeyOptions::with_date_time`]
    /// `000000905:260105 0930`, where a header without date and time leaves `417:`.
    pub fn message_id(&self, options: &KeyOptions) -> String {
        let mut out = String::with_capacity(24);
        push_escaped(&mut out, self.control());
        if options.with_date_time {
            out.push(':');
            push_escaped(&mut out, self.date_time().unwrap_or_default());
        }
        out
    }
}

/// An unknown code is marked, so that `Unknown('P')` is not production.
fn push_usage(out: &mut String, usage: Usage) {
    if let Usage::Unknown(_) = usage {
        out.push('?');
    }
    push_escaped(out, usage.code().encode_utf8(&mut [0; 4]));
}

fn push_party(out: &mut String, party: &Party, options: &KeyOptions) {
    out.push(':');
    push_escaped(out, party.qualifier());
    out.push(':');
    push_escaped(out, party.id());
    if options.ignore_internal_routing {
        return;
    }
    if party.internal().or(party.internal_sub()).is_some() {
        out.push('/');
        push_escaped(out, party.internal().unwrap_or_default());
    }
    if let Some(sub) = party.internal_sub() {
        out.push('/');
        push_escaped(out, sub);
    }
}

/// Control characters go too: Postgres takes no NUL in text, and a key should fit on one line.
fn push_escaped(out: &mut String, value: &str) {
    for c in value.chars() {
        if matches!(c, ':' | '/' | '%') || c.is_control() {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                // Writing to a String cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
        } else {
            out.push(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edifact(sender: Party, control: &str) -> Interchange {
        Interchange::edifact(sender, Party::new("14", "4012345000009"), "", control).unwrap()
    }

    #[test]
    fn separator_signs_inside_values_are_escaped() {
        let it = edifact(Party::new("ZZ", "A:B/C%"), "R:1\n");
        let options = KeyOptions::default();
        assert_eq!(
            it.source(&options),
            "edifact:P:ZZ:A%3AB%2FC%25:14:4012345000009"
        );
        assert_eq!(it.message_id(&options), "R%3A1%0A");
    }

    #[test]
    fn internal_routing_is_part_of_the_party_unless_ignored() {
        let routed = edifact(Party::new("ZZ", "ACME").with_internal("DEPT7", "X"), "1");
        let sub_only = edifact(Party::new("ZZ", "ACME").with_internal("", "X"), "1");
        let plain = edifact(Party::new("ZZ", "ACME"), "1");
        let full = KeyOptions::default();
        assert_eq!(
            routed.source(&full),
            "edifact:P:ZZ:ACME/DEPT7/X:14:4012345000009"
        );
        assert_eq!(
            sub_only.source(&full),
            "edifact:P:ZZ:ACME//X:14:4012345000009"
        );
        let ignoring = KeyOptions {
            ignore_internal_routing: true,
            ..full
        };
        assert_eq!(routed.source(&ignoring), plain.source(&full));
    }

    #[test]
    fn an_unknown_usage_code_is_not_taken_for_a_known_one() {
        let party = || Party::new("ZZ", "ACME");
        let source = |usage| {
            let it = Interchange::x12(party(), party(), usage, "1").unwrap();
            it.source(&KeyOptions::default())
        };
        assert_ne!(source(Usage::Unknown('P')), source(Usage::Production));
        assert_eq!(source(Usage::Unknown(':')), "x12:?%3A:ZZ:ACME:ZZ:ACME");
    }

    #[test]
    fn date_and_time_are_added_on_request_and_their_absence_stays_visible() {
        let dated = KeyOptions {
            with_date_time: true,
            ..KeyOptions::default()
        };
        let it = edifact(Party::new("ZZ", "ACME"), "417");
        assert_eq!(it.message_id(&dated), "417:");
        assert_eq!(
            it.with_date_time("260105", "0930").message_id(&dated),
            "417:260105 0930"
        );
    }
}
