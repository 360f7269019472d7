//! Behind a pooler in transaction mode every transaction may meet another session: the real PgBouncer.

use crate::observation::Lines;
use crate::scopes::SCOPES;
use crate::support::{MINUTE, World, many, one, store_effect, swallow};
use lambda_inbox::sqlx::{self, PgConnection};
use lambda_inbox::{Handler, HandlerError, InboxBuilder, Message, Outcome, Source};
use lambda_inbox_testkit::event::{Record, event};
use lambda_inbox_testkit::postgres::PgBouncer;
use serde_json::{Value, json};

fn inbox(world: &World, pooler: &PgBouncer) -> InboxBuilder {
    world.inbox_from(Source::from(pooler.options()).pooled())
}

fn batch(ids: impl IntoIterator<Item = u32>) -> Value {
    event(ids.into_iter().map(|n| {
        Record::new(json!(n).to_string())
            .message_id(format!("m-{n}"))
            .to_value()
    }))
}

async fn nothing(_: &Message<String>, _: &mut PgConnection) -> Result<(), HandlerError> {
    Ok(())
}

/// Fewer sessions than clients, so that sessions change hands all the time.
#[tokio::test]
async fn every_scope_keeps_its_promise_behind_a_pooler() {
    for (scope, serve) in SCOPES {
        let world = World::new().await;
        let pooler = PgBouncer::start(&world.database, 3).await.unwrap();
        let services = [
            serve(inbox(&world, &pooler).connections(4)),
            serve(inbox(&world, &pooler).connections(4)),
            serve(inbox(&world, &pooler).connections(4)),
        ];
        for round in 0..5 {
            // Each pair of neighbours has half of its messages in common.
            let deliveries = services.iter().zip(0..).map(|(service, n)| {
                let first = round * 100 + n * 10;
                crate::support::invoke(service, MINUTE, batch(first..first + 20))
            });
            for answer in futures_util::future::join_all(deliveries).await {
                // Whoever meets the other's claim for too long reports it; it comes back.
                assert!(answer.is_ok(), "{scope}: {answer:?}");
            }
            for service in &services {
                let first = round * 100;
                let answer = world
                    .deliver(service, MINUTE, batch(first..first + 40))
                    .await;
                assert_eq!(answer, Ok(vec![]), "{scope}");
            }
        }
        let twice = "SELECT count(*) - count(DISTINCT message_id) FROM effect";
        assert_eq!(
            (
                world.keys().await,
                world.effects().await,
                world.count(twice).await
            ),
            (200, 200, 0),
            "{scope}"
        );
        let prepared = "SELECT count(*) FROM pg_stat_activity WHERE query ILIKE '%prepare %' \
                        AND pid <> pg_backend_pid() AND datname = current_database()";
        assert_eq!(world.count(prepared).await, 0, "{scope}");
    }
}

#[tokio::test]
async fn a_failing_handler_and_a_mismatch_are_told_behind_a_pooler_too() {
    struct Refuses;
    impl Handler<String> for Refuses {
        async fn handle(
            &self,
            message: &Message<String>,
            conn: &mut PgConnection,
        ) -> Result<(), HandlerError> {
            sqlx::raw_sql("INSERT INTO effect (message_id) VALUES ('x')")
                .execute(&mut *conn)
                .await?;
            match message.message_id() {
                "m-2" => Err(HandlerError::retry("no")),
                "m-3" => swallow(conn, "COMMIT").await,
                _ => Ok(()),
            }
        }
    }
    let world = World::new().await;
    let pooler = PgBouncer::start(&world.database, 2).await.unwrap();
    let service = inbox(&world, &pooler)
        .build()
        .unwrap()
        .text_handler(Refuses);
    let answer = world
        .deliver(&service, MINUTE, many(["m-1", "m-2", "m-3", "m-4"]))
        .await;
    assert_eq!(answer, Ok(vec!["m-2".to_owned(), "m-3".to_owned()]));
    assert_eq!((world.keys().await, world.effects().await), (2, 3));

    world.reports();
    let other = event([Record::new("another body").message_id("m-1").to_value()]);
    let answer = world.deliver(&service, MINUTE, other).await;
    assert_eq!(answer, Ok(vec!["m-1".to_owned()]));
    assert_eq!(world.outcomes(), [Outcome::Mismatch]);
}

/// A transaction's timeouts are the role's: what is missing is named, once.
#[tokio::test(flavor = "current_thread")]
async fn the_claims_wait_is_the_roles_own_and_what_it_lacks_is_named_once() {
    let world = World::new().await;
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().json().with_writer(lines.clone());
    let _here = tracing::subscriber::set_default(subscriber.finish());
    let sql = format!(
        "ALTER DATABASE \"{}\" SET lock_timeout = '100ms'",
        world.database.name()
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
        .execute(&mut world.admin().await)
        .await
        .unwrap();
    let pooler = PgBouncer::start(&world.database, 2).await.unwrap();
    let service = inbox(&world, &pooler)
        .build()
        .unwrap()
        .text_handler(nothing);
    let holder = world.hold(&["m-1"]).await;
    let answer = crate::support::invoke(&service, MINUTE, one("m-1")).await;
    assert_eq!(answer, Ok(vec!["m-1".to_owned()]));
    assert_eq!(world.outcomes(), [Outcome::Busy]);
    drop(holder);

    let log = lines.text();
    assert_eq!(log.matches("ALTER ROLE").count(), 3, "{log}");
    for missing in [
        "statement_timeout",
        "idle_in_transaction",
        "client_connection_check",
    ] {
        assert!(log.contains(missing), "{missing}: {log}");
    }
}

/// C-01.
#[tokio::test]
async fn without_the_profile_the_error_points_to_it() {
    let world = World::new().await;
    let pooler = PgBouncer::start(&world.database, 1).await.unwrap();
    let refused = world.inbox_on(pooler.options()).build().unwrap();
    let service = refused.text_handler(store_effect);
    let error = world.deliver(&service, MINUTE, one("m-1")).await;
    let error = error.unwrap_err();
    assert!(error.contains("LAMBDA_INBOX_DB_POOLED"), "{error}");

    // Other clients have prepared statements of the same names in every session.
    let theirs = "PREPARE lambda_inbox_claim AS SELECT 1; PREPARE sqlx_s_1 AS SELECT 1";
    let pooler = PgBouncer::start_with(&world.database, 2, theirs)
        .await
        .unwrap();
    let direct = || {
        let options = pooler.options().extra_float_digits(None);
        world.inbox_on(options).build().unwrap()
    };
    let service = direct().text_handler(nothing);
    let error = world.deliver(&service, MINUTE, one("m-2")).await;
    let error = error.unwrap_err();
    assert!(error.contains("LAMBDA_INBOX_DB_POOLED"), "{error}");

    let sql = "INSERT INTO effect (message_id) SELECT message_id FROM fresh";
    let service = direct().statement(sql).unwrap();
    let answer = world.deliver(&service, MINUTE, batch([3])).await;
    let error = answer.unwrap_err();
    assert!(error.contains("LAMBDA_INBOX_DB_POOLED"), "{error}");
}
