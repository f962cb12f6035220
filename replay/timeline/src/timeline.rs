//! Draws the events on each track, item by item.
//!
//! An item is drawn at its end, as a slice with start and end, because the packets of a trace need no order in time.
//! The timeline keeps the time at which each row is free, and the starts that two items share.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use warptape_replay::history::{
    Assigned, HeadroomChange, Item, LaneChange, Level, LevelOf, Life, Moment, Paused, Stay, StayEnd,
    Unassigned, Wanted,
};
use warptape_schemas::journal::{Breaker, BreakerState, GroupIndex, LaneId, PartitionId};

use crate::names::{Key, Name};
use crate::packets::{Event, Packets, Span, number, text};
use crate::proto::DebugAnnotation;
use crate::tracks::{Numbers, Of, Overlap, Tracks};
use crate::{Drawn, words};

/// Bit in the numbers of batches' flows; the next bit is that of tasks. So no other flow has the same number.
const FLOW_OF_BATCH: u64 = 1 << 63;
const FLOW_OF_TASK: u64 = 1 << 62;
/// Number of bits for the number within a process life.
const FLOW_BITS: u32 = 40;

/// Draws items into a trace.
pub struct Timeline<W> {
    pub(crate) out: Packets<W>,
    pub(crate) drawn: Drawn,
    /// True if items that began before the first item are drawn from that item's time on.
    is_window: bool,
    numbers: Numbers,
    flows: u64,
    life: Option<Drawing>,
    /// Partition of the journal, and the beginning of its window.
    journal: Option<(i32, Option<i64>)>,
}

/// A process life being drawn.
struct Drawing {
    tracks: Tracks,
    /// Number of the life in the trace.
    number: u64,
    /// The last time seen.
    last_ns: i64,
    assigned: BTreeMap<PartitionId, (i64, Option<Assigned>)>,
    breakers: BTreeMap<LaneId, (Moment, Breaker)>,
    /// Number of lanes that were wanted when the window began, while that beginning is unknown.
    wanted_before: Option<i32>,
    /// Flows of groups that moved and were not placed yet.
    moved: BTreeMap<(PartitionId, GroupIndex), u64>,
}

impl<W: Write> Timeline<W> {
    /// Creates a trace that is written to `out`. In a window of a journal, items that began earlier are drawn from the
    /// window's beginning on.
    pub fn new(out: W, is_window: bool) -> Self {
        Self {
            out: Packets::new(out),
            drawn: Drawn::default(),
            is_window,
            numbers: Numbers::default(),
            flows: 0,
            life: None,
            journal: None,
        }
    }

    /// Draws the next item of a history.
    ///
    /// # Errors
    /// If the trace cannot be written.
    pub fn add(&mut self, item: &Item) -> io::Result<()> {
        if let Item::Life(life) = item {
            return self.begin_life(life);
        }
        if self.life.is_none() {
            self.begin(None, ended_ns(item).unwrap_or(0))?;
        }
        self.hear(item);
        self.draw_wanted_before()?;
        match item {
            Item::Life(_) => Ok(()),
            Item::Assigned(assigned) => self.assigned(assigned),
            Item::Unassigned(unassigned) => self.unassigned(unassigned),
            Item::Pause(pause) => self.pause(pause),
            Item::Batch(batch) => self.batch(batch),
            Item::Stay(stay) => self.stay(stay),
            Item::Lane(change) => self.lane(change),
            Item::Breaker(change) => self.breaker(change.at, change.breaker),
            Item::Headroom(change) => self.headroom(change),
            Item::Draining(at) => self.draining(*at),
            Item::Wanted(wanted) => self.wanted(wanted),
            Item::Round(round) => self.round(round),
            Item::Slice(slice) => self.task_slice(slice),
            Item::Transaction(transaction) => self.transaction(transaction),
            Item::Level(level) => self.level(level),
            // The tracks themselves already show that nothing was done.
            Item::Hole(_) => Ok(()),
        }
    }

