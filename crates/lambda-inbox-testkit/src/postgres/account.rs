//! PostgreSQL refuses to run as root, and containers run tests as root: then the server runs as
//! somebody else.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::PostgresError;

/// In order of preference; `postgres` comes with the package, `nobody` with the system.
const CANDIDATES: [&str; 2] = ["postgres", "nobody"];

/// The user a server and its tools run as.
#[derive(Clone, Copy, Debug)]
pub(super) enum Account {
    /// Ours, which is not root.
    Own,
    /// Somebody else, because we are root.
    Other { uid: u32, gid: u32 },
}

impl Account {
    pub(super) fn find() -> Result<Self, PostgresError> {
        if id(&["-u"]).is_some_and(|uid| uid != 0) {
            return Ok(Self::Own);
        }
        CANDIDATES
            .iter()
            .find_map(|name| match (id(&["-u", name]), id(&["-g", name])) {
                (Some(uid), Some(gid)) if uid != 0 => Some(Self::Other { uid, gid }),
                _ => None,
            })
            .ok_or(PostgresError::NoAccount)
    }

    /// `program` to be run as this user, from a folder it may enter, without our `PG*` environment,
    /// which is meant for clients and would redirect the server's tools.
    pub(super) fn command(self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir("/").stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") {
                command.env_remove(name);
            }
        }
        if let Self::Other { uid, gid } = self {
            // As root this also gives up root's supplementary groups.
            command.uid(uid).gid(gid).env("HOME", "/");
        }
        command
    }
}

fn id(arguments: &[&str]) -> Option<u32> {
    let output = Command::new("id")
        .args(arguments)
        .stderr(Stdio::null())
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
