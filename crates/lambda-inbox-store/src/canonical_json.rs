//! Relays re-serialise JSON: they reorder fields and change white space. The form written here is
//! blind to both, and to nothing else: numbers stay as they were written, because a number that
//! passes through a float is another number.

use serde_json::value::RawValue;
use std::borrow::Cow;

/// As deep as serde_json itself goes; deeper bodies are hashed as bytes.
const DEPTH_MAX: usize = 128;

/// Writes the canonical form of `text` to `out`: no white space, fields sorted by name, strings with
/// one spelling for each character. Equal field names keep their order.
///
/// Returns `None`, with `out` in an unspecified state, where `text` is not JSON, or not JSON whose
/// strings are Unicode, or is nested deeper than 128.
pub(crate) fn write(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let text = text.trim_ascii();
    match text.as_bytes().first()? {
        // Reading the fields or elements proves that the text is JSON.
        b'{' | b'[' => write_value(text, DEPTH_MAX, out),
        _ => write_value(
            serde_json::from_str::<&RawValue>(text).ok()?.get(),
            DEPTH_MAX,
            out,
        ),
    }
}

fn write_value(text: &str, depth: usize, out: &mut Vec<u8>) -> Option<()> {
    match text.as_bytes().first()? {
        b'{' => write_object(text, depth.checked_sub(1)?, out),
        b'[' => write_array(text, depth.checked_sub(1)?, out),
        b'"' => {
            let Text(string) = serde_json::from_str(text).ok()?;
            write_string(&string, out)
        }
        _ => {
            out.extend_from_slice(text.as_bytes());
            Some(())
        }
    }
}

fn write_object(text: &str, depth: usize, out: &mut Vec<u8>) -> Option<()> {
    let Fields(mut fields) = serde_json::from_str(text).ok()?;
    // A stable sort: fields of one name keep their order, so that {"a":1,"a":2} stays what it is.
    fields.sort_by(|(a, _), (b, _)| a.cmp(b));
    out.push(b'{');
    for (index, (name, value)) in fields.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(name, out)?;
        out.push(b':');
        write_value(value.get(), depth, out)?;
    }
    out.push(b'}');
    Some(())
}

fn write_array(text: &str, depth: usize, out: &mut Vec<u8>) -> Option<()> {
    let values: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    out.push(b'[');
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_value(value.get(), depth, out)?;
    }
    out.push(b']');
    Some(())
}

fn write_string(string: &str, out: &mut Vec<u8>) -> Option<()> {
    serde_json::to_writer(&mut *out, string).ok()
}

/// A string that is copied only where it has escapes.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// An object's fields in the order written; a map would lose repeated names.
struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> serde::Deserialize<'de> for Fields<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::with_capacity(map.size_hint().unwrap_or(0));
                while let Some((Text(name), value)) = map.next_entry()? {
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> Option<String> {
        let mut out = Vec::new();
        write(text, &mut out)?;
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn field_order_white_space_and_spelling_of_characters_do_not_matter() {
        let cases = [
            (
                r#"{ "b" : 2,"a": [ 1 , {"d":4,"c":3} ] }"#,
                r#"{"a":[1,{"c":3,"d":4}],"b":2}"#,
            ),
            (r#""\u0041\/\u00e9""#, "\"A/\u{e9}\""),
            ("  null\n", "null"),
            (r#"{"a":"left\u0000right"}"#, r#"{"a":"left\u0000right"}"#),
        ];
        for (text, expected) in cases {
            assert_eq!(canonical(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn numbers_and_repeated_fields_stay_as_written() {
        for text in [
            r#"{"id":12345678901234567890123}"#,
            "1e2",
            "100",
            "-0",
            r#"{"a":1,"a":2}"#,
        ] {
            assert_eq!(canonical(text).as_deref(), Some(text));
        }
    }

    #[test]
    fn what_is_not_json_has_no_canonical_form() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let half_a_surrogate = r#"{"note":"\ud83d"}"#;
        for text in ["", "{", "UNB+UNOA", "1 2", half_a_surrogate, &deep] {
            assert_eq!(canonical(text), None, "{text}");
        }
    }
}
