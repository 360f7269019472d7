//! A transaction that does not depend on the role's defaults: a reader's isolation level or a lost
//! `synchronous_commit` would break the promise silently.

use crate::connection::Connection;
use crate::error::{Stage, StoreError};
use crate::literal::Arguments;
use crate::statements::{Prepared, Statements};
use crate::table::Profile;
use sqlx::postgres::{PgRow, PgTransactionManager};
use sqlx::{AssertSqlSafe, SqlSafeStr};
use sqlx_core::transaction::TransactionManager;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

pub(crate) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// The most time that the first answer on a kept connection may take, beside the time that its statement may
/// need. Its socket may have been dropped by a firewall while the environment was frozen, and then
/// nothing ever comes back.
const REUSED_ANSWER_MAX: Duration = Duration::from_secs(2);

/// What a claim may take on a server that is slow and not gone: whoever takes it for gone makes it slower
/// by connecting anew.
const SLOW_CLAIM: Duration = Duration::from_secs(2);

/// How long the parts of one transaction may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long the claim waits for another delivery of the same message (`lock_timeout`).
    pub claim: Duration,
    /// How long any one statement runs (`statement_timeout`).
    pub statement: Duration,
    /// How long the transaction may sit idle (`idle_in_transaction_session_timeout`).
    pub idle: Duration,
    /// When to stop waiting for an answer of the server at all; the connection is then closed.
    pub until: Instant,
}

/// An open transaction that holds no claim yet. Dropping it closes the socket, which the server
/// answers by rolling back.
#[must_use = "dropping a transaction closes its connection"]
pub(crate) struct Transaction {
    pub(crate) connection: Connection,
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").finish_non_exhaustive()
    }
}

impl Connection {
    /// Opens a transaction: READ COMMITTED, read-write, durable, with its own timeouts, and free of
    /// whatever an earlier handler SET in the session; behind a pooler, the first two. One round trip.
    ///
    /// Cancel safe: a dropped call closes the connection.
    ///
    /// # Errors
    /// [`StoreError`] of stage [`Stage::Begin`]; the connection is closed.
    pub(crate) async fn begin(self, limits: &Limits) -> Result<Transaction, StoreError> {
        self.begin_preparing(limits, None).await
    }

    /// Opens a transaction as [`Connection::begin`] does, and runs a prepared statement in it. One round
    /// trip; two where the statement must be prepared first, or the connection has idled and may be
    /// dead: then nothing but the BEGIN may be waited for.
    ///
    /// `patience` is what the statement may have to wait for; the first answer on a kept connection is not
    /// waited for much longer. The inner error leaves an aborted transaction.
    pub(crate) async fn begin_with(
        mut self,
        limits: &Limits,
        statement: fn(&Statements) -> &Prepared,
        arguments: &Arguments,
        patience: Duration,
    ) -> Result<(Transaction, Result<Vec<PgRow>, StoreError>), StoreError> {
        let shared = Arc::clone(&self.shared);
        let statement = statement(&shared.statements);
        let to_prepare = Some(statement)
            .filter(|statement| !self.session.prepared.contains(&statement.name()))
            .and_then(Prepared::prepare);
        let execute = statement.execute(arguments);
        let at_once = self.session.entered && to_prepare.is_none() && !self.has_idled();
        let (mut transaction, sql) = if at_once {
            // RESET takes them back.
            self.session.runs_statements = false;
            let transaction = Transaction { connection: self };
            let begin = begin_sql(limits, shared.table().profile);
            (transaction, format!("{begin}; {execute}"))
        } else {
            let prepares = to_prepare.is_some();
            let mut transaction = self.begin_preparing(limits, to_prepare).await?;
            let known = &mut transaction.connection.session.prepared;
            known.extend(prepares.then(|| statement.name()));
            (transaction, execute)
        };
        let until = transaction
            .connection
            .first_answer(limits.until, SLOW_CLAIM + patience);
        let rows = match timeout_at(until, transaction.connection.rows(sql)).await {
            Ok(rows) => rows.map_err(|error| StoreError::new(Stage::Claim, error)),
            Err(_) => Err(StoreError::no_answer(Stage::Claim)),
        };
        transaction.connection.has_answered();
        Ok((transaction, rows))
    }

