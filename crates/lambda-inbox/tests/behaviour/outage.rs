//! The database is down, or not set up.

use crate::support::{MINUTE, World, many, one, store_effect};
use lambda_inbox::sqlx::{self, PgConnection};
use lambda_inbox::{HandlerError, Inbox, Message, OutagePolicy, Outcome};
use lambda_inbox_testkit::postgres::TestDatabase;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

static RUNS: AtomicUsize = AtomicUsize::new(0);

async fn count_runs(_: &Message<String>, _: &mut PgConnection) -> Result<(), HandlerError> {
    RUNS.fetch_add(1, Ordering::SeqCst);
    Ok(())
}

#[tokio::test]
async fn building_an_inbox_does_not_connect() {
    let world = World::new().await;
    let proxy = world.proxy().await;
    let _service = world
        .inbox_behind(&proxy)
        .build()
        .unwrap()
        .text_handler(store_effect);
    assert_eq!(proxy.connections(), 0);
}

/// C-10: the poller must back off, instead of using up the receive counts.
#[tokio::test]
async fn an_outage_fails_the_invocation_and_runs_no_handler() {
    let world = World::new().await;
    let proxy = world.proxy().await;
    proxy.refuse(true);
    let service = world
        .inbox_behind(&proxy)
        .connections(2)
        .build()
        .unwrap()
        .text_handler(count_runs);

    let error = world
        .deliver(&service, MINUTE, many(["m-1", "m-2", "m-3"]))
        .await
        .unwrap_err();

    assert!(error.contains("consumer payments"), "{error}");
    assert!(error.contains("no connection to the database"), "{error}");
    assert_eq!(RUNS.load(Ordering::SeqCst), 0);
    assert!(
        world
            .outcomes()
            .iter()
            .all(|o| matches!(o, Outcome::Failed | Outcome::NotStarted))
    );

    proxy.refuse(false);
    assert_eq!(
        world
            .deliver(&service, MINUTE, many(["m-1", "m-2", "m-3"]))
            .await,
        Ok(vec![])
    );
}

#[tokio::test]
async fn the_other_policy_reports_each_record() {
    let world = World::new().await;
    let proxy = world.proxy().await;
    proxy.refuse(true);
    let inbox = world
        .inbox_behind(&proxy)
        .outage_policy(OutagePolicy::ReportEach)
        .build()
        .unwrap();
    let service = inbox.text_handler(store_effect);
    let answer = world.deliver(&service, MINUTE, many(["m-1", "m-2"])).await;
    assert_eq!(answer, Ok(["m-1", "m-2"].map(str::to_owned).to_vec()));
}

/// What has committed must not be run past the poller's back-off as a failed invocation.
#[tokio::test]
async fn an_outage_in_mid_batch_reports_the_rest() {
    let world = World::new().await;
    let proxy = world.proxy().await;
    let service = world
        .inbox_behind(&proxy)
        .build()
        .unwrap()
        .text_handler(store_effect);
    let outage = async {
        while world.effects().await == 0 {}
        proxy.refuse(true);
        proxy.cut();
    };
    let ids: Vec<String> = (0..2000).map(|n| format!("m-{n}")).collect();
    let batch = many(ids.iter().map(String::as_str));

    let (answer, ()) = tokio::join!(world.deliver(&service, MINUTE, batch), outage);

    let reported = answer.unwrap().len();
    let committed = usize::try_from(world.effects().await).unwrap();
    assert!(committed > 0 && reported > 0, "{committed} {reported}");
    // The one whose COMMIT was under way may be in both.
    assert!(
        (2000..=2001).contains(&(committed + reported)),
        "{committed} {reported}"
    );
}

#[tokio::test]
async fn a_database_without_the_inbox_is_told_with_the_fix() {
    let database = TestDatabase::create().await.unwrap();
    let inbox = Inbox::builder("payments", database.options())
        .build()
        .unwrap();
    let service = inbox.text_handler(store_effect);
    let error = crate::support::invoke(&service, MINUTE, one("m-1"))
        .await
        .unwrap_err();
    assert!(error.contains("run the migrations"), "{error}");
    assert!(error.contains("SQLSTATE 42P01"), "{error}");
}

#[tokio::test]
async fn a_wrong_password_is_told_and_shows_no_password() {
    let world = World::new().await;
    let role = world
        .database
        .create_role(&[])
        .await
        .unwrap()
        .password("hunter2-wrong");
    let service = world
        .inbox_on(role)
        .build()
        .unwrap()
        .text_handler(store_effect);
    let answer = world.deliver(&service, MINUTE, one("m-1")).await;
    if let Err(error) = answer {
        assert!(!error.contains("hunter2"), "{error}");
        assert!(error.contains("SQLSTATE 28P01"), "{error}");
    } else {
        // A server that trusts the loopback asks for no password.
        assert_eq!(answer, Ok(vec![]));
    }
}

/// An invocation waits for its first connection only; where that does not come free in time, the
/// records come back untouched.
#[tokio::test]
async fn two_invocations_of_one_environment_share_its_connections() {
    let world = World::new().await;
    let (here, there) = crate::support::meeting(Ok(()));
    let inbox = world.inbox().build().unwrap();
    let slow = inbox.clone().text_handler(there);
    let quick = inbox.text_handler(store_effect);
    let second = async {
        here.arrived().await;
        let left = Duration::from_millis(1600);
        let starved = crate::support::invoke(&quick, left, one("m-2")).await;
        here.go_on();
        let served = crate::support::invoke(&quick, MINUTE, one("m-3")).await;
        (starved, served)
    };
    let (first, (starved, served)) =
        tokio::join!(crate::support::invoke(&slow, MINUTE, one("m-1")), second);
    assert_eq!(first, Ok(vec![]));
    assert_eq!(starved, Ok(vec!["m-2".to_owned()]));
    assert_eq!(served, Ok(vec![]));
    assert_eq!(world.effects().await, 2);
}

/// C-09: a second connection that the server refuses is done without.
#[tokio::test]
async fn a_server_with_one_place_left_serves_the_batch_on_one_connection() {
    let world = World::new().await;
    let role = world.database.create_role(&[]).await.unwrap();
    let limit = format!(
        "ALTER ROLE \"{}\" CONNECTION LIMIT 1; GRANT USAGE ON SCHEMA lambda_inbox TO PUBLIC; \
         GRANT ALL ON ALL TABLES IN SCHEMA lambda_inbox, public TO PUBLIC",
        role.get_username()
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(limit))
        .execute(&mut world.admin().await)
        .await
        .unwrap();
    let service = world
        .inbox_on(role)
        .connections(4)
        .build()
        .unwrap()
        .text_handler(store_effect);
    let ids: Vec<String> = (0..20).map(|n| format!("m-{n}")).collect();
    let answer = world
        .deliver(&service, MINUTE, many(ids.iter().map(String::as_str)))
        .await;
    assert_eq!(answer, Ok(vec![]), "{:?}", world.reports());
    assert_eq!(world.effects().await, 20);
}
