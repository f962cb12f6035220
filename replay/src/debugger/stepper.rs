//! A position in a journal, with the scheduler's state there.
//!
//! ```text
//!            state before                    state
//!  … entry ───────────────►  step(entry)  ─────────► next entry …
//!                              │
//!                     decisions, held against those of the entry
//! ```
//!
//! Positions in the journal are offsets, which rise whatever the entries contain. A move forward steps from the last
//! mark, start or checkpoint before its end. A move back is a move forward from an earlier one of these.

use std::sync::Arc;

use warptape_eventlog::{EventLog, OffsetRange};
use warptape_scheduler::Scheduler;
use warptape_schemas::hex::Digits;
use warptape_schemas::journal::{Checkpoint, Decision, Input, JournalEntry, LaneId, Started};

use super::Predicate;
use super::marks::{MARK_OFFSETS, Mark, Marks};
use crate::ReplayError;
use crate::difference::{Difference, differences};
use crate::entries::{Begin, Entries, EntryReader};
use crate::history::{Bound, Moment};
use crate::why::{Explained, before};

/// Entries between two progress reports.
const PROGRESS_ENTRIES: u64 = 1_024;

/// A position in a journal; [`Step`] describes its entry.
pub struct Stepper<'a> {
    entries: Entries<'a>,
    reader: EntryReader,
    /// Offset of the first entry that can be stepped.
    first: i64,
    /// The state before the next entry.
    state: Scheduler,
    started: Option<Arc<Started>>,
    /// The last entry that was stepped.
    here: Here,
    marks: Marks,
    /// Total number of entries stepped.
    stepped: u64,
}

/// The entry at the position, and the result of stepping it.
struct Here {
    offset: i64,
    /// Offset of the previous entry; `None` if it is unknown.
    previous: Option<i64>,
    entry: JournalEntry,
    /// Sequence that the entry must have; `None` if the previous entry is unknown.
    sequence: Option<i64>,
    /// Hash of the state before the entry.
    state_hash: u64,
    decisions: Vec<Decision>,
    /// The reason why the scheduler rejects the input; `None` if it accepts it.
    refusal: Option<String>,
}

/// An entry, and the result of stepping it with this software.
pub struct Step<'s> {
    /// Offset of the entry.
    pub offset: i64,
    /// The entry.
    pub entry: &'s JournalEntry,
    /// The state after the entry.
    pub state: &'s Scheduler,
    /// The decisions of this software.
    pub decisions: &'s [Decision],
    /// Start of the process that wrote the entry; `None` if it is unknown.
    pub started: Option<&'s Started>,
    sequence: Option<i64>,
    state_hash: u64,
    refusal: Option<&'s str>,
}

/// The outcome of a move through the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The position is the requested one.
    Here,
    /// There is no such entry.
    Nothing,
    /// The move was stopped early, at the current position.
    Stopped,
}

impl Step<'_> {
    /// True if the entry differs from this software's decisions.
    pub fn differs(&self) -> bool {
        self.refusal.is_some()
            || self.sequence.is_some_and(|sequence| sequence != self.entry.sequence)
            || self.decisions != self.entry.decisions
            || self.entry.state_hash != Digits::of(&self.state_hash.to_be_bytes())
    }

    /// Returns the first fields in which the entry differs from this software's decisions.
    pub fn differences(&self) -> Vec<Difference> {
        let mut found = Vec::new();
        if let Some(sequence) = self.sequence.filter(|sequence| *sequence != self.entry.sequence) {
            found.push(Difference::new("sequence", sequence, self.entry.sequence));
        }
        let state_hash = Digits::of(&self.state_hash.to_be_bytes());
        if state_hash != self.entry.state_hash {
            found.push(Difference::new("state_hash", &*state_hash, &*self.entry.state_hash));
        }
        if let Some(refusal) = self.refusal {
            found.push(Difference::new("input", "an input that the scheduler accepts", refusal));
        } else if self.decisions != self.entry.decisions {
            let value = |decisions: &[Decision]| {
                serde_json::to_value(decisions).expect("journal types are structs of numbers and texts")
            };
            found.extend(differences("decisions", &value(self.decisions), &value(&self.entry.decisions)));
        }
        found
    }

    /// Returns the device of a lane; empty if it is not known.
    pub fn device(&self, lane: LaneId) -> &str {
        let lanes = self.started.map_or(&[][..], |started| &started.lanes);
        let lane = usize::try_from(lane).ok().and_then(|lane| lanes.get(lane));
        lane.map_or("", |lane| lane.device.as_str())
    }
}

