//! One owned partition: its intake, what waits for lanes, what is in flight, and what waits for the next commit.

use std::collections::{BTreeMap, VecDeque};

use warptape_eventlog::{Record, TopicPartition};
use warptape_kernels::Rows;
use warptape_replay::{encode_dead_letter_of, encode_late_tick_of};
use warptape_schemas::journal::GroupArrival;
use warptape_schemas::tick::TickColumns;
use warptape_schemas::{DecodeError, Snapshot, TickDecoder, encode_snapshot};
use warptape_stages::{GroupInput, GroupOutput, GroupQueue, GroupStage, Late, PartitionIntake, SignalMerge};

use super::commit::{Aside, AsideTopic, Receipt, Sealed};
use super::lanes::GroupId;
use super::restore::Restored;
use super::snapshots::{PendingSnapshot, snapshot_records};

/// An owned partition.
pub(super) struct Partition {
    pub(super) source: TopicPartition,
    /// Rises with every restore: records read before it are stale.
    pub(super) generation: u64,
    intake: PartitionIntake,
    queues: Vec<GroupQueue>,
    groups: Vec<Group>,
    /// Next record to accept.
    pub(super) next_offset: i64,
    /// Up to where the source was read, which is further where the last offsets have no records.
    pub(super) read_to: i64,
    /// Next-to-read offset handed to a commit last: outputs of earlier records exist.
    pub(super) sealed_offset: i64,
    /// Records before this offset were counted in an earlier life.
    counted_offset: i64,
    signals: SignalMerge,
    /// Late ticks and dead letters, by source offset.
    asides: VecDeque<Aside>,
    asides_bytes: usize,
    /// When records were read: first offset of each fetch.
    reads: VecDeque<(i64, i64)>,
    snapshot: Option<PendingSnapshot>,
    /// Encoded snapshot records that wait for their offset to be complete.
    snapshots_ready: VecDeque<(i64, Vec<Snapshot>)>,
    snapshot_offset: i64,
    columns: TickColumns,
    late: Vec<Late>,
}

/// A group's way through the lanes.
struct Group {
    /// Stage state that no lane has yet.
    stage: Option<Box<GroupStage>>,
    epoch: i64,
    /// First source offset of each batch in flight.
    in_flight: VecDeque<i64>,
}

/// Ticks and asides of an accepted fetch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Accepted {
    /// Ticks of good records, late ones included.
    pub ticks: u64,
    /// Late ticks.
    pub late: u64,
    /// Records that became dead letters.
    pub dead: u64,
}

impl Partition {
    /// A partition whose state was just restored; `sealed_offset` is where outputs begin.
    pub(super) fn new(
        source: TopicPartition,
        generation: u64,
        restored: Restored,
        sealed_offset: i64,
        counted_offset: i64,
    ) -> Self {
        let groups = restored.stages.into_iter().map(|stage| Group {
            stage: Some(Box::new(stage)),
            epoch: 0,
            in_flight: VecDeque::new(),
        });
        let groups: Vec<Group> = groups.collect();
        Self {
            source,
            generation,
            intake: restored.intake,
            queues: groups.iter().map(|_| GroupQueue::default()).collect(),
            groups,
            next_offset: restored.offset,
            read_to: restored.offset,
            sealed_offset,
            counted_offset,
            signals: SignalMerge::default(),
            asides: VecDeque::new(),
            asides_bytes: 0,
            reads: VecDeque::new(),
            snapshot: None,
            snapshots_ready: VecDeque::new(),
            snapshot_offset: restored.offset,
            columns: TickColumns::default(),
            late: Vec::new(),
        }
    }

