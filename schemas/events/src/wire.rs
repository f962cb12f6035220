//! The encoding of our event types in an Avro datum. A struct is encoded as its fields in schema order, a union as its
//! branch index and branch, an enum as its index. `#[derive(Wire)]` derives the encoding and the schema from a type's
//! declaration.
//!
//! The code is compiled and does not walk a schema at run time, because every step of the scheduler writes a journal
//! entry. Tests decode the bytes with apache-avro and the generated `.avsc`, and compare the values.

use std::borrow::Cow;
use std::collections::BTreeMap;

pub use warptape_events_derive::{Flat, Wire};

use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::shape::{Shape, Shaped};
use crate::varint::put_long;

/// The current version of any schema.
pub const NEWEST: u32 = u32::MAX;
/// Encoded branch index of a nullable field that is null.
pub const NULL: u8 = 0;
/// Encoded branch index of a nullable field that has a value.
const VALUE: u8 = 2;

/// A value with an Avro encoding. A value that is read may borrow from the datum.
pub trait Wire<'datum>: Shaped + Sized {
    /// Appends the value.
    fn put(&self, out: &mut Vec<u8>);
    /// Reads a value.
    fn get(cursor: &mut Cursor<'datum>) -> Result<Self, DecodeError>;

    /// Appends the fields that exist in a version of the outer record's schema; by default all.
    fn put_version(&self, _version: u32, out: &mut Vec<u8>) {
        self.put(out);
    }

    /// Reads the fields that exist in a version of the outer record's schema; later fields have their types' defaults.
    fn get_version(cursor: &mut Cursor<'datum>, _version: u32) -> Result<Self, DecodeError> {
        Self::get(cursor)
    }

    /// Appends the value as that of a nullable field.
    fn put_some(&self, out: &mut Vec<u8>) {
        out.push(VALUE);
        self.put(out);
    }

    /// Appends a list of values.
    fn put_many(items: &[Self], version: u32, out: &mut Vec<u8>) {
        if !items.is_empty() {
            put_long(items.len() as i64, out);
            for item in items {
                item.put_version(version, out);
            }
        }
        out.push(0);
    }

    /// Reads a list of values.
    fn get_many(cursor: &mut Cursor<'datum>, version: u32) -> Result<Vec<Self>, DecodeError> {
        let mut items = Vec::new();
        loop {
            let count = cursor.block()?;
            if count == 0 {
                return Ok(items);
            }
            // A damaged count can be as large as the number of remaining bytes, so little memory is reserved in
            // advance. Arrays mostly have one block, for which the capacity is exact; with several blocks, it doubles.
            match items.is_empty() {
                true => items.reserve_exact(count.min(256)),
                false => items.reserve(count.min(256)),
            }
            for _ in 0..count {
                items.push(Self::get_version(cursor, version)?);
            }
        }
    }
}

/// A record whose fields are flattened into another record, and null there if the record is missing.
pub trait Flat<'datum>: Shaped + Sized {
    /// Appends the fields that exist in a version of the outer record's schema.
    fn put_flat(record: Option<&Self>, version: u32, out: &mut Vec<u8>);
    /// Reads the fields that exist in a version of the outer record's schema.
    fn get_flat(cursor: &mut Cursor<'datum>, version: u32) -> Result<Option<Self>, DecodeError>;
}

/// Implements the traits for an enum of another crate, with its documentation and its symbols in schema order.
macro_rules! wire_enum {
    ($doc:literal, $type:ident { $($index:literal => $symbol:ident),* $(,)? }) => {
        impl $crate::shape::Shaped for $type {
            const SHAPE: $crate::shape::Shape = $crate::shape::Shape::Named(&$crate::shape::Named {
                name: stringify!($type),
                doc: $doc,
                content: $crate::shape::Content::Enum {
                    variants: &[$((stringify!($symbol), "")),*],
                    default: None,
                },
            });
        }

        impl<'datum> $crate::wire::Wire<'datum> for $type {
            fn put(&self, out: &mut Vec<u8>) {
                out.push(match self {
                    $(Self::$symbol => $index << 1,)*
                });
            }

            fn get(cursor: &mut $crate::cursor::Cursor<'datum>) -> Result<Self, $crate::error::DecodeError> {
                match cursor.long()? {
                    $($index => Ok(Self::$symbol),)*
                    _ => Err(cursor.malformed(concat!("no such symbol of ", stringify!($type)))),
                }
            }
        }
    };
}

