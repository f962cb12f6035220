//! The history in a journal: its entries, assembled into items such as batches, stays and transactions.
//!
//! ```text
//!  Arrived ──► rows wait, by group ──► Dispatch ──► Completed ──► Sealed ──► CommitEnded
//!                                        └─ Batch ─────┘             └─ Transaction ─┘   with the arrivals and batches it is made of
//!  Place ──► Release ──► Released        Pause ──► Resume            TaskArrived ──► Finish     RunSlice ──► SliceDone
//!    └────── Stay ───────────┘             └─ Pause ─┘                 └─── Round ─────┘          └──── Slice ────┘
//! ```
//!
//! This module knows when each item begins and ends. It does not ask the scheduler or the stages: facts that no entry
//! contains stay unknown. It keeps only open items and unsealed rows; engines limit both, and constants here limit them
//! for any input.

mod holes;
mod items;
mod levels;
mod queues;
mod tasks;
mod window;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use warptape_scheduler::{PartitionPhase, Scheduler};
use warptape_schemas::journal::{
    Arrived, Checkpoint, CommitEnded, CommitOutcome, Completed, Decision, Dispatch, Input, JournalEntry,
    LaneId, LaneLost, PartitionAssigned, PartitionId, Pause, Place, Sealed, Started,
};

use self::holes::Due;
use self::queues::Partition;
use self::tasks::Tasks;

pub use self::items::{
    Arrival, Assigned, Attempt, Batch, BatchEnd, BreakerChange, HeadroomChange, Hole, HoleCause, Item,
    LaneChange, Level, LevelOf, Life, Part, Paused, Piece, Round, RoundEnd, SealedPart, Slice, Stay, StayEnd,
    Transaction, Trigger, Unassigned, Wanted,
};
pub(crate) use self::window::HistoryReader;
pub use self::window::{Ended, HistoryOptions, read_history};
pub use crate::moment::{Bound, Moment, Window};

/// Greatest number of batches in flight that are tracked per lane. Schedulers use a few.
const OPEN_BATCHES_MAX: usize = 1 << 16;

/// Takes the entries of one journal partition, in order, and returns the items that end with them.
pub struct History {
    journal: i32,
    life: Option<Arc<Life>>,
    lanes: BTreeMap<LaneId, Lane>,
    partitions: BTreeMap<PartitionId, Partition>,
    tasks: Tasks,
    transaction: Option<Transaction>,
    /// Sequence of the first entry of the next transaction.
    first_sequence: Option<i64>,
    /// The last entry.
    last: Option<Moment>,
    /// Actions of the life that are due next.
    due: Due,
    /// True once the life has an entry with the outcome of a transaction.
    has_outcomes: bool,
    /// Partitions with rows of a lost lane that are arriving again.
    returning: BTreeSet<PartitionId>,
    /// Partitions that may have had rows on the lost lane, because not all of its batches are known.
    may_return: BTreeSet<PartitionId>,
    /// Row counts that the current entry changes.
    changed: BTreeSet<LevelOf>,
    items: Vec<Item>,
}

/// The known state of a lane.
#[derive(Default)]
struct Lane {
    /// Batches that have not come back, in order of dispatch.
    open: VecDeque<Batch>,
    /// Numbers and row counts of the batches that were already in flight at the checkpoint at which the history begins.
    unknown: VecDeque<(i64, i64)>,
    /// Number of rows in all these batches.
    rows: i64,
    /// Time at which the last batch came back, ns since the epoch; `None` before that.
    done_ns: Option<i64>,
}

/// Returns the number of lanes that a process wants at its start: those that it has, within its limits. `None` without
/// autoscaling.
fn lanes_wanted(started: &Started) -> Option<i32> {
    let config = started.autoscale?;
    let lanes = i32::try_from(started.lanes.len()).unwrap_or(i32::MAX);
    Some(lanes.max(config.lanes_min).min(config.lanes_max))
}

impl History {
    /// Creates the history of a journal partition. Little is known before its first `Started` entry.
    pub fn new(journal: i32) -> Self {
        Self {
            journal,
            life: None,
            lanes: BTreeMap::new(),
            partitions: BTreeMap::new(),
            tasks: Tasks::default(),
            transaction: None,
            first_sequence: None,
            last: None,
            due: Due::default(),
            has_outcomes: false,
            returning: BTreeSet::new(),
            may_return: BTreeSet::new(),
            changed: BTreeSet::new(),
            items: Vec::new(),
        }
    }

