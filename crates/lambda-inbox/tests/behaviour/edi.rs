//! Interchanges: the identity of a partner's document, however it travels.

use crate::support::{MINUTE, World, store_id};
use Outcome::{Duplicate, Mismatch, Poison, Processed};
use lambda_inbox::key::Edi;
use lambda_inbox::{Outcome, Report};
use lambda_inbox_testkit::event::{Record, event};
use serde_json::{Value, json};

/// One sample of the collected interchanges.
fn sample(id: &str) -> Value {
    let path = format!("{}/tests/cases/edi.json", env!("CARGO_MANIFEST_DIR"));
    let samples: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let found = samples
        .as_array()
        .unwrap()
        .iter()
        .find(|sample| sample["id"] == id);
    found.unwrap().clone()
}

fn raw(id: &str) -> String {
    sample(id)["raw"].as_str().unwrap().to_owned()
}

async fn reports(strategy: Edi, bodies: impl IntoIterator<Item = String>) -> Vec<Report> {
    let world = World::new().await;
    let service = world
        .inbox()
        .key(strategy)
        .build()
        .unwrap()
        .text_handler(store_id);
    let mut all = Vec::new();
    for body in bodies {
        let event = event([Record::new(body).to_value()]);
        world.deliver(&service, MINUTE, event).await.unwrap();
        all.extend(world.reports());
    }
    all
}

async fn outcomes(strategy: Edi, bodies: impl IntoIterator<Item = String>) -> Vec<Outcome> {
    reports(strategy, bodies)
        .await
        .iter()
        .map(|report| report.outcome)
        .collect()
}

/// Every sample yields the identity that the collection expects, as a key.
#[tokio::test]
async fn every_sample_has_its_identity_for_a_key() {
    let path = format!("{}/tests/cases/edi.json", env!("CARGO_MANIFEST_DIR"));
    let samples: Vec<Value> =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for sample in samples {
        let id = sample["id"].as_str().unwrap();
        let reports = reports(Edi::new(), [raw(id)]).await;
        let expected = sample["expect"].as_array().unwrap();
        let key = reports[0].key.as_ref();
        match expected.first() {
            None => assert_eq!((reports[0].outcome, key), (Poison, None), "{id}"),
            Some(identity) => {
                let key = key.unwrap();
                assert_eq!(reports[0].outcome, Processed, "{id}");
                let control = identity["control"].as_str().unwrap();
                assert_eq!(key.message_id(), control, "{id}");
                for part in [
                    "sender_qualifier",
                    "sender_id",
                    "receiver_qualifier",
                    "receiver_id",
                ] {
                    let value = identity[part].as_str().unwrap().replace(':', "%3A");
                    assert!(key.source().contains(&value), "{id}: {}", key.source());
                }
            }
        }
    }
}

/// F-01, F-07, F-11, F-12, F-14, F-20 and F-25: what is another interchange, and what is the same.
#[tokio::test]
async fn another_receiver_usage_or_routing_is_another_interchange_and_line_ends_are_not() {
    let u_01_to_another = raw("U-01").replace("4012345000009:14", "4055555000007:14");
    let second_group = raw("X-01").replace("000000905", "000000906");
    let cases = [
        ("F-01", raw("X-01"), raw("X-09"), Processed),
        ("F-01", raw("U-01"), u_01_to_another, Processed),
        ("F-07", raw("X-01"), raw("X-04"), Duplicate),
        (
            "F-11",
            raw("U-02"),
            raw("U-02").replace("00000417", "417"),
            Processed,
        ),
        ("F-12", raw("X-01"), raw("X-11"), Processed),
        ("F-14", raw("X-01"), raw("X-13"), Duplicate),
        ("F-20", raw("U-01"), raw("U-10"), Processed),
        ("F-25", raw("X-01"), second_group, Processed),
    ];
    for (case, first, second, outcome) in cases {
        assert_eq!(
            outcomes(Edi::new(), [first, second]).await,
            [Processed, outcome],
            "{case}"
        );
    }
}

/// F-02 and F-04: a number that comes back with other content is loud, with both fingerprints.
#[tokio::test]
async fn a_control_number_used_again_for_other_content_is_a_mismatch() {
    let other = raw("X-01").replace("ST*850*0001~", "ST*850*0001~BEG*00~");
    let third = raw("X-01").replace("ST*850*0001~", "ST*850*0001~BEG*05~");
    let reports = reports(Edi::new(), [raw("X-01"), raw("X-10"), other, third]).await;
    let outcomes: Vec<_> = reports.iter().map(|report| report.outcome).collect();
    assert_eq!(outcomes, [Processed, Mismatch, Mismatch, Mismatch]);
    for report in &reports[1..] {
        let reason = report.reason.as_deref().unwrap();
        let hashes = reason
            .split(|c: char| !c.is_ascii_hexdigit())
            .filter(|w| w.len() == 18);
        assert_eq!(hashes.count(), 2, "{reason}");
    }
}

/// F-02: with date and time in the key, a yearly restart is another interchange.
#[tokio::test]
async fn date_and_time_tell_a_restarted_number_apart() {
    let dated = Edi::new().with_date_time();
    let outcomes = outcomes(dated, [raw("X-01"), raw("X-10"), raw("X-01")]).await;
    assert_eq!(outcomes, [Processed, Processed, Duplicate]);
}

/// F-21: Latin-1 in base64 and UTF-8 as text are one interchange.
#[tokio::test]
async fn an_interchange_is_the_same_in_base64_within_json() {
    let sample = sample("U-14");
    let utf8 = json!({"edi": sample["raw"]}).to_string();
    let latin1 = json!({"edi": sample["raw_base64"]}).to_string();
    let world = World::new().await;
    for (strategy, body, outcome) in [
        (Edi::new().within("/edi"), utf8, Processed),
        (Edi::new().within("/edi").base64(), latin1, Duplicate),
    ] {
        let service = world
            .inbox()
            .key(strategy)
            .build()
            .unwrap()
            .text_handler(store_id);
        let event = event([Record::new(body).to_value()]);
        assert_eq!(world.deliver(&service, MINUTE, event).await, Ok(vec![]));
        assert_eq!(world.outcomes(), [outcome]);
    }
}

/// F-23: what is no interchange is refused with its first bytes alone, and so are two in one body.
#[tokio::test]
async fn what_is_not_one_interchange_is_poison() {
    let bodies = [
        raw("X-19"),
        r#"{"order":"a rather long body with a SECRET in it"}"#.to_owned(),
        "order;amount\n1;a SECRET".to_owned(),
        "UNH+1+ORDERS:D:96A:UN'BGM+SECRET'".to_owned(),
        "GS*PO*ACME*GLOBEX*20260105*SECRET~".to_owned(),
        String::new(),
        raw("X-01") + &raw("X-07"),
        raw("X-01") + &raw("X-01"),
    ];
    for body in bodies {
        let reports = reports(Edi::new(), [body.clone()]).await;
        assert_eq!(reports[0].outcome, Poison, "{body}");
        let reason = reports[0].reason.as_deref().unwrap();
        assert!(reason.contains("no key by Edi"), "{reason}");
        assert!(!reason.contains("SECRET"), "{reason}");
    }
}