    /// Notes an item from before the window, because a breaker that it opened may stay open in the window.
    pub fn add_before(&mut self, item: &Item) {
        if let (Item::Breaker(change), Some(life)) = (item, &mut self.life) {
            life.breakers.insert(change.breaker.lane, (change.at, change.breaker));
        }
    }

    /// Ends the history. Returns the writer, and the counts of the drawn items.
    ///
    /// # Errors
    /// If the trace cannot be written.
    pub fn finish(mut self) -> io::Result<(W, Drawn)> {
        self.end_life()?;
        let (out, bytes) = self.out.finish()?;
        Ok((out, Drawn { bytes, ..self.drawn }))
    }

    fn begin_life(&mut self, life: &Arc<Life>) -> io::Result<()> {
        self.end_life()?;
        if self.journal.is_none_or(|(journal, _)| journal != life.journal) {
            self.journal = Some((life.journal, None));
        }
        self.begin(Some(life), life.since.at_ns)
    }

    fn begin(&mut self, life: Option<&Life>, at_ns: i64) -> io::Result<()> {
        self.out.begin_trace(at_ns)?;
        let tracks = Tracks::new(life, &mut self.numbers, &mut self.out)?;
        self.drawn.lives += 1;
        self.life = Some(Drawing {
            tracks,
            number: self.drawn.lives,
            last_ns: at_ns,
            assigned: BTreeMap::new(),
            breakers: BTreeMap::new(),
            wanted_before: None,
            moved: BTreeMap::new(),
        });
        Ok(())
    }

    /// Draws items that are open at the end of a life, until the last time seen.
    fn end_life(&mut self) -> io::Result<()> {
        let Some(life) = &mut self.life else { return Ok(()) };
        let (assigned, breakers) = (std::mem::take(&mut life.assigned), std::mem::take(&mut life.breakers));
        for (partition, (from_ns, assigned)) in assigned {
            self.draw_assigned(partition, from_ns, assigned, None)?;
        }
        let last_ns = self.last_ns();
        for (at, breaker) in breakers.into_values() {
            self.draw_breaker(at, breaker, last_ns)?;
        }
        self.life = None;
        Ok(())
    }

    /// Notes the end of an item.
    fn hear(&mut self, item: &Item) {
        let Some(at_ns) = ended_ns(item) else { return };
        if let Some(life) = &mut self.life {
            life.last_ns = life.last_ns.max(at_ns);
        }
        let is_in_force = matches!(
            item,
            Item::Assigned(_) | Item::Unassigned(_) | Item::Wanted(Wanted { scale: None, .. })
        );
        if let Some((_, begins_ns)) = self.journal.as_mut().filter(|_| self.is_window && !is_in_force) {
            begins_ns.get_or_insert(at_ns);
        }
    }

    /// Returns the last time seen in this life.
    pub(crate) fn last_ns(&self) -> i64 {
        self.life.as_ref().map_or(0, |life| life.last_ns)
    }

    /// Returns a new unique number for a flow.
    pub(crate) fn next_flow(&mut self) -> u64 {
        self.flows += 1;
        self.flows
    }

    /// Returns the flow from a batch to its transaction.
    pub(crate) fn flow_of_batch(&self, batch: i64) -> u64 {
        FLOW_OF_BATCH | self.flow_within_life(batch)
    }

    /// Returns the flow that connects the slices of a task.
    pub(crate) fn flow_of_task(&self, task: i64) -> u64 {
        FLOW_OF_TASK | self.flow_within_life(task)
    }

    fn flow_within_life(&self, number: i64) -> u64 {
        let life = self.life.as_ref().map_or(0, |life| life.number);
        (life << FLOW_BITS | number.cast_unsigned() & ((1 << FLOW_BITS) - 1)) & (FLOW_OF_TASK - 1)
    }

    /// Returns a time, moved to the window's beginning or the epoch if it is earlier.
    pub(crate) fn within(&self, at_ns: i64) -> i64 {
        let begins_ns = self.journal.and_then(|(_, begins_ns)| begins_ns);
        at_ns.max(begins_ns.unwrap_or(0)).max(0)
    }

