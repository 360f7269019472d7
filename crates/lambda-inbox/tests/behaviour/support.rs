//! A database with an inbox and a table of effects, a consumer of it, and the questions that the
//! tests ask. After every response it is checked that the function left no transaction open.

use futures_util::future::BoxFuture;
use lambda_inbox::lambda_runtime::{Context, LambdaEvent};
use lambda_inbox::sqlx::postgres::PgConnectOptions;
use lambda_inbox::sqlx::{self, PgConnection};
use lambda_inbox::{
    Handler, HandlerError, Inbox, InboxBuilder, InboxError, InboxEvent, Message, Outcome, Report,
    Schema, Source, migrate,
};
use lambda_inbox_testkit::event::{Record, event};
use lambda_inbox_testkit::postgres::TestDatabase;
use lambda_inbox_testkit::proxy::Proxy;
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tower::{Service, ServiceExt};

/// How long a backend may stay in a transaction after the response.
const QUIET_WITHIN: Duration = Duration::from_millis(500);

pub(crate) struct World {
    pub(crate) database: TestDatabase,
    reports: Arc<Mutex<Vec<Report>>>,
}

/// An invocation's result: the failed ids, or the error's text with its sources.
pub(crate) type Answer = Result<Vec<String>, String>;

impl World {
    pub(crate) async fn new() -> Self {
        Self::on(TestDatabase::create().await.unwrap()).await
    }

    /// On a database of a server of the test's own.
    pub(crate) async fn on(database: TestDatabase) -> Self {
        let mut admin = database.connect().await.unwrap();
        migrate(&mut admin, &Schema::default()).await.unwrap();
        // The deferred constraint lets a handler fail at COMMIT alone.
        let business = "CREATE TABLE effect (message_id text NOT NULL, body text, \
                        CONSTRAINT later UNIQUE (body) DEFERRABLE INITIALLY DEFERRED)";
        sqlx::raw_sql(business).execute(&mut admin).await.unwrap();
        Self {
            database,
            reports: Arc::default(),
        }
    }

    pub(crate) async fn admin(&self) -> PgConnection {
        self.database.connect().await.unwrap()
    }

    /// A consumer on the database itself.
    pub(crate) fn inbox(&self) -> InboxBuilder {
        self.inbox_on(self.database.options())
    }

    /// A consumer on another way to the database, such as a proxy or a role of its own.
    pub(crate) fn inbox_on(&self, options: PgConnectOptions) -> InboxBuilder {
        self.inbox_from(Source::from(options))
    }

    pub(crate) fn inbox_from(&self, source: Source) -> InboxBuilder {
        let reports = Arc::clone(&self.reports);
        Inbox::builder_with_source("payments", source)
            .on_outcome(move |report| reports.lock().unwrap().push(report.clone()))
    }

    /// A consumer behind a proxy.
    pub(crate) fn inbox_behind(&self, proxy: &Proxy) -> InboxBuilder {
        self.inbox_on(proxy.options(&self.database.options()))
    }

    /// The verdicts since the last call, by position in the event.
    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        self.reports().iter().map(|report| report.outcome).collect()
    }

    pub(crate) fn reports(&self) -> Vec<Report> {
        let mut reports = std::mem::take(&mut *self.reports.lock().unwrap());
        reports.sort_by_key(|report| report.position);
        reports
    }

    /// Delivers an event with `left` until Lambda's deadline, and checks that all is quiet afterwards.
    pub(crate) async fn deliver<S>(&self, service: &S, left: Duration, event: Value) -> Answer
    where
        S: Service<LambdaEvent<InboxEvent>, Error = InboxError> + Clone,
        S::Response: serde::Serialize,
    {
        let answer = invoke(service, left, event).await;
        self.assert_quiet().await;
        answer
    }

    pub(crate) async fn assert_quiet(&self) {
        let deadline = Instant::now() + QUIET_WITHIN;
        loop {
            let open = self.database.open_transactions().await.unwrap();
            if open.is_empty() {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "still open after the response: {open:?}"
            );
            sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn until_someone_waits_for_a_lock(&self) {
        let sql = "SELECT count(*) FROM pg_stat_activity \
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
        while self.count(sql).await == 0 {
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Rows of the business table.
    pub(crate) async fn effects(&self) -> i64 {
        self.count("SELECT count(*) FROM effect").await
    }

    /// Rows of the inbox.
    pub(crate) async fn keys(&self) -> i64 {
        self.count("SELECT count(*) FROM lambda_inbox.inbox").await
    }

    pub(crate) async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql)
            .fetch_one(&mut self.admin().await)
            .await
            .unwrap()
    }
}

/// Calls the service as Lambda's runtime does.
pub(crate) async fn invoke<S>(service: &S, left: Duration, event: Value) -> Answer
where
    S: Service<LambdaEvent<InboxEvent>, Error = InboxError> + Clone,
    S::Response: serde::Serialize,
{
    let deadline = (SystemTime::now() + left)
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    invoke_until(service, u64::try_from(deadline.as_millis()).unwrap(), event).await
}

pub(crate) async fn invoke_until<S>(service: &S, deadline: u64, event: Value) -> Answer
where
    S: Service<LambdaEvent<InboxEvent>, Error = InboxError> + Clone,
    S::Response: serde::Serialize,
{
    let mut context = Context::default();
    context.deadline = deadline;
    let event = InboxEvent::from_json(event.to_string()).unwrap();
    let response = service
        .clone()
        .oneshot(LambdaEvent::new(event, context))
        .await;
    match response {
        Ok(response) => Ok(failed_ids(&serde_json::to_value(response).unwrap())),
        Err(error) => Err(lambda_inbox::lambda_runtime::Diagnostic::from(error).error_message),
    }
}

fn failed_ids(response: &Value) -> Vec<String> {
    let failures = response["batchItemFailures"].as_array().unwrap();
    failures
        .iter()
        .map(|f| f["itemIdentifier"].as_str().unwrap().to_owned())
        .collect()
}

pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// One message with this id; its body is the id too.
pub(crate) fn one(id: &str) -> Value {
    many([id])
}

pub(crate) fn many<'a>(ids: impl IntoIterator<Item = &'a str>) -> Value {
    event(
        ids.into_iter()
            .map(|id| Record::new(id).message_id(id).to_value()),
    )
}

