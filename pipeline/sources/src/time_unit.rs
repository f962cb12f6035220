//! Converts times in files to nanoseconds since the epoch, without reading a clock.

const NANOS_PER_SECOND: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// Value from which a Binance time is in microseconds: as milliseconds it would be in the year 5138, as microseconds it
/// is in 1973. Binance's dumps changed from milliseconds to microseconds in 2025; its streams use microseconds if a
/// client requests them.
const BINANCE_MICROSECONDS_FROM: i64 = 100_000_000_000_000;

/// The notation of time in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds since the epoch, with up to 9 decimals.
    Seconds,
    /// Milliseconds since the epoch.
    Milliseconds,
    /// Microseconds since the epoch.
    Microseconds,
    /// Nanoseconds since the epoch.
    Nanoseconds,
    /// `2024-08-08T23:54:15.342Z`; an offset, a space instead of the `T`, and up to 9 decimals are also allowed.
    Rfc3339,
    /// Milliseconds or microseconds since the epoch, distinguished by magnitude, as in Binance dumps.
    Binance,
}

impl TimeUnit {
    /// Returns the unit with this name in a mapping: `s`, `ms`, `us`, `ns` or `rfc3339`.
    pub(super) fn by_name(name: &str) -> Option<TimeUnit> {
        match name {
            "s" => Some(TimeUnit::Seconds),
            "ms" => Some(TimeUnit::Milliseconds),
            "us" => Some(TimeUnit::Microseconds),
            "ns" => Some(TimeUnit::Nanoseconds),
            "rfc3339" => Some(TimeUnit::Rfc3339),
            _ => None,
        }
    }

    /// Returns the name of the unit in a mapping.
    pub(super) fn name(self) -> &'static str {
        match self {
            TimeUnit::Seconds => "s",
            TimeUnit::Milliseconds | TimeUnit::Binance => "ms",
            TimeUnit::Microseconds => "us",
            TimeUnit::Nanoseconds => "ns",
            TimeUnit::Rfc3339 => "rfc3339",
        }
    }

    /// Describes the expected form of a field in this unit, for error messages.
    pub(super) fn expected(self) -> &'static str {
        match self {
            TimeUnit::Seconds => "a positive time in seconds since the epoch",
            TimeUnit::Milliseconds => "a positive time in milliseconds since the epoch",
            TimeUnit::Microseconds => "a positive time in microseconds since the epoch",
            TimeUnit::Nanoseconds => "a positive time in nanoseconds since the epoch",
            TimeUnit::Rfc3339 => "a time such as 2024-08-08T23:54:15.342Z, after 1970 and before 2262",
            TimeUnit::Binance => "a positive time in milliseconds or microseconds since the epoch",
        }
    }

    /// Parses a time to nanoseconds since the epoch; `None` if the text is not a positive time in this unit.
    pub fn parse_ns(self, text: &[u8]) -> Option<i64> {
        let time_ns = match self {
            TimeUnit::Seconds => super::parse_e9(text).ok()?,
            TimeUnit::Milliseconds => parse_integer(text)?.checked_mul(1_000_000)?,
            TimeUnit::Microseconds => parse_integer(text)?.checked_mul(1_000)?,
            TimeUnit::Nanoseconds => parse_integer(text)?,
            TimeUnit::Rfc3339 => parse_rfc3339(text)?,
            TimeUnit::Binance => binance_time_ns(parse_integer(text)?)?,
        };
        // The greatest value is reserved for "none".
        (0 < time_ns && time_ns < i64::MAX).then_some(time_ns)
    }
}

/// Converts a Binance time, in milliseconds or microseconds by magnitude; `None` if it is not positive or too large.
pub(super) fn binance_time_ns(time: i64) -> Option<i64> {
    let unit_ns = if time >= BINANCE_MICROSECONDS_FROM { 1_000 } else { 1_000_000 };
    time.checked_mul(unit_ns).filter(|&time_ns| time_ns > 0)
}

/// Parses a non-negative integer, which has digits only.
pub(super) fn parse_integer(text: &[u8]) -> Option<i64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_i64, |value, &byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value.checked_mul(10)?.checked_add(i64::from(digit))
    })
}

fn parse_rfc3339(text: &[u8]) -> Option<i64> {
    let (year, rest) = digits(text, 4)?;
    let (month, rest) = digits(literal(rest, b"-")?, 2)?;
    let (day, rest) = digits(literal(rest, b"-")?, 2)?;
    let (hour, rest) = digits(literal(rest, b"Tt ")?, 2)?;
    let (minute, rest) = digits(literal(rest, b":")?, 2)?;
    let (second, rest) = digits(literal(rest, b":")?, 2)?;
    let (fraction_ns, rest) = match literal(rest, b".") {
        Some(rest) => fraction(rest)?,
        None => (0, rest),
    };
    // A leap second (60) counts as the first second of the next minute, as in POSIX time.
    if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let of_day = hour * 3_600 + minute * 60 + second - offset_seconds(rest)?;
    let seconds = days_since_epoch(year, month, day) * SECONDS_PER_DAY + of_day;
    seconds.checked_mul(NANOS_PER_SECOND)?.checked_add(fraction_ns)
}

