//! A key that is wrong loses or doubles money, so a key that could be wrong is refused before the
//! database sees it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// The most bytes that `source` and `message_id` may each have. Longer ones are refused, never cut
/// or hashed: the index holds at most about 2,700 bytes a row, and a cut key is a shared key.
pub const PART_BYTES_MAX: usize = 512;

/// The most bytes of a consumer's name.
const CONSUMER_BYTES_MAX: usize = 128;

/// The stable, declared name of a handler. It is part of every key: two consumers of one message
/// each have their own effect.
///
/// Never derive it from a type's name, a function's alias or a deployment: whoever renames a
/// consumer forgets what it has processed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Consumer(Arc<str>);

impl Consumer {
    /// Takes 1 to 128 ASCII letters, digits and `-`, `_`, `.`, `:`, `/`.
    ///
    /// # Errors
    /// [`KeyError::Consumer`] for anything else.
    pub fn new(name: impl Into<String>) -> Result<Self, KeyError> {
        let name = name.into();
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:/".contains(c);
        if name.is_empty() || name.len() > CONSUMER_BYTES_MAX || !name.chars().all(allowed) {
            return Err(KeyError::Consumer { name });
        }
        Ok(Self(name.into()))
    }

    /// The name as given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The identity of a message: `source` names the space that the id is unique in, `message_id` is
/// the id. Both are compared byte for byte. Cloning is cheap.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    source: Cow<'static, str>,
    message_id: Arc<str>,
}

impl Key {
    /// Takes the two parts as they are; nothing is trimmed or folded.
    ///
    /// # Errors
    /// [`KeyError`] where a part is empty or blank, has a NUL (which Postgres cannot store), or is
    /// longer than [`PART_BYTES_MAX`] bytes.
    pub fn new(
        source: impl Into<Cow<'static, str>>,
        message_id: impl Into<Arc<str>>,
    ) -> Result<Self, KeyError> {
        let (source, message_id) = (source.into(), message_id.into());
        check("source", &source)?;
        check("message id", &message_id)?;
        Ok(Self { source, message_id })
    }

    /// The space that the id is unique in.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The id within its source.
    pub fn message_id(&self) -> &str {
        &self.message_id
    }
}

fn check(part: &'static str, value: &str) -> Result<(), KeyError> {
    if value.trim().is_empty() {
        Err(KeyError::Empty { part })
    } else if value.contains('\0') {
        Err(KeyError::Nul { part })
    } else if value.len() > PART_BYTES_MAX {
        Err(KeyError::TooLong {
            part,
            bytes: value.len(),
        })
    } else {
        Ok(())
    }
}

/// A key, or a part of it, that cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A part is empty or only white space.
    #[error("the key's {part} is empty")]
    Empty {
        /// Which part.
        part: &'static str,
    },
    /// A part has a NUL character, which Postgres text cannot hold.
    #[error("the key's {part} contains a NUL character, which Postgres cannot store")]
    Nul {
        /// Which part.
        part: &'static str,
    },
    /// A part has too many bytes.
    #[error("the key's {part} has {bytes} bytes, at most {PART_BYTES_MAX} are allowed")]
    TooLong {
        /// Which part.
        part: &'static str,
        /// How many bytes it has.
        bytes: usize,
    },
    /// The consumer's name is not usable.
    #[error(
        "consumer name {name:?} is not usable: take 1 to 128 ASCII letters, digits and - _ . : /"
    )]
    Consumer {
        /// The name as given.
        name: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E-15: no folding of case, blanks or Unicode forms.
    #[test]
    fn keys_are_compared_byte_for_byte() {
        let ids = ["ABC", "abc", "ABC ", "\u{e9}", "e\u{301}"];
        for (i, a) in ids.iter().enumerate() {
            for (j, b) in ids.iter().enumerate() {
                let same = Key::new("s", *a).unwrap() == Key::new("s", *b).unwrap();
                assert_eq!(same, i == j, "{a:?} {b:?}");
            }
        }
    }

    /// E-01 and E-02: one documented rule for each kind of unusable part.
    #[test]
    fn unusable_parts_are_refused_by_name() {
        let (long, longest) = ("x".repeat(513), "x".repeat(512));
        let cases: [(&str, &str, Option<&str>); 8] = [
            ("s", "x", None),
            ("s", &longest, None),
            ("s", &long, Some("message id has 513 bytes")),
            (&long, "x", Some("source has 513 bytes")),
            ("s", "", Some("message id is empty")),
            ("s", " \n", Some("message id is empty")),
            ("", "x", Some("source is empty")),
            ("s", "a\0b", Some("NUL")),
        ];
        for (source, id, refusal) in cases {
            match (Key::new(source.to_owned(), id), refusal) {
                (Ok(_), None) => {}
                (Err(error), Some(text)) => assert!(error.to_string().contains(text), "{error}"),
                (result, _) => panic!("{source:?} {id:?}: {result:?}"),
            }
        }
    }

    #[test]
    fn consumer_names_are_plain_words() {
        assert!(Consumer::new("billing/payments.v1").is_ok());
        for name in ["", " ", "a b", "é", "a\0", &"x".repeat(129)] {
            assert!(Consumer::new(name).is_err(), "{name:?}");
        }
    }
}
