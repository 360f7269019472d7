//! The server proves who it is, and the relay that TLS goes through is not noticed.

use crate::support::{PATIENCE, Private, connect, refusal, source, url};
use lambda_inbox_store::Opened;
use lambda_inbox_testkit::postgres::TestDatabase;
use lambda_inbox_testkit::proxy::Proxy;
use sqlx::{Connection, PgConnection};
use std::time::Duration;
use tokio::time::Instant;

const URL: &str = "DATABASE_URL";
const TLS: &str = "LAMBDA_INBOX_DB_TLS";
const CA: &str = "LAMBDA_INBOX_DB_CA";

/// C-11.
#[tokio::test]
async fn a_private_authority_is_trusted_where_its_certificate_is_named_and_nowhere_else() {
    let server = Private::start().await;
    let ca = server.ca();
    let ca = ca.path().to_str().unwrap();
    let localhost = url(&server.cluster.options().host("localhost"));
    let address = url(&server.cluster.options());

    let with_ca = [(URL, localhost.as_str()), (TLS, "verify-full"), (CA, ca)];
    let mut connection = connect(&with_ca).await.unwrap();
    assert!(is_encrypted(&mut connection).await);

    let in_url = format!("{localhost}?sslmode=verify-full&sslrootcert={ca}");
    assert!(connect(&[(URL, &in_url)]).await.is_ok());

    for mode in ["verify-full", "verify-ca"] {
        let error = refusal(&[(URL, &localhost), (TLS, mode)]).await;
        assert!(error.contains("global-bundle.pem"), "{mode}: {error}");
        assert!(error.contains("LAMBDA_INBOX_DB_CA"), "{mode}: {error}");
    }
    let other_name = [(URL, address.as_str()), (TLS, "verify-full"), (CA, ca)];
    let error = refusal(&other_name).await;
    assert!(error.contains("for another name"), "{error}");

    // What was asked for.
    for mode in ["require", "verify-ca"] {
        let mut connection = connect(&[(URL, &address), (TLS, mode), (CA, ca)])
            .await
            .unwrap();
        assert!(is_encrypted(&mut connection).await, "{mode}");
    }
}

#[tokio::test]
async fn a_server_without_tls_is_not_talked_to_in_the_open() {
    let database = TestDatabase::create().await.unwrap();
    let mut admin = database.connect().await.unwrap();
    let ssl: String = sqlx::query_scalar("SHOW ssl")
        .fetch_one(&mut admin)
        .await
        .unwrap();
    if ssl == "on" {
        // A server of the developer's own, which has it.
        return;
    }
    let error = refusal(&[(URL, &url(&database.options())), (TLS, "verify-full")]).await;
    assert!(error.contains("no TLS with 127.0.0.1"), "{error}");
}

#[tokio::test]
async fn large_statements_and_results_pass_the_relay_unchanged() {
    let server = Private::start().await;
    let mut connection = encrypted(&server).await;
    let text: String = ('a'..='z').cycle().take(6 * 1024 * 1024).collect();
    let (echo, reversed): (String, String) = sqlx::query_as("SELECT $1, reverse($1)")
        .bind(&text)
        .fetch_one(&mut *connection)
        .await
        .unwrap();
    assert!(echo == text);
    assert!(reversed.chars().rev().eq(text.chars()));
}

/// An environment may be frozen before the runtime gets to run once more.
#[tokio::test]
async fn dropping_a_connection_ends_its_transaction_while_the_runtime_stands_still() {
    let server = Private::start().await;
    let mut connection = encrypted(&server).await;
    for sql in ["CREATE TABLE held (id int)", "BEGIN", "LOCK TABLE held"] {
        sqlx::raw_sql(sql).execute(&mut *connection).await.unwrap();
    }

    let options = server.cluster.options();
    let free = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut other = PgConnection::connect_with(&options).await.unwrap();
            sqlx::raw_sql("BEGIN; SET LOCAL lock_timeout = '60s'; LOCK TABLE held; COMMIT")
                .execute(&mut other)
                .await
        })
    };
    drop(connection);
    // This thread is the runtime's only one, and waits here.
    let locked = std::thread::spawn(free).join().unwrap();
    assert!(locked.is_ok(), "{locked:?}");
}

#[tokio::test]
async fn nothing_is_left_in_the_temporary_folder() {
    let server = Private::start().await;
    let mut connection = encrypted(&server).await;
    sqlx::raw_sql("SELECT 1")
        .execute(&mut *connection)
        .await
        .unwrap();
    let ours = format!("lambda-inbox-{}-", std::process::id());
    let left: Vec<_> = std::fs::read_dir(std::env::temp_dir())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(&ours))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_socket_that_nobody_answers_on_costs_a_bounded_time() {
    let server = Private::start().await;
    let options = server.cluster.options();
    let proxy = Proxy::start(options.get_host(), options.get_port())
        .await
        .unwrap();
    let behind = url(&options.port(proxy.addr().port()));
    for mode in ["require", "disable"] {
        let source = source(&[(URL, &behind), (TLS, mode)]).unwrap();
        assert!(
            source.connect(Instant::now() + PATIENCE).await.is_ok(),
            "{mode}"
        );
        proxy.black_hole(true);
        let soon = Instant::now() + Duration::from_millis(300);
        let error = source.connect(soon).await.unwrap_err().to_string();
        assert!(error.contains("did not answer in time"), "{mode}: {error}");
        proxy.black_hole(false);
    }
}

async fn encrypted(server: &Private) -> Opened {
    let url = url(&server.cluster.options());
    connect(&[(URL, &url), (TLS, "require")]).await.unwrap()
}

async fn is_encrypted(connection: &mut PgConnection) -> bool {
    sqlx::query_scalar("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        .fetch_one(connection)
        .await
        .unwrap()
}
