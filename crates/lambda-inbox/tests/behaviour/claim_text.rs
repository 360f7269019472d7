//! Keys are written into the text of the claim, so what they are made of must not matter; and the claim
//! is planned once a session, so a session that forgets the plan must not matter either.

use crate::scopes::SCOPES;
use crate::support::{MINUTE, World, many, one, store_effect, swallow};
use lambda_inbox::key::Custom;
use lambda_inbox::sqlx::{self, AssertSqlSafe, PgConnection};
use lambda_inbox::{Handler, HandlerError, InboxBuilder, InboxService, Message, Outcome, Scope};
use lambda_inbox_testkit::event::{Record, event};
use serde_json::json;
use std::sync::atomic::{AtomicU32, Ordering};

const AWKWARD: [&str; 10] = [
    "it's; COMMIT; --",
    r"C:\new\",
    r#""quoted", {braces}"#,
    "NULL",
    "tab\tline\n",
    "grün €",
    "🦀",
    "$1 $$ ?1",
    "\u{1}\u{7f}",
    "E'\\x'",
];

#[tokio::test]
async fn keys_are_stored_as_they_are_whatever_they_are_made_of() {
    for (scope, serve) in SCOPES {
        let world = World::new().await;
        let by_body = Custom::new(|content| {
            let id: String = serde_json::from_str(content.body.unwrap_or_default())?;
            Ok((format!("by body {id}"), id))
        });
        let service = serve(world.inbox().key(by_body));
        let batch = || event(AWKWARD.map(|id| Record::new(json!(id).to_string()).to_value()));

        assert_eq!(
            world.deliver(&service, MINUTE, batch()).await,
            Ok(vec![]),
            "{scope}"
        );
        assert_eq!(
            world.deliver(&service, MINUTE, batch()).await,
            Ok(vec![]),
            "{scope}"
        );

        let sql = "SELECT source, message_id FROM lambda_inbox.inbox";
        let mut stored: Vec<(String, String)> = sqlx::query_as(sql)
            .fetch_all(&mut world.admin().await)
            .await
            .unwrap();
        let mut expected = AWKWARD.map(|id| (format!("by body {id}"), id.to_owned()));
        stored.sort();
        expected.sort();
        assert_eq!(stored, expected, "{scope}");
        let outcomes = world.outcomes();
        let duplicates = outcomes
            .iter()
            .filter(|o| **o == Outcome::Duplicate)
            .count();
        assert_eq!(duplicates, AWKWARD.len(), "{scope}: {outcomes:?}");
    }
}

struct Forgetful;

impl Handler<String> for Forgetful {
    async fn handle(
        &self,
        message: &Message<String>,
        conn: &mut PgConnection,
    ) -> Result<(), HandlerError> {
        store_effect(message, conn).await?;
        swallow(conn, "DEALLOCATE ALL").await
    }
}

#[tokio::test]
async fn a_handler_that_drops_the_sessions_statements_costs_a_new_connection_and_nothing_else() {
    for scope in [Scope::PerMessage, Scope::PerBatch] {
        let world = World::new().await;
        let inbox = world.inbox().scope(scope).build().unwrap();
        let service = inbox.text_handler(Forgetful);
        for (delivery, ids) in [["m-1", "m-2"], ["m-3", "m-4"]].into_iter().enumerate() {
            let answer = world.deliver(&service, MINUTE, many(ids)).await;
            assert_eq!(answer, Ok(vec![]), "{scope:?}, delivery {delivery}");
        }
        let answer = world.deliver(&service, MINUTE, one("m-5")).await;
        assert_eq!(answer, Ok(vec![]));
        assert_eq!(
            (world.keys().await, world.effects().await),
            (5, 5),
            "{scope:?}"
        );
    }
}

/// Its statement's result has a column more after the migration.
async fn read_all(message: &Message<String>, conn: &mut PgConnection) -> Result<(), HandlerError> {
    sqlx::query("SELECT * FROM rate")
        .fetch_all(&mut *conn)
        .await?;
    store_effect(message, conn).await
}

async fn read_all_at_once(
    messages: &[Message<serde_json::Value>],
    conn: &mut PgConnection,
) -> Result<(), lambda_inbox::BulkError> {
    sqlx::query("SELECT * FROM rate")
        .fetch_all(&mut *conn)
        .await?;
    for _ in messages {
        sqlx::query("INSERT INTO effect (message_id) VALUES ('x')")
            .execute(&mut *conn)
            .await?;
    }
    Ok(())
}

/// C-08: also of the inbox's own table.
#[tokio::test]
async fn a_plan_that_a_migration_has_outdated_heals_within_the_invocation() {
    type Serve = fn(InboxBuilder) -> InboxService;
    let scopes: [(&str, Serve); 3] = [
        ("per message", |inbox| {
            inbox.build().unwrap().text_handler(read_all)
        }),
        ("per batch", |inbox| {
            inbox
                .scope(Scope::PerBatch)
                .build()
                .unwrap()
                .text_handler(read_all)
        }),
        ("bulk", |inbox| {
            inbox.build().unwrap().bulk_handler(read_all_at_once)
        }),
    ];
    for (scope, serve) in scopes {
        let world = World::new().await;
        let mut admin = world.admin().await;
        let table = "CREATE TABLE rate (a int)";
        sqlx::raw_sql(table).execute(&mut admin).await.unwrap();
        let service = serve(world.inbox());
        let answer = world.deliver(&service, MINUTE, many(["1", "2"])).await;
        assert_eq!(answer, Ok(vec![]), "{scope}");

        for column in ["b", "c"] {
            let migration = format!(
                "ALTER TABLE rate ADD COLUMN {column} int; \
                 ALTER TABLE lambda_inbox.inbox ADD COLUMN {column} int"
            );
            let migration = sqlx::raw_sql(AssertSqlSafe(migration));
            migration.execute(&mut admin).await.unwrap();
            let ids = [format!("3{column}"), format!("4{column}")];
            let bodies = event(
                ids.iter()
                    .map(|id| Record::new(json!(id).to_string()).message_id(id).to_value()),
            );
            let answer = world.deliver(&service, MINUTE, bodies).await;
            assert_eq!(answer, Ok(vec![]), "{scope}, after {column}");
        }
        assert_eq!(
            (world.keys().await, world.effects().await),
            (6, 6),
            "{scope}"
        );
    }
}

/// The same SQLSTATE as an outdated plan's, and nothing that a new session would mend.
#[tokio::test]
async fn a_statement_that_postgres_will_never_run_is_not_tried_again() {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    async fn lock_a_count(
        _: &Message<String>,
        conn: &mut PgConnection,
    ) -> Result<(), HandlerError> {
        RUNS.fetch_add(1, Ordering::Relaxed);
        let sql = "SELECT count(*) FROM effect FOR UPDATE";
        let error = sqlx::query(sql).execute(conn).await.unwrap_err();
        let code = error
            .as_database_error()
            .and_then(|e| e.code().map(|c| c.into_owned()));
        assert_eq!(code.as_deref(), Some("0A000"));
        Err(error.into())
    }
    let world = World::new().await;
    let service = world.inbox().build().unwrap().text_handler(lock_a_count);
    let answer = world.deliver(&service, MINUTE, one("m-1")).await;
    assert_eq!(answer, Ok(vec!["m-1".to_owned()]));
    assert_eq!(RUNS.load(Ordering::Relaxed), 1);
}
