//! Why an interchange is not booked, for the person who finds it in the dead-letter queue. Trying
//! again is of no use, and no text quotes more than the names by which the message can be found.

use lambda_inbox_edi::EdiError;
use std::collections::BTreeSet;
use std::fmt;

/// What stays of a name in a text: 0062 and 0065 are not longer.
const NAME_CHARS_MAX: usize = 14;
/// Kinds of messages that a text lists.
const KINDS_MAX: usize = 5;

/// The whole interchange is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the interchange's header cannot be read")]
    Header(#[from] EdiError),
    #[error("this is an X12 interchange, and the hub books EDIFACT invoices")]
    X12,
    #[error("this is a test interchange (UNB 0035); INVOIC_ACCEPT_TEST=1 would accept it")]
    Test,
    #[error("the interchange holds {0} and no INVOIC")]
    NoInvoice(Kinds),
    #[error("the interchange is not whole: {0}")]
    NotWhole(Fault),
    #[error("message {message}: {fault}")]
    Message { message: Name, fault: Fault },
}

/// What is wrong with a segment.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{segment}: {problem}")]
pub(crate) struct Fault {
    pub(crate) segment: &'static str,
    pub(crate) problem: &'static str,
}

impl Fault {
    pub(crate) fn new(segment: &'static str, problem: &'static str) -> Self {
        Self { segment, problem }
    }
}

/// A message's reference or type. Shown on one line and cut, because a sender may write anything.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name(pub(crate) String);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: String = self.0.chars().take(NAME_CHARS_MAX).collect();
        match shown.as_str() {
            "" => f.write_str("(without a name)"),
            shown => write!(f, "{}", shown.escape_debug()),
        }
    }
}

/// The kinds of messages in an interchange.
#[derive(Debug)]
pub(crate) struct Kinds(pub(crate) BTreeSet<Name>);

impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self
            .0
            .iter()
            .take(KINDS_MAX)
            .map(ToString::to_string)
            .collect();
        match self.0.len() {
            0 => f.write_str("no message"),
            1..=KINDS_MAX => f.write_str(&names.join(", ")),
            count => write!(f, "{} and {} more", names.join(", "), count - KINDS_MAX),
        }
    }
}
