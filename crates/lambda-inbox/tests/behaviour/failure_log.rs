//! The failure log says what went wrong, and changes nothing.

use crate::support::{Answer, MINUTE, World, invoke, many, one, store_effect};
use lambda_inbox::sqlx::{self, AssertSqlSafe, PgConnection};
use lambda_inbox::{BulkError, HandlerError, InboxBuilder, InboxService, Message, Outcome, Scope};
use lambda_inbox_testkit::event::{Record, event};
use lambda_inbox_testkit::proxy::Proxy;
use serde_json::Value;

/// Does what the body says.
async fn obedient(
    message: &Message<String>,
    connection: &mut PgConnection,
) -> Result<(), HandlerError> {
    store_effect(message, connection).await?;
    match message.body.as_str() {
        "fails" => Err("no stock".into()),
        "is poison" => Err(HandlerError::permanent("no such order")),
        "breaks a rule" => {
            let sql = "INSERT INTO effect VALUES ('a', 'private'), ('b', 'private'); \
                       SET CONSTRAINTS ALL IMMEDIATE";
            sqlx::raw_sql(sql).execute(connection).await?;
            Ok(())
        }
        "ends the transaction" => {
            sqlx::raw_sql("ROLLBACK").execute(connection).await?;
            Ok(())
        }
        _ => Ok(()),
    }
}

const BODIES: [&str; 5] = [
    "is fine",
    "fails",
    "is poison",
    "breaks a rule",
    "ends the transaction",
];

fn bodies() -> Value {
    event(BODIES.map(|body| {
        Record::new(body)
            .message_id(body.replace(' ', "-"))
            .receive_count(3)
            .to_value()
    }))
}

async fn logged(world: &World) -> Vec<String> {
    let sql = "SELECT concat_ws('|', consumer, source, message_id, transport_message_id, outcome, \
                 coalesce(sqlstate, '-'), receive_count, error) \
               FROM lambda_inbox.inbox_failure ORDER BY message_id";
    sqlx::query_scalar(sql)
        .fetch_all(&mut world.admin().await)
        .await
        .unwrap()
}

#[tokio::test]
async fn what_fails_is_written_with_its_reason_and_nothing_private() {
    for scope in [Scope::PerMessage, Scope::PerBatch] {
        let world = World::new().await;
        let inbox = world.inbox().failure_log(true).scope(scope);
        let service = inbox.build().unwrap().text_handler(obedient);
        let answer = world.deliver(&service, MINUTE, bodies()).await.unwrap();
        assert_eq!(answer.len(), 4, "{answer:?}");

        let rows = logged(&world).await;
        let expected = [
            ("breaks-a-rule", "failed|23505|3|", "duplicate key value"),
            ("ends-the-transaction", "failed|-|3|", "BoundaryViolation"),
            ("fails", "failed|-|3|", "no stock"),
            ("is-poison", "poison|-|3|", "no such order"),
        ];
        assert_eq!(rows.len(), expected.len(), "{rows:?}");
        for (row, (id, outcome, reason)) in rows.iter().zip(expected) {
            let begin = format!("payments|sqs|{id}|{id}|{outcome}");
            assert!(row.starts_with(&begin) && row.contains(reason), "{row}");
            assert!(!row.contains("private"), "{row}");
        }
    }
}

#[tokio::test]
async fn a_record_without_a_key_and_a_mismatch_are_written_too() {
    let world = World::new().await;
    let inbox = world.inbox().failure_log(true);
    let service = inbox.build().unwrap().text_handler(store_effect);
    let copy = |body| event([Record::new(body).message_id("m-1").to_value()]);
    world.deliver(&service, MINUTE, copy("one")).await.unwrap();
    world
        .deliver(&service, MINUTE, copy("another"))
        .await
        .unwrap();
    let mut bodiless = one("m-2");
    bodiless["Records"][0]
        .as_object_mut()
        .unwrap()
        .remove("body");
    world.deliver(&service, MINUTE, bodiless).await.unwrap();
    let rows = logged(&world).await;
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(
        rows[0].starts_with("payments|sqs|m-1|m-1|mismatch|-|1|"),
        "{rows:?}"
    );
    assert!(
        rows[1].starts_with("payments|sqs|m-2|m-2|poison|-|1|"),
        "{rows:?}"
    );
}