/// Parses `Z`, `+02:00` or `-0530` to seconds east of Greenwich.
fn offset_seconds(text: &[u8]) -> Option<i64> {
    if matches!(text, b"Z" | b"z") {
        return Some(0);
    }
    let sign = match text.first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, rest) = digits(&text[1..], 2)?;
    let (minutes, rest) = digits(literal(rest, b":").unwrap_or(rest), 2)?;
    (rest.is_empty() && hours <= 23 && minutes <= 59).then_some(sign * (hours * 3_600 + minutes * 60))
}

/// Parses exactly `count` digits, and returns the text after them.
fn digits(text: &[u8], count: usize) -> Option<(i64, &[u8])> {
    let (head, rest) = text.split_at_checked(count)?;
    Some((parse_integer(head)?, rest))
}

/// Checks that the first byte is one of `allowed`, and returns the text after it.
fn literal<'a>(text: &'a [u8], allowed: &[u8]) -> Option<&'a [u8]> {
    let (first, rest) = text.split_first()?;
    allowed.contains(first).then_some(rest)
}

/// Parses one to nine decimals to nanoseconds, and returns the text after them.
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=9).contains(&length) {
        return None;
    }
    let value = parse_integer(&text[..length])?;
    Some((value * 10_i64.pow(9 - length as u32), &text[length..]))
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the number of days since 1970-01-01 in the Gregorian calendar.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    // Leap days before the year, counted from year 0, minus those before 1970.
    let before = year - 1;
    let leap_days = before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400) - 477;
    let months: i64 = (1..month).map(|month| days_in_month(year, month)).sum();
    (year - 1_970) * 365 + leap_days + months + day - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(unit: TimeUnit, text: &str, expected: Option<i64>) {
        assert_eq!(unit.parse_ns(text.as_bytes()), expected, "{unit:?} {text:?}");
    }

    #[test]
    fn numbers() {
        check(TimeUnit::Seconds, "1723161255", Some(1_723_161_255_000_000_000));
        check(TimeUnit::Seconds, "1723161255.342", Some(1_723_161_255_342_000_000));
        check(TimeUnit::Milliseconds, "1723161255342", Some(1_723_161_255_342_000_000));
        check(TimeUnit::Microseconds, "1723161255342001", Some(1_723_161_255_342_001_000));
        check(TimeUnit::Nanoseconds, "1723161255342001002", Some(1_723_161_255_342_001_002));
        for text in ["", "0", "-1", "1.5", "abc", "99999999999999999999"] {
            check(TimeUnit::Milliseconds, text, None);
        }
        check(TimeUnit::Milliseconds, "9223372036855", None);
        check(TimeUnit::Nanoseconds, "9223372036854775807", None);
    }

    #[test]
    fn binance_changes_unit_by_magnitude() {
        check(TimeUnit::Binance, "1723161255342", Some(1_723_161_255_342_000_000));
        check(TimeUnit::Binance, "1735689600000001", Some(1_735_689_600_000_001_000));
        check(TimeUnit::Binance, "0", None);
    }

    #[test]
    fn calendar_times() {
        let check = |text, expected| check(TimeUnit::Rfc3339, text, expected);
        check("1970-01-01T00:00:00.000000001Z", Some(1));
        check("2024-08-08T23:54:15.342Z", Some(1_723_161_255_342_000_000));
        check("2024-08-08 23:54:15Z", Some(1_723_161_255_000_000_000));
        check("2024-08-09T01:54:15+02:00", Some(1_723_161_255_000_000_000));
        check("2024-08-08T18:24:15-0530", Some(1_723_161_255_000_000_000));
        check("2000-02-29T00:00:00Z", Some(951_782_400_000_000_000));
        check("2100-03-01T00:00:00Z", Some(4_107_542_400_000_000_000));
        for text in [
            "1970-01-01T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "2023-02-29T00:00:00Z",
            "2024-13-01T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:00",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00.0000000001Z",
            "2024-01-01",
            "2300-01-01T00:00:00Z",
            "2024-01-01T00:00:00+0",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut expected = 0;
        for year in 1970..2262 {
            for month in 1..=12 {
                for day in 1..=days_in_month(year, month) {
                    assert_eq!(days_since_epoch(year, month, day), expected, "{year}-{month}-{day}");
                    expected += 1;
                }
            }
        }
    }
}
