//! Times in a row: a number since the epoch, or a civil time in the mapping's zone.
//!
//! The zones' rules are compiled in, so that a file has the same times on every machine. An hour that occurs twice,
//! because clocks go back, counts as the first one. A time that clocks skip is an error.

use std::str::FromStr;

use jiff::civil::{Date, DateTime, Time};
use jiff::fmt::strtime::{self, BrokenDownTime};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

use super::column::Column;
use super::fields::FieldSplitter;
use super::number_format::NumberFormat;
use crate::FieldProblem;
use crate::time_unit::{TimeUnit, parse_integer};

/// Earliest plausible time: the start of 1990.
pub(super) const PLAUSIBLE_FROM_NS: i64 = 631_152_000_000_000_000;
/// Latest plausible time if there is no clock: the start of 2100.
const PLAUSIBLE_TO_NS: i64 = 4_102_444_800_000_000_000;
/// Greatest time by which a machine's clock may be behind venues.
pub(super) const AHEAD_NS_MAX: i64 = 86_400_000_000_000;
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Column and notation of a time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TimeRule {
    pub(super) column: Column,
    pub(super) written: Written,
}

/// Notation of a time.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Written {
    /// A number since the epoch.
    Number(TimeUnit),
    /// A time in the form of RFC 3339; one without an offset is in the zone.
    Rfc3339(Option<Zone>),
    /// Date and time in one column.
    Civil { format: String, zone: Option<Zone> },
    /// A time of day; a separate rule gives the date.
    OfDay { date: DateRule, time: TimeOfDay, zone: Zone },
}

/// The date of a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DateRule {
    Constant(Date),
    Column { column: Column, format: String },
}

/// A time within its day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TimeOfDay {
    /// A number since midnight, by the zone's clocks.
    Number(TimeUnit),
    Format(String),
}

/// A time zone, by name or offset.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Zone {
    pub(super) name: String,
    zone: TimeZone,
}

/// Returns true if a file may have ticks of this time.
pub(super) fn is_plausible(time_ns: i64, now_ns: Option<i64>) -> bool {
    let to_ns = now_ns.map_or(i64::MAX, |now_ns| now_ns.saturating_add(AHEAD_NS_MAX));
    (PLAUSIBLE_FROM_NS..=to_ns).contains(&time_ns)
}

/// Parts of a time that a format must provide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gives {
    Date,
    TimeOfDay,
    Both,
}

impl Zone {
    /// Parses `UTC`, an offset such as `+02:00`, or a name such as `America/New_York`.
    pub(super) fn by_name(name: &str) -> Option<Zone> {
        let zone = match name.as_bytes().first()? {
            b'+' | b'-' => TimeZone::fixed(offset(name)?),
            _ => TimeZoneDatabase::bundled().get(name).ok()?,
        };
        let name = zone.iana_name().map_or_else(|| name.to_owned(), str::to_owned);
        Some(Zone { name, zone })
    }

    /// Returns the time at which the zone's clocks show `shown`.
    fn timestamp(&self, shown: DateTime) -> Result<Timestamp, String> {
        let ambiguous = self.zone.to_ambiguous_timestamp(shown);
        if matches!(ambiguous.offset(), AmbiguousOffset::Gap { .. }) {
            return Err(format!("a time that exists in {}; its clocks skip this one", self.name));
        }
        ambiguous.earlier().map_err(|_| "a time after 1970 and before 2262".to_owned())
    }
}

/// Parses `+02:00`, `-0530` or `+9`.
fn offset(text: &str) -> Option<Offset> {
    let (sign, digits) = text.split_at(1);
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() == 4 => digits.split_at(2),
        None => (digits, "0"),
    };
    let number = |text: &str| parse_integer(text.as_bytes()).and_then(|value| i32::try_from(value).ok());
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let seconds = (hours <= 23 && minutes <= 59).then_some(hours * 3_600 + minutes * 60)?;
    Offset::from_seconds(if sign == "-" { -seconds } else { seconds }).ok()
}

