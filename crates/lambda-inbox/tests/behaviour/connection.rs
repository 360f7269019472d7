//! Connections that die, at every point of a message's way.

use crate::support::{MINUTE, World, invoke, many, one, store_effect};
use lambda_inbox::Outcome;
use lambda_inbox_testkit::proxy::Proxy;
use std::time::Duration;

impl World {
    pub(crate) async fn proxy(&self) -> Proxy {
        let options = self.database.options();
        Proxy::start(options.get_host(), options.get_port())
            .await
            .unwrap()
    }
}

/// C-04: after a freeze the server has closed the idle connection.
#[tokio::test]
async fn a_connection_killed_between_invocations_costs_no_record() {
    let world = World::new().await;
    let service = world
        .inbox()
        .connections(3)
        .build()
        .unwrap()
        .text_handler(store_effect);
    for round in 0..3 {
        let ids: Vec<String> = (0..5).map(|n| format!("m-{round}-{n}")).collect();
        let batch = many(ids.iter().map(String::as_str));
        assert_eq!(
            world.deliver(&service, MINUTE, batch).await,
            Ok(vec![]),
            "round {round}"
        );
        assert!(world.database.terminate_backends().await.unwrap() > 0);
    }
    assert_eq!(world.effects().await, 15);
}

#[tokio::test]
async fn connections_are_kept_across_invocations() {
    let world = World::new().await;
    let proxy = world.proxy().await;
    let service = world
        .inbox_behind(&proxy)
        .connections(2)
        .build()
        .unwrap()
        .text_handler(store_effect);
    for round in 0..4 {
        let ids = [
            format!("a-{round}"),
            format!("b-{round}"),
            format!("c-{round}"),
        ];
        let batch = many(ids.iter().map(String::as_str));
        assert_eq!(world.deliver(&service, MINUTE, batch).await, Ok(vec![]));
    }
    assert_eq!(proxy.connections(), 2);
}

#[tokio::test]
async fn a_commit_whose_reply_is_lost_is_reported_and_has_one_effect_in_the_end() {
    let world = World::new().await;
    let proxy = world.proxy().await;
    let service = world
        .inbox_behind(&proxy)
        .build()
        .unwrap()
        .text_handler(store_effect);

    let lost = proxy.lose_reply_to(b"; COMMIT");
    let answer = world.deliver(&service, MINUTE, one("m-1")).await;

    assert!(lost.fired());
    assert_eq!(answer, Ok(vec!["m-1".to_owned()]));
    assert_eq!(world.outcomes(), [Outcome::Unknown]);
    assert_eq!(
        world.deliver(&service, MINUTE, one("m-1")).await,
        Ok(vec![])
    );
    assert_eq!(world.outcomes(), [Outcome::Duplicate]);
    assert_eq!((world.keys().await, world.effects().await), (1, 1));
}

#[tokio::test]
async fn a_commit_that_never_arrived_is_reported_and_has_one_effect_in_the_end() {
    let world = World::new().await;
    let proxy = world.proxy().await;
    let service = world
        .inbox_behind(&proxy)
        .build()
        .unwrap()
        .text_handler(store_effect);

    let cut = proxy.cut_before(b"; COMMIT");
    let answer = world.deliver(&service, MINUTE, one("m-1")).await;

    assert!(cut.fired());
    assert_eq!(answer, Ok(vec!["m-1".to_owned()]));
    assert_eq!(world.outcomes(), [Outcome::Unknown]);
    assert_eq!(world.effects().await, 0);
    assert_eq!(
        world.deliver(&service, MINUTE, one("m-1")).await,
        Ok(vec![])
    );
    assert_eq!(world.outcomes(), [Outcome::Processed]);
    assert_eq!((world.keys().await, world.effects().await), (1, 1));
}

/// Cut anywhere before the handler has run, the record is tried again on a fresh connection.
#[tokio::test]
async fn a_connection_lost_at_begin_or_claim_is_replaced_once() {
    for pattern in ["BEGIN ISOLATION", "won AS"] {
        let world = World::new().await;
        let proxy = world.proxy().await;
        let service = world
            .inbox_behind(&proxy)
            .build()
            .unwrap()
            .text_handler(store_effect);
        let cut = proxy.cut_before(pattern.as_bytes());

        assert_eq!(
            world.deliver(&service, MINUTE, one("m-1")).await,
            Ok(vec![]),
            "{pattern}"
        );

        assert!(cut.fired(), "{pattern}");
        assert_eq!(proxy.connections(), 2, "{pattern}");
        assert_eq!(world.effects().await, 1, "{pattern}");
    }
}

