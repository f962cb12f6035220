//! Headers of records, which name the schema that wrote the datum.
//!
//! ```text
//!  single-object   C3 01   CRC-64-AVRO fingerprint of the schema, little endian   datum
//!  registry        00      id of the schema in a schema registry, big endian      datum
//! ```
//!
//! The first is Avro's own encoding; Warptape writes all records in it. The second is Confluent's wire format, in which
//! only the registry knows the schema of an id.

use crate::error::DecodeError;

/// Length of the single-object header, in bytes.
pub const HEADER_SIZE: usize = 10;
/// Length of the registry's header, in bytes.
pub const REGISTRY_HEADER_SIZE: usize = 5;

const MARKER: [u8; 2] = [0xc3, 0x01];
const REGISTRY_MARKER: u8 = 0;

/// Returns the header of records with this fingerprint.
pub const fn header(fingerprint: u64) -> [u8; HEADER_SIZE] {
    let f = fingerprint.to_le_bytes();
    [MARKER[0], MARKER[1], f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7]]
}

/// Splits a record in single-object encoding into fingerprint and datum.
#[inline]
pub fn split(payload: &[u8]) -> Result<(u64, &[u8]), DecodeError> {
    match payload.split_first_chunk::<HEADER_SIZE>() {
        Some((&[0xc3, 0x01, ref fingerprint @ ..], datum)) => Ok((u64::from_le_bytes(*fingerprint), datum)),
        _ => Err(not_single_object(payload)),
    }
}

#[cold]
fn not_single_object(payload: &[u8]) -> DecodeError {
    match registry_id_of(payload) {
        Some(id) => DecodeError::UnknownSchemaId { id },
        None => DecodeError::NotFramed,
    }
}

/// Splits a record in the registry's frame into schema id and datum; `None` for other records.
#[inline]
pub fn split_registry(payload: &[u8]) -> Option<(u32, &[u8])> {
    match payload.split_first_chunk::<REGISTRY_HEADER_SIZE>() {
        Some((&[REGISTRY_MARKER, ref id @ ..], datum)) => Some((u32::from_be_bytes(*id), datum)),
        _ => None,
    }
}

/// Returns the fingerprint of a record in single-object encoding; `None` for other records.
pub fn fingerprint_of(payload: &[u8]) -> Option<u64> {
    match payload.first_chunk::<HEADER_SIZE>() {
        Some([0xc3, 0x01, fingerprint @ ..]) => Some(u64::from_le_bytes(*fingerprint)),
        _ => None,
    }
}

/// Returns the schema id of a record in the registry's frame; `None` for other records.
#[inline]
pub fn registry_id_of(payload: &[u8]) -> Option<u32> {
    split_registry(payload).map(|(id, _)| id)
}

/// Appends a record in single-object encoding to `out`, in the registry's frame.
///
/// # Panics
/// The record is not in single-object encoding.
pub fn to_registry_frame(payload: &[u8], id: u32, out: &mut Vec<u8>) {
    assert!(fingerprint_of(payload).is_some(), "a record in single-object encoding");
    out.push(REGISTRY_MARKER);
    out.extend_from_slice(&id.to_be_bytes());
    out.extend_from_slice(&payload[HEADER_SIZE..]);
}

/// Converts a record from the registry's frame to single-object encoding.
///
/// # Panics
/// The record is not in the registry's frame.
pub fn to_single_object(payload: &mut Vec<u8>, fingerprint: u64) {
    assert!(registry_id_of(payload).is_some(), "a record in the registry's frame");
    payload.splice(..REGISTRY_HEADER_SIZE, header(fingerprint));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back_and_anything_else_does_not() {
        let mut payload = header(0x0123_4567_89ab_cdef).to_vec();
        assert_eq!(payload, [0xc3, 0x01, 0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01]);
        payload.push(7);
        assert_eq!(split(&payload), Ok((0x0123_4567_89ab_cdef, &[7][..])));
        assert_eq!(split(&payload[..9]), Err(DecodeError::NotFramed));
        payload[1] = 2;
        assert_eq!(split(&payload), Err(DecodeError::NotFramed));
        assert_eq!(split(b""), Err(DecodeError::NotFramed));
    }

    #[test]
    fn one_frame_becomes_the_other_and_back() {
        let single = [&header(0xfeed)[..], b"datum"].concat();
        let mut payload = Vec::new();
        to_registry_frame(&single, 0x0102_0304, &mut payload);
        assert_eq!(payload, b"\x00\x01\x02\x03\x04datum");
        assert_eq!(split_registry(&payload), Some((0x0102_0304, &b"datum"[..])));
        assert_eq!((registry_id_of(&payload), fingerprint_of(&payload)), (Some(0x0102_0304), None));
        // Without a registry, the id has no meaning.
        assert_eq!(split(&payload), Err(DecodeError::UnknownSchemaId { id: 0x0102_0304 }));
        assert_eq!(split(&payload[..4]), Err(DecodeError::NotFramed));
        to_single_object(&mut payload, 0xfeed);
        assert_eq!(payload, single);
        assert_eq!((registry_id_of(&payload), fingerprint_of(&payload)), (None, Some(0xfeed)));
    }
}
