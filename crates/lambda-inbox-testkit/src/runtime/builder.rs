//! What a caller can say about the function before it starts.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::local::{LocalRuntime, StartError};
use super::sink::Sink;

const TIMEOUT: Duration = Duration::from_secs(30);

/// Settings of a [`LocalRuntime`]; made by [`LocalRuntime::builder`].
#[derive(Clone, Debug)]
#[must_use = "nothing runs before `start`"]
pub struct LocalRuntimeBuilder {
    pub(super) binary: PathBuf,
    pub(super) function_name: String,
    pub(super) variables: Vec<(OsString, OsString)>,
    pub(super) timeout: Duration,
    pub(super) stdout: Sink,
    pub(super) stderr: Sink,
}

impl LocalRuntimeBuilder {
    pub(super) fn new(binary: &Path) -> Self {
        Self {
            binary: binary.to_owned(),
            function_name: "local-function".to_owned(),
            variables: Vec::new(),
            timeout: TIMEOUT,
            stdout: Sink::Inherit,
            stderr: Sink::Inherit,
        }
    }

    /// Sets a variable; the last value wins, also over the ones that Lambda sets.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// The function's name; `local-function` by default.
    pub fn function_name(mut self, name: impl Into<String>) -> Self {
        self.function_name = name.into();
        self
    }

    /// The function's timeout, counted from the moment the process takes the event; 30 seconds by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Where standard output goes; [`Sink::Inherit`] by default.
    pub fn stdout(mut self, sink: Sink) -> Self {
        self.stdout = sink;
        self
    }

    /// Where standard error goes; [`Sink::Inherit`] by default.
    pub fn stderr(mut self, sink: Sink) -> Self {
        self.stderr = sink;
        self
    }

    /// Starts the process and waits until it asks for its first event, 10 seconds at most.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left running. Cancelling it ends the process.
    pub async fn start(self) -> Result<LocalRuntime, StartError> {
        LocalRuntime::start(self).await
    }
}