impl<'a> Stepper<'a> {
    /// Opens a partition of a journal at its first start, or at its first complete checkpoint if older entries were
    /// removed. At both of these the state is known.
    ///
    /// # Errors
    /// If the log cannot be read, there is no such partition, or the partition has no such entry.
    pub fn open(log: &'a dyn EventLog, journal: &str, partition: i32) -> Result<Self, ReplayError> {
        let entries = Entries::open(log, journal, partition)?;
        let begin = entries.first_begin()?.ok_or_else(|| entries.trimmed())?;
        let first = begin.offset;
        let mut reader = entries.read(OffsetRange { first, ..entries.range })?;
        let Some((offset, entry)) = reader.next()? else { return Err(entries.trimmed()) };
        let here = Here {
            offset,
            previous: None,
            entry,
            sequence: None,
            state_hash: 0,
            decisions: Vec::new(),
            refusal: None,
        };
        let (state, started, marks) = (Scheduler::new(), None, Marks::default());
        let mut stepper = Self { entries, reader, first, state, started, here, marks, stepped: 0 };
        stepper.land(mark_of(begin))?;
        Ok(stepper)
    }

    /// Returns the step at the position.
    pub fn step(&self) -> Step<'_> {
        let Here { offset, previous: _, entry, sequence, state_hash, decisions, refusal } = &self.here;
        Step {
            offset: *offset,
            entry,
            state: &self.state,
            decisions,
            started: self.started.as_deref(),
            sequence: *sequence,
            state_hash: *state_hash,
            refusal: refusal.as_deref(),
        }
    }

    /// Returns the range of the journal's offsets, starting with the first entry that can be reached.
    pub fn range(&self) -> OffsetRange {
        OffsetRange { first: self.first, next: self.entries.range.next }
    }

    /// Returns the last entry of the journal.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn last(&self) -> Result<Moment, ReplayError> {
        let reach = self.entries.reach()?.ok_or_else(|| self.entries.gone(self.first))?;
        Ok(reach.last)
    }

    /// Returns the error for a place after the last entry. It names the existing range.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn outside(&self) -> Result<ReplayError, ReplayError> {
        Ok(self.entries.outside(self.entries.reach()?.into_iter().collect()))
    }

    /// Returns the total number of entries stepped, for callers that measure the cost of a move.
    pub fn stepped(&self) -> u64 {
        self.stepped
    }

    /// Explains the position's decision with this index, together with the decisions before it; `None` if this software
    /// makes no such decision.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn explain(&mut self, index: usize) -> Result<Option<Explained>, ReplayError> {
        if index >= self.here.decisions.len() || self.here.refusal.is_some() {
            return Ok(None);
        }
        let state = self.state_before()?;
        let Here { offset, entry, .. } = &self.here;
        let Ok(explanation) = state.explain(entry.at_ns, &entry.input, index) else { return Ok(None) };
        let before = before(&self.entries, *offset, entry)?.into_iter().nth(index).flatten();
        Ok(Some(Explained { explanation, before }))
    }

    /// Goes to the next entry.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn forward(&mut self) -> Result<Found, ReplayError> {
        Ok(if self.advance()? { Found::Here } else { Found::Nothing })
    }

    /// Goes to the previous entry.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn back(&mut self) -> Result<Found, ReplayError> {
        if self.here.offset <= self.first {
            return Ok(Found::Nothing);
        }
        let previous = match self.here.previous {
            Some(previous) => Some(previous),
            None => self.entries.last_before(self.here.offset)?,
        };
        match previous.filter(|previous| *previous >= self.first) {
            Some(previous) => self.go_to_offset(previous, &mut |_| true),
            None => Ok(Found::Nothing),
        }
    }

    /// Goes to the first entry at or after a bound; to the last entry if there is none. A bound before the first entry
    /// leads to the first entry. `progress` gets the offset from time to time, and returns true to continue.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn go_to(
        &mut self,
        bound: Bound,
        progress: &mut dyn FnMut(i64) -> bool,
    ) -> Result<Found, ReplayError> {
        let offset = self.entries.bound(Some(bound))?.unwrap_or(self.first).max(self.first);
        if offset < self.entries.range.next {
            let found = self.go_to_offset(offset, progress)?;
            // Offsets after the last entry may have no entries.
            return Ok(if self.here.offset < offset && found == Found::Here {
                Found::Nothing
            } else {
                found
            });
        }
        if let Some(last) = self.entries.last_before(self.entries.range.next)?
            && self.go_to_offset(last, progress)? == Found::Stopped
        {
            return Ok(Found::Stopped);
        }
        Ok(Found::Nothing)
    }

    /// Goes to the next entry that meets a condition; stays in place if there is none. `progress` is as in
    /// [`Stepper::go_to`].
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn find_next(
        &mut self,
        predicate: &Predicate,
        progress: &mut dyn FnMut(i64) -> bool,
    ) -> Result<Found, ReplayError> {
        let from = self.here.offset;
        while self.advance()? {
            if predicate.holds(&self.step()) {
                return Ok(Found::Here);
            }
            if self.is_stopped(progress) {
                return Ok(Found::Stopped);
            }
        }
        self.go_to_offset(from, &mut |_| true)?;
        Ok(Found::Nothing)
    }

    /// Goes to the last earlier entry that meets a condition; stays in place if there is none. Searches the sections
    /// between marks, starts and checkpoints, the last section first. `progress` is as in [`Stepper::go_to`].
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn find_back(
        &mut self,
        predicate: &Predicate,
        progress: &mut dyn FnMut(i64) -> bool,
    ) -> Result<Found, ReplayError> {
        let from = self.here.offset;
        let mut end = from;
        while end > self.first {
            self.land_before(end)?;
            let begin = self.here.offset;
            let mut found = None;
            while self.here.offset < end {
                if predicate.holds(&self.step()) {
                    found = Some(self.here.offset);
                }
                if self.is_stopped(progress) {
                    return Ok(Found::Stopped);
                }
                if !self.advance()? {
                    break;
                }
            }
            if let Some(found) = found {
                return self.go_to_offset(found, &mut |_| true);
            }
            end = begin;
        }
        self.go_to_offset(from, &mut |_| true)?;
        Ok(Found::Nothing)
    }

    /// Goes to the first entry at or after an offset; to the last entry if there is none.
    fn go_to_offset(
        &mut self,
        offset: i64,
        progress: &mut dyn FnMut(i64) -> bool,
    ) -> Result<Found, ReplayError> {
        if !(self.here.offset..self.here.offset + MARK_OFFSETS).contains(&offset) {
            self.land_before(offset + 1)?;
        }
        while self.here.offset < offset && self.advance()? {
            if self.here.offset < offset && self.is_stopped(progress) {
                return Ok(Found::Stopped);
            }
        }
        Ok(Found::Here)
    }

    fn is_stopped(&self, progress: &mut dyn FnMut(i64) -> bool) -> bool {
        self.stepped.is_multiple_of(PROGRESS_ENTRIES) && !progress(self.here.offset)
    }

    /// Goes to the nearest place before an offset at which the state is known: the position itself, a mark, a start or
    /// a checkpoint.
    fn land_before(&mut self, offset: i64) -> Result<(), ReplayError> {
        let mark = self.marks.before(offset);
        let marked = mark.map_or(self.first, |mark| mark.offset);
        let stays = (marked..offset).contains(&self.here.offset);
        let nearest = if stays { self.here.offset } else { marked };
        if offset - nearest > MARK_OFFSETS {
            let range = OffsetRange { first: nearest + 1, next: offset };
            if let Some(begin) = self.entries.begin_within(range)? {
                return self.land(mark_of(begin));
            }
        }
        match mark.cloned() {
            Some(mark) if !stays => self.land(mark),
            _ => Ok(()),
        }
    }

    /// Restores the state of a mark, and steps its entry.
    fn land(&mut self, mark: Mark) -> Result<(), ReplayError> {
        self.reader.seek(mark.offset)?;
        self.marks.keep(mark.clone(), mark.offset);
        let Mark { offset, previous, sequence, state, started } = mark;
        (self.state, self.started) = (state, started);
        let (at, entry) = self.reader.next()?.ok_or_else(|| self.entries.gone(offset))?;
        self.apply(at, previous, sequence, entry);
        Ok(())
    }

    /// Steps the next entry; returns false if there is none.
    fn advance(&mut self) -> Result<bool, ReplayError> {
        let Some((offset, entry)) = self.reader.next()? else { return Ok(false) };
        let previous = Some(self.here.offset);
        let sequence = self.here.entry.sequence.checked_add(1);
        if self.marks.wants(offset) {
            let (state, started) = (self.state.clone(), self.started.clone());
            self.marks.keep(Mark { offset, previous, sequence, state, started }, offset);
        }
        self.apply(offset, previous, sequence, entry);
        Ok(true)
    }

    fn apply(&mut self, offset: i64, previous: Option<i64>, sequence: Option<i64>, entry: JournalEntry) {
        match &entry.input {
            Input::Started(started) => {
                // A new process begins with an empty scheduler.
                self.state = Scheduler::new();
                self.started = Some(Arc::new((**started).clone()));
            }
            Input::Checkpoint(Checkpoint { started: Some(started), .. }) if self.started.is_none() => {
                self.started = Some(Arc::new((**started).clone()));
            }
            _ => {}
        }
        let state_hash = self.state.state_hash();
        let mut decisions = std::mem::take(&mut self.here.decisions);
        decisions.clear();
        let refusal = self.state.step(entry.at_ns, &entry.input, &mut decisions).err();
        let refusal = refusal.map(|error| error.to_string());
        self.here = Here { offset, previous, entry, sequence, state_hash, decisions, refusal };
        self.stepped += 1;
    }

    /// Returns the state before the entry at the position. Computes it from the last mark, because keeping a second
    /// state up to date would cost more on every move.
    fn state_before(&mut self) -> Result<Scheduler, ReplayError> {
        let at = self.here.offset;
        let mark = self.marks.before(at + 1).cloned().ok_or_else(|| self.entries.gone(at))?;
        let mut before = mark.state.clone();
        self.land(mark)?;
        while self.here.offset < at {
            let (offset, entry) = self.reader.next()?.ok_or_else(|| self.entries.gone(at))?;
            if offset == at {
                before = self.state.clone();
            }
            let (previous, sequence) = (Some(self.here.offset), self.here.entry.sequence.checked_add(1));
            self.apply(offset, previous, sequence, entry);
        }
        Ok(before)
    }
}

fn mark_of(begin: Begin) -> Mark {
    let (started, state) = match begin.checkpoint {
        Some((started, state)) => (Some(Arc::new(started)), state),
        None => (None, Scheduler::new()),
    };
    Mark { offset: begin.offset, previous: None, sequence: None, state, started }
}
