//! Notation of numbers in a file: marks, exponents, units, and optional rounding. Everything is exact decimal
//! arithmetic.

use std::borrow::Cow;

use crate::DecimalError;

/// Greatest exponent, and greatest number of places by which a point may move.
const PLACES_MAX: i64 = 64;

/// Notation of a file's numbers, and the number of decimals to which they are rounded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NumberFormat {
    /// The decimal mark.
    pub(super) decimal: u8,
    /// The mark between groups of three digits.
    pub(super) thousands: Option<char>,
    /// Number of decimals to keep; further decimals are rounded, half to even.
    pub(super) round: Option<u8>,
}

impl Default for NumberFormat {
    fn default() -> NumberFormat {
        NumberFormat { decimal: b'.', thousands: None, round: None }
    }
}

impl NumberFormat {
    /// Returns the number as digits with at most one point, divided by 10^`unit`, and rounded half to even to `round`
    /// decimals.
    ///
    /// # Errors
    /// If the text is not a number, has too many digits, or rounds to 0 without being 0.
    pub(super) fn plain<'a>(
        &self,
        text: &'a [u8],
        unit: i64,
        round: Option<u8>,
    ) -> Result<Cow<'a, [u8]>, DecimalError> {
        if self.is_plain(text, unit, round) {
            return Ok(Cow::Borrowed(text));
        }
        let ungrouped = self.without_thousands(text)?;
        let mut number = Number::parse(&ungrouped, self.decimal)?;
        number.decimals += unit;
        number.is_computed |= unit != 0;
        if let Some(round) = round {
            number.round(round.into())?;
        }
        number.text().map(Cow::Owned)
    }

    /// Returns true if the text needs no conversion. A text that is not a number is rejected later.
    fn is_plain(&self, text: &[u8], unit: i64, round: Option<u8>) -> bool {
        let is_simple = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-');
        let decimals = text.iter().rev().position(|byte| *byte == b'.').unwrap_or(0);
        unit == 0
            && self.decimal == b'.'
            && self.thousands.is_none()
            && round.is_none_or(|round| decimals <= round.into())
            && text.iter().all(is_simple)
    }

    /// Returns the text without thousands marks, after checking that they separate groups of three digits.
    fn without_thousands<'a>(&self, text: &'a [u8]) -> Result<Cow<'a, [u8]>, DecimalError> {
        let Some(mark) = self.thousands else { return Ok(Cow::Borrowed(text)) };
        let text = std::str::from_utf8(text).map_err(|_| DecimalError::NotDecimal)?;
        // Some programs use other kinds of blanks between thousands.
        let is_mark =
            |found: char| found == mark || mark == ' ' && matches!(found, '\u{a0}' | '\u{202f}' | '\u{2009}');
        let whole_end = text.find(char::from(self.decimal)).unwrap_or(text.len());
        let (whole, rest) = text.split_at(whole_end);
        let mut groups = whole.split(is_mark);
        let first = groups.next().unwrap_or_default();
        let mut ungrouped = first.to_owned();
        let mut is_grouped = false;
        for group in groups {
            if group.len() != 3 || !group.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(DecimalError::NotDecimal);
            }
            is_grouped = true;
            ungrouped.push_str(group);
        }
        if is_grouped && !(1..=3).contains(&first.trim_start_matches('-').len()) {
            return Err(DecimalError::NotDecimal);
        }
        ungrouped.push_str(rest);
        Ok(Cow::Owned(ungrouped.into_bytes()))
    }
}

/// A number's digits, the last `decimals` of which are after the point. A negative count means zeros that follow the
/// digits.
struct Number {
    is_negative: bool,
    digits: Vec<u8>,
    decimals: i64,
    /// True if trailing zeros result from a computation, and say nothing about the notation of prices.
    is_computed: bool,
}

