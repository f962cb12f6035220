//! Windows without journal entries: before the first entries, or after the last ones.

use warptape_eventlog::OffsetRange;
use warptape_schemas::journal::JournalEntry;

use crate::ReplayError;
use crate::entries::Entries;
use crate::moment::{Bound, JournalReach, Moment};

/// Refuses a window if every non-empty journal has no entry before the window's end, or no entry after its beginning.
pub(crate) fn refuse(journals: &[(&Entries<'_>, OffsetRange)]) -> Result<(), ReplayError> {
    let mut there = Vec::new();
    for (entries, window) in journals {
        let Some((first_offset, _)) = entries.first_from(entries.range.first)? else { continue };
        // With two bounds of different kinds, the window may end before it begins.
        let is_forwards = window.first <= window.next;
        if is_forwards && first_offset < window.next && entries.first_from(window.first)?.is_some() {
            return Ok(());
        }
        there.extend(entries.reach()?);
    }
    match journals.first() {
        Some((entries, _)) if !there.is_empty() => Err(entries.outside(there)),
        _ => Ok(()),
    }
}

impl Entries<'_> {
    /// Returns the first and last entry; `None` if there are no entries.
    pub(crate) fn reach(&self) -> Result<Option<JournalReach>, ReplayError> {
        self.reach_of(self.range)
    }

    /// Returns the first and last entry within a range; `None` if it has no entries.
    pub(crate) fn reach_of(&self, range: OffsetRange) -> Result<Option<JournalReach>, ReplayError> {
        let Some((_, first)) = self.first_from(range.first)?.filter(|(offset, _)| *offset < range.next)
        else {
            return Ok(None);
        };
        let last = self.last_before(range.next)?.map(|offset| self.first_from(offset)).transpose()?;
        let last = last.flatten().map_or_else(|| moment(&first), |(_, last)| moment(&last));
        Ok(Some(JournalReach { partition: self.partition(), first: moment(&first), last }))
    }

    /// Refuses a bound after the last entry. The next sequence or offset is allowed, because the whole journal is
    /// before it.
    pub(crate) fn refuse_behind_end(&self, bound: Bound) -> Result<(), ReplayError> {
        // On Kafka the last offsets may be transaction markers instead of entries.
        let has_from = |bound: Bound| -> Result<bool, ReplayError> {
            let from = self.bound(Some(bound))?.unwrap_or(self.range.first);
            Ok(self.first_from(from)?.is_some())
        };
        let is_there = match bound {
            Bound::Offset(offset) => offset <= self.range.next,
            Bound::Sequence(sequence) => has_from(Bound::Sequence(sequence.saturating_sub(1)))?,
            Bound::Time(_) => has_from(bound)?,
        };
        if is_there { Ok(()) } else { Err(self.outside(self.reach()?.into_iter().collect())) }
    }
}

fn moment(entry: &JournalEntry) -> Moment {
    Moment { sequence: entry.sequence, at_ns: entry.at_ns }
}
