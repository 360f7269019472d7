//! The time-ordered layout: a second table whose primary key is led by the time at which SQS took the
//! message, so that claims touch the same few pages of the index however many keys are kept.
//!
//! It stands beside the keyed table, and both kinds of consumers share a schema. It is right only for
//! keys that a send time belongs to: one key with two times would be two rows, and a duplicate would
//! pass. It is made on demand, because most inboxes never need it.

use crate::maintenance::{Patience, begin, finish, lock_key};
use crate::partitions::{self, PartitionsError};
use crate::schema::Schema;
use sqlx::{AssertSqlSafe, PgConnection};
use std::fmt;
use std::time::Duration;

/// The table of the time-ordered layout.
pub(crate) const TABLE: &str = "inbox_by_time";

/// The most time that whoever creates the table waits for others who are at it.
const OTHERS_WAIT: Duration = Duration::from_secs(60);

/// How the rows of the time-ordered table are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partitions {
    /// In one table; keys are pruned by deleting rows.
    None,
    /// In a partition for each day (UTC) of the send time; keys are pruned by dropping partitions.
    Daily,
}

impl fmt::Display for Partitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Daily => "daily",
        })
    }
}

/// What [`create_time_ordered`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeOrdered {
    /// Whether the table was not there before.
    pub created: bool,
    /// The partitions that were created, oldest first.
    pub partitions: Vec<String>,
}

/// Creates the time-ordered table in `schema`, which [`migrate`](crate::migrate) has made, and with
/// [`Partitions::Daily`] the partitions that messages of today and the next week need. Does nothing
/// where all is there. Safe when many run at once: they wait for each other.
///
/// # Errors
/// [`LayoutError`]; partitions that were finished stay. Running it again goes on from there.
pub async fn create_time_ordered(
    connection: &mut PgConnection,
    schema: &Schema,
    wanted: Partitions,
) -> Result<TimeOrdered, LayoutError> {
    let created = create_table(connection, schema, wanted).await?;
    let partitions = match wanted {
        Partitions::None => Vec::new(),
        Partitions::Daily => partitions::create_ahead(connection, schema).await?,
    };
    Ok(TimeOrdered {
        created,
        partitions,
    })
}

/// How the time-ordered table is stored; `None` where there is none.
///
/// # Errors
/// [`sqlx::Error`] as the driver has it.
pub(crate) async fn existing(
    connection: &mut PgConnection,
    schema: &Schema,
) -> Result<Option<Partitions>, sqlx::Error> {
    let kind: Option<String> =
        sqlx::query_scalar("SELECT relkind::text FROM pg_class WHERE oid = to_regclass($1)")
            .bind(table_name(schema))
            .fetch_optional(connection)
            .await?;
    Ok(kind.map(|kind| match kind.as_str() {
        "p" => Partitions::Daily,
        _ => Partitions::None,
    }))
}

/// The table's name, quoted.
pub(crate) fn table_name(schema: &Schema) -> String {
    format!("{}.{TABLE}", schema.quoted())
}

async fn create_table(
    connection: &mut PgConnection,
    schema: &Schema,
    wanted: Partitions,
) -> Result<bool, LayoutError> {
    let failed = |source| LayoutError::Database {
        schema: schema.clone(),
        source,
    };
    let patience = Patience {
        lock: OTHERS_WAIT,
        statement: OTHERS_WAIT,
    };
    begin(connection, patience).await.map_err(failed)?;
    let found = find_or_create(connection, schema, wanted).await;
    match finish(connection, found).await.map_err(failed)? {
        None => Ok(true),
        Some(found) if found == wanted => Ok(false),
        Some(found) => Err(LayoutError::OtherPartitions { found, wanted }),
    }
}

/// What was there; else the table is created.
async fn find_or_create(
    connection: &mut PgConnection,
    schema: &Schema,
    wanted: Partitions,
) -> Result<Option<Partitions>, sqlx::Error> {
    let lock = format!("SELECT pg_advisory_xact_lock({})", lock_key(schema, "ddl"));
    sqlx::raw_sql(AssertSqlSafe(lock))
        .execute(&mut *connection)
        .await?;
    let found = existing(connection, schema).await?;
    if found.is_none() {
        let sql = create_sql(schema, wanted);
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(connection)
            .await?;
    }
    Ok(found)
}

/// The columns of `inbox`, with a send time that is never null. No second index: the prune walks the
/// primary key, and an index by `processed_at` would double what a claim writes.
fn create_sql(schema: &Schema, partitions: Partitions) -> String {
    let table = table_name(schema);
    let storage = match partitions {
        Partitions::None => STORAGE,
        Partitions::Daily => "PARTITION BY RANGE (sent_at)",
    };
    format!(
        "CREATE TABLE {table} (\
           consumer             text        COLLATE \"C\" NOT NULL, \
           source               text        COLLATE \"C\" NOT NULL, \
           message_id           text        COLLATE \"C\" NOT NULL, \
           sent_at              timestamptz NOT NULL, \
           processed_at         timestamptz NOT NULL DEFAULT now(), \
           status               text        COLLATE \"C\" NOT NULL DEFAULT 'processed', \
           fingerprint          bytea       NOT NULL, \
           transport_message_id text        COLLATE \"C\", \
           CONSTRAINT inbox_by_time_pkey PRIMARY KEY (sent_at, consumer, source, message_id), \
           CONSTRAINT inbox_by_time_key_not_empty \
             CHECK (consumer <> '' AND source <> '' AND message_id <> ''), \
           CONSTRAINT inbox_by_time_status CHECK (status IN ('processed', 'ignored'))\
         ) {storage}"
    )
}

/// As of the keyed table.
pub(crate) const STORAGE: &str = "WITH (autovacuum_vacuum_scale_factor = 0.02, \
     autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02)";

/// The time-ordered table could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// It is there, stored in another way. Rows are not moved: a claim in between would not find them.
    #[error(
        "the time-ordered table has partitions: {found}, wanted: {wanted}; this cannot be changed \
         while it is in use: keep {found}, or stop its consumers until their queues are empty and \
         older than the retention, drop the table and create it anew"
    )]
    OtherPartitions {
        /// As it is.
        found: Partitions,
        /// As asked for.
        wanted: Partitions,
    },
    /// A statement failed.
    #[error(
        "the time-ordered table could not be created in schema {schema}; run the migrations first, \
         and grant the role CREATE on the schema"
    )]
    Database {
        /// Where.
        schema: Schema,
        /// The driver's error.
        source: sqlx::Error,
    },
    /// A partition could not be created.
    #[error("the time-ordered table is there, but not all of its partitions")]
    Partitions(#[from] PartitionsError),
}
