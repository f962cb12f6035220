//! Decimal text to integers scaled by 1e-9, exactly: no float is ever involved.

const DECIMALS: usize = 9;

/// Why a text is no price or size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    /// No digit at all.
    #[error("a decimal number such as 61837.63")]
    Empty,
    /// Something other than digits and one point: signs, exponents, NaN, inf, spaces.
    #[error("digits with at most one decimal point (no sign, exponent, NaN or inf)")]
    NotDecimal,
    /// More than 9 decimals that are not zero.
    #[error("at most 9 decimals, as the scale is 1e-9")]
    TooFine,
    /// More than a 64-bit integer of 1e-9 holds; the greatest one is no value either, since it stands for "none".
    #[error("at most 9223372036.854775806")]
    TooLarge,
}

/// Parses `123.45` into `123_450_000_000`. Digits and at most one point, at least one digit; zeros beyond the ninth
/// decimal are fine.
///
/// # Errors
/// Says what is expected: see [`DecimalError`].
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
        value = value.checked_mul(10).ok_or(DecimalError::TooLarge)?;
    }
    for &byte in &fraction[kept..] {
        match byte {
            b'0' => {}
            b'1'..=b'9' => return Err(DecimalError::TooFine),
            _ => return Err(DecimalError::NotDecimal),
        }
    }
    if value == i64::MAX { Err(DecimalError::TooLarge) } else { Ok(value) }
}

fn push_digit(value: i64, byte: u8) -> Result<i64, DecimalError> {
    let digit = byte.wrapping_sub(b'0');
    if digit > 9 {
        return Err(DecimalError::NotDecimal);
    }
    value.checked_mul(10).and_then(|value| value.checked_add(i64::from(digit))).ok_or(DecimalError::TooLarge)
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
        // No float holds this value: a parser that went through one would be off by some units.
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
        check("0.0000000001", Err(DecimalError::TooFine));
        check("1.1234567891", Err(DecimalError::TooFine));
        check("9223372036.854775807", Err(DecimalError::TooLarge));
        check("9223372036.854775808", Err(DecimalError::TooLarge));
        check("10000000000", Err(DecimalError::TooLarge));
        check("99999999999999999999999999", Err(DecimalError::TooLarge));
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
}
