//! A place in an Avro datum: reads Avro's primitives one after the other and knows nothing of schemas.

use crate::error::DecodeError;
use crate::varint::{self, VarintError};

/// What is left of a datum.
pub(crate) struct Cursor<'a> {
    /// All bytes of the datum, to tell the place of a mistake.
    length: usize,
    /// Bytes not read yet.
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(datum: &'a [u8]) -> Self {
        Self { length: datum.len(), rest: datum }
    }

    /// Bytes of the datum read so far.
    pub(crate) fn at(&self) -> usize {
        self.length - self.rest.len()
    }

    #[cold]
    pub(crate) fn malformed(&self, what: &'static str) -> DecodeError {
        DecodeError::Malformed { at: self.at(), what }
    }

    #[cold]
    pub(crate) fn truncated(&self) -> DecodeError {
        DecodeError::Truncated { length: self.length }
    }

    #[cold]
    fn varint_error(&self, error: VarintError) -> DecodeError {
        match error {
            VarintError::Truncated => self.truncated(),
            VarintError::TooLong => self.malformed("a number of more than 64 bits"),
        }
    }

    #[inline(always)]
    pub(crate) fn long(&mut self) -> Result<i64, DecodeError> {
        match varint::read_long(self.rest) {
            Ok((value, size)) => {
                self.rest = &self.rest[size..];
                Ok(value)
            }
            Err(error) => Err(self.varint_error(error)),
        }
    }

    /// As many longs as `values` takes.
    pub(crate) fn longs(&mut self, values: &mut [i64]) -> Result<(), DecodeError> {
        let mut rest = self.rest;
        for value in values {
            match varint::read_long(rest) {
                Ok((read, size)) => {
                    *value = read;
                    rest = &rest[size..];
                }
                Err(error) => {
                    self.rest = rest;
                    return Err(self.varint_error(error));
                }
            }
        }
        self.rest = rest;
        Ok(())
    }

    pub(crate) fn int(&mut self) -> Result<i32, DecodeError> {
        let value = self.long()?;
        i32::try_from(value).map_err(|_| self.malformed("an int of more than 32 bits"))
    }

    pub(crate) fn double(&mut self) -> Result<f64, DecodeError> {
        let Some((bytes, rest)) = self.rest.split_first_chunk::<8>() else {
            return Err(self.truncated());
        };
        self.rest = rest;
        Ok(f64::from_le_bytes(*bytes))
    }

    /// The next `size` bytes.
    #[inline]
    pub(crate) fn take(&mut self, size: usize) -> Result<&'a [u8], DecodeError> {
        let Some((bytes, rest)) = self.rest.split_at_checked(size) else {
            return Err(self.truncated());
        };
        self.rest = rest;
        Ok(bytes)
    }

    /// The next `size` bytes, not read yet.
    #[inline]
    pub(crate) fn peek(&self, size: usize) -> Result<&'a [u8], DecodeError> {
        self.rest.get(..size).ok_or_else(|| self.truncated())
    }

    /// Avro `bytes`, or a `string` not yet known to be UTF-8.
    #[inline]
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let size = self.long()?;
        match usize::try_from(size) {
            Ok(size) => self.take(size),
            Err(_) => Err(self.malformed("a negative length")),
        }
    }

    pub(crate) fn string(&mut self) -> Result<&'a str, DecodeError> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map_err(|_| self.malformed("a string that is not UTF-8"))
    }

    /// Number of items in the next block of an array; 0 ends the array. Blocks with their size in front are read too.
    ///
    /// The number is bounded by the bytes left, since no item that Warptape reads is empty on the wire.
    #[inline]
    pub(crate) fn block(&mut self) -> Result<usize, DecodeError> {
        let mut count = self.long()?;
        if count < 0 {
            self.long()?;
            count = count.checked_neg().unwrap_or(i64::MAX);
        }
        match usize::try_from(count) {
            Ok(count) if count <= self.rest.len() => Ok(count),
            _ => Err(self.truncated()),
        }
    }

    /// Nothing may be left.
    pub(crate) fn finish(&self) -> Result<(), DecodeError> {
        match self.rest.len() {
            0 => Ok(()),
            count => Err(DecodeError::TrailingBytes { count }),
        }
    }
}
