//! A password that changes under a process that lives on, with the secret in an emulator of Secrets Manager.

use crate::emulator::Emulator;
use crate::process::Process;
use crate::support::Private;
use lambda_inbox_testkit::proxy::Proxy;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::net::SocketAddr;

/// C-14.
const PASSWORD: &str = "p#w/x?y@z%1:!\\\"é";
const NEW_PASSWORD: &str = "n#w/x?y@z%2:!";

/// C-14 and C-15.
#[tokio::test]
async fn a_password_that_changes_under_a_warm_process_is_read_again() {
    let server = Private::start().await;
    let mut admin = PgConnection::connect_with(&server.cluster.options())
        .await
        .unwrap();
    set_password(&mut admin, "CREATE", PASSWORD).await;
    let emulator = Emulator::start().await;
    let arn = emulator.create_secret("app", PASSWORD).await;
    let mut process = process(&server, &arn, emulator.address);

    assert_eq!(process.connect(), "connected");

    // The rotation has changed the password, and not yet the secret.
    set_password(&mut admin, "ALTER", NEW_PASSWORD).await;
    let error = process.connect();
    assert!(error.ends_with("28P01"), "{error}");

    emulator.put_secret(&arn, "app", NEW_PASSWORD).await;
    assert_eq!(process.connect(), "connected");

    // What works is not asked for again.
    drop(emulator);
    assert_eq!(process.connect(), "connected");

    set_password(&mut admin, "ALTER", PASSWORD).await;
    let error = process.connect();
    assert!(
        error.contains("Secrets Manager at http://127.0.0.1:"),
        "{error}"
    );
    assert!(error.contains("VPC endpoint"), "{error}");
    process.assert_never_said(&[PASSWORD, NEW_PASSWORD, "p#w", "n#w"]);
}

/// G-05. The store gives a connection five seconds, and its own error names nothing.
#[tokio::test]
async fn an_endpoint_that_does_not_answer_is_named_before_the_store_loses_patience() {
    let server = Private::start().await;
    let nowhere = Proxy::start("127.0.0.1", 9).await.unwrap();
    nowhere.black_hole(true);
    let arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:app-AbCdEf";
    let mut process = process(&server, arn, nowhere.addr());
    let error = process.connect();
    let named = format!(
        "Secrets Manager at http://{} did not answer",
        nowhere.addr()
    );
    assert!(error.contains(&named), "{error}");
}

#[tokio::test]
async fn a_secret_that_is_not_given_out_or_is_none_is_told_with_the_fix() {
    let server = Private::start().await;
    let emulator = Emulator::start().await;
    let absent = "arn:aws:secretsmanager:us-east-1:000000000000:secret:absent-AbCdEf";
    let error = process(&server, absent, emulator.address).connect();
    assert!(error.contains("ResourceNotFoundException"), "{error}");
    assert!(error.contains("secretsmanager:GetSecretValue"), "{error}");

    let text = emulator.create("text", "hunter2").await;
    let mut process = process(&server, &text, emulator.address);
    let error = process.connect();
    assert!(error.contains("no JSON object with a password"), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
}

#[tokio::test]
async fn a_function_without_a_role_is_told_so() {
    let server = Private::start().await;
    let arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:app-AbCdEf";
    let nowhere = Proxy::start("127.0.0.1", 9).await.unwrap();
    let endpoint = format!("http://{}", nowhere.addr());
    let variables = [
        ("LAMBDA_INBOX_DB_SECRET_ARN", arn),
        ("AWS_ENDPOINT_URL_SECRETS_MANAGER", &endpoint),
        ("AWS_ACCESS_KEY_ID", ""),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ];
    let error = Process::start(&server.cluster, &variables).connect();
    assert!(error.contains("no AWS credentials"), "{error}");
}

async fn set_password(admin: &mut PgConnection, verb: &str, password: &str) {
    let literal = format!("E'{}'", password.replace('\\', "\\\\").replace('\'', "\\'"));
    let sql = format!("{verb} ROLE app LOGIN PASSWORD {literal}");
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(admin)
        .await
        .unwrap();
}

fn process(server: &Private, arn: &str, endpoint: SocketAddr) -> Process {
    let endpoint = format!("http://{endpoint}");
    let variables = [
        ("LAMBDA_INBOX_DB_SECRET_ARN", arn),
        ("AWS_ENDPOINT_URL_SECRETS_MANAGER", &endpoint),
    ];
    Process::start(&server.cluster, &variables)
}