/// Checks that a format provides the required parts of a time. An error describes the fault.
pub(super) fn check_format(format: &str, gives: Gives) -> Result<(), String> {
    let sample = jiff::civil::date(2024, 11, 28).at(13, 45, 6, 789_000_000);
    let at = Offset::UTC.to_timestamp(sample).map(|at| at.to_zoned(TimeZone::UTC));
    let written = at.and_then(|at| strtime::format(format, &at)).map_err(|error| error.to_string())?;
    let parsed = BrokenDownTime::parse(format, &written).map_err(|error| error.to_string())?;
    let has_date = parsed.to_date().is_ok_and(|date| date == sample.date());
    let has_time = parsed.to_time().is_ok_and(|time| time.hour() == sample.hour());
    match gives {
        Gives::Date if !has_date => Err("it lacks a full date, such as %Y-%m-%d".to_owned()),
        Gives::TimeOfDay if !has_time => Err("it lacks a time of day, such as %H:%M:%S".to_owned()),
        Gives::Both if !has_date => {
            Err("it lacks a full date; name the column of the date, as in date=1:'%Y-%m-%d'".to_owned())
        }
        Gives::Both if !has_time => Err("it lacks a time of day, such as %H:%M:%S".to_owned()),
        _ => Ok(()),
    }
}

/// Returns true if times in this format contain their offset.
pub(super) fn tells_offset(format: &str) -> bool {
    ["%z", "%:z", "%s"].iter().any(|directive| format.contains(directive))
}

impl TimeRule {
    /// Returns the time of a row, in nanoseconds since the epoch.
    pub(super) fn time_ns(
        &self,
        fields: &FieldSplitter,
        numbers: &NumberFormat,
    ) -> Result<i64, FieldProblem> {
        let found = self.column.field(fields)?;
        let problem = |expected: &str| self.column.problem(found, expected);
        let timestamp = match &self.written {
            Written::Number(unit) => {
                return number_ns(found, *unit, numbers)
                    .ok_or_else(|| problem(&self.expected_number(found, *unit, numbers)));
            }
            Written::Rfc3339(zone) => {
                if let Some(time_ns) = TimeUnit::Rfc3339.parse_ns(found) {
                    return Ok(time_ns);
                }
                let shown = std::str::from_utf8(found).ok().and_then(|text| DateTime::from_str(text).ok());
                match (shown, zone) {
                    (Some(shown), Some(zone)) => zone.timestamp(shown),
                    (Some(_), None) => {
                        Err("a time with its offset; for times without one, give the time zone in the \
                                            mapping, as in zone=UTC or zone=America/New_York"
                            .to_owned())
                    }
                    (None, _) => Err(TimeUnit::Rfc3339.expected().to_owned()),
                }
            }
            Written::Civil { format, zone } => {
                let expected = || format!("a time written as {format}");
                let parsed = BrokenDownTime::parse(format, found).map_err(|_| problem(&expected()))?;
                match (parsed.offset(), parsed.timestamp(), zone) {
                    (None, None, Some(zone)) => {
                        let shown = parsed.to_datetime().map_err(|_| problem(&expected()))?;
                        zone.timestamp(shown)
                    }
                    _ => parsed.to_timestamp().map_err(|_| expected()),
                }
            }
            Written::OfDay { date, time, zone } => {
                let of_day = time.parse(found, numbers).ok_or_else(|| problem(&time.expected()))?;
                zone.timestamp(date.read(fields)?.to_datetime(Time::midnight()) + of_day)
            }
        };
        let time_ns = timestamp.map_err(|expected| problem(&expected))?.as_nanosecond();
        let fits = i64::try_from(time_ns).ok().filter(|time_ns| 0 < *time_ns && *time_ns < i64::MAX);
        fits.ok_or_else(|| problem("a time after 1970 and before 2262"))
    }

    /// Rejects a time that cannot belong to a past tick: one ahead of the clock, or one that is plausible only in
    /// another unit. Accepts a time before 1990 that is implausible in every unit.
    pub(super) fn check_plausible(
        &self,
        fields: &FieldSplitter,
        numbers: &NumberFormat,
        time_ns: i64,
        now_ns: Option<i64>,
    ) -> Result<(), FieldProblem> {
        let found = self.column.field(fields)?;
        if let Written::Number(unit) = &self.written
            && let Some(other) = self.other_unit(found, *unit, numbers, now_ns)
        {
            let expected =
                format!("another unit: as {unit}, it is {}, {other}", shown(time_ns), unit = unit.name());
            return Err(self.column.problem(found, &expected));
        }
        match now_ns {
            Some(now_ns) if time_ns > now_ns.saturating_add(AHEAD_NS_MAX) => {
                let expected =
                    format!("a time in the past: {} is ahead of this machine's clock", shown(time_ns));
                Err(self.column.problem(found, &expected))
            }
            _ => Ok(()),
        }
    }