    /// Returns an annotation with the time by which something began before the window; `None` if it began within.
    pub(crate) fn before_window(&self, begin_ns: i64) -> Option<DebugAnnotation> {
        let before_ns = self.within(begin_ns).saturating_sub(begin_ns);
        (before_ns > 0).then(|| number(Key::BeforeWindow, before_ns))
    }

    /// Returns a row and an interval with room for a slice; `None` if there is no room, which is counted.
    pub(crate) fn room(
        &mut self,
        of: Of,
        begin_ns: i64,
        end_ns: i64,
        overlap: Overlap,
    ) -> io::Result<Option<(u64, Span)>> {
        let begin_ns = self.within(begin_ns);
        let span = Span { begin_ns, end_ns: end_ns.max(begin_ns) };
        let Some(life) = &mut self.life else { return Ok(None) };
        let room = life.tracks.room(of, span, overlap, &mut self.numbers, &mut self.out)?;
        match room {
            Some(_) => self.drawn.slices += 1,
            None => self.drawn.left_out += 1,
        }
        Ok(room)
    }

    /// Draws a slice without nested slices.
    pub(crate) fn slice(
        &mut self,
        of: Of,
        (begin_ns, end_ns): (i64, i64),
        overlap: Overlap,
        name: Name,
        mut event: Event,
    ) -> io::Result<()> {
        event.notes.extend(self.before_window(begin_ns));
        match self.room(of, begin_ns, end_ns, overlap)? {
            Some((row, span)) => self.out.slice(row, span, name, event),
            None => Ok(()),
        }
    }

    /// Draws an instant event, unless there are too many tracks.
    pub(crate) fn instant(&mut self, of: Of, at_ns: i64, name: Name, event: Event) -> io::Result<()> {
        let at_ns = self.within(at_ns);
        let Some(row) = self.only(of)? else { return Ok(()) };
        self.out.instant(row, at_ns, name, event)
    }

    fn only(&mut self, of: Of) -> io::Result<Option<u64>> {
        let Some(life) = &mut self.life else { return Ok(None) };
        let row = life.tracks.only(of, &mut self.numbers, &mut self.out)?;
        self.drawn.left_out += u64::from(row.is_none());
        Ok(row)
    }

    fn level(&mut self, level: &Level) -> io::Result<()> {
        let of = match level.of {
            LevelOf::Waiting(partition) => Of::Waiting(partition),
            LevelOf::InFlight(lane) => Of::LaneInFlight(lane),
        };
        if let (LevelOf::Waiting(partition), Some(life), 1..) = (level.of, &mut self.life, level.rows) {
            // The history began after the partition was assigned.
            life.assigned.entry(partition).or_insert((level.at.at_ns, None));
        }
        let Some(row) = self.only(of)? else { return Ok(()) };
        self.out.count(row, self.within(level.at.at_ns), level.rows)
    }

    fn assigned(&mut self, assigned: &Assigned) -> io::Result<()> {
        let Some(life) = &mut self.life else { return Ok(()) };
        let before = life.assigned.insert(assigned.partition, (assigned.at.at_ns, Some(*assigned)));
        match before {
            Some((from_ns, before)) => {
                self.draw_assigned(assigned.partition, from_ns, before, Some((assigned.at.at_ns, "again")))
            }
            None => Ok(()),
        }
    }

    fn unassigned(&mut self, unassigned: &Unassigned) -> io::Result<()> {
        let Some(life) = &mut self.life else { return Ok(()) };
        let Some((from_ns, assigned)) = life.assigned.remove(&unassigned.partition) else { return Ok(()) };
        let end = if unassigned.is_restored { "restored" } else { "revoked" };
        self.draw_assigned(unassigned.partition, from_ns, assigned, Some((unassigned.at.at_ns, end)))
    }

