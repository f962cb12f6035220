//! The contents of a page, gathered item by item in one pass.
//!
//! This module owns the counts, and limits how much is kept. It does not know how the counts are shown.

mod moves;
mod reasons;
mod slot;

use std::collections::{BTreeMap, BTreeSet};

use warptape_replay::chain::{Seen, Slowest};
use warptape_replay::history::{
    Batch, BatchEnd, Bound, BreakerChange, Hole, HoleCause, Item, LaneChange, Life, Moment, Paused, Round,
    RoundEnd, Slice, Stay, Transaction, Wanted, Window,
};
use warptape_schemas::journal::{BreakerState, CommitOutcome, Headroom, LaneId};

use crate::slots::Slots;

pub use self::moves::{MOVES_KEPT, Move, MoveCause, Moves};
pub use self::reasons::{ReasonKind, Reasons};
use self::slot::add;
pub use self::slot::{BatchWork, EventKind, GroupKey, LaneKey, LaneSlot, Latency, Slot};

/// Greatest number of groups whose placement is shown group by group; with more, no group is shown.
pub const GROUPS_SHOWN_MAX: usize = 96;
/// Greatest number of process lives kept; the last ones stay.
const LIVES_KEPT: usize = 12;
/// Greatest number of events kept as text; the last ones stay.
const EVENTS_KEPT: usize = 40;
/// Greatest number of software versions kept.
const SOFTWARE_KEPT: usize = 8;
/// Greatest number of characters kept of a text from the journal.
const TEXT_KEPT: usize = 160;
/// Significant digits of the latencies over all signals.
const DIGITS: u8 = 3;

/// Sort key of an event: time, process, sequence of the entry, kind, and lane.
pub type EventPlace = (i64, i32, i64, EventKind, LaneId);

/// Lane of events that concern no lane.
const NO_LANE: LaneId = -1;

/// The contents of a page about a window of a log.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// Events and amounts over time.
    pub slots: Slots<Slot>,
    /// Latencies of all signals.
    pub latency: Latency,
    /// Counts of events.
    pub totals: Totals,
    /// Counts of decisions by reason.
    pub reasons: Reasons,
    /// Moves of groups.
    pub moves: Moves,
    /// The last process lives, in order.
    pub lives: BTreeMap<(i64, i32, i64), LifeSeen>,
    /// Versions of the software that ran.
    pub software: BTreeSet<String>,
    /// Lanes by process and index.
    pub lanes: BTreeMap<LaneKey, LaneSeen>,
    /// Rows of each group.
    pub groups: BTreeMap<GroupKey, u64>,
    /// Time for which each partition was paused, ns.
    pub paused: BTreeMap<i32, u64>,
    /// The last events, described in words.
    pub events: BTreeMap<EventPlace, String>,
    /// States that were already in force at the beginning of the window, described in words.
    pub standing: BTreeMap<EventPlace, String>,
    /// The slowest signals.
    pub slowest: Slowest,
}

/// Counts of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of processes that wrote the journals.
    pub processes: u64,
    /// Number of process lives.
    pub lives: u64,
    /// Number of rows in batches: ticks, and rows that move watermarks.
    pub rows: u64,
    /// Number of signals that were committed before their tick was published, according to the clocks.
    pub negative: u64,
    /// Number of batches.
    pub batches: u64,
    /// Number of batches whose lane was lost.
    pub batches_lost: u64,
    /// Number of pauses of partitions.
    pub pauses: u64,
    /// Counts of transactions.
    pub transactions: TransactionTotals,
    /// Counts of risk tasks.
    pub tasks: TaskTotals,
    /// Number of losses of lanes.
    pub lanes_lost: u64,
    /// Number of state changes of breakers.
    pub breakers: u64,
    /// Number of changes of the wanted number of lanes.
    pub wishes: u64,
    /// Number of lives whose wanted number of lanes is known.
    pub scaled: u64,
}

/// Amounts and outcomes of transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionTotals {
    /// Number of tick records in transactions.
    pub records: u64,
    /// Number of signals in transactions.
    pub signals: u64,
    /// Number of late ticks in transactions.
    pub late: u64,
    /// Number of dead letters in transactions.
    pub dead_letters: u64,
    /// Number of committed transactions.
    pub committed: u64,
    /// Number of aborted attempts to commit.
    pub aborted: u64,
    /// Number of committed transactions whose commit time is not in the journal.
    pub untimed: u64,
}

