//! The function's own log, for what only the function knows.

use std::io;
use std::path::PathBuf;

use lambda_inbox_testkit::runtime::Sink;
use serde_json::Value;
use tempfile::TempDir;

/// Lines shown when a run goes wrong.
const TAIL_LINES: usize = 10;

/// A file that the function writes its output to, over all its starts; removed with this value.
#[derive(Debug)]
pub(crate) struct Log {
    folder: TempDir,
}

impl Log {
    pub(crate) fn new() -> io::Result<Self> {
        let folder = TempDir::new()?;
        Ok(Self { folder })
    }

    pub(crate) fn sink(&self) -> Sink {
        Sink::File(self.path())
    }

    /// How many records the inbox skipped as duplicates, by its JSON lines at debug level.
    pub(crate) fn duplicates(&self) -> io::Result<u64> {
        let text = std::fs::read_to_string(self.path())?;
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        let skipped = lines.filter(|line: &Value| line["fields"]["outcome"] == "duplicate");
        Ok(skipped.count() as u64)
    }

    /// The last lines, for a human.
    pub(crate) fn tail(&self) -> String {
        let text = std::fs::read_to_string(self.path()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("function.log")
    }
}
