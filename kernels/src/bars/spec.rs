//! The condition that closes a bar, and its text.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Greatest number of time bars of one slot that may be open at once.
pub const OPEN_BARS_MAX: i64 = 4096;

/// Units of time from the longest to the shortest, in nanoseconds.
const UNITS: [(&str, i64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

const ONE_E9: i64 = 1_000_000_000;

/// The condition that closes a bar. Its text is one of `250ms`, `1s`, `5m`, `1h`, `1d`, `tick:100`, `volume:0.5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum BarSpec {
    /// Event time: a bar starts at each multiple of the interval since the epoch.
    Time {
        /// Length of a bar, at least 1.
        interval_ns: i64,
    },
    /// Number of trades.
    Ticks {
        /// Trades in a bar, at least 1.
        count: i64,
    },
    /// Traded size.
    Volume {
        /// Size at which a bar closes, scaled by 1e-9, at least 1.
        volume_e9: i64,
    },
}

/// The reason for refusing a text or a specification.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BarSpecError {
    /// The text has none of the valid forms.
    #[error(
        "`{text}` is no bar specification: write a time (`250ms`, `1s`, `5m`, `1h`), `tick:100` or `volume:0.5`"
    )]
    Form {
        /// The text.
        text: String,
    },
    /// A number is not positive, or does not fit.
    #[error("`{text}`: {what} must be positive and below {limit}")]
    Range {
        /// The text.
        text: String,
        /// Name of the number.
        what: &'static str,
        /// The bound: the number must be below it.
        limit: &'static str,
    },
    /// The interval is too short for the allowed lateness.
    #[error(
        "`{spec}`: with an allowed lateness of {allowed_lateness_ns} ns, up to {open} bars of a symbol can \
         be open, but the limit is {OPEN_BARS_MAX}. Use a longer interval or less lateness"
    )]
    Open {
        /// The specification.
        spec: BarSpec,
        /// The allowed lateness.
        allowed_lateness_ns: i64,
        /// Number of bars that could be open.
        open: i64,
    },
}

impl BarSpec {
    /// Checks that the specification can be folded if ticks may be late by `allowed_lateness_ns`.
    pub fn check(self, allowed_lateness_ns: i64) -> Result<(), BarSpecError> {
        let positive = match self {
            Self::Time { interval_ns } => interval_ns,
            Self::Ticks { count } => count,
            Self::Volume { volume_e9 } => volume_e9,
        };
        if positive < 1 {
            let text = format!("{self:?}");
            return Err(BarSpecError::Range { text, what: "the number", limit: "2^63" });
        }
        let open = self.open_bars_max(allowed_lateness_ns);
        if open > OPEN_BARS_MAX {
            return Err(BarSpecError::Open { spec: self, allowed_lateness_ns, open });
        }
        Ok(())
    }

    /// Greatest number of bars of one slot that can be open at once. At a tick at time t, all bars that end at t −
    /// lateness or earlier are closed, and no earlier tick was later than t. So the open bars cover t − lateness ..= t,
    /// and there are at most ⌊lateness / interval⌋ + 2.
    pub(crate) fn open_bars_max(self, allowed_lateness_ns: i64) -> i64 {
        match self {
            Self::Time { interval_ns } => (allowed_lateness_ns.max(0) / interval_ns).saturating_add(2),
            Self::Ticks { .. } | Self::Volume { .. } => 1,
        }
    }
}

impl fmt::Display for BarSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Time { interval_ns } => {
                let (name, unit_ns) = UNITS
                    .into_iter()
                    .find(|(_, unit_ns)| interval_ns % unit_ns == 0)
                    .expect("the last unit is 1 ns, which divides everything");
                write!(formatter, "{}{name}", interval_ns / unit_ns)
            }
            Self::Ticks { count } => write!(formatter, "tick:{count}"),
            Self::Volume { volume_e9 } => {
                write!(formatter, "volume:{}", volume_e9 / ONE_E9)?;
                let fraction = format!("{:09}", volume_e9 % ONE_E9);
                match fraction.trim_end_matches('0') {
                    "" => Ok(()),
                    digits => write!(formatter, ".{digits}"),
                }
            }
        }
    }
}

impl FromStr for BarSpec {
    type Err = BarSpecError;

    fn from_str(text: &str) -> Result<Self, BarSpecError> {
        if let Some(count) = text.strip_prefix("tick:") {
            let count = whole(text, count)?;
            return positive(text, count, "the count").map(|count| Self::Ticks { count });
        }
        if let Some(volume) = text.strip_prefix("volume:") {
            return volume_e9(text, volume).map(|volume_e9| Self::Volume { volume_e9 });
        }
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let (_, unit_ns) = UNITS
            .into_iter()
            .find(|&(name, _)| name == unit)
            .ok_or_else(|| BarSpecError::Form { text: text.to_owned() })?;
        let number = whole(text, number)?;
        let interval_ns = number.and_then(|number| number.checked_mul(unit_ns));
        positive(text, interval_ns, "the interval in nanoseconds")
            .map(|interval_ns| Self::Time { interval_ns })
    }
}