    /// Creates the history from a checkpoint on. `scheduler` has the checkpoint's state.
    pub fn at_checkpoint(journal: i32, at: Moment, started: Started, scheduler: &Scheduler) -> Self {
        let mut history = Self::new(journal);
        for load in scheduler.lane_loads() {
            let unknown = scheduler.in_flight(load.lane).map(|one| (one.batch, one.rows)).collect();
            history.lanes.insert(load.lane, Lane { unknown, rows: load.in_flight_rows, ..Lane::default() });
            history.changed.insert(LevelOf::InFlight(load.lane));
        }
        let wanted = scheduler.wish().map(|wish| wish.lanes).or(lanes_wanted(&started));
        let life = Arc::new(Life { journal, began: None, since: at, started });
        history.items.push(Item::Life(life.clone()));
        history.items.extend(wanted.map(|lanes| Item::Wanted(Wanted { at, lanes, scale: None })));
        history.life = Some(life);
        let is_assigned = |phase| phase == PartitionPhase::Assigned;
        for load in scheduler.partition_loads().filter(|load| is_assigned(load.phase)) {
            let partition = history.partitions.entry(load.partition).or_default();
            let of_partition = scheduler.placements().filter(|one| one.partition == load.partition);
            let stays = of_partition.filter_map(|one| {
                Some(Stay {
                    placed: None,
                    place: None,
                    partition: one.partition,
                    group: one.group,
                    lane: one.lane?,
                    epoch: one.epoch,
                    release: None,
                    imbalance: None,
                    left: None,
                    end: StayEnd::Open,
                })
            });
            partition.seed(load.position, stays);
            let pause = Paused { from: at, pause: None, partition: load.partition, until: None };
            partition.pause = load.paused.then_some(pause);
            history.changed.insert(LevelOf::Waiting(load.partition));
        }
        for waiting in scheduler.waiting() {
            if let Some(partition) = history.partitions.get_mut(&waiting.partition) {
                partition.seed_rows(waiting.partition, waiting.group, waiting.arrived_ns, waiting.rows);
            }
        }
        history
    }

    /// Adds the beginnings of the pauses that the checkpoint contains.
    pub(crate) fn tell_pauses(&mut self, pauses: &BTreeMap<PartitionId, (Moment, Pause)>) {
        for (partition, (from, decision)) in pauses {
            let partition = self.partitions.get_mut(partition);
            if let Some(open) = partition.and_then(|partition| partition.pause.as_mut()) {
                (open.from, open.pause) = (*from, Some(decision.clone()));
            }
        }
    }

    /// Returns the process life of the last entry; `None` before it is known.
    pub fn life(&self) -> Option<&Arc<Life>> {
        self.life.as_ref()
    }

    /// Returns the items that ended since the last call.
    pub fn take_items(&mut self) -> Vec<Item> {
        std::mem::take(&mut self.items)
    }

    /// Adds the next entry.
    pub fn step(&mut self, entry: &JournalEntry) {
        let at = Moment { sequence: entry.sequence, at_ns: entry.at_ns };
        let is_awaited = !self.returning.is_empty() || !self.may_return.is_empty();
        if is_awaited && !matches!(entry.input, Input::Arrived(_)) {
            self.returning.clear();
            self.may_return.clear();
            self.partitions.values_mut().for_each(Partition::forget_returned);
        }
        self.tell_hole(at, &entry.input);
        let trigger = self.apply(at, &entry.input);
        for decision in &entry.decisions {
            self.decide(at, trigger, decision);
        }
        self.tell_levels(at);
        self.last = Some(at);
        self.due.step(entry.at_ns, &entry.input, &entry.decisions);
    }

