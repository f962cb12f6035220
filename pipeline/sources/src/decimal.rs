//! Converts decimal text to scaled integers exactly, without floats.
//!
//! Almost all prices and sizes fit 64-bit integers in units of 1e-9. Others get another scale. The scale of a price
//! leaves room for prices a million times as large and for further digits, because a symbol keeps its first scale. The
//! scale of a size is the finest at which the size fits 64 bits.

use warptape_events::tick::Scales;

const DECIMALS: usize = 9;

/// Reasons why a text is not a price or size. Each message names the expected form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    /// The text has no digit.
    #[error("a decimal number such as 61837.63")]
    Empty,
    /// The text has characters other than digits and one point: signs, NaN, inf, spaces, and exponents outside CSV
    /// files.
    #[error(
        "digits with at most one decimal point, such as 61837.63, not NaN or inf. In a mapping, `signed=yes` \
         allows minus signs, and `decimal` or `thousands` other marks"
    )]
    NotDecimal,
    /// The number is above 0 but rounds to 0.
    #[error("a number that stays above 0 after rounding: keep more decimals")]
    RoundsToZero,
    /// The number has more digits, in total or after the point, than a 64-bit integer can hold.
    #[error(
        "a number of at most 9223372036854775806 after its decimal point is left out: prices have at most 18 decimals, sizes at most 9"
    )]
    DoesNotFit,
}

/// Prices or sizes of one tick as integers, and their common number of decimals.
pub type Scaled<const N: usize> = ([i64; N], u8);

/// Parses prices to one common scale: `12.5` and `13`; with `signed` also `-12.5`.
///
/// # Errors
/// The index of the invalid price, and its expected form.
pub fn parse_prices<const N: usize>(
    texts: [&[u8]; N],
    signed: bool,
) -> Result<Scaled<N>, (usize, DecimalError)> {
    parse_all(texts, true, signed, |digits| {
        let with_room = |scale: &u8| digits.fit(*scale, i64::MAX / PRICE_ROOM);
        // Keeps all written digits if they fit, because trailing zeros may be other digits in the next price.
        let written = texts.iter().map(|text| digits_behind_point(text)).max().unwrap_or(0);
        let written = u8::try_from(written).ok().filter(|digits| *digits <= Scales::MAX).unwrap_or(0);
        let finest = (written..=Scales::MAX).rev().find(with_room);
        let fits = |scale: &u8| digits.fit(*scale, i64::MAX);
        finest.or_else(|| (written..=Scales::MAX).find(fits)).or_else(|| (0..=Scales::MAX).rev().find(fits))
    })
}

/// Parses sizes to one common scale.
///
/// # Errors
/// The index of the invalid size, and its expected form.
pub fn parse_sizes<const N: usize>(texts: [&[u8]; N]) -> Result<Scaled<N>, (usize, DecimalError)> {
    parse_all(texts, false, false, |digits| {
        (0..=Scales::E9.size).rev().find(|scale| digits.fit(*scale, i64::MAX))
    })
}

/// Factor by which a symbol's later prices may exceed its first one.
const PRICE_ROOM: i64 = 1_000_000;

fn parse_all<const N: usize>(
    texts: [&[u8]; N],
    is_price: bool,
    signed: bool,
    scale: impl FnOnce(&Digits<N>) -> Option<u8>,
) -> Result<Scaled<N>, (usize, DecimalError)> {
    let mut values = [0; N];
    let mut fit = true;
    for (number, text) in texts.iter().enumerate() {
        let (sign, digits) = match text.strip_prefix(b"-") {
            Some(digits) if signed => (-1, digits),
            _ => (1, *text),
        };
        match parse_e9(digits) {
            Ok(_) if is_price && digits_behind_point(digits) > DECIMALS => fit = false,
            Ok(value) => values[number] = sign * value,
            Err(DecimalError::DoesNotFit) => fit = false,
            Err(error) => return Err((number, error)),
        }
    }
    if fit {
        return Ok((values, Scales::E9.price));
    }
    if let Some(number) =
        texts.iter().position(|text| !text.iter().all(|byte| b"-.0123456789".contains(byte)))
    {
        return Err((number, DecimalError::NotDecimal));
    }
    let digits = Digits::of(texts);
    let does_not_fit = || {
        let fits =
            |of: &Option<(i128, u32)>| (0..=Scales::MAX).any(|scale| Digits([*of]).fit(scale, i64::MAX));
        (digits.0.iter().position(|of| !fits(of)).unwrap_or(0), DecimalError::DoesNotFit)
    };
    let scale = scale(&digits).ok_or_else(does_not_fit)?;
    Ok((digits.at(scale), scale))
}

