//! One owned partition: its intake, what waits for lanes, what is in flight, and what waits for the next commit.

use std::collections::{BTreeMap, VecDeque};

use warptape_events::journal::{AsOf, GroupArrival, LaneId, Place};
use warptape_events::tick::TickColumns;
use warptape_events::{DecodeError, DecodeTicks};
use warptape_kernels::Rows;
use warptape_record::{Record, TopicPartition};
use warptape_stages::{
    GroupInput, GroupOutput, GroupQueue, GroupStage, Late, PartitionIntake, RepeatedTrades, SignalMerge,
    SymbolMarket,
};

use crate::asides::{encode_dead_letter_of, encode_late_tick_of};
use crate::commit::{Aside, AsideTopic, Receipt, Sealed};
use crate::lanes::{GroupId, GroupState, Kept};
use crate::restore::Restored;
use crate::snapshots::{PendingSnapshot, ReadySnapshot, SnapshotPlace};
use crate::tick_digest::tick_record_digest;

/// An owned partition.
pub(crate) struct Partition {
    pub(crate) source: TopicPartition,
    /// Rises with every restore: records read before it are stale.
    pub(crate) generation: u64,
    intake: PartitionIntake,
    queues: Vec<GroupQueue>,
    groups: Vec<Group>,
    /// Bytes of rows that are kept for groups on devices.
    kept_bytes: usize,
    /// Next record to accept.
    pub(crate) next_offset: i64,
    /// Up to where the source was read, which is further where the last offsets have no records.
    pub(crate) read_to: i64,
    /// Next-to-read offset handed to a commit last: outputs of earlier records exist.
    pub(crate) sealed_offset: i64,
    /// Records before this offset were counted in an earlier life.
    counted_offset: i64,
    signals: SignalMerge,
    /// Late ticks and dead letters, by source offset.
    asides: VecDeque<Aside>,
    asides_bytes: usize,
    /// Offsets and digests of the records that wait to be sealed.
    digests: VecDeque<(i64, u64)>,
    /// When records were read: first offset of each fetch.
    reads: VecDeque<(i64, i64)>,
    snapshot: Option<PendingSnapshot>,
    /// Snapshots that wait for their offset to be complete, and what is left of one that goes out in several transactions.
    snapshots_ready: VecDeque<ReadySnapshot>,
    snapshot_offset: i64,
    /// Under which keys the last snapshot stands that is complete, or will be.
    snapshot_place: SnapshotPlace,
    /// Whether the record of the segment that the partition is in has to be sealed still.
    pub(crate) segment_due: bool,
    columns: TickColumns,
    late: Vec<Late>,
}

/// What a batch takes besides its rows, about.
const KEPT_BATCH_BYTES: usize = 512;

/// A group's way through the lanes.
struct Group {
    /// State that no lane has yet.
    state: Option<GroupState>,
    epoch: i64,
    lane: Option<LaneId>,
    in_flight: VecDeque<InFlight>,
    /// What the group's state on a device can be made from again; nothing where that would be too much.
    kept: Option<Kept>,
}

/// Rows of a group in a batch in flight.
struct InFlight {
    /// Source offset of the first one.
    first: i64,
    /// The rows, if they are on a device, which may lose them.
    input: Option<GroupInput>,
}

/// Ticks and asides of an accepted fetch.
#[derive(Clone, Debug, Default)]
pub struct Accepted {
    /// Ticks of good records, late ones included.
    pub ticks: u64,
    /// Late ticks.
    pub late: u64,
    /// Records that became dead letters.
    pub dead: u64,
    /// Trades whose id their symbol had before, late ones included.
    pub repeated: RepeatedTrades,
}

impl Partition {
    /// A partition whose state was just restored; `sealed_offset` is where outputs begin.
    pub(crate) fn new(
        source: TopicPartition,
        generation: u64,
        restored: Restored,
        sealed_offset: i64,
        counted_offset: i64,
    ) -> Self {
        let groups = restored.stages.into_iter().map(|stage| Group {
            state: Some(GroupState::Stage(Box::new(stage))),
            epoch: 0,
            lane: None,
            in_flight: VecDeque::new(),
            kept: None,
        });
        let groups: Vec<Group> = groups.collect();
        Self {
            source,
            generation,
            intake: restored.intake,
            queues: groups.iter().map(|_| GroupQueue::default()).collect(),
            groups,
            kept_bytes: 0,
            next_offset: restored.offset,
            read_to: restored.offset,
            sealed_offset,
            counted_offset,
            signals: SignalMerge::default(),
            asides: VecDeque::new(),
            asides_bytes: 0,
            digests: VecDeque::new(),
            reads: VecDeque::new(),
            snapshot: None,
            snapshots_ready: VecDeque::new(),
            snapshot_offset: restored.offset,
            snapshot_place: restored.place,
            segment_due: false,
            columns: TickColumns::default(),
            late: Vec::new(),
        }
    }

