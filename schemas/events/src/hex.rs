//! Bytes as lower-case hex digits. Records hold a hash's bytes, memory and JSON its digits.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::shape::{Content, Named, Shape, Shaped};
use crate::wire::Wire;

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Returns the two digits of each byte.
fn digits(bytes: &[u8]) -> impl Iterator<Item = u8> {
    bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]])
}

/// Returns the digits as text.
pub fn text(bytes: &[u8]) -> String {
    digits(bytes).map(char::from).collect()
}

/// Returns the byte of each pair of digits; `None` if a character is not a lower-case hex digit, or there is an odd
/// number.
pub fn bytes(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    let value = |digit: u8| DIGITS.iter().position(|known| *known == digit).map(|value| value as u8);
    pairs.iter().map(|[high, low]| Some(value(*high)? << 4 | value(*low)?)).collect()
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    assert_eq!(N, 2 * bytes.len());
    let mut array = [0; N];
    for (pair, byte) in array.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
        *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    }
    array
}

/// The hex digits of a hash: a text of `N` characters without heap memory. JSON may hold any `N` ASCII characters;
/// [`Digits::are_hex`] checks that they are hex digits. A record holds the hash as `N / 2` bytes.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digits<const N: usize>([u8; N]);

impl<const N: usize> Digits<N> {
    /// Returns the digits of a hash's bytes.
    ///
    /// # Panics
    /// `N` is not twice the number of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(array(bytes))
    }

    /// Returns zeros.
    pub const fn zeros() -> Self {
        Self([b'0'; N])
    }

    /// True if each character is one of `0123456789abcdef`.
    pub fn are_hex(&self) -> bool {
        self.0.iter().all(|digit| DIGITS.contains(digit))
    }
}

impl<const N: usize> Deref for Digits<N> {
    type Target = str;

    fn deref(&self) -> &str {
        std::str::from_utf8(&self.0).expect("only ASCII is taken")
    }
}

impl<const N: usize> fmt::Debug for Digits<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<const N: usize> From<Digits<N>> for String {
    fn from(digits: Digits<N>) -> Self {
        (*digits).to_owned()
    }
}

impl<const N: usize> TryFrom<&[u8]> for Digits<N> {
    type Error = String;

    fn try_from(bytes: &[u8]) -> Result<Self, String> {
        match bytes.try_into() {
            Ok(digits) if bytes.is_ascii() => Ok(Self(digits)),
            _ => Err(format!("{N} ASCII characters are wanted")),
        }
    }
}

impl<const N: usize> TryFrom<String> for Digits<N> {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.as_bytes().try_into()
    }
}

impl<const N: usize> Digits<N> {
    const BYTES: Named = match N {
        16 => Named { name: "Xxh3", doc: "An XXH3-64 hash, big-endian.", content: Content::Fixed(8) },
        64 => Named { name: "Blake3", doc: "A BLAKE3 hash.", content: Content::Fixed(32) },
        _ => panic!("hashes have 16 or 64 digits"),
    };
}

impl<const N: usize> Shaped for Digits<N> {
    const SHAPE: Shape = Shape::Named(&Self::BYTES);
}

impl<const N: usize> Wire<'_> for Digits<N> {
    /// # Panics
    /// The text is not of hex digits.
    fn put(&self, out: &mut Vec<u8>) {
        out.extend(bytes(&self.0).expect("a hash has hex digits"));
    }

    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        cursor.take(N / 2).map(Self::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_bytes_in_records_and_text_elsewhere() {
        let digits = Digits::<16>::of(&[0x0f, 0xa1, 2, 3, 4, 5, 6, 0xff]);
        assert_eq!((&*digits, digits.are_hex()), ("0fa10203040506ff", true));
        let mut record = Vec::new();
        digits.put(&mut record);
        assert_eq!(record, [0x0f, 0xa1, 2, 3, 4, 5, 6, 0xff]);
        assert_eq!(Digits::get(&mut Cursor::new(&record)), Ok(digits));
        assert!(Digits::<16>::get(&mut Cursor::new(&record[1..])).is_err());
        assert_eq!(bytes(b"0fa1"), Some(vec![0x0f, 0xa1]));
        for refused in ["0fa", "0FA1", "0g", "ä"] {
            assert_eq!(bytes(refused.as_bytes()), None, "{refused}");
        }
        let upper = Digits::<16>::try_from("0FA1020304050600".to_owned()).expect("16 characters");
        assert!(!upper.are_hex());
        assert!(Digits::<16>::try_from("0fa1".to_owned()).is_err());
    }
}