    fn draw_assigned(
        &mut self,
        partition: PartitionId,
        from_ns: i64,
        assigned: Option<Assigned>,
        end: Option<(i64, &str)>,
    ) -> io::Result<()> {
        let mut notes = Vec::new();
        if let Some(Assigned { at, committed_offset, snapshot_offset, .. }) = assigned {
            notes.push(number(Key::Sequence, at.sequence));
            notes.push(number(Key::CommittedOffset, committed_offset));
            notes.push(number(Key::SnapshotOffset, snapshot_offset));
        }
        let (end_ns, ended) = end.unwrap_or((self.last_ns(), "open"));
        notes.push(text(Key::Ended, ended));
        let event = Event { notes, ..Event::default() };
        self.slice(Of::Partition(partition), (from_ns, end_ns), Overlap::Never, Name::Assigned, event)
    }

    fn pause(&mut self, pause: &Paused) -> io::Result<()> {
        let notes = match &pause.pause {
            Some(decision) => vec![
                number(Key::Sequence, pause.from.sequence),
                number(Key::WaitingRows, decision.waiting_rows),
                number(Key::HighWaterRows, decision.high_water_rows),
            ],
            None => vec![text(Key::Began, &format!("before entry {}", pause.from.sequence))],
        };
        let until_ns = pause.until.map_or(self.last_ns(), |until| until.at_ns);
        let event = Event { notes, ..Event::default() };
        let span = (pause.from.at_ns, until_ns);
        self.slice(Of::Pauses(pause.partition), span, Overlap::Never, Name::Paused, event)
    }

    fn lane(&mut self, change: &LaneChange) -> io::Result<()> {
        let mut notes = vec![number(Key::Sequence, change.at.sequence)];
        notes.extend(change.lost.as_ref().map(|reason| text(Key::Reason, reason)));
        let name = if change.lost.is_some() { Name::LaneLost } else { Name::LaneReady };
        self.instant(Of::LaneState(change.lane), change.at.at_ns, name, Event { notes, ..Event::default() })
    }

    fn headroom(&mut self, change: &HeadroomChange) -> io::Result<()> {
        let HeadroomChange { at, headroom } = change;
        let notes = vec![
            number(Key::Sequence, at.sequence),
            number(Key::WeightPercent, headroom.weight_percent),
            number(Key::TemperatureC, headroom.temperature_c),
            number(Key::LimitC, headroom.limit_c),
        ];
        self.instant(Of::LaneState(headroom.lane), at.at_ns, Name::Heat, Event { notes, ..Event::default() })
    }

    fn draining(&mut self, at: Moment) -> io::Result<()> {
        let notes = vec![number(Key::Sequence, at.sequence)];
        self.instant(Of::Commits, at.at_ns, Name::Draining, Event { notes, ..Event::default() })
    }

    fn wanted(&mut self, wanted: &Wanted) -> io::Result<()> {
        let Wanted { at, lanes, scale } = wanted;
        let begins_ns = self.journal.and_then(|(_, begins_ns)| begins_ns);
        if let Some(life) = self.life.as_mut().filter(|_| self.is_window && begins_ns.is_none()) {
            life.wanted_before = Some(*lanes);
            return Ok(());
        }
        if let Some(row) = self.only(Of::Wanted)? {
            self.out.count(row, self.within(at.at_ns), (*lanes).into())?;
        }
        let Some(scale) = scale else { return Ok(()) };
        let notes = vec![
            number(Key::Sequence, at.sequence),
            text(Key::Reason, &words::of(&scale.reason)),
            number(Key::Lanes, scale.lanes),
            number(Key::LanesBefore, scale.lanes_before),
            number(Key::LanesInService, scale.lanes_in_service),
            number(Key::UtilizationPercent, scale.utilization_percent),
            number(Key::LoadE6, scale.load_e6),
            number(Key::Waiting, scale.waiting_ns),
        ];
        self.instant(Of::Wishes, at.at_ns, Name::Wish, Event { notes, ..Event::default() })
    }

