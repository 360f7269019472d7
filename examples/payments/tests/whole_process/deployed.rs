//! What a deployment makes of an empty database, and that the consumer can work with it under its own role.

use crate::bank::{AMOUNT, BINARY, payment};
use lambda_inbox_testkit::consumer::Invocation;
use lambda_inbox_testkit::event::event;
use lambda_inbox_testkit::postgres::{Cluster, TestDatabase};
use lambda_inbox_testkit::runtime::{LocalRuntime, LocalRuntimeBuilder, Sink};
use serde_json::{Value, json};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};

const MIGRATE: &str = env!("CARGO_BIN_EXE_payments-migrate");

/// A server of its own, because roles belong to all databases of one.
#[tokio::test]
async fn after_the_deployments_migration_the_consumer_books_as_its_own_role() {
    let cluster = Cluster::start().await.unwrap();
    for run in ["the first", "one more"] {
        let mut migrate = function(MIGRATE, &cluster.options())
            .env("LAMBDA_INBOX_CONSUMER_ROLES", "lambda_inbox_consumer")
            .env("LAMBDA_INBOX_PRUNE_ROLE", "lambda_inbox_prune")
            .start()
            .await
            .unwrap();
        let invocation = migrate.invoke(&json!({})).await;
        let Invocation::Response(answer) = invocation else {
            panic!("{run}: {invocation:?}");
        };
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let roles = json!(["lambda_inbox_consumer", "lambda_inbox_prune"]);
        assert_eq!(answer["roles"], roles, "{run}");
    }

    let mut owner = PgConnection::connect_with(&cluster.options())
        .await
        .unwrap();
    // Not on RDS here, where it would log in by a token.
    sqlx::raw_sql("ALTER ROLE lambda_inbox_consumer PASSWORD 'secret'")
        .execute(&mut owner)
        .await
        .unwrap();
    let options = cluster.options().username("lambda_inbox_consumer");
    let mut consumer = function(BINARY, &options.password("secret"))
        .start()
        .await
        .unwrap();
    let invocation = consumer.invoke(&event([payment(1)])).await;
    assert_eq!(invocation, Invocation::failures([""; 0]));
    let moved: (i64, i64) = sqlx::query_as(
        "SELECT (SELECT sum(amount)::bigint FROM payment), \
         (SELECT sum(balance)::bigint FROM account WHERE id <> 'till')",
    )
    .fetch_one(&mut owner)
    .await
    .unwrap();
    assert_eq!(moved, (AMOUNT, AMOUNT));
}

#[tokio::test]
async fn own_tables_that_cannot_be_made_fail_the_migration_and_leave_the_inbox() {
    let database = TestDatabase::create().await.unwrap();
    let mut connection = database.connect().await.unwrap();
    sqlx::raw_sql("CREATE VIEW account AS SELECT 1 AS id")
        .execute(&mut connection)
        .await
        .unwrap();
    let mut migrate = function(MIGRATE, &database.options())
        .start()
        .await
        .unwrap();
    let invocation = migrate.invoke(&json!({})).await;
    let Invocation::FunctionError(reason) = invocation else {
        panic!("{invocation:?}");
    };
    assert!(reason.contains("your own are not"), "{reason}");
    assert!(reason.contains("is not a table"), "{reason}");
    let keys: i64 = sqlx::query_scalar("SELECT count(*) FROM lambda_inbox.inbox")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(keys, 0);
}

fn function(binary: &str, options: &PgConnectOptions) -> LocalRuntimeBuilder {
    LocalRuntime::builder(binary)
        .env("DATABASE_URL", options.to_url_lossy().as_str())
        .stdout(Sink::Null)
        .stderr(Sink::Null)
}