impl TryFrom<String> for BarSpec {
    type Error = BarSpecError;

    fn try_from(text: String) -> Result<Self, BarSpecError> {
        text.parse()
    }
}

impl From<BarSpec> for String {
    fn from(spec: BarSpec) -> String {
        spec.to_string()
    }
}

/// Reads digits as a number; `None` if it does not fit.
fn whole(text: &str, digits: &str) -> Result<Option<i64>, BarSpecError> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(BarSpecError::Form { text: text.to_owned() });
    }
    Ok(digits.parse().ok())
}

fn positive(text: &str, number: Option<i64>, what: &'static str) -> Result<i64, BarSpecError> {
    match number {
        Some(number) if number > 0 => Ok(number),
        _ => Err(BarSpecError::Range { text: text.to_owned(), what, limit: "2^63" }),
    }
}

/// Reads a decimal number with up to nine decimals.
fn volume_e9(text: &str, number: &str) -> Result<i64, BarSpecError> {
    let (units, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if fraction.len() > 9 {
        return Err(BarSpecError::Form { text: text.to_owned() });
    }
    let scale = 10_i64.pow(9 - fraction.len() as u32);
    let what = "the volume times 1e9";
    let units = whole(text, units)?.and_then(|units| units.checked_mul(ONE_E9));
    let fraction = whole(text, fraction)?.and_then(|fraction| fraction.checked_mul(scale));
    positive(text, units.zip(fraction).and_then(|(units, fraction)| units.checked_add(fraction)), what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, spec: BarSpec, canonical: &str) {
        assert_eq!(text.parse(), Ok(spec), "{text}");
        assert_eq!(spec.to_string(), canonical);
        assert_eq!(canonical.parse(), Ok(spec));
    }

    #[test]
    fn texts_are_read_and_written() {
        check("250ms", BarSpec::Time { interval_ns: 250_000_000 }, "250ms");
        check("1s", BarSpec::Time { interval_ns: 1_000_000_000 }, "1s");
        check("60s", BarSpec::Time { interval_ns: 60_000_000_000 }, "1m");
        check("90s", BarSpec::Time { interval_ns: 90_000_000_000 }, "90s");
        check("5m", BarSpec::Time { interval_ns: 300_000_000_000 }, "5m");
        check("1h", BarSpec::Time { interval_ns: 3_600_000_000_000 }, "1h");
        check("24h", BarSpec::Time { interval_ns: 86_400_000_000_000 }, "1d");
        check("7ns", BarSpec::Time { interval_ns: 7 }, "7ns");
        check("tick:100", BarSpec::Ticks { count: 100 }, "tick:100");
        check("tick:007", BarSpec::Ticks { count: 7 }, "tick:7");
        check("volume:10", BarSpec::Volume { volume_e9: 10_000_000_000 }, "volume:10");
        check("volume:0.50", BarSpec::Volume { volume_e9: 500_000_000 }, "volume:0.5");
        check("volume:1.000000001", BarSpec::Volume { volume_e9: 1_000_000_001 }, "volume:1.000000001");
        check(
            "volume:9223372036.854775807",
            BarSpec::Volume { volume_e9: i64::MAX },
            "volume:9223372036.854775807",
        );
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "s",
            "1",
            "1x",
            "-1s",
            "+1s",
            "1 s",
            "1.5s",
            "tick:",
            "tick:a",
            "tick:-1",
            "tick:1.5",
            "volume:",
            "volume:.5",
            "volume:1.",
            "volume:1e3",
            "volume:-1",
            "volume:0.0000000001",
            "Tick:1",
            "١s",
        ] {
            assert_eq!(text.parse::<BarSpec>(), Err(BarSpecError::Form { text: text.to_owned() }), "{text}");
        }
        for text in [
            "0s",
            "tick:0",
            "volume:0",
            "volume:0.0",
            "999999999d",
            "tick:9223372036854775808",
            "volume:9223372036.854775808",
        ] {
            assert!(matches!(text.parse::<BarSpec>(), Err(BarSpecError::Range { .. })), "{text}");
        }
    }

    #[test]
    fn the_number_of_open_bars_is_bounded() {
        let spec = BarSpec::Time { interval_ns: 1000 };
        assert_eq!(spec.check(4_094_999), Ok(()));
        let error = spec.check(4_095_000).unwrap_err();
        assert_eq!(error, BarSpecError::Open { spec, allowed_lateness_ns: 4_095_000, open: 4097 });
        assert!(error.to_string().contains("`1us`"), "{error}");
        assert_eq!(BarSpec::Time { interval_ns: 1 }.check(-5), Ok(()));
        assert_eq!(BarSpec::Ticks { count: 1 }.check(i64::MAX), Ok(()));
        assert!(BarSpec::Ticks { count: 0 }.check(0).is_err());
        assert!(BarSpec::Time { interval_ns: 0 }.check(0).is_err());
    }
}
