//! The inbox row is won inside the open transaction. Losing it means that a committed row exists:
//! whoever meets an uncommitted one waits for it, and takes over if it rolls back.

use crate::begin::{Limits, Transaction, milliseconds};
use crate::connection::Connection;
use crate::error::{Class, Stage, StoreError};
use crate::fingerprint::{Fingerprint, StoredFingerprint};
use crate::key::{Consumer, Key};
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
    pub transport_message_id: String,
}

impl Entry {
    /// What is stored of the delivery's id: nothing where the key says it already.
    pub(crate) fn transport(&self) -> Option<&str> {
        Some(self.transport_message_id.as_str()).filter(|id| *id != self.key.message_id())
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

impl Transaction {
    /// Writes the key. One round trip; two where the winner commits while this claim waits for it.
    ///
    /// Cancel safe: a dropped call closes the connection.
    ///
    /// # Errors
    /// [`Failure`] whose error has stage [`Stage::Claim`]; [`Class::Busy`] after `limits.claim` where
    /// another delivery holds the key.
    pub async fn claim(
        mut self,
        entry: Arc<Entry>,
        limits: &Limits,
    ) -> Result<Claimed, Box<Failure>> {
        let answer = match timeout_at(limits.until, self.send_claim(&entry, limits)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(self.failed(error, limits).await),
            Err(_) => {
                return Err(self
                    .failed(StoreError::no_answer(Stage::Claim), limits)
                    .await);
            }
        };
        Ok(match answer {
            Answer::Won(transaction_id) => Claimed::Won(Claim {
                connection: self.connection,
                ticket: Ticket {
                    entries: vec![entry],
                    transaction_id,
                },
            }),
            Answer::Exists { other_body } => {
                let connection = self.roll_back(limits.until).await.ok();
                Claimed::Existing(Existing {
                    other_body,
                    connection,
                })
            }
        })
    }

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

    async fn send_claim(&mut self, entry: &Entry, limits: &Limits) -> Result<Answer, StoreError> {
        let failed = |error| StoreError::new(Stage::Claim, error);
        for _ in 0..PRUNED_MEANWHILE_MAX {
            let (transaction_id, stored) =
                self.insert(entry, limits.claim).await.map_err(failed)?;
            if let Some(transaction_id) = transaction_id {
                return Ok(Answer::Won(transaction_id));
            }
            let stored = match stored {
                Some(stored) => Some(stored),
                None => self
                    .connection
                    .stored_fingerprint(entry)
                    .await
                    .map_err(failed)?,
            };
            if let Some(stored) = stored {
                let stored = StoredFingerprint(stored);
                let other_body = (!entry.fingerprint.agrees_with(&stored)).then_some(stored);
                return Ok(Answer::Exists { other_body });
            }
        }
        Err(StoreError::busy(Stage::Claim))
    }

    async fn insert(
        &mut self,
        entry: &Entry,
        wait: Duration,
    ) -> Result<(Option<TransactionId>, Option<Vec<u8>>), sqlx::Error> {
        let row = sqlx::query(self.connection.shared.statements.claim())
            .bind(entry.consumer.as_str())
            .bind(entry.key.source())
            .bind(entry.key.message_id())
            .bind(entry.sent_at.and_then(epoch_milliseconds))
            .bind(entry.status.as_str())
            .bind(entry.fingerprint.as_bytes())
            .bind(entry.transport())
            .bind(milliseconds(wait).to_string())
            .fetch_one(&mut self.connection.session.pg)
            .await?;
        let transaction_id: Option<String> = row.try_get("transaction_id")?;
        let transaction_id = transaction_id.map(|text| parse(&text)).transpose()?;
        Ok((transaction_id, row.try_get("fingerprint")?))
    }
}

impl Connection {
    pub(crate) async fn stored_fingerprint(
        &mut self,
        entry: &Entry,
    ) -> Result<Option<Vec<u8>>, sqlx::Error> {
        sqlx::query(self.shared.statements.fingerprint())
            .bind(entry.consumer.as_str())
            .bind(entry.key.source())
            .bind(entry.key.message_id())
            .fetch_optional(&mut self.session.pg)
            .await?
            .map(|row| row.try_get("fingerprint"))
            .transpose()
    }
}

enum Answer {
    Won(TransactionId),
    Exists {
        other_body: Option<StoredFingerprint>,
    },
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
