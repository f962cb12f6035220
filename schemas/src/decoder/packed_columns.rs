//! Packed columns into the columns of the pipeline. A column's limits show whether a number of its width can be invalid,
//! so that most columns are checked without a look at their numbers.

use super::dictionary::{NO_SYMBOL, reject};
use super::packed_entries::{Entries, Entry, EntryColumn, Price, Size, Times, TradeId};
use super::tick_plan::unknown_side;
use crate::error::{ColumnProblem, DecodeError};
use crate::long_field::{LONG_FIELD_COUNT, LongField};
use crate::offsets;
use crate::tick::{Side, TickColumns, TickKind};

/// The fields of one record as they were read, without those of its dictionary.
#[derive(Default)]
pub(super) struct PackedRecord<'a> {
    pub(super) rows: i64,
    pub(super) event_time: Times,
    pub(super) receive_time: Times,
    pub(super) quotes: &'a [u8],
    pub(super) symbol: &'a [u8],
    pub(super) side: &'a [u8],
    /// Offsets, in the order of [`LongField`].
    pub(super) longs: [&'a [u8]; LONG_FIELD_COUNT],
}

/// The rows of each kind in one record.
#[derive(Debug, Default)]
pub(super) struct Columns {
    trades: Vec<u32>,
    quotes: Vec<u32>,
    /// Entries of the trades and of the quotes; empty if all rows have the first entry.
    trade_entries: Vec<Entry>,
    quote_entries: Vec<Entry>,
}

impl Columns {
    /// Appends the rows of a record, with dictionary indexes in place of symbol numbers. Returns true if all values are
    /// certainly valid.
    pub(super) fn append(
        &mut self,
        record: &PackedRecord<'_>,
        rows: usize,
        entries: &Entries,
        by_rows: bool,
        out: &mut TickColumns,
    ) -> Result<bool, DecodeError> {
        let start = out.len();
        // A record has more bytes than rows, so a short one cannot take much memory.
        if record.longs[LongField::EventTime as usize].is_empty() {
            return Err(bad("event_time_ns", ColumnProblem::NoBytes));
        }
        self.append_kinds(record.quotes, rows, &mut out.kind)?;
        append_indexes(record.symbol, rows, &mut out.symbol)?;
        let indexes = &out.symbol[start..];
        let entry = |row: &u32| entries.entry(indexes[*row as usize]);
        self.trade_entries.clear();
        self.quote_entries.clear();
        if !record.symbol.is_empty() {
            self.trade_entries.extend(self.trades.iter().map(entry));
            self.quote_entries.extend(self.quotes.iter().map(entry));
        }
        let are_valid = self.append_longs(record, rows, entries, out)?;
        self.append_sides(record.side, rows, by_rows, start, out)?;
        Ok(are_valid)
    }

    /// Appends the kinds of all rows, and gathers the rows of each.
    fn append_kinds(
        &mut self,
        bits: &[u8],
        rows: usize,
        kinds: &mut Vec<TickKind>,
    ) -> Result<(), DecodeError> {
        self.trades.clear();
        self.quotes.clear();
        if bits.is_empty() {
            self.trades.extend(0..rows as u32);
            kinds.resize(kinds.len() + rows, TickKind::Trade);
            return Ok(());
        }
        check_bits("quotes", bits, rows, 1)?;
        kinds.reserve(8 * bits.len());
        for byte in bits {
            kinds.extend_from_slice(&KINDS[usize::from(*byte)]);
        }
        kinds.truncate(kinds.len() - (8 * bits.len() - rows));
        gather_ones(bits.iter().copied(), &mut self.quotes);
        gather_ones(bits.iter().map(|byte| !byte), &mut self.trades);
        // The unused bits are ones of the trades.
        self.trades.truncate(rows - self.quotes.len());
        Ok(())
    }

