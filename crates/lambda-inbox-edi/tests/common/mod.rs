//! Samples from `cases/edi.json` and headers made to measure.
#![allow(dead_code, reason = "every test binary uses a part of it")]
#![allow(clippy::unwrap_used, reason = "only tests call this")]

use lambda_inbox_edi::{Interchange, KeyOptions, identity};
use serde_json::Value;

/// All samples, in the order of the file.
pub(crate) fn samples() -> Vec<Value> {
    serde_json::from_str(include_str!("../cases/edi.json")).unwrap()
}

/// The text of one sample.
pub(crate) fn sample(id: &str) -> String {
    let samples = samples();
    let found = samples.iter().find(|sample| sample["id"] == id).unwrap();
    found["raw"].as_str().unwrap().to_owned()
}

/// The key of a body that holds one interchange.
pub(crate) fn key(body: impl AsRef<[u8]>) -> (String, String) {
    key_with(body, KeyOptions::default())
}

pub(crate) fn key_with(body: impl AsRef<[u8]>, options: KeyOptions) -> (String, String) {
    key_of(&identity(body.as_ref()).unwrap(), options)
}

pub(crate) fn key_of(interchange: &Interchange, options: KeyOptions) -> (String, String) {
    (
        interchange.source(&options),
        interchange.message_id(&options),
    )
}

/// An X12 interchange of one functional group, number `control`.
pub(crate) fn x12(control: u32) -> String {
    let header = isa("ACMESUPPLY", "123456789", &format!("{control:09}"));
    format!("{header}GS*PO*A*B*20260105*0930*1*X*004010~GE*0*1~IEA*1*{control:09}~")
}

/// An ISA segment with the usual separators.
pub(crate) fn isa(sender: &str, receiver: &str, control: &str) -> String {
    format!(
        "ISA*00*          *00*          *ZZ*{sender:<15}*01*{receiver:<15}\
         *260105*0930*^*00501*{control:<9}*0*P*:~"
    )
}

/// An EDIFACT interchange of one message, number `control`.
pub(crate) fn edifact(control: &str) -> String {
    format!(
        "{}UNH+1+ORDERS:D:96A:UN'UNT+2+1'UNZ+1+{control}'",
        unb(control)
    )
}

/// A UNB segment with the standard separators.
pub(crate) fn unb(control: &str) -> String {
    format!("UNB+UNOC:3+ACMESUPPLY:ZZ+4012345000009:14+260105:0930+{control}'")
}
