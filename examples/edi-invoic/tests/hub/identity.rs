//! What is the same interchange, and what is another one.

use crate::hub::Hub;
use crate::sample::{invoic, message, raw, samples, with_messages};
use lambda_inbox_testkit::event::Record;

#[tokio::test]
async fn every_production_sample_is_booked_under_its_sender_receiver_and_reference() {
    let mut hub = Hub::open().await;
    let production = samples();
    let production = production
        .iter()
        .filter(|it| it.is_edifact() && !it.is_test());
    let mut expected = Vec::new();
    for sample in production {
        let verdict = hub.send(&invoic(&sample.id)).await;
        assert_eq!(verdict.outcome, "processed", "{}: {verdict:?}", sample.id);
        let [control, document, amount, currency] = [sample.control(), "R-1", "119.00", "EUR"];
        expected.push((
            sample.sender(),
            sample.receiver(),
            control.to_owned(),
            document.to_owned(),
            amount.to_owned(),
            currency.to_owned(),
        ));
    }
    assert_eq!(expected.len(), 10);
    assert_eq!(hub.rows().await, expected);
}

#[tokio::test]
async fn the_same_interchange_is_booked_once_however_it_comes_again() {
    let mut hub = Hub::open().await;
    let body = invoic("U-01");
    let wrapped: String = body
        .chars()
        .enumerate()
        // Gateways that wrap at 80 columns are met after the header: one within it is refused.
        .flat_map(|(n, sign)| {
            (n > 80 && n % 80 == 0)
                .then_some("\r\n")
                .into_iter()
                .flat_map(str::chars)
                .chain([sign])
        })
        .collect();
    for (case, again) in [
        ("as it is", body.clone()),
        ("with CRLF after each segment", body.replace('\'', "'\r\n")),
        ("with LF after each segment", body.replace('\'', "'\n")),
        ("hard-wrapped", wrapped),
        (
            "behind a byte order mark and blank lines",
            format!("\u{feff} \r\n\r\n{body}\r\n"),
        ),
        (
            "without its last terminator",
            body.trim_end_matches('\'').to_owned(),
        ),
    ] {
        // In either order: whichever comes first is read and booked alike.
        for [first, second] in [[&body, &again], [&again, &body]] {
            assert_eq!(hub.send(first).await.outcome, "processed", "{case}");
            assert_eq!(hub.send(second).await.outcome, "duplicate", "{case}");
            assert_eq!(hub.documents().await, ["R-1"], "{case}");
            hub.clear().await;
        }
    }
    // The same SQS message, as a redelivery brings it.
    for outcome in ["processed", "duplicate", "duplicate"] {
        let verdicts = hub.deliver([Record::new(&body).message_id("m-1")]).await;
        assert_eq!(verdicts[0].outcome, outcome);
    }
    assert_eq!(hub.documents().await, ["R-1"]);
}

#[tokio::test]
async fn another_sender_receiver_routing_or_reference_is_another_interchange() {
    let mut hub = Hub::open().await;
    let u_01 = invoic("U-01");
    let u_02 = invoic("U-02");
    for (case, first, second) in [
        ("sender", u_01.clone(), invoic("U-08")),
        (
            "sender's qualifier",
            u_01.clone(),
            u_01.replace("SUPPLY:ZZ", "SUPPLY:14"),
        ),
        (
            "receiver",
            u_01.clone(),
            u_01.replace("4012345000009:14", "4055555000007:14"),
        ),
        ("reference", u_01.clone(), u_01.replace("417", "418")),
        (
            "leading zeros of the reference",
            u_02.clone(),
            u_02.replace("00000417", "417"),
        ),
        ("internal routing", u_01.clone(), invoic("U-10")),
        (
            "a released sign",
            invoic("U-04"),
            invoic("U-04").replace("CO?:NORTH", "CO:NORTH"),
        ),
    ] {
        assert_ne!(first, second, "{case}");
        for body in [&first, &second] {
            assert_eq!(hub.send(body).await.outcome, "processed", "{case}");
        }
        for body in [&first, &second] {
            assert_eq!(hub.send(body).await.outcome, "duplicate", "{case}");
        }
        assert_eq!(hub.documents().await, ["R-1", "R-1"], "{case}");
        hub.clear().await;
    }
}

#[tokio::test]
async fn a_reference_that_comes_back_with_other_content_is_reported_and_changes_nothing() {
    let mut hub = Hub::open().await;
    let other =
        |number: &str, amount: &str| with_messages(&raw("U-01"), &[message(1, number, amount)]);
    assert_eq!(hub.send(&invoic("U-01")).await.outcome, "processed");
    for body in [
        other("R-1", "119.01"),
        other("R-2", "119.00"),
        with_messages(
            &raw("U-01"),
            &[message(1, "R-1", "119.00"), message(2, "R-2", "1")],
        ),
        invoic("U-01").replace("260105:0930", "270105:0930"),
        // Not even an invoice: the key alone decides.
        raw("U-01"),
    ] {
        let verdict = hub.send(&body).await;
        assert_eq!(verdict.outcome, "mismatch", "{verdict:?}");
        assert!(verdict.reason.contains("fingerprint"), "{verdict:?}");
    }
    assert_eq!(hub.documents().await, ["R-1"]);
}

#[tokio::test]
async fn a_test_interchange_does_not_count_as_its_production_twin() {
    let mut hub = Hub::open_with(&[("INVOIC_ACCEPT_TEST", "1")]).await;
    let test = invoic("U-12");
    let production = test.replace("++1'", "++0'");
    assert_ne!(test, production);
    for outcome in ["processed", "duplicate"] {
        for body in [&test, &production] {
            assert_eq!(hub.send(body).await.outcome, outcome, "{body}");
        }
    }
    assert_eq!(hub.documents().await, ["R-1", "R-1"]);
}
