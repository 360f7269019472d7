//! The ephemeral Postgres: databases that come and go with a value, and servers that cannot be left
//! behind.

#![allow(clippy::unwrap_used)] // In helpers too, which Clippy does not take for tests.

use lambda_inbox_testkit::postgres::{Cluster, PostgresError, TestDatabase};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::net::TcpSocket;

#[tokio::test]
async fn every_database_is_its_own_and_empty() {
    let (one, other) = (
        TestDatabase::create().await.unwrap(),
        TestDatabase::create().await.unwrap(),
    );
    assert_ne!(one.name(), other.name());
    execute(
        &mut one.connect().await.unwrap(),
        "CREATE TABLE account (id int)",
    )
    .await
    .unwrap();
    let mut connection = other.connect().await.unwrap();
    let tables = "SELECT count(*)::text FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!(text(&mut connection, tables).await, "0");
}

#[tokio::test]
async fn many_databases_can_be_created_at_once() {
    let mut creations = tokio::task::JoinSet::new();
    for _ in 0..12 {
        creations.spawn(TestDatabase::create());
    }
    let created: Result<Vec<TestDatabase>, _> = creations.join_all().await.into_iter().collect();
    created.unwrap();
}

#[tokio::test]
async fn the_url_leads_to_the_database_too() {
    let database = TestDatabase::create().await.unwrap();
    let options: PgConnectOptions = database.url().parse().unwrap();
    let mut connection = PgConnection::connect_with(&options).await.unwrap();
    let name = text(&mut connection, "SELECT current_database()::text").await;
    assert_eq!(name, database.name());
}

#[tokio::test]
async fn a_database_goes_with_its_value_whoever_is_connected() {
    let database = TestDatabase::create().await.unwrap();
    let (name, admin) = (database.name().to_owned(), database.admin_options());
    let mut connection = database.connect().await.unwrap();
    execute(&mut connection, "BEGIN; CREATE TABLE account (id int)")
        .await
        .unwrap();
    drop(database);
    assert!(!database_exists(&admin, &name).await);
}

#[tokio::test]
async fn a_database_can_be_dropped_with_an_answer_and_takes_its_roles_along() {
    let database = TestDatabase::create().await.unwrap();
    let (name, admin) = (database.name().to_owned(), database.admin_options());
    let role = database.create_role(&[]).await.unwrap();
    let mut connection = PgConnection::connect_with(&role).await.unwrap();
    execute(&mut connection, "CREATE TABLE account (id int)")
        .await
        .unwrap();
    database.drop_now().await.unwrap();
    assert!(!database_exists(&admin, &name).await);
    let mut connection = PgConnection::connect_with(&admin).await.unwrap();
    let roles: i64 = sqlx::query_scalar("SELECT count(*) FROM pg_roles WHERE rolname = $1")
        .bind(role.get_username())
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(roles, 0);
}

#[tokio::test]
async fn open_transactions_are_listed_with_their_state_until_they_end() {
    for (statements, state, query) in [
        ("BEGIN; SELECT 1", "idle in transaction", "BEGIN; SELECT 1"),
        (
            "BEGIN; SELECT 1/0",
            "idle in transaction (aborted)",
            "BEGIN; SELECT 1/0",
        ),
    ] {
        let database = TestDatabase::create().await.unwrap();
        let mut connection = database.connect().await.unwrap();
        assert_eq!(database.open_transactions().await.unwrap(), []);

        let _ = execute(&mut connection, statements).await;
        let open = database.open_transactions().await.unwrap();
        let [transaction] = open.as_slice() else {
            panic!("not one transaction: {open:?}")
        };
        assert_eq!((&*transaction.state, &*transaction.query), (state, query));

        execute(&mut connection, "ROLLBACK").await.unwrap();
        assert_eq!(database.open_transactions().await.unwrap(), []);
    }
}

#[tokio::test]
async fn terminating_the_backends_ends_those_of_this_database_only() {
    let (database, other) = (
        TestDatabase::create().await.unwrap(),
        TestDatabase::create().await.unwrap(),
    );
    let mut bystander = other.connect().await.unwrap();
    let mut victims = [
        database.connect().await.unwrap(),
        database.connect().await.unwrap(),
    ];
    assert_eq!(database.terminate_backends().await.unwrap(), 2);
    for victim in &mut victims {
        let error = execute(victim, "SELECT 1").await.unwrap_err();
        assert_eq!(code(&error), "57P01");
    }
    execute(&mut bystander, "SELECT 1").await.unwrap();
    assert_eq!(database.terminate_backends().await.unwrap(), 0);
}

