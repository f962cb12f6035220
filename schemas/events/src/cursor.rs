//! A position in an Avro datum. It reads Avro's primitive types one after the other, and does not know schemas.

use crate::error::DecodeError;
use crate::varint::{self, VarintError};

/// A datum, and the number of bytes read.
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(datum: &'a [u8]) -> Self {
        Self { bytes: datum, at: 0 }
    }

    /// Returns the number of bytes read.
    pub fn position(&self) -> usize {
        self.at
    }

    fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    #[cold]
    pub fn malformed(&self, what: &'static str) -> DecodeError {
        DecodeError::Malformed { at: self.at, what }
    }

    #[cold]
    pub fn truncated(&self) -> DecodeError {
        DecodeError::Truncated { length: self.bytes.len() }
    }

    #[cold]
    fn varint_error(&self, error: VarintError) -> DecodeError {
        match error {
            VarintError::Truncated => self.truncated(),
            VarintError::TooLong => self.malformed("a number of more than 64 bits"),
        }
    }

    #[inline]
    pub fn long(&mut self) -> Result<i64, DecodeError> {
        match varint::read_long(self.bytes, self.at) {
            Ok((value, end)) => {
                self.at = end;
                Ok(value)
            }
            Err(error) => Err(self.varint_error(error)),
        }
    }

    /// Reads longs until `values` is full.
    pub fn longs(&mut self, values: &mut [i64]) -> Result<(), DecodeError> {
        match varint::read_longs(self.bytes, self.at, values) {
            Ok(end) => {
                self.at = end;
                Ok(())
            }
            Err((at, error)) => {
                self.at = at;
                Err(self.varint_error(error))
            }
        }
    }

    /// Reads non-negative numbers of one or two bytes, four at a time, until others follow. Returns how many were read.
    #[inline]
    pub fn small(&mut self, values: &mut [u32]) -> usize {
        let (read, at) = varint::read_small(self.bytes, self.at, values);
        self.at = at;
        read
    }

    #[inline]
    pub fn int(&mut self) -> Result<i32, DecodeError> {
        let value = self.long()?;
        i32::try_from(value).map_err(|_| self.malformed("an int of more than 32 bits"))
    }

    pub fn double(&mut self) -> Result<f64, DecodeError> {
        let bytes = self.take(8)?;
        Ok(f64::from_le_bytes(bytes.try_into().expect("took 8 bytes")))
    }

    /// Reads the next `size` bytes.
    #[inline]
    pub fn take(&mut self, size: usize) -> Result<&'a [u8], DecodeError> {
        let bytes = self.peek(size)?;
        self.at += size;
        Ok(bytes)
    }

    /// Returns the next `size` bytes without reading them.
    #[inline]
    pub fn peek(&self, size: usize) -> Result<&'a [u8], DecodeError> {
        self.bytes[self.at..].get(..size).ok_or_else(|| self.truncated())
    }

    /// Returns the next byte without reading it; `None` at the end.
    #[inline]
    pub fn peek_byte(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Skips a byte that was peeked at.
    #[inline]
    pub fn pass_byte(&mut self) {
        debug_assert!(self.at < self.bytes.len());
        self.at += 1;
    }

    /// Reads Avro `bytes`, or a `string` that is not yet known to be UTF-8.
    #[inline(always)]
    pub fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        // The fast case is a length below 64, which takes one byte and is not negative.
        if let [length @ ..0x80, rest @ ..] = &self.bytes[self.at..]
            && length & 1 == 0
            && let Some(bytes) = rest.get(..usize::from(length >> 1))
        {
            self.at += 1 + bytes.len();
            return Ok(bytes);
        }
        self.long_bytes()
    }

    #[cold]
    fn long_bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let size = self.long()?;
        match usize::try_from(size) {
            Ok(size) => self.take(size),
            Err(_) => Err(self.malformed("a negative length")),
        }
    }

    pub fn string(&mut self) -> Result<&'a str, DecodeError> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map_err(|_| self.malformed("a string that is not UTF-8"))
    }

    /// Reads the number of items in the next block of an array; 0 ends the array. Blocks that state their size in bytes
    /// are accepted too.
    ///
    /// The number must not exceed the number of remaining bytes, because every item that Warptape reads takes at least
    /// one byte.
    #[inline]
    pub fn block(&mut self) -> Result<usize, DecodeError> {
        let mut count = self.long()?;
        if count < 0 {
            self.long()?;
            count = count.checked_neg().unwrap_or(i64::MAX);
        }
        match usize::try_from(count) {
            Ok(count) if count <= self.remaining() => Ok(count),
            _ => Err(self.truncated()),
        }
    }

    /// Checks that no bytes remain.
    pub fn finish(&self) -> Result<(), DecodeError> {
        match self.remaining() {
            0 => Ok(()),
            count => Err(DecodeError::TrailingBytes { count }),
        }
    }
}
