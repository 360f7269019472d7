//! A whole batch is claimed by one statement. The keys go in sorted, so that two overlapping batches
//! wait for each other and never deadlock.
//!
//! One key that another delivery holds fails the statement as a whole. It is then looked for by
//! halving, with waits of a few milliseconds, and left out: it must not hold up its neighbours.

use crate::begin::{Limits, Transaction, begin_sql};
use crate::claim::{Claim, Entry, Failure, Ticket, TransactionId};
use crate::claim_rows::{Part, Rows, arguments, existing, sorted};
use crate::connection::Connection;
use crate::error::{Class, Stage, StoreError};
use crate::fingerprint::StoredFingerprint;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout_at;

/// What writing one key takes on a slow server; it is a hundredth of that as a rule.
const ROW_MAX: Duration = Duration::from_millis(1);

/// How long a part of a batch waits while the busy key is being looked for.
const PART_WAIT: Duration = Duration::from_millis(5);

/// How often the search starts over because yet another key became busy, or a row was pruned.
const ROUNDS_MAX: u32 = 4;

/// What became of one entry of a batch's claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowClaim {
    /// The row is ours, in the open transaction.
    Won,
    /// A committed row exists; its fingerprint where it does not agree with this message's.
    Existing {
        /// As [`Existing::other_body`](crate::Existing::other_body).
        other_body: Option<StoredFingerprint>,
    },
    /// Another delivery holds the key.
    Busy,
}

/// The answer to a batch's claim.
#[derive(Debug)]
pub struct ClaimedMany {
    /// One for each entry, in their order.
    pub rows: Vec<RowClaim>,
    /// What is held.
    pub held: Held,
}

/// What a batch's claim left open.
#[derive(Debug)]
pub enum Held {
    /// At least one row was won.
    Claim(Claim),
    /// None was; the transaction is over. `None` where the connection had to be closed.
    Nothing(Option<Connection>),
}

impl Connection {
    /// Opens a transaction, as [`Connection::claim`] does, and writes the keys of `entries` in it, which
    /// are of one consumer and all different. One round trip; two on a connection's first use or after
    /// it has idled, one more where rows committed while the claim waited for them, and about twice the
    /// logarithm of the batch's size for each busy key.
    ///
    /// Cancel safe: a dropped call closes the connection.
    ///
    /// # Errors
    /// [`Failure`] whose error has stage [`Stage::Claim`]; never [`Class::Busy`] for less than all of
    /// the entries.
    pub async fn claim_many(
        self,
        entries: &[Arc<Entry>],
        limits: &Limits,
    ) -> Result<ClaimedMany, Box<Failure>> {
        let order = sorted(entries.iter(), self.shared.table().layout);
        let arguments = arguments(entries, &order, limits.claim);
        let rows = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        let patience = limits.claim + ROW_MAX.saturating_mul(rows);
        let begun = self.begin_with(limits, |all| &all.claim_many, &arguments, patience);
        let (mut transaction, first) = begun.await.map_err(Failure::without_connection)?;
        let first = first.and_then(|rows| Part::read(&rows));
        let answer = transaction.follow_up(entries, &order, first, limits);
        let answer = match timeout_at(limits.until, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(transaction.failed(error, limits).await),
            Err(_) => {
                let error = StoreError::no_answer(Stage::Claim);
                return Err(transaction.failed(error, limits).await);
            }
        };
        let won = entries
            .iter()
            .zip(&answer.rows)
            .filter(|(_, row)| **row == RowClaim::Won);
        let won: Vec<Arc<Entry>> = won.map(|(entry, _)| Arc::clone(entry)).collect();
        let held = match answer.transaction_id {
            Some(transaction_id) => Held::Claim(Claim {
                connection: transaction.connection,
                ticket: Ticket {
                    entries: won,
                    transaction_id,
                },
            }),
            None => Held::Nothing(transaction.roll_back(limits.until).await.ok()),
        };
        Ok(ClaimedMany {
            rows: answer.rows,
            held,
        })
    }
}