/// Outcomes of risk tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskTotals {
    /// Number of slices.
    pub slices: u64,
    /// Number of rounds that were finished.
    pub finished: u64,
    /// Number of tasks that were refused.
    pub refused: u64,
    /// Number of tasks whose deadline passed.
    pub expired: u64,
    /// Number of tasks that were shed because tasks waited for too long.
    pub shed: u64,
    /// Number of tasks that were withdrawn.
    pub dropped: u64,
}

/// A process life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifeSeen {
    /// Name of the process.
    pub node: String,
    /// Software version of the process.
    pub software: String,
    /// Number of the process's lanes.
    pub lanes: usize,
    /// Placement policy of the process.
    pub placement: String,
    /// True if the journal has the start of the life.
    pub has_begun: bool,
}

/// A lane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneSeen {
    /// Device of the lane.
    pub device: String,
    /// Device class.
    pub class: String,
    /// Number of batches on the lane.
    pub batches: u64,
    /// Number of rows in the lane's batches.
    pub rows: u64,
    /// Rows and work time of the lane's completed batches.
    pub done: BatchWork,
    /// Time for which the lane worked, ns.
    pub busy_ns: u64,
    /// Number of times that the lane was lost.
    pub lost: u64,
}

/// Gathers the items of a log.
pub struct Gathering {
    window: Window,
    gathered: Gathered,
    journal: i32,
    /// Beginning of the window in the journal being read, before which nothing is shown; `None` while it is unknown.
    since_ns: Option<i64>,
    /// Start of the current life, and the last time seen in it.
    life_ns: (i64, i64),
    /// Wanted number of lanes in the current life, and the time since which it is wanted.
    wanted: Option<(i64, i32)>,
    /// States from before the window that are still in force; for each, its last item.
    standing: BTreeMap<(EventKind, LaneId), Option<(Moment, String)>>,
}

impl Gathering {
    /// Makes an empty gathering for a window.
    pub fn new(window: Window) -> Self {
        let since_ns = time_of(window.from);
        Self {
            window,
            gathered: Gathered::default(),
            journal: -1,
            since_ns,
            life_ns: (0, 0),
            wanted: None,
            standing: BTreeMap::new(),
        }
    }

    /// Adds the next item or signal.
    pub fn see(&mut self, seen: Seen<'_>) {
        match seen {
            Seen::Signal { committed_ns, latency_ns: Some(latency_ns), .. } => {
                self.gathered.totals.negative += u64::from(latency_ns < 0);
                self.gathered.latency.add(latency_ns, DIGITS);
                self.gathered.slots.at(committed_ns).latency.add_to_slot(latency_ns);
            }
            Seen::Signal { .. } => {}
            Seen::Item(item) => self.item(item),
            Seen::Before(item) => self.before(item),
        }
    }

    /// Ends the gathering, and returns its result.
    pub fn finish(mut self, slowest: Slowest) -> Gathered {
        self.end_wanted(self.life_ns.1);
        self.end_standing();
        Gathered { slowest, ..self.gathered }
    }

    /// Adds an item from before the window. Its state stays in force until the next item of its kind, or the end of the
    /// life.
    fn before(&mut self, item: &Item) {
        let (key, at, words) = match item {
            Item::Lane(change) => {
                let words = change.lost.as_ref().map(|reason| self.lost_words(change.lane, reason));
                ((EventKind::LaneLost, change.lane), change.at, words)
            }
            Item::Breaker(change) => {
                let is_open = change.breaker.state != BreakerState::Closed;
                let words = is_open.then(|| self.breaker_words(change));
                ((EventKind::Breaker, change.breaker.lane), change.at, words)
            }
            Item::Headroom(change) => {
                let is_hot = change.headroom.weight_percent < 100;
                let words = is_hot.then(|| self.headroom_words(&change.headroom));
                ((EventKind::Headroom, change.headroom.lane), change.at, words)
            }
            Item::Draining(at) => ((EventKind::Draining, NO_LANE), *at, Some(self.draining_words())),
            _ => return,
        };
        self.standing.insert(key, words.map(|words| (at, words)));
    }

