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

/// The entries of one record.
#[derive(Debug, Default)]
pub(super) struct Entries {
    numbers: [Vec<i64>; 4],
    pub(super) prices: Bases,
    pub(super) sizes: Bases,
    pub(super) trade_ids: Bases,
}

impl Entries {
    pub(super) fn clear(&mut self) {
        self.numbers.iter_mut().for_each(Vec::clear);
    }

    pub(super) fn numbers_mut(&mut self, field: EntryField) -> &mut Vec<i64> {
        &mut self.numbers[field as usize]
    }

    /// Makes the bases and units of `count` entries from the numbers that were read.
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
        let price_units = price_zeros.iter().map(|zeros| unit(EntryField::PriceZeros, *zeros));
        let size_units = size_zeros.iter().map(|zeros| unit(EntryField::SizeZeros, *zeros));
        self.prices.set(price_base.iter().zip(price_units).map(|(base, unit)| Ok((*base, unit?))))?;
        self.sizes.set(size_units.map(|unit| Ok((0, unit?))))?;
        self.trade_ids.set(trade_id_base.iter().map(|base| Ok((*base, 1))))
    }
}

/// Bases and units by entry: a value is (base + offset) × unit. An index beyond the dictionary has base 0 and unit 1.
#[derive(Debug, Default)]
pub(super) struct Bases {
    entries: Vec<(i64, i64)>,
    /// The least and the greatest base, and 0 if it is beyond both.
    base_min: i64,
    base_max: i64,
    unit_max: i64,
}

impl Bases {
    fn set(
        &mut self,
        entries: impl Iterator<Item = Result<(i64, i64), DecodeError>>,
    ) -> Result<(), DecodeError> {
        self.entries.clear();
        (self.base_min, self.base_max, self.unit_max) = (0, 0, 1);
        for entry in entries {
            let (base, unit) = entry?;
            self.base_min = self.base_min.min(base);
            self.base_max = self.base_max.max(base);
            self.unit_max = self.unit_max.max(unit);
            self.entries.push((base, unit));
        }
        Ok(())
    }

    fn entry(&self, index: u32) -> (i64, i64) {
        self.entries.get(index as usize).copied().unwrap_or((0, 1))
    }

    /// Returns a value; it is arbitrary if it does not fit.
    #[inline(always)]
    pub(super) fn value(&self, index: u32, offset: u64) -> i64 {
        let (base, unit) = self.entry(index);
        base.wrapping_add(offset as i64).wrapping_mul(unit)
    }

    /// Returns a value; `None` if it does not fit into 64 bits.
    pub(super) fn exact(&self, index: u32, offset: u64) -> Option<i64> {
        let (base, unit) = self.entry(index);
        i64::try_from((i128::from(base) + i128::from(offset)) * i128::from(unit)).ok()
    }

    /// Returns limits of the values with offsets of a width; `None` if they do not fit into 64 bits.
    pub(super) fn limits(&self, width: usize) -> Option<(i64, i64)> {
        let unit = i128::from(self.unit_max);
        let greatest = (i128::from(self.base_max) + i128::from(offsets::largest(width))) * unit;
        Some((i64::try_from(i128::from(self.base_min) * unit).ok()?, i64::try_from(greatest).ok()?))
    }

    /// True if offsets of 0 give 0 in every entry.
    pub(super) fn are_zero(&self) -> bool {
        self.base_min == 0 && self.base_max == 0
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
    match u32::try_from(zeros) {
        Ok(zeros) if zeros <= Scales::MAX.into() => Ok(10_i64.pow(zeros)),
        _ => Err(DecodeError::BadColumn { field: field.name(), problem: ColumnProblem::Zeros(zeros) }),
    }
}
