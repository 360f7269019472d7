//! A private server must end with our process even if that is killed, when no destructor runs: a
//! shell watches over it.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};

use super::account::Account;
use crate::tls::Identity;

const SCRIPT: &str = include_str!("supervisor.sh");
/// Of the server's log, for an error message.
const LOG_TAIL_LINES: usize = 20;

/// The running script; dropping it stops the server and waits until the folder is gone.
#[derive(Debug)]
pub(super) struct Supervisor {
    child: Child,
    stdin: Option<ChildStdin>,
    folder: PathBuf,
}

impl Supervisor {
    /// Starts a server from `binaries` with `arguments`; blocks until the folder exists, not until
    /// the server is ready.
    pub(super) fn start(
        account: Account,
        binaries: &Path,
        password: &str,
        primary: Option<u16>,
        tls: Option<&Identity>,
        arguments: &[String],
    ) -> io::Result<Self> {
        // Short, for the path of the Unix socket in it.
        let name = format!(
            "lambda-inbox-{}",
            &uuid::Uuid::new_v4().simple().to_string()[..12]
        );
        let mut child = account
            .command("/bin/sh")
            .args(["-c", SCRIPT, "supervisor.sh"])
            .arg(binaries)
            .arg(name)
            .arg(std::env::temp_dir())
            .arg(primary.map(|port| port.to_string()).unwrap_or_default())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // A terminal signals whole process groups; the server has to outlive our reaction to
            // that.
            .process_group(0)
            .spawn()?;
        let mut stdin = child.stdin.take();
        if let Some(stdin) = &mut stdin {
            writeln!(stdin, "{password}")?;
            let (certificate, key) = tls.map_or(("", ""), |tls| (tls.certificate(), tls.key()));
            for pem in [certificate, key] {
                writeln!(stdin, "{}\n.", pem.trim_end())?;
            }
        }
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let folder = PathBuf::from(line.trim_end_matches('\n'));
        let supervisor = Self {
            child,
            stdin,
            folder,
        };
        if supervisor.folder.as_os_str().is_empty() {
            return Err(io::Error::other("no temporary folder can be written"));
        }
        Ok(supervisor)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the server has ended, or never came up.
    pub(super) fn server_ended(&self) -> bool {
        self.folder.join("ended").exists()
    }

    pub(super) fn log_tail(&self) -> String {
        let log = std::fs::read(self.folder.join("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // Bounded by the script, which kills a server that does not stop.
        let _ = self.child.wait();
    }
}
