//! Windows that have nothing of the journals: before their first entries, or behind their last ones.

use std::fmt;

use time::OffsetDateTime;
use warptape_eventlog::OffsetRange;
use warptape_schemas::journal::JournalEntry;

use crate::ReplayError;
use crate::entries::Entries;
use crate::history::Moment;

/// From where to where a partition of the journal goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalReach {
    /// The partition.
    pub partition: i32,
    /// Its first entry.
    pub first: Moment,
    /// Its last entry.
    pub last: Moment,
}

impl JournalReach {
    /// Of the entries of a range; `None` where it has none.
    pub(crate) fn of(entries: &Entries<'_>, range: OffsetRange) -> Result<Option<Self>, ReplayError> {
        let Some((_, first)) = entries.first_from(range.first)?.filter(|(offset, _)| *offset < range.next)
        else {
            return Ok(None);
        };
        let last = entries.last_before(range.next)?.map(|offset| entries.first_from(offset)).transpose()?;
        let last = last.flatten().map_or_else(|| moment(&first), |(_, last)| moment(&last));
        Ok(Some(Self { partition: entries.partition(), first: moment(&first), last }))
    }
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

/// UTC with microseconds; a time that no calendar has is printed as the number it is.
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

/// Refuses a window of which each of these journals, where it has any entries, has nothing before its end, or nothing behind its beginning.
pub(crate) fn refuse(journals: &[(&Entries<'_>, OffsetRange)]) -> Result<(), ReplayError> {
    let mut there = Vec::new();
    for (entries, window) in journals {
        let Some((first_offset, _)) = entries.first_from(entries.range.first)? else { continue };
        if first_offset < window.next && entries.first_from(window.first)?.is_some() {
            return Ok(());
        }
        there.extend(JournalReach::of(entries, entries.range)?);
    }
    match journals.first() {
        Some((entries, _)) if !there.is_empty() => Err(entries.outside(there)),
        _ => Ok(()),
    }
}

fn moment(entry: &JournalEntry) -> Moment {
    Moment { sequence: entry.sequence, at_ns: entry.at_ns }
}
