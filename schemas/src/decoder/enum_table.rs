//! Tables from the writer's enum indexes to our values.

use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::tick::{Side, TickKind};

/// Names of the tick kinds in the schema.
pub(crate) const TICK_KINDS: [(&str, TickKind); 2] = [("TRADE", TickKind::Trade), ("QUOTE", TickKind::Quote)];
/// Names of the sides in the schema.
pub(crate) const SIDES: [(&str, Side); 3] = [("NONE", Side::None), ("BUY", Side::Buy), ("SELL", Side::Sell)];

/// Our value for each one-byte encoding of an enum index; `None` for indexes without a value, and for bytes that begin
/// longer encodings.
#[derive(Clone, Debug)]
pub(super) struct EnumTable<T> {
    values: [Option<T>; 256],
}

impl<T: Copy> EnumTable<T> {
    /// Makes a table from our value for each of the writer's symbols. Only the first 64 symbols of a writer can have
    /// values.
    pub(super) fn new(symbols: impl Iterator<Item = Option<T>>) -> Self {
        let mut values = [None; 256];
        for (index, value) in symbols.enumerate().take(64) {
            values[index << 1] = value;
        }
        Self { values }
    }

    /// Reads one value; `Ok(Err(index))` for an index without a value.
    #[inline(always)]
    pub(super) fn read(&self, cursor: &mut Cursor<'_>) -> Result<Result<T, i64>, DecodeError> {
        if let Some(value) = cursor.peek_byte().and_then(|byte| self.values[usize::from(byte)]) {
            cursor.pass_byte();
            return Ok(Ok(value));
        }
        self.read_any(cursor)
    }

    /// Reads an index with redundant bytes, or one without a value.
    #[cold]
    fn read_any(&self, cursor: &mut Cursor<'_>) -> Result<Result<T, i64>, DecodeError> {
        let index = cursor.long()?;
        let byte = usize::try_from(index).ok().filter(|&index| index < 64).map(|index| index << 1);
        Ok(byte.and_then(|byte| self.values[byte]).ok_or(index))
    }

    /// Appends `count` values to `column`. For an item without a value it calls `unknown`, and appends the default if
    /// that returns `Ok`.
    pub(super) fn read_items(
        &self,
        cursor: &mut Cursor<'_>,
        count: usize,
        default: T,
        column: &mut Vec<T>,
        mut unknown: impl FnMut(usize, i64) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        let before = column.len();
        let bytes = cursor.peek(count)?;
        let mut all_known = true;
        column.extend(bytes.iter().map(|&byte| {
            let value = self.values[usize::from(byte)];
            all_known &= value.is_some();
            value.unwrap_or(default)
        }));
        if all_known {
            cursor.take(count)?;
            return Ok(());
        }
        // Some value is unknown, or an index has redundant bytes: the items are read one by one.
        column.truncate(before);
        for item in 0..count {
            match self.read(cursor)? {
                Ok(value) => column.push(value),
                Err(index) => {
                    unknown(item, index)?;
                    column.push(default);
                }
            }
        }
        Ok(())
    }
}
