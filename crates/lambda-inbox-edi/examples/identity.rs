//! Prints the identities of all interchanges on standard input as a JSON array, in order:
//!
//! ```sh
//! cargo run -p lambda-inbox-edi --example identity < orders.edi
//! ```
//!
//! Bytes, not text, are read, so Latin-1 input works. Every object has `standard`,
//! `sender_qualifier`, `sender_id`, `receiver_qualifier`, `receiver_id` and `control`; a missing
//! EDIFACT qualifier is an empty string. `usage` (X12), `test` (EDIFACT 0035), `date_time`,
//! `sender_internal`, `sender_internal_sub`, `receiver_internal` and `receiver_internal_sub` appear
//! where the header has them; `source` and `message_id` are the key with the default options.
//!
//! A refused body prints the reason on standard error and exits with status 1.

use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;

use lambda_inbox_edi::{EdiError, Interchange, KeyOptions, Standard, identities};
use serde_json::{Map, Value};

fn main() -> ExitCode {
    let mut body = Vec::new();
    if let Err(error) = io::stdin().lock().read_to_end(&mut body) {
        eprintln!("standard input cannot be read: {error}");
        return ExitCode::FAILURE;
    }
    match describe(&body) {
        Ok(list) => match writeln!(io::stdout().lock(), "{list:#}") {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(refusal) => {
            eprintln!("{refusal}");
            ExitCode::FAILURE
        }
    }
}

/// The output for a body, as JSON.
pub(crate) fn describe(body: &[u8]) -> Result<Value, EdiError> {
    Ok(identities(body)?.iter().map(object).collect())
}

fn object(interchange: &Interchange) -> Value {
    let options = KeyOptions::default();
    let (sender, receiver) = (interchange.sender(), interchange.receiver());
    let usage = match interchange.standard() {
        Standard::X12 => Some(interchange.usage().code().to_string()),
        Standard::Edifact => None,
    };
    let always = [
        ("standard", interchange.standard().to_string()),
        ("sender_qualifier", sender.qualifier().to_owned()),
        ("sender_id", sender.id().to_owned()),
        ("receiver_qualifier", receiver.qualifier().to_owned()),
        ("receiver_id", receiver.id().to_owned()),
        ("control", interchange.control().to_owned()),
        ("source", interchange.source(&options)),
        ("message_id", interchange.message_id(&options)),
    ];
    let present = [
        ("usage", usage.as_deref()),
        ("test", interchange.test_indicator()),
        ("date_time", interchange.date_time()),
        ("sender_internal", sender.internal()),
        ("sender_internal_sub", sender.internal_sub()),
        ("receiver_internal", receiver.internal()),
        ("receiver_internal_sub", receiver.internal_sub()),
    ];
    let present = present
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?.to_owned())));
    let fields = always.into_iter().chain(present);
    Value::Object(
        fields
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect::<Map<_, _>>(),
    )
}
