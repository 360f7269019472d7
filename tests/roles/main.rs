//! Each function's database role may do what its statements need and no more, on a real server.

#![allow(clippy::unwrap_used)] // In helpers too, which Clippy does not take for tests.

mod database;

use database::{CONSUMER, Database, PRUNE};
use lambda_inbox::{HandlerError, Inbox, InboxEvent, Message, migrate};
use lambda_inbox_store::{Duty, Pruner, Retention, Role, Schema, grant};
use lambda_inbox_testkit::consumer::{Consumer, InProcess, Invocation};
use lambda_inbox_testkit::event::{Record, event};
use serde_json::Value;
use sqlx::PgConnection;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);

async fn failures(consumer: &mut impl Consumer, records: &[(&str, &str)]) -> usize {
    let records = records
        .iter()
        .map(|(id, body)| Record::new(*body).message_id(*id));
    let Invocation::Response(response) = consumer.invoke(event(records), TIMEOUT).await else {
        panic!("a response was expected");
    };
    let response: Value = serde_json::from_slice(&response).unwrap();
    response["batchItemFailures"].as_array().unwrap().len()
}

/// What examples/payments does to its tables.
async fn pay(message: &Message<String>, conn: &mut PgConnection) -> Result<(), HandlerError> {
    if message.body == "commits by itself" {
        sqlx::raw_sql("COMMIT").execute(&mut *conn).await?;
    }
    sqlx::query("UPDATE account SET balance = balance + $1 WHERE id = $2 AND balance + $1 >= 0")
        .bind(1_i64)
        .bind("shop")
        .execute(&mut *conn)
        .await?;
    sqlx::query(
        "INSERT INTO payment (payment_id, from_account, to_account, amount) VALUES ($1, $2, $3, $4)",
    )
    .bind(&message.body)
    .bind("till")
    .bind("shop")
    .bind(1_i64)
    .execute(&mut *conn)
    .await?;
    Ok(())
}

#[tokio::test]
async fn the_consumer_can_do_all_that_an_inbox_does() {
    let database = Database::start().await;
    let inbox = Inbox::builder("payments", database.options(CONSUMER))
        .failure_log(true)
        .build()
        .unwrap();
    let mut consumer = InProcess::<_, InboxEvent>::new(inbox.text_handler(pay));
    let batch = [("1", "one"), ("2", "two")];
    assert_eq!(failures(&mut consumer, &batch).await, 0);
    assert_eq!(failures(&mut consumer, &batch).await, 0, "duplicates");
    assert_eq!(
        failures(&mut consumer, &[("1", "other")]).await,
        1,
        "a mismatch"
    );
    // Its claim is committed, found out and taken back, for which the inbox deletes it.
    assert_eq!(
        failures(&mut consumer, &[("3", "commits by itself")]).await,
        1
    );

    let mut owner = database.owner().await;
    let keys: Vec<String> =
        sqlx::query_scalar("SELECT message_id FROM lambda_inbox.inbox ORDER BY 1")
            .fetch_all(&mut owner)
            .await
            .unwrap();
    assert_eq!(keys, ["1", "2"]);
    let logged: i64 = sqlx::query_scalar("SELECT count(*) FROM lambda_inbox.inbox_failure")
        .fetch_one(&mut owner)
        .await
        .unwrap();
    assert_eq!(logged, 2);
}

#[tokio::test]
async fn the_prune_can_prune() {
    let database = Database::start().await;
    let mut owner = database.owner().await;
    sqlx::raw_sql(
        "INSERT INTO lambda_inbox.inbox (consumer, source, message_id, processed_at, fingerprint)
         VALUES ('payments', 'sqs', 'old', now() - interval '40 days', ''),
                ('payments', 'sqs', 'new', now(), '');
         INSERT INTO lambda_inbox.inbox_failure (failed_at, consumer, outcome, error, receive_count)
         VALUES (now() - interval '90 days', 'payments', 'failed', 'x', 1)",
    )
    .execute(&mut owner)
    .await
    .unwrap();
    let pruner = Pruner::builder(Schema::default(), Retention::default())
        .build()
        .unwrap();
    let mut connection = database.connect(PRUNE).await;
    let until = tokio::time::Instant::now() + Duration::from_secs(60);
    let report = pruner.run(&mut connection, until).await.unwrap();
    assert!(report.finished, "{report:?}");
    let keys: Vec<String> = sqlx::query_scalar("SELECT message_id FROM lambda_inbox.inbox")
        .fetch_all(&mut owner)
        .await
        .unwrap();
    assert_eq!(keys, ["new"]);
}

