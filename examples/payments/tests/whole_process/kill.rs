//! SIGKILL in the middle of an invocation, at chosen points and at random ones.

use std::future::{Future, pending};
use std::time::Duration;

use lambda_inbox_testkit::consumer::Invocation;
use lambda_inbox_testkit::event::event;
use lambda_inbox_testkit::runtime::LocalRuntime;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::bank::{Bank, NONE, failures, payment, shop};

/// Longer than any test: a reply that is never to arrive.
const NEVER: Duration = Duration::from_secs(600);

/// Invokes the function and kills it as soon as `point` is reached.
async fn killed_at(
    function: &mut LocalRuntime,
    event: &Value,
    point: impl Future<Output = ()>,
) -> Invocation {
    let killer = function.killer();
    let kill = async {
        point.await;
        killer.kill();
        pending().await
    };
    tokio::select! {
        () = kill => unreachable!("it is pending"),
        invocation = function.invoke(event) => invocation,
    }
}

/// B-10 among them: killed between claim and commit, delivered again at once.
#[tokio::test]
async fn a_kill_before_commit_leaves_nothing_and_the_next_delivery_books() {
    for (point, pattern) in [
        ("before the transaction", "BEGIN ISOLATION"),
        ("before the claim", "set_config"),
        ("between claim and effect", "UPDATE account"),
        ("in the middle of the effect", "INSERT INTO payment"),
        ("between effect and commit", "; COMMIT"),
    ] {
        let mut bank = Bank::open().await;
        let mut function = bank.function().start().await.unwrap();
        let event = event([payment(1)]);

        let hold = bank.proxy.hold_before(pattern.as_bytes());
        let first = killed_at(&mut function, &event, hold.held()).await;
        assert_eq!(first, Invocation::Crashed, "{point}");
        bank.assert_booked_once([]).await;

        assert_eq!(failures(function.invoke(&event).await), NONE, "{point}");
        bank.assert_booked_once([1]).await;
        assert_eq!(failures(function.invoke(&event).await), NONE, "{point}");
        bank.assert_booked_once([1]).await;
    }
}

#[tokio::test]
async fn a_kill_after_commit_and_before_the_response_makes_the_next_delivery_a_duplicate() {
    let mut bank = Bank::open().await;
    let mut function = bank.function().start().await.unwrap();
    let event = event([payment(1)]);

    let hold = bank.proxy.hold_before(b"; COMMIT");
    let committed = async {
        hold.held().await;
        // What is held has its time already, so it leaves at once; the reply does not come back.
        bank.proxy.set_delay(NEVER);
        hold.release();
        bank.wait_until_booked(1).await;
    };
    let first = killed_at(&mut function, &event, committed).await;
    assert_eq!(first, Invocation::Crashed);
    bank.assert_booked_once([1]).await;

    bank.proxy.set_delay(Duration::ZERO);
    assert_eq!(failures(function.invoke(&event).await), NONE);
    bank.assert_booked_once([1]).await;
}

#[tokio::test]
async fn a_kill_in_the_middle_of_a_batch_keeps_what_had_committed_and_only_that() {
    let mut bank = Bank::open().await;
    let mut function = bank.function().start().await.unwrap();
    let event = event((1..=3).map(payment));

    let hold = bank.proxy.hold_before(shop(2).as_bytes());
    let first = killed_at(&mut function, &event, hold.held()).await;
    assert_eq!(first, Invocation::Crashed);
    bank.assert_booked_once([1]).await;

    assert_eq!(failures(function.invoke(&event).await), NONE);
    bank.assert_booked_once(1..=3).await;
    assert_eq!(function.starts(), 2);
}

/// E-17, in small.
#[tokio::test]
async fn kills_at_random_points_leave_key_and_effect_always_both_or_none() {
    const SEED: u64 = 17;
    const ROUNDS: usize = 20;
    const BATCH: usize = 10;
    // With six round trips a payment, a batch takes longer than the longest wait.
    const ONE_WAY: Duration = Duration::from_micros(500);
    const WAIT_MAX: Duration = Duration::from_millis(60);

    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut bank = Bank::open().await;
    bank.proxy.set_delay(ONE_WAY);
    let mut function = bank.function().start().await.unwrap();
    let mut crashes = 0;
    for round in 0..ROUNDS {
        let wait = random.random_range(Duration::ZERO..WAIT_MAX);
        let event = event((0..BATCH).map(|n| payment(round * BATCH + n)));

        let began = bank.proxy.hold_before(b"BEGIN ISOLATION");
        let point = async {
            began.held().await;
            began.release();
            tokio::time::sleep(wait).await;
        };
        let first = killed_at(&mut function, &event, point).await;
        crashes += usize::from(first == Invocation::Crashed);
        assert_eq!(
            bank.halves().await,
            NONE,
            "seed {SEED}, round {round}, after {wait:?}"
        );

        assert_eq!(failures(function.invoke(&event).await), NONE);
        bank.assert_booked_once(0..(round + 1) * BATCH).await;
    }
    assert!(
        crashes > ROUNDS / 2,
        "only {crashes} kills met an invocation"
    );
}
