//! Bytes as lower-case hex digits.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The two digits of each byte.
fn digits(bytes: &[u8]) -> impl Iterator<Item = u8> {
    bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]])
}

/// As text.
pub fn text(bytes: &[u8]) -> String {
    digits(bytes).map(char::from).collect()
}

/// As an array.
///
/// # Panics
/// If `N` is not twice the number of bytes.
pub fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    assert_eq!(N, 2 * bytes.len());
    let mut array = [0; N];
    for (pair, byte) in array.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
        *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    }
    array
}
