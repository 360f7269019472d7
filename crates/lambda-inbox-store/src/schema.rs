//! Users choose the schema's name, so it is checked once, here, and quoted everywhere.

use std::fmt;
use std::str::FromStr;

/// The most bytes of a Postgres identifier that are significant (`NAMEDATALEN` minus one).
pub(crate) const NAME_BYTES_MAX: usize = 63;

/// The schema that holds the tables; `lambda_inbox` by default.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schema(String);

impl Schema {
    /// Takes a schema name: a letter or underscore, then letters, digits, underscores or dollar
    /// signs, at most 63 bytes. Case is kept.
    ///
    /// # Errors
    /// [`SchemaError`] for anything else, and for names that Postgres keeps for itself (`pg_...`).
    pub fn new(name: impl Into<String>) -> Result<Self, SchemaError> {
        ordinary(name.into()).map(Self).map_err(SchemaError)
    }

    /// The name as given.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// The name in double quotes, ready to stand in a statement.
    pub(crate) fn quoted(&self) -> String {
        format!("\"{}\"", self.0)
    }
}

impl Default for Schema {
    fn default() -> Self {
        Self(Self::DEFAULT.to_owned())
    }
}

impl Schema {
    /// The schema used where none is named.
    pub const DEFAULT: &str = "lambda_inbox";
}

impl FromStr for Schema {
    type Err = SchemaError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::new(name)
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A schema name that is not an ordinary identifier.
#[derive(Debug, thiserror::Error)]
#[error("schema name {0}")]
pub struct SchemaError(NotOrdinary);

/// An identifier that stands in statements as it is, so that nothing in it may need an escape.
pub(crate) fn ordinary(name: String) -> Result<String, NotOrdinary> {
    let mut characters = name.chars();
    let starts_well = characters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let goes_on_well = characters.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$');
    let reserved = name.to_ascii_lowercase().starts_with("pg_");
    if starts_well && goes_on_well && !reserved && name.len() <= NAME_BYTES_MAX {
        Ok(name)
    } else {
        Err(NotOrdinary { name })
    }
}

/// What is wrong with a name.
#[derive(Debug, thiserror::Error)]
#[error(
    "{name:?} is not usable: take a letter or underscore, then letters, digits, \
     underscores or dollar signs, at most 63 bytes, not beginning with pg_"
)]
pub(crate) struct NotOrdinary {
    name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_identifiers_are_taken_and_quoted() {
        for name in ["lambda_inbox", "Inbox", "_x", "a$1", &"a".repeat(63)] {
            assert_eq!(Schema::new(name).unwrap().quoted(), format!("\"{name}\""));
        }
    }

    #[test]
    fn everything_else_is_refused_with_the_rule() {
        for name in [
            "",
            "1a",
            "a b",
            "a\"b",
            "a;b",
            "a.b",
            "é",
            "pg_x",
            "PG_x",
            &"a".repeat(64),
        ] {
            let error = Schema::new(name).unwrap_err().to_string();
            assert!(error.contains("letters, digits"), "{name}: {error}");
        }
    }
}