    /// Keeps the states in force when the window begins in the journal being read.
    fn end_standing(&mut self) {
        for ((kind, lane), standing) in std::mem::take(&mut self.standing) {
            let Some((at, words)) = standing else { continue };
            let place = (at.at_ns, self.journal, at.sequence, kind, lane);
            self.gathered.standing.insert(place, kept(&words));
            if self.gathered.standing.len() > EVENTS_KEPT {
                self.gathered.standing.pop_first();
            }
        }
    }

    fn lost_words(&self, lane: LaneId, reason: &str) -> String {
        format!("lane {lane} of process {} was lost: {reason}", self.journal)
    }

    fn breaker_words(&self, change: &BreakerChange) -> String {
        let state = match change.breaker.state {
            BreakerState::Closed => "closed",
            BreakerState::Open => "opened",
            BreakerState::HalfOpen => "is half open",
        };
        let reason = serde_json::json!(change.breaker.reason);
        let reason = reason.as_str().unwrap_or_default();
        format!("the breaker of lane {} of process {} {state}: {reason}", change.breaker.lane, self.journal)
    }

    fn headroom_words(&self, headroom: &Headroom) -> String {
        let Headroom { lane, weight_percent, temperature_c, limit_c } = headroom;
        format!(
            "lane {lane} of process {} counts with {weight_percent} % of its weight: its device is at {temperature_c} °C, its limit is {limit_c} °C",
            self.journal
        )
    }

    fn draining_words(&self) -> String {
        format!(
            "process {} was told to end: it reads no more ticks and finishes its accepted work",
            self.journal
        )
    }

    fn item(&mut self, item: &Item) {
        if let Some(ended_ns) = ended_ns(item) {
            self.life_ns.1 = self.life_ns.1.max(ended_ns);
            if self.window.from.is_some() {
                self.since_ns.get_or_insert(ended_ns);
            }
        }
        match item {
            Item::Life(life) => self.life(life),
            Item::Assigned(assigned) => self.life_ns.1 = self.life_ns.1.max(assigned.at.at_ns),
            Item::Pause(pause) => self.pause(pause),
            Item::Batch(batch) => self.batch(batch),
            Item::Stay(stay) => self.stay(stay),
            Item::Lane(change) => self.lane(change),
            Item::Breaker(change) => self.breaker(change),
            Item::Headroom(change) => {
                let words = self.headroom_words(&change.headroom);
                self.event(
                    (EventKind::Headroom, change.headroom.lane),
                    change.at.at_ns,
                    change.at.sequence,
                    words,
                );
            }
            Item::Draining(at) => {
                self.event((EventKind::Draining, NO_LANE), at.at_ns, at.sequence, self.draining_words());
            }
            Item::Wanted(wanted) => self.wanted(wanted),
            Item::Round(round) => self.round(round),
            Item::Slice(slice) => self.slice(slice),
            Item::Transaction(transaction) => self.transaction(transaction),
            Item::Hole(hole) => self.hole(hole),
            Item::Unassigned(_) | Item::Level(_) => {}
        }
    }

    fn life(&mut self, life: &Life) {
        self.end_wanted(self.life_ns.1);
        let is_further = life.journal == self.journal;
        if !is_further {
            self.end_standing();
            self.journal = life.journal;
            self.since_ns = time_of(self.window.from);
            self.gathered.totals.processes += 1;
        }
        self.gathered.moves.begin_life();
        self.gathered.totals.lives += 1;
        self.life_ns = (life.since.at_ns, life.since.at_ns);
        let is_within = match self.window.from {
            None => true,
            Some(Bound::Time(from_ns)) => life.since.at_ns >= from_ns,
            Some(Bound::Sequence(from)) => life.since.sequence >= from,
            Some(Bound::Offset(_)) => is_further,
        };
        let started = &life.started;
        let key = (life.since.at_ns, life.journal, life.since.sequence);
        if is_within {
            self.end_standing();
            let words = format!("process {} {:?} started", life.journal, started.node);
            let words = if life.began.is_some() {
                words
            } else {
                format!("{words} earlier: the journal is read from here")
            };
            self.event((EventKind::Life, NO_LANE), key.0, key.2, words);
        }
        // The states of the previous life ended with it.
        self.standing.clear();
        if self.gathered.software.len() < SOFTWARE_KEPT {
            self.gathered.software.insert(kept(&started.software));
        }
        for lane in &started.lanes {
            let seen = self.gathered.lanes.entry((life.journal, lane.lane)).or_default();
            (seen.device, seen.class) = (kept(&lane.device), kept(&lane.class));
        }
        let seen = LifeSeen {
            node: kept(&started.node),
            software: kept(&started.software),
            lanes: started.lanes.len(),
            placement: kept(&started.scheduler.placement_policy),
            has_begun: life.began.is_some(),
        };
        self.gathered.lives.insert(key, seen);
        if self.gathered.lives.len() > LIVES_KEPT {
            self.gathered.lives.pop_first();
        }
    }

