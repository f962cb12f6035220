//! Numbers for people: with units, and only significant digits.

use time::OffsetDateTime;

const SECOND_NS: u64 = 1_000_000_000;

/// Formats an integer with commas between thousands.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number with at least three digits, and `k`, `M`, `G` or `T` for powers of a thousand.
pub(super) fn short(number: f64) -> String {
    let number = if number.is_finite() { number.max(0.0) } else { 0.0 };
    let (mut number, mut unit) = (number, "");
    for larger in [" k", " M", " G", " T"] {
        if number < 9_999.5 {
            break;
        }
        (number, unit) = (number / 1e3, larger);
    }
    let digits = match number {
        _ if number.fract() == 0.0 => 0,
        _ if number < 10.0 => 2,
        _ if number < 100.0 => 1,
        _ => 0,
    };
    let text = format!("{number:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    match (text.parse::<u64>(), unit) {
        (Ok(whole), unit) => count(whole) + unit,
        (Err(_), unit) => format!("{text}{unit}"),
    }
}

/// Formats a duration.
pub(super) fn duration(ns: u64) -> String {
    let of = |unit_ns: u64, unit: &str| {
        let number = ns as f64 / unit_ns as f64;
        let digits = match number {
            _ if number < 9.995 => 2,
            _ if number < 99.95 => 1,
            _ => 0,
        };
        let text = format!("{number:.digits$}");
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        format!("{text} {unit}")
    };
    let seconds = ns / SECOND_NS;
    match ns {
        0 => "0 ms".to_owned(),
        1..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => of(1_000, "µs"),
        1_000_000..1_000_000_000 => of(1_000_000, "ms"),
        _ if seconds < 120 => of(SECOND_NS, "s"),
        _ if seconds < 7_200 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ if seconds < 172_800 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", count(seconds / 86_400), seconds % 86_400 / 3_600),
    }
}

/// Formats a part as a percentage of a whole, which may be 0.
pub(super) fn percent(part: f64, whole: f64) -> String {
    let share = if whole > 0.0 { 100.0 * part / whole } else { 0.0 };
    match share {
        _ if share > 0.0 && share < 0.05 => "<0.1 %".to_owned(),
        _ if share < 9.95 && share > 0.0 => format!("{share:.1} %"),
        _ => format!("{share:.0} %"),
    }
}

/// Precision of a shown time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precision {
    Days,
    Minutes,
    Seconds,
    Milliseconds,
}

/// Formats the time of day in UTC, or the day; a time outside of the calendar is shown as a number.
pub(super) fn clock(ns: i64, precision: Precision) -> String {
    let Some(at) = calendar(ns) else { return format!("{ns} ns") };
    let (hour, minute, second) = (at.hour(), at.minute(), at.second());
    match precision {
        Precision::Days => day(ns),
        Precision::Minutes => format!("{hour:02}:{minute:02}"),
        Precision::Seconds => format!("{hour:02}:{minute:02}:{second:02}"),
        Precision::Milliseconds => format!("{hour:02}:{minute:02}:{second:02}.{:03}", at.millisecond()),
    }
}

/// Formats the day in UTC.
pub(super) fn day(ns: i64) -> String {
    let Some(at) = calendar(ns) else { return String::new() };
    format!("{:04}-{:02}-{:02}", at.year(), u8::from(at.month()), at.day())
}

/// Formats day and time in UTC.
pub(super) fn utc(ns: i64) -> String {
    match calendar(ns) {
        Some(_) => format!("{} {}", day(ns), clock(ns, Precision::Milliseconds)),
        None => format!("{ns} ns"),
    }
}

fn calendar(ns: i64) -> Option<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp_nanos(ns.into()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        assert_eq!(
            [count(0), count(999), count(1_000), count(12_345_678)],
            ["0", "999", "1,000", "12,345,678"]
        );
        let shorts =
            [0.0, 0.25, 7.0, 12.34, 999.6, 9_999.0, 12_345.0, 9.99e9, f64::NAN, f64::INFINITY].map(short);
        assert_eq!(shorts, ["0", "0.25", "7", "12.3", "1,000", "9,999", "12.3 k", "9,990 M", "0", "0"]);
        let durations =
            [0, 999, 1_500, 12_340_000, 1_000_000_000, 119_000_000_000, 125_000_000_000, u64::MAX]
                .map(duration);
        let expected = ["0 ms", "999 ns", "1.5 µs", "12.3 ms", "1 s", "119 s", "2 min 5 s", "213,503 d 23 h"];
        assert_eq!(durations, expected);
        assert_eq!(
            [percent(0.0, 0.0), percent(1.0, 0.0), percent(1.0, 3.0), percent(1.0, 1e6)],
            ["0 %", "0 %", "33 %", "<0.1 %"]
        );
    }

    #[test]
    fn times_are_utc() {
        assert_eq!(utc(1_795_489_200_500_000_000), "2026-11-24 03:00:00.500");
        assert_eq!(utc(i64::MIN), "1677-09-21 00:12:43.145");
        assert_eq!(clock(1_795_489_200_500_000_000, Precision::Minutes), "03:00");
    }
}