    /// Decodes records and deals their rows to the groups. Counts those that were not counted before.
    pub(super) fn accept(
        &mut self,
        records: &[Record],
        read_at_ns: i64,
        decoder: &mut TickDecoder,
    ) -> Accepted {
        let mut accepted = Accepted::default();
        if let Some(first) = records.first() {
            self.reads.push_back((first.offset, read_at_ns));
        }
        for record in records {
            self.columns.clear();
            match decoder.decode(&record.value, self.intake.symbols_mut(), &mut self.columns) {
                Ok(rows) => {
                    self.late.clear();
                    self.intake.accept(record.offset, &self.columns, 0, &mut self.queues, &mut self.late);
                    if record.offset >= self.counted_offset {
                        accepted.ticks += rows as u64;
                        accepted.late += self.late.len() as u64;
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
    pub(super) fn queue_lengths(&self, lengths: &mut Vec<usize>) {
        lengths.clear();
        lengths.extend(self.queues.iter().map(|queue| queue.rows.len()));
    }

    /// What was added to the queues since `lengths` were read.
    pub(super) fn arrivals(&self, lengths: &[usize]) -> Vec<GroupArrival> {
        let grown = self.queues.iter().zip(lengths).enumerate().filter_map(|(group, (queue, &before))| {
            let rows = queue.rows.len() - before;
            let bytes = (rows * Rows::BYTES_PER_ROW) as i64;
            (rows > 0).then_some(GroupArrival { group: group as i32, rows: rows as i64, bytes })
        });
        grown.collect()
    }

    /// The group goes to a lane under a new epoch; gives the state to be installed there.
    pub(super) fn place(&mut self, group: i32, epoch: i64) -> Box<GroupStage> {
        let group = &mut self.groups[group as usize];
        group.epoch = epoch;
        group.stage.take().expect("the scheduler places a group once per restore")
    }

    /// Takes rows off the head of a group's queue for a batch.
    pub(super) fn take(&mut self, group: i32, rows: i64) -> GroupInput {
        let input = self.queues[group as usize].take(rows as usize);
        let first = *input.rows.offset.first().expect("a take has rows");
        self.groups[group as usize].in_flight.push_back(first);
        input
    }

    /// The oldest batch of a group came back; one of an older epoch is ignored.
    pub(super) fn complete(&mut self, id: GroupId, epoch: i64, output: GroupOutput) {
        let group = &mut self.groups[id.group as usize];
        if group.epoch != epoch {
            return;
        }
        group.in_flight.pop_front().expect("a batch in flight comes back once");
        self.signals.push(output.signals);
        for (barrier, bytes) in output.snapshots {
            if let Some(pending) = &mut self.snapshot
                && pending.add(barrier, id.group, bytes)
            {
                let pending = self.snapshot.take().expect("it was there a line ago");
                self.snapshots_ready
                    .push_back((pending.offset, snapshot_records(self.source.partition, pending)));
            }
        }
    }

    /// All records before this offset are complete.
    pub(super) fn complete_before(&self) -> i64 {
        let first = |(group, queue): (&Group, &GroupQueue)| {
            group.in_flight.front().or_else(|| queue.rows.offset.first()).copied()
        };
        self.groups.iter().zip(&self.queues).filter_map(first).min().unwrap_or(self.next_offset)
    }

    /// Rows that wait on the host.
    pub(super) fn waiting_rows(&self) -> usize {
        self.queues.iter().map(|queue| queue.rows.len()).sum()
    }

    /// Symbols seen.
    pub(super) fn symbol_count(&self) -> usize {
        self.intake.symbol_count()
    }

    /// Whether all records before an offset were accepted.
    pub(super) fn is_read_to(&self, offset: i64) -> bool {
        self.next_offset.max(self.read_to) >= offset
    }

    /// Whether nothing waits and nothing is in flight.
    pub(super) fn is_drained(&self) -> bool {
        self.complete_before() == self.next_offset && self.snapshot.is_none()
    }

    /// Asks all groups for their state at the next record, unless that is under way. `records_min` is the distance
    /// from the last snapshot.
    pub(super) fn begin_snapshot(&mut self, records_min: i64) {
        if self.snapshot.is_some() || self.next_offset - self.snapshot_offset < records_min {
            return;
        }
        self.snapshot_offset = self.next_offset;
        let mut intake = Vec::new();
        self.intake.write(&mut intake);
        self.snapshot = Some(PendingSnapshot::new(self.next_offset, intake, self.groups.len()));
        self.intake.barrier(self.next_offset, self.next_offset, &mut self.queues);
    }

    /// Bytes of signals and asides that wait for a commit.
    pub(super) fn waiting_bytes(&self) -> usize {
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
    pub(super) fn seal(&mut self, assignment: u64, bytes_max: usize, receipt: &mut Receipt) -> Sealed {
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
        while self.asides.front().is_some_and(|aside| aside.offset < before) {
            let aside = self.asides.pop_front().expect("it was there a line ago");
            self.asides_bytes -= aside.bytes.len();
            sealed.asides.push(aside);
        }
        while self.snapshots_ready.front().is_some_and(|(offset, _)| *offset <= before) {
            let (_, records) = self.snapshots_ready.pop_front().expect("it was there a line ago");
            for record in records {
                let mut bytes = Vec::new();
                encode_snapshot(&record, &mut bytes);
                let key = format!("{}/{}/{}", record.partition, record.group, record.part);
                sealed.snapshots.push((key, bytes));
            }
        }
        self.sealed_offset = self.sealed_offset.max(before);
        sealed
    }
}