    /// When to take the connection for dead.
    pub(crate) fn first_answer(&self, until: Instant, patience: Duration) -> Instant {
        if self.is_reused() {
            until.min(Instant::now() + REUSED_ANSWER_MAX + patience)
        } else {
            until
        }
    }

    async fn begin_preparing(
        mut self,
        limits: &Limits,
        prepare: Option<String>,
    ) -> Result<Transaction, StoreError> {
        let until = self.first_answer(limits.until, Duration::ZERO);
        match timeout_at(until, self.send_begin(limits, prepare)).await {
            Ok(Ok(())) => {
                self.has_answered();
                Ok(Transaction { connection: self })
            }
            Ok(Err(error)) => Err(StoreError::new(Stage::Begin, error)),
            Err(_) => Err(StoreError::no_answer(Stage::Begin)),
        }
    }

    async fn send_begin(
        &mut self,
        limits: &Limits,
        prepare: Option<String>,
    ) -> Result<(), sqlx::Error> {
        let mut sql = begin_sql(limits, self.shared.table().profile);
        if let Some(prepare) = prepare {
            // Within the transaction, so after the RESET; it outlives a roll-back all the same.
            sql = format!("{sql}; {prepare}");
        }
        let sql = AssertSqlSafe(sql).into_sql_str();
        let session = &mut self.session;
        session.runs_statements = false;
        if session.entered {
            sqlx::raw_sql(sql).execute(&mut session.pg).await?;
        } else {
            // Tells sqlx that it is inside a transaction, so that a handler's own `begin()` makes a
            // savepoint. It stays told: COMMIT goes out raw, together with the proof.
            PgTransactionManager::begin(&mut session.pg, Some(sql)).await?;
            session.entered = true;
        }
        Ok(())
    }

    /// Runs one simple query of our own making.
    pub(crate) async fn rows(&mut self, sql: String) -> Result<Vec<PgRow>, sqlx::Error> {
        sqlx::raw_sql(AssertSqlSafe(sql))
            .fetch_all(&mut self.session.pg)
            .await
    }
}

/// Every value is a number of ours, so the text is safe to build.
pub(crate) fn begin_sql(limits: &Limits, profile: Profile) -> String {
    if profile == Profile::Pooled {
        return BEGIN.to_owned();
    }
    format!(
        "RESET ROLE; RESET ALL; {BEGIN}; \
         SET LOCAL statement_timeout = {}; \
         SET LOCAL idle_in_transaction_session_timeout = {}; \
         SET LOCAL synchronous_commit = on; \
         SET LOCAL client_connection_check_interval = 100",
        milliseconds(limits.statement),
        milliseconds(limits.idle),
    )
}

