//! Scaled integers as decimal text.

/// A scaled integer as a decimal number: 61,234,500,000,000 is `61234.5`.
pub fn decimal_e9(value: i64) -> String {
    decimal_text(value.into(), 9)
}

/// An integer with so many digits behind the decimal point, of which the last ones are left out where they are 0.
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