    /// Adds a hole if nothing was recorded since the last entry for long enough.
    fn tell_hole(&mut self, at: Moment, input: &Input) {
        // A new life has no earlier entries.
        let Some(last) = self.last.filter(|_| !matches!(input, Input::Started(_))) else { return };
        let has_work = self.lanes.values().any(|lane| lane.rows > 0) || self.tasks.has_open_slices();
        // A transaction that only has journal entries has no seal; its outcome shows how long the log had it.
        let with_log_ns = match input {
            Input::CommitEnded(ended) => {
                ended.ended_ns.min(at.at_ns).saturating_sub(ended.sent_ns.max(last.at_ns))
            }
            _ => 0,
        };
        let is_explained = with_log_ns > at.at_ns.saturating_sub(last.at_ns) / 2;
        let is_committing = is_explained || self.has_outcomes && self.transaction.is_some();
        self.items.extend(self.due.hole(last, at, has_work, is_committing).map(Item::Hole));
    }

    /// Ends the history at the end of a window. Open items are returned as they are.
    pub fn finish(&mut self) {
        self.end_life();
    }

    /// Ends the history at the end of the journal or of the life. Entries after the last committed transaction form a
    /// transaction without ticks, for example those of a drained process.
    pub fn finish_journal(&mut self) {
        if let (None, true) = (&self.transaction, self.has_outcomes)
            && let (Some(first), Some(last)) = (self.first_sequence, self.last)
            && first <= last.sequence
        {
            self.transaction = Some(Transaction {
                first_sequence: Some(first),
                sealed_sequence: last.sequence,
                sealed_ns: None,
                last_ns: Some(last.at_ns),
                partitions: Vec::new(),
                attempts: Vec::new(),
            });
        }
        self.end_life();
    }

    /// Applies an input, and returns the cause of the step.
    fn apply(&mut self, at: Moment, input: &Input) -> Trigger {
        match input {
            Input::Started(started) => self.begin_life(at, started),
            Input::PartitionAssigned(assigned) => {
                self.assign(at, assigned);
                return Trigger::Placing;
            }
            Input::PartitionRevoked(revoked) => {
                self.clear(at, revoked.partition, StayEnd::Revoked);
                self.partitions.remove(&revoked.partition);
                let partition = revoked.partition;
                self.items.push(Item::Unassigned(Unassigned { at, partition, is_restored: false }));
                self.tasks.revoke(at, revoked.partition, &mut self.items);
                self.void(revoked.partition);
            }
            Input::Arrived(arrived) => {
                self.arrive(at, arrived);
                return Trigger::Arrived(arrived.partition);
            }
            Input::Completed(completed) => {
                self.complete(at, completed);
                return Trigger::Completed(completed.batch);
            }
            Input::LaneLost(lost) => {
                self.lose(at, lost);
                return Trigger::Placing;
            }
            Input::LaneReady(ready) => {
                self.items.push(Item::Lane(LaneChange { at, lane: ready.lane, lost: None }));
                return Trigger::Placing;
            }
            Input::Released(released) => {
                let partition = self.partitions.get_mut(&released.partition);
                let stay = partition.and_then(|partition| partition.leave(released.group));
                let ended = |stay| Item::Stay(Stay { left: Some(at), end: StayEnd::Released, ..stay });
                self.items.extend(stay.map(ended));
                return Trigger::Placing;
            }
            Input::Woke(_) => return Trigger::Woke,
            Input::Sealed(sealed) => self.seal(at, sealed),
            Input::CommitEnded(ended) => self.commit_ended(at, ended),
            Input::TaskArrived(arrived) => self.tasks.arrive(at, arrived, &mut self.items),
            Input::SliceDone(done) => self.tasks.slice_done(at, done, &mut self.items),
            Input::TaskDropped(dropped) => {
                self.tasks.end(at, dropped.task, RoundEnd::Dropped, &mut self.items);
            }
            // If a journal has lost its beginning, the checkpoint contains the start of the process.
            Input::Checkpoint(Checkpoint { started: Some(started), .. }) if self.life.is_none() => {
                self.go_on_with(at, None, started);
            }
            Input::Draining(_) => self.items.push(Item::Draining(at)),
            Input::Measured(_)
            | Input::Priced(_)
            | Input::Sampled(_)
            | Input::Control(_)
            | Input::Checkpoint(_)
            | Input::Trained(_)
            | Input::Positions(_) => {}
        }
        Trigger::Other
    }

