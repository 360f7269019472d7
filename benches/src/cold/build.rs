//! The functions as they are deployed: release profile, and a build for each, because one build for all
//! would give every function the features of the others.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::Deserialize;
use tokio::process::Command;

use super::archive::zipped;
use crate::error::BenchError;
use crate::summary::target;

/// Written by hand: lambda_runtime and sqlx.
pub(super) const BARE: &str = "bare";
/// The example, without the AWS SDK.
pub(super) const PAYMENTS: &str = "payments";
/// The example that reads its password from Secrets Manager or signs IAM tokens.
pub(super) const PAYMENTS_WITH_AWS: &str = "payments_with_aws";

struct Program {
    name: &'static str,
    /// Both the package and its binary.
    package: &'static str,
    features: &'static str,
}

/// The one that the others are compared with comes first.
const PROGRAMS: [Program; 3] = [
    Program {
        name: BARE,
        package: "lambda-inbox-bench-bare",
        features: "",
    },
    Program {
        name: PAYMENTS,
        package: "payments",
        features: "",
    },
    Program {
        name: PAYMENTS_WITH_AWS,
        package: "payments",
        features: "secrets-manager,iam",
    },
];

/// A function that can be started.
pub(crate) struct Built {
    pub(super) name: &'static str,
    pub(super) path: PathBuf,
    pub(super) binary_bytes: usize,
    pub(super) zip_bytes: usize,
}

/// Builds all of them, and leaves each as `bootstrap` and as `bootstrap.zip` below `bench/cold` in Cargo's
/// target folder.
///
/// # Errors
/// [`BenchError::Cargo`], [`BenchError::CargoBuild`] and [`BenchError::File`].
pub(crate) async fn build() -> Result<Vec<Built>, BenchError> {
    eprintln!("building the functions for the cold start, which takes minutes the first time ...");
    let mut all = Vec::new();
    for program in &PROGRAMS {
        let executable = cargo_build(program).await?;
        all.push(kept(program, &executable)?);
    }
    Ok(all)
}

/// The next build may replace what this one left.
fn kept(program: &Program, executable: &Path) -> Result<Built, BenchError> {
    let folder = target().join("bench").join("cold").join(program.name);
    let path = folder.join("bootstrap");
    let archive = folder.join("bootstrap.zip");
    let copy = || {
        std::fs::create_dir_all(&folder)?;
        std::fs::copy(executable, &path)?;
        let binary = std::fs::read(&path)?;
        let zip = zipped(&binary)?;
        std::fs::write(&archive, &zip)?;
        Ok((binary.len(), zip.len()))
    };
    let (binary_bytes, zip_bytes) = copy().map_err(|source| BenchError::File {
        path: folder.clone(),
        source,
    })?;
    Ok(Built {
        name: program.name,
        path,
        binary_bytes,
        zip_bytes,
    })
}

/// Where the binary is, as Cargo says, whose configuration may move its target folder.
async fn cargo_build(program: &Program) -> Result<PathBuf, BenchError> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("Cargo.toml");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let child = Command::new(cargo)
        .args(["build", "--release", "--message-format"])
        .args(["json-render-diagnostics", "--manifest-path"])
        .arg(manifest)
        .args(["--package", program.package, "--bin", program.package])
        .args(["--features", program.features])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        // Its progress and its reasons are for the user; `output()` would take them in.
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()
        .map_err(BenchError::Cargo)?;
    let output = child.wait_with_output().await.map_err(BenchError::Cargo)?;
    let failed = || BenchError::CargoBuild {
        package: program.package,
        status: output.status,
    };
    if !output.status.success() {
        return Err(failed());
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    executable(&messages, program.package).ok_or_else(failed)
}

/// A line of Cargo's.
#[derive(Deserialize)]
struct Artifact {
    target: Target,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

fn executable(messages: &str, binary: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Artifact>(line).ok())
        .filter(|artifact| artifact.target.name == binary)
        .find_map(|artifact| artifact.executable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_says_where_the_binary_is() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"build-script-build"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"other"},"executable":"/target/release/other"}
{"reason":"build-script-executed","package_id":"ring"}
{"reason":"compiler-artifact","target":{"name":"payments"},"executable":"/target/release/payments"}
{"reason":"build-finished","success":true}"#;
        let found = executable(messages, "payments");
        assert_eq!(found, Some(PathBuf::from("/target/release/payments")));
        assert_eq!(executable(messages, "missing"), None);
    }
}
