//! A batch's rows on their way to the statement and back: sorted, as arrays, and what became of each.

use crate::begin::milliseconds;
use crate::claim::{Entry, Status, TransactionId, epoch_milliseconds, fingerprint, parse};
use crate::claim_many::{Answer, RowClaim};
use crate::error::{Stage, StoreError};
use crate::fingerprint::StoredFingerprint;
use crate::key::Key;
use crate::literal::Arguments;
use crate::table::Layout;
use sqlx::Row;
use sqlx::postgres::PgRow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The positions of the entries in the order of the table's index, which is the same for every batch.
pub(crate) fn sorted<'a>(
    entries: impl Iterator<Item = &'a Arc<Entry>>,
    layout: Layout,
) -> Vec<usize> {
    let time = |entry: &Entry| match layout {
        Layout::Keyed => None,
        Layout::TimeOrdered => entry.sent_at,
    };
    let mut sorted: Vec<(Option<SystemTime>, &Key, usize)> = entries
        .enumerate()
        .map(|(index, entry)| (time(entry), &entry.key, index))
        .collect();
    sorted.sort_unstable();
    sorted.into_iter().map(|(.., index)| index).collect()
}

/// What is known of each entry so far.
pub(crate) struct Rows(pub(crate) Vec<Option<RowClaim>>);

impl Rows {
    /// The entries of which nothing is known, in the order of their keys.
    pub(crate) fn open(&self, order: &[usize]) -> Vec<usize> {
        let is_open = |index: &&usize| self.0.get(**index).is_some_and(Option::is_none);
        order.iter().filter(is_open).copied().collect()
    }

    pub(crate) fn set(&mut self, index: usize, row: RowClaim) {
        if let Some(place) = self.0.get_mut(index) {
            *place = Some(row);
        }
    }

    pub(crate) fn give_up(&mut self) {
        for row in &mut self.0 {
            row.take_if(|row| *row == RowClaim::Won);
        }
    }

    pub(crate) fn answer(self, transaction_id: Option<TransactionId>) -> Answer {
        // Nothing is open when an answer is made.
        let rows = self
            .0
            .into_iter()
            .map(|row| row.unwrap_or(RowClaim::Busy))
            .collect();
        Answer {
            rows,
            transaction_id,
        }
    }
}

pub(crate) fn existing(entry: &Entry, stored: Vec<u8>) -> RowClaim {
    let stored = StoredFingerprint(stored);
    let other_body = (!entry.fingerprint.agrees_with(&stored)).then_some(stored);
    RowClaim::Existing { other_body }
}

/// Entries as the arrays of the statement.
pub(crate) struct Columns<'a> {
    pub(crate) sources: Vec<&'a str>,
    pub(crate) message_ids: Vec<&'a str>,
    pub(crate) sent_at: Vec<Option<i64>>,
    /// `None` where all rows have the usual status.
    pub(crate) statuses: Option<Vec<&'a str>>,
    pub(crate) fingerprints: Vec<&'a [u8]>,
    /// `None` where each row's key says it already.
    pub(crate) transports: Option<Vec<Option<&'a str>>>,
}

impl<'a> Columns<'a> {
    pub(crate) fn new(entries: impl Iterator<Item = &'a Arc<Entry>>) -> Self {
        let entries: Vec<&Entry> = entries.map(|entry| &**entry).collect();
        let statuses = entries
            .iter()
            .any(|entry| entry.status != Status::Processed);
        let transports = entries.iter().any(|entry| entry.transport().is_some());
        let all = || entries.iter();
        Self {
            sources: all().map(|entry| entry.key.source()).collect(),
            message_ids: all().map(|entry| entry.key.message_id()).collect(),
            sent_at: all()
                .map(|entry| entry.sent_at.and_then(epoch_milliseconds))
                .collect(),
            statuses: statuses.then(|| all().map(|entry| entry.status.as_str()).collect()),
            fingerprints: all().map(|entry| entry.fingerprint.as_bytes()).collect(),
            transports: transports.then(|| all().map(|entry| entry.transport()).collect()),
        }
    }
}

pub(crate) fn arguments(entries: &[Arc<Entry>], open: &[usize], wait: Duration) -> Arguments {
    let columns = Columns::new(open.iter().filter_map(|index| entries.get(*index)));
    let consumer = entries.first().map(|entry| entry.consumer.as_str());
    let arguments = Arguments::default()
        .text(consumer)
        .text(Some(&milliseconds(wait).to_string()))
        .number(i64::try_from(open.len()).ok())
        .texts(columns.sources.into_iter().map(Some))
        .texts(columns.message_ids.into_iter().map(Some))
        .numbers(columns.sent_at.into_iter());
    let arguments = match columns.statuses {
        Some(statuses) => arguments.texts(statuses.into_iter().map(Some)),
        None => arguments.no_texts(),
    };
    let arguments = arguments.byte_strings(columns.fingerprints.into_iter());
    match columns.transports {
        Some(transports) => arguments.texts(transports.into_iter()),
        None => arguments.no_texts(),
    }
}

/// What one statement said.
pub(crate) struct Part {
    pub(crate) transaction_id: Option<TransactionId>,
    found: Found,
}

enum Found {
    AllWon,
    /// `None` for a won row, the stored fingerprint for one that was there.
    ByKey(HashMap<(String, String), Option<Vec<u8>>>),
}

impl Part {
    pub(crate) fn read(rows: &[PgRow]) -> Result<Self, StoreError> {
        Self::read_rows(rows).map_err(|error| StoreError::new(Stage::Claim, error))
    }

    fn read_rows(rows: &[PgRow]) -> Result<Self, sqlx::Error> {
        let mut transaction_id = None;
        let mut by_key = HashMap::with_capacity(rows.len());
        for row in rows {
            let id: Option<String> = row.try_get("transaction_id")?;
            if let Some(id) = id {
                transaction_id = Some(parse(&id)?);
            }
            match row.try_get::<Option<String>, _>("source")? {
                Some(source) => {
                    let key = (source, row.try_get("message_id")?);
                    by_key.insert(key, fingerprint(row)?);
                }
                None if transaction_id.is_some() => {
                    return Ok(Self {
                        transaction_id,
                        found: Found::AllWon,
                    });
                }
                // The one row of an answer without rows is null throughout.
                None => {}
            }
        }
        Ok(Self {
            transaction_id,
            found: Found::ByKey(by_key),
        })
    }

    /// Takes down what became of the open entries. Those in neither list stay open.
    pub(crate) fn apply(&self, entries: &[Arc<Entry>], open: &[usize], rows: &mut Rows) {
        for index in open {
            match &self.found {
                Found::AllWon => rows.set(*index, RowClaim::Won),
                Found::ByKey(by_key) => {
                    let Some(entry) = entries.get(*index) else {
                        continue;
                    };
                    let (source, id) = (entry.key.source(), entry.key.message_id());
                    match by_key.get(&(source.to_owned(), id.to_owned())) {
                        Some(None) => rows.set(*index, RowClaim::Won),
                        Some(Some(stored)) => rows.set(*index, existing(entry, stored.clone())),
                        None => {}
                    }
                }
            }
        }
    }
}