#[tokio::test]
async fn everything_else_is_refused() {
    let database = Database::start().await;
    let schema_changes = [
        "CREATE TABLE public.mine (id int)",
        "CREATE TABLE lambda_inbox.mine (id int)",
        "CREATE SCHEMA mine",
        "ALTER TABLE lambda_inbox.inbox ADD COLUMN mine int",
        "ALTER TABLE account ADD COLUMN mine int",
        "DROP TABLE lambda_inbox.inbox",
        "DROP TABLE account",
        "DROP INDEX lambda_inbox.inbox_processed_at",
        "TRUNCATE lambda_inbox.inbox",
        "TRUNCATE account",
        "CREATE ROLE mine",
    ];
    let consumer_only = [
        "UPDATE lambda_inbox.inbox SET status = 'ignored'",
        "SELECT error FROM lambda_inbox.inbox_failure",
        "DELETE FROM lambda_inbox.inbox_failure",
        "DELETE FROM account",
        "INSERT INTO account VALUES ('mine', 1)",
        "UPDATE account SET id = 'mine'",
        "SELECT * FROM payment",
        "DELETE FROM payment",
        "SELECT FROM lambda_inbox.migration",
    ];
    let prune_only = [
        "SELECT * FROM account",
        "SELECT id FROM account",
        "SELECT * FROM payment",
        "UPDATE account SET balance = 0",
        "DELETE FROM payment",
        "INSERT INTO lambda_inbox.inbox (consumer, source, message_id, fingerprint) VALUES ('a', 'b', 'c', '')",
        "UPDATE lambda_inbox.inbox SET status = 'ignored'",
        "UPDATE lambda_inbox.inbox SET message_id = 'mine'",
    ];
    for (role, statements) in [(CONSUMER, &consumer_only[..]), (PRUNE, &prune_only[..])] {
        let mut connection = database.connect(role).await;
        for statement in schema_changes.iter().chain(statements) {
            let result = sqlx::raw_sql(*statement).execute(&mut connection).await;
            let error = result.expect_err(statement);
            let code = error.as_database_error().and_then(|error| error.code());
            assert_eq!(
                code.as_deref(),
                Some("42501"),
                "{role}: {statement}: {error}"
            );
        }
    }
}

#[tokio::test]
async fn granting_again_changes_nothing_and_keeps_what_somebody_has_set() {
    let database = Database::start().await;
    database
        .apply("ALTER ROLE lambda_inbox_consumer SET statement_timeout = '7s'")
        .await;
    let before = catalogue(&database).await;
    assert!(before.contains("statement_timeout=7s"), "{before}");
    database.grant_all().await;
    database.apply(database::GRANTS).await;
    assert_eq!(catalogue(&database).await, before);
}

/// A role's lock_timeout would end the waits of handlers, which are their own where nothing is pooled.
#[tokio::test]
async fn only_a_pooled_consumer_has_timeouts_of_its_role() {
    let database = Database::start().await;
    let mut owner = database.owner().await;
    for (name, duty, expected) in [
        ("direct", Duty::Consumer, None),
        ("pooled", Duty::PooledConsumer, Some("lock_timeout=250ms")),
    ] {
        let role = Role::new(name).unwrap();
        grant(&mut owner, &Schema::default(), &role, duty)
            .await
            .unwrap();
        let settings: Option<String> =
            sqlx::query_scalar("SELECT rolconfig::text FROM pg_roles WHERE rolname = $1")
                .bind(name)
                .fetch_one(&mut owner)
                .await
                .unwrap();
        match expected {
            Some(expected) => assert!(settings.unwrap().contains(expected)),
            None => assert_eq!(settings, None),
        }
    }
}

