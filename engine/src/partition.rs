//! One owned partition: its read position, its intake, its groups on lanes, and the outputs that wait for the next
//! commit.

mod groups;
mod outputs;
mod pages;
mod states;

use std::collections::BTreeMap;
use std::ops::Range;

use warptape_events::journal::{AsOf, GroupArrival, LaneId, Place};
use warptape_events::tick::TickColumns;
use warptape_events::{DecodeError, DecodeTicks};
use warptape_record::{Record, TopicPartition};
use warptape_stages::{
    Acceptance, GroupInput, GroupOutput, GroupStage, Late, PartitionIntake, RepeatedTrades, StageError,
    SymbolMarket,
};

use crate::commit::{Receipt, RecordTimes, Sealed, SideOutput, SideTopic};
use crate::lanes::{GroupId, GroupState};
use crate::read_ticks::{ReadNumbers, ReadTicks};
use crate::restore::Restored;
use crate::side_outputs::{encode_dead_letter_of, encode_late_tick_of, encode_row_letters, tick_record};
use crate::tick_digest::tick_record_digest;

use self::groups::Groups;
use self::outputs::Outputs;
pub(crate) use self::pages::Need;
use self::pages::Pages;
pub use self::pages::{PageId, ReadPage};
pub(crate) use self::states::Placed;
use self::states::States;

/// An owned partition.
pub(crate) struct Partition {
    pub(crate) source: TopicPartition,
    /// Rises with every restore; records read before the last restore are stale.
    pub(crate) generation: u64,
    intake: PartitionIntake,
    groups: Groups,
    outputs: Outputs,
    snapshots: States,
    pages: Pages,
    /// Offset of the next record to accept.
    pub(crate) next_offset: i64,
    /// The offset up to which the log was read. It exceeds `next_offset` if the last offsets have no records.
    pub(crate) read_to: i64,
    /// Next-to-read offset of the last seal: outputs of earlier records exist, or are in a commit.
    pub(crate) sealed_offset: i64,
    /// Offset before which all records were counted in an earlier life.
    counted_offset: i64,
    /// True if the next commit must contain the record of the partition's present segment.
    pub(crate) segment_due: bool,
    /// Number of symbols that were compared with those of other partitions, in the order of their numbers.
    compared_symbols: usize,
    /// True if the next commit must write the group's offset, though nothing was processed.
    pub(crate) offset_due: bool,
    /// Time bars that were open at a group's last barrier, by group.
    open_bars: BTreeMap<i32, u64>,
    /// Time at which a record was last accepted.
    accepted_at_ns: i64,
    /// The event time that this process last wrote among the ticks; `i64::MIN` before the first.
    said_ns: i64,
    /// Ticks of the current record, and below its late ticks; kept between records to reuse their memory.
    columns: TickColumns,
    late: Vec<Late>,
    numbers: ReadNumbers,
}

/// Counts of ticks and side outputs in an accepted fetch.
#[derive(Clone, Debug, Default)]
pub struct Accepted {
    /// Good ticks, late ones included.
    pub ticks: u64,
    /// Late ticks.
    pub late: u64,
    /// Dead letters.
    pub dead: u64,
    /// Rejected rows, and records that were rejected as a whole.
    pub dead_rows: u64,
    /// Trades whose id their symbol had before, late ones included.
    pub repeated: RepeatedTrades,
}

/// The offsets that a partition had reached when its state was lost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reached {
    /// Offset before which all records were accepted.
    pub(crate) offset: i64,
    /// Its last snapshot that went into commits in full; `None` if there is none.
    pub(crate) gone_out: Option<Placed>,
}

