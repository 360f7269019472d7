//! Creating and upgrading the schema.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use lambda_inbox_store::{Migrated, Schema, migrate};
use lambda_inbox_testkit::postgres::TestDatabase;
use sqlx::AssertSqlSafe;
use std::process::Command;

/// C-17: twenty environments migrate an empty database at once.
#[tokio::test]
async fn twenty_at_once_migrate_an_empty_database_once() {
    let database = TestDatabase::create().await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let mut connection = database.connect().await.unwrap();
        tasks.spawn(async move { migrate(&mut connection, &Schema::default()).await.unwrap() });
    }
    let results = tasks.join_all().await;
    assert!(
        results.iter().all(|migrated| migrated.after == 2),
        "{results:?}"
    );
    let again = migrate(&mut database.connect().await.unwrap(), &Schema::default())
        .await
        .unwrap();
    assert_eq!(
        again,
        Migrated {
            before: 2,
            after: 2
        }
    );
}

#[tokio::test]
async fn the_bookkeeping_stays_out_of_the_users_own() {
    let database = TestDatabase::create().await.unwrap();
    let mut connection = database.connect().await.unwrap();
    let schema = Schema::new("inbox_x").unwrap();
    let migrated = migrate(&mut connection, &schema).await.unwrap();
    assert_eq!(
        migrated,
        Migrated {
            before: 0,
            after: 2
        }
    );
    let tables: Vec<String> = sqlx::query_scalar(
        "SELECT schemaname || '.' || tablename FROM pg_tables \
         WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert_eq!(
        tables,
        [
            "inbox_x.inbox",
            "inbox_x.inbox_failure",
            "inbox_x.migration"
        ]
    );
}

/// E-14: a C library upgrade must not change what the unique index considers equal.
#[tokio::test]
async fn every_part_of_the_key_is_bytes_to_the_index_and_never_null() {
    let database = TestDatabase::create().await.unwrap();
    let mut connection = database.connect().await.unwrap();
    migrate(&mut connection, &Schema::default()).await.unwrap();
    let columns: Vec<String> = sqlx::query_scalar(
        "SELECT a.attname || ' ' || c.collname || ' ' || a.attnotnull FROM pg_index i \
         JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) \
         JOIN pg_collation c ON c.oid = a.attcollation \
         WHERE i.indrelid = 'lambda_inbox.inbox'::regclass AND i.indisprimary \
         ORDER BY array_position(i.indkey, a.attnum)",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert_eq!(
        columns,
        ["consumer C true", "source C true", "message_id C true"]
    );
}

/// E-11: a table that only grows and is then cut needs settings of its own.
#[tokio::test]
async fn the_table_has_its_own_autovacuum_settings() {
    let database = TestDatabase::create().await.unwrap();
    let mut connection = database.connect().await.unwrap();
    migrate(&mut connection, &Schema::default()).await.unwrap();
    let options: Vec<String> = sqlx::query_scalar(
        "SELECT unnest(reloptions) FROM pg_class WHERE oid = 'lambda_inbox.inbox'::regclass",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert!(
        options
            .iter()
            .any(|o| o.starts_with("autovacuum_vacuum_scale_factor=")),
        "{options:?}"
    );
}

/// The files are SQL that psql runs as it stands, for those who migrate with tools of their own.
#[tokio::test]
async fn the_files_are_plain_sql_for_the_default_schema() {
    let database = TestDatabase::create().await.unwrap();
    let mut connection = database.connect().await.unwrap();
    sqlx::raw_sql("CREATE SCHEMA lambda_inbox")
        .execute(&mut connection)
        .await
        .unwrap();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    for file in files {
        let sql = std::fs::read_to_string(file).unwrap();
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut connection)
            .await
            .unwrap();
    }
    sqlx::query("SELECT FROM lambda_inbox.inbox")
        .execute(&mut connection)
        .await
        .unwrap();
}

/// A deployment that is rolled back runs the release before on the tables of the one after.
#[tokio::test]
async fn a_version_from_a_later_release_is_left_alone() {
    let database = TestDatabase::create().await.unwrap();
    let mut connection = database.connect().await.unwrap();
    let schema = Schema::default();
    migrate(&mut connection, &schema).await.unwrap();
    sqlx::raw_sql(
        "INSERT INTO lambda_inbox.migration (version, description, success, checksum, execution_time) \
         VALUES (99, 'later', true, '', 0)",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    let migrated = migrate(&mut connection, &schema).await.unwrap();
    assert_eq!((migrated.before, migrated.after), (99, 99));
}

#[test]
fn the_migrations_are_in_the_crates_package() {
    let output = Command::new(env!("CARGO"))
        .args(["package", "--list", "--allow-dirty", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    assert!(
        listed
            .lines()
            .any(|line| line == "migrations/0001_inbox.sql"),
        "{listed}"
    );
}
