//! What a booked row says, to the last digit.

use crate::hub::Hub;
use crate::sample::{message, raw, with_messages};

#[tokio::test]
async fn a_row_has_exactly_the_values_that_were_sent() {
    let mut hub = Hub::open().await;
    for (number, amount, expected) in [
        ("R-1", "119.00", ("R-1", "119.00")),
        ("R-1", "119,5", ("R-1", "119.5")),
        // More digits than any binary float holds.
        ("R-1", "9007199254740993.01", ("R-1", "9007199254740993.01")),
        ("R-1", "0.1", ("R-1", "0.1")),
        ("R-1", "-119.00", ("R-1", "-119.00")),
        ("R?+1?:2?'??", "1", ("R+1:2'?", "1")),
        ("Nº ?7 ß", "1", ("Nº 7 ß", "1")),
    ] {
        let verdict = hub
            .send(&with_messages(&raw("U-04"), &[message(1, number, amount)]))
            .await;
        assert_eq!(
            verdict.outcome, "processed",
            "{number} {amount}: {verdict:?}"
        );
        let row = hub.rows().await.remove(0);
        assert_eq!((row.3.as_str(), row.4.as_str()), expected);
        assert_eq!(
            (row.0.as_str(), row.2.as_str()),
            ("ACME+CO:NORTH:ZZ", "R'1")
        );
        hub.clear().await;
    }
}

#[tokio::test]
async fn type_and_date_are_booked_and_may_be_missing() {
    let mut hub = Hub::open().await;
    let invoice = message(1, "R-1", "1");
    let credit_note = invoice.replace("BGM+380", "BGM+381");
    let bare = message(1, "R-1", "1")
        .replace("BGM+380", "BGM+")
        .replace("DTM+137", "DTM+35");
    for (message, expected) in [
        (invoice, (Some("380"), Some("2026-01-05"))),
        (credit_note, (Some("381"), Some("2026-01-05"))),
        (bare, (None, None)),
    ] {
        hub.send(&with_messages(&raw("U-01"), &[message])).await;
        let (kind, date): (Option<String>, Option<String>) =
            sqlx::query_as("SELECT document_type, document_date::text FROM accounting_entry")
                .fetch_one(&mut hub.connection)
                .await
                .unwrap();
        assert_eq!((kind.as_deref(), date.as_deref()), expected);
        hub.clear().await;
    }
}

/// UNA with other signs than the standard's, in an interchange that says the same.
#[tokio::test]
async fn the_signs_of_una_are_respected() {
    let mut hub = Hub::open().await;
    let standard = with_messages(&raw("U-01"), &[message(1, "R-1", "119,5")]);
    let signs = [('+', '|'), (':', '^'), ('\'', '~')];
    let other = signs.iter().fold(standard, |text, &(from, to)| {
        text.replace(from, &to.to_string())
    });
    let verdict = hub.send(&format!("UNA^|,\\ ~{other}")).await;
    assert_eq!(verdict.outcome, "processed", "{verdict:?}");
    let row = hub.rows().await.remove(0);
    assert_eq!((row.0.as_str(), row.4.as_str()), ("ACMESUPPLY:ZZ", "119.5"));
}

#[tokio::test]
async fn all_invoices_of_an_interchange_are_booked_by_one_statement() {
    let mut hub = Hub::open().await;
    let messages: Vec<String> = (1..=50)
        .map(|n| message(n, &format!("R-{n}"), &format!("{n}.50")))
        .collect();
    assert_eq!(
        hub.send(&with_messages(&raw("U-02"), &messages))
            .await
            .outcome,
        "processed"
    );
    let numbers: Vec<String> = (1..=50).map(|n| format!("R-{n}")).collect();
    assert_eq!(hub.documents().await, numbers);
    let (statements, total): (i64, String) = sqlx::query_as(
        "SELECT count(DISTINCT (xmin::text, cmin::text)), sum(amount)::text FROM accounting_entry",
    )
    .fetch_one(&mut hub.connection)
    .await
    .unwrap();
    assert_eq!((statements, total.as_str()), (1, "1300.00"));
}