    /// Decodes records and deals their rows to the groups. Counts those that were not counted before.
    pub(crate) fn accept(
        &mut self,
        records: &[Record],
        read_at_ns: i64,
        decoder: &mut dyn DecodeTicks,
    ) -> Accepted {
        let mut accepted = Accepted::default();
        if let Some(first) = records.first() {
            self.reads.push_back((first.offset, read_at_ns));
        }
        for record in records {
            if record.offset >= self.sealed_offset {
                self.digests.push_back((record.offset, tick_record_digest(record)));
            }
            self.columns.clear();
            self.late.clear();
            let decoded = decoder.decode(&record.value, self.intake.symbols_mut(), &mut self.columns);
            let dealt = decoded.and_then(|rows| {
                let (offset, written_ns) = (record.offset, record.timestamp_ns);
                let (columns, queues, late) = (&mut self.columns, &mut self.queues, &mut self.late);
                self.intake.accept(offset, written_ns, columns, 0, queues, late)?;
                Ok(rows)
            });
            match dealt {
                Ok(rows) => {
                    if record.offset >= self.counted_offset {
                        accepted.ticks += rows as u64;
                        accepted.late += self.late.len() as u64;
                        let (counts, partition) = (self.intake.trade_ids(), self.source.partition);
                        let symbols = self.intake.symbols_mut();
                        let name = |number| symbols.name(number);
                        accepted.repeated.add_record(counts, partition, record.offset, name);
                    }
                    self.keep_late(record.offset);
                }
                Err(error) => {
                    accepted.dead += u64::from(record.offset >= self.counted_offset);
                    self.keep_dead(record, &error);
                }
            }
            self.next_offset = record.offset + 1;
        }
        accepted
    }

    fn keep_late(&mut self, offset: i64) {
        if offset < self.sealed_offset {
            return;
        }
        for late in std::mem::take(&mut self.late) {
            let mut bytes = Vec::new();
            let symbols = self.intake.symbols_mut();
            encode_late_tick_of(&self.source, offset, late, &self.columns, symbols, &mut bytes);
            self.push_aside(Aside { offset, topic: AsideTopic::Late, bytes });
        }
    }

    fn keep_dead(&mut self, record: &Record, error: &DecodeError) {
        if record.offset < self.sealed_offset {
            return;
        }
        let mut bytes = Vec::new();
        encode_dead_letter_of(&self.source, record, error, &mut bytes);
        self.push_aside(Aside { offset: record.offset, topic: AsideTopic::DeadLetter, bytes });
    }

    fn push_aside(&mut self, aside: Aside) {
        self.asides_bytes += aside.bytes.len();
        self.asides.push_back(aside);
    }

    /// Rows in each group's queue, to be compared with [`Partition::arrivals`].
    pub(crate) fn queue_lengths(&self, lengths: &mut Vec<usize>) {
        lengths.clear();
        lengths.extend(self.queues.iter().map(|queue| queue.rows.len()));
    }

    /// What was added to the queues since `lengths` were read.
    pub(crate) fn arrivals(&self, lengths: &[usize]) -> Vec<GroupArrival> {
        let grown = self.queues.iter().zip(lengths).enumerate().filter_map(|(group, (queue, &before))| {
            let rows = queue.rows.len() - before;
            let bytes = (rows * Rows::BYTES_PER_ROW) as i64;
            (rows > 0).then_some(GroupArrival { group: group as i32, rows: rows as i64, bytes })
        });
        grown.collect()
    }

