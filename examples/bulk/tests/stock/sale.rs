//! What is sent.

use serde_json::{Value, json};

/// Every batch has many sales of each.
pub(crate) const ITEMS: usize = 20;

/// The `n`th sale, of 1 to 7 pieces.
pub(crate) fn good(n: usize) -> String {
    body(&id(n), &item(n), &json!(quantity(n))).to_string()
}

pub(crate) fn id(n: usize) -> String {
    format!("sale-{n}")
}

pub(crate) fn item(n: usize) -> String {
    format!("item-{}", n % ITEMS)
}

pub(crate) fn quantity(n: usize) -> i64 {
    1 + (n % 7) as i64
}

/// The body of the `n`th poison of a kind.
pub(crate) type Poison = fn(usize) -> String;

/// What both functions refuse.
pub(crate) const POISONS: [(&str, Poison); 7] = [
    ("an unknown item", |n| {
        body(&id(n), &format!("unknown-{n}"), &json!(1)).to_string()
    }),
    ("a negative quantity", |n| {
        body(&id(n), &item(n), &json!(-1)).to_string()
    }),
    ("a quantity that is no number", |n| {
        body(&id(n), &item(n), &json!("few")).to_string()
    }),
    ("a quantity that no bigint holds", |n| {
        format!(
            r#"{{"sale_id":"{}","item":"{}","quantity":1e19}}"#,
            id(n),
            item(n)
        )
    }),
    ("no item", |n| {
        json!({ "sale_id": id(n), "quantity": 1 }).to_string()
    }),
    ("no JSON", |n| format!("one {} for sale {n}", item(n))),
    // Valid JSON, and no text of Postgres's.
    ("a NUL", |n| {
        body(&format!("sale\0{n}"), &item(n), &json!(1)).to_string()
    }),
];

fn body(id: &str, item: &str, quantity: &Value) -> Value {
    json!({ "sale_id": id, "item": item, "quantity": quantity })
}
