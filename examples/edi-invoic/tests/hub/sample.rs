//! The collected interchanges. Their headers are what matters; invoices are put into them here.

use serde_json::Value;

pub(crate) struct Sample {
    pub(crate) id: String,
    pub(crate) raw: String,
    expect: Value,
}

pub(crate) fn samples() -> Vec<Sample> {
    let samples: Vec<Value> = serde_json::from_str(include_str!("../cases/edi.json")).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    samples
        .iter()
        .map(|sample| Sample {
            id: text(&sample["id"]),
            raw: text(&sample["raw"]),
            expect: sample["expect"][0].clone(),
        })
        .collect()
}

/// The sample as it was collected.
pub(crate) fn raw(id: &str) -> String {
    let found = samples().into_iter().find(|sample| sample.id == id);
    found.unwrap().raw
}

/// The sample with one invoice in it.
pub(crate) fn invoic(id: &str) -> String {
    with_messages(&raw(id), &[message(1, "R-1", "119.00")])
}

impl Sample {
    pub(crate) fn is_edifact(&self) -> bool {
        self.text("standard") == "EDIFACT"
    }

    pub(crate) fn is_test(&self) -> bool {
        !self.text("test").is_empty()
    }

    pub(crate) fn control(&self) -> &str {
        self.text("control")
    }

    /// As the hub writes it.
    pub(crate) fn sender(&self) -> String {
        self.party("sender")
    }

    pub(crate) fn receiver(&self) -> String {
        self.party("receiver")
    }

    fn party(&self, role: &str) -> String {
        let part = |name: &str| self.text(&format!("{role}_{name}")).to_owned();
        let parts = [part("id"), part("qualifier"), part("internal")];
        parts.join(":").trim_end_matches(':').to_owned()
    }

    fn text(&self, name: &str) -> &str {
        self.expect[name].as_str().unwrap_or_default()
    }
}

/// The interchange with these messages instead of its own. All samples use the standard's signs.
pub(crate) fn with_messages(raw: &str, messages: &[String]) -> String {
    let trailer = raw.find("UNZ").unwrap();
    let (before, after) = raw.split_at(trailer);
    let header = before.find("UNH").unwrap_or(before.len());
    let count = after.split('+').nth(1).unwrap();
    let trailer = after.replacen(&format!("+{count}+"), &format!("+{}+", messages.len()), 1);
    format!("{}{}{trailer}", &before[..header], messages.concat())
}

/// An INVOIC as a partner writes it. `number` and `amount` go in as they are.
pub(crate) fn message(reference: u32, number: &str, amount: &str) -> String {
    format!(
        "UNH+{reference}+INVOIC:D:96A:UN:EAN008'BGM+380+{number}+9'DTM+137:20260105:102'\
         RFF+ON:4500012345'NAD+SU+4012345000009::9'CUX+2:EUR:4'\
         LIN+1++4000862141404:EN'QTY+47:10'MOA+203:{amount}'PRI+AAA:10'\
         UNS+S'MOA+77:{amount}'MOA+79:{amount}'TAX+7+VAT+++:::19'MOA+124:19'UNT+16+{reference}'"
    )
}