pub(crate) use wire_enum;

impl Shaped for i64 {
    const SHAPE: Shape = Shape::Long;
}

impl Wire<'_> for i64 {
    fn put(&self, out: &mut Vec<u8>) {
        put_long(*self, out);
    }

    #[inline]
    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        cursor.long()
    }
}

impl Shaped for i32 {
    const SHAPE: Shape = Shape::Int;
}

impl Wire<'_> for i32 {
    fn put(&self, out: &mut Vec<u8>) {
        put_long(i64::from(*self), out);
    }

    #[inline]
    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        cursor.int()
    }
}

impl Shaped for u16 {
    const SHAPE: Shape = Shape::Int;
}

impl Wire<'_> for u16 {
    fn put(&self, out: &mut Vec<u8>) {
        put_long(i64::from(*self), out);
    }

    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let value = cursor.int()?;
        Self::try_from(value).map_err(|_| cursor.malformed("an int outside of 0 to 65535"))
    }
}

impl Shaped for f64 {
    const SHAPE: Shape = Shape::Double;
}

impl Wire<'_> for f64 {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        cursor.double()
    }

    fn put_some(&self, out: &mut Vec<u8>) {
        let mut field = [VALUE; 9];
        field[1..].copy_from_slice(&self.to_le_bytes());
        out.extend_from_slice(&field);
    }
}

impl Shaped for bool {
    const SHAPE: Shape = Shape::Boolean;
}

impl Wire<'_> for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        match cursor.take(1)? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(cursor.malformed("a boolean is 0 or 1")),
        }
    }
}

impl Shaped for String {
    const SHAPE: Shape = Shape::String;
}

impl Wire<'_> for String {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(self.as_bytes(), out);
    }

    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        cursor.string().map(str::to_owned)
    }
}

impl Shaped for Cow<'_, str> {
    const SHAPE: Shape = Shape::String;
}

impl<'datum> Wire<'datum> for Cow<'datum, str> {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(self.as_bytes(), out);
    }

    fn get(cursor: &mut Cursor<'datum>) -> Result<Self, DecodeError> {
        cursor.string().map(Cow::Borrowed)
    }
}

/// `["null", T]`.
impl<T: Shaped> Shaped for Option<T> {
    const SHAPE: Shape = Shape::Nullable(&T::SHAPE);
}

impl<'datum, T: Wire<'datum>> Wire<'datum> for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            None => out.push(NULL),
            Some(value) => value.put_some(out),
        }
    }

    fn get(cursor: &mut Cursor<'datum>) -> Result<Self, DecodeError> {
        Self::get_version(cursor, NEWEST)
    }

    fn put_version(&self, version: u32, out: &mut Vec<u8>) {
        match self {
            None => out.push(NULL),
            Some(value) => {
                out.push(VALUE);
                value.put_version(version, out);
            }
        }
    }

    fn get_version(cursor: &mut Cursor<'datum>, version: u32) -> Result<Self, DecodeError> {
        match cursor.long()? {
            0 => Ok(None),
            1 => T::get_version(cursor, version).map(Some),
            _ => Err(cursor.malformed("no such branch of a nullable field")),
        }
    }
}

/// A large record is boxed, so that the types around it stay small.
impl<T: Shaped> Shaped for Box<T> {
    const SHAPE: Shape = T::SHAPE;
}

impl<'datum, T: Wire<'datum>> Wire<'datum> for Box<T> {
    fn put(&self, out: &mut Vec<u8>) {
        T::put(self, out);
    }

    fn get(cursor: &mut Cursor<'datum>) -> Result<Self, DecodeError> {
        T::get(cursor).map(Self::new)
    }

    fn put_version(&self, version: u32, out: &mut Vec<u8>) {
        T::put_version(self, version, out);
    }

    fn get_version(cursor: &mut Cursor<'datum>, version: u32) -> Result<Self, DecodeError> {
        T::get_version(cursor, version).map(Self::new)
    }
}

