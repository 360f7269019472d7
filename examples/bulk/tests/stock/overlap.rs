//! Two environments get batches that have sales, and items, in common, at the same time.

use std::time::Duration;

use lambda_inbox_testkit::event::event;
use serde_json::Value;
use sqlx::Connection;

use crate::batch::{good, record};
use crate::sale::{ITEMS, id, item};
use crate::shop::{CLAIM_WAIT, Function, Shop, failures, lock_item};

const NONE: [&str; 0] = [];
/// Of a batch.
const SIZE: usize = 400;
const HALF: usize = SIZE / 2;

#[tokio::test]
async fn batches_that_overlap_count_each_sale_once_and_lose_none() {
    for function in Function::BOTH {
        let context = format!("{function:?}");
        let mut shop = Shop::open(function).await;
        let mut left = shop.start(function).await;
        let mut right = shop.start(function).await;
        for round in 0..5 {
            let start = round * 3 * HALF;
            let first = good(start..start + SIZE);
            // In the other order, and half of it in both.
            let second = (start + HALF..start + HALF + SIZE).rev();
            let second = event(second.map(record));
            let both = tokio::join!(left.invoke(&first), right.invoke(&second));
            // A sale that the other one had under way may come back, and is then done.
            for (event, response) in [(&first, both.0), (&second, both.1)] {
                if failures(&response) != NONE {
                    assert_eq!(failures(&left.invoke(event).await), NONE, "{context}");
                }
            }
            shop.assert_booked_once(0..start + 3 * HALF, &context).await;
        }
    }
}

#[tokio::test]
async fn a_sale_that_another_delivery_has_under_way_goes_back_and_holds_up_no_other() {
    for function in Function::BOTH {
        let context = format!("{function:?}");
        let mut shop = Shop::open(function).await;
        let mut left = shop.start(function).await;
        let mut right = shop.start(function).await;
        let mut other = shop.connect().await;
        let mut lock = other.begin().await.unwrap();
        lock_item(&mut lock, &item(0)).await;

        let is_shared = |n: &usize| n.is_multiple_of(ITEMS);
        let shared: Vec<usize> = (0..SIZE).filter(is_shared).collect();
        let under_way: Value = good(shared.clone());
        let all = good(0..SIZE);
        let meanwhile = async {
            shop.wait_for_waiting_backends(1).await;
            let reported = failures(&right.invoke(&all).await);
            let expected: Vec<String> = shared.iter().map(|n| id(*n)).collect();
            assert_eq!(reported, expected, "{context}");
            let others = (0..SIZE).filter(|n| !is_shared(n));
            shop.assert_booked_once(others, &context).await;
            lock.rollback().await.unwrap();
        };
        let (response, ()) = tokio::join!(left.invoke(&under_way), meanwhile);
        assert_eq!(failures(&response), NONE, "{context}");
        assert_eq!(failures(&right.invoke(&all).await), NONE, "{context}");
        shop.assert_booked_once(0..SIZE, &context).await;
    }
}

/// Only a claim's wait is short. What the effect waits for is no other delivery.
#[tokio::test]
async fn a_batch_that_waits_for_a_locked_item_is_booked_when_it_is_free() {
    for function in Function::BOTH {
        let context = format!("{function:?}");
        let mut shop = Shop::open(function).await;
        let mut process = shop.start(function).await;
        let mut other = shop.connect().await;
        let mut lock = other.begin().await.unwrap();
        lock_item(&mut lock, &item(7)).await;

        let unlock = async {
            shop.wait_for_waiting_backends(1).await;
            tokio::time::sleep(2 * CLAIM_WAIT + Duration::from_millis(100)).await;
            lock.rollback().await.unwrap();
        };
        let event = good(0..SIZE);
        let (response, ()) = tokio::join!(process.invoke(&event), unlock);
        assert_eq!(failures(&response), NONE, "{context}");
        shop.assert_booked_once(0..SIZE, &context).await;
    }
}