/// Everything that the roles are and may.
async fn catalogue(database: &Database) -> String {
    let sql = "SELECT concat_ws(' ', \
         (SELECT string_agg(concat(rolname, rolcanlogin, rolconfig), ';' ORDER BY rolname) FROM pg_roles), \
         (SELECT string_agg(concat(relname, relacl), ';' ORDER BY oid) FROM pg_class), \
         (SELECT string_agg(concat(attrelid, attacl), ';' ORDER BY attrelid, attnum) FROM pg_attribute \
          WHERE attacl IS NOT NULL), \
         (SELECT string_agg(concat(nspname, nspacl), ';' ORDER BY oid) FROM pg_namespace))";
    sqlx::query_scalar(sql)
        .fetch_one(&mut database.owner().await)
        .await
        .unwrap()
}

/// On RDS: a role that is made logs in by a token; one with a password of its own would be locked out by that.
#[tokio::test]
async fn only_a_role_that_is_made_logs_in_by_iam() {
    let database = Database::start().await;
    database
        .apply("CREATE ROLE rds_iam; CREATE ROLE theirs LOGIN PASSWORD 'x'")
        .await;
    let mut owner = database.owner().await;
    for (name, is_member) in [("theirs", false), ("ours", true)] {
        for duty in [Duty::PooledConsumer, Duty::Prune] {
            let role = Role::new(name).unwrap();
            grant(&mut owner, &Schema::default(), &role, duty)
                .await
                .unwrap();
        }
        let found: bool = sqlx::query_scalar("SELECT pg_has_role($1, 'rds_iam', 'MEMBER')")
            .bind(name)
            .fetch_one(&mut owner)
            .await
            .unwrap();
        assert_eq!(found, is_member, "{name}");
    }
}

#[tokio::test]
async fn names_may_have_capitals_and_dollar_signs() {
    let database = Database::start().await;
    let mut owner = database.owner().await;
    let schema = Schema::new("Odd$$Schema").unwrap();
    migrate(&mut owner, &schema).await.unwrap();
    for duty in [Duty::PooledConsumer, Duty::Prune] {
        let role = Role::new("Odd$$Role").unwrap();
        grant(&mut owner, &schema, &role, duty).await.unwrap();
    }
    let sql = "SELECT has_table_privilege('Odd$$Role', '\"Odd$$Schema\".inbox', 'SELECT, DELETE')";
    let may: bool = sqlx::query_scalar(sql).fetch_one(&mut owner).await.unwrap();
    assert!(may);
}

/// The owner of a database that exists may lack CREATEROLE; an administrator has made the roles then.
#[tokio::test]
async fn an_owner_that_makes_no_roles_still_grants_and_else_says_what_it_lacks() {
    let database = Database::start().await;
    database
        .apply(
            "CREATE ROLE modest LOGIN PASSWORD 'a-test''s';
             DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO modest', current_database()); END $$;
             ALTER ROLE lambda_inbox_prune RESET ALL;
             CREATE ROLE new_consumer LOGIN;",
        )
        .await;
    let mut modest = database.connect("modest").await;
    let schema = Schema::new("theirs").unwrap();
    migrate(&mut modest, &schema).await.unwrap();

    let role = |name| Role::new(name).unwrap();
    for (name, duty) in [
        ("lambda_inbox_prune", Duty::Prune),
        // Its timeouts are missing, which matters behind a proxy only, and is warned of there.
        ("new_consumer", Duty::PooledConsumer),
    ] {
        grant(&mut modest, &schema, &role(name), duty)
            .await
            .unwrap();
    }
    let error = grant(&mut modest, &schema, &role("nobody"), Duty::Prune)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("CREATEROLE"), "{error}");
}

#[tokio::test]
async fn databases_that_make_the_same_roles_at_once_do_not_fail() {
    let database = Database::start().await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..4 {
        let mut owner = database.database(&format!("db_{number}")).await;
        migrate(&mut owner, &Schema::default()).await.unwrap();
        tasks.spawn(async move {
            for duty in [Duty::PooledConsumer, Duty::Prune] {
                for name in ["shared_a", "shared_b"] {
                    let role = Role::new(name).unwrap();
                    grant(&mut owner, &Schema::default(), &role, duty)
                        .await
                        .unwrap();
                }
            }
        });
    }
    tasks.join_all().await;
}
