//! Bytes as lower-case hex digits.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::shape::{Shape, Shaped};
use crate::wire::{Wire, put_bytes};

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Returns the two digits of each byte.
fn digits(bytes: &[u8]) -> impl Iterator<Item = u8> {
    bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]])
}

/// Returns the digits as text.
pub fn text(bytes: &[u8]) -> String {
    digits(bytes).map(char::from).collect()
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    assert_eq!(N, 2 * bytes.len());
    let mut array = [0; N];
    for (pair, byte) in array.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
        *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    }
    array
}

/// The hex digits of a hash: a text of `N` characters without heap memory. A reader checks that there are `N` ASCII
/// characters; [`Digits::are_hex`] checks that they are hex digits.
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

impl<const N: usize> Shaped for Digits<N> {
    const SHAPE: Shape = Shape::String;
}

impl<const N: usize> Wire<'_> for Digits<N> {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(&self.0, out);
    }

    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        Self::try_from(cursor.bytes()?)
            .map_err(|_| cursor.malformed("a hash that is not as long as its field, or not ASCII"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_read_back_and_texts_of_another_length_are_refused() {
        let digits = Digits::<4>::of(&[0x0f, 0xa1]);
        assert_eq!((&*digits, digits.are_hex(), Digits::<4>::zeros().are_hex()), ("0fa1", true, true));
        let mut bytes = Vec::new();
        digits.put(&mut bytes);
        assert_eq!(bytes, b"\x080fa1");
        assert_eq!(Digits::get(&mut Cursor::new(&bytes)), Ok(digits));
        let upper = Digits::<4>::get(&mut Cursor::new(b"\x080FA1")).expect("4 characters");
        assert!(!upper.are_hex());
        for refused in [&b"\x060fa"[..], b"\x0a0fa1b", b"\x08\xc3\xa4\xc3\xa4"] {
            assert!(Digits::<4>::get(&mut Cursor::new(refused)).is_err());
        }
    }
}