    /// Draws the number of lanes wanted before the window, starting at the window's beginning once that is known.
    fn draw_wanted_before(&mut self) -> io::Result<()> {
        let Some((_, Some(begins_ns))) = self.journal else { return Ok(()) };
        let Some(lanes) = self.life.as_mut().and_then(|life| life.wanted_before.take()) else {
            return Ok(());
        };
        match self.only(Of::Wanted)? {
            Some(row) => self.out.count(row, self.within(begins_ns), lanes.into()),
            None => Ok(()),
        }
    }

    fn breaker(&mut self, at: Moment, breaker: Breaker) -> io::Result<()> {
        let Some(life) = &mut self.life else { return Ok(()) };
        match life.breakers.insert(breaker.lane, (at, breaker)) {
            Some((since, before)) => self.draw_breaker(since, before, at.at_ns),
            None => Ok(()),
        }
    }

    fn draw_breaker(&mut self, since: Moment, breaker: Breaker, until_ns: i64) -> io::Result<()> {
        if breaker.state == BreakerState::Closed {
            return Ok(());
        }
        let notes = vec![
            number(Key::Sequence, since.sequence),
            text(Key::Reason, &words::of(&breaker.reason)),
            number(Key::Measured, breaker.measured),
            number(Key::Limit, breaker.limit),
        ];
        let (of, event) = (Of::LaneBreaker(breaker.lane), Event { notes, ..Event::default() });
        self.slice(of, (since.at_ns, until_ns), Overlap::Never, breaker.state.into(), event)
    }

    /// Draws the placement of a group that had moved, and its next move.
    fn stay(&mut self, stay: &Stay) -> io::Result<()> {
        let Some(life) = &mut self.life else { return Ok(()) };
        let group = (stay.partition, stay.group);
        let notes = vec![
            number(Key::Partition, stay.partition),
            number(Key::Group, stay.group),
            number(Key::Lane, stay.lane),
            number(Key::Epoch, stay.epoch),
        ];
        if let Some((placed, flow)) = stay.placed.zip(life.moved.remove(&group)) {
            let event = Event { ending_flows: vec![flow], notes: notes.clone(), ..Event::default() };
            self.instant(Of::Placements, placed.at_ns, Name::Placed, event)?;
        }
        let Some((released, cause)) = stay.release else { return Ok(()) };
        let flow = self.next_flow();
        if let Some(life) = self.life.as_mut().filter(|_| stay.end == StayEnd::Released) {
            life.moved.insert(group, flow);
        }
        let left_ns = stay.left.map_or(self.last_ns(), |left| left.at_ns);
        let mut event = Event { flows: vec![flow], notes, ..Event::default() };
        event.notes.push(number(Key::Sequence, released.sequence));
        event.notes.push(text(Key::Ended, &words::of(&stay.end)));
        self.drawn.moves += 1;
        self.slice(Of::Moves, (released.at_ns, left_ns), Overlap::Maybe, cause.into(), event)
    }
}

/// Returns the end of an item, as far as its entries show it; `None` if the item was still open at the life's end.
fn ended_ns(item: &Item) -> Option<i64> {
    use warptape_replay::history::BatchEnd;
    let moment = match item {
        Item::Life(life) => life.since,
        Item::Assigned(assigned) => assigned.at,
        Item::Unassigned(unassigned) => unassigned.at,
        Item::Pause(pause) => pause.until?,
        Item::Batch(batch) => match batch.end {
            BatchEnd::Completed { at, .. } | BatchEnd::Lost(at) => at,
            BatchEnd::Open => return None,
        },
        Item::Stay(stay) => stay.left?,
        Item::Lane(change) => change.at,
        Item::Breaker(change) => change.at,
        Item::Headroom(change) => change.at,
        Item::Draining(at) => *at,
        Item::Wanted(wanted) => wanted.at,
        Item::Round(round) => round.end?.0,
        Item::Slice(slice) => slice.done?.0,
        Item::Transaction(transaction) => return transaction.attempts.last().map(|last| last.known_ns),
        Item::Level(level) => level.at,
        Item::Hole(hole) => hole.until,
    };
    Some(moment.at_ns)
}
