//! The prune's statements. Each delete finds its rows by an index, oldest first, from where the one before
//! stopped: dead rows of earlier batches are not walked over again.

use crate::layout::table_name;
use crate::retention::CutOffs;
use crate::schema::Schema;

/// Rows counted at most, in a dry run.
pub(super) const COUNT_MAX: i64 = 1_000_000;

/// A point in time from microseconds of the epoch: exact, and free of any date style.
fn at(parameter: &str) -> String {
    format!("('epoch'::timestamptz + {parameter} * interval '1 microsecond')")
}

/// Microseconds of the epoch, the way back.
fn microseconds(time: &str) -> String {
    format!("(extract(epoch FROM {time}) * 1000000)::int8")
}

/// The consumers with the time of their oldest key. Jumps from one to the next in the index, so that a
/// hundred million keys of three consumers are four look-ups.
pub(super) fn consumers(schema: &Schema) -> String {
    let inbox = format!("{}.inbox", schema.quoted());
    format!(
        "WITH RECURSIVE present AS (\
           (SELECT consumer, processed_at FROM {inbox} ORDER BY consumer, processed_at LIMIT 1) \
           UNION ALL \
           SELECT further.consumer, further.processed_at FROM present CROSS JOIN LATERAL (\
             SELECT i.consumer, i.processed_at FROM {inbox} AS i \
             WHERE i.consumer > present.consumer ORDER BY i.consumer, i.processed_at LIMIT 1\
           ) AS further) \
         SELECT consumer, {}, extract(epoch FROM now() - processed_at)::float8 \
         FROM present ORDER BY processed_at",
        microseconds("processed_at")
    )
}

/// Deletes up to `$4` keys of consumer `$1` that are older than `$2` seconds, from the time `$3` on.
/// Returns how many, and the time to go on from. Rows that someone holds are left out.
pub(super) fn delete_keys(schema: &Schema) -> String {
    let inbox = format!("{}.inbox", schema.quoted());
    let is_due = "consumer = $1 AND processed_at < now() - make_interval(secs => $2)";
    delete_oldest(&inbox, is_due, "processed_at", ["$3", "$4"])
}

/// Looked for and locked first, in the order of the index, because a DELETE has no LIMIT.
fn delete_oldest(table: &str, is_due: &str, time: &str, [from, limit]: [&str; 2]) -> String {
    format!(
        "WITH due AS MATERIALIZED (\
           SELECT ctid FROM {table} WHERE {is_due} AND {time} >= {} \
           ORDER BY {time} LIMIT {limit} FOR UPDATE SKIP LOCKED), \
         gone AS (\
           DELETE FROM {table} WHERE ctid = ANY (ARRAY(SELECT ctid FROM due)) AND {is_due} \
           RETURNING {time}) \
         SELECT count(*), {} FROM gone",
        at(from),
        microseconds(&format!("max({time})"))
    )
}

/// Counts what [`delete_keys`] would delete in all, up to `$3`.
pub(super) fn count_keys(schema: &Schema) -> String {
    format!(
        "SELECT count(*) FROM (SELECT FROM {}.inbox AS i WHERE i.consumer = $1 \
         AND i.processed_at < now() - make_interval(secs => $2) \
         ORDER BY i.processed_at LIMIT $3) AS due",
        schema.quoted()
    )
}

/// Deletes up to `$3` rows of the failure log that are older than `$1` seconds, from the time `$2` on;
/// returns as [`delete_keys`].
pub(super) fn delete_failures(schema: &Schema) -> String {
    let log = format!("{}.inbox_failure", schema.quoted());
    let is_due = "failed_at < now() - make_interval(secs => $1)";
    delete_oldest(&log, is_due, "failed_at", ["$2", "$3"])
}

/// Counts what [`delete_failures`] would delete in all, up to `$2`.
pub(super) fn count_failures(schema: &Schema) -> String {
    format!(
        "SELECT count(*) FROM (SELECT FROM {}.inbox_failure AS f \
         WHERE f.failed_at < now() - make_interval(secs => $1) \
         ORDER BY f.failed_at LIMIT $2) AS due",
        schema.quoted()
    )
}

/// The failure log's oldest row: its time, and its age in seconds.
pub(super) fn oldest_failure(schema: &Schema) -> String {
    format!(
        "SELECT {}, extract(epoch FROM now() - failed_at)::float8 \
         FROM {}.inbox_failure ORDER BY failed_at LIMIT 1",
        microseconds("failed_at"),
        schema.quoted()
    )
}