#[tokio::test]
async fn a_connection_lost_under_the_handler_fails_that_record_alone() {
    let world = World::new().await;
    let proxy = world.proxy().await;
    let service = world
        .inbox_behind(&proxy)
        .build()
        .unwrap()
        .text_handler(store_effect);
    let cut = proxy.cut_before(b"INSERT INTO effect");

    let answer = world.deliver(&service, MINUTE, many(["m-1", "m-2"])).await;

    assert!(cut.fired());
    assert_eq!(answer, Ok(vec!["m-1".to_owned()]));
    assert_eq!(world.outcomes(), [Outcome::Failed, Outcome::Processed]);
    assert_eq!(
        world.deliver(&service, MINUTE, many(["m-1", "m-2"])).await,
        Ok(vec![])
    );
    assert_eq!((world.keys().await, world.effects().await), (2, 2));
}

/// The socket stays open and nothing comes back, as after a freeze behind a firewall.
#[tokio::test]
async fn a_black_holed_connection_is_given_up_in_bounded_time() {
    let world = World::new().await;
    let proxy = world.proxy().await;
    let service = world
        .inbox_behind(&proxy)
        .build()
        .unwrap()
        .text_handler(store_effect);
    assert_eq!(
        world.deliver(&service, MINUTE, one("m-1")).await,
        Ok(vec![])
    );

    proxy.black_hole(true);
    let heal = async {
        while proxy.connections() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        proxy.black_hole(false);
    };
    let (answer, ()) = tokio::join!(world.deliver(&service, MINUTE, one("m-2")), heal);

    assert_eq!(answer, Ok(vec![]));
    assert_eq!(world.effects().await, 2);
}

/// C-06: whoever comes after an invocation that was cancelled, at whatever point of its way, finds neither its
/// transaction nor its half-read replies.
#[tokio::test]
async fn a_cancelled_begin_leaves_no_transaction_to_the_next_invocation() {
    let world = World::new().await;
    let proxy = world.proxy().await;
    let service = world
        .inbox_behind(&proxy)
        .build()
        .unwrap()
        .text_handler(store_effect);
    proxy.set_delay(Duration::from_millis(10));
    let mut cancelled = 0;
    // A round trip takes 20 ms, and a message three of them; then come the ones that connect.
    for patience in (0..160).step_by(7) {
        let id = format!("m-{patience}");
        let invocation = invoke(&service, MINUTE, one(&id));
        let ended = tokio::time::timeout(Duration::from_millis(patience), invocation).await;
        cancelled += u64::from(ended.is_err());
        // The next user of the connection, if there is one left, and then the message again.
        let next = format!("next-{patience}");
        assert_eq!(invoke(&service, MINUTE, one(&next)).await, Ok(vec![]));
        assert_eq!(invoke(&service, MINUTE, one(&id)).await, Ok(vec![]));
        assert_eq!(world.effects().await, world.keys().await);
    }
    assert!(cancelled > 8, "{cancelled}");
    assert_eq!((world.keys().await, world.effects().await), (46, 46));
    world.assert_quiet().await;
}

/// C-08: a cached statement that a migration breaks heals itself.
#[tokio::test]
async fn a_column_added_under_a_warm_function_costs_no_record() {
    let world = World::new().await;
    let service = world.inbox().build().unwrap().text_handler(store_effect);
    assert_eq!(
        world.deliver(&service, MINUTE, one("m-1")).await,
        Ok(vec![])
    );
    let migration = "ALTER TABLE lambda_inbox.inbox ADD COLUMN later text";
    lambda_inbox::sqlx::raw_sql(migration)
        .execute(&mut world.admin().await)
        .await
        .unwrap();
    assert_eq!(
        world.deliver(&service, MINUTE, many(["m-1", "m-2"])).await,
        Ok(vec![])
    );
    assert_eq!(world.effects().await, 2);
}
