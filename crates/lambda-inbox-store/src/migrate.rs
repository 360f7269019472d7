//! The schema is created and upgraded by a step of its own, never at a cold start: twenty
//! environments that start at once must not fight over DDL.

use crate::schema::Schema;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{AssertSqlSafe, PgConnection, SqlSafeStr};

/// Forward only. A number that has been released never changes.
const MIGRATIONS: &[(i64, &str, &str)] = &[
    (1, "inbox", include_str!("../migrations/0001_inbox.sql")),
    (
        2,
        "inbox failure",
        include_str!("../migrations/0002_inbox_failure.sql"),
    ),
];

/// What a migration did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The schema's version before, 0 where there was none.
    pub before: i64,
    /// The schema's version now.
    pub after: i64,
}

/// Creates or upgrades the tables in `schema`, each step in a transaction of its own. Safe when many
/// run at once: they wait for each other on an advisory lock. The bookkeeping is in
/// `schema.migration`, apart from the user's own.
///
/// The connection must be direct: behind RDS Proxy or PgBouncer the lock does not hold.
///
/// # Errors
/// [`MigrateError`]; finished steps stay. Running it again goes on from there.
pub async fn migrate(
    connection: &mut PgConnection,
    schema: &Schema,
) -> Result<Migrated, MigrateError> {
    let failed = |source| MigrateError {
        schema: schema.clone(),
        source,
    };
    let before = version(connection, schema)
        .await
        .map_err(|error| failed(error.into()))?;
    migrator(schema)
        .run_direct(None, connection, false)
        .await
        .map_err(failed)?;
    let after = version(connection, schema)
        .await
        .map_err(|error| failed(error.into()))?;
    Ok(Migrated { before, after })
}

fn migrator(schema: &Schema) -> Migrator {
    let migrations = MIGRATIONS
        .iter()
        .map(|(version, description, sql)| {
            let sql = AssertSqlSafe(in_schema(sql, schema)).into_sql_str();
            Migration::new(
                *version,
                (*description).into(),
                MigrationType::Simple,
                sql,
                false,
            )
        })
        .collect();
    let mut migrator = Migrator::with_migrations(migrations);
    migrator.dangerous_set_table_name(table_name(schema));
    migrator.create_schema(schema.quoted());
    // A deployment that is rolled back, or an older release, finds a version that it does not know. Every
    // migration is one that the version before can live with.
    migrator.set_ignore_missing(true);
    migrator
}

fn in_schema(sql: &str, schema: &Schema) -> String {
    sql.replace(
        &format!("{}.", Schema::DEFAULT),
        &format!("{}.", schema.quoted()),
    )
}

fn table_name(schema: &Schema) -> String {
    format!("{}.migration", schema.quoted())
}

async fn version(connection: &mut PgConnection, schema: &Schema) -> Result<i64, sqlx::Error> {
    let table = table_name(schema);
    let known: Option<String> = sqlx::query_scalar("SELECT to_regclass($1)::text")
        .bind(&table)
        .fetch_one(&mut *connection)
        .await?;
    if known.is_none() {
        return Ok(0);
    }
    let sql = format!("SELECT coalesce(max(version), 0) FROM {table}");
    sqlx::query_scalar(AssertSqlSafe(sql))
        .fetch_one(connection)
        .await
}

/// The schema could not be brought up to date.
#[derive(Debug, thiserror::Error)]
#[error(
    "schema {schema} could not be migrated; the role needs CREATE on the database, or on the \
     schema where it exists"
)]
pub struct MigrateError {
    schema: Schema,
    source: sqlx::migrate::MigrateError,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_moves_to_the_configured_schema() {
        let schema = Schema::new("Other").unwrap();
        for (_, name, sql) in MIGRATIONS {
            let moved = in_schema(sql, &schema);
            assert!(moved.contains("CREATE TABLE \"Other\".inbox"), "{name}");
            assert!(!moved.contains(Schema::DEFAULT), "{name}");
        }
    }
}
