//! How our event types lie in their Avro datum: a struct's fields in schema order, a union as branch index and branch,
//! an enum as index.
//!
//! Written out rather than walked by schema at run time: a journal entry goes with every step of the scheduler. The
//! tests decode the bytes with apache-avro by the `.avsc` and compare, which holds the two together.

use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::varint::put_long;

/// A value with an Avro encoding.
pub trait Wire: Sized {
    /// Appends it.
    fn put(&self, out: &mut Vec<u8>);
    /// Reads it.
    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError>;
}

/// A record: names every field, in schema order.
macro_rules! wire_record {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl $crate::wire::Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                let Self { $($field),* } = self;
                $($crate::wire::Wire::put($field, out);)*
                let _ = out;
            }

            fn get(cursor: &mut $crate::cursor::Cursor<'_>) -> Result<Self, $crate::error::DecodeError> {
                let _ = &cursor;
                Ok(Self { $($field: $crate::wire::Wire::get(cursor)?),* })
            }
        }
    };
}

/// A record some of whose fields came with a later version, which is written only where one of them is not empty: names every
/// field, those that came later behind a bar.
macro_rules! wire_record_with_later {
    ($type:ident { $($field:ident),* | $($later:ident),* $(,)? }) => {
        impl $type {
            /// Appends the fields of the earlier version.
            pub fn put_earlier(&self, out: &mut Vec<u8>) {
                let Self { $($field,)* $($later: _),* } = self;
                $($crate::wire::Wire::put($field, out);)*
            }

            /// Reads the fields of the earlier version; the others are empty.
            pub fn get_earlier(
                cursor: &mut $crate::cursor::Cursor<'_>,
            ) -> Result<Self, $crate::error::DecodeError> {
                Ok(Self { $($field: $crate::wire::Wire::get(cursor)?,)* $($later: Default::default()),* })
            }
        }

        impl $crate::wire::Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                self.put_earlier(out);
                $($crate::wire::Wire::put(&self.$later, out);)*
            }

            fn get(cursor: &mut $crate::cursor::Cursor<'_>) -> Result<Self, $crate::error::DecodeError> {
                let mut record = Self::get_earlier(cursor)?;
                $(record.$later = $crate::wire::Wire::get(cursor)?;)*
                Ok(record)
            }
        }
    };
}

/// A union of records: names every branch, in schema order.
macro_rules! wire_union {
    ($type:ident { $($index:literal => $branch:ident),* $(,)? }) => {
        impl $crate::wire::Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$branch(value) => {
                        out.push($index << 1);
                        $crate::wire::Wire::put(value, out);
                    })*
                }
            }

            fn get(cursor: &mut $crate::cursor::Cursor<'_>) -> Result<Self, $crate::error::DecodeError> {
                match cursor.long()? {
                    $($index => Ok(Self::$branch($crate::wire::Wire::get(cursor)?)),)*
                    _ => Err(cursor.malformed(concat!("no such branch of ", stringify!($type)))),
                }
            }
        }
    };
}

/// An enum: names every symbol, in schema order.
macro_rules! wire_enum {
    ($type:ident { $($index:literal => $symbol:ident),* $(,)? }) => {
        impl $crate::wire::Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                out.push(match self {
                    $(Self::$symbol => $index << 1,)*
                });
            }

            fn get(cursor: &mut $crate::cursor::Cursor<'_>) -> Result<Self, $crate::error::DecodeError> {
                match cursor.long()? {
                    $($index => Ok(Self::$symbol),)*
                    _ => Err(cursor.malformed(concat!("no such symbol of ", stringify!($type)))),
                }
            }
        }
    };
}

pub(crate) use {wire_enum, wire_record, wire_record_with_later, wire_union};

impl Wire for i64 {
    fn put(&self, out: &mut Vec<u8>) {
        put_long(*self, out);
    }

    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        cursor.long()
    }
}

impl Wire for i32 {
    fn put(&self, out: &mut Vec<u8>) {
        put_long(i64::from(*self), out);
    }

    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        cursor.int()
    }
}

impl Wire for f64 {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        cursor.double()
    }
}

impl Wire for bool {
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

impl Wire for String {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(self.as_bytes(), out);
    }

    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        cursor.string().map(str::to_owned)
    }
}

/// `["null", T]`.
impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            None => out.push(0),
            Some(value) => {
                out.push(2);
                value.put(out);
            }
        }
    }

    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        match cursor.long()? {
            0 => Ok(None),
            1 => T::get(cursor).map(Some),
            _ => Err(cursor.malformed("no such branch of a nullable field")),
        }
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        if !self.is_empty() {
            put_long(self.len() as i64, out);
            for item in self {
                item.put(out);
            }
        }
        out.push(0);
    }

    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let mut items = Vec::new();
        loop {
            let count = cursor.block()?;
            if count == 0 {
                return Ok(items);
            }
            // A damaged count is at most the bytes left; reserve little ahead of what is really there.
            items.reserve(count.min(256));
            for _ in 0..count {
                items.push(T::get(cursor)?);
            }
        }
    }
}

/// Avro `bytes` and `string`.
#[inline]
pub fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_long(bytes.len() as i64, out);
    out.extend_from_slice(bytes);
}
