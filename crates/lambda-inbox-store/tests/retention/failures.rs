//! The failure log: written on a held connection, and pruned by its own period.

use crate::support::{World, consumer, days, keeping, usual};
use lambda_inbox_store::{FailedMessage, FailureLogError, Key, Profile, Retention, Store, Table};
use std::num::NonZeroUsize;
use std::time::Duration;
use tokio::time::Instant;

fn failed(id: &str, error: &str) -> FailedMessage {
    FailedMessage {
        key: Some(Key::new("sqs", id).unwrap()),
        transport_message_id: Some(id.to_owned()),
        outcome: "failed",
        sqlstate: Some("23505".to_owned()),
        error: error.to_owned(),
        receive_count: 3,
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

impl World {
    fn store(&self, profile: Profile) -> Store {
        let table = Table {
            profile,
            ..Table::default()
        };
        Store::new(self.database.options(), table, NonZeroUsize::MIN)
    }

    async fn log(
        &self,
        rows: &[FailedMessage],
        until: Instant,
    ) -> (bool, Result<(), FailureLogError>) {
        self.log_through(Profile::Direct, rows, until).await
    }

    async fn log_through(
        &self,
        profile: Profile,
        rows: &[FailedMessage],
        until: Instant,
    ) -> (bool, Result<(), FailureLogError>) {
        let slot = self.store(profile).slot().await;
        let connection = slot.connection(soon()).await.unwrap();
        let consumer = consumer("payments");
        let (connection, result) = connection.log_failures(&consumer, rows, until).await;
        (connection.is_some(), result)
    }
}

#[tokio::test]
async fn a_batch_of_failures_is_written_as_it_is() {
    let mut world = World::new().await;
    let awkward = "it's \"broken\"; \\ $1 {a,b} \u{1f980}\0\r\n NULL";
    let no_key = FailedMessage {
        key: None,
        transport_message_id: None,
        outcome: "poison",
        sqlstate: None,
        error: "x".repeat(5_000),
        receive_count: 1,
    };
    let (kept, result) = world.log(&[failed("m-1", awkward), no_key], soon()).await;
    result.unwrap();
    assert!(kept);
    let rows = world
        .texts(
            "SELECT concat_ws('|', consumer, coalesce(source, '-'), coalesce(message_id, '-'), \
               coalesce(transport_message_id, '-'), outcome, coalesce(sqlstate, '-'), \
               receive_count, length(error), failed_at > now() - interval '1 minute') \
             FROM lambda_inbox.inbox_failure ORDER BY outcome",
        )
        .await;
    let length = awkward.chars().count() - 1;
    assert_eq!(
        rows,
        [
            format!("payments|sqs|m-1|m-1|failed|23505|3|{length}|t"),
            "payments|-|-|-|poison|-|1|2000|t".to_owned(),
        ]
    );
    let errors = world
        .texts("SELECT error FROM lambda_inbox.inbox_failure WHERE outcome = 'failed'")
        .await;
    assert_eq!(errors, [awkward.replace('\0', "")]);
}

#[tokio::test]
async fn behind_a_pooler_it_is_written_as_well() {
    let mut world = World::new().await;
    let rows = [failed("m-1", "no"), failed("m-2", "no")];
    let (kept, result) = world.log_through(Profile::Pooled, &rows, soon()).await;
    result.unwrap();
    assert!(kept);
    assert_eq!(world.count("inbox_failure").await, 2);
}

#[tokio::test]
async fn a_missing_table_costs_nothing_but_the_row() {
    let mut world = World::new().await;
    world.run("DROP TABLE lambda_inbox.inbox_failure").await;
    let (kept, result) = world.log(&[failed("m-1", "no")], soon()).await;
    let error = result.unwrap_err().to_string();
    assert!(error.contains("inbox_failure"), "{error}");
    assert!(kept, "the connection is still good");
}

#[tokio::test]
async fn a_locked_table_is_waited_for_no_longer_than_asked_and_nothing_waits_on() {
    let mut world = World::new().await;
    world
        .run("BEGIN; LOCK TABLE lambda_inbox.inbox_failure IN ACCESS EXCLUSIVE MODE")
        .await;
    let until = Instant::now() + Duration::from_millis(300);
    let (_, result) = world.log(&[failed("m-1", "no")], until).await;
    result.unwrap_err();
    // The server has given up too.
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted \
                   AND relation = 'lambda_inbox.inbox_failure'::regclass";
    for _ in 0..200 {
        if world.number(waiting).await == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(world.number(waiting).await, 0);
    world.run("ROLLBACK").await;
    assert_eq!(world.count("inbox_failure").await, 0);
}

#[tokio::test]
async fn the_log_is_pruned_by_its_own_period() {
    let mut world = World::new().await;
    let insert = "INSERT INTO lambda_inbox.inbox_failure \
                  (failed_at, consumer, outcome, error, receive_count) \
                  SELECT now() - interval '24 hours' * age, 'payments', 'failed', 'no', 1 \
                  FROM generate_series(0, 49) AS age";
    world.run(insert).await;
    let dry = world.prune(usual().dry_run(true)).await;
    assert_eq!(dry.failures.unwrap().rows, 20);
    let report = world.prune(usual().batch_rows(8)).await;
    let failures = report.failures.unwrap();
    assert_eq!((failures.rows, report.rows), (20, 20));
    assert!(failures.oldest_seconds.unwrap() < 30.0 * 86_400.0);

    let short = Retention::default().failures(days(10));
    assert_eq!(world.prune(keeping(short)).await.rows, 20);
    assert_eq!(world.count("inbox_failure").await, 10);
}
