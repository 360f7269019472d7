//! Every sample of the field-case collection yields exactly the identities it must.

#![allow(clippy::unwrap_used, reason = "the helpers are part of the tests")]

mod common;

#[path = "../examples/identity.rs"]
#[allow(dead_code, reason = "its main runs as an example")]
mod example;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The sample as text, and as the bytes of its own encoding where it has them.
fn bodies(sample: &Value) -> Vec<Vec<u8>> {
    let text = sample["raw"].as_str().unwrap().as_bytes().to_vec();
    let bytes = sample["raw_base64"]
        .as_str()
        .map(|encoded| STANDARD.decode(encoded).unwrap());
    std::iter::once(text).chain(bytes).collect()
}

/// Fields that `expected` does not name may be there.
fn agree(actual: &Value, expected: &Value) -> bool {
    expected
        .as_object()
        .unwrap()
        .iter()
        .all(|(name, value)| actual.get(name) == Some(value))
}

#[test]
fn every_sample_yields_the_identities_listed_for_it() {
    let mut bodies_read = 0;
    for sample in common::samples() {
        let expected = sample["expect"].as_array().unwrap();
        for body in bodies(&sample) {
            bodies_read += 1;
            let id = &sample["id"];
            match example::describe(&body) {
                Ok(actual) => {
                    let actual = actual.as_array().unwrap();
                    assert!(
                        !expected.is_empty(),
                        "{id} must be refused, gave {actual:?}"
                    );
                    assert_eq!(actual.len(), expected.len(), "{id}: {actual:?}");
                    let pairs = actual.iter().zip(expected);
                    for (actual, expected) in pairs {
                        assert!(agree(actual, expected), "{id}: {actual} is not {expected}");
                    }
                }
                Err(error) => assert!(expected.is_empty(), "{id} was refused: {error}"),
            }
        }
    }
    assert_eq!(bodies_read, 26, "25 samples, one of them in two encodings");
}

#[test]
fn the_three_readers_agree_on_every_sample() {
    for sample in common::samples() {
        for body in bodies(&sample) {
            let all = lambda_inbox_edi::identities(&body);
            let one = lambda_inbox_edi::identity(&body);
            assert_eq!(one.clone().map(|it| vec![it]), all, "{}", sample["id"]);
            assert_eq!(
                lambda_inbox_edi::first_header(&body),
                one,
                "{}",
                sample["id"]
            );
        }
    }
}
