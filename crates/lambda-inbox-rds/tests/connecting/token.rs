//! IAM authentication, as far as it goes without AWS: the server takes the token for a wrong password.

use crate::process::Process;
use crate::support::Private;
use sqlx::{Connection, PgConnection};

#[tokio::test]
async fn a_token_that_the_database_does_not_take_is_told_with_the_grants_and_not_shown() {
    let server = Private::start().await;
    let mut admin = PgConnection::connect_with(&server.cluster.options())
        .await
        .unwrap();
    sqlx::raw_sql("CREATE ROLE app LOGIN PASSWORD 'hunter2'")
        .execute(&mut admin)
        .await
        .unwrap();
    let variables = [
        ("LAMBDA_INBOX_DB_AUTH", "iam"),
        ("LAMBDA_INBOX_DB_USER", "app"),
        ("AWS_REGION", "eu-west-1"),
    ];
    let mut process = Process::start(&server.cluster, &variables);
    let error = process.connect();
    assert!(error.contains("GRANT rds_iam TO app"), "{error}");
    assert!(error.ends_with("28P01"), "{error}");
    process.assert_never_said(&["X-Amz-Signature"]);
}
