//! One batch of a thousand: what is wrong in it goes back, and everything else commits.

use std::collections::BTreeSet;

use lambda_inbox_testkit::event::{Record, event};
use serde_json::Value;

use crate::sale::{self, POISONS};
use crate::shop::{Function, Shop, failures};

const SIZE: usize = 1_000;

/// The `n`th good sale; its MessageId tells which.
pub(crate) fn record(n: usize) -> Record {
    Record::new(sale::good(n)).message_id(sale::id(n))
}

pub(crate) fn good(sales: impl IntoIterator<Item = usize>) -> Value {
    event(sales.into_iter().map(record))
}

#[tokio::test]
async fn one_poison_row_never_takes_the_batch_with_it() {
    for function in Function::BOTH {
        let mut shop = Shop::open(function).await;
        let mut process = shop.start(function).await;
        let mut sent = 0;
        for (poison, body) in POISONS {
            let context = format!("{function:?}: {poison}");
            let mut records: Vec<Record> = (sent..sent + SIZE).map(record).collect();
            records[SIZE / 3] = Record::new(body(sent)).message_id("poison");
            let response = process.invoke(&event(records)).await;
            assert_eq!(failures(&response), ["poison"], "{context}");
            sent += SIZE;
            let batches = (0..sent).filter(|n| n % SIZE != SIZE / 3);
            shop.assert_booked_once(batches, &context).await;
        }
    }
}

#[tokio::test]
async fn all_kinds_of_poison_in_one_batch_go_back_and_nothing_else_does() {
    // So that none has a half for itself at once.
    let place = |kind: usize| 10 + 70 * kind;
    for function in Function::BOTH {
        let mut shop = Shop::open(function).await;
        let mut process = shop.start(function).await;
        let mut records: Vec<Record> = (0..SIZE).map(record).collect();
        let mut good: BTreeSet<usize> = (0..SIZE).collect();
        for (kind, (poison, body)) in POISONS.into_iter().enumerate() {
            records[place(kind)] = Record::new(body(kind)).message_id(poison);
            good.remove(&place(kind));
        }
        let all = event(records);
        let context = format!("{function:?}");
        for _ in 0..2 {
            let response = process.invoke(&all).await;
            let expected = POISONS.map(|(poison, _)| poison);
            assert_eq!(failures(&response), expected, "{context}");
            shop.assert_booked_once(good.clone(), &context).await;
        }
    }
}

#[tokio::test]
async fn what_one_function_has_booked_is_a_duplicate_for_the_other() {
    let mut shop = Shop::open(Function::Bulk).await;
    let mut before = shop.start(Function::Bulk).await;
    let response = before.invoke(&good(0..500)).await;
    assert_eq!(failures(&response), [""; 0]);

    shop.add_trigger().await;
    let mut after = shop.start(Function::Statement).await;
    let response = after.invoke(&good(0..1_000)).await;
    assert_eq!(failures(&response), [""; 0]);
    shop.assert_booked_once(0..1_000, "both").await;
}
