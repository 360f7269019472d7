//! A process that lives on while the world around it changes.

use lambda_inbox_testkit::postgres::Cluster;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The example `connect`, as a function's process: one source for all its connections, and a log at the most
/// talkative level.
pub(crate) struct Process {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    log: tempfile::NamedTempFile,
    said: String,
}

impl Process {
    pub(crate) fn start(cluster: &Cluster, variables: &[(&str, &str)]) -> Self {
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut child = Command::new(example("connect"))
            .env_clear()
            .env("LAMBDA_INBOX_DB_HOST", "localhost")
            .env(
                "LAMBDA_INBOX_DB_PORT",
                cluster.options().get_port().to_string(),
            )
            .env("LAMBDA_INBOX_DB_NAME", "postgres")
            .env("LAMBDA_INBOX_DB_TLS", "require")
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .env("RUST_LOG", "trace")
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log.reopen().unwrap())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            stdin,
            stdout,
            log,
            said: String::new(),
        }
    }

    /// What it says of a new connection.
    pub(crate) fn connect(&mut self) -> String {
        writeln!(self.stdin).unwrap();
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        self.said.push_str(&line);
        line.trim_end().to_owned()
    }

    /// Neither in its log nor in its answers.
    pub(crate) fn assert_never_said(&self, secrets: &[&str]) {
        let log = std::fs::read_to_string(self.log.path()).unwrap();
        assert!(!log.is_empty());
        for text in [&log, &self.said] {
            for secret in secrets {
                assert!(!text.contains(secret), "{text}");
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Cargo builds examples beside the tests, and says nowhere where.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    profile.join("examples").join(name)
}
