//! Lambda stops an environment without notice, so the inbox stops before it.

use crate::support::{MINUTE, World, many, one, store_effect};
use lambda_inbox::sqlx::{self, PgConnection};
use lambda_inbox::{HandlerError, Message, Outcome};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// B-11: 50 ms left: nothing is touched.
#[tokio::test]
async fn records_come_back_untouched_where_no_time_is_left() {
    let world = World::new().await;
    let proxy = world.proxy().await;
    let service = world
        .inbox_behind(&proxy)
        .build()
        .unwrap()
        .text_handler(store_effect);

    let batch = many(["m-1", "m-2", "m-3"]);
    let answer = world
        .deliver(&service, Duration::from_millis(50), batch)
        .await;

    assert_eq!(
        answer,
        Ok(["m-1", "m-2", "m-3"].map(str::to_owned).to_vec())
    );
    assert_eq!(world.outcomes(), [Outcome::NotStarted; 3]);
    // Not even a connection, let alone a transaction.
    assert_eq!(proxy.connections(), 0);
}

#[tokio::test]
async fn ten_messages_of_a_second_in_five_seconds_are_four_or_so_and_no_kill() {
    async fn slow(
        message: &Message<String>,
        connection: &mut PgConnection,
    ) -> Result<(), HandlerError> {
        sleep(Duration::from_secs(1)).await;
        store_effect(message, connection).await
    }
    let world = World::new().await;
    let service = world.inbox().build().unwrap().text_handler(slow);
    let ids: Vec<String> = (0..10).map(|n| format!("m-{n}")).collect();
    let started = Instant::now();

    let answer = world
        .deliver(
            &service,
            Duration::from_secs(5),
            many(ids.iter().map(String::as_str)),
        )
        .await;

    let reported = answer.unwrap().len();
    // Each commit takes more than its second, so a fifth can never start with a second left; how many
    // of the four make it depends on the machine.
    let committed = world
        .outcomes()
        .iter()
        .filter(|o| **o == Outcome::Processed)
        .count();
    assert!((1..=4).contains(&committed), "{committed}");
    assert_eq!(reported, 10 - committed);
    assert_eq!(usize::try_from(world.effects().await).unwrap(), committed);
    assert!(started.elapsed() >= Duration::from_secs(committed as u64));
}

#[tokio::test]
async fn a_handler_in_a_long_statement_is_stopped_and_its_backend_does_not_linger() {
    async fn sleep_in_the_server(
        message: &Message<String>,
        connection: &mut PgConnection,
    ) -> Result<(), HandlerError> {
        store_effect(message, connection).await?;
        // A function that ignores the statement timeout would sleep on; this one has its own.
        sqlx::raw_sql("SET LOCAL statement_timeout = 0; SELECT pg_sleep(60)")
            .execute(connection)
            .await?;
        Ok(())
    }
    let world = World::new().await;
    let service = world
        .inbox()
        .build()
        .unwrap()
        .text_handler(sleep_in_the_server);
    // `deliver` asserts that no transaction is open half a second after the response.
    let answer = world
        .deliver(&service, Duration::from_secs(3), one("m-1"))
        .await;
    assert_eq!(answer, Ok(vec!["m-1".to_owned()]));
    let report = world.reports().remove(0);
    assert_eq!(report.outcome, Outcome::Failed);
    assert!(report.reason.unwrap().contains("deadline"));
    assert_eq!((world.keys().await, world.effects().await), (0, 0));

    let quick = world.inbox().build().unwrap().text_handler(store_effect);
    assert_eq!(world.deliver(&quick, MINUTE, one("m-1")).await, Ok(vec![]));
}

#[tokio::test]
async fn the_handler_is_told_how_much_time_remains() {
    async fn look(message: &Message<String>, _: &mut PgConnection) -> Result<(), HandlerError> {
        let left = message.remaining_time().ok_or("no deadline")?;
        if left > Duration::from_millis(9500) || left < Duration::from_secs(1) {
            return Err(format!("{left:?} are left").into());
        }
        Ok(())
    }
    let world = World::new().await;
    let service = world.inbox().build().unwrap().text_handler(look);
    let answer = world
        .deliver(&service, Duration::from_secs(10), one("m-1"))
        .await;
    assert_eq!(answer, Ok(vec![]), "{:?}", world.reports());
}

#[tokio::test]
async fn an_unknown_deadline_bounds_each_statement() {
    async fn look(
        message: &Message<String>,
        connection: &mut PgConnection,
    ) -> Result<(), HandlerError> {
        let limit: String = sqlx::query_scalar("SELECT current_setting('statement_timeout')")
            .fetch_one(connection)
            .await?;
        match (limit.as_str(), message.remaining_time()) {
            ("30s", None) => Ok(()),
            (limit, left) => Err(format!("{limit}, {left:?}").into()),
        }
    }
    let world = World::new().await;
    let service = world.inbox().build().unwrap().text_handler(look);
    let answer = crate::support::invoke_until(&service, 0, one("m-1")).await;
    assert_eq!(answer, Ok(vec![]), "{:?}", world.reports());
}

#[tokio::test]
async fn the_deadline_is_compared_with_the_clock_that_is_given() {
    struct Year2000;
    impl lambda_inbox::Clock for Year2000 {
        fn now(&self) -> std::time::SystemTime {
            std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(946_684_800)
        }
    }
    let world = World::new().await;
    let service = world
        .inbox()
        .clock(Year2000)
        .build()
        .unwrap()
        .text_handler(store_effect);
    let answer = crate::support::invoke_until(&service, 946_684_800_050, one("m-1")).await;
    assert_eq!(answer, Ok(vec!["m-1".to_owned()]));
    let answer = crate::support::invoke_until(&service, 946_684_830_000, one("m-1")).await;
    assert_eq!(answer, Ok(vec![]));
}