fn digits_behind_point(text: &[u8]) -> usize {
    text.iter().position(|byte| *byte == b'.').map_or(0, |point| text.len() - point - 1)
}

/// Numbers, each as all its digits and the count of digits after the point; `None` if there are too many.
struct Digits<const N: usize>([Option<(i128, u32)>; N]);

impl<const N: usize> Digits<N> {
    /// Converts texts that are valid decimal numbers.
    fn of(texts: [&[u8]; N]) -> Self {
        Self(texts.map(|text| {
            let text = std::str::from_utf8(text).ok()?;
            let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
            let fraction = fraction.trim_end_matches('0');
            let value = format!("{whole}{fraction}").parse().ok()?;
            Some((value, u32::try_from(fraction.len()).ok()?))
        }))
    }

    /// Returns true if all numbers fit this scale with absolute values up to `max`.
    fn fit(&self, scale: u8, max: i64) -> bool {
        self.0.iter().all(|of| {
            let value = of.and_then(|of| at_scale(of, scale));
            value.is_some_and(|value| value.unsigned_abs() < max.unsigned_abs().into())
        })
    }

    /// Returns the numbers as integers of a scale at which they fit.
    fn at(&self, scale: u8) -> [i64; N] {
        self.0.map(|of| {
            let value = of.and_then(|of| at_scale(of, scale)).and_then(|value| i64::try_from(value).ok());
            value.expect("fit said so")
        })
    }
}

fn at_scale((value, digits): (i128, u32), scale: u8) -> Option<i128> {
    value.checked_mul(10_i128.pow(u32::from(scale).checked_sub(digits)?))
}

/// Parses `123.45` into `123_450_000_000`. The text consists of digits, at least one, and at most one point. Zeros
/// beyond the ninth decimal are allowed.
///
/// # Errors
/// Names the expected form: see [`DecimalError`].
pub fn parse_e9(text: impl AsRef<[u8]>) -> Result<i64, DecimalError> {
    let text = text.as_ref();
    let (whole, fraction) = match text.iter().position(|&byte| byte == b'.') {
        Some(point) => (&text[..point], &text[point + 1..]),
        None => (text, &[][..]),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(DecimalError::Empty);
    }
    let kept = fraction.len().min(DECIMALS);
    let mut value: i64 = 0;
    for &byte in whole.iter().chain(&fraction[..kept]) {
        value = push_digit(value, byte)?;
    }
    for _ in kept..DECIMALS {
        value = value.checked_mul(10).ok_or(DecimalError::DoesNotFit)?;
    }
    for &byte in &fraction[kept..] {
        match byte {
            b'0' => {}
            b'1'..=b'9' => return Err(DecimalError::DoesNotFit),
            _ => return Err(DecimalError::NotDecimal),
        }
    }
    if value == i64::MAX { Err(DecimalError::DoesNotFit) } else { Ok(value) }
}

