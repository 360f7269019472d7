//! C-15: the database's password changes while the function is warm.

use lambda_inbox_testkit::consumer::Invocation;
use lambda_inbox_testkit::event::event;
use lambda_inbox_testkit::postgres::{Cluster, TestDatabase};
use lambda_inbox_testkit::runtime::Sink;
use lambda_inbox_testkit::tls::Authority;
use sqlx::{AssertSqlSafe, ConnectOptions};

use crate::bank::{Bank, NONE, failures, payment};
use crate::emulator::Emulator;

const USER: &str = "payments";
const PASSWORD: &str = "p#w/x?y@z%1:!";
const NEW_PASSWORD: &str = "n#w/x?y@z%2:!";

#[tokio::test]
async fn a_password_that_changes_under_a_warm_function_costs_no_payment_and_no_restart() {
    let identity = Authority::new("private")
        .unwrap()
        .issue(["localhost"])
        .unwrap();
    let cluster = Cluster::builder().tls(&identity).start().await.unwrap();
    let database = TestDatabase::create_on(&cluster.options()).await.unwrap();
    let mut bank = Bank::with(database).await;
    bank.execute(&format!(
        "CREATE ROLE {USER} LOGIN SUPERUSER PASSWORD '{PASSWORD}'"
    ))
    .await;
    let emulator = Emulator::start().await;
    let arn = emulator.create_secret(USER, PASSWORD).await;
    let log = tempfile::NamedTempFile::new().unwrap();
    let options = bank.database.options();
    let mut function = bank
        .function()
        .env("DATABASE_URL", "")
        .env("LAMBDA_INBOX_DB_HOST", options.get_host())
        .env("LAMBDA_INBOX_DB_PORT", options.get_port().to_string())
        .env("LAMBDA_INBOX_DB_NAME", bank.database.name())
        .env("LAMBDA_INBOX_DB_SECRET_ARN", &arn)
        .env("LAMBDA_INBOX_DB_TLS", "require")
        .env(
            "AWS_ENDPOINT_URL_SECRETS_MANAGER",
            format!("http://{}", emulator.address),
        )
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .env("AWS_LAMBDA_LOG_LEVEL", "TRACE")
        .stdout(Sink::File(log.path().to_owned()))
        .stderr(Sink::File(log.path().to_owned()))
        .start()
        .await
        .unwrap();
    assert_eq!(failures(function.invoke(&event([payment(1)])).await), NONE);

    // The password changes first and the secret a moment later, as a rotation does it.
    bank.execute(&format!("ALTER ROLE {USER} PASSWORD '{NEW_PASSWORD}'"))
        .await;
    bank.database.terminate_backends().await.unwrap();
    bank.reconnect().await;
    let batch = event((1..=3).map(payment));
    let Invocation::FunctionError(error) = function.invoke(&batch).await else {
        panic!("without a connection the invocation fails");
    };
    assert!(error.contains("SQLSTATE 28P01"), "{error}");

    emulator.put_secret(&arn, USER, NEW_PASSWORD).await;
    assert_eq!(failures(function.invoke(&batch).await), NONE);
    assert_eq!(function.starts(), 1);
    bank.assert_booked_once(1..=3).await;

    let log = std::fs::read_to_string(log.path()).unwrap();
    for text in [&log, &error] {
        for password in [PASSWORD, NEW_PASSWORD] {
            assert!(!text.contains(password), "{text}");
        }
    }
    assert!(log.contains("payment-3"), "the log tells of its messages");
}

impl Bank {
    async fn execute(&mut self, sql: &str) {
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut self.connection)
            .await
            .unwrap();
    }

    async fn reconnect(&mut self) {
        self.connection = self.database.options().connect().await.unwrap();
    }
}