    fn decide(&mut self, at: Moment, trigger: Trigger, decision: &Decision) {
        match decision {
            Decision::Place(place) => self.place(at, place),
            Decision::Dispatch(dispatch) => self.dispatch(at, trigger, dispatch),
            Decision::Pause(pause) => {
                let partition = self.partitions.entry(pause.partition).or_default();
                let paused =
                    Paused { from: at, pause: Some(pause.clone()), partition: pause.partition, until: None };
                partition.pause = Some(paused);
            }
            Decision::Resume(resume) => {
                let partition = self.partitions.get_mut(&resume.partition);
                let pause = partition.and_then(|partition| partition.pause.take());
                self.items.extend(pause.map(|pause| Item::Pause(Paused { until: Some(at), ..pause })));
            }
            Decision::Restore(restore) => {
                self.clear(at, restore.partition, StayEnd::Restored);
                self.partitions.remove(&restore.partition);
                let partition = restore.partition;
                self.items.push(Item::Unassigned(Unassigned { at, partition, is_restored: true }));
            }
            Decision::Release(release) => {
                let partition = self.partitions.get_mut(&release.partition);
                if let Some(stay) = partition.and_then(|partition| partition.stay_mut(release.group)) {
                    stay.release = Some((at, release.cause));
                    stay.imbalance = release.imbalance;
                }
            }
            Decision::Breaker(breaker) => {
                self.items.push(Item::Breaker(BreakerChange { at, breaker: *breaker }));
            }
            Decision::Headroom(headroom) => {
                self.items.push(Item::Headroom(HeadroomChange { at, headroom: *headroom }));
            }
            Decision::Scale(scale) => {
                let wanted = Wanted { at, lanes: scale.lanes, scale: Some(*scale) };
                self.items.push(Item::Wanted(wanted));
            }
            Decision::Reject(reject) => self.tasks.reject(at, reject, &mut self.items),
            Decision::RunSlice(run) => self.tasks.run_slice(at, run, &mut self.items),
            Decision::Expire(expire) => self.tasks.end(at, expire.task, RoundEnd::Expired, &mut self.items),
            Decision::Finish(finish) => self.tasks.end(at, finish.task, RoundEnd::Finished, &mut self.items),
            Decision::Shed(shed) => self.tasks.end(at, shed.task, RoundEnd::Shed, &mut self.items),
            // These decisions neither begin nor end an item.
            Decision::Fence(_)
            | Decision::WakeAt(_)
            | Decision::Admit(_)
            | Decision::Split(_)
            | Decision::Reserve(_)
            | Decision::Assign(_)
            | Decision::AskPrices(_)
            | Decision::Controlled(_)
            | Decision::Drift(_)
            | Decision::FellBack(_)
            | Decision::Shadow(_) => {}
        }
    }

    fn begin_life(&mut self, at: Moment, started: &Started) {
        self.finish_journal();
        self.go_on_with(at, Some(at), started);
    }

    fn go_on_with(&mut self, since: Moment, began: Option<Moment>, started: &Started) {
        let (journal, started) = (self.journal, started.clone());
        let life = Arc::new(Life { journal, began, since, started });
        self.items.push(Item::Life(life.clone()));
        // If the journal has lost its beginning, the earlier wanted number is unknown.
        let wanted = began.and(lanes_wanted(&life.started));
        self.items.extend(wanted.map(|lanes| Item::Wanted(Wanted { at: since, lanes, scale: None })));
        self.life = Some(life);
        self.first_sequence = Some(since.sequence);
        self.has_outcomes = false;
    }

    fn end_life(&mut self) {
        let mut partitions = std::mem::take(&mut self.partitions);
        for partition in partitions.values_mut() {
            let (stays, pause) = partition.clear(None, StayEnd::Open);
            self.items.extend(stays.into_iter().map(Item::Stay));
            self.items.extend(pause.map(Item::Pause));
        }
        for lane in std::mem::take(&mut self.lanes).into_values() {
            self.items.extend(lane.open.into_iter().map(|batch| Item::Batch(Arc::new(batch))));
        }
        self.tasks.finish(&mut self.items);
        self.end_transaction();
        self.returning.clear();
        self.may_return.clear();
        self.changed.clear();
    }

    fn assign(&mut self, at: Moment, assigned: &PartitionAssigned) {
        let PartitionAssigned { partition, committed_offset, snapshot_offset, .. } = *assigned;
        self.clear(at, partition, StayEnd::Restored);
        self.partitions.entry(partition).or_default().assign(committed_offset, snapshot_offset);
        self.items.push(Item::Assigned(Assigned { at, partition, committed_offset, snapshot_offset }));
    }

