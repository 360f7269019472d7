//! The functions to run, which Cargo puts near this program but does not build with it.

use std::path::{Path, PathBuf};

/// A function's program.
#[derive(Debug)]
pub(crate) struct Binary {
    pub(crate) name: &'static str,
    pub(crate) path: PathBuf,
}

/// The programs of this package are not where Cargo puts them.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BinaryError {
    #[error("cannot tell where this program is")]
    Here(#[source] std::io::Error),
    #[error("{} is not built; run: cargo build -p payments --bins --examples{profile}", path.display())]
    Missing { path: PathBuf, profile: String },
}

impl Binary {
    /// The payments function, or its naive twin.
    pub(crate) fn find(naive: bool) -> Result<Self, BinaryError> {
        // target/<profile>/examples/demo, hence the function is one folder up and the twin beside.
        let here = std::env::current_exe().map_err(BinaryError::Here)?;
        let examples = here.parent().unwrap_or(Path::new("."));
        let programs = examples.parent().unwrap_or(Path::new("."));
        let (name, folder) = if naive {
            ("naive", examples)
        } else {
            ("payments", programs)
        };
        let path = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
        if path.is_file() {
            Ok(Self { name, path })
        } else {
            let profile = profile_option(programs);
            Err(BinaryError::Missing { path, profile })
        }
    }
}

fn profile_option(programs: &Path) -> String {
    match programs.file_name().and_then(|name| name.to_str()) {
        None | Some("debug") => String::new(),
        Some("release") => " --release".to_owned(),
        Some(profile) => format!(" --profile {profile}"),
    }
}