/// The effect that every handler of the tests has.
pub(crate) async fn store_effect(
    message: &Message<String>,
    connection: &mut PgConnection,
) -> Result<(), HandlerError> {
    sqlx::query("INSERT INTO effect (message_id, body) VALUES ($1, $2)")
        .bind(message.message_id())
        .bind(&message.body)
        .execute(connection)
        .await?;
    Ok(())
}

/// An effect of a message of any kind, which nothing keeps from standing there twice.
pub(crate) async fn store_id<T: Sync>(
    message: &Message<T>,
    connection: &mut PgConnection,
) -> Result<(), HandlerError> {
    sqlx::query("INSERT INTO effect (message_id) VALUES ($1)")
        .bind(message.message_id())
        .execute(connection)
        .await?;
    Ok(())
}

/// A handler that stores its effect and then does something of the test's.
pub(crate) struct After(pub(crate) Act);

pub(crate) type Act = for<'a> fn(&'a mut PgConnection) -> BoxFuture<'a, Result<(), HandlerError>>;

impl Handler<String> for After {
    async fn handle(
        &self,
        message: &Message<String>,
        connection: &mut PgConnection,
    ) -> Result<(), HandlerError> {
        store_effect(message, connection).await?;
        (self.0)(connection).await
    }
}

/// Sends `sql`, and says that all is well whatever comes of it.
pub(crate) async fn swallow(
    connection: &mut PgConnection,
    sql: &'static str,
) -> Result<(), HandlerError> {
    let _ = sqlx::raw_sql(sql).execute(connection).await;
    Ok(())
}

/// Holds the key of one message as another delivery would, until it is dropped.
pub(crate) struct Holder {
    _connection: PgConnection,
}

impl World {
    pub(crate) async fn hold(&self, ids: &[&str]) -> Holder {
        let mut connection = self.admin().await;
        sqlx::raw_sql("BEGIN")
            .execute(&mut connection)
            .await
            .unwrap();
        for id in ids {
            let claim = "INSERT INTO lambda_inbox.inbox (consumer, source, message_id, fingerprint) \
                         VALUES ('payments', 'sqs', $1, '\\x00')";
            sqlx::query(claim)
                .bind(id)
                .execute(&mut connection)
                .await
                .unwrap();
        }
        Holder {
            _connection: connection,
        }
    }
}

/// A handler that stores its effect, does `sql`, says that it has arrived, waits to be let go, and
/// ends with `result`.
pub(crate) struct Meeting {
    sql: &'static str,
    result: Result<(), &'static str>,
    arrived: Arc<Notify>,
    go_on: Arc<Notify>,
}

/// The test's side of a [`Meeting`].
pub(crate) struct Rendezvous {
    arrived: Arc<Notify>,
    go_on: Arc<Notify>,
}

pub(crate) fn meeting(result: Result<(), &'static str>) -> (Rendezvous, Meeting) {
    meeting_after("", result)
}

pub(crate) fn meeting_after(
    sql: &'static str,
    result: Result<(), &'static str>,
) -> (Rendezvous, Meeting) {
    let (arrived, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let here = Rendezvous {
        arrived: Arc::clone(&arrived),
        go_on: Arc::clone(&go_on),
    };
    (
        here,
        Meeting {
            sql,
            result,
            arrived,
            go_on,
        },
    )
}

impl Rendezvous {
    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    pub(crate) fn go_on(&self) {
        self.go_on.notify_one();
    }
}

impl Handler<String> for Meeting {
    async fn handle(
        &self,
        message: &Message<String>,
        connection: &mut PgConnection,
    ) -> Result<(), HandlerError> {
        store_effect(message, connection).await?;
        sqlx::raw_sql(self.sql).execute(connection).await?;
        self.arrived.notify_one();
        self.go_on.notified().await;
        Ok(self.result?)
    }
}