    fn clear(&mut self, at: Moment, partition: PartitionId, end: StayEnd) {
        self.changed.insert(LevelOf::Waiting(partition));
        let Some(partition) = self.partitions.get_mut(&partition) else { return };
        let (stays, pause) = partition.clear(Some(at), end);
        self.items.extend(stays.into_iter().map(Item::Stay));
        self.items.extend(pause.map(Item::Pause));
    }

    fn arrive(&mut self, at: Moment, arrived: &Arrived) {
        let arrival = Arrival {
            partition: arrived.partition,
            at_ns: at.at_ns,
            sequence: Some(at.sequence),
            offsets: None,
            groups: arrived.groups.iter().map(|group| (group.group, group.rows)).collect(),
        };
        let (id, next_offset) = (arrived.partition, arrived.next_offset);
        self.changed.insert(LevelOf::Waiting(id));
        let partition = self.partitions.entry(id).or_default();
        let may_return = self.may_return.remove(&id) && partition.is_at(next_offset);
        match self.returning.remove(&id) || may_return {
            true => partition.return_rows(&arrival, next_offset),
            false => partition.arrive(arrival, next_offset),
        }
    }

    fn place(&mut self, at: Moment, place: &Place) {
        let stay = Stay {
            placed: Some(at),
            place: Some(Arc::new(place.clone())),
            partition: place.partition,
            group: place.group,
            lane: place.lane,
            epoch: place.epoch,
            release: None,
            imbalance: None,
            left: None,
            end: StayEnd::Open,
        };
        let before = self.partitions.entry(place.partition).or_default().place(stay);
        self.items.extend(before.map(Item::Stay));
    }

    fn dispatch(&mut self, at: Moment, trigger: Trigger, dispatch: &Dispatch) {
        let mut parts = Vec::with_capacity(dispatch.takes.len());
        for take in &dispatch.takes {
            let partition = self.partitions.entry(take.partition).or_default();
            let pieces = partition.take(take.group, take.rows);
            self.changed.insert(LevelOf::Waiting(take.partition));
            let stay = partition.stay_mut(take.group).filter(|stay| stay.epoch == take.epoch);
            let placed = stay.and_then(|stay| stay.placed);
            let (partition, group, epoch, rows) = (take.partition, take.group, take.epoch, take.rows);
            parts.push(Part { partition, group, epoch, placed, rows, pieces });
        }
        let lane = self.lanes.entry(dispatch.lane).or_default();
        let behind =
            lane.open.back().map(|batch| batch.dispatch.batch).or(lane.unknown.back().map(|one| one.0));
        lane.rows = lane.rows.saturating_add(dispatch.rows);
        self.changed.insert(LevelOf::InFlight(dispatch.lane));
        let dispatch = dispatch.clone();
        lane.open.push_back(Batch { at, trigger, dispatch, parts, behind, end: BatchEnd::Open });
        if lane.open.len() > OPEN_BATCHES_MAX {
            let oldest = lane.open.pop_front();
            lane.rows = lane.rows.saturating_sub(oldest.as_ref().map_or(0, |batch| batch.dispatch.rows));
            self.items.extend(oldest.map(|batch| Item::Batch(Arc::new(batch))));
        }
    }

    fn complete(&mut self, at: Moment, completed: &Completed) {
        self.changed.insert(LevelOf::InFlight(completed.lane));
        let lane = self.lanes.entry(completed.lane).or_default();
        let lane_free_ns = lane.done_ns;
        let is_it = |batch: &Batch| batch.dispatch.batch == completed.batch;
        let Some(index) = lane.open.iter().position(is_it) else {
            // The batch was in flight when the history began, or when its lane was lost.
            if let Some((_, rows)) = lane.unknown.pop_front_if(|one| one.0 == completed.batch) {
                lane.rows = lane.rows.saturating_sub(rows);
                lane.done_ns = Some(at.at_ns);
            }
            return;
        };
        lane.done_ns = Some(at.at_ns);
        let unknown_rows = lane.unknown.drain(..).map(|(_, rows)| rows);
        let Some(batch) = lane.open.remove(index) else { return };
        lane.rows = unknown_rows.chain([batch.dispatch.rows]).fold(lane.rows, i64::saturating_sub);
        let end = BatchEnd::Completed { at, service_ns: completed.service_ns, lane_free_ns };
        let batch = Arc::new(Batch { end, ..batch });
        for (id, partition) in &mut self.partitions {
            // Parts dispatched before the partition was restored do not count.
            let mut parts = batch.parts.iter().filter(|part| part.partition == *id);
            let is_current =
                |part: &Part| partition.stay_mut(part.group).is_none_or(|stay| stay.epoch == part.epoch);
            if parts.any(is_current) {
                partition.complete(*id, &batch);
            }
        }
        self.items.push(Item::Batch(batch));
    }