fn push_digit(value: i64, byte: u8) -> Result<i64, DecimalError> {
    let digit = byte.wrapping_sub(b'0');
    if digit > 9 {
        return Err(DecimalError::NotDecimal);
    }
    value
        .checked_mul(10)
        .and_then(|value| value.checked_add(i64::from(digit)))
        .ok_or(DecimalError::DoesNotFit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<i64, DecimalError>) {
        assert_eq!(parse_e9(text), expected, "{text:?}");
    }

    #[test]
    fn exact_values() {
        check("0", Ok(0));
        check("1", Ok(1_000_000_000));
        check("61837.63000000", Ok(61_837_630_000_000));
        check("0.000000001", Ok(1));
        check("0.1", Ok(100_000_000));
        check("007.50", Ok(7_500_000_000));
        check(".5", Ok(500_000_000));
        check("5.", Ok(5_000_000_000));
        check("1.0000000000000", Ok(1_000_000_000));
        check("9223372036.854775806", Ok(i64::MAX - 1));
        // No float holds this value exactly, so a parser that used floats would be slightly off.
        check("4503599.627370497", Ok(4_503_599_627_370_497));
        check("9007199254.740993001", Ok(9_007_199_254_740_993_001));
    }

    #[test]
    fn refused_values() {
        check("", Err(DecimalError::Empty));
        check(".", Err(DecimalError::Empty));
        for text in [
            "NaN",
            "nan",
            "inf",
            "-1",
            "+1",
            "1e5",
            "1E-5",
            " 1",
            "1 ",
            "1,5",
            "1.2.3",
            "0x10",
            "１",
            "--",
            "1.0000000000x",
        ] {
            check(text, Err(DecimalError::NotDecimal));
        }
        check("0.0000000001", Err(DecimalError::DoesNotFit));
        check("1.1234567891", Err(DecimalError::DoesNotFit));
        check("9223372036.854775807", Err(DecimalError::DoesNotFit));
        check("9223372036.854775808", Err(DecimalError::DoesNotFit));
        check("10000000000", Err(DecimalError::DoesNotFit));
        check("99999999999999999999999999", Err(DecimalError::DoesNotFit));
    }

    #[test]
    fn printed_integers_come_back() {
        let mut value: i64 = 1;
        for step in 0..5_000_u64 {
            value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
                & (i64::MAX - 1);
            let value = value >> (step % 60);
            check(&format!("{}.{:09}", value / 1_000_000_000, value % 1_000_000_000), Ok(value));
        }
    }

    #[test]
    fn numbers_of_other_scales() {
        let prices = |texts: [&str; 2]| parse_prices(texts.map(str::as_bytes), true);
        assert_eq!(prices(["12.5", "-13"]), Ok(([12_500_000_000, -13_000_000_000], 9)));
        // A price a million times as large would still fit 64 bits.
        assert_eq!(prices(["0.0000000123", "0.00000001234"]), Ok(([12_300_000_000, 12_340_000_000], 18)));
        // Trailing zeros count, because the next price may have other digits there.
        assert_eq!(prices(["0.0000001230", "0"]), Ok(([123_000_000_000, 0], 18)));
        assert_eq!(prices(["61837.6300000000", "1"]), Ok(([618_376_300_000_000, 10_000_000_000], 10)));
        assert_eq!(prices(["99999999999999999999abc", "1"]), Err((0, DecimalError::NotDecimal)));
        assert_eq!(prices(["1", "1.12345678901x"]), Err((1, DecimalError::NotDecimal)));
        assert_eq!(prices(["1.00000000000000000000", "1"]), Ok(([1_000_000_000_000, 1_000_000_000_000], 12)));
        assert_eq!(prices(["10000000000", "-0.5"]), Ok(([1_000_000_000_000, -50], 2)));
        assert_eq!(prices(["9000000000000000000.", "0.0"]), Ok(([9_000_000_000_000_000_000, 0], 0)));
        assert_eq!(prices(["1", "99999999999999999999"]), Err((1, DecimalError::DoesNotFit)));
        assert_eq!(prices(["0.0000000000000000001", "1"]), Err((0, DecimalError::DoesNotFit)));
        assert_eq!(prices(["1", "--1"]), Err((1, DecimalError::NotDecimal)));
        assert_eq!(parse_prices([&b"-1"[..]], false), Err((0, DecimalError::NotDecimal)));
        let sizes = |text: &str| parse_sizes([text.as_bytes()]);
        assert_eq!(sizes("18999999999"), Ok(([1_899_999_999_900_000_000], 8)));
        assert_eq!(sizes("18999999999.123456789"), Err((0, DecimalError::DoesNotFit)));
        assert_eq!(sizes("0.0000000001"), Err((0, DecimalError::DoesNotFit)));
        assert_eq!(sizes("-1"), Err((0, DecimalError::NotDecimal)));
    }
}
