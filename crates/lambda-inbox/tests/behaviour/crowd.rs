//! More environments than the server has room for, and a server that changes its mind.

use crate::support::{MINUTE, World, invoke, many, one, store_effect, store_id};
use lambda_inbox::sqlx::postgres::PgConnectOptions;
use lambda_inbox::sqlx::{self, AssertSqlSafe, PgConnection};
use lambda_inbox::{Handler, HandlerError, Inbox, Message};
use lambda_inbox_testkit::postgres::{Cluster, TestDatabase};
use std::sync::Arc;
use tokio::sync::watch;

const ENVIRONMENTS: usize = 40;
const RECORDS: usize = 5;

/// Stores its effect and holds its connection until somebody has been turned away.
struct Patient(watch::Receiver<bool>);

impl Handler<String> for Patient {
    async fn handle(
        &self,
        message: &Message<String>,
        connection: &mut PgConnection,
    ) -> Result<(), HandlerError> {
        // Without a unique constraint, so that a second effect would be seen.
        store_id(message, connection).await?;
        self.0.clone().wait_for(|turned_away| *turned_away).await?;
        Ok(())
    }
}

/// C-09.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forty_environments_on_a_server_for_twenty_lose_nothing_and_double_nothing() {
    let cluster = Cluster::builder()
        .setting("max_connections", "20")
        .start()
        .await
        .unwrap();
    let world = World::on(TestDatabase::create_on(&cluster.options()).await.unwrap()).await;
    let role = may_use_all(&world).await;
    let (turned_away, is_full) = watch::channel(false);
    let turned_away = Arc::new(turned_away);

    let environments = (0..ENVIRONMENTS).map(|n| {
        // Each with connections of its own, as each has a process of its own.
        let inbox = Inbox::builder("payments", role.clone()).build().unwrap();
        let service = inbox.text_handler(Patient(is_full.clone()));
        let ids: Vec<String> = (0..RECORDS)
            .map(|record| format!("m-{n}-{record}"))
            .collect();
        let turned_away = Arc::clone(&turned_away);
        tokio::spawn(async move {
            let mut refusals = Vec::new();
            // The queue delivers again what did not commit.
            loop {
                let batch = many(ids.iter().map(String::as_str));
                match invoke(&service, MINUTE, batch).await {
                    Ok(failed) if failed.is_empty() => return refusals,
                    Ok(failed) => refusals.push(format!("{failed:?}")),
                    Err(error) => refusals.push(error),
                }
                turned_away.send_replace(true);
            }
        })
    });
    let environments: Vec<_> = environments.collect();
    let mut refusals = Vec::new();
    for environment in environments {
        refusals.extend(environment.await.unwrap());
    }

    assert!(
        refusals
            .iter()
            .any(|refusal| refusal.contains("SQLSTATE 53300")),
        "{refusals:?}"
    );
    let expected = i64::try_from(ENVIRONMENTS * RECORDS).unwrap();
    assert_eq!(world.keys().await, expected);
    assert_eq!(world.effects().await, expected);
    let distinct = "SELECT count(DISTINCT message_id) FROM effect";
    assert_eq!(world.count(distinct).await, expected);
}

#[tokio::test]
async fn a_server_that_is_read_only_by_default_from_now_on_changes_nothing() {
    let cluster = Cluster::start().await.unwrap();
    let world = World::on(TestDatabase::create_on(&cluster.options()).await.unwrap()).await;
    let service = world.inbox().build().unwrap().text_handler(store_effect);
    assert_eq!(
        world.deliver(&service, MINUTE, one("m-1")).await,
        Ok(vec![])
    );

    let mut admin = world.admin().await;
    for sql in [
        "ALTER SYSTEM SET default_transaction_read_only = on",
        "SELECT pg_reload_conf()",
    ] {
        sqlx::raw_sql(sql).execute(&mut admin).await.unwrap();
    }
    while setting(&mut admin).await != "on" {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }

    assert_eq!(
        world.deliver(&service, MINUTE, one("m-2")).await,
        Ok(vec![])
    );
    let fresh = world.inbox().build().unwrap().text_handler(store_effect);
    assert_eq!(world.deliver(&fresh, MINUTE, one("m-3")).await, Ok(vec![]));
    assert_eq!(world.effects().await, 3);
}

async fn setting(connection: &mut PgConnection) -> String {
    sqlx::query_scalar("SHOW default_transaction_read_only")
        .fetch_one(connection)
        .await
        .unwrap()
}

/// A superuser has places of its own.
async fn may_use_all(world: &World) -> PgConnectOptions {
    let role = world.database.create_role(&[]).await.unwrap();
    let name = role.get_username();
    let grant = format!(
        "GRANT USAGE ON SCHEMA lambda_inbox TO \"{name}\"; \
         GRANT ALL ON ALL TABLES IN SCHEMA lambda_inbox, public TO \"{name}\""
    );
    sqlx::raw_sql(AssertSqlSafe(grant))
        .execute(&mut world.admin().await)
        .await
        .unwrap();
    role
}
