//! Distributions hide the server's binaries outside PATH and put wrappers into it, so each find is
//! tried out.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::PostgresError;
use super::account::Account;

/// The first version with `DROP DATABASE .. WITH (FORCE)`.
pub(super) const MAJOR_MIN: u32 = 13;

/// Folders with one sub-folder per installed version, and where the binaries are below it.
const USUAL_PLACES: [(&str, &str, &str); 5] = [
    ("/usr/lib/postgresql", "", "bin"),
    ("/usr", "pgsql-", "bin"),
    ("/opt/homebrew/opt", "postgresql", "bin"),
    ("/usr/local/opt", "postgresql", "bin"),
    ("/usr/local", "pgsql", "bin"),
];

/// The folder of a working `initdb` and `postgres` of one version that `account` may execute.
pub(super) fn find(account: Account) -> Result<PathBuf, PostgresError> {
    in_path()
        .into_iter()
        .chain(in_usual_places())
        .find(|folder| works(folder, account))
        .ok_or(PostgresError::NotInstalled)
}

/// Links are followed, because a linked `initdb` looks for `postgres` beside the file it really is.
fn in_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .filter_map(|folder| folder.join("initdb").canonicalize().ok())
        .filter_map(|initdb| initdb.parent().map(Path::to_path_buf))
        .collect()
}

fn in_usual_places() -> Vec<PathBuf> {
    USUAL_PLACES
        .iter()
        .flat_map(|&(place, prefix, below)| {
            let mut found: Vec<(u32, PathBuf)> = std::fs::read_dir(place)
                .into_iter()
                .flatten()
                .filter_map(Result::ok)
                .filter_map(|entry| {
                    let name = entry.file_name();
                    let version = name.to_str()?.strip_prefix(prefix)?;
                    Some((
                        number(version.trim_start_matches('@')),
                        entry.path().join(below),
                    ))
                })
                .collect();
            found.sort_by(|a, b| b.cmp(a));
            found.into_iter().map(|(_, folder)| folder)
        })
        .collect()
}

fn works(folder: &Path, account: Account) -> bool {
    match (
        version(&folder.join("initdb"), account),
        version(&folder.join("postgres"), account),
    ) {
        (Some(initdb), Some(postgres)) => initdb == postgres && number(&initdb) >= MAJOR_MIN,
        _ => false,
    }
}

/// `15.18` of `postgres (PostgreSQL) 15.18 (Debian 15.18-0)`.
fn version(binary: &Path, account: Account) -> Option<String> {
    let output = account
        .command(binary)
        .arg("--version")
        .stderr(Stdio::null())
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    let text = String::from_utf8(output.stdout).ok()?;
    let (_, version) = text.split_once("(PostgreSQL) ")?;
    version.split_whitespace().next().map(str::to_owned)
}

/// The leading number, 0 if there is none: `9.6` is 9, `18beta1` is 18.
fn number(version: &str) -> u32 {
    let end = version
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(version.len());
    version[..end].parse().unwrap_or(0)
}
