//! Bases and units of packed columns: those of each entry of the dictionary.

use crate::error::{ColumnProblem, DecodeError};
use crate::offsets;
use crate::tick::Scales;

/// A field with a number for each entry.
#[derive(Clone, Copy, Debug)]
pub(super) enum EntryField {
    PriceZeros,
    SizeZeros,
    PriceBase,
    TradeIdBase,
}

impl EntryField {
    const ALL: [Self; 4] = [Self::PriceZeros, Self::SizeZeros, Self::PriceBase, Self::TradeIdBase];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::PriceZeros => "price_zeros",
            Self::SizeZeros => "size_zeros",
            Self::PriceBase => "price_base",
            Self::TradeIdBase => "trade_id_base",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.name() == name)
    }
}

/// An entry of the dictionary; by default, it stands for an index beyond.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    price_base: i64,
    price_unit: i64,
    size_unit: i64,
    trade_id_base: i64,
}

impl Default for Entry {
    fn default() -> Self {
        Self { price_base: 0, price_unit: 1, size_unit: 1, trade_id_base: 0 }
    }
}

/// A column whose values are (base + offset) × unit, with base and unit of the row's entry. It is a type and not a
/// value, so that the compiler generates code for each.
pub(super) trait EntryColumn {
    fn base_and_unit(entry: &Entry) -> (i64, i64);

    /// Returns a value; it is arbitrary if it does not fit.
    #[inline(always)]
    fn value(entry: &Entry, offset: u64) -> i64 {
        let (base, unit) = Self::base_and_unit(entry);
        base.wrapping_add(offset as i64).wrapping_mul(unit)
    }

    /// Returns a value; `None` if it does not fit into 64 bits.
    fn exact(entry: &Entry, offset: u64) -> Option<i64> {
        let (base, unit) = Self::base_and_unit(entry);
        i64::try_from((i128::from(base) + i128::from(offset)) * i128::from(unit)).ok()
    }
}

macro_rules! entry_columns {
    ($($name:ident = |$entry:ident| $base_and_unit:expr,)+) => {$(
        pub(super) struct $name;

        impl EntryColumn for $name {
            #[inline(always)]
            fn base_and_unit($entry: &Entry) -> (i64, i64) {
                $base_and_unit
            }
        }
    )+};
}

entry_columns! {
    Price = |entry| (entry.price_base, entry.price_unit),
    Size = |entry| (0, entry.size_unit),
    TradeId = |entry| (entry.trade_id_base, 1),
}

/// The entries of one record.
#[derive(Debug, Default)]
pub(super) struct Entries {
    numbers: [Vec<i64>; 4],
    entries: Vec<Entry>,
    /// The least and the greatest of each number among all entries and the default.
    least: Entry,
    greatest: Entry,
}

impl Entries {
    pub(super) fn clear(&mut self) {
        self.numbers.iter_mut().for_each(Vec::clear);
    }

    pub(super) fn numbers_mut(&mut self, field: EntryField) -> &mut Vec<i64> {
        &mut self.numbers[field as usize]
    }

    /// Makes `count` entries from the numbers that were read.
    pub(super) fn finish(&mut self, count: usize) -> Result<(), DecodeError> {
        for field in EntryField::ALL {
            let numbers = &mut self.numbers[field as usize];
            match numbers.len() {
                0 => numbers.resize(count, 0),
                found if found != count => {
                    return Err(DecodeError::LengthsDiffer { field: field.name(), found, expected: count });
                }
                _ => {}
            }
        }
        let [price_zeros, size_zeros, price_base, trade_id_base] = &self.numbers;
        self.entries.clear();
        (self.least, self.greatest) = Default::default();
        let zeros = price_zeros.iter().zip(size_zeros);
        let bases = price_base.iter().zip(trade_id_base);
        for ((price_zeros, size_zeros), (price_base, trade_id_base)) in zeros.zip(bases) {
            let entry = Entry {
                price_base: *price_base,
                price_unit: unit(EntryField::PriceZeros, *price_zeros)?,
                size_unit: unit(EntryField::SizeZeros, *size_zeros)?,
                trade_id_base: *trade_id_base,
            };
            self.least = self.least.with(&entry, i64::min);
            self.greatest = self.greatest.with(&entry, i64::max);
            self.entries.push(entry);
        }
        Ok(())
    }

    /// Returns the entry with an index.
    #[inline(always)]
    pub(super) fn entry(&self, index: u32) -> Entry {
        self.entries.get(index as usize).copied().unwrap_or_default()
    }

    /// Returns limits of the values with offsets of a width; `None` if they do not fit into 64 bits.
    pub(super) fn limits<C: EntryColumn>(&self, width: usize) -> Option<(i64, i64)> {
        let ((least, _), (greatest, unit)) =
            (C::base_and_unit(&self.least), C::base_and_unit(&self.greatest));
        let largest = i128::from(greatest) + i128::from(offsets::largest(width));
        let limit = |value: i128| i64::try_from(value * i128::from(unit)).ok();
        Some((limit(least.into())?, limit(largest)?))
    }
}

impl Entry {
    fn with(&self, other: &Self, of: impl Fn(i64, i64) -> i64) -> Self {
        Self {
            price_base: of(self.price_base, other.price_base),
            price_unit: of(self.price_unit, other.price_unit),
            size_unit: of(self.size_unit, other.size_unit),
            trade_id_base: of(self.trade_id_base, other.trade_id_base),
        }
    }
}

/// Base and unit of a column of times: a value is base + unit × offset.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    pub(super) base: i64,
    pub(super) unit: i64,
}

impl Times {
    /// Returns a value; it is arbitrary if it does not fit.
    #[inline(always)]
    pub(super) fn value(self, offset: u64) -> i64 {
        self.base.wrapping_add(self.unit.wrapping_mul(offset as i64))
    }

    /// Returns a value; `None` if it does not fit into 64 bits.
    pub(super) fn exact(self, offset: u64) -> Option<i64> {
        i64::try_from(i128::from(self.base) + i128::from(self.unit) * i128::from(offset)).ok()
    }

    /// Returns limits of the values with offsets of a width; `None` if they do not fit into 64 bits.
    pub(super) fn limits(self, width: usize) -> Option<(i64, i64)> {
        Some((self.base, self.exact(offsets::largest(width))?))
    }
}

/// Returns the factor that appends so many zeros to a number.
fn unit(field: EntryField, zeros: i64) -> Result<i64, DecodeError> {
    let unit = usize::try_from(zeros).ok().and_then(|zeros| POWERS_OF_TEN.get(zeros));
    let problem = ColumnProblem::Zeros(zeros);
    unit.copied().ok_or(DecodeError::BadColumn { field: field.name(), problem })
}

const POWERS_OF_TEN: [i64; Scales::MAX as usize + 1] = {
    let mut powers = [1; _];
    let mut zeros = 1;
    while zeros < powers.len() {
        powers[zeros] = powers[zeros - 1] * 10;
        zeros += 1;
    }
    powers
};
