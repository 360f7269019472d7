//! The inbox row is won inside the open transaction. Losing it means that a committed row exists:
//! whoever meets an uncommitted one waits for it, and takes over if it rolls back.

use crate::begin::{Limits, Transaction, milliseconds};
use crate::connection::Connection;
use crate::error::{Class, Stage, StoreError};
use crate::fingerprint::{Fingerprint, StoredFingerprint};
use crate::key::{Consumer, Key};
use crate::literal::Arguments;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::timeout_at;

/// How often a claim is tried whose rival's row is pruned between two statements of ours.
const PRUNED_MEANWHILE_MAX: u32 = 3;

/// The committed verdict that a row records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The handler ran.
    Processed,
    /// There was explicitly nothing to do.
    Ignored,
}

impl Status {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Processed => "processed",
            Self::Ignored => "ignored",
        }
    }
}

/// One row to be written.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Whose effect it stands for.
    pub consumer: Consumer,
    /// The message's identity.
    pub key: Key,
    /// When SQS took the message (`SentTimestamp`); times outside the years 1970 to 9999 are dropped.
    pub sent_at: Option<SystemTime>,
    /// The verdict to be committed.
    pub status: Status,
    /// The body's fingerprint.
    pub fingerprint: Fingerprint,
    /// The SQS MessageId of this delivery.
    pub transport_message_id: Arc<str>,
}

impl Entry {
    fn arguments(&self, wait: Duration) -> Arguments {
        Arguments::default()
            .text(Some(self.consumer.as_str()))
            .text(Some(self.key.source()))
            .text(Some(self.key.message_id()))
            .number(self.sent_at.and_then(epoch_milliseconds))
            .text(Some(self.status.as_str()))
            .bytes(self.fingerprint.as_bytes())
            .text(self.transport())
            .text(Some(&milliseconds(wait).to_string()))
    }

    /// What is stored of the delivery's id: nothing where the key says it already.
    pub(crate) fn transport(&self) -> Option<&str> {
        Some(&*self.transport_message_id).filter(|id| *id != self.key.message_id())
    }
}

/// The answer to a claim.
#[derive(Debug)]
pub enum Claimed {
    /// The row is ours, in the open transaction.
    Won(Claim),
    /// A committed row exists; the transaction is over.
    Existing(Existing),
}

/// A committed row of the same key.
#[derive(Debug)]
pub struct Existing {
    /// That row's fingerprint, where it does not agree with this message's: the same key was used for
    /// another body.
    pub other_body: Option<StoredFingerprint>,
    /// The connection, outside any transaction; `None` where it had to be closed.
    pub connection: Option<Connection>,
}

/// A statement failed, with the connection where it is still good.
#[derive(Debug)]
pub struct Failure {
    /// What happened.
    pub error: StoreError,
    /// The connection, outside any transaction; `None` where it had to be closed.
    pub connection: Option<Connection>,
}

impl Failure {
    pub(crate) fn without_connection(error: StoreError) -> Box<Self> {
        let connection = None;
        Box::new(Self { error, connection })
    }
}

/// The inbox rows won inside an open transaction: one, or a batch's. Dropping it closes the socket, which the server
/// answers by rolling back.
#[must_use = "dropping a claim rolls it back"]
pub struct Claim {
    pub(crate) connection: Connection,
    pub(crate) ticket: Ticket,
}

/// Which rows a transaction claimed. All are of one consumer.
#[derive(Clone, Debug)]
pub(crate) struct Ticket {
    pub(crate) entries: Vec<Arc<Entry>>,
    pub(crate) transaction_id: TransactionId,
}

/// An `xid8` as the server wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TransactionId(pub(crate) u64);

