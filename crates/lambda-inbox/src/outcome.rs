//! The verdict on one record.

use lambda_inbox_store::{Consumer, Key};
use std::borrow::Cow;
use std::fmt;

/// What became of a record. The first three mean that SQS may delete it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Key and effect committed now.
    Processed,
    /// There was explicitly nothing to do; the key committed.
    Ignored,
    /// The key was committed by an earlier delivery.
    Duplicate,
    /// The key was committed for another body. A silent skip would lose this one.
    Mismatch,
    /// Another delivery holds the key.
    Busy,
    /// The record was not touched: too little time was left, or it stands behind one that failed.
    NotStarted,
    /// The handler or the database failed; nothing is stored.
    Failed,
    /// It can never be processed: it does not decode, has no key, or the handler said so.
    Poison,
    /// The COMMIT's answer was lost; the next delivery finds out.
    Unknown,
}

impl Outcome {
    /// Whether the database holds this message's key and effect, so that SQS may delete it.
    pub fn is_committed(self) -> bool {
        match self {
            Self::Processed | Self::Ignored | Self::Duplicate => true,
            Self::Mismatch
            | Self::Busy
            | Self::NotStarted
            | Self::Failed
            | Self::Poison
            | Self::Unknown => false,
        }
    }

    /// The name in logs, metrics and the command line: snake_case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Processed => "processed",
            Self::Ignored => "ignored",
            Self::Duplicate => "duplicate",
            Self::Mismatch => "mismatch",
            Self::Busy => "busy",
            Self::NotStarted => "not_started",
            Self::Failed => "failed",
            Self::Poison => "poison",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One record's verdict, as the outcome hook sees it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// Whose handler it was for.
    pub consumer: Consumer,
    /// The record's place in the event, from 0.
    pub position: usize,
    /// The SQS MessageId; `None` where the record has none that can be reported.
    pub message_id: Option<String>,
    /// The key; `None` where the record did not decode or has none.
    pub key: Option<Key>,
    /// The verdict.
    pub outcome: Outcome,
    /// Why, for everything but [`Outcome::Processed`]. Never quotes the body, except where the text
    /// of a handler's own error does.
    pub reason: Option<String>,
}

/// An outcome with its reason, on its way to the response.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) outcome: Outcome,
    pub(crate) reason: Option<Cow<'static, str>>,
    /// The server's code, where a statement failed.
    pub(crate) sqlstate: Option<String>,
    pub(crate) mark: Mark,
}

/// What a verdict means beyond its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    None,
    /// The database could not be used at all.
    Outage,
    /// The switch for mismatches says to skip, so the record is not reported.
    Skipped,
    /// The handler has a bug that someone must mend.
    HandlerBug,
}

impl Verdict {
    pub(crate) fn processed() -> Self {
        Self {
            outcome: Outcome::Processed,
            reason: None,
            sqlstate: None,
            mark: Mark::None,
        }
    }

    pub(crate) fn ignored() -> Self {
        Self::new(
            Outcome::Ignored,
            "S3's test message: there is nothing to do",
        )
    }

    pub(crate) fn new(outcome: Outcome, reason: impl Into<Cow<'static, str>>) -> Self {
        Self {
            outcome,
            reason: Some(reason.into()),
            sqlstate: None,
            mark: Mark::None,
        }
    }

    pub(crate) fn not_started(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Outcome::NotStarted, reason)
    }

    pub(crate) fn failed(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Outcome::Failed, reason)
    }

    pub(crate) fn marked(self, mark: Mark) -> Self {
        Self { mark, ..self }
    }

    pub(crate) fn with_sqlstate(self, sqlstate: Option<String>) -> Self {
        Self { sqlstate, ..self }
    }

    pub(crate) fn is_outage(&self) -> bool {
        self.mark == Mark::Outage
    }

    /// Whether SQS must keep the message. On a FIFO queue nothing later of its group may then run.
    pub(crate) fn is_reported(&self) -> bool {
        !self.outcome.is_committed() && self.mark != Mark::Skipped
    }
}
