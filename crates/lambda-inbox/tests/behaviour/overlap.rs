//! Two deliveries of one message at the same time.

use crate::support::{MINUTE, World, invoke, meeting, one, store_effect, store_id};
use lambda_inbox::Outcome;
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test]
async fn the_second_delivery_takes_over_where_the_first_rolls_back() {
    let world = World::new().await;
    let (here, there) = meeting(Err("on purpose"));
    let first = world.inbox().build().unwrap().text_handler(there);
    let patient = world
        .inbox()
        .claim_wait(MINUTE)
        .build()
        .unwrap()
        .text_handler(store_effect);
    let second = async {
        here.arrived().await;
        let let_go = async {
            world.until_someone_waits_for_a_lock().await;
            here.go_on();
        };
        tokio::join!(invoke(&patient, MINUTE, one("m-1")), let_go).0
    };

    let (first, second) = tokio::join!(invoke(&first, MINUTE, one("m-1")), second);

    assert_eq!(first, Ok(vec!["m-1".to_owned()]));
    assert_eq!(second, Ok(vec![]));
    assert_eq!((world.keys().await, world.effects().await), (1, 1));
    world.assert_quiet().await;
}

#[tokio::test]
async fn the_second_delivery_is_a_duplicate_where_the_first_commits_meanwhile() {
    let world = World::new().await;
    let (here, there) = meeting(Ok(()));
    let first = world.inbox().build().unwrap().text_handler(there);
    let patient = world
        .inbox()
        .claim_wait(MINUTE)
        .build()
        .unwrap()
        .text_handler(store_effect);
    let second = async {
        here.arrived().await;
        let let_go = async {
            world.until_someone_waits_for_a_lock().await;
            here.go_on();
        };
        tokio::join!(invoke(&patient, MINUTE, one("m-1")), let_go).0
    };

    let (first, second) = tokio::join!(invoke(&first, MINUTE, one("m-1")), second);

    assert_eq!((first, second), (Ok(vec![]), Ok(vec![])));
    // Which of the two hears of the commit first is up to the scheduler.
    let outcomes = world.outcomes();
    assert_eq!(outcomes.len(), 2);
    assert!(outcomes.contains(&Outcome::Processed) && outcomes.contains(&Outcome::Duplicate));
    assert_eq!((world.keys().await, world.effects().await), (1, 1));
    world.assert_quiet().await;
}

/// two overlapping runs leave one side effect.
#[tokio::test]
async fn the_second_delivery_is_reported_as_busy_where_the_first_hangs() {
    let world = World::new().await;
    let (here, there) = meeting(Ok(()));
    let first = world.inbox().build().unwrap().text_handler(there);
    let impatient = world.inbox().build().unwrap().text_handler(store_effect);
    let second = async {
        here.arrived().await;
        let asked = Instant::now();
        let answer = invoke(&impatient, MINUTE, one("m-1")).await;
        let waited = asked.elapsed();
        here.go_on();
        (answer, waited)
    };

    let (first, (second, waited)) = tokio::join!(invoke(&first, MINUTE, one("m-1")), second);

    assert_eq!(first, Ok(vec![]));
    assert_eq!(second, Ok(vec!["m-1".to_owned()]));
    // The bound is the claim's wait of 250 ms; a wait for the holder would have lasted for ever.
    assert!(waited < Duration::from_secs(30), "{waited:?}");
    assert_eq!(world.outcomes(), [Outcome::Busy, Outcome::Processed]);
    assert_eq!((world.keys().await, world.effects().await), (1, 1));
    assert_eq!(invoke(&impatient, MINUTE, one("m-1")).await, Ok(vec![]));
    assert_eq!(world.outcomes(), [Outcome::Duplicate]);
}

/// B-13: done, but the delete was lost: each further delivery must let SQS delete it.
#[tokio::test]
async fn a_committed_message_is_a_success_however_often_it_comes() {
    let world = World::new().await;
    let service = world.inbox().build().unwrap().text_handler(store_effect);
    for _ in 0..6 {
        assert_eq!(
            world.deliver(&service, MINUTE, one("m-1")).await,
            Ok(vec![])
        );
    }
    assert_eq!((world.keys().await, world.effects().await), (1, 1));
}

/// B-07: two functions, one table, one message: both have their effect.
#[tokio::test]
async fn each_consumer_has_its_own_effect() {
    let world = World::new().await;
    let options = world.database.options();
    for consumer in ["payments", "mailing", "payments"] {
        let inbox = lambda_inbox::Inbox::builder(consumer, options.clone())
            .build()
            .unwrap();
        let service = inbox.text_handler(store_id);
        assert_eq!(
            world.deliver(&service, MINUTE, one("m-1")).await,
            Ok(vec![]),
            "{consumer}"
        );
    }
    assert_eq!((world.keys().await, world.effects().await), (2, 2));
}