impl Transaction {
    /// What there is to do where the first claim of all entries does not tell about each.
    async fn follow_up(
        &mut self,
        entries: &[Arc<Entry>],
        order: &[usize],
        first: Result<Part, StoreError>,
        limits: &Limits,
    ) -> Result<Answer, StoreError> {
        let mut rows = Rows(vec![None; entries.len()]);
        let mut open = order.to_vec();
        let mut part = first;
        for _ in 0..ROUNDS_MAX {
            match part {
                Ok(part) => {
                    part.apply(entries, &open, &mut rows);
                    self.connection.read_rest(entries, &mut rows).await?;
                    if rows.open(order).is_empty() {
                        return Ok(rows.answer(part.transaction_id));
                    }
                    // Some rows came and went meanwhile. What was won is given up, to ask again for all.
                    self.restart(limits).await?;
                    rows.give_up();
                }
                Err(error) if error.class() == Class::Busy => {
                    self.restart(limits).await?;
                    for busy in self.find_busy(entries, &open).await? {
                        rows.set(busy, RowClaim::Busy);
                    }
                    self.restart(limits).await?;
                }
                Err(error) => return Err(error),
            }
            open = rows.open(order);
            if open.is_empty() {
                return Ok(rows.answer(None));
            }
            part = self.insert_many(entries, &open, PART_WAIT).await;
        }
        Err(StoreError::busy(Stage::Claim))
    }

    /// Which of the entries other deliveries hold, found by halving within one transaction that is
    /// then thrown away.
    async fn find_busy(
        &mut self,
        entries: &[Arc<Entry>],
        open: &[usize],
    ) -> Result<Vec<usize>, StoreError> {
        self.simple("SAVEPOINT part").await?;
        let mut busy = Vec::new();
        // The left half on top: keys are taken in order here too.
        let (left, right) = open.split_at(open.len() / 2);
        let mut parts = vec![right, left];
        while let Some(part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            match self.insert_many(entries, part, PART_WAIT).await {
                Ok(_) => {
                    self.simple("RELEASE SAVEPOINT part; SAVEPOINT part")
                        .await?
                }
                Err(error) if error.class() == Class::Busy => {
                    self.simple("ROLLBACK TO SAVEPOINT part").await?;
                    match part {
                        [one] => busy.push(*one),
                        _ => {
                            let (left, right) = part.split_at(part.len() / 2);
                            parts.extend([right, left]);
                        }
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(busy)
    }

    /// Throws the transaction away and opens another, in one round trip.
    async fn restart(&mut self, limits: &Limits) -> Result<(), StoreError> {
        let profile = self.connection.shared.table().profile;
        self.simple(&format!("ROLLBACK; {}", begin_sql(limits, profile)))
            .await
    }

    async fn simple(&mut self, sql: &str) -> Result<(), StoreError> {
        let sent = self.connection.rows(sql.to_owned()).await;
        sent.map(drop)
            .map_err(|error| StoreError::new(Stage::Claim, error))
    }

    async fn insert_many(
        &mut self,
        entries: &[Arc<Entry>],
        open: &[usize],
        wait: Duration,
    ) -> Result<Part, StoreError> {
        let arguments = arguments(entries, open, wait);
        let sql = self
            .connection
            .shared
            .statements
            .claim_many
            .execute(&arguments);
        let rows = self.connection.rows(sql).await;
        let rows = rows.map_err(|error| StoreError::new(Stage::Claim, error))?;
        Part::read(&rows)
    }
}

impl Connection {
    /// The winners' fingerprints, where they committed only while our claim waited.
    pub(crate) async fn read_rest(
        &mut self,
        entries: &[Arc<Entry>],
        rows: &mut Rows,
    ) -> Result<(), StoreError> {
        for (entry, row) in entries.iter().zip(&mut rows.0) {
            if row.is_none() {
                let stored = self.stored_fingerprint(entry).await;
                let stored = stored.map_err(|error| StoreError::new(Stage::Claim, error))?;
                *row = stored.map(|stored| existing(entry, stored));
            }
        }
        Ok(())
    }
}

pub(crate) struct Answer {
    pub(crate) rows: Vec<RowClaim>,
    pub(crate) transaction_id: Option<TransactionId>,
}