    fn event(&mut self, (kind, lane): (EventKind, LaneId), at_ns: i64, sequence: i64, words: String) {
        self.gathered.slots.at(at_ns).events[kind as usize] += 1;
        self.gathered.events.insert((at_ns, self.journal, sequence, kind, lane), kept(&words));
        if self.gathered.events.len() > EVENTS_KEPT {
            self.gathered.events.pop_first();
        }
    }

    /// Adds an interval in which nothing was recorded. A process with nothing to do records nothing either, which is
    /// not an event.
    fn hole(&mut self, hole: &Hole) {
        let ms = hole.until.at_ns.saturating_sub(hole.from.at_ns) / 1_000_000;
        let why = match hole.cause {
            HoleCause::Silence => return,
            HoleCause::StoodStill => {
                "although something was due: it stood still (stopped by SIGSTOP, suspended with its machine, or without CPU time)"
            }
            HoleCause::Log => {
                "while the log had a transaction to commit: its write lock was held, its disk or broker was slow, or the process was stopped"
            }
        };
        let words = format!("process {} recorded nothing for {ms} ms, {why}", self.journal);
        self.event((EventKind::Hole, NO_LANE), hole.until.at_ns, hole.until.sequence, words);
    }

    /// Passes each slot its part of an interval.
    fn spread(&mut self, from_ns: i64, to_ns: i64, each: impl FnMut(&mut Slot, u64)) {
        let from_ns = self.since_ns.map_or(from_ns, |since_ns| from_ns.max(since_ns));
        self.gathered.slots.spread(from_ns, to_ns, each);
    }

    fn pause(&mut self, pause: &Paused) {
        self.gathered.totals.pauses += 1;
        self.gathered
            .reasons
            .add(ReasonKind::Pause, if pause.pause.is_some() { "HIGH_WATER" } else { "CHECKPOINT" });
        let (from, until) = (pause.from.at_ns, pause.until.map_or(self.life_ns.1, |until| until.at_ns));
        let partition = pause.partition;
        self.spread(from, until, |slot, ns| add(slot.paused.entry(partition).or_default(), ns));
        let from = self.since_ns.map_or(from, |since_ns| from.max(since_ns));
        let paused = self.gathered.paused.entry(partition).or_default();
        add(paused, u64::try_from(until.saturating_sub(from)).unwrap_or(0));
    }

    fn batch(&mut self, batch: &Batch) {
        let key = (self.journal, batch.dispatch.lane);
        let rows = batch.dispatch.rows.max(0).unsigned_abs();
        let totals = &mut self.gathered.totals;
        totals.batches += 1;
        self.gathered.reasons.add(ReasonKind::Batch, reasons::of_batch(batch.dispatch.reason));
        let lane = self.gathered.lanes.entry(key).or_default();
        lane.batches += 1;
        if let BatchEnd::Lost(_) = batch.end {
            // The rows of a lost batch wait or are read again, so they count with the later batch.
            totals.batches_lost += 1;
            return;
        }
        add(&mut totals.rows, rows);
        add(&mut lane.rows, rows);
        if let BatchEnd::Completed { at, service_ns, .. } = batch.end {
            self.work(key, at.at_ns, service_ns);
            let done = BatchWork { rows, ns: service_ns.max(0).unsigned_abs() };
            self.gathered.lanes.entry(key).or_default().done.add(done);
            self.gathered.slots.at(at.at_ns).lanes.entry(key).or_default().batches.add(done);
        }
        for part in &batch.parts {
            let of_part = part.rows.max(0).unsigned_abs();
            add(self.gathered.groups.entry((part.partition, part.group)).or_default(), of_part);
            let mut known = 0;
            for piece in &part.pieces {
                let rows = piece.rows.max(0).unsigned_abs();
                add(&mut known, rows);
                self.rows((part.partition, part.group), piece.arrival.at_ns, batch.at.at_ns, rows);
            }
            let group = (part.partition, part.group);
            self.rows(group, batch.at.at_ns, batch.at.at_ns, of_part.saturating_sub(known));
        }
    }

