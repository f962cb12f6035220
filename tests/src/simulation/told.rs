//! Checks the history of a journal: every batch has its rows, and every transaction has all effects of its records.

use std::collections::BTreeMap;
use std::sync::Arc;

use warptape_replay::history::{Arrival, Batch, History, Item, Moment, Part, SealedPart};
use warptape_scheduler::Scheduler;
use warptape_schemas::journal::{Checkpoint, Decision, Input, JournalEntry, Started};
use warptape_timeline::Timeline;

use crate::drawn::{Drawn, read_drawn};

/// The history of a journal, and the history from its first checkpoint on.
pub(super) struct Told {
    history: History,
    /// Start of the process, as the last checkpoint recorded it; `None` before a checkpoint.
    started: Option<Box<Started>>,
    from_checkpoint: Option<(History, Timeline<Vec<u8>>)>,
    timeline: Timeline<Vec<u8>>,
    /// Number of begun items of each kind in the entries.
    begun: BTreeMap<&'static str, i64>,
    /// Number of ended items of each kind in the history.
    ended: BTreeMap<&'static str, i64>,
}

impl Told {
    pub(super) fn new(ordinal: i32) -> Self {
        let history = History::new(ordinal);
        let timeline = Timeline::new(Vec::new(), false);
        let (begun, ended) = (BTreeMap::new(), BTreeMap::new());
        Self { history, started: None, from_checkpoint: None, timeline, begun, ended }
    }

    /// Adds the next entry.
    pub(super) fn add(&mut self, entry: &JournalEntry) -> Result<(), String> {
        match &entry.input {
            Input::Checkpoint(Checkpoint { started, part: 0, .. }) if self.from_checkpoint.is_none() => {
                self.started.clone_from(started);
            }
            Input::Checkpoint(Checkpoint { part: 1, parts: 2, state, .. })
                if self.from_checkpoint.is_none() =>
            {
                let scheduler = Scheduler::from_checkpoint(&state.0).map_err(|error| error.to_string())?;
                let at = Moment { sequence: entry.sequence, at_ns: entry.at_ns };
                let started = self.started.clone().ok_or("the first part of a checkpoint says no start")?;
                let history = History::at_checkpoint(0, at, *started, &scheduler);
                self.from_checkpoint = Some((history, Timeline::new(Vec::new(), true)));
            }
            _ => {}
        }
        self.count(entry);
        self.history.step(entry);
        self.look()?;
        if let Some((history, timeline)) = &mut self.from_checkpoint {
            history.step(entry);
            for item in history.take_items() {
                timeline.add(&item).map_err(|error| error.to_string())?;
                if let Item::Batch(batch) = item {
                    check_rows(&batch)?;
                }
            }
        }
        Ok(())
    }

    /// Ends the journal, and checks the totals.
    pub(super) fn finish(mut self) -> Result<(), String> {
        self.history.finish();
        self.look()?;
        if self.begun != self.ended {
            return Err(format!("{:?} began, and {:?} ended", self.begun, self.ended));
        }
        let drawn = read_back(self.timeline)?;
        drawn.check_flows()?;
        let batches = drawn.slices.iter().filter(|slice| slice.numbers.contains_key("queue_wait_ns")).count();
        if batches as i64 != self.begun.get("batches").copied().unwrap_or_default() {
            return Err(format!("{batches} batches are drawn of {:?}", self.begun));
        }
        self.from_checkpoint.map_or(Ok(()), |(_, timeline)| read_back(timeline).map(drop))
    }

    fn count(&mut self, entry: &JournalEntry) {
        let kind = match entry.input {
            Input::Started(_) => Some("lives"),
            Input::PartitionAssigned(_) => Some("assignments"),
            Input::TaskArrived(_) => Some("rounds"),
            Input::Sealed(_) => Some("transactions"),
            _ => None,
        };
        let decided = entry.decisions.iter().filter_map(|decision| match decision {
            Decision::Place(_) => Some("stays"),
            Decision::Dispatch(_) => Some("batches"),
            Decision::Pause(_) => Some("pauses"),
            Decision::RunSlice(_) => Some("slices"),
            Decision::Breaker(_) => Some("breakers"),
            _ => None,
        });
        for kind in kind.into_iter().chain(decided) {
            *self.begun.entry(kind).or_default() += 1;
        }
    }

    fn look(&mut self) -> Result<(), String> {
        for item in self.history.take_items() {
            self.timeline.add(&item).map_err(|error| error.to_string())?;
            let kind = match &item {
                Item::Life(_) => "lives",
                Item::Assigned(_) => "assignments",
                Item::Pause(_) => "pauses",
                Item::Stay(_) => "stays",
                Item::Breaker(_) => "breakers",
                Item::Round(_) => "rounds",
                Item::Slice(_) => "slices",
                Item::Lane(_)
                | Item::Unassigned(_)
                | Item::Level(_)
                | Item::Hole(_)
                | Item::Headroom(_)
                | Item::Draining(_)
                | Item::Wanted(_) => continue,
                Item::Batch(batch) => {
                    check_rows(batch)?;
                    "batches"
                }
                Item::Transaction(transaction) => {
                    transaction.partitions.iter().try_for_each(check_part)?;
                    if transaction.sealed_ns.is_none() {
                        continue;
                    }
                    "transactions"
                }
            };
            *self.ended.entry(kind).or_default() += 1;
        }
        Ok(())
    }
}

/// Reads a timeline back, and checks that Perfetto shows it as intended.
fn read_back(timeline: Timeline<Vec<u8>>) -> Result<Drawn, String> {
    let (bytes, _) = timeline.finish().map_err(|error| error.to_string())?;
    read_drawn(&bytes)
}

/// Checks that every row of a batch belongs to an arrival.
fn check_rows(batch: &Batch) -> Result<(), String> {
    let rows = |part: &Part| part.pieces.iter().map(|piece| piece.rows).sum::<i64>();
    match batch.parts.iter().find(|part| rows(part) != part.rows) {
        None => Ok(()),
        Some(part) => Err(format!("batch {} has {} rows of {part:?}", batch.dispatch.batch, rows(part))),
    }
}

/// Checks that a transaction has every row of its records once, in finished batches. The row of a snapshot's barrier,
/// which is the last one of a group, may be done later.
fn check_part(part: &SealedPart) -> Result<(), String> {
    if !part.is_whole {
        return Err(format!("{:?} is not whole in a whole journal", part.account));
    }
    let is_done =
        |arrival: &&Arc<Arrival>| arrival.offsets.is_some_and(|(_, next)| next <= part.account.next_offset);
    for arrival in part.arrivals.iter().filter(is_done) {
        for &(group, rows) in &arrival.groups {
            let parts = part.batches.iter().flat_map(|batch| &batch.parts);
            let of_group = parts.filter(|one| (one.partition, one.group) == (arrival.partition, group));
            let pieces = of_group.flat_map(|one| &one.pieces);
            let mut pieces: Vec<(i64, i64)> = pieces
                .filter(|piece| Arc::ptr_eq(&piece.arrival, arrival))
                .map(|piece| (piece.from, piece.from + piece.rows))
                .collect();
            pieces.sort_unstable();
            let next = pieces.iter().try_fold(0, |next, &(from, to)| (from == next).then_some(to));
            if next.is_none_or(|next| next != rows && next != rows - 1) {
                return Err(format!(
                    "{:?} has rows {pieces:?} of {rows} of group {group} that came with {arrival:?}",
                    part.account
                ));
            }
        }
    }
    Ok(())
}