#[tokio::test]
async fn a_bulk_handlers_failures_are_written_one_by_one() {
    async fn one_is_bad(messages: &[Message<i64>], _: &mut PgConnection) -> Result<(), BulkError> {
        match messages.iter().find(|message| message.body == 13) {
            Some(bad) => Err(BulkError::Messages(vec![(
                bad.message_id().to_owned(),
                HandlerError::permanent("unlucky"),
            )])),
            None => Ok(()),
        }
    }
    let world = World::new().await;
    let inbox = world.inbox().failure_log(true);
    let service = inbox.build().unwrap().bulk_handler(one_is_bad);
    let event = event((1..=20).map(|n| Record::new(n.to_string()).message_id(format!("m-{n}"))));
    world.deliver(&service, MINUTE, event).await.unwrap();
    assert_eq!(
        logged(&world).await,
        ["payments|sqs|m-13|m-13|poison|-|1|unlucky"]
    );
}

#[tokio::test]
async fn it_is_off_unless_it_is_asked_for() {
    let world = World::new().await;
    let service = world.inbox().build().unwrap().text_handler(obedient);
    world.deliver(&service, MINUTE, bodies()).await.unwrap();
    assert_eq!(logged(&world).await, Vec::<String>::new());
}

/// What the invocation comes to where the log stands in its way, and where there is none.
async fn with_and_without(
    world: &World,
    log: impl Fn(bool) -> InboxBuilder,
) -> [(Answer, Vec<Outcome>); 2] {
    let mut results = Vec::new();
    for on in [true, false] {
        let service: InboxService = log(on).build().unwrap().text_handler(obedient);
        let answer = world.deliver(&service, MINUTE, bodies()).await;
        results.push((answer, world.outcomes()));
        let forget = "DELETE FROM lambda_inbox.inbox; DELETE FROM effect";
        sqlx::raw_sql(forget)
            .execute(&mut world.admin().await)
            .await
            .unwrap();
    }
    results.try_into().unwrap()
}

#[tokio::test]
async fn a_log_that_cannot_be_written_changes_no_outcome() {
    for obstacle in [
        "DROP TABLE lambda_inbox.inbox_failure",
        "ALTER TABLE lambda_inbox.inbox_failure ADD CONSTRAINT never CHECK (false)",
        "ALTER TABLE lambda_inbox.inbox_failure DROP COLUMN error",
    ] {
        let world = World::new().await;
        sqlx::raw_sql(AssertSqlSafe(obstacle.to_owned()))
            .execute(&mut world.admin().await)
            .await
            .unwrap();
        let [with, without] = with_and_without(&world, |on| world.inbox().failure_log(on)).await;
        assert_eq!(with, without, "{obstacle}");
        assert!(with.0.is_ok());
    }
}

#[tokio::test]
async fn a_log_that_someone_locks_changes_no_outcome_and_leaves_nothing_waiting() {
    let world = World::new().await;
    let mut other = world.admin().await;
    let lock = "BEGIN; LOCK TABLE lambda_inbox.inbox_failure IN ACCESS EXCLUSIVE MODE";
    sqlx::raw_sql(lock).execute(&mut other).await.unwrap();
    let mut results = Vec::new();
    for on in [true, false] {
        let inbox = world.inbox().failure_log(on);
        let service = inbox.build().unwrap().text_handler(obedient);
        results.push((invoke(&service, MINUTE, bodies()).await, world.outcomes()));
        let forget = "DELETE FROM lambda_inbox.inbox; DELETE FROM effect";
        sqlx::raw_sql(forget)
            .execute(&mut world.admin().await)
            .await
            .unwrap();
    }
    assert_eq!(results[0], results[1]);
    // The lock's holder is the only transaction left.
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    world.assert_quiet().await;
    assert_eq!(logged(&world).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_connection_that_is_lost_under_the_log_changes_no_outcome() {
    let world = World::new().await;
    let options = world.database.options();
    let proxy = Proxy::start(options.get_host(), options.get_port())
        .await
        .unwrap();
    let cut = proxy.cut_before(b"inbox_failure");
    let [with, without] =
        with_and_without(&world, |on| world.inbox_behind(&proxy).failure_log(on)).await;
    assert!(cut.fired());
    assert_eq!(with, without);
    // The next batch has a connection again.
    let inbox = world.inbox_behind(&proxy).failure_log(true);
    let service = inbox.build().unwrap().text_handler(obedient);
    assert_eq!(
        world.deliver(&service, MINUTE, many(["a", "b"])).await,
        Ok(vec![])
    );
}