    /// Adds rows that arrived, and waited until they were dispatched.
    fn rows(&mut self, group: GroupKey, came_ns: i64, left_ns: i64, rows: u64) {
        if rows == 0 {
            return;
        }
        if self.since_ns.is_none_or(|since_ns| came_ns >= since_ns) {
            let is_shown = self.gathered.groups.len() <= GROUPS_SHOWN_MAX;
            let slot = self.gathered.slots.at(came_ns);
            add(&mut slot.rows, rows);
            if is_shown {
                add(slot.group_rows.entry(group).or_default(), rows);
            }
        }
        self.spread(came_ns, left_ns, |slot, ns| {
            slot.waiting_row_ns = slot.waiting_row_ns.saturating_add(u128::from(ns) * u128::from(rows))
        });
    }

    /// Adds the work of a lane on a batch or slice that was completed at `done_ns`.
    fn work(&mut self, key: LaneKey, done_ns: i64, service_ns: i64) {
        let service_ns = service_ns.max(0);
        add(&mut self.gathered.lanes.entry(key).or_default().busy_ns, service_ns.unsigned_abs());
        self.spread(done_ns.saturating_sub(service_ns), done_ns, |slot, ns| {
            add(&mut slot.lanes.entry(key).or_default().busy_ns, ns);
        });
    }

    fn stay(&mut self, stay: &Stay) {
        let (key, group) = ((self.journal, stay.lane), (stay.partition, stay.group));
        if let Some(one) = self.gathered.moves.add(self.journal, stay) {
            self.gathered.reasons.add(ReasonKind::Move, one.cause.word());
        }
        let (began_ns, last_ns) = self.life_ns;
        let from_ns = stay.placed.map_or(began_ns, |placed| placed.at_ns);
        let to_ns = stay.left.map_or(last_ns, |left| left.at_ns);
        self.gathered.groups.entry(group).or_default();
        let is_shown = self.gathered.groups.len() <= GROUPS_SHOWN_MAX;
        self.spread(from_ns, to_ns, |slot, ns| {
            slot.lanes.entry(key).or_default().group_ns += u128::from(ns);
            if is_shown {
                add(slot.groups.entry(group).or_default().entry(key).or_default(), ns);
            }
        });
    }

    fn lane(&mut self, change: &LaneChange) {
        let Some(reason) = &change.lost else { return };
        self.gathered.totals.lanes_lost += 1;
        self.gathered.lanes.entry((self.journal, change.lane)).or_default().lost += 1;
        let words = self.lost_words(change.lane, reason);
        self.event((EventKind::LaneLost, change.lane), change.at.at_ns, change.at.sequence, words);
    }

    fn breaker(&mut self, change: &BreakerChange) {
        self.gathered.totals.breakers += 1;
        let words = self.breaker_words(change);
        self.event((EventKind::Breaker, change.breaker.lane), change.at.at_ns, change.at.sequence, words);
    }

    fn wanted(&mut self, wanted: &Wanted) {
        let Wanted { at, lanes, scale } = wanted;
        match self.wanted {
            Some(_) => self.end_wanted(at.at_ns),
            None => self.gathered.totals.scaled += 1,
        }
        self.wanted = Some((at.at_ns, *lanes));
        let Some(scale) = scale else { return };
        self.gathered.totals.wishes += 1;
        let reason = serde_json::json!(scale.reason);
        let words = format!(
            "process {} wants {lanes} lanes instead of {}: {}; the load is {:.2} lanes, and {} lanes are in service",
            self.journal,
            scale.lanes_before,
            reason.as_str().unwrap_or_default(),
            scale.load_e6 as f64 / 1e6,
            scale.lanes_in_service
        );
        self.event((EventKind::Wanted, NO_LANE), at.at_ns, at.sequence, words);
    }

    /// Ends the interval of the current wanted number of lanes.
    fn end_wanted(&mut self, until_ns: i64) {
        let Some((since_ns, lanes)) = self.wanted.take() else { return };
        let lanes = u128::from(lanes.max(0).unsigned_abs());
        self.spread(since_ns, until_ns, |slot, ns| {
            slot.wanted_lane_ns = slot.wanted_lane_ns.saturating_add(u128::from(ns) * lanes);
        });
    }

