//! The zip that is uploaded: its size is what Lambda fetches for a cold start.
//!
//! One deflated entry without a date, as PKWARE's APPNOTE.TXT 6.3.10 describes it in 4.3.

use std::io::{self, Write};

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

/// What Lambda runs.
const ENTRY: &[u8] = b"bootstrap";
const LOCAL: [u8; 4] = *b"PK\x03\x04";
const CENTRAL: [u8; 4] = *b"PK\x01\x02";
const END: [u8; 4] = *b"PK\x05\x06";
/// Made on Unix, so that the file's mode counts.
const MADE_BY: [u8; 2] = [20, 3];
const VERSION: [u8; 2] = [20, 0];
const NO_FLAGS: [u8; 2] = [0; 2];
const DEFLATE: [u8; 2] = [8, 0];
/// The first of January 1980, midnight.
const TIME_AND_DATE: [u8; 4] = [0, 0, 0x21, 0];
/// A plain file that everybody may run.
const MODE: u32 = 0o100_755 << 16;

/// The bytes of a zip whose only entry is `binary`, named `bootstrap`.
///
/// # Errors
/// Where a size needs more than 32 bits.
pub(super) fn zipped(binary: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(binary)?;
    let data = encoder.finish()?;
    let entry = entry(binary, &data)?;

    let local = [&LOCAL[..], &VERSION, &entry, ENTRY, &data].concat();
    let central = [
        &CENTRAL[..],
        &MADE_BY,
        &VERSION,
        &entry,
        // No comment, the first disk, no internal attributes.
        &[0; 6],
        &MODE.to_le_bytes(),
        // Where the entry begins.
        &[0; 4],
        ENTRY,
    ]
    .concat();
    let end = [
        &END[..],
        // One disk, one entry on it, one in all.
        &[0, 0, 0, 0, 1, 0, 1, 0],
        &bytes4(central.len())?,
        &bytes4(local.len())?,
        // No comment.
        &[0; 2],
    ]
    .concat();
    Ok([local, central, end].concat())
}

/// What both headers say of the entry.
fn entry(binary: &[u8], data: &[u8]) -> io::Result<Vec<u8>> {
    let mut crc = Crc::new();
    crc.update(binary);
    Ok([
        &NO_FLAGS[..],
        &DEFLATE,
        &TIME_AND_DATE,
        &crc.sum().to_le_bytes(),
        &bytes4(data.len())?,
        &bytes4(binary.len())?,
        &[u8::try_from(ENTRY.len()).map_err(io::Error::other)?, 0],
        // No extra field.
        &[0; 2],
    ]
    .concat())
}

fn bytes4(length: usize) -> io::Result<[u8; 4]> {
    let length = u32::try_from(length).map_err(io::Error::other)?;
    Ok(length.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::DeflateDecoder;

    use super::*;

    fn number(bytes: &[u8]) -> usize {
        bytes
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | usize::from(*byte))
    }

    /// As a reader goes: from the end to the directory, and from there to the entry.
    #[test]
    fn the_entry_is_found_from_the_end_and_inflates_to_the_binary() {
        let binary = b"\x7fELF and much that repeats itself ".repeat(1_000);
        let zip = zipped(&binary).unwrap();
        assert!(zip.len() < binary.len() / 10);

        let end = &zip[zip.len() - 22..];
        assert_eq!(end[..4], END);
        assert_eq!(number(&end[10..12]), 1);
        let directory = number(&end[16..20]);
        let central = &zip[directory..directory + number(&end[12..16])];
        assert_eq!(central[..4], CENTRAL);
        assert_eq!(number(&central[24..28]), binary.len());
        assert_eq!(number(&central[38..42]) >> 16, 0o100_755);
        assert_eq!(&central[46..], ENTRY);

        let local = &zip[number(&central[42..46])..directory];
        assert_eq!(local[..4], LOCAL);
        assert_eq!(local[4..30], central[6..32]);
        assert_eq!(&local[30..39], ENTRY);
        let data = &local[39..];
        assert_eq!(data.len(), number(&central[20..24]));
        let mut inflated = Vec::new();
        DeflateDecoder::new(data)
            .read_to_end(&mut inflated)
            .unwrap();
        assert_eq!(inflated, binary);
    }
}