    /// Returns the name of a unit in which the number would be a plausible time; `None` if there is none.
    fn other_unit(
        &self,
        found: &[u8],
        unit: TimeUnit,
        numbers: &NumberFormat,
        now_ns: Option<i64>,
    ) -> Option<String> {
        let to_ns = now_ns.map_or(PLAUSIBLE_TO_NS, |now_ns| now_ns.saturating_add(AHEAD_NS_MAX));
        let units =
            [TimeUnit::Seconds, TimeUnit::Milliseconds, TimeUnit::Microseconds, TimeUnit::Nanoseconds];
        units.into_iter().filter(|other| *other != unit).find_map(|other| {
            let time_ns = number_ns(found, other, numbers)?;
            let name = other.name();
            (PLAUSIBLE_FROM_NS..=to_ns)
                .contains(&time_ns)
                .then(|| format!("as {name} {}: write {}:{name}", shown(time_ns), self.column.name))
        })
    }

    fn expected_number(&self, found: &[u8], unit: TimeUnit, numbers: &NumberFormat) -> String {
        let other = self.other_unit(found, unit, numbers, None);
        let other = other.map_or_else(String::new, |other| format!("; {other}"));
        format!("{}{other}", unit.expected())
    }
}

/// Converts a number in a unit to nanoseconds exactly; `None` if it is not positive.
fn number_ns(text: &[u8], unit: TimeUnit, numbers: &NumberFormat) -> Option<i64> {
    if numbers.decimal == b'.' && numbers.thousands.is_none() {
        if let Some(time_ns) = unit.parse_ns(text) {
            return Some(time_ns);
        }
        if text.iter().all(u8::is_ascii_digit) {
            return None;
        }
    }
    let time_ns = scaled_ns(text, unit, numbers)?;
    (0 < time_ns && time_ns < i64::MAX).then_some(time_ns)
}

/// Converts a number with decimals or an exponent to nanoseconds exactly.
fn scaled_ns(text: &[u8], unit: TimeUnit, numbers: &NumberFormat) -> Option<i64> {
    let whole = |places: i64| {
        let plain = numbers.plain(text, -places, None).ok()?;
        let mut parts = plain.splitn(2, |byte| *byte == b'.');
        let (whole, fraction) = (parts.next()?, parts.next().unwrap_or_default());
        fraction.iter().all(|digit| *digit == b'0').then(|| parse_integer(whole))?
    };
    match unit {
        TimeUnit::Seconds => whole(9),
        TimeUnit::Milliseconds => whole(6),
        TimeUnit::Microseconds => whole(3),
        TimeUnit::Nanoseconds => whole(0),
        TimeUnit::Binance => crate::time_unit::binance_time_ns(whole(0)?),
        TimeUnit::Rfc3339 => None,
    }
}

/// Formats a time for people.
pub(super) fn shown(time_ns: i64) -> String {
    Timestamp::from_nanosecond(time_ns.into()).map_or_else(|_| time_ns.to_string(), |time| time.to_string())
}

impl DateRule {
    fn read(&self, fields: &FieldSplitter) -> Result<Date, FieldProblem> {
        let (column, format) = match self {
            DateRule::Constant(date) => return Ok(*date),
            DateRule::Column { column, format } => (column, format),
        };
        let found = column.field(fields)?;
        let parsed = BrokenDownTime::parse(format, found).and_then(|parsed| parsed.to_date());
        parsed.map_err(|_| column.problem(found, &format!("a date written as {format}")))
    }
}

impl TimeOfDay {
    /// Returns the time since midnight.
    fn parse(&self, text: &[u8], numbers: &NumberFormat) -> Option<SignedDuration> {
        let of_day = match self {
            TimeOfDay::Number(unit) => SignedDuration::from_nanos(scaled_ns(text, *unit, numbers)?),
            TimeOfDay::Format(format) => {
                let time = BrokenDownTime::parse(format, text).and_then(|parsed| parsed.to_time()).ok()?;
                time.duration_since(Time::midnight())
            }
        };
        (!of_day.is_negative() && of_day < DAY).then_some(of_day)
    }

    fn expected(&self) -> String {
        match self {
            TimeOfDay::Number(unit) => {
                format!("a time of day in {} since midnight, below 24 hours", unit.name())
            }
            TimeOfDay::Format(format) => format!("a time of day written as {format}"),
        }
    }
}