impl Claim {
    /// The connection for the handler's statements. A transaction begun on it is a savepoint of the
    /// claim's.
    pub fn connection(&mut self) -> &mut PgConnection {
        &mut self.connection.session.pg
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim")
            .field("ticket", &self.ticket)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Opens a transaction and writes the key in it. One round trip; two on a connection's first use or
    /// after it has idled, and one more where the winner commits while this claim waits for it.
    ///
    /// The transaction is READ COMMITTED, read-write, durable, has its own timeouts, and is free of
    /// whatever an earlier handler SET in the session.
    ///
    /// Cancel safe: a dropped call closes the connection.
    ///
    /// # Errors
    /// [`Failure`] whose error has stage [`Stage::Begin`] or [`Stage::Claim`]; [`Class::Busy`] after
    /// `limits.claim` where another delivery holds the key.
    pub async fn claim(self, entry: Arc<Entry>, limits: &Limits) -> Result<Claimed, Box<Failure>> {
        let arguments = entry.arguments(limits.claim);
        let begun = self.begin_with(limits, |all| &all.claim, &arguments, limits.claim);
        let (mut transaction, rows) = begun.await.map_err(Failure::without_connection)?;
        let answer = match rows {
            Ok(rows) => transaction.answer(&entry, rows, &arguments, limits).await,
            Err(error) => Err(error),
        };
        Ok(match answer {
            Ok(Answer::Won(transaction_id)) => Claimed::Won(Claim {
                connection: transaction.connection,
                ticket: Ticket {
                    entries: vec![entry],
                    transaction_id,
                },
            }),
            Ok(Answer::Exists { other_body }) => {
                let connection = transaction.roll_back(limits.until).await.ok();
                Claimed::Existing(Existing {
                    other_body,
                    connection,
                })
            }
            Err(error) => return Err(transaction.failed(error, limits).await),
        })
    }

    pub(crate) async fn stored_fingerprint(
        &mut self,
        entry: &Entry,
    ) -> Result<Option<Vec<u8>>, sqlx::Error> {
        let key = Arguments::default()
            .text(Some(entry.consumer.as_str()))
            .text(Some(entry.key.source()))
            .text(Some(entry.key.message_id()))
            .number(entry.sent_at.and_then(epoch_milliseconds));
        let rows = self.rows(self.shared.statements.fingerprint.with(&key));
        rows.await?.first().map_or(Ok(None), fingerprint)
    }
}

impl Transaction {
    /// Ends the transaction of a claim that failed, where its connection is still good.
    pub(crate) async fn failed(self, error: StoreError, limits: &Limits) -> Box<Failure> {
        let connection = match error.class() {
            Class::Connection => None,
            Class::Busy | Class::Conflict | Class::Setup | Class::Refused => {
                self.roll_back(limits.until).await.ok()
            }
        };
        Box::new(Failure { error, connection })
    }

    async fn answer(
        &mut self,
        entry: &Entry,
        rows: Vec<PgRow>,
        arguments: &Arguments,
        limits: &Limits,
    ) -> Result<Answer, StoreError> {
        let answer = self.read_answer(entry, rows, arguments);
        match timeout_at(limits.until, answer).await {
            Ok(Ok(Some(answer))) => Ok(answer),
            Ok(Ok(None)) => Err(StoreError::busy(Stage::Claim)),
            Ok(Err(error)) => Err(StoreError::new(Stage::Claim, error)),
            Err(_) => Err(StoreError::no_answer(Stage::Claim)),
        }
    }

    /// `None` where the rival's row came and went, however often it was looked for.
    async fn read_answer(
        &mut self,
        entry: &Entry,
        mut rows: Vec<PgRow>,
        arguments: &Arguments,
    ) -> Result<Option<Answer>, sqlx::Error> {
        for _ in 0..PRUNED_MEANWHILE_MAX {
            let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
            let transaction_id: Option<String> = row.try_get("transaction_id")?;
            if let Some(id) = transaction_id {
                return Ok(Some(Answer::Won(parse(&id)?)));
            }
            let stored = match fingerprint(row)? {
                Some(stored) => Some(stored),
                None => self.connection.stored_fingerprint(entry).await?,
            };
            if let Some(stored) = stored {
                let stored = StoredFingerprint(stored);
                let other_body = (!entry.fingerprint.agrees_with(&stored)).then_some(stored);
                return Ok(Some(Answer::Exists { other_body }));
            }
            let again = self.connection.shared.statements.claim.execute(arguments);
            rows = self.connection.rows(again).await?;
        }
        Ok(None)
    }
}

enum Answer {
    Won(TransactionId),
    Exists {
        other_body: Option<StoredFingerprint>,
    },
}

pub(crate) fn fingerprint(row: &PgRow) -> Result<Option<Vec<u8>>, sqlx::Error> {
    let text: Option<String> = row.try_get("fingerprint")?;
    text.map(|text| hex::decode(text).map_err(|error| sqlx::Error::Decode(Box::new(error))))
        .transpose()
}

/// A number, so that it can stand in the proof's text.
pub(crate) fn parse(text: &str) -> Result<TransactionId, sqlx::Error> {
    text.parse()
        .map(TransactionId)
        .map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

pub(crate) fn epoch_milliseconds(time: SystemTime) -> Option<i64> {
    const YEAR_10000: i64 = 253_402_300_800_000;
    let milliseconds = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .ok()?
        .as_millis();
    i64::try_from(milliseconds)
        .ok()
        .filter(|milliseconds| *milliseconds < YEAR_10000)
}
