//! Where a function's output goes: a test wants to read it, a demo to show it, a benchmark to forget it.

use std::fs::OpenOptions;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::sync::Notify;

/// Where one output stream of the process goes.
#[derive(Clone, Debug)]
pub enum Sink {
    /// To the same stream of this process.
    Inherit,
    /// Nowhere.
    Null,
    /// Appended to a file, which is made if it is missing.
    File(PathBuf),
    /// Line by line into memory.
    Lines(Lines),
}

impl Sink {
    pub(super) fn stdio(&self) -> std::io::Result<Stdio> {
        match self {
            Self::Inherit => Ok(Stdio::inherit()),
            Self::Null => Ok(Stdio::null()),
            Self::File(path) => {
                let file = OpenOptions::new().create(true).append(true).open(path)?;
                Ok(file.into())
            }
            Self::Lines(_) => Ok(Stdio::piped()),
        }
    }

    /// Starts to read the pipe that [`Sink::stdio`] asked for, if it did.
    pub(super) fn collect(&self, stream: Option<impl AsyncRead + Unpin + Send + 'static>) {
        let (Self::Lines(lines), Some(stream)) = (self, stream) else {
            return;
        };
        let lines = lines.clone();
        // Ends with the pipe, when the last process that holds it is gone.
        tokio::spawn(async move {
            let mut reader = BufReader::new(stream);
            let mut line = Vec::new();
            while matches!(reader.read_until(b'\n', &mut line).await, Ok(1..)) {
                lines.push(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']));
                line.clear();
            }
        });
    }
}

/// Lines that a process has written; a handle, whose clones share the lines.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    lines: Mutex<Vec<String>>,
    grown: Notify,
}

impl Lines {
    /// All lines so far, oldest first, over every start of the process.
    pub fn all(&self) -> Vec<String> {
        self.lock().clone()
    }

    /// Waits for a line that contains `text` and returns it; lines from before the call count.
    ///
    /// Waits for ever if none comes: put a timeout around it. Cancelling it loses nothing.
    pub async fn line_with(&self, text: &str) -> String {
        loop {
            let mut grown = std::pin::pin!(self.shared.grown.notified());
            // Registered before looking, or a line that comes in between would wake nobody.
            grown.as_mut().enable();
            let found = self.lock().iter().find(|line| line.contains(text)).cloned();
            if let Some(line) = found {
                return line;
            }
            grown.await;
        }
    }

    fn push(&self, line: &str) {
        self.lock().push(line.to_owned());
        self.shared.grown.notify_waiters();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.shared
            .lines
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
