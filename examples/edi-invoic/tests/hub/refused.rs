//! What is not booked: reported for good, told by message and segment, and without a trace.

use crate::hub::Hub;
use crate::sample::{invoic, message, raw, samples, with_messages};

/// In what the cases send, and nowhere in what the hub says of it.
const SECRET: &str = "SECRET";

/// Bodies that are never booked, each with a part of the reason.
pub(crate) fn refused() -> Vec<(String, &'static str)> {
    let one = |message: String| with_messages(&raw("U-01"), &[message]);
    let good = || message(1, "R-1", "119.00");
    let second = message(2, SECRET, SECRET);
    let no_date = good().replace("20260105", SECRET);
    vec![
        (raw("U-01"), "the interchange holds ORDERS and no INVOIC"),
        (
            raw("U-11"),
            "the interchange holds no message and no INVOIC",
        ),
        (
            raw("X-01"),
            "this is an X12 interchange, and the hub books EDIFACT invoices",
        ),
        (raw("X-19"), "no key by Edi"),
        (format!("{{\"an\":\"order, {SECRET}\"}}"), "no key by Edi"),
        (invoic("U-01") + &invoic("U-08"), "no key by Edi"),
        (
            one(good().replace("BGM+380+R-1+9'", "FTX+AAI'")),
            "message 1: BGM: it is missing",
        ),
        (
            one(good().replace("R-1", "")),
            "message 1: BGM: the document number (1004)",
        ),
        (
            one(no_date),
            "message 1: DTM: the date (137) cannot be read",
        ),
        (
            one(good().replace("MOA+77", "MOA+39")),
            "message 1: MOA: the summary has no total",
        ),
        (
            one(message(1, SECRET, "1.190,00")),
            "message 1: MOA: the total (5004) is not an amount",
        ),
        (
            one(good().replace("CUX+2", "CUX+3")),
            "message 1: MOA: the total has no currency",
        ),
        (
            one(good().replace("UNS+S'", "CNT+2'")),
            "message 1: UNS: it is missing",
        ),
        (
            one(good().replace("UNT+16", "UNT+17")),
            "message 1: UNT: it counts other segments",
        ),
        (
            with_messages(&raw("U-01"), &[good(), second]),
            "message 2: MOA: the total (5004) is not an amount",
        ),
        (
            invoic("U-01").replace("UNZ+1+417'", ""),
            "not whole: UNZ: it is missing",
        ),
        (
            invoic("U-01").replace("UNZ+1", "UNZ+2"),
            "not whole: UNZ: it counts other messages",
        ),
        (invoic("U-12"), "this is a test interchange (UNB 0035)"),
    ]
}

#[tokio::test]
async fn what_cannot_be_booked_is_poison_with_a_reason_that_quotes_nothing() {
    let mut hub = Hub::open().await;
    for (body, reason) in refused() {
        let verdict = hub.send(&body).await;
        assert_eq!(verdict.outcome, "poison", "{body}: {verdict:?}");
        assert!(
            verdict.reason.contains(reason),
            "{verdict:?} is not: {reason}"
        );
    }
    assert_eq!(hub.rows().await, []);
    assert!(!hub.log().contains(SECRET), "the log quotes a body");
    // None of them has used up the reference.
    assert_eq!(hub.send(&invoic("U-01")).await.outcome, "processed");
}

#[tokio::test]
async fn test_interchanges_are_booked_only_where_they_are_to_be() {
    for (variables, outcome) in [
        (&[] as &[(&str, &str)], "poison"),
        (&[("INVOIC_ACCEPT_TEST", "0")], "poison"),
        (&[("INVOIC_ACCEPT_TEST", "")], "poison"),
        (&[("INVOIC_ACCEPT_TEST", "1")], "processed"),
    ] {
        let mut hub = Hub::open_with(variables).await;
        for sample in samples()
            .iter()
            .filter(|sample| sample.is_test() && sample.is_edifact())
        {
            let verdict = hub.send(&invoic(&sample.id)).await;
            assert_eq!(verdict.outcome, outcome, "{variables:?} {}", sample.id);
        }
        // The other codes of 0035 are kinds of tests too.
        let verdict = hub
            .send(
                &invoic("U-12")
                    .replace("++1'", "++3'")
                    .replace("REF77", "REF78"),
            )
            .await;
        assert_eq!(verdict.outcome, outcome, "{variables:?}");
    }
}
