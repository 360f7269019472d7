//! An error with its sources on one line.

use std::error::Error;

/// A source whose text the line has already is left out: some errors, sqlx's among them, print theirs
/// themselves.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let text = error.to_string();
        if !line.contains(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
        source = error.source();
    }
    line
}
