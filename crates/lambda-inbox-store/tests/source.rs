//! Connections come from a source, whose errors must not lose their meaning on the way, and whose guards must
//! live exactly as long as the connections.

use lambda_inbox_store::{
    Class, Connecting, ConnectionSource, Opened, Schema, SourceError, Stage, Store,
};
use lambda_inbox_testkit::postgres::TestDatabase;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// A source that never has a connection.
#[derive(Debug)]
struct Refusing(fn() -> SourceError);

impl ConnectionSource for Refusing {
    fn connect(&self, _until: Instant) -> Connecting<'_> {
        Box::pin(async { Err((self.0)()) })
    }
}

/// A source that never answers.
#[derive(Debug)]
struct Silent;

impl ConnectionSource for Silent {
    fn connect(&self, _until: Instant) -> Connecting<'_> {
        Box::pin(std::future::pending())
    }
}

fn store(source: impl ConnectionSource) -> Store {
    Store::with_source(Arc::new(source), Schema::default(), NonZeroUsize::MIN)
}

fn later() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

#[tokio::test]
async fn what_a_source_says_is_what_the_store_says() {
    type Case = (fn() -> SourceError, Class, &'static str);
    let cases: [Case; 4] = [
        (
            || SourceError::unreachable("the vault does not answer"),
            Class::Connection,
            "the vault does not answer",
        ),
        (
            || SourceError::setup("grant the role access to the vault"),
            Class::Setup,
            "grant the role access to the vault",
        ),
        (
            || SourceError::database(sqlx::Error::WorkerCrashed),
            Class::Connection,
            "attempted to communicate with a crashed background worker",
        ),
        (
            || SourceError::database(sqlx::Error::RowNotFound),
            Class::Refused,
            "no rows returned by a query that expected to return at least one row",
        ),
    ];
    for (source, class, text) in cases {
        let slot = store(Refusing(source)).slot().await;
        let error = slot.fresh_connection(later()).await.unwrap_err();
        assert_eq!(
            (error.stage(), error.class()),
            (Stage::Connect, class),
            "{text}"
        );
        assert_eq!(error.to_string(), "no connection to the database");
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(cause, text);
    }
}

#[tokio::test]
async fn the_sqlstate_is_found_below_a_sources_own_text() {
    #[derive(Debug, thiserror::Error)]
    #[error("the vault's password was not taken")]
    struct Hint(#[source] sqlx::Error);

    #[derive(Debug)]
    struct Hinting(PgConnectOptions);

    impl ConnectionSource for Hinting {
        fn connect(&self, _until: Instant) -> Connecting<'_> {
            Box::pin(async {
                let connection = PgConnection::connect_with(&self.0).await;
                Err(SourceError::unreachable(Hint(connection.unwrap_err())))
            })
        }
    }

    let database = TestDatabase::create().await.unwrap();
    let nowhere = database.options().database("there is no such database");
    let slot = store(Hinting(nowhere)).slot().await;
    let error = slot.fresh_connection(later()).await.unwrap_err();
    assert_eq!(error.sqlstate().as_deref(), Some("3D000"));
}

#[tokio::test]
async fn a_source_that_never_answers_is_not_waited_for_beyond_the_limit() {
    let slot = store(Silent).slot().await;
    let soon = Instant::now() + Duration::from_millis(50);
    let error = slot.fresh_connection(soon).await.unwrap_err();
    assert_eq!(
        (error.stage(), error.class()),
        (Stage::Connect, Class::Connection)
    );
}

/// Counts the guards that are alive, and how often it was told to forget.
#[derive(Debug)]
struct Guarding {
    options: PgConnectOptions,
    alive: Arc<AtomicUsize>,
    forgotten: Arc<AtomicUsize>,
}

struct Guard(Arc<AtomicUsize>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ConnectionSource for Guarding {
    fn connect(&self, _until: Instant) -> Connecting<'_> {
        Box::pin(async {
            let connection = PgConnection::connect_with(&self.options).await;
            let connection = connection.map_err(SourceError::database)?;
            self.alive.fetch_add(1, Ordering::SeqCst);
            Ok(Opened::guarded(connection, Guard(Arc::clone(&self.alive))))
        })
    }

    fn forget(&self) {
        self.forgotten.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_guard_lives_as_long_as_its_connection_is_used_or_kept() {
    let database = TestDatabase::create().await.unwrap();
    let (alive, forgotten) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let store = store(Guarding {
        options: database.options(),
        alive: Arc::clone(&alive),
        forgotten: Arc::clone(&forgotten),
    });
    let alive = || alive.load(Ordering::SeqCst);

    let slot = store.slot().await;
    drop(slot.connection(later()).await.unwrap());
    assert_eq!(alive(), 0);

    slot.connection(later()).await.unwrap().keep();
    assert_eq!(alive(), 1);
    assert!(slot.connection(later()).await.unwrap().is_reused());
    assert_eq!(alive(), 0);

    slot.connection(later()).await.unwrap().keep();
    assert_eq!((alive(), forgotten.load(Ordering::SeqCst)), (1, 0));
    store.forget_connections();
    assert_eq!((alive(), forgotten.load(Ordering::SeqCst)), (0, 1));
}
