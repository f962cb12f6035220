//! Avro single-object encoding: `C3 01`, the schema's CRC-64-AVRO fingerprint (little endian), the datum.

use crate::error::DecodeError;

/// Bytes in front of the datum.
pub const HEADER_SIZE: usize = 10;

const MARKER: [u8; 2] = [0xc3, 0x01];

/// The header of records with this fingerprint.
pub(crate) const fn header(fingerprint: u64) -> [u8; HEADER_SIZE] {
    let f = fingerprint.to_le_bytes();
    [MARKER[0], MARKER[1], f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7]]
}

/// Cuts a record into fingerprint and datum.
#[inline]
pub(crate) fn split(payload: &[u8]) -> Result<(u64, &[u8]), DecodeError> {
    match payload.split_first_chunk::<HEADER_SIZE>() {
        Some((&[0xc3, 0x01, ref fingerprint @ ..], datum)) => Ok((u64::from_le_bytes(*fingerprint), datum)),
        _ => Err(DecodeError::NotFramed),
    }
}

/// The fingerprint that a record names, if it is in single-object encoding.
pub fn fingerprint_of(payload: &[u8]) -> Option<u64> {
    split(payload).ok().map(|(fingerprint, _)| fingerprint)
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
}
