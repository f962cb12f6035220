//! Scaled integers as decimal text.

use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::shape::{Shape, Shaped};
use crate::wire::{Wire, put_bytes};

/// An integer with `SCALE` digits after the decimal point, written as text in records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal<const SCALE: usize>(pub i128);

impl<const SCALE: usize> Decimal<SCALE> {
    /// Parses the text that [`decimal_text`] writes; `None` if it is not a decimal number with at most `SCALE` digits
    /// after the point.
    fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let padding = SCALE.checked_sub(fraction.len())?;
        let digits = whole.strip_prefix('-').unwrap_or(whole);
        if digits.is_empty() || !digits.bytes().chain(fraction.bytes()).all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        format!("{whole}{fraction}{}", "0".repeat(padding)).parse().map(Self).ok()
    }
}

impl<const SCALE: usize> Shaped for Decimal<SCALE> {
    const SHAPE: Shape = Shape::String;
}

impl<const SCALE: usize> Wire<'_> for Decimal<SCALE> {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(decimal_text(self.0, SCALE).as_bytes(), out);
    }

    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let text = cursor.string()?;
        Self::parse(text)
            .ok_or_else(|| cursor.malformed("a text that is no decimal number of its field's scale"))
    }
}

/// Returns an integer in units of 1e-9 as a decimal number: 61,234,500,000,000 is `61234.5`.
pub fn decimal_e9(value: i64) -> String {
    decimal_text(value.into(), 9)
}

/// Returns an integer with `scale` digits after the decimal point as text, without trailing zeros.
pub fn decimal_text(value: i128, scale: usize) -> String {
    let digits = format!("{:01$}", value.unsigned_abs(), scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let (sign, fraction) = (if value < 0 { "-" } else { "" }, fraction.trim_end_matches('0'));
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_other_scales() {
        let cases =
            [(0, 0, "0"), (-120, 2, "-1.2"), (7, 18, "0.000000000000000007"), (-5, 0, "-5"), (100, 2, "1")];
        for (value, scale, text) in cases {
            assert_eq!(decimal_text(value, scale), text);
        }
        assert_eq!(decimal_text(i128::MIN, 0), "-170141183460469231731687303715884105728");
    }

    #[test]
    fn decimals_are_read_back_and_other_texts_are_refused() {
        for number in [0, 1, -1, 500, i128::from(i64::MIN), i128::MAX / 1_000] {
            assert_eq!(Decimal::<3>::parse(&decimal_text(number, 3)), Some(Decimal(number)));
        }
        for refused in ["", "-", ".5", "+5", "1.2345", "1.+5", "1,5", "x", "1.5.5"] {
            assert_eq!(Decimal::<3>::parse(refused), None, "{refused}");
        }
    }

    #[test]
    fn decimals() {
        let cases = [
            (0, "0"),
            (1, "0.000000001"),
            (-1, "-0.000000001"),
            (61_234_500_000_000, "61234.5"),
            (100_000_000_000, "100"),
            (i64::MAX, "9223372036.854775807"),
            (i64::MIN, "-9223372036.854775808"),
        ];
        for (value, text) in cases {
            assert_eq!(decimal_e9(value), text);
        }
    }
}