    /// The group goes to a lane under a new epoch; gives the state to be installed there.
    pub(crate) fn place(&mut self, place: &Place, on_device: bool) -> GroupState {
        let group = &mut self.groups[place.group as usize];
        group.epoch = place.epoch;
        group.lane = Some(place.lane);
        let state = group.state.take().expect("the scheduler places a group that no lane has");
        group.kept = on_device.then(|| state.to_kept());
        self.kept_bytes += group.kept_bytes();
        state
    }

    /// Takes rows off the head of a group's queue for a batch.
    pub(crate) fn take(&mut self, group: i32, rows: i64, on_device: bool) -> GroupInput {
        let input = self.queues[group as usize].take(rows as usize);
        let first = *input.rows.offset.first().expect("a take has rows");
        let kept = on_device.then(|| input.clone());
        self.groups[group as usize].in_flight.push_back(InFlight { first, input: kept });
        input
    }

    /// The oldest batch of a group came back; one of an older epoch is ignored.
    pub(crate) fn complete(&mut self, id: GroupId, epoch: i64, output: GroupOutput, kept_bytes_max: usize) {
        let group = &mut self.groups[id.group as usize];
        if group.epoch != epoch {
            return;
        }
        let InFlight { input, .. } = group.in_flight.pop_front().expect("a batch in flight comes back once");
        if let Some(input) = input {
            let lane = group.lane;
            self.kept_bytes -= group.kept_bytes();
            group.keep(input, output.snapshots.last());
            self.kept_bytes += group.kept_bytes();
            if self.kept_bytes > kept_bytes_max {
                // Without one of them, the others of the lane are of no use.
                for group in self.groups.iter_mut().filter(|group| group.lane == lane) {
                    self.kept_bytes -= group.kept_bytes();
                    group.kept = None;
                }
            }
        }
        self.signals.push(output.signals);
        for (barrier, bytes) in output.snapshots {
            if let Some(pending) = &mut self.snapshot
                && pending.add(barrier, id.group, bytes)
            {
                let pending = self.snapshot.take().expect("it was there a line ago");
                self.snapshots_ready.push_back(ReadySnapshot::new(self.source.partition, pending));
            }
        }
    }

    /// A lane gives a group back, with everything done that it had of it; whether it was its to give.
    pub(crate) fn release(&mut self, group: i32, lane: LaneId, epoch: i64, stage: Box<GroupStage>) -> bool {
        let group = &mut self.groups[group as usize];
        if group.lane != Some(lane) || group.epoch != epoch {
            return false;
        }
        debug_assert!(group.in_flight.is_empty(), "a lane gives its batches back in order, and first");
        group.lane = None;
        group.state = Some(GroupState::Stage(stage));
        self.kept_bytes -= group.kept_bytes();
        group.kept = None;
        true
    }

    /// Whether the state of all groups of a lane can be made again.
    pub(crate) fn keeps_groups_of(&self, lane: LaneId) -> bool {
        self.groups.iter().all(|group| group.lane != Some(lane) || group.kept.is_some())
    }

    /// Takes the groups of a lost lane back, all of which were kept; what was in flight waits again, and is given.
    pub(crate) fn take_back(&mut self, lane: LaneId) -> Vec<GroupArrival> {
        let mut again = Vec::new();
        for (number, group) in self.groups.iter_mut().enumerate() {
            if group.lane != Some(lane) {
                continue;
            }
            group.lane = None;
            self.kept_bytes -= group.kept_bytes();
            group.state = group.kept.take().map(GroupState::Kept);
            let inputs: Vec<GroupInput> =
                group.in_flight.drain(..).filter_map(|in_flight| in_flight.input).collect();
            let rows: usize = inputs.iter().map(|input| input.rows.len()).sum();
            self.queues[number].put_back(inputs);
            if rows > 0 {
                let bytes = (rows * Rows::BYTES_PER_ROW) as i64;
                again.push(GroupArrival { group: number as i32, rows: rows as i64, bytes });
            }
        }
        again
    }

    /// All records before this offset are complete.
    pub(crate) fn complete_before(&self) -> i64 {
        let first = |(group, queue): (&Group, &GroupQueue)| {
            let in_flight = group.in_flight.front().map(|in_flight| in_flight.first);
            in_flight.or_else(|| queue.rows.offset.first().copied())
        };
        self.groups.iter().zip(&self.queues).filter_map(first).min().unwrap_or(self.next_offset)
    }

