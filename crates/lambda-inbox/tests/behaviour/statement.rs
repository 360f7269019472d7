//! The whole consumer is one SQL statement: one round trip a batch.

use crate::support::{MINUTE, World};
use Outcome::{Busy, Duplicate, Failed, Ignored, Mismatch, Poison, Processed, Unknown};
use lambda_inbox::{InboxService, Outcome};
use lambda_inbox_testkit::event::{Record, event};
use serde_json::{Value, json};

/// Divides by the number, so that a zero fails the statement.
const STORE: &str = "INSERT INTO effect (message_id) \
    SELECT message_id FROM fresh WHERE 1 / (body ->> 'n')::int IS NOT NULL";

fn record(id: &str, body: &str) -> Value {
    Record::new(body).message_id(id).to_value()
}

fn batch<'a>(records: impl IntoIterator<Item = (&'a str, &'a str)>) -> Value {
    event(records.into_iter().map(|(id, body)| record(id, body)))
}

fn numbered(count: usize) -> (Vec<String>, Value) {
    let ids: Vec<String> = (0..count).map(|n| format!("m-{n:05}")).collect();
    let event = event(ids.iter().map(|id| record(id, r#"{"n":1}"#)));
    (ids, event)
}

fn store(world: &World) -> InboxService {
    world.inbox().build().unwrap().statement(STORE).unwrap()
}

#[tokio::test]
async fn ten_thousand_messages_take_one_round_trip() {
    let world = World::new().await;
    let proxy = world.proxy().await;
    let service = world
        .inbox_behind(&proxy)
        .build()
        .unwrap()
        .statement(STORE)
        .unwrap();
    // Long enough for the server to prefer a plan that knows nothing of the arrays' lengths.
    for n in 0..8 {
        let warm_up = batch([(format!("w-{n}").as_str(), r#"{"n":1}"#)]);
        assert_eq!(world.deliver(&service, MINUTE, warm_up).await, Ok(vec![]));
    }
    let (_, ten_thousand) = numbered(10_000);

    proxy.reset_round_trips();
    assert_eq!(
        world.deliver(&service, MINUTE, ten_thousand.clone()).await,
        Ok(vec![])
    );
    assert_eq!(proxy.round_trips(), 1);
    assert_eq!(
        (world.keys().await, world.effects().await),
        (10_008, 10_008)
    );

    proxy.reset_round_trips();
    assert_eq!(
        world.deliver(&service, MINUTE, ten_thousand).await,
        Ok(vec![])
    );
    assert_eq!(proxy.round_trips(), 1, "duplicates");
    assert_eq!(world.effects().await, 10_008);
}

#[tokio::test]
async fn the_statement_sees_what_came_with_each_message() {
    let world = World::new().await;
    let sql = "INSERT INTO effect (message_id, body) \
        SELECT message_id, concat_ws('|', source, key, body ->> 'n', sent_at AT TIME ZONE 'UTC', \
        receive_count, group_id, position) FROM fresh";
    let service = world.inbox().build().unwrap().statement(sql).unwrap();
    let sent =
        std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(1_767_600_000_123);
    let record = Record::new(r#"{"n":7}"#)
        .message_id("m-1")
        .receive_count(2)
        .sent_at(sent);
    let event = event([record.group("tenant").to_value()]);
    assert_eq!(world.deliver(&service, MINUTE, event).await, Ok(vec![]));
    let seen = "SELECT count(*) FROM effect \
        WHERE body = 'sqs|m-1|7|2026-01-05 08:00:00.123|2|tenant|1'";
    assert_eq!(world.count(seen).await, 1);
}

#[tokio::test]
async fn one_poison_row_is_found_by_halving_and_reported_alone() {
    let world = World::new().await;
    let (ids, mut event) = numbered(300);
    event["Records"][123]["body"] = r#"{"n":0}"#.into();
    let answer = world.deliver(&store(&world), MINUTE, event).await;
    assert_eq!(answer, Ok(vec![ids[123].clone()]));
    let report = world
        .reports()
        .into_iter()
        .find(|r| r.outcome != Processed)
        .unwrap();
    assert_eq!((report.position, report.outcome), (123, Failed));
    assert!(report.reason.unwrap().contains("SQLSTATE 22012"));
    assert_eq!((world.keys().await, world.effects().await), (299, 299));
}

/// E-01: what `jsonb` cannot take is refused before the database is asked.
#[tokio::test]
async fn bodies_that_are_not_json_are_failures_of_their_own() {
    let world = World::new().await;
    let records = [
        ("m-1", r#"{"n":1}"#),
        ("m-2", "nope"),
        ("m-3", r#"{"n":1,"note":"left\u0000right"}"#),
        ("m-4", r#"{"n":1,"note":"\ud83d"}"#),
        ("m-5", ""),
        ("m-6", r#"{"n":1,"note":"back\\u0000slash"}"#),
    ];
    let answer = world.deliver(&store(&world), MINUTE, batch(records)).await;
    assert_eq!(
        answer,
        Ok(["m-2", "m-3", "m-4", "m-5"].map(str::to_owned).to_vec())
    );
    assert_eq!(
        world.outcomes(),
        [Processed, Poison, Poison, Poison, Poison, Processed]
    );
}

#[tokio::test]
async fn duplicates_mismatches_busy_keys_copies_and_ignored_messages_are_told_apart() {
    let world = World::new().await;
    let service = store(&world);
    let earlier = batch([("m-1", r#"{"n":1}"#), ("m-2", r#"{"n":2}"#)]);
    assert_eq!(world.deliver(&service, MINUTE, earlier).await, Ok(vec![]));
    world.reports();
    let holder = world.hold(&["m-4"]).await;
    let test_event = json!({"Service": "Amazon S3", "Event": "s3:TestEvent"}).to_string();

    let records = batch([
        ("m-1", r#"{ "n": 1 }"#),
        ("m-2", r#"{"n":3}"#),
        ("m-3", r#"{"n":3}"#),
        ("m-4", r#"{"n":4}"#),
        ("m-3", r#"{"n":3}"#),
        ("m-5", &test_event),
    ]);
    let answer = crate::support::invoke(&service, MINUTE, records).await;

    assert_eq!(answer, Ok(["m-2", "m-4"].map(str::to_owned).to_vec()));
    assert_eq!(
        world.outcomes(),
        [Duplicate, Mismatch, Processed, Busy, Duplicate, Ignored]
    );
    drop(holder);
    assert_eq!(world.effects().await, 3);
}

#[tokio::test]
async fn a_lost_reply_is_asked_for_again_and_has_one_effect() {
    let world = World::new().await;
    let proxy = world.proxy().await;
    let service = world
        .inbox_behind(&proxy)
        .build()
        .unwrap()
        .statement(STORE)
        .unwrap();
    assert_eq!(
        world
            .deliver(&service, MINUTE, batch([("w", r#"{"n":1}"#)]))
            .await,
        Ok(vec![])
    );
    world.reports();
    // The body travels with the statement.
    let lost = proxy.lose_reply_to(b"{\"n\":77}");
    let answer = world
        .deliver(&service, MINUTE, batch([("m-1", r#"{"n":77}"#)]))
        .await;
    assert!(lost.fired());
    assert_eq!(answer, Ok(vec![]));
    assert_eq!(world.outcomes(), [Duplicate]);
    assert_eq!((world.keys().await, world.effects().await), (2, 2));
}

/// It has committed, and nobody is left who could tell: so nobody may say that nothing was committed.
#[tokio::test]
async fn a_lost_reply_stays_in_doubt_whatever_the_second_try_meets() {
    let world = World::new().await;
    let proxy = world.proxy().await;
    let inbox = world.inbox_behind(&proxy).build().unwrap();
    let service = inbox.statement(STORE).unwrap();
    let lost = proxy.lose_reply_to(b"{\"n\":77}");
    let refuse = async {
        lost.wait().await;
        proxy.refuse(true);
    };
    let message = || batch([("m-1", r#"{"n":77}"#)]);
    let ((), answer) = tokio::join!(refuse, world.deliver(&service, MINUTE, message()));
    assert_eq!(answer, Ok(vec!["m-1".to_owned()]));
    assert_eq!(world.outcomes(), [Unknown]);

    proxy.refuse(false);
    assert_eq!(world.deliver(&service, MINUTE, message()).await, Ok(vec![]));
    assert_eq!((world.keys().await, world.effects().await), (1, 1));
}

#[tokio::test]
async fn a_statement_runs_under_the_inboxs_own_isolation() {
    let world = World::new().await;
    let role = world
        .database
        .create_role(&[
            ("default_transaction_isolation", "serializable"),
            ("default_transaction_read_only", "on"),
            ("synchronous_commit", "off"),
        ])
        .await
        .unwrap();
    let grant = "GRANT USAGE ON SCHEMA lambda_inbox TO PUBLIC; \
                 GRANT ALL ON ALL TABLES IN SCHEMA lambda_inbox, public TO PUBLIC";
    let mut admin = world.admin().await;
    lambda_inbox::sqlx::raw_sql(grant)
        .execute(&mut admin)
        .await
        .unwrap();
    let sql = "INSERT INTO effect (message_id) SELECT concat_ws(' ', \
        current_setting('transaction_isolation'), current_setting('synchronous_commit')) FROM fresh";
    let service = world
        .inbox_on(role)
        .build()
        .unwrap()
        .statement(sql)
        .unwrap();
    assert_eq!(
        world.deliver(&service, MINUTE, batch([("m-1", "1")])).await,
        Ok(vec![])
    );
    let as_it_should_be = "SELECT count(*) FROM effect WHERE message_id = 'read committed on'";
    assert_eq!(world.count(as_it_should_be).await, 1);
}

/// An UPDATE touches each row once, so what goes to one row is summed first.
#[tokio::test]
async fn effects_on_one_row_are_summed_in_the_statement() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    let account = "CREATE TABLE account (id bigint PRIMARY KEY, balance bigint NOT NULL); \
                   INSERT INTO account VALUES (1, 0), (2, 0)";
    lambda_inbox::sqlx::raw_sql(account)
        .execute(&mut admin)
        .await
        .unwrap();
    let sql = "UPDATE account SET balance = balance + paid.amount \
        FROM (SELECT (body ->> 'account')::bigint AS id, sum((body ->> 'amount')::bigint) AS amount \
              FROM fresh GROUP BY 1) AS paid WHERE account.id = paid.id;";
    let service = world.inbox().build().unwrap().statement(sql).unwrap();
    let body = |n: i64| json!({"account": n % 2 + 1, "amount": n}).to_string();
    let records = (0..100).map(|n| Record::new(body(n)).message_id(format!("m-{n}")).to_value());
    let batch = event(records);
    for _ in 0..2 {
        assert_eq!(
            world.deliver(&service, MINUTE, batch.clone()).await,
            Ok(vec![])
        );
    }
    assert_eq!(
        world
            .count("SELECT sum(balance)::bigint FROM account")
            .await,
        99 * 100 / 2
    );
}

#[tokio::test]
async fn what_is_not_one_modifying_statement_is_refused_at_start_up() {
    for sql in [
        "",
        "SELECT 1 FROM fresh",
        "WITH x AS (SELECT 1) SELECT 1",
        "DELETE FROM a; DELETE FROM b",
    ] {
        let world = World::new().await;
        assert!(
            world.inbox().build().unwrap().statement(sql).is_err(),
            "{sql}"
        );
    }
}

#[tokio::test]
async fn a_database_that_is_down_fails_the_invocation() {
    let world = World::new().await;
    let proxy = world.proxy().await;
    proxy.refuse(true);
    let service = world
        .inbox_behind(&proxy)
        .build()
        .unwrap()
        .statement(STORE)
        .unwrap();
    let (_, thousand) = numbered(1000);
    let error = world
        .deliver(&service, MINUTE, thousand.clone())
        .await
        .unwrap_err();
    assert!(error.contains("no connection to the database"), "{error}");
    proxy.refuse(false);
    assert_eq!(
        world.deliver(&service, MINUTE, thousand.clone()).await,
        Ok(vec![])
    );
    assert!(world.database.terminate_backends().await.unwrap() > 0);
    assert_eq!(world.deliver(&service, MINUTE, thousand).await, Ok(vec![]));
    assert_eq!(world.effects().await, 1000);
}

/// A table that is not there fails every message alike, so the batch is not halved in search of one.
#[tokio::test]
async fn a_statement_that_names_a_missing_table_is_told_with_the_fix() {
    let world = World::new().await;
    let sql = "INSERT INTO nowhere SELECT message_id FROM fresh";
    let service = world.inbox().build().unwrap().statement(sql).unwrap();
    let (_, hundred) = numbered(100);
    let error = world.deliver(&service, MINUTE, hundred).await.unwrap_err();
    assert!(error.contains("create the tables"), "{error}");
    assert!(error.contains("SQLSTATE 42P01"), "{error}");
    assert_eq!(world.keys().await, 0);
}