/// At least one, because zero means "no limit" to Postgres.
pub(crate) fn milliseconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis())
        .unwrap_or(i32::MAX)
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Claimed, Class, Consumer, Entry, Fingerprint, Key, Schema, Settled, Status, Store,
    };
    use lambda_inbox_testkit::postgres::TestDatabase;
    use lambda_inbox_testkit::proxy::Proxy;
    use std::num::NonZeroUsize;
    use std::time::SystemTime;

    const MINUTE: Duration = Duration::from_secs(60);

    fn limits() -> Limits {
        Limits {
            claim: Duration::from_millis(250),
            statement: MINUTE,
            idle: MINUTE,
            until: Instant::now() + MINUTE,
        }
    }

    fn entry(id: &str) -> Arc<Entry> {
        Arc::new(Entry {
            consumer: Consumer::new("payments").unwrap(),
            key: Key::new("sqs", id).unwrap(),
            sent_at: None,
            status: Status::Processed,
            fingerprint: Fingerprint::of_body("x"),
            transport_message_id: id.into(),
        })
    }

    async fn commit(connection: Connection, id: &str) -> Connection {
        let claimed = connection.claim(entry(id), &limits()).await.unwrap();
        let Claimed::Won(claim) = claimed else {
            panic!("{claimed:?}");
        };
        let settled = claim.settle(Instant::now() + MINUTE).await;
        let Settled::Committed(connection) = settled else {
            panic!("{settled:?}");
        };
        connection
    }

    #[tokio::test]
    async fn nothing_but_begin_is_waited_for_on_a_connection_that_has_idled() {
        let database = TestDatabase::create().await.unwrap();
        let schema = Schema::default();
        crate::migrate(&mut database.connect().await.unwrap(), &schema)
            .await
            .unwrap();
        let proxy = Proxy::start(database.options().get_host(), database.options().get_port())
            .await
            .unwrap();
        let options = proxy.options(&database.options());
        let store = Store::new(options, schema, NonZeroUsize::MIN);
        let slot = store.slot().await;
        let until = Instant::now() + MINUTE;
        commit(slot.connection(until).await.unwrap(), "m-1")
            .await
            .keep();

        // Begin with claim, settle.
        proxy.reset_round_trips();
        let mut connection = commit(slot.connection(until).await.unwrap(), "m-2").await;
        assert_eq!(proxy.round_trips(), 2);

        connection.keep();
        connection = slot.connection(until).await.unwrap();
        connection.session.kept_at = SystemTime::now() - MINUTE;
        proxy.reset_round_trips();
        connection = commit(connection, "m-3").await;
        assert_eq!(proxy.round_trips(), 3);

        // The firewall has forgotten the connection: found out in seconds, not at the deadline.
        connection.keep();
        connection = slot.connection(until).await.unwrap();
        connection.session.kept_at = SystemTime::now() - MINUTE;
        proxy.black_hole(true);
        let failure = connection.claim(entry("m-4"), &limits()).await.unwrap_err();
        assert_eq!(
            (failure.error.stage(), failure.error.class()),
            (Stage::Begin, Class::Connection)
        );
        assert!(failure.connection.is_none());
    }

    #[tokio::test]
    async fn a_statement_is_not_risked_on_a_connection_that_may_be_dead() {
        let database = TestDatabase::create().await.unwrap();
        let table = crate::Table::default();
        let mut admin = database.connect().await.unwrap();
        crate::migrate(&mut admin, &table.schema).await.unwrap();
        let effect = "CREATE TABLE effect (message_id text)";
        sqlx::raw_sql(effect).execute(&mut admin).await.unwrap();
        let proxy = Proxy::start(database.options().get_host(), database.options().get_port())
            .await
            .unwrap();
        let options = proxy.options(&database.options());
        let sql = "INSERT INTO effect SELECT message_id FROM fresh";
        let statement = crate::Statement::new(sql, &table).unwrap();
        let store = Store::new(options, table, NonZeroUsize::MIN);
        let slot = store.slot().await;
        let until = Instant::now() + MINUTE;
        let run = async |mut connection: Connection, id: &str| {
            connection.session.kept_at = SystemTime::now() - MINUTE;
            let entry = entry(id);
            let rows = [crate::FreshRow {
                entry: &entry,
                body: "1",
                receive_count: 1,
                group_id: None,
            }];
            let wait = Duration::from_millis(250);
            let done = connection.run_statement(&statement, &rows, wait, until);
            done.await.map(|(_, connection)| connection)
        };
        let connection = run(slot.connection(until).await.unwrap(), "m-1").await;
        connection.unwrap().keep();

        proxy.reset_round_trips();
        let connection = run(slot.connection(until).await.unwrap(), "m-2").await;
        assert_eq!(proxy.round_trips(), 2);

        connection.unwrap().keep();
        let connection = slot.connection(until).await.unwrap();
        proxy.black_hole(true);
        let failure = run(connection, "m-3").await.unwrap_err();
        assert_eq!(failure.error.stage(), Stage::Begin);
    }
}
