//! The transaction says what it is: no default of the role or the session changes the promise, and
//! nothing leaks from one message to the next.

use crate::support::{MINUTE, World, many, one, store_effect};
use futures_util::future::join;
use lambda_inbox::sqlx::{self, PgConnection};
use lambda_inbox::{HandlerError, Message, Outcome};

/// C-20, and the traps of a careless role.
#[tokio::test]
async fn role_defaults_change_nothing() {
    for (name, value) in [
        ("default_transaction_isolation", "repeatable read"),
        ("default_transaction_isolation", "serializable"),
        ("default_transaction_read_only", "on"),
        ("default_transaction_deferrable", "on"),
        ("synchronous_commit", "off"),
        ("lock_timeout", "1ms"),
        ("statement_timeout", "1ms"),
        ("search_path", "nowhere"),
        ("standard_conforming_strings", "off"),
        ("timezone", "Asia/Kolkata"),
        ("datestyle", "German"),
    ] {
        let world = World::new().await;
        let role = world.database.create_role(&[(name, value)]).await.unwrap();
        let grant = "GRANT USAGE ON SCHEMA lambda_inbox TO PUBLIC; \
                     GRANT ALL ON ALL TABLES IN SCHEMA lambda_inbox, public TO PUBLIC";
        sqlx::raw_sql(grant)
            .execute(&mut world.admin().await)
            .await
            .unwrap();
        let inbox = || world.inbox_on(role.clone()).connections(2).build().unwrap();
        let service = inbox().text_handler(look_and_store);
        let rival = inbox().text_handler(look_and_store);

        // Two deliveries at once: REPEATABLE READ would answer the second with 40001.
        let (a, b) = join(
            crate::support::invoke(&service, MINUTE, many(["m-1", "m-2"])),
            crate::support::invoke(&rival, MINUTE, many(["m-2", "m-1"])),
        )
        .await;

        let reports = world.reports();
        assert!(
            reports.iter().all(|report| {
                matches!(
                    report.outcome,
                    Outcome::Processed | Outcome::Duplicate | Outcome::Busy
                )
            }),
            "{name} = {value}: {reports:?}"
        );
        let _ = (a.unwrap(), b.unwrap());
        assert_eq!(world.effects().await, 2, "{name} = {value}");
        assert_eq!(
            world.deliver(&service, MINUTE, one("m-1")).await,
            Ok(vec![]),
            "{name}"
        );
        assert_eq!(world.effects().await, 2, "{name} = {value}");
    }
}

async fn look_and_store(
    message: &Message<String>,
    connection: &mut PgConnection,
) -> Result<(), HandlerError> {
    let settings: String = sqlx::query_scalar(
        "SELECT concat_ws(' ', current_setting('transaction_isolation'), \
         current_setting('transaction_read_only'), current_setting('synchronous_commit'))",
    )
    .fetch_one(&mut *connection)
    .await?;
    if settings != "read committed off on" {
        return Err(format!("the transaction is {settings}").into());
    }
    sqlx::query("INSERT INTO public.effect (message_id) VALUES ($1)")
        .bind(message.message_id())
        .execute(connection)
        .await?;
    Ok(())
}

/// The claim's own bound must not cut the handler's waits short: the role's value is back.
#[tokio::test]
async fn the_claims_lock_timeout_does_not_reach_the_handler() {
    async fn look(_: &Message<String>, connection: &mut PgConnection) -> Result<(), HandlerError> {
        let limit: String = sqlx::query_scalar("SELECT current_setting('lock_timeout')")
            .fetch_one(connection)
            .await?;
        if limit == "7s" {
            Ok(())
        } else {
            Err(limit.into())
        }
    }
    let world = World::new().await;
    let role = world
        .database
        .create_role(&[("lock_timeout", "7s")])
        .await
        .unwrap();
    let grant = "GRANT USAGE ON SCHEMA lambda_inbox TO PUBLIC; \
                 GRANT ALL ON ALL TABLES IN SCHEMA lambda_inbox TO PUBLIC";
    sqlx::raw_sql(grant)
        .execute(&mut world.admin().await)
        .await
        .unwrap();
    let service = world.inbox_on(role).build().unwrap().text_handler(look);
    let answer = world.deliver(&service, MINUTE, many(["m-1", "m-2"])).await;
    assert_eq!(answer, Ok(vec![]), "{:?}", world.reports());
}

#[tokio::test]
async fn a_session_setting_of_one_message_does_not_reach_the_next() {
    async fn set_once(
        message: &Message<String>,
        connection: &mut PgConnection,
    ) -> Result<(), HandlerError> {
        let path: String = sqlx::query_scalar("SELECT current_setting('search_path')")
            .fetch_one(&mut *connection)
            .await?;
        if path.contains("tenant") {
            return Err(format!("{path} leaked to {}", message.message_id()).into());
        }
        sqlx::raw_sql("SET search_path = tenant_a; SET statement_timeout = 1")
            .execute(connection)
            .await?;
        Ok(())
    }
    let world = World::new().await;
    let service = world.inbox().build().unwrap().text_handler(set_once);
    for ids in [["m-1", "m-2"], ["m-3", "m-4"]] {
        let answer = world.deliver(&service, MINUTE, many(ids)).await;
        assert_eq!(answer, Ok(vec![]), "{:?}", world.reports());
    }
}

/// A deadlock in the handlers' own statements is run again, and never taken for a duplicate.
#[tokio::test]
async fn a_deadlock_between_handlers_is_retried_within_the_invocation() {
    async fn cross(
        message: &Message<String>,
        connection: &mut PgConnection,
    ) -> Result<(), HandlerError> {
        let ids = if message.message_id() == "m-1" {
            ["a", "b"]
        } else {
            ["b", "a"]
        };
        for id in ids {
            sqlx::query(
                "UPDATE effect SET body = coalesce(body, message_id) || '+' WHERE message_id = $1",
            )
            .bind(id)
            .execute(&mut *connection)
            .await?;
            // Long enough for the other to take its first row.
            sqlx::query("SELECT pg_sleep(0.3)")
                .execute(&mut *connection)
                .await?;
        }
        Ok(())
    }
    let world = World::new().await;
    let rows = "INSERT INTO effect (message_id) VALUES ('a'), ('b')";
    sqlx::query(rows)
        .execute(&mut world.admin().await)
        .await
        .unwrap();
    let service = world
        .inbox()
        .connections(2)
        .build()
        .unwrap()
        .text_handler(cross);

    let answer = world.deliver(&service, MINUTE, many(["m-1", "m-2"])).await;

    assert_eq!(answer, Ok(vec![]), "{:?}", world.reports());
    assert_eq!(world.outcomes(), [Outcome::Processed; 2]);
    let each_once = "SELECT count(*) FROM effect WHERE body = message_id || '++'";
    assert_eq!(world.count(each_once).await, 2);
}

#[tokio::test]
async fn another_schema_works_like_the_default_one() {
    let world = World::new().await;
    let schema = lambda_inbox::Schema::new("Other$1").unwrap();
    lambda_inbox::migrate(&mut world.admin().await, &schema)
        .await
        .unwrap();
    let service = world
        .inbox()
        .schema(schema)
        .build()
        .unwrap()
        .text_handler(store_effect);
    for _ in 0..2 {
        assert_eq!(
            world.deliver(&service, MINUTE, one("m-1")).await,
            Ok(vec![])
        );
    }
    assert_eq!(
        world.count("SELECT count(*) FROM \"Other$1\".inbox").await,
        1
    );
    assert_eq!((world.keys().await, world.effects().await), (0, 1));
}
