//! The statements of the hot path, built once for the configured schema.

use crate::schema::Schema;
use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

#[derive(Debug)]
pub(crate) struct Statements {
    claim: SqlStr,
    claim_many: SqlStr,
    fingerprint: SqlStr,
    withdraw: SqlStr,
}

impl Statements {
    pub(crate) fn new(schema: &Schema) -> Self {
        let inbox = format!("{}.inbox", schema.quoted());
        Self {
            claim: claim(&inbox),
            claim_many: claim_many(&inbox),
            fingerprint: fingerprint(&inbox),
            withdraw: withdraw(&inbox),
        }
    }

    pub(crate) fn claim(&self) -> SqlStr {
        self.claim.clone()
    }

    pub(crate) fn claim_many(&self) -> SqlStr {
        self.claim_many.clone()
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

/// Takes back the rows that one very transaction committed. Another delivery may own a key by now, and
/// its row has another `xmin`.
fn withdraw(inbox: &str) -> SqlStr {
    safe(format!(
        "DELETE FROM {inbox} AS inbox USING unnest($2::text[], $3::text[]) AS r (source, message_id) \
         WHERE inbox.consumer = $1 AND inbox.source = r.source \
         AND inbox.message_id = r.message_id \
         AND inbox.xmin = $4::xid8::xid AND pg_xact_status($4::xid8) = 'committed'"
    ))
}

/// What a composed statement needs of each message beside its claim.
const DELIVERY_COLUMNS: &str = ", delivery_id, body, receive_count, group_id";
const DELIVERY_ARRAYS: &str =
    ", unnest($10::text[]), unnest($11::text[]), unnest($12::int4[]), unnest($13::text[])";

/// The claim of many rows, as CTEs that end in `won`; [`claim`] for one. Rows come in the
/// order of their keys and are inserted in it, so that two overlapping batches wait for each other and
/// never deadlock. Statuses and transport ids may be null as a whole where each row has the usual one.
///
/// `generate_series` numbers the rows, and tells the planner, which knows nothing of the arrays'
/// lengths, to expect many: it must not join ten thousand rows by nested loops.
fn claiming(inbox: &str, columns: &str, arrays: &str) -> String {
    format!(
        "WITH handler AS MATERIALIZED (SELECT current_setting('lock_timeout') AS lock_timeout), \
         bounded AS MATERIALIZED (\
           SELECT lock_timeout, set_config('lock_timeout', $2, true) FROM handler), \
         message AS MATERIALIZED (\
           SELECT * FROM ROWS FROM (unnest($4::text[]), unnest($5::text[]), unnest($6::int8[]), \
             unnest($7::text[]), unnest($8::bytea[]), unnest($9::text[]){arrays}, \
             generate_series(1, (SELECT $3))) \
           AS m (source, message_id, sent_at, status, fingerprint, transport{columns}, position)), \
         won AS (\
           INSERT INTO {inbox} (consumer, source, message_id, sent_at, status, fingerprint, \
             transport_message_id) \
           SELECT $1, source, message_id, 'epoch'::timestamptz + sent_at * interval '1 millisecond', \
             coalesce(status, 'processed'), fingerprint, transport \
           FROM message, bounded \
           ORDER BY position \
           ON CONFLICT DO NOTHING \
           RETURNING source, message_id)"
    )
}

/// What became of the rows of [`claiming`]: one row with the transaction's id where all were won, which
/// is the rule; else the won ones, and those that were there before, with their fingerprints. A row
/// that committed while the claim waited for it is in neither.
fn claimed(inbox: &str) -> String {
    format!(
        "SELECT NULL::text AS source, NULL::text AS message_id, \
           pg_current_xact_id_if_assigned()::text AS transaction_id, NULL::bytea AS fingerprint \
         WHERE (SELECT count(*) FROM won) = $3 \
         UNION ALL \
         SELECT source, message_id, pg_current_xact_id_if_assigned()::text, NULL FROM won \
         WHERE (SELECT count(*) FROM won) < $3 \
         UNION ALL \
         SELECT message.source, message.message_id, NULL, existing.fingerprint \
         FROM message CROSS JOIN LATERAL (\
           SELECT fingerprint FROM {inbox} AS i WHERE i.consumer = $1 \
           AND i.source = message.source AND i.message_id = message.message_id LIMIT 1) AS existing \
         WHERE (SELECT count(*) FROM won) < $3"
    )
}

/// Puts the handler's `lock_timeout` back once all rows are claimed, for whoever reads this CTE.
const UNBOUNDED: &str = "unbounded AS MATERIALIZED (\
     SELECT set_config('lock_timeout', bounded.lock_timeout, true) \
     FROM bounded, (SELECT count(*) FROM won) AS done)";

/// The claim of a batch in one round trip.
fn claim_many(inbox: &str) -> SqlStr {
    safe(format!(
        "{}, {UNBOUNDED}, answer AS MATERIALIZED ({}) \
         SELECT answer.source, answer.message_id, transaction_id, fingerprint \
         FROM unbounded LEFT JOIN answer ON true",
        claiming(inbox, "", ""),
        claimed(inbox)
    ))
}

/// The user's statement behind the claim, over the messages that were won. The claim's bound on waits does
/// not hold for it: what it waits for is no other delivery. A statement that modifies
/// data runs to its end although nothing reads it.
pub(crate) fn composed(schema: &Schema, statement: &str) -> SqlStr {
    let inbox = format!("{}.inbox", schema.quoted());
    safe(format!(
        "{}, {UNBOUNDED}, fresh AS (\
           SELECT position, delivery_id AS message_id, source, message_id AS key, \
             body::jsonb AS body, \
             'epoch'::timestamptz + sent_at * interval '1 millisecond' AS sent_at, \
             receive_count, group_id \
           FROM unbounded, won JOIN message USING (source, message_id) \
           WHERE coalesce(status, 'processed') = 'processed'), \
         effect AS ({statement}\n), \
         answer AS MATERIALIZED ({}) \
         SELECT answer.source, answer.message_id, transaction_id, fingerprint FROM answer",
        claiming(&inbox, DELIVERY_COLUMNS, DELIVERY_ARRAYS),
        claimed(&inbox)
    ))
}

/// The only variable part of each text is the schema's name, which is checked and quoted.
fn safe(sql: String) -> SqlStr {
    AssertSqlSafe(sql).into_sql_str()
}