    fn lose(&mut self, at: Moment, lost: &LaneLost) {
        self.items.push(Item::Lane(LaneChange { at, lane: lost.lane, lost: Some(lost.reason.clone()) }));
        self.changed.insert(LevelOf::InFlight(lost.lane));
        let Lane { open, unknown, .. } = self.lanes.remove(&lost.lane).unwrap_or_default();
        if lost.kept {
            for part in open.iter().rev().flat_map(|batch| &batch.parts) {
                let partition = self.partitions.get_mut(&part.partition);
                if partition.is_some_and(|partition| partition.put_back(lost.lane, part)) {
                    self.returning.insert(part.partition);
                    self.changed.insert(LevelOf::Waiting(part.partition));
                }
            }
            if !unknown.is_empty() {
                self.may_return = self.partitions.keys().copied().collect();
            }
        }
        let ended = |batch| Item::Batch(Arc::new(Batch { end: BatchEnd::Lost(at), ..batch }));
        self.items.extend(open.into_iter().map(ended));
        for partition in self.partitions.values_mut() {
            let stays = partition.leave_lane(lost.lane);
            let ended = |stay| Item::Stay(Stay { left: Some(at), end: StayEnd::LaneLost, ..stay });
            self.items.extend(stays.map(ended));
        }
        self.tasks.lose_lane(lost.lane, &mut self.items);
    }

    fn seal(&mut self, at: Moment, sealed: &Sealed) {
        self.end_transaction();
        let of = |account: &_| {
            let account: warptape_schemas::journal::SealedPartition = *account;
            self.partitions.entry(account.partition).or_default().seal(account)
        };
        let partitions = sealed.partitions.iter().map(of).collect();
        self.transaction = Some(Transaction {
            first_sequence: self.first_sequence.take(),
            sealed_sequence: at.sequence,
            sealed_ns: Some(at.at_ns),
            last_ns: Some(at.at_ns),
            partitions,
            attempts: Vec::new(),
        });
        self.first_sequence = Some(at.sequence + 1);
    }

    fn commit_ended(&mut self, at: Moment, ended: &CommitEnded) {
        self.has_outcomes = true;
        if self.transaction.as_ref().is_none_or(|open| open.sealed_sequence != ended.sealed) {
            self.end_transaction();
            let first_sequence = self.first_sequence.replace(ended.sealed + 1);
            self.transaction = Some(Transaction {
                first_sequence: first_sequence.filter(|first| *first <= ended.sealed),
                sealed_sequence: ended.sealed,
                sealed_ns: None,
                last_ns: None,
                partitions: Vec::new(),
                attempts: Vec::new(),
            });
        }
        let CommitEnded { sent_ns, ended_ns, outcome, looked_up, .. } = *ended;
        let attempt = Attempt { sent_ns, ended_ns, known_ns: at.at_ns, outcome, looked_up };
        let Some(open) = &mut self.transaction else { return };
        open.attempts.push(attempt);
        if outcome == CommitOutcome::Committed {
            if let [_] = open.attempts[..] {
                // The transaction was committed at the first attempt, so it excluded no partition.
                open.partitions.iter_mut().for_each(|part| part.may_be_void = false);
            }
            self.end_transaction();
        }
    }

    fn end_transaction(&mut self) {
        let ended = self.transaction.take();
        self.items.extend(ended.map(|transaction| Item::Transaction(Arc::new(transaction))));
    }

    /// Records that the process no longer has a partition: a transaction that is sent again excludes it.
    fn void(&mut self, partition: PartitionId) {
        let Some(open) = &mut self.transaction else { return };
        let of_partition = open.partitions.iter_mut().find(|part| part.account.partition == partition);
        if let Some(part) = of_partition {
            part.may_be_void = true;
        }
    }
}
