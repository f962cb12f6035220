//! Little-endian reading and writing of snapshot bytes.

use crate::StageError;

/// Longest text of a snapshot, in bytes: symbols have at most 64.
const TEXT_BYTES_MAX: usize = 256;

pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    debug_assert!(text.len() <= TEXT_BYTES_MAX);
    put_u32(out, text.len() as u32);
    out.extend_from_slice(text.as_bytes());
}

pub(crate) fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_i64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn take<'a>(bytes: &mut &'a [u8], count: usize, what: &str) -> Result<&'a [u8], StageError> {
    match bytes.split_at_checked(count) {
        Some((head, tail)) => {
            *bytes = tail;
            Ok(head)
        }
        None => Err(StageError::Damaged {
            found: format!("{what} needs {count} bytes, {} are left", bytes.len()),
        }),
    }
}

pub(crate) fn get_u32(bytes: &mut &[u8], what: &str) -> Result<u32, StageError> {
    Ok(u32::from_le_bytes(take(bytes, 4, what)?.try_into().expect("4 bytes were taken")))
}

/// Reads a version, of which only one is known.
pub(crate) fn get_version(bytes: &mut &[u8], what: &'static str, known: u32) -> Result<(), StageError> {
    match get_u32(bytes, "version")? {
        found if found == known => Ok(()),
        found => Err(StageError::OtherVersion { what, found, known }),
    }
}

pub(crate) fn get_u64(bytes: &mut &[u8], what: &str) -> Result<u64, StageError> {
    Ok(u64::from_le_bytes(take(bytes, 8, what)?.try_into().expect("8 bytes were taken")))
}

pub(crate) fn get_i64(bytes: &mut &[u8], what: &str) -> Result<i64, StageError> {
    Ok(i64::from_le_bytes(take(bytes, 8, what)?.try_into().expect("8 bytes were taken")))
}

pub(crate) fn get_bytes<'a>(bytes: &mut &'a [u8], count: usize, what: &str) -> Result<&'a [u8], StageError> {
    take(bytes, count, what)
}

pub(crate) fn get_text(bytes: &mut &[u8], what: &str) -> Result<String, StageError> {
    let length = get_u32(bytes, what)? as usize;
    if length > TEXT_BYTES_MAX {
        return Err(StageError::Damaged { found: format!("{what} of {length} bytes") });
    }
    String::from_utf8(take(bytes, length, what)?.to_vec())
        .map_err(|error| StageError::Damaged { found: format!("{what} is not UTF-8: {error}") })
}