impl Partition {
    /// A partition with a restored state. Its outputs begin at `sealed_offset`.
    pub(crate) fn new(
        source: TopicPartition,
        generation: u64,
        restored: Restored,
        sealed_offset: i64,
        counted_offset: i64,
        gone_out: Option<Placed>,
    ) -> Self {
        let from = Placed { offset: restored.offset, place: restored.place };
        Self {
            source,
            generation,
            intake: restored.intake,
            groups: Groups::new(restored.stages),
            outputs: Outputs::default(),
            snapshots: States::new(from, gone_out),
            pages: Pages::default(),
            next_offset: restored.offset,
            read_to: restored.offset,
            sealed_offset,
            counted_offset,
            segment_due: false,
            compared_symbols: 0,
            offset_due: false,
            open_bars: BTreeMap::new(),
            accepted_at_ns: i64::MAX,
            said_ns: i64::MIN,
            columns: TickColumns::default(),
            late: Vec::new(),
            numbers: ReadNumbers::default(),
        }
    }

    /// Adds the rows of records to the groups, up to the first record that waits for pages. Decodes records whose rows
    /// are not among `ticks`. Counts the records that were not counted before.
    pub(crate) fn accept(
        &mut self,
        records: &[Record],
        mut ticks: Option<ReadTicks>,
        read_at_ns: i64,
        decoder: &mut dyn DecodeTicks,
    ) -> Accepted {
        let mut accepted = Accepted::default();
        self.accepted_at_ns = read_at_ns;
        if let Some(ticks) = &mut ticks {
            self.numbers.begin(ticks);
        }
        for (index, record) in records.iter().enumerate() {
            let (columns, queues, late) = (&mut self.columns, &mut self.groups.queues, &mut self.late);
            let intake = &mut self.intake;
            let before_ns = intake.event_time_max_ns();
            let read = ticks.as_mut().and_then(|ticks| self.numbers.take(ticks, index, intake.symbols()));
            let accepted_rows = tick_record(record).and_then(|record| match read {
                Some(read) => {
                    *columns = read;
                    Ok(intake.accept_decoded(record, columns, queues, late))
                }
                None => intake.accept_record(record, decoder, columns, queues, late),
            });
            if self.intake.event_time_max_ns() < before_ns {
                // Event time has fallen, so event times written earlier no longer hold.
                self.said_ns = i64::MIN;
            }
            if let Ok(Acceptance::Waits(pages)) = accepted_rows {
                self.pages.want(pages);
                break;
            }
            let times = RecordTimes { written_ns: record.timestamp_ns.max(0), read_at_ns };
            self.outputs.push_times(record.offset, times);
            if record.offset >= self.sealed_offset {
                let digest = ticks.as_ref().map(|ticks| ticks.digest(index));
                self.outputs.push_digest(record.offset, digest.unwrap_or_else(|| tick_record_digest(record)));
            }
            match accepted_rows {
                Ok(Acceptance::Waits(_)) => unreachable!("it was left a few lines ago"),
                Ok(Acceptance::Taken(rows)) => {
                    let letters = self.keep_dead_rows(record, rows, decoder);
                    if record.offset >= self.counted_offset {
                        accepted.dead += letters as u64;
                        accepted.dead_rows += self.columns.rejected.len() as u64;
                        accepted.ticks += (rows - self.columns.rejected.len()) as u64;
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
                    accepted.dead_rows += u64::from(record.offset >= self.counted_offset);
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
            self.outputs.push_aside(SideOutput { offset, topic: SideTopic::Late, bytes });
        }
    }

    /// Adds dead letters for the rejected rows of a record. Returns the number of rows.
    fn keep_dead_rows(&mut self, record: &Record, rows: usize, decoder: &mut dyn DecodeTicks) -> usize {
        if self.columns.rejected.is_empty() || record.offset < self.sealed_offset {
            return 0;
        }
        let letters = encode_row_letters(&self.source, record, rows, &self.columns.rejected, decoder);
        let count = letters.len();
        for bytes in letters {
            self.outputs.push_aside(SideOutput {
                offset: record.offset,
                topic: SideTopic::DeadLetter,
                bytes,
            });
        }
        count
    }

    fn keep_dead(&mut self, record: &Record, error: &DecodeError) {
        if record.offset < self.sealed_offset {
            return;
        }
        let mut bytes = Vec::new();
        encode_dead_letter_of(&self.source, record, error, &mut bytes);
        self.outputs.push_aside(SideOutput { offset: record.offset, topic: SideTopic::DeadLetter, bytes });
    }

    /// Rows in each group's queue, to be compared with [`Partition::arrivals`].
    pub(crate) fn queue_lengths(&self, lengths: &mut Vec<usize>) {
        self.groups.queue_lengths(lengths);
    }

    /// Rows that were added to the queues since `lengths` were read.
    pub(crate) fn arrivals(&self, lengths: &[usize]) -> Vec<GroupArrival> {
        self.groups.arrivals(lengths)
    }

    /// Assigns the group to a lane under a new epoch. Returns the state to be installed there.
    pub(crate) fn place(&mut self, place: &Place, on_device: bool) -> GroupState {
        self.groups.place(place, on_device)
    }

    /// Removes rows from the head of a group's queue for a batch.
    pub(crate) fn take(&mut self, group: i32, rows: i64, on_device: bool) -> GroupInput {
        self.groups.take(group, rows, on_device)
    }

    /// Adds the output of the oldest batch of a group; ignores the output of an older epoch.
    pub(crate) fn complete(&mut self, id: GroupId, epoch: i64, output: GroupOutput, kept_bytes_max: usize) {
        if !self.groups.complete(id, epoch, &output.snapshots, kept_bytes_max) {
            return;
        }
        self.outputs.signals.push(output.signals);
        if let Some(open_bars) = output.open_bars {
            self.open_bars.insert(id.group, open_bars);
        }
        for page in output.pages {
            self.pages.hold(&page);
            self.snapshots.add_page(page);
        }
        for (barrier, bytes) in output.snapshots {
            self.snapshots.add(self.source.partition, barrier, id.group, bytes);
        }
    }

    /// Takes a group back from a lane that has run all its batches. Returns true if the lane owned the group in this
    /// epoch.
    pub(crate) fn release(&mut self, group: i32, lane: LaneId, epoch: i64, stage: Box<GroupStage>) -> bool {
        self.groups.release(group, lane, epoch, stage)
    }

    /// True if the states of all groups of a lane can be computed again.
    pub(crate) fn keeps_groups_of(&self, lane: LaneId) -> bool {
        self.groups.are_kept(lane)
    }

    /// Takes back the groups of a lost lane, all of which were kept. Rows in flight wait again; returns their number by
    /// group.
    pub(crate) fn take_back(&mut self, lane: LaneId) -> Vec<GroupArrival> {
        self.groups.take_back(lane)
    }

    /// The offset before which all records are complete.
    pub(crate) fn complete_before(&self) -> i64 {
        self.groups.first_incomplete().unwrap_or(self.next_offset)
    }

    /// Rows that wait on the host, not in a batch.
    pub(crate) fn waiting_rows(&self) -> usize {
        self.groups.waiting_rows()
    }

    /// The offset of the partition's market.
    pub(crate) fn as_of(&self) -> AsOf {
        AsOf { partition: self.source.partition, next_offset: self.next_offset }
    }

    /// The market of a symbol as of the accepted records; `None` if the symbol is unknown.
    pub(crate) fn market_of(&self, symbol: &str) -> Option<SymbolMarket> {
        self.intake.market_of(symbol, self.source.partition, self.next_offset)
    }

    /// Numbers of the next symbols to compare with those of other partitions, at most `count_max`.
    pub(crate) fn begin_to_compare(&mut self, count_max: usize) -> Range<usize> {
        let from = self.compared_symbols;
        self.compared_symbols = self.intake.symbol_count().min(from + count_max);
        from..self.compared_symbols
    }

    /// The name of a symbol, by its number.
    pub(crate) fn symbol_name(&self, number: usize) -> &str {
        self.intake.symbols().name(number as u32)
    }

    /// True if the partition has the symbol and has compared it with those of other partitions.
    pub(crate) fn has_compared(&self, symbol: &str) -> bool {
        self.intake.symbols().id(symbol).is_some_and(|number| (number as usize) < self.compared_symbols)
    }

    /// Number of symbols seen.
    pub(crate) fn symbol_count(&self) -> usize {
        self.intake.symbol_count()
    }

    /// The event time before which ticks are late; `None` before the first tick.
    pub(crate) fn watermark_ns(&self) -> Option<i64> {
        self.intake.watermark_ns()
    }

    /// Number of time bars that were open at the last snapshot.
    pub(crate) fn open_bars(&self) -> u64 {
        self.open_bars.values().sum()
    }

    /// The event time to write after `grace_ns` without a record. It closes the bars whose ends are at least `grace_ns`
    /// ago by the wall clock. `None` if there are none, or it was written.
    pub(crate) fn quiet_event_time(&mut self, now_ns: i64, grace_ns: i64) -> Option<i64> {
        let until_ns = now_ns.saturating_sub(grace_ns);
        // Before the first record, the first call counts as one.
        self.accepted_at_ns = self.accepted_at_ns.min(now_ns);
        let is_quiet = self.accepted_at_ns <= until_ns && self.is_drained();
        self.say_event_time(until_ns, is_quiet)
    }

    /// The event time that closes all time bars; `None` if they are closed, or it was written.
    pub(crate) fn last_event_time(&mut self) -> Option<i64> {
        self.say_event_time(i64::MAX, true)
    }

    fn say_event_time(&mut self, until_ns: i64, is_time: bool) -> Option<i64> {
        let time_ns = is_time.then(|| self.intake.closed_by_ns(until_ns))??;
        let is_new = time_ns > self.said_ns;
        self.said_ns = self.said_ns.max(time_ns);
        is_new.then_some(time_ns)
    }

    /// True if event time has reached `time_ns`.
    pub(crate) fn has_come_to(&self, time_ns: i64) -> bool {
        self.intake.event_time_max_ns().is_some_and(|max_ns| max_ns >= time_ns)
    }

    /// True if all records before an offset were accepted.
    pub(crate) fn is_read_to(&self, offset: i64) -> bool {
        self.next_offset.max(self.read_to) >= offset
    }

    /// Continues behind offsets that have no records. Once the log removes the records before these offsets, their lack
    /// of records could no longer be told from a loss.
    pub(crate) fn skip_to_read(&mut self) {
        self.next_offset = self.next_offset.max(self.read_to);
    }

    /// True if some records before `end`, accepted before the state was lost, are not yet accepted again.
    pub(crate) fn is_behind(&self, end: i64) -> bool {
        !self.is_read_to(self.counted_offset.min(end))
    }

    /// The offsets that the partition has reached, with this state or with a lost one.
    pub(crate) fn reached(&self) -> Reached {
        let offset = self.next_offset.max(self.counted_offset);
        Reached { offset, gone_out: self.snapshots.gone_out() }
    }

    /// True if nothing waits and nothing is in flight.
    pub(crate) fn is_drained(&self) -> bool {
        self.complete_before() == self.next_offset && !self.snapshots.is_under_way()
    }

    /// True if a commit of this partition would contain anything.
    pub(crate) fn has_unsealed(&self) -> bool {
        self.complete_before() > self.sealed_offset || self.snapshots.has_unsealed(self.sealed_offset)
    }

    /// Asks all groups for their states before the next record, unless a snapshot is under way or waits for a commit.
    /// `records_min` is the least distance from the last snapshot. Symbols without a tick for `evict_idle_ns` are
    /// evicted.
    pub(crate) fn begin_snapshot(&mut self, records_min: i64, evict_idle_ns: Option<i64>) {
        if !self.snapshots.is_due(self.next_offset, records_min) {
            return;
        }
        let before = self.snapshots.last_offset();
        self.intake.evict(evict_idle_ns, self.next_offset, before, &mut self.groups.queues);
        let mut intake = Vec::new();
        self.intake.write(&mut intake);
        self.snapshots.begin(self.next_offset, intake, self.groups.len());
        self.intake.barrier(self.next_offset, self.next_offset, &mut self.groups.queues);
    }

    /// Offset of the last snapshot that went into commits in full; 0 if there is none.
    pub(crate) fn snapshot_offset(&self) -> i64 {
        self.snapshots.gone_out().map_or(0, |gone_out| gone_out.offset)
    }

    /// Number of symbols that are not in memory.
    pub(crate) fn evicted_count(&self) -> usize {
        self.intake.evicted().symbols()
    }

    /// True if the next record waits for pages.
    pub(crate) fn waits_for_pages(&self) -> bool {
        self.pages.waits()
    }

    /// The next action for the record that waits for pages.
    pub(crate) fn need(&self) -> Need {
        self.pages.need(self.intake.evicted(), |offset| self.snapshots.is_under_way_at(offset))
    }

    /// Notes that a read of pages was requested.
    pub(crate) fn begin_reading(&mut self, number: u64) {
        self.pages.begin_reading(number);
    }

    /// True if this read of pages is awaited.
    pub(crate) fn awaits_pages(&self, number: u64) -> bool {
        self.pages.awaits(number)
    }

    /// Adds the pages of the awaited read.
    pub(crate) fn end_reading(&mut self, pages: Vec<(PageId, Vec<u8>)>) {
        self.pages.end_reading(pages);
    }

    /// Takes the symbols of pages back into memory; the record that waited is read again.
    ///
    /// # Errors
    /// The page whose bytes differ from the written ones.
    pub(crate) fn take_pages_back(&mut self, pages: &[PageId]) -> Result<(), (PageId, StageError)> {
        // The symbols return just before the next record: behind a barrier that is already at its offset, ahead of one
        // still to come there.
        let is_behind_barrier = self.snapshots.last_offset() == self.next_offset;
        let offset = if is_behind_barrier { self.next_offset } else { self.next_offset - 1 };
        for &id in pages {
            let bytes = self.pages.take(id);
            let taken = self.intake.take_back(id.page, &bytes, offset, &mut self.groups.queues);
            taken.map_err(|error| (id, error))?;
        }
        Ok(())
    }

    /// Pages that are committed, still in memory and not yet searched for in the log.
    pub(crate) fn begin_to_seek_pages(&mut self) -> Vec<PageId> {
        let gone_out = self.snapshots.gone_out();
        gone_out.map_or_else(Vec::new, |gone_out| self.pages.begin_to_seek(gone_out.offset))
    }

    /// True if some symbols are only in this page.
    pub(crate) fn has_page(&self, id: PageId) -> bool {
        self.intake.evicted().pages().get(&id.page).is_some_and(|page| page.offset == id.offset)
    }

    /// Frees the pages that a search found in the log; the other pages of the search may be searched for again.
    pub(crate) fn let_pages_go(&mut self, sought: &[PageId], found: &[PageId]) {
        self.pages.let_go(sought, found);
    }

    /// Bytes of signals and side outputs that wait for a commit.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.outputs.bytes()
    }

    /// Seals outputs of complete records, up to about `bytes_max`, and counts them in the receipt.
    pub(crate) fn seal(&mut self, assignment: u64, bytes_max: usize, receipt: &mut Receipt) -> Sealed {
        let before = self.outputs.seal_before(self.complete_before(), bytes_max);
        let partition = self.source.partition;
        let mut sealed = Sealed { partition, assignment, ..Sealed::default() };
        self.outputs.seal(before, self.sealed_offset, &mut sealed, receipt);
        self.snapshots.seal(before, bytes_max, &mut sealed);
        self.sealed_offset = self.sealed_offset.max(before);
        sealed
    }
}