    /// Appends all numeric columns.
    fn append_longs(
        &self,
        record: &PackedRecord<'_>,
        rows: usize,
        entries: &Entries,
        out: &mut TickColumns,
    ) -> Result<bool, DecodeError> {
        let trades = Rows { numbers: &self.trades, entries: &self.trade_entries };
        let quotes = Rows { numbers: &self.quotes, entries: &self.quote_entries };
        let mut are_valid = true;
        for field in LongField::ALL {
            let bytes = record.longs[field as usize];
            let column = field.column_mut(out);
            let start = column.len();
            column.resize(start + rows, 0);
            let column = Column { field, bytes, out: &mut column[start..] };
            are_valid &= match field {
                LongField::EventTime => column.of_times(record.event_time)?,
                LongField::ReceiveTime => column.of_times(record.receive_time)?,
                LongField::TradeId => column.of_rows::<TradeId>(trades, entries)?,
                LongField::Price => column.of_rows::<Price>(trades, entries)?,
                LongField::Size => column.of_rows::<Size>(trades, entries)?,
                LongField::BidPrice | LongField::AskPrice => column.of_rows::<Price>(quotes, entries)?,
                LongField::BidSize | LongField::AskSize => column.of_rows::<Size>(quotes, entries)?,
            };
        }
        Ok(are_valid)
    }

    fn append_sides(
        &self,
        bits: &[u8],
        rows: usize,
        by_rows: bool,
        start: usize,
        out: &mut TickColumns,
    ) -> Result<(), DecodeError> {
        out.side.resize(start + rows, Side::None);
        if bits.is_empty() {
            return Ok(());
        }
        check_bits("side", bits, self.trades.len(), 2)?;
        let side = &mut out.side[start..];
        let mut any_unknown = false;
        for (trade, row) in self.trades.iter().enumerate() {
            let code = side_code(bits, trade);
            any_unknown |= code == UNKNOWN_SIDE;
            side[*row as usize] = [Side::None, Side::Buy, Side::Sell, Side::None][usize::from(code)];
        }
        if any_unknown {
            for (trade, row) in self.trades.iter().enumerate() {
                if side_code(bits, trade) == UNKNOWN_SIDE {
                    reject(by_rows, &mut out.rejected, unknown_side(*row as usize, UNKNOWN_SIDE.into()))?;
                }
            }
        }
        Ok(())
    }
}

/// Gathers the numbers of all bits that are 1, eight at a time.
fn gather_ones(bits: impl ExactSizeIterator<Item = u8>, numbers: &mut Vec<u32>) {
    numbers.resize(8 * bits.len(), 0);
    let mut count = 0;
    for (first, byte) in (0..).step_by(8).zip(bits) {
        // There is room for eight numbers, because each byte before gave at most as many.
        for (slot, one) in numbers[count..count + 8].iter_mut().zip(ONES[usize::from(byte)]) {
            *slot = first + u32::from(one);
        }
        count += byte.count_ones() as usize;
    }
    numbers.truncate(count);
}

/// Kinds of eight rows for each byte of their bits.
const KINDS: [[TickKind; 8]; 256] = {
    let mut kinds = [[TickKind::Trade; 8]; 256];
    let mut place = 0;
    while place < 8 * 256 {
        let (byte, bit) = (place / 8, place % 8);
        if byte >> bit & 1 == 1 {
            kinds[byte][bit] = TickKind::Quote;
        }
        place += 1;
    }
    kinds
};

/// Numbers of the bits that are 1 in each byte, with zeros after them.
const ONES: [[u8; 8]; 256] = {
    let mut ones = [[0; 8]; 256];
    let mut counts = [0; 256];
    let mut place = 0;
    while place < 8 * 256 {
        let (byte, bit) = (place / 8, place % 8);
        if byte >> bit & 1 == 1 {
            ones[byte][counts[byte]] = bit as u8;
            counts[byte] += 1;
        }
        place += 1;
    }
    ones
};

/// The code that is no side.
const UNKNOWN_SIDE: u8 = 3;

fn side_code(bits: &[u8], trade: usize) -> u8 {
    bits[trade / 4] >> (trade % 4 * 2) & 3
}

/// The rows of one kind.
#[derive(Clone, Copy)]
struct Rows<'a> {
    numbers: &'a [u32],
    /// Entry of each row; empty if all have the dictionary's first entry.
    entries: &'a [Entry],
}

/// A numeric column: the bytes, and the rows to fill, which are 0.
struct Column<'a> {
    field: LongField,
    bytes: &'a [u8],
    out: &'a mut [i64],
}