#[tokio::test]
async fn a_role_has_its_settings_and_may_work_in_the_database_but_is_no_superuser() {
    let database = TestDatabase::create().await.unwrap();
    let settings = [
        ("lock_timeout", "250ms"),
        ("default_transaction_isolation", "repeatable read"),
        ("app.tenant", r"it's \ odd"),
    ];
    let role = database.create_role(&settings).await.unwrap();
    let mut connection = PgConnection::connect_with(&role).await.unwrap();
    for (name, value) in settings {
        assert_eq!(setting(&mut connection, name).await, value, "{name}");
    }
    execute(
        &mut connection,
        "CREATE SCHEMA s; CREATE TABLE s.t (); CREATE TABLE public.t ()",
    )
    .await
    .unwrap();
    assert_eq!(setting(&mut connection, "is_superuser").await, "off");
}

#[tokio::test]
async fn a_setting_that_does_not_exist_is_an_error() {
    let database = TestDatabase::create().await.unwrap();
    let error = database
        .create_role(&[("lock_time_out", "1s")])
        .await
        .unwrap_err();
    assert!(
        matches!(error, PostgresError::Statement { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_role_without_the_rights_is_told_what_to_grant() {
    let database = TestDatabase::create().await.unwrap();
    let role = database.create_role(&[]).await.unwrap();
    let error = TestDatabase::create_on(&role).await.unwrap_err();
    assert!(
        matches!(error, PostgresError::MayNotCreate { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("CREATEDB"), "{error}");

    let mut admin = database.connect().await.unwrap();
    let grant = format!("ALTER ROLE \"{}\" CREATEDB", role.get_username());
    execute(&mut admin, &grant).await.unwrap();
    let theirs = TestDatabase::create_on(&role).await.unwrap();
    let error = theirs.create_role(&[]).await.unwrap_err();
    assert!(
        matches!(error, PostgresError::MayNotCreate { .. }),
        "{error:?}"
    );
    let error = theirs.open_transactions().await.unwrap_err();
    assert!(
        matches!(error, PostgresError::MayNotSee { .. }),
        "{error:?}"
    );
    theirs.drop_now().await.unwrap();
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_in_the_error() {
    // Bound, so that nobody else gets the port, but not listening.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let options = PgConnectOptions::new_without_pgpass()
        .host("127.0.0.1")
        .port(address.port());
    let error = TestDatabase::create_on(&options).await.unwrap_err();
    assert!(matches!(error, PostgresError::Connect { .. }), "{error:?}");
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[tokio::test]
async fn a_private_cluster_takes_settings_and_leaves_nothing_behind() {
    let cluster = Cluster::builder()
        .fsync(true)
        .setting("work_mem", "5MB")
        .start()
        .await
        .unwrap();
    let mut connection = PgConnection::connect_with(&cluster.options())
        .await
        .unwrap();
    for (name, value) in [
        ("fsync", "on"),
        ("full_page_writes", "on"),
        ("work_mem", "5MB"),
    ] {
        assert_eq!(setting(&mut connection, name).await, value, "{name}");
    }
    let folder = cluster.folder().to_owned();
    assert!(folder.exists());
    cluster.stop();
    assert!(!folder.exists());
    execute(&mut connection, "SELECT 1").await.unwrap_err();
}

#[tokio::test]
async fn a_private_cluster_lets_nobody_in_without_its_password() {
    let cluster = Cluster::start().await.unwrap();
    let error = PgConnection::connect_with(&cluster.options().password("guess"))
        .await
        .unwrap_err();
    assert_eq!(code(&error), "28P01");
}

#[tokio::test]
async fn a_private_cluster_that_cannot_start_shows_the_servers_log() {
    let error = Cluster::builder()
        .setting("work_memory", "5MB")
        .start()
        .await
        .unwrap_err();
    assert!(
        matches!(error, PostgresError::NotStarted { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("work_memory"), "{error}");
}

async fn database_exists(admin: &PgConnectOptions, name: &str) -> bool {
    let mut connection = PgConnection::connect_with(admin).await.unwrap();
    sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)")
        .bind(name)
        .fetch_one(&mut connection)
        .await
        .unwrap()
}

async fn execute(connection: &mut PgConnection, statements: &str) -> sqlx::Result<()> {
    sqlx::raw_sql(AssertSqlSafe(statements))
        .execute(connection)
        .await
        .map(drop)
}

async fn text(connection: &mut PgConnection, query: &'static str) -> String {
    sqlx::query_scalar(query)
        .fetch_one(connection)
        .await
        .unwrap()
}

async fn setting(connection: &mut PgConnection, name: &str) -> String {
    sqlx::query_scalar("SELECT current_setting($1)")
        .bind(name)
        .fetch_one(connection)
        .await
        .unwrap()
}

fn code(error: &sqlx::Error) -> String {
    error
        .as_database_error()
        .unwrap()
        .code()
        .unwrap()
        .into_owned()
}
