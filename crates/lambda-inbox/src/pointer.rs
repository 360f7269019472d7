//! JSON pointers (RFC 6901) on JSON text, without a value tree: a number that passes through a float is
//! another number.

use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// A checked pointer such as `/order/id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pointer {
    tokens: Vec<String>,
}

/// Why a pointer has no value in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotFound {
    /// The text is not JSON.
    NotJson,
    /// Nothing stands there.
    Missing,
    /// A field name on the way stands twice in its object, and parsers differ in which one they take.
    Ambiguous,
}

impl Pointer {
    /// `None` where the text is not a pointer: it is empty or begins with a slash, and `~` stands only
    /// in `~0` and `~1`.
    pub(crate) fn new(pointer: &str) -> Option<Self> {
        if pointer.is_empty() {
            return Some(Self { tokens: Vec::new() });
        }
        let tokens = pointer
            .strip_prefix('/')?
            .split('/')
            .map(unescape)
            .collect::<Option<_>>()?;
        Some(Self { tokens })
    }

    /// The value at the pointer, as written.
    pub(crate) fn find<'a>(&self, json: &'a str) -> Result<&'a RawValue, NotFound> {
        let mut value: &RawValue = serde_json::from_str(json).map_err(|_| NotFound::NotJson)?;
        for token in &self.tokens {
            value = match value.get().as_bytes().first() {
                Some(b'{') => field(value, token)?,
                Some(b'[') => element(value, token)?,
                _ => return Err(NotFound::Missing),
            };
        }
        Ok(value)
    }
}

fn unescape(token: &str) -> Option<String> {
    let mut out = String::with_capacity(token.len());
    let mut characters = token.chars();
    while let Some(c) = characters.next() {
        out.push(match c {
            '~' => match characters.next()? {
                '0' => '~',
                '1' => '/',
                _ => return None,
            },
            plain => plain,
        });
    }
    Some(out)
}

fn field<'a>(object: &'a RawValue, name: &str) -> Result<&'a RawValue, NotFound> {
    let mut deserializer = serde_json::Deserializer::from_str(object.get());
    let found = deserializer
        .deserialize_map(Field { name })
        .map_err(|_| NotFound::NotJson)?;
    match found.as_slice() {
        [] => Err(NotFound::Missing),
        [value] => Ok(value),
        _ => Err(NotFound::Ambiguous),
    }
}

/// RFC 6901, section 4: digits without a leading zero.
fn element<'a>(array: &'a RawValue, token: &str) -> Result<&'a RawValue, NotFound> {
    let digits = token.bytes().all(|b| b.is_ascii_digit());
    let index: usize = match token.parse() {
        Ok(index) if digits && (token == "0" || !token.starts_with('0')) => index,
        _ => return Err(NotFound::Missing),
    };
    let elements: Vec<&RawValue> =
        serde_json::from_str(array.get()).map_err(|_| NotFound::NotJson)?;
    elements.get(index).copied().ok_or(NotFound::Missing)
}

/// Collects every value of one field.
struct Field<'n> {
    name: &'n str,
}

impl<'de> Visitor<'de> for Field<'_> {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            if name == self.name {
                found.push(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RFC: &str = r#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6,
        " ":7,"m~n":8,"order":{"id":12345678901234567890123}}"#;

    /// RFC 6901, section 5.
    #[test]
    fn the_examples_of_the_standard_are_found() {
        let cases = [
            ("/foo", r#"["bar","baz"]"#),
            ("/foo/0", r#""bar""#),
            ("/", "0"),
            ("/a~1b", "1"),
            ("/c%d", "2"),
            ("/e^f", "3"),
            ("/g|h", "4"),
            ("/i\\j", "5"),
            ("/k\"l", "6"),
            ("/ ", "7"),
            ("/m~0n", "8"),
            ("/order/id", "12345678901234567890123"),
        ];
        for (pointer, value) in cases {
            let found = Pointer::new(pointer).unwrap().find(RFC).map(RawValue::get);
            assert_eq!(found, Ok(value), "{pointer}");
        }
        assert_eq!(
            Pointer::new("").unwrap().find("7").map(RawValue::get),
            Ok("7")
        );
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        for pointer in [
            "/bar",
            "/foo/2",
            "/foo/-",
            "/foo/00",
            "/foo/+1",
            "/foo/0/x",
            "/order/id/x",
        ] {
            let found = Pointer::new(pointer).unwrap().find(RFC).map(RawValue::get);
            assert_eq!(found, Err(NotFound::Missing), "{pointer}");
        }
        let id = Pointer::new("/id").unwrap();
        let twice = id.find(r#"{"id":1,"id":2}"#).map(RawValue::get);
        assert_eq!(twice, Err(NotFound::Ambiguous));
        for text in ["", "nope", r#"{"id":"#] {
            assert_eq!(
                id.find(text).map(RawValue::get),
                Err(NotFound::NotJson),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_not_a_pointer_is_refused() {
        for pointer in ["order", "order/id", "/a~2", "/a~", "$.order"] {
            assert_eq!(Pointer::new(pointer), None, "{pointer}");
        }
    }
}