impl Number {
    fn parse(text: &[u8], decimal: u8) -> Result<Number, DecimalError> {
        let (is_negative, text) = match text.strip_prefix(b"-") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let exponent_at = text.iter().position(|byte| matches!(byte, b'e' | b'E'));
        let (mantissa, exponent) = match exponent_at {
            Some(at) => (&text[..at], exponent(&text[at + 1..])?),
            None => (text, 0),
        };
        let mut digits = Vec::with_capacity(mantissa.len());
        let mut point = None;
        for &byte in mantissa {
            match byte {
                b'0'..=b'9' => digits.push(byte),
                _ if byte == decimal && point.is_none() => point = Some(digits.len()),
                _ => return Err(DecimalError::NotDecimal),
            }
        }
        if digits.is_empty() {
            return Err(DecimalError::Empty);
        }
        let decimals = point.map_or(0, |point| (digits.len() - point) as i64) - exponent;
        Ok(Number { is_negative, digits, decimals, is_computed: exponent_at.is_some() })
    }

    fn is_zero(&self) -> bool {
        self.digits.iter().all(|digit| *digit == b'0')
    }

    /// Rounds half to even.
    fn round(&mut self, decimals: i64) -> Result<(), DecimalError> {
        let cut = self.decimals - decimals;
        if cut <= 0 || self.is_zero() {
            return Ok(());
        }
        self.is_computed = true;
        // Leading zeros provide digits for the rounding and for a carry.
        let cut = usize::try_from(cut).map_err(|_| DecimalError::DoesNotFit)?;
        if cut > self.digits.len() {
            return Err(DecimalError::RoundsToZero);
        }
        self.digits.insert(0, b'0');
        let kept = self.digits.len() - cut;
        let (first, others) = (self.digits[kept], &self.digits[kept + 1..]);
        let is_above = first > b'5' || first == b'5' && others.iter().any(|digit| *digit != b'0');
        let rounds_up = is_above || first == b'5' && (self.digits[kept - 1] - b'0') % 2 == 1;
        self.digits.truncate(kept);
        self.decimals = decimals;
        if rounds_up {
            for digit in self.digits.iter_mut().rev() {
                if *digit < b'9' {
                    *digit += 1;
                    break;
                }
                *digit = b'0';
            }
        }
        if self.is_zero() { Err(DecimalError::RoundsToZero) } else { Ok(()) }
    }

    /// Returns the digits with their point.
    fn text(mut self) -> Result<Vec<u8>, DecimalError> {
        if self.is_zero() {
            return Ok(b"0".to_vec());
        }
        if self.is_computed {
            while self.decimals > 0 && self.digits.last() == Some(&b'0') {
                self.digits.pop();
                self.decimals -= 1;
            }
        }
        if self.decimals.abs() > PLACES_MAX + self.digits.len() as i64 {
            return Err(DecimalError::DoesNotFit);
        }
        while self.decimals < 0 {
            self.digits.push(b'0');
            self.decimals += 1;
        }
        let decimals = usize::try_from(self.decimals).map_err(|_| DecimalError::DoesNotFit)?;
        let leading = self.digits.iter().take_while(|digit| **digit == b'0').count();
        self.digits.drain(..leading.min(self.digits.len().saturating_sub(decimals + 1)));
        let mut text = Vec::with_capacity(self.digits.len().max(decimals) + 3);
        if self.is_negative {
            text.push(b'-');
        }
        let whole = self.digits.len().saturating_sub(decimals);
        text.extend_from_slice(&self.digits[..whole]);
        if whole == 0 {
            text.push(b'0');
        }
        if decimals > 0 {
            text.push(b'.');
            text.resize(text.len() + decimals.saturating_sub(self.digits.len()), b'0');
            text.extend_from_slice(&self.digits[whole..]);
        }
        Ok(text)
    }
}