    /// Rows that wait on the host.
    pub(crate) fn waiting_rows(&self) -> usize {
        self.queues.iter().map(|queue| queue.rows.len()).sum()
    }

    /// How far its market has come.
    pub(crate) fn as_of(&self) -> AsOf {
        AsOf { partition: self.source.partition, next_offset: self.next_offset }
    }

    /// What is known of a symbol as far as records were accepted.
    pub(crate) fn market_of(&self, symbol: &str) -> Option<SymbolMarket> {
        self.intake.market_of(symbol, self.source.partition, self.next_offset)
    }

    /// Symbols seen.
    pub(crate) fn symbol_count(&self) -> usize {
        self.intake.symbol_count()
    }

    /// Whether all records before an offset were accepted.
    pub(crate) fn is_read_to(&self, offset: i64) -> bool {
        self.next_offset.max(self.read_to) >= offset
    }

    /// Whether records are still to be accepted again that were accepted before the state was lost, reading ending at an offset.
    pub(crate) fn is_behind(&self, end: i64) -> bool {
        !self.is_read_to(self.counted_offset.min(end))
    }

    /// Records before this offset were accepted, if not by this state then by one that was lost.
    pub(crate) fn reached_offset(&self) -> i64 {
        self.next_offset.max(self.counted_offset)
    }

    /// Whether nothing waits and nothing is in flight.
    pub(crate) fn is_drained(&self) -> bool {
        self.complete_before() == self.next_offset && self.snapshot.is_none()
    }

    /// Whether there is something to be sealed.
    pub(crate) fn has_unsealed(&self) -> bool {
        self.complete_before() > self.sealed_offset || self.has_unsealed_snapshot(self.sealed_offset)
    }

    /// Whether some of a snapshot may go out with what is complete before an offset.
    fn has_unsealed_snapshot(&self, before: i64) -> bool {
        self.snapshots_ready.front().is_some_and(|ready| ready.offset <= before)
    }

    /// Asks all groups for their state at the next record, unless that is under way, or waits to be committed. `records_min` is the distance
    /// from the last snapshot.
    pub(crate) fn begin_snapshot(&mut self, records_min: i64) {
        let is_under_way = self.snapshot.is_some() || !self.snapshots_ready.is_empty();
        if is_under_way || self.next_offset - self.snapshot_offset < records_min {
            return;
        }
        self.snapshot_offset = self.next_offset;
        let mut intake = Vec::new();
        self.intake.write(&mut intake);
        self.snapshot = Some(PendingSnapshot::new(self.next_offset, intake, self.groups.len()));
        self.intake.barrier(self.next_offset, self.next_offset, &mut self.queues);
    }

    /// Bytes of signals and asides that wait for a commit.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.signals.bytes() + self.asides_bytes
    }

    /// Where to cut, so that about `bytes_max` are sealed: a record is sealed whole, and at least one.
    fn seal_before(&self, bytes_max: usize) -> i64 {
        let complete = self.complete_before();
        if self.waiting_bytes() <= bytes_max {
            return complete;
        }
        let mut sizes = BTreeMap::new();
        self.signals.bytes_by_offset(&mut sizes);
        for aside in &self.asides {
            *sizes.entry(aside.offset).or_default() += aside.bytes.len();
        }
        let mut bytes = 0;
        for (offset, size) in sizes {
            if bytes > 0 && bytes + size > bytes_max {
                return complete.min(offset);
            }
            bytes += size;
        }
        complete
    }

    /// Takes what complete records caused, up to about `bytes_max`, seals it, and counts it in the receipt.
    pub(crate) fn seal(&mut self, assignment: u64, bytes_max: usize, receipt: &mut Receipt) -> Sealed {
        let before = self.seal_before(bytes_max);
        let mut signals = self.signals.take_before(before);
        // Replayed from a snapshot, and committed in an earlier life.
        signals.skip_before(self.sealed_offset);
        for key in signals.keys() {
            while self.reads.get(1).is_some_and(|&(first, _)| first <= key.offset) {
                self.reads.pop_front();
            }
            receipt.count_signal(self.reads.front().map_or(0, |&(_, read_at_ns)| read_at_ns));
        }
        while self.reads.get(1).is_some_and(|&(first, _)| first < before) {
            self.reads.pop_front();
        }
        let partition = self.source.partition;
        let mut sealed = Sealed { partition, assignment, signals, ..Sealed::default() };
        while let Some((_, digest)) = self.digests.pop_front_if(|(offset, _)| *offset < before) {
            sealed.ticks_digest = sealed.ticks_digest.wrapping_add(digest);
        }
        while self.asides.front().is_some_and(|aside| aside.offset < before) {
            let aside = self.asides.pop_front().expect("it was there a line ago");
            self.asides_bytes -= aside.bytes.len();
            sealed.asides.push(aside);
        }
        self.seal_snapshots(before, bytes_max, &mut sealed);
        self.sealed_offset = self.sealed_offset.max(before);
        sealed
    }

    /// Takes snapshots, up to about `bytes_max`. One that is larger goes out in several transactions, at least a record in each. Until
    /// all of it is there, the snapshot before stands beside it, under other keys.
    fn seal_snapshots(&mut self, before: i64, bytes_max: usize, sealed: &mut Sealed) {
        let mut bytes_sealed = 0;
        while let Some(ready) = self.snapshots_ready.front_mut().filter(|ready| ready.offset <= before) {
            let is_whole = ready.place.is_none() && ready.bytes <= bytes_max.saturating_sub(bytes_sealed);
            let place = *ready.place.get_or_insert(match is_whole {
                true => SnapshotPlace::default(),
                false => self.snapshot_place.other(),
            });
            self.snapshot_place = place;
            while (is_whole || bytes_sealed == 0 || bytes_sealed < bytes_max)
                && let Some(record) = ready.records.pop_front()
            {
                bytes_sealed += sealed.add_snapshot(place, &record);
            }
            if !ready.records.is_empty() {
                return;
            }
            self.snapshots_ready.pop_front();
        }
    }
}

