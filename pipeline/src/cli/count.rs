//! Whole numbers as people type them.

/// Parses a whole number: `1000000`, `1_000_000`, `1e6`, `2.5e6`.
pub(super) fn parse_count(text: &str) -> Result<u64, String> {
    count_of(text)
        .ok_or_else(|| format!("give a whole number from 0 to {}, such as 1000000 or 1e6", u64::MAX))
}

/// Parses a count as [`parse_count`] does, and refuses 0.
pub(super) fn parse_count_from_one(text: &str) -> Result<u64, String> {
    parse_count_within(text, u64::MAX)
}

/// Parses a count from 1 to `max`.
pub(super) fn parse_count_within(text: &str, max: u64) -> Result<u64, String> {
    let count = count_of(text).filter(|count| (1..=max).contains(count));
    count.ok_or_else(|| format!("give a whole number from 1 to {max}, such as {} or 1e3", max.min(1_000)))
}

fn count_of(text: &str) -> Option<u64> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<u32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{}", fraction.trim_end_matches('0')).replace('_', "");
    let places = fraction.trim_end_matches('0').len() as u32;
    if whole.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(10_u64.checked_pow(exponent.checked_sub(places)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        for (text, expected) in [
            ("0", Some(0)),
            ("1000000", Some(1_000_000)),
            ("1_000_000", Some(1_000_000)),
            ("1e6", Some(1_000_000)),
            ("2.5E6", Some(2_500_000)),
            ("1.0", Some(1)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("1e20", None),
            ("1e4000000000", None),
            ("2.5", None),
            ("1.25e1", None),
            ("-1", None),
            ("1e-6", None),
            ("", None),
            ("e6", None),
            (".5e1", None),
            ("_", None),
            ("x", None),
        ] {
            assert_eq!(count_of(text), expected, "{text:?}");
        }
        assert!(
            parse_count("0").is_ok()
                && parse_count_from_one("0").is_err()
                && parse_count_from_one("1e3").is_ok()
        );
    }
}
