//! A key that is kept for as long as its message can come back has its effect once, whatever the prune does.

use crate::support::{MINUTE, World, invoke, many, one, store_effect, store_id};
use lambda_inbox::sqlx::{self, AssertSqlSafe, PgConnection};
use lambda_inbox::{HandlerError, Message, Outcome, Schema};
use lambda_inbox_store::{PruneReport, Pruner, Retention};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::time::Instant;

const DAY: Duration = Duration::from_secs(86_400);

impl World {
    /// As if all keys had been processed so many days earlier.
    async fn pass_days(&self, days: u32) {
        let sql = format!(
            "UPDATE lambda_inbox.inbox SET processed_at = processed_at - interval '24 hours' * {days}"
        );
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut self.admin().await)
            .await
            .unwrap();
    }

    async fn prune(&self, retention: Retention) -> PruneReport {
        let builder = Pruner::builder(Schema::default(), retention).batch_rows(10);
        let pruner = builder.pause(Duration::ZERO).build().unwrap();
        let until = Instant::now() + MINUTE;
        pruner.run(&mut self.admin().await, until).await.unwrap()
    }
}

/// B-15: a duplicate on day twenty is skipped where the retention is thirty days, and has its effect again
/// where it is fourteen, which is why fourteen are refused for such queues.
#[tokio::test]
async fn a_message_that_comes_back_late_meets_its_key_for_as_long_as_it_is_kept() {
    for (kept, outcome) in [(30, Outcome::Duplicate), (14, Outcome::Processed)] {
        let world = World::new().await;
        let service = world.inbox().build().unwrap().text_handler(store_id);
        world.deliver(&service, MINUTE, one("m-1")).await.unwrap();
        world.pass_days(20).await;
        world.prune(Retention::new(DAY * kept)).await;
        world.outcomes();
        world.deliver(&service, MINUTE, one("m-1")).await.unwrap();
        assert_eq!(world.outcomes(), [outcome], "{kept}");
    }
}

#[tokio::test]
async fn redeliveries_that_race_with_the_prune_find_their_keys() {
    let ids: Vec<String> = (0..40).map(|n| format!("m-{n}")).collect();
    let all = || many(ids.iter().map(String::as_str));
    let world = World::new().await;
    let service = world.inbox().build().unwrap().text_handler(store_effect);
    world.deliver(&service, MINUTE, all()).await.unwrap();
    // The last moment in which SQS may hand them out, twelve hours of work included.
    world.pass_days(14).await;
    let old = "INSERT INTO lambda_inbox.inbox (consumer, source, message_id, processed_at, fingerprint) \
               SELECT 'payments', 'sqs', 'old-' || n, now() - interval '500 hours', '\\x00' \
               FROM generate_series(1, 2000) AS n";
    sqlx::raw_sql(old)
        .execute(&mut world.admin().await)
        .await
        .unwrap();
    let redeliveries = async {
        for _ in 0..5 {
            invoke(&service, MINUTE, all()).await.unwrap();
        }
    };
    let (report, ()) = tokio::join!(world.prune(Retention::default()), redeliveries);
    assert_eq!((report.rows, report.finished), (2_000, true));
    assert_eq!((world.effects().await, world.keys().await), (40, 40));
    world.assert_quiet().await;
}

/// B-17: what failed has left no key behind, so a redrive after the handler was mended runs it.
#[tokio::test]
async fn a_message_that_failed_runs_when_it_comes_back_whatever_was_logged_or_pruned() {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    async fn mended_later(
        message: &Message<String>,
        connection: &mut PgConnection,
    ) -> Result<(), HandlerError> {
        store_effect(message, connection).await?;
        if RUNS.fetch_add(1, Ordering::Relaxed) < 3 {
            return Err("not yet".into());
        }
        Ok(())
    }
    let world = World::new().await;
    let inbox = world.inbox().failure_log(true);
    let service = inbox.build().unwrap().text_handler(mended_later);
    for _ in 0..3 {
        let answer = world.deliver(&service, MINUTE, one("m-1")).await;
        assert_eq!(answer, Ok(vec!["m-1".to_owned()]));
    }
    assert_eq!(
        world
            .count("SELECT count(*) FROM lambda_inbox.inbox_failure")
            .await,
        3
    );
    world
        .prune(Retention::default().failures(Duration::ZERO))
        .await;
    assert_eq!(
        world
            .count("SELECT count(*) FROM lambda_inbox.inbox_failure")
            .await,
        0
    );
    assert_eq!(
        world.deliver(&service, MINUTE, one("m-1")).await,
        Ok(vec![])
    );
    assert_eq!((world.effects().await, world.keys().await), (1, 1));
}
