//! The zip that is uploaded: its size is what Lambda fetches for a cold start.

use std::io::{Cursor, Write};

use zip::result::ZipResult;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// What Lambda runs.
const ENTRY: &str = "bootstrap";

/// The bytes of a zip whose only entry is `binary`, as an executable file.
///
/// # Errors
/// Where a size needs more than 32 bits.
pub(super) fn zipped(binary: &[u8]) -> ZipResult<Vec<u8>> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(9))
        .unix_permissions(0o755);
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    archive.start_file(ENTRY, options)?;
    archive.write_all(binary)?;
    Ok(archive.finish()?.into_inner())
}
