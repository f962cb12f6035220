//! Encoding of state: little-endian, versioned, the same for every device. This module does not know slabs.

use thiserror::Error;

/// The reason why bytes are not the expected state.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StateError {
    /// The bytes end too early.
    #[error("{what}: needs {needed} bytes, {left} are left: the snapshot is truncated, use an older one")]
    Truncated {
        /// Name of the value being read.
        what: &'static str,
        /// Bytes of the value.
        needed: usize,
        /// Remaining bytes.
        left: usize,
    },
    /// The bytes were written by another version of this crate, or by another program.
    #[error("{what}: version {found}, this build reads version {expected}: replay the log instead")]
    Version {
        /// Name of the slab.
        what: &'static str,
        /// Version in the bytes.
        found: u32,
        /// Expected version.
        expected: u32,
    },
    /// The state was written under another configuration.
    #[error("{what}: the state has {found}, the configuration says {expected}: replay the log instead")]
    OtherConfiguration {
        /// Name of the parameter.
        what: &'static str,
        /// Value of the parameter in the bytes.
        found: i128,
        /// Present value of the parameter.
        expected: i128,
    },
    /// A value is not valid.
    #[error("{what}: {found} cannot be: the snapshot is damaged, use an older one")]
    Impossible {
        /// Name of the value being read.
        what: &'static str,
        /// The value in the bytes.
        found: String,
    },
}

pub(crate) fn put_u8(out: &mut Vec<u8>, value: u8) {
    out.push(value);
}

pub(crate) fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_i64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_i128(out: &mut Vec<u8>, value: i128) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_f64(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(&value.to_bits().to_le_bytes());
}

fn take<const N: usize>(bytes: &mut &[u8], what: &'static str) -> Result<[u8; N], StateError> {
    let (head, tail) =
        bytes.split_first_chunk::<N>().ok_or(StateError::Truncated { what, needed: N, left: bytes.len() })?;
    *bytes = tail;
    Ok(*head)
}

pub(crate) fn get_u8(bytes: &mut &[u8], what: &'static str) -> Result<u8, StateError> {
    take::<1>(bytes, what).map(|[byte]| byte)
}

pub(crate) fn get_u32(bytes: &mut &[u8], what: &'static str) -> Result<u32, StateError> {
    take(bytes, what).map(u32::from_le_bytes)
}

pub(crate) fn get_i64(bytes: &mut &[u8], what: &'static str) -> Result<i64, StateError> {
    take(bytes, what).map(i64::from_le_bytes)
}

pub(crate) fn get_i128(bytes: &mut &[u8], what: &'static str) -> Result<i128, StateError> {
    take(bytes, what).map(i128::from_le_bytes)
}

/// Reads a number: not NaN, and finite unless `infinite` is true.
pub(crate) fn get_f64(bytes: &mut &[u8], what: &'static str, infinite: bool) -> Result<f64, StateError> {
    let value = f64::from_bits(u64::from_le_bytes(take(bytes, what)?));
    if value.is_finite() || (infinite && value == f64::INFINITY) {
        Ok(value)
    } else {
        Err(StateError::Impossible { what, found: value.to_string() })
    }
}

/// Reads a parameter of the writer, and compares it with the present one.
pub(crate) fn expect_i64(bytes: &mut &[u8], what: &'static str, expected: i64) -> Result<(), StateError> {
    let found = get_i64(bytes, what)?;
    if found == expected {
        Ok(())
    } else {
        Err(StateError::OtherConfiguration { what, found: found.into(), expected: expected.into() })
    }
}

/// Writes the head of a slab's bytes.
pub(crate) fn put_head(out: &mut Vec<u8>, version: u32, slots: usize) {
    put_u32(out, version);
    put_u32(out, u32::try_from(slots).expect("slots are numbered in 32 bits"));
}

/// Reads and checks the head that [`put_head`] writes.
pub(crate) fn expect_head(
    bytes: &mut &[u8],
    what: &'static str,
    version: u32,
    slots: usize,
) -> Result<(), StateError> {
    let found = get_u32(bytes, what)?;
    if found != version {
        return Err(StateError::Version { what, found, expected: version });
    }
    let found = get_u32(bytes, what)?;
    if found as usize == slots {
        Ok(())
    } else {
        Err(StateError::OtherConfiguration { what: "slots", found: found.into(), expected: slots as i128 })
    }
}
