//! Which partitions there are. Told by their bounds, not by their names: someone may have renamed one.

use crate::layout::{TABLE, table_name};
use crate::partitions::DAYS_BACK;
use crate::schema::Schema;
use sqlx::{AssertSqlSafe, PgConnection};

/// Whether a partition takes part in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Attached,
    /// A detachment of it was begun and not finished. One at most, and no other can begin before.
    HalfDetached,
    /// A table of a partition's name, detached by a run that did not come to drop it.
    Detached,
}

/// One partition of the time-ordered table, or what was one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Partition {
    /// Its name, without the schema.
    pub(super) name: String,
    pub(super) state: State,
    /// Its bounds, as literals.
    pub(super) lower: String,
    pub(super) upper: String,
    /// Whether it ended before the shortest retention and before everything that may still be under
    /// way.
    pub(super) is_old: bool,
}

/// The partitions with two bounds, oldest first, where `seconds` is the shortest retention. Within a
/// maintenance transaction, whose time zone is UTC.
pub(super) async fn partitions(
    connection: &mut PgConnection,
    schema: &Schema,
    seconds: f64,
) -> Result<Vec<Partition>, sqlx::Error> {
    let sql = format!(
        "WITH attached AS ({}), \
         detached AS (\
           SELECT c.relname::text AS name, \
             to_date(right(c.relname::text, 8), 'YYYYMMDD')::timestamptz AS lower, \
             to_date(right(c.relname::text, 8), 'YYYYMMDD')::timestamptz + interval '24 hours' AS upper \
           FROM pg_class AS c WHERE c.relnamespace = to_regnamespace('{}') \
           AND c.relkind = 'r' AND NOT c.relispartition AND c.relname ~ '^{TABLE}_[0-9]{{8}}$'), \
         every AS (\
           SELECT name, is_half_detached, false AS is_detached, lower, upper FROM attached \
           UNION ALL SELECT name, false, true, lower, upper FROM detached) \
         SELECT name, is_half_detached, is_detached, lower::text, upper::text, \
           upper <= now() - make_interval(secs => $1) \
             AND upper <= now() - interval '24 hours' * {DAYS_BACK} \
         FROM every WHERE lower IS NOT NULL AND upper IS NOT NULL ORDER BY upper, name",
        partitions_sql(schema),
        schema.quoted(),
    );
    let rows: Vec<(String, bool, bool, String, String, bool)> = sqlx::query_as(AssertSqlSafe(sql))
        .persistent(false)
        .bind(seconds)
        .fetch_all(connection)
        .await?;
    let partition = |(name, is_half_detached, is_detached, lower, upper, is_old)| Partition {
        name,
        state: match (is_half_detached, is_detached) {
            (true, _) => State::HalfDetached,
            (false, true) => State::Detached,
            (false, false) => State::Attached,
        },
        lower,
        upper,
        is_old,
    };
    Ok(rows.into_iter().map(partition).collect())
}

/// `name`, `is_half_detached`, `lower` and `upper` of each partition. A bound is read back from its text,
/// which is as exact as the time zone and date style are, hence the maintenance transaction.
pub(super) fn partitions_sql(schema: &Schema) -> String {
    let bound = |word: &str| {
        format!(
            "substring(pg_get_expr(c.relpartbound, c.oid) \
             FROM '{word} [(]''([^'']+)''[)]')::timestamptz"
        )
    };
    format!(
        "SELECT c.relname::text AS name, i.inhdetachpending AS is_half_detached, \
           {} AS lower, {} AS upper \
         FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid \
         WHERE i.inhparent = to_regclass('{}')",
        bound("FROM"),
        bound("TO"),
        table_name(schema)
    )
}
