//! Interchanges in one batch do not disturb each other.

use crate::hub::Hub;
use crate::sample::{invoic, message, raw, with_messages};
use lambda_inbox_testkit::event::Record;

#[tokio::test]
async fn a_batch_books_what_is_good_and_reports_the_rest() {
    let mut hub = Hub::open().await;
    let named = |id: &str, number: &str| with_messages(&raw(id), &[message(1, number, "1.00")]);
    let bodies = [
        named("U-01", "R-1"),
        raw("U-08"),
        named("U-02", "R-2"),
        // A resend in the same batch, and the same reference for something else.
        named("U-01", "R-1").replace('\'', "'\r\n"),
        named("U-02", "R-3"),
        invoic("U-12"),
        named("U-04", "R-4"),
    ];
    let expected = [
        "processed",
        "poison",
        "processed",
        "duplicate",
        "mismatch",
        "poison",
        "processed",
    ];
    let records: Vec<Record> = bodies.iter().map(Record::new).collect();
    let verdicts = hub.deliver(records.clone()).await;
    let outcomes: Vec<&str> = verdicts.iter().map(|it| it.outcome.as_str()).collect();
    assert_eq!(outcomes, expected);
    assert_eq!(hub.documents().await, ["R-1", "R-2", "R-4"]);

    let verdicts = hub.deliver(records).await;
    let again = verdicts.iter().map(|it| it.outcome.as_str());
    let expected = expected.map(|it| if it == "processed" { "duplicate" } else { it });
    assert!(again.eq(expected), "{verdicts:?}");
    assert_eq!(hub.documents().await, ["R-1", "R-2", "R-4"]);
}