impl Group {
    /// Keeps rows that were processed, with the state at the last barrier among them.
    fn keep(&mut self, input: GroupInput, snapshot: Option<&(i64, Vec<u8>)>) {
        let input = match snapshot {
            Some((barrier, state)) => {
                self.kept = Some(Kept { state: state.clone(), ..Kept::default() });
                input.behind(*barrier)
            }
            None => input,
        };
        if let Some(kept) = &mut self.kept {
            kept.bytes += KEPT_BATCH_BYTES + input.rows.len() * Rows::BYTES_PER_ROW;
            kept.tail.push(input);
        }
    }

    fn kept_bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| kept.bytes)
    }
}

#[cfg(test)]
mod tests {
    use warptape_kernels::Isa;

    use super::*;

    fn partition() -> Partition {
        let config = r#"{"bars": ["1s"], "allowed_lateness_ns": 0, "groups_per_partition": 2, "indicators": {}, "signals": {}}"#;
        let config = warptape_stages::StageConfig::from_json(config).expect("a configuration");
        let source = TopicPartition { topic: "ticks".to_owned(), partition: 0 };
        Partition::new(source, 0, Restored::beginning(&config, Isa::Baseline), 0, 0)
    }

    /// A state that all groups wrote.
    fn written(partition: &mut Partition) {
        let mut pending = partition.snapshot.take().expect("one is under way");
        let offset = partition.snapshot_offset;
        assert!(!pending.add(offset, 0, vec![0; 100]) && pending.add(offset, 1, vec![0; 100]));
        partition.snapshots_ready.push_back(ReadySnapshot::new(0, pending));
    }

    #[test]
    fn no_snapshot_is_begun_while_one_waits_for_its_commits() {
        let mut partition = partition();
        partition.next_offset = 10;
        partition.begin_snapshot(10);
        assert!(partition.snapshot.is_some(), "far enough from the last");
        partition.next_offset = 20;
        partition.begin_snapshot(10);
        assert_eq!(partition.snapshot_offset, 10, "one is under way");
        written(&mut partition);
        partition.begin_snapshot(10);
        assert!(partition.snapshot.is_none(), "one waits, and each more would take memory");
        // A record of it in each commit.
        let mut commits = 0;
        while !partition.snapshots_ready.is_empty() {
            partition.seal_snapshots(20, 1, &mut Sealed::default());
            commits += 1;
        }
        assert_eq!(commits, 3, "the intake's state and that of two groups");
        partition.begin_snapshot(10);
        assert_eq!((partition.snapshot.is_some(), partition.snapshot_offset), (true, 20));
    }
}
