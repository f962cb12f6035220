//! Places in journals: the entry of an event, windows, and the range of a journal.

use std::fmt;

use serde::Serialize;
use time::OffsetDateTime;

/// The entry at which something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Moment {
    /// Sequence of the entry.
    pub sequence: i64,
    /// Time of the entry, ns since the epoch.
    pub at_ns: i64,
}

/// An end of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Entries at or after this time, ns since the epoch.
    Time(i64),
    /// Entries at or after this offset of the journal's partition.
    Offset(i64),
    /// Entries with this sequence or a later one.
    Sequence(i64),
}

/// A window of the journals, from an inclusive bound to an exclusive one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Beginning of the window; `None` for the journal's beginning.
    pub from: Option<Bound>,
    /// End of the window; `None` for the journal's end.
    pub to: Option<Bound>,
}

impl Window {
    /// True if the window ends at or before its beginning, as far as bounds of the same kind show it.
    pub fn is_backwards(&self) -> bool {
        match (self.from, self.to) {
            (Some(Bound::Time(from)), Some(Bound::Time(to)))
            | (Some(Bound::Offset(from)), Some(Bound::Offset(to)))
            | (Some(Bound::Sequence(from)), Some(Bound::Sequence(to))) => to <= from,
            _ => false,
        }
    }
}

/// The range of a partition of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalReach {
    /// The partition.
    pub partition: i32,
    /// First entry of the partition.
    pub first: Moment,
    /// Last entry of the partition.
    pub last: Moment,
}

impl fmt::Display for JournalReach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { partition, first, last } = self;
        write!(
            formatter,
            "partition {partition} has the sequences {} to {}, from {} to {}",
            first.sequence,
            last.sequence,
            utc(first.at_ns),
            utc(last.at_ns)
        )
    }
}

/// Formats UTC with nanoseconds, as ISO 8601; a time outside of the calendar is printed as a number.
pub fn iso(ns: i64) -> String {
    let micros = utc(ns);
    match micros.strip_suffix('Z') {
        Some(micros) => format!("{micros}{:03}Z", ns.rem_euclid(1_000)),
        None => micros,
    }
}

/// Formats UTC with microseconds; a time outside of the calendar is printed as a number.
pub fn utc(ns: i64) -> String {
    let Ok(at) = OffsetDateTime::from_unix_timestamp_nanos(i128::from(ns)) else { return ns.to_string() };
    let (date, time) = (at.date(), at.time());
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z",
        date.year(),
        u8::from(date.month()),
        date.day(),
        time.hour(),
        time.minute(),
        time.second(),
        time.microsecond()
    )
}
