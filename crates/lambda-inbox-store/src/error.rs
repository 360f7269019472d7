//! What went wrong is told by SQLSTATE and stage, never by text: texts are localised and change.

use crate::layout;
use crate::source::SourceError;
use sqlx::error::DatabaseError;
use std::borrow::Cow;
use std::error::Error;
use std::{fmt, io};

/// The step of a message's way that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Opening a connection.
    Connect,
    /// Opening a transaction.
    Begin,
    /// Writing the key.
    Claim,
    /// Proving the transaction and committing it.
    Settle,
    /// Running a statement that is claim and effect in one.
    Statement,
    /// Undoing the transaction.
    RollBack,
    /// Taking back a claim that the handler committed.
    Withdraw,
}

/// What a caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Another delivery holds the key (55P03). Report the record; it comes back.
    Busy,
    /// A serialisation failure or a deadlock (40001, 40P01). Run the record again.
    Conflict,
    /// The connection is of no use: throw it away and try once on a fresh one.
    Connection,
    /// The inbox is not there, or the role may not use it. Nothing works until someone mends it.
    Setup,
    /// Any other answer of the server: definite, nothing is stored.
    Refused,
}

/// A statement of this crate failed.
///
/// The text never contains the server's DETAIL, which may quote data, nor any part of a connection's
/// credentials.
#[derive(Debug)]
pub struct StoreError {
    stage: Stage,
    class: Class,
    // sqlx's, except where a source of connections has one of its own.
    source: Box<dyn Error + Send + Sync>,
}

impl StoreError {
    pub(crate) fn new(stage: Stage, source: sqlx::Error) -> Self {
        Self {
            stage,
            class: class_of(stage, &source),
            source: Box::new(source),
        }
    }

    pub(crate) fn no_connection(error: SourceError) -> Self {
        Self {
            stage: Stage::Connect,
            class: error.class(),
            source: error.into_cause(),
        }
    }

    /// No answer in time; the connection has been closed.
    pub(crate) fn no_answer(stage: Stage) -> Self {
        let source = io::Error::new(
            io::ErrorKind::TimedOut,
            "no answer from the database in time",
        );
        Self {
            stage,
            class: Class::Connection,
            source: Box::new(sqlx::Error::Io(source)),
        }
    }

    pub(crate) fn busy(stage: Stage) -> Self {
        let source =
            sqlx::Error::Protocol("the key's row came and went while it was claimed".into());
        Self {
            stage,
            class: Class::Busy,
            source: Box::new(source),
        }
    }

    pub(crate) fn setup(stage: Stage, text: String) -> Self {
        Self {
            stage,
            class: Class::Setup,
            source: Box::new(sqlx::Error::Protocol(text)),
        }
    }

    /// The step that failed.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// What can be done about it.
    pub fn class(&self) -> Class {
        self.class
    }

    /// The server's SQLSTATE, where the server answered.
    pub fn sqlstate(&self) -> Option<String> {
        self.answer()?.code().map(Cow::into_owned)
    }

    /// Whether what was sent may have been done all the same: nothing came back, or the connection was ended
    /// over it. Any other answer of the server's says that it was not.
    pub fn is_in_doubt(&self) -> bool {
        let code = self.sqlstate();
        code.is_none_or(|code| code.starts_with("08") || code.starts_with("57P"))
    }

