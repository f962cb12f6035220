//! Values of rows.

use crate::table::{DECIMAL_DIGITS, PRICE_SCALE, SIZE_SCALE};

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    Null,
    Bool(bool),
    /// An integer, or a time in nanoseconds since the epoch.
    Int(i64),
    Ints(&'a [i32]),
    Float(f64),
    /// A text or a word.
    Text(&'a str),
    Bytes(&'a [u8]),
    /// A price or size, as an integer in the scale of its column.
    Decimal(i128),
}

impl From<bool> for Cell<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Cell<'_> {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<i32> for Cell<'_> {
    fn from(value: i32) -> Self {
        Self::Int(value.into())
    }
}

impl From<f64> for Cell<'_> {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(value)
    }
}

impl<'a> From<&'a [u8]> for Cell<'a> {
    fn from(value: &'a [u8]) -> Self {
        Self::Bytes(value)
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Null, Into::into)
    }
}

/// A number does not fit a decimal column. Ticks of valid scales always fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the number {number} with {scale} digits after the point does not fit into {DECIMAL_DIGITS} digits with {wanted} after the point"
)]
pub(crate) struct Misfit {
    number: i128,
    scale: u8,
    wanted: u8,
}

/// Returns a price cell from an integer with `scale` digits after the point.
pub(crate) fn price<'a>(number: impl Into<i128>, scale: u8) -> Result<Cell<'a>, Misfit> {
    decimal(number.into(), scale, PRICE_SCALE)
}

/// Returns a cell of a size or volume from an integer with `scale` digits after the point.
pub(crate) fn size<'a>(number: impl Into<i128>, scale: u8) -> Result<Cell<'a>, Misfit> {
    decimal(number.into(), scale, SIZE_SCALE)
}

fn decimal<'a>(number: i128, scale: u8, wanted: u8) -> Result<Cell<'a>, Misfit> {
    let power = |digits: u8| 10_i128.checked_pow(digits.into());
    let moved = match scale <= wanted {
        true => power(wanted - scale).and_then(|unit| number.checked_mul(unit)),
        false => power(scale - wanted).filter(|unit| number % unit == 0).map(|unit| number / unit),
    };
    let limit = 10_u128.pow(DECIMAL_DIGITS.into());
    let fits = moved.filter(|moved| moved.unsigned_abs() < limit);
    fits.map(Cell::Decimal).ok_or(Misfit { number, scale, wanted })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_a_tick_fits_and_stays_exact() {
        for number in [0, 1, -1, i64::MAX, i64::MIN] {
            for scale in 0..=18 {
                let unit = 10_i128.pow(u32::from(18 - scale));
                assert_eq!(
                    price(number, scale),
                    Ok(Cell::Decimal(i128::from(number) * unit)),
                    "{number} {scale}"
                );
            }
        }
        for scale in 0..=9 {
            let unit = 10_i128.pow(u32::from(9 - scale));
            assert_eq!(size(i64::MAX, scale), Ok(Cell::Decimal(i128::from(i64::MAX) * unit)), "{scale}");
        }
        assert_eq!(size(2_500_000, 15), Err(misfit(2_500_000, 15)));
        assert_eq!(size(3_000_000, 15), Ok(Cell::Decimal(3)));
    }

    fn misfit(number: i128, scale: u8) -> Misfit {
        Misfit { number, scale, wanted: 9 }
    }

    #[test]
    fn longer_numbers_are_refused_instead_of_rounded() {
        let limit = 10_i128.pow(38);
        assert_eq!(price(limit - 1, 18), Ok(Cell::Decimal(limit - 1)));
        assert_eq!(price(limit, 18), Err(Misfit { number: limit, scale: 18, wanted: 18 }));
        assert_eq!(price(1 - limit, 18), Ok(Cell::Decimal(1 - limit)));
        assert_eq!(size(i128::MAX, 9), Err(misfit(i128::MAX, 9)));
        assert_eq!(price(i128::MAX, 0), Err(Misfit { number: i128::MAX, scale: 0, wanted: 18 }));
    }
}
