//! The statements of the hot path, built once for the configured schema.

use crate::schema::Schema;
use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

#[derive(Debug)]
pub(crate) struct Statements {
    claim: SqlStr,
    fingerprint: SqlStr,
    withdraw: SqlStr,
}

impl Statements {
    pub(crate) fn new(schema: &Schema) -> Self {
        let inbox = format!("{}.inbox", schema.quoted());
        Self {
            claim: claim(&inbox),
            fingerprint: fingerprint(&inbox),
            withdraw: withdraw(&inbox),
        }
    }

    pub(crate) fn claim(&self) -> SqlStr {
        self.claim.clone()
    }

    pub(crate) fn fingerprint(&self) -> SqlStr {
        self.fingerprint.clone()
    }

    pub(crate) fn withdraw(&self) -> SqlStr {
        self.withdraw.clone()
    }
}

/// First writer wins; a duplicate waits for our commit, then gets no row.
///
/// The wait is bounded by a `lock_timeout` that holds for this statement alone: each CTE reads the
/// one before it, so the timeout is set before the INSERT and put back, for the handler, after it.
/// Where a row was there already its fingerprint comes back in the same round trip.
fn claim(inbox: &str) -> SqlStr {
    safe(format!(
        "WITH handler AS MATERIALIZED (SELECT current_setting('lock_timeout') AS lock_timeout), \
         bounded AS MATERIALIZED (\
           SELECT lock_timeout, set_config('lock_timeout', $8, true) FROM handler), \
         won AS (\
           INSERT INTO {inbox} (consumer, source, message_id, sent_at, status, fingerprint, \
             transport_message_id) \
           SELECT $1, $2, $3, 'epoch'::timestamptz + $4 * interval '1 millisecond', $5, $6, $7 \
           FROM bounded \
           ON CONFLICT DO NOTHING \
           RETURNING pg_current_xact_id()::text AS transaction_id) \
         SELECT transaction_id, \
           CASE WHEN transaction_id IS NULL THEN (\
             SELECT fingerprint FROM {inbox} \
             WHERE consumer = $1 AND source = $2 AND message_id = $3) END AS fingerprint, \
           set_config('lock_timeout', bounded.lock_timeout, true) \
         FROM (SELECT max(transaction_id) AS transaction_id FROM won) AS result, bounded"
    ))
}

/// What the winner wrote, where it committed only while our claim waited for it.
fn fingerprint(inbox: &str) -> SqlStr {
    safe(format!(
        "SELECT fingerprint FROM {inbox} WHERE consumer = $1 AND source = $2 AND message_id = $3"
    ))
}

/// Takes back the row that one very transaction committed. Another delivery may own the key by now,
/// and its row has another `xmin`.
fn withdraw(inbox: &str) -> SqlStr {
    safe(format!(
        "DELETE FROM {inbox} WHERE consumer = $1 AND source = $2 AND message_id = $3 \
         AND xmin = $4::xid8::xid AND pg_xact_status($4::xid8) = 'committed'"
    ))
}

/// The only variable part of each text is the schema's name, which is checked and quoted.
fn safe(sql: String) -> SqlStr {
    AssertSqlSafe(sql).into_sql_str()
}
