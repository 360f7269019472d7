//! The parts of a header that say who sent what to whom. Everything else in it is syntax.

use std::fmt;

use crate::{InvalidValue, Party, x12_control_number};

/// The standard an interchange is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standard {
    /// ASC X12: ISA to IEA.
    X12,
    /// UN/EDIFACT (ISO 9735), any syntax version: UNB to UNZ, optionally led by UNA.
    Edifact,
}

impl fmt::Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X12 => "X12",
            Self::Edifact => "EDIFACT",
        })
    }
}

/// What an interchange is for.
///
/// X12: ISA15. EDIFACT: 0035, where absent, empty and `0` mean production and every other code
/// means test (the code list of syntax version 4 has 1 to 5, all kinds of test).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Usage {
    /// `P`.
    Production,
    /// `T`.
    Test,
    /// X12 `I`: for information.
    Information,
    /// X12: a code that is none of the above, as written.
    Unknown(char),
}

impl Usage {
    pub(crate) fn from_isa15(code: char) -> Self {
        match code {
            'P' => Self::Production,
            'T' => Self::Test,
            'I' => Self::Information,
            other => Self::Unknown(other),
        }
    }

    pub(crate) fn from_0035(indicator: &str) -> Self {
        match indicator {
            "" | "0" => Self::Production,
            _ => Self::Test,
        }
    }

    /// The code as ISA15 writes it; for EDIFACT `P` or `T`.
    pub fn code(self) -> char {
        match self {
            Self::Production => 'P',
            Self::Test => 'T',
            Self::Information => 'I',
            Self::Unknown(code) => code,
        }
    }
}

/// The identity of one interchange, and what its header says besides.
///
/// Two values with equal standard, sender, receiver, usage and control number are the same
/// interchange; [`Interchange::source`] and [`Interchange::message_id`] make a key of that.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Interchange {
    standard: Standard,
    sender: Party,
    receiver: Party,
    usage: Usage,
    control: String,
    test_indicator: Option<String>,
    date_time: Option<String>,
}

impl Interchange {
    /// The identity of an X12 interchange whose header went through a translator, so that it gets
    /// the same key as the raw text. `control` goes through [`x12_control_number`].
    ///
    /// # Errors
    /// [`InvalidValue::Empty`] for a blank id, [`InvalidValue::ControlNumber`].
    pub fn x12(
        sender: Party,
        receiver: Party,
        usage: Usage,
        control: &str,
    ) -> Result<Self, InvalidValue> {
        require("ISA06", sender.id())?;
        require("ISA08", receiver.id())?;
        let control = x12_control_number(control)?;
        Ok(Self::assemble(
            Standard::X12,
            sender,
            receiver,
            usage,
            control,
        ))
    }

    /// The identity of an EDIFACT interchange whose header went through a translator. `control` is
    /// text and kept as written; `test_indicator` is 0035, empty for none.
    ///
    /// # Errors
    /// [`InvalidValue::Empty`] for a blank id or control reference.
    pub fn edifact(
        sender: Party,
        receiver: Party,
        test_indicator: &str,
        control: &str,
    ) -> Result<Self, InvalidValue> {
        require("UNB 0004", sender.id())?;
        require("UNB 0010", receiver.id())?;
        require("UNB 0020", control)?;
        let usage = Usage::from_0035(test_indicator);
        let mut it = Self::assemble(
            Standard::Edifact,
            sender,
            receiver,
            usage,
            control.to_owned(),
        );
        it.test_indicator = Some(test_indicator.to_owned()).filter(|code| !code.is_empty());
        Ok(it)
    }

    /// Adds date and time as the header writes them, each trimmed, with one blank between.
    #[must_use]
    pub fn with_date_time(self, date: &str, time: &str) -> Self {
        let both = format!("{} {}", date.trim_matches(' '), time.trim_matches(' '));
        let date_time = Some(both.trim_matches(' ').to_owned()).filter(|text| !text.is_empty());
        Self { date_time, ..self }
    }

    /// The standard it is written in.
    pub fn standard(&self) -> Standard {
        self.standard
    }

    /// ISA05 and ISA06; S002.
    pub fn sender(&self) -> &Party {
        &self.sender
    }

    /// ISA07 and ISA08; S003.
    pub fn receiver(&self) -> &Party {
        &self.receiver
    }

    /// ISA13 as nine digits; 0020 as written.
    pub fn control(&self) -> &str {
        &self.control
    }

    /// What it is for. A production consumer refuses whatever is not [`Usage::Production`].
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// EDIFACT 0035 as written; `None` if absent or empty, and for X12.
    pub fn test_indicator(&self) -> Option<&str> {
        self.test_indicator.as_deref()
    }

    /// ISA09 and ISA10; S004. As written, such as `260105 0930`: neither standard states a zone.
    pub fn date_time(&self) -> Option<&str> {
        self.date_time.as_deref()
    }

    fn assemble(
        standard: Standard,
        sender: Party,
        receiver: Party,
        usage: Usage,
        control: String,
    ) -> Self {
        let (test_indicator, date_time) = (None, None);
        Self {
            standard,
            sender,
            receiver,
            usage,
            control,
            test_indicator,
            date_time,
        }
    }
}

fn require(name: &'static str, value: &str) -> Result<(), InvalidValue> {
    if value.trim().is_empty() {
        Err(InvalidValue::Empty { name })
    } else {
        Ok(())
    }
}
