//! Names and passwords cannot be bound as parameters in DDL, so they are quoted here.

/// `name` as an SQL identifier.
pub(super) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// `text` as an SQL string, whatever `standard_conforming_strings` says.
pub(super) fn literal(text: &str) -> String {
    format!(" E'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
