//! As much as one event can hold, within the smallest memory that Lambda sells.

use lambda_inbox_testkit::event::{Record, event};
use lambda_inbox_testkit::runtime::LocalRuntime;
use serde_json::{Value, json};

use crate::sale;
use crate::shop::{Function, Shop, failures};

const KIB: usize = 1024;
const SIZE: usize = 1_000;
/// What makes 6 MB of a thousand records, which is the limit of an invocation's payload.
const NOTE_BYTES: usize = 5 * KIB;
const BAD: usize = 700;

/// With one more field, which the functions do not know.
fn record(n: usize) -> Record {
    let mut body: Value = serde_json::from_str(&sale::good(n)).unwrap();
    body["note"] = json!("x".repeat(NOTE_BYTES));
    if n == BAD {
        body["quantity"] = json!(-1);
    }
    Record::new(body.to_string()).message_id(sale::id(n))
}

#[tokio::test]
async fn a_thousand_records_of_six_megabytes_fit_into_the_smallest_memory() {
    for function in Function::BOTH {
        let context = format!("{function:?}");
        let mut shop = Shop::open(function).await;
        let mut process = shop.start(function).await;
        let full = event((0..SIZE).map(record));
        let bytes = full.to_string().len();
        assert!((5_500 * KIB..6 * KIB * KIB).contains(&bytes), "{bytes}");
        let response = process.invoke(&full).await;
        assert_eq!(failures(&response), [sale::id(BAD)], "{context}");
        let good = (0..SIZE).filter(|n| *n != BAD);
        shop.assert_booked_once(good, &context).await;
        assert_small(&process, &context);
    }
}

/// Lambda's smallest size.
#[cfg(target_os = "linux")]
fn assert_small(process: &LocalRuntime, context: &str) {
    const MEMORY_MAX: usize = 128 * KIB * KIB;
    let status = format!("/proc/{}/status", process.pid().unwrap());
    let status = std::fs::read_to_string(status).unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB"))
        .unwrap();
    let peak = KIB * peak.trim().parse::<usize>().unwrap();
    assert!(peak < MEMORY_MAX, "{context}: {peak} bytes at the peak");
}

#[cfg(not(target_os = "linux"))]
fn assert_small(_process: &LocalRuntime, _context: &str) {}