impl<T: Shaped> Shaped for BTreeMap<Cow<'static, str>, T> {
    const SHAPE: Shape = Shape::Map(&T::SHAPE);
}

/// A map is written in one block, by key.
impl<'datum, T: Wire<'datum>> Wire<'datum> for BTreeMap<Cow<'static, str>, T> {
    fn put(&self, out: &mut Vec<u8>) {
        if !self.is_empty() {
            put_long(self.len() as i64, out);
            for (key, value) in self {
                key.put(out);
                value.put(out);
            }
        }
        out.push(0);
    }

    fn get(cursor: &mut Cursor<'datum>) -> Result<Self, DecodeError> {
        let mut map = BTreeMap::new();
        loop {
            let count = cursor.block()?;
            if count == 0 {
                return Ok(map);
            }
            for _ in 0..count {
                let key = cursor.string()?.to_owned();
                if map.insert(Cow::Owned(key), T::get(cursor)?).is_some() {
                    return Err(cursor.malformed("a key of a map that is given twice"));
                }
            }
        }
    }
}

impl<T: Shaped> Shaped for Vec<T> {
    const SHAPE: Shape = T::MANY;
}

impl<'datum, T: Wire<'datum>> Wire<'datum> for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        T::put_many(self, NEWEST, out);
    }

    fn get(cursor: &mut Cursor<'datum>) -> Result<Self, DecodeError> {
        T::get_many(cursor, NEWEST)
    }

    fn put_version(&self, version: u32, out: &mut Vec<u8>) {
        T::put_many(self, version, out);
    }

    fn get_version(cursor: &mut Cursor<'datum>, version: u32) -> Result<Self, DecodeError> {
        T::get_many(cursor, version)
    }
}

/// Bytes occur only as lists, whose Avro type is `bytes`.
impl Shaped for u8 {
    const SHAPE: Shape = Shape::Bytes;
    const MANY: Shape = Shape::Bytes;
}

impl Wire<'_> for u8 {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(&[*self], out);
    }

    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        match cursor.bytes()? {
            [byte] => Ok(*byte),
            _ => Err(cursor.malformed("one byte is wanted")),
        }
    }

    fn put_many(items: &[Self], _: u32, out: &mut Vec<u8>) {
        put_bytes(items, out);
    }

    fn get_many(cursor: &mut Cursor<'_>, _: u32) -> Result<Vec<Self>, DecodeError> {
        cursor.bytes().map(<[u8]>::to_vec)
    }
}

/// Avro `bytes` and `string`.
#[inline]
pub fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_long(bytes.len() as i64, out);
    out.extend_from_slice(bytes);
}

/// Appends fields of one type, one after the other.
#[inline]
pub fn put_each<'datum, T: Wire<'datum>>(fields: &[T], out: &mut Vec<u8>) {
    for field in fields {
        field.put(out);
    }
}

/// Reads fields of one type, one after the other.
#[inline]
pub fn get_each<'datum, T: Wire<'datum>>(
    cursor: &mut Cursor<'datum>,
    fields: &mut [T],
) -> Result<(), DecodeError> {
    for field in fields {
        *field = T::get(cursor)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ints_of_sixteen_bits_are_read_back_and_others_are_refused() {
        for value in [0, 1, 2_112, u16::MAX] {
            let mut datum = Vec::new();
            value.put(&mut datum);
            assert_eq!(u16::get(&mut Cursor::new(&datum)), Ok(value));
        }
        for value in [-1_i64, 1 << 16, i64::from(i32::MIN), i64::MAX] {
            let mut datum = Vec::new();
            put_long(value, &mut datum);
            let refused = u16::get(&mut Cursor::new(&datum));
            assert!(matches!(refused, Err(DecodeError::Malformed { .. })), "{value}: {refused:?}");
        }
    }
}
