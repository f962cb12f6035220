//! Values as words.

use std::time::Duration;

use indicatif::{BinaryBytes, HumanCount};

use crate::printable::printable_line;

/// Text for an unknown value.
pub const UNKNOWN: &str = "unknown";

/// Makes foreign text printable on one line.
pub fn shown(text: &str) -> String {
    printable_line(text).into_owned()
}

/// Formats a count.
pub fn count(count: u64) -> String {
    HumanCount(count).to_string()
}

/// Formats a count that is not negative.
pub fn whole(count: i64) -> String {
    self::count(count.max(0).unsigned_abs())
}

/// Formats a rate; a small one has a decimal.
pub fn rate(per_second: f64) -> String {
    if per_second > 0.0 && per_second < 10.0 {
        format!("{per_second:.1}")
    } else {
        count(per_second.round().max(0.0) as u64)
    }
}

/// Formats bytes.
pub fn bytes(bytes: u64) -> String {
    BinaryBytes(bytes).to_string()
}

/// Formats milliseconds; a long time is in seconds.
pub fn milliseconds(ms: f64) -> String {
    match ms {
        ms if ms < 10.0 => format!("{ms:.2} ms"),
        ms if ms < 1_000.0 => format!("{ms:.1} ms"),
        ms => seconds(ms / 1_000.0),
    }
}

/// Formats seconds; a long time is in minutes or hours.
pub fn seconds(seconds: f64) -> String {
    match seconds {
        short if short < 1.0 => format!("{short:.3} s"),
        short if short < 10.0 => format!("{short:.1} s"),
        _ => span(Duration::from_secs(seconds as u64)),
    }
}

/// Formats a time span in whole seconds, minutes or hours.
pub fn span(span: Duration) -> String {
    match span.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}

/// Returns the UTC time of day from a time in ISO 8601, with at most `decimals` decimals of a second.
pub fn time_of_day(iso: &str, decimals: usize) -> String {
    let time = iso.split_once('T').map_or(iso, |(_, time)| time).trim_end_matches('Z');
    let cut = match time.split_once('.') {
        Some((whole, _)) if decimals == 0 => whole.to_owned(),
        Some((whole, fraction)) => {
            format!("{whole}.{}", fraction.chars().take(decimals).collect::<String>())
        }
        None => time.to_owned(),
    };
    shown(&cut)
}

/// Draws the last values as a line of blocks, scaled to their greatest; unknown values are dots.
pub fn sparkline(values: &[Option<f64>], columns: usize) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = &values[values.len().saturating_sub(columns)..];
    let greatest = shown.iter().flatten().copied().fold(0.0, f64::max);
    let block = |value: &Option<f64>| match value {
        None => '·',
        Some(value) if greatest > 0.0 => {
            let step = (value / greatest * 7.0).round().clamp(0.0, 7.0);
            BLOCKS[step as usize]
        }
        Some(_) => BLOCKS[0],
    };
    shown.iter().map(block).collect()
}

/// Draws a percentage as a bar of this many columns.
pub fn bar(percent: f64, columns: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (percent.clamp(0.0, 100.0) / 100.0 * columns as f64 * 8.0).round() as usize;
    let mut bar: String = std::iter::repeat_n('█', eighths / 8).collect();
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8]);
    }
    let blanks = columns.saturating_sub(eighths.div_ceil(8));
    bar + &" ".repeat(blanks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_short_words() {
        assert_eq!(
            (rate(0.25), rate(0.0), rate(1_466_306.4)),
            ("0.2".into(), "0".into(), "1,466,306".into())
        );
        assert_eq!((milliseconds(3.254), milliseconds(77.52)), ("3.25 ms".into(), "77.5 ms".into()));
        assert_eq!((milliseconds(2_500.0), milliseconds(400_000.0)), ("2.5 s".into(), "6 min 40 s".into()));
        assert_eq!((seconds(0.0124), span(Duration::from_secs(12))), ("0.012 s".into(), "12 s".into()));
        assert_eq!(span(Duration::from_secs(7_260)), "2 h 1 min");
    }

    #[test]
    fn a_time_of_day_is_cut_out() {
        assert_eq!(time_of_day("2026-11-28T19:08:00.105534Z", 3), "19:08:00.105");
        assert_eq!(time_of_day("2026-11-28T19:08:00.105534Z", 0), "19:08:00");
        assert_eq!(time_of_day("2026-11-28T19:08:00Z", 3), "19:08:00");
        assert_eq!(time_of_day("soon\u{1b}", 3), "soon\\u001b");
    }

    #[test]
    fn a_sparkline_tells_zero_from_unknown() {
        let values = [Some(9.0), None, Some(0.0), Some(1.0), Some(2.0)];
        assert_eq!(sparkline(&values, 4), "·▁▅█");
        assert_eq!(sparkline(&[Some(0.0), None], 4), "▁·");
        assert_eq!(sparkline(&[], 4), "");
    }

    #[test]
    fn a_bar_has_its_columns() {
        for percent in [-5.0, 0.0, 33.0, 50.0, 99.9, 100.0, 250.0] {
            assert_eq!(bar(percent, 10).chars().count(), 10, "{percent}");
        }
        assert_eq!(bar(55.0, 10), "█████▌    ");
    }
}