    fn round(&mut self, round: &Round) {
        let totals = &mut self.gathered.totals.tasks;
        let (count, word) = match round.end.map(|(_, end)| end) {
            None => return,
            Some(RoundEnd::Finished) => (&mut totals.finished, None),
            Some(RoundEnd::Rejected) => (&mut totals.refused, Some(reasons::of_refusal(round.refused))),
            Some(RoundEnd::Expired) => (&mut totals.expired, Some("DEADLINE_PASSED")),
            Some(RoundEnd::Shed) => (&mut totals.shed, Some("STANDING_DELAY")),
            Some(RoundEnd::Dropped) => (&mut totals.dropped, Some("DROPPED")),
        };
        *count += 1;
        word.into_iter().for_each(|word| self.gathered.reasons.add(ReasonKind::Refusal, word));
    }

    fn slice(&mut self, slice: &Slice) {
        self.gathered.totals.tasks.slices += 1;
        self.gathered.reasons.add(ReasonKind::Slice, reasons::of_slice(slice.run.reason));
        if let Some((at, service_ns)) = slice.done {
            self.work((self.journal, slice.run.lane), at.at_ns, service_ns);
        }
    }

    fn transaction(&mut self, transaction: &Transaction) {
        let totals = &mut self.gathered.totals.transactions;
        let committed_ns = transaction.committed_ns();
        totals.committed += 1;
        totals.untimed += u64::from(committed_ns.is_none());
        let mut signals = 0;
        for part in transaction.partitions.iter().filter(|part| !part.may_be_void) {
            let account = &part.account;
            let count = |number: i64| number.max(0).unsigned_abs();
            add(&mut totals.records, count(account.next_offset.saturating_sub(account.first_offset)));
            add(&mut totals.late, count(account.late));
            add(&mut totals.dead_letters, count(account.dead_letters));
            add(&mut signals, count(account.signals));
        }
        add(&mut totals.signals, signals);
        if let Some(at_ns) = committed_ns.or(transaction.sealed_ns).filter(|_| signals > 0) {
            add(&mut self.gathered.slots.at(at_ns).signals, signals);
        }
        for attempt in transaction.attempts.iter().filter(|one| one.outcome == CommitOutcome::Aborted) {
            self.gathered.totals.transactions.aborted += 1;
            let words = format!(
                "process {}: an attempt to commit the transaction sealed with entry {} was aborted",
                self.journal, transaction.sealed_sequence
            );
            self.event((EventKind::Aborted, NO_LANE), attempt.ended_ns, transaction.sealed_sequence, words);
        }
    }
}

fn time_of(bound: Option<Bound>) -> Option<i64> {
    match bound {
        Some(Bound::Time(at_ns)) => Some(at_ns),
        _ => None,
    }
}

/// Returns the end of an item that ended within the window; `None` if the item is open, or may have ended before the
/// window.
fn ended_ns(item: &Item) -> Option<i64> {
    let moment = match item {
        Item::Life(_) | Item::Assigned(_) => None,
        Item::Unassigned(change) => Some(change.at),
        Item::Level(level) => Some(level.at),
        Item::Hole(hole) => Some(hole.until),
        Item::Pause(pause) => pause.until,
        Item::Batch(batch) => match batch.end {
            BatchEnd::Completed { at, .. } | BatchEnd::Lost(at) => Some(at),
            BatchEnd::Open => None,
        },
        Item::Stay(stay) => stay.left,
        Item::Lane(change) => Some(change.at),
        Item::Breaker(change) => Some(change.at),
        Item::Headroom(change) => Some(change.at),
        Item::Draining(at) => Some(*at),
        Item::Wanted(wanted) => wanted.scale.map(|_| wanted.at),
        Item::Round(round) => round.end.map(|(at, _)| at),
        Item::Slice(slice) => slice.done.map(|(at, _)| at),
        Item::Transaction(transaction) => {
            let known = transaction.attempts.last().map(|attempt| attempt.known_ns);
            return known.or(transaction.sealed_ns);
        }
    };
    moment.map(|at| at.at_ns)
}

/// Returns the beginning of a text of any length.
fn kept(text: &str) -> String {
    match text.char_indices().nth(TEXT_KEPT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