    fn answer(&self) -> Option<&dyn DatabaseError> {
        let mut cause: Option<&(dyn Error + 'static)> = Some(&*self.source);
        while let Some(error) = cause {
            let driver = error.downcast_ref::<sqlx::Error>();
            if let Some(answer) = driver.and_then(sqlx::Error::as_database_error) {
                return Some(answer);
            }
            cause = error.source();
        }
        None
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.class == Class::Setup && self.stage == Stage::Statement {
            return f.write_str(
                "the statement cannot run: create the tables and columns that it names, run the \
                 inbox's migrations, and grant both to the role",
            );
        }
        if self.class == Class::Setup && self.stage != Stage::Connect {
            return f.write_str(
                "the inbox cannot be used: run the migrations, check the schema's name and grant \
                 the role USAGE on the schema and SELECT, INSERT and DELETE on its inbox table",
            );
        }
        if let Some(fix) = self.answer().and_then(|answer| fix(self.stage, answer)) {
            return f.write_str(fix);
        }
        f.write_str(match self.stage {
            Stage::Connect => "no connection to the database",
            Stage::Begin => "the transaction could not be opened",
            Stage::Claim | Stage::Statement if self.class == Class::Busy => {
                "another delivery of the same message is at work on it"
            }
            Stage::Claim => "the key could not be claimed",
            Stage::Statement => "the statement failed",
            Stage::Settle => "the transaction could not be committed",
            Stage::RollBack => "the transaction could not be rolled back",
            Stage::Withdraw => "a claim committed by the handler could not be taken back",
        })
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

/// invalid_sql_statement_name.
const UNKNOWN_STATEMENT: &str = "26000";
/// duplicate_prepared_statement.
const STATEMENT_EXISTS: &str = "42P05";

/// The text where the SQLSTATE tells what to do.
fn fix(stage: Stage, answer: &dyn DatabaseError) -> Option<&'static str> {
    match (stage, answer.code()?.as_ref()) {
        (Stage::Begin | Stage::Claim | Stage::Statement, UNKNOWN_STATEMENT | STATEMENT_EXISTS) => {
            Some(
                "the session is not the one that was prepared; behind RDS Proxy or PgBouncer set \
             LAMBDA_INBOX_DB_POOLED=on, or take a source that is pooled",
            )
        }
        // check_violation, which a missing partition is too.
        (Stage::Claim | Stage::Statement, "23514") if answer.table() == Some(layout::TABLE) => {
            Some(
                "there is no partition for the message's send time; run the prune or the migrate \
                 function, which create the partitions of the next days",
            )
        }
        _ => None,
    }
}

/// The SQLSTATE of an sqlx error, where the server answered.
pub fn sqlstate(error: &sqlx::Error) -> Option<String> {
    error
        .as_database_error()
        .and_then(|e| e.code())
        .map(|code| code.into_owned())
}

pub(crate) fn class_of(stage: Stage, error: &sqlx::Error) -> Class {
    let Some(code) = sqlstate(error) else {
        return if is_of_the_connection(error) {
            Class::Connection
        } else {
            Class::Refused
        };
    };
    match (stage, code.as_str()) {
        (Stage::Begin | Stage::Claim | Stage::Statement, "55P03") => Class::Busy,
        (_, "40001" | "40P01") => Class::Conflict,
        (_, "42P01" | "42703" | "42501" | "3F000") => Class::Setup,
        // A prepared claim that a migration has outdated: a new session prepares it anew. Or a standby, which
        // says this to BEGIN .. READ WRITE: the server behind the name has become a reader.
        (Stage::Begin | Stage::Claim, "0A000") => Class::Connection,
        (Stage::Begin | Stage::Claim | Stage::Statement, UNKNOWN_STATEMENT | STATEMENT_EXISTS) => {
            Class::Connection
        }
        // 57014 is the statement timeout, 25006 a reader after a failover, 25P02 and 25P03 a session
        // that is not in the state we left it in, 55000 a server that is not accepting writes yet.
        (_, "57014" | "25006" | "25P02" | "25P03" | "25001" | "55000") => Class::Connection,
        (_, code)
            if ["08", "28", "53", "57"]
                .iter()
                .any(|class| code.starts_with(class)) =>
        {
            Class::Connection
        }
        (Stage::Connect, _) => Class::Connection,
        _ => Class::Refused,
    }
}

fn is_of_the_connection(error: &sqlx::Error) -> bool {
    matches!(
        error,
        sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::Configuration(_)
            | sqlx::Error::BeginFailed
            | sqlx::Error::WorkerCrashed
    )
}