/// The next `$9` rows of the time-ordered table behind the key (`$5`, `$6`, `$7`, `$8`) that were sent
/// more than `$4` seconds ago.
///
/// There is no index by the time of processing. A message is processed after it was sent, so what was
/// processed before a cut-off was sent before it, and that is the primary key's order.
fn page(schema: &Schema) -> String {
    format!(
        "page AS MATERIALIZED (\
           SELECT ctid, sent_at, consumer, source, message_id, processed_at FROM {} \
           WHERE (sent_at, consumer, source, message_id) > ({}, $6, $7, $8) \
           AND sent_at < now() - make_interval(secs => $4) \
           ORDER BY sent_at, consumer, source, message_id LIMIT $9)",
        table_name(schema),
        at("$5")
    )
}

/// Where the next page begins: the last row of this one, or nothing where this one was not full.
fn next_page() -> String {
    format!(
        "SELECT {} AS sent_at, consumer, source, message_id FROM page \
         WHERE (SELECT count(*) FROM page) = $9 \
         ORDER BY page.sent_at DESC, consumer DESC, source DESC, message_id DESC LIMIT 1",
        microseconds("sent_at")
    )
}

/// Deletes what is due of a [`page`]: the place of each consumer's cut-off is in [`CutOffs`], `$1` to
/// `$3`. Returns how many, and the key to go on from.
pub(super) fn delete_page(schema: &Schema) -> String {
    let table = table_name(schema);
    format!(
        "WITH {page}, \
         due AS MATERIALIZED (\
           SELECT t.ctid FROM {table} AS t WHERE t.ctid = ANY (ARRAY(\
             SELECT i.ctid FROM page AS i {join} WHERE NOT {is_young})) \
           FOR UPDATE SKIP LOCKED), \
         gone AS (\
           DELETE FROM {table} AS t WHERE t.ctid = ANY (ARRAY(SELECT ctid FROM due)) \
           RETURNING 1) \
         SELECT (SELECT count(*) FROM gone), next.* FROM (SELECT) AS one LEFT JOIN ({next}) AS next ON true",
        page = page(schema),
        join = CutOffs::JOIN,
        is_young = format_args!("({})", CutOffs::IS_YOUNG),
        next = next_page(),
    )
}

/// Counts what [`delete_page`] would delete.
pub(super) fn count_page(schema: &Schema) -> String {
    format!(
        "WITH {page} \
         SELECT (SELECT count(*) FROM page AS i {join} WHERE NOT {is_young}), next.* \
         FROM (SELECT) AS one LEFT JOIN ({next}) AS next ON true",
        page = page(schema),
        join = CutOffs::JOIN,
        is_young = format_args!("({})", CutOffs::IS_YOUNG),
        next = next_page(),
    )
}

/// The age of the oldest key of the time-ordered table, in seconds, since it was sent.
pub(super) fn oldest_sent(schema: &Schema) -> String {
    format!(
        "SELECT extract(epoch FROM now() - sent_at)::float8 FROM {} ORDER BY sent_at LIMIT 1",
        table_name(schema)
    )
}

/// The server's estimate of the rows of both tables of keys, partitions included; nothing is scanned.
pub(super) fn rows_left(schema: &Schema) -> String {
    let (inbox, by_time) = (format!("{}.inbox", schema.quoted()), table_name(schema));
    format!(
        "SELECT coalesce(sum(greatest(c.reltuples, 0)), 0)::int8 FROM pg_class AS c \
         WHERE c.oid IN (to_regclass('{inbox}'), to_regclass('{by_time}')) AND c.relkind = 'r' \
         OR c.oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = to_regclass('{by_time}'))"
    )
}

/// The age of the oldest transaction of this database, or of a prepared one, that has a snapshot.
pub(super) const OLDEST_TRANSACTION: &str = "SELECT extract(epoch FROM clock_timestamp() - min(began))::float8 FROM (\
       SELECT xact_start AS began FROM pg_stat_activity \
       WHERE datname = current_database() AND pid <> pg_backend_pid() \
       AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) \
       UNION ALL \
       SELECT prepared FROM pg_prepared_xacts WHERE database = current_database()) AS open";
