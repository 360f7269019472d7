//! Creating partitions before they are needed.

use super::care::partitions_sql;
use super::{
    ATTEMPTS_MAX, DAYS_AHEAD, DAYS_BACK, LOCK_WAIT, PAUSE, PartitionsError, STATEMENT_WAIT, is_wait,
};
use crate::layout::{STORAGE, TABLE, table_name};
use crate::maintenance::{Patience, begin, finish, lock_key};
use crate::schema::Schema;
use sqlx::{AssertSqlSafe, PgConnection};
use tokio::time::sleep;

/// Creates the daily partitions that are missing from [`DAYS_BACK`] to [`DAYS_AHEAD`], today's first,
/// and returns their names, oldest first. Claims go on meanwhile.
pub(crate) async fn create_ahead(
    connection: &mut PgConnection,
    schema: &Schema,
) -> Result<Vec<String>, PartitionsError> {
    let mut created = Vec::new();
    while let Some(name) = create_next(connection, schema)
        .await
        .map_err(PartitionsError::to("create partitions ahead"))?
    {
        created.push(name);
    }
    created.sort();
    Ok(created)
}

async fn create_next(
    connection: &mut PgConnection,
    schema: &Schema,
) -> Result<Option<String>, sqlx::Error> {
    let patience = Patience {
        lock: LOCK_WAIT,
        statement: STATEMENT_WAIT,
    };
    let mut attempt = 1;
    loop {
        begin(connection, patience).await?;
        let created = find_and_create(connection, schema).await;
        match finish(connection, created).await {
            Err(error) if is_wait(&error) && attempt < ATTEMPTS_MAX => {
                sleep(PAUSE * 2_u32.pow(attempt - 1)).await;
                attempt += 1;
            }
            result => return result,
        }
    }
}

/// The lock is held to the end, so that what is missing is still missing when it is created.
async fn find_and_create(
    connection: &mut PgConnection,
    schema: &Schema,
) -> Result<Option<String>, sqlx::Error> {
    let lock = format!("SELECT pg_advisory_xact_lock({})", lock_key(schema, "ddl"));
    sqlx::raw_sql(AssertSqlSafe(lock))
        .execute(&mut *connection)
        .await?;
    let missing: Option<(String, String, String)> =
        sqlx::query_as(AssertSqlSafe(missing_sql(schema)))
            .persistent(false)
            .fetch_optional(&mut *connection)
            .await?;
    let Some((day, lower, upper)) = missing else {
        return Ok(None);
    };
    let name = format!("{TABLE}_{day}");
    sqlx::raw_sql(AssertSqlSafe(create_sql(schema, &name, &lower, &upper)))
        .execute(connection)
        .await?;
    Ok(Some(name))
}

/// The first day of the window that no partition reaches into, from today on and then the past ones.
/// Days are of UTC and without a time zone, so that none has 23 or 25 hours.
fn missing_sql(schema: &Schema) -> String {
    format!(
        "WITH partition AS ({}), \
         clock AS (SELECT date_trunc('day', now() AT TIME ZONE 'UTC') AS today) \
         SELECT to_char(day, 'YYYYMMDD'), to_char(day, 'YYYY-MM-DD'), \
           to_char(day + interval '24 hours', 'YYYY-MM-DD') \
         FROM clock, generate_series(today - interval '24 hours' * {DAYS_BACK}, \
           today + interval '24 hours' * {DAYS_AHEAD}, interval '24 hours') AS day \
         WHERE NOT EXISTS (SELECT FROM partition WHERE \
           coalesce(lower, '-infinity') < (day + interval '24 hours') AT TIME ZONE 'UTC' \
           AND coalesce(upper, 'infinity') > day AT TIME ZONE 'UTC') \
         ORDER BY day < today, day LIMIT 1",
        partitions_sql(schema)
    )
}

/// ATTACH takes a lock on the parent that claims do not notice (SHARE UPDATE EXCLUSIVE), where PARTITION
/// OF would lock them out. The new table is empty and nobody else sees it, so there is nothing to scan.
/// A table of the name that a broken run detached and did not drop comes back in.
///
/// Source: PostgreSQL documentation, ALTER TABLE, "ATTACH PARTITION".
fn create_sql(schema: &Schema, name: &str, lower: &str, upper: &str) -> String {
    let parent = table_name(schema);
    let partition = format!("{}.{name}", schema.quoted());
    format!(
        "CREATE TABLE IF NOT EXISTS {partition} (LIKE {parent} INCLUDING ALL) {STORAGE}; {}",
        attach_sql(
            &parent,
            &partition,
            &format!("{lower} 00:00:00+00"),
            &format!("{upper} 00:00:00+00")
        )
    )
}

pub(super) fn attach_sql(parent: &str, partition: &str, lower: &str, upper: &str) -> String {
    format!(
        "ALTER TABLE {parent} ATTACH PARTITION {partition} \
         FOR VALUES FROM ('{lower}') TO ('{upper}')"
    )
}
