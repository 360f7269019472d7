//! With a network, speed is the number of round trips. Timings are never asserted; these are.

use crate::support::{MINUTE, World, many, store_effect};
use lambda_inbox::sqlx::{Connection, PgConnection};

/// Sends `ids` over a warm connection and counts.
async fn round_trips(world: &World, warm_up: &[&str], ids: &[&str]) -> u64 {
    let proxy = world.proxy().await;
    let service = world
        .inbox_behind(&proxy)
        .build()
        .unwrap()
        .text_handler(store_effect);
    let answer = world
        .deliver(&service, MINUTE, many(warm_up.iter().copied()))
        .await;
    assert_eq!(answer, Ok(vec![]));
    proxy.reset_round_trips();
    let answer = world
        .deliver(&service, MINUTE, many(ids.iter().copied()))
        .await;
    assert_eq!(answer, Ok(vec![]));
    proxy.round_trips()
}

#[tokio::test]
async fn a_fresh_message_takes_two_round_trips_and_the_handlers_own() {
    let world = World::new().await;
    let ids = ["m-1", "m-2", "m-3", "m-4", "m-5"];
    assert_eq!(round_trips(&world, &["m-0"], &ids).await, 5 * (2 + 1));
}

#[tokio::test]
async fn a_duplicate_takes_two_round_trips() {
    let world = World::new().await;
    let ids = ["m-1", "m-2", "m-3", "m-4", "m-5"];
    assert_eq!(round_trips(&world, &ids, &ids).await, 5 * 2);
}

/// No pings, no set-up of ours.
#[tokio::test]
async fn a_first_message_takes_no_set_up_of_the_inboxs_own() {
    let world = World::new().await;
    let proxy = world.proxy().await;
    let _connection = PgConnection::connect_with(&proxy.options(&world.database.options()))
        .await
        .unwrap();
    let connecting = proxy.round_trips();
    proxy.reset_round_trips();

    let service = world
        .inbox_behind(&proxy)
        .build()
        .unwrap()
        .text_handler(store_effect);
    let answer = world.deliver(&service, MINUTE, many(["m-1"])).await;
    assert_eq!(answer, Ok(vec![]));

    // Begin with the claim's PREPARE, claim, effect, settle, and one more for the effect's first use.
    assert_eq!(proxy.round_trips(), connecting + 4 + 1);
}