impl Column<'_> {
    /// Fills all rows with times. Returns true if all are certainly valid.
    fn of_times(self, times: Times) -> Result<bool, DecodeError> {
        if times.unit < 0 {
            return Err(bad(self.field.scaled_name(), ColumnProblem::Unit(times.unit)));
        }
        let width = self.width(self.out.len())?;
        offsets::fill(self.bytes, self.out, |offset| times.value(offset));
        let limits = match times.limits(width) {
            Some(limits) => limits,
            None => self.exact_limits(self.out.len(), |_, offset| times.exact(offset))?,
        };
        Ok(self.allows(limits))
    }

    /// Fills the rows of one kind. Returns true if all values are certainly valid.
    fn of_rows<C: EntryColumn>(self, rows: Rows<'_>, entries: &Entries) -> Result<bool, DecodeError> {
        let width = self.width(rows.numbers.len())?;
        let Rows { numbers, entries: of_rows } = rows;
        let first = entries.entry(0);
        if of_rows.is_empty() {
            offsets::for_each(self.bytes, numbers.iter(), |row, offset| {
                self.out[*row as usize] = C::value(&first, offset);
            });
        } else {
            offsets::for_each(self.bytes, numbers.iter().zip(of_rows), |(row, entry), offset| {
                self.out[*row as usize] = C::value(entry, offset);
            });
        }
        let limits = match entries.limits::<C>(width) {
            Some(limits) => limits,
            None => self.exact_limits(numbers.len(), |item, offset| {
                C::exact(of_rows.get(item).unwrap_or(&first), offset)
            })?,
        };
        Ok(self.allows(limits))
    }

    fn width(&self, items: usize) -> Result<usize, DecodeError> {
        width(self.field.scaled_name(), self.bytes, items)
    }

    /// Returns the least and the greatest value of all items.
    fn exact_limits(
        &self,
        items: usize,
        value: impl Fn(usize, u64) -> Option<i64>,
    ) -> Result<(i64, i64), DecodeError> {
        let (mut least, mut greatest, mut too_large) = (i64::MAX, i64::MIN, None);
        offsets::for_each(self.bytes, 0..items, |item, offset| match value(item, offset) {
            Some(value) => (least, greatest) = (least.min(value), greatest.max(value)),
            None => too_large = too_large.or(Some(item)),
        });
        match too_large {
            Some(item) => Err(bad(self.field.scaled_name(), ColumnProblem::TooLarge { item })),
            None => Ok((least, greatest)),
        }
    }

    /// True if all values between two limits are valid.
    fn allows(&self, (least, greatest): (i64, i64)) -> bool {
        match self.field {
            LongField::TradeId => true,
            LongField::EventTime => least > 0 && greatest < i64::MAX,
            field if field.is_price() => least > i64::MIN && greatest < i64::MAX,
            _ => least >= 0 && greatest < i64::MAX,
        }
    }
}

/// Appends the dictionary indexes of all rows.
fn append_indexes(bytes: &[u8], rows: usize, indexes: &mut Vec<u32>) -> Result<(), DecodeError> {
    width("symbol", bytes, rows)?;
    let start = indexes.len();
    indexes.resize(start + rows, 0);
    offsets::fill(bytes, &mut indexes[start..], |index| u32::try_from(index).unwrap_or(NO_SYMBOL));
    Ok(())
}

fn width(field: &'static str, bytes: &[u8], items: usize) -> Result<usize, DecodeError> {
    let problem = ColumnProblem::Length { bytes: bytes.len(), items };
    offsets::width(bytes.len(), items).ok_or_else(|| bad(field, problem))
}

/// Checks the length of a column of bits, and that those after the last item are 0.
fn check_bits(field: &'static str, bytes: &[u8], items: usize, bits: usize) -> Result<(), DecodeError> {
    if bytes.len() != (items * bits).div_ceil(8) {
        return Err(bad(field, ColumnProblem::Bits { bytes: bytes.len(), items, bits }));
    }
    let used = items * bits % 8;
    match bytes.last() {
        Some(last) if used > 0 && last >> used != 0 => Err(bad(field, ColumnProblem::UnusedBits { items })),
        _ => Ok(()),
    }
}

#[cold]
fn bad(field: &'static str, problem: ColumnProblem) -> DecodeError {
    DecodeError::BadColumn { field, problem }
}