/// Parses the number after an `e`.
fn exponent(text: &[u8]) -> Result<i64, DecimalError> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    };
    let value = crate::time_unit::parse_integer(digits).ok_or(DecimalError::NotDecimal)?;
    if value > PLACES_MAX { Err(DecimalError::DoesNotFit) } else { Ok(sign * value) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plain(
        format: &NumberFormat,
        text: &str,
        unit: i64,
        round: Option<u8>,
    ) -> Result<String, DecimalError> {
        let plain = format.plain(text.as_bytes(), unit, round)?;
        Ok(String::from_utf8(plain.into_owned()).expect("digits"))
    }

    fn check(text: &str, unit: i64, round: Option<u8>, expected: &str) {
        assert_eq!(plain(&NumberFormat::default(), text, unit, round).as_deref(), Ok(expected), "{text}");
    }

    #[test]
    fn exponents_and_units_move_the_point() {
        check("1.23e-05", 0, None, "0.0000123");
        check("1.24E-05", 0, None, "0.0000124");
        check("2.5e+06", 0, None, "2500000");
        check("1e6", 0, None, "1000000");
        check("-1.5E0", 0, None, "-1.5");
        check("12.50e1", 0, None, "125");
        check("0e5", 0, None, "0");
        check("3720250000000", 9, None, "3720.25");
        check("1002500", 4, None, "100.25");
        check("3720250000000000000000", 18, None, "3720.25");
        check("5", 4, None, "0.0005");
        check("1723075200000.5", -6, None, "1723075200000500000");
    }

    #[test]
    fn rounding_is_half_to_even_in_decimals() {
        check("61686.299999999996", 0, Some(9), "61686.3");
        check("61686.49999999999", 0, Some(9), "61686.5");
        check("0.00031099999999999997", 0, Some(9), "0.000311");
        check("99.9999999999", 0, Some(9), "100");
        check("1.5", 0, Some(0), "2");
        check("2.5", 0, Some(0), "2");
        check("2.50000000000000000001", 0, Some(0), "3");
        check("-0.125", 0, Some(2), "-0.12");
        check("0.135", 0, Some(2), "0.14");
        check("1.1", 0, Some(9), "1.1");
        check("0.00000000000", 0, Some(9), "0");
        let rounded = |text: &str| plain(&NumberFormat::default(), text, 0, Some(9));
        assert_eq!(rounded("0.0000000004"), Err(DecimalError::RoundsToZero));
        assert_eq!(rounded("1e-40"), Err(DecimalError::RoundsToZero));
    }

    #[test]
    fn marks_of_other_countries() {
        let german = NumberFormat { decimal: b',', thousands: Some('.'), round: None };
        let read = |text: &str| plain(&german, text, 0, None);
        assert_eq!(read("1.234,56").as_deref(), Ok("1234.56"));
        assert_eq!(read("-1.234.567,5").as_deref(), Ok("-1234567.5"));
        assert_eq!(read("12").as_deref(), Ok("12"));
        assert_eq!(read("1234,56").as_deref(), Ok("1234.56"));
        // A decimal point is not taken for a thousands mark.
        for text in ["1234.56", "1.23", "1.2345", "1234.567,0", ".123", "1.234.56", "1,2.345"] {
            assert!(read(text).is_err(), "{text}");
        }
        let french = NumberFormat { decimal: b',', thousands: Some(' '), round: None };
        assert_eq!(plain(&french, "1\u{202f}234\u{a0}567,5", 0, None).as_deref(), Ok("1234567.5"));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["e5", "1e", "1e5.5", "1ee5", "NaN", "inf", "--1e2", "1,5e3", "1.2.3e4", "0x1e"] {
            assert!(plain(&NumberFormat::default(), text, 0, None).is_err(), "{text}");
        }
        assert_eq!(plain(&NumberFormat::default(), "1e65", 0, None), Err(DecimalError::DoesNotFit));
    }

    proptest! {
        #[test]
        fn rounding_agrees_with_integers(value in 1_u64..1_000_000_000_000, cut in 1_u32..9) {
            let power = 10_u64.pow(cut);
            let (below, rest) = (value / power, value % power);
            let up = rest * 2 > power || rest * 2 == power && below % 2 == 1;
            let expected = below + u64::from(up);
            let text = format!("{below}.{rest:0width$}e0", width = cut as usize);
            let rounded = plain(&NumberFormat::default(), &text, 0, Some(0));
            let expected = if expected == 0 { Err(DecimalError::RoundsToZero) } else { Ok(expected) };
            prop_assert_eq!(rounded.map(|text| text.parse::<u64>().expect("a whole number")), expected);
        }
    }
}
