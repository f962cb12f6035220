//! Runs the stages over a partition's ticks again, one after the other on this thread, without scheduler or lanes.

use std::collections::VecDeque;

use warptape_engine::{
    PendingSnapshot, Restored, encode_dead_letter_of, encode_late_tick_of, encode_row_letters,
    snapshot_records, tick_record,
};
use warptape_eventlog::{LogError, Record, TopicPartition};
use warptape_schemas::{Snapshot, TickColumns, TickDecoder};
use warptape_stages::{
    Acceptance, Evicted, GroupOutput, GroupQueue, GroupStage, Late, PartitionIntake, RepeatedTrades,
    SignalMerge, StageConfig,
};

use crate::OutputOptions;
use crate::arrivals::weight;
use crate::comparison::Comparison;
use crate::tally::{Counted, Tally};

/// Least number of waiting rows before the stages run, except at the end: few runs of many rows are fastest.
const WAITING_ROWS_DUE: usize = 16 * 1024;
/// Greatest number of rows in one run of a group.
const BATCH_ROWS_MAX: usize = 64 * 1024;

/// The outputs of a partition being compared.
pub(crate) struct Outputs {
    pub(crate) signals: Comparison,
    pub(crate) late: Comparison,
    pub(crate) dead_letter: Comparison,
    /// Output counts of the transactions that the journal accounts for.
    pub(crate) tally: Tally,
}

/// Stage state of one partition, starting at the beginning of its log or at a snapshot.
pub(crate) struct Rerun {
    source: TopicPartition,
    intake: PartitionIntake,
    queues: Vec<GroupQueue>,
    stages: Vec<GroupStage>,
    merge: SignalMerge,
    decoder: TickDecoder,
    columns: TickColumns,
    late: Vec<Late>,
    bytes: Vec<u8>,
    /// Offsets, ascending, at which the sum of the rows of all earlier records is noted.
    bounds: VecDeque<i64>,
    /// The sum at each bound that was passed, and the sum so far.
    sums: Vec<(i64, u64)>,
    sum: u64,
    /// Number of ticks in the segments whose outputs were compared.
    pub(crate) ticks: u64,
    /// Trades among these ticks whose id occurred before in the same symbol.
    pub(crate) repeated: RepeatedTrades,
}

impl Rerun {
    pub(crate) fn new(source: TopicPartition, config: &StageConfig, options: &OutputOptions) -> Self {
        let isa = options.isa;
        let groups = config.groups_per_partition;
        Self {
            source,
            intake: PartitionIntake::new(config),
            queues: (0..groups).map(|_| GroupQueue::default()).collect(),
            stages: (0..groups).map(|_| GroupStage::new(config, isa)).collect(),
            merge: SignalMerge::default(),
            decoder: TickDecoder::with_source(options.schemas.clone()).by_rows(true),
            columns: TickColumns::default(),
            late: Vec::new(),
            bytes: Vec::new(),
            bounds: VecDeque::new(),
            sums: Vec::new(),
            sum: 0,
            ticks: 0,
            repeated: RepeatedTrades::default(),
        }
    }

    /// Continues from a state that was taken with the configuration.
    pub(crate) fn from_snapshot(
        source: TopicPartition,
        config: &StageConfig,
        options: &OutputOptions,
        restored: Restored,
    ) -> Self {
        let Restored { intake, stages, .. } = restored;
        Self { intake, stages, ..Self::new(source, config, options) }
    }

    /// Sets the ascending offsets at which row sums are noted.
    pub(crate) fn with_bounds(self, bounds: Vec<i64>) -> Self {
        Self { bounds: bounds.into(), ..self }
    }

    /// Returns the row sums of all records before the requested offsets, once all records before `to` are processed.
    pub(crate) fn sums(&mut self, to: i64) -> &[(i64, u64)] {
        self.note_sums(to);
        &self.sums
    }

    /// Returns the number of groups of the partition.
    pub(crate) fn groups(&self) -> usize {
        self.queues.len()
    }

    fn note_sums(&mut self, offset: i64) {
        while let Some(bound) = self.bounds.pop_front_if(|bound| *bound <= offset) {
            self.sums.push((bound, self.sum));
        }
    }

    /// Returns the weight of all waiting rows.
    fn weight(&self) -> u64 {
        let groups = (0..).zip(&self.queues);
        let weights = groups.map(|(group, queue)| weight(group).wrapping_mul(queue.rows.len() as u64));
        weights.fold(0, u64::wrapping_add)
    }

    /// Returns the state before the record at an offset, which must be the next one. It is the state that an engine
    /// with these evicted symbols would store. No rows may be waiting.
    pub(crate) fn state(&self, offset: i64, evicted: &Evicted) -> Vec<Snapshot> {
        let mut intake = Vec::new();
        self.intake.write_with(evicted, &mut intake);
        let mut pending = PendingSnapshot::new(offset, intake, self.stages.len());
        for (group, stage) in (0..).zip(&self.stages) {
            let mut state = Vec::new();
            stage
                .write_without(evicted, offset, &mut state)
                .into_iter()
                .for_each(|page| pending.add_page(page));
            pending.add(offset, group, state);
        }
        snapshot_records(self.source.partition, pending)
    }

    /// Processes the next records up to their outputs. With `None`, the outputs are dropped, because they belong to
    /// another segment.
    pub(crate) fn process(
        &mut self,
        records: &[Record],
        mut outputs: Option<&mut Outputs>,
    ) -> Result<(), LogError> {
        for record in records {
            self.note_sums(record.offset);
            let before = if self.bounds.is_empty() { 0 } else { self.weight() };
            self.accept(record, outputs.as_deref_mut())?;
            if !self.bounds.is_empty() {
                self.sum = self.sum.wrapping_add(self.weight().wrapping_sub(before));
            }
            if self.queues.iter().map(|queue| queue.rows.len()).sum::<usize>() >= WAITING_ROWS_DUE {
                self.run(outputs.as_deref_mut())?;
            }
        }
        self.run(outputs)
    }

    /// Runs all waiting rows through the stages.
    fn run(&mut self, outputs: Option<&mut Outputs>) -> Result<(), LogError> {
        for (queue, stage) in self.queues.iter_mut().zip(&mut self.stages) {
            // A symbol whose ticks were all late has no rows.
            while !queue.rows.is_empty() || !queue.symbols.is_empty() {
                let input = queue.take(queue.rows.len().min(BATCH_ROWS_MAX));
                let mut output = GroupOutput::default();
                stage.run(input, &mut output);
                self.merge.push(output.signals);
            }
        }
        // All rows are processed, so all records are complete.
        let Some(outputs) = outputs else {
            self.merge.take_before(i64::MAX);
            return Ok(());
        };
        while let Some(first) = self.merge.first_offset() {
            let signals = self.merge.take_before(outputs.tally.next_bound(first));
            outputs.tally.add(Counted::Signals, first, signals.len());
            let mut all = signals.iter();
            all.try_for_each(|signal| outputs.signals.expect(Some(signal.symbol), signal.bytes))?;
        }
        Ok(())
    }

    /// Decodes a record and deals its rows to the groups. Late and rejected ticks become outputs at once.
    fn accept(&mut self, record: &Record, outputs: Option<&mut Outputs>) -> Result<(), LogError> {
        let (columns, queues, late) = (&mut self.columns, &mut self.queues, &mut self.late);
        let (intake, decoder) = (&mut self.intake, &mut self.decoder);
        let accepted = tick_record(record)
            .and_then(|record| intake.accept_record(record, decoder, columns, queues, late));
        match accepted {
            Ok(Acceptance::Waits(_)) => unreachable!("a rerun has all symbols in memory"),
            Ok(Acceptance::Taken(rows)) => {
                let Some(outputs) = outputs else { return Ok(()) };
                self.ticks += (rows - self.columns.rejected.len()) as u64;
                let (counts, partition) = (self.intake.trade_ids(), self.source.partition);
                let symbols = self.intake.symbols_mut();
                outputs.tally.add(Counted::Late, record.offset, self.late.len());
                self.repeated.add_record(counts, partition, record.offset, |number| symbols.name(number));
                for &late in &self.late {
                    self.bytes.clear();
                    let symbols = self.intake.symbols_mut();
                    encode_late_tick_of(
                        &self.source,
                        record.offset,
                        late,
                        &self.columns,
                        symbols,
                        &mut self.bytes,
                    );
                    outputs.late.expect(None, &self.bytes)?;
                }
                if self.columns.rejected.is_empty() {
                    return Ok(());
                }
                let (rejected, decoder) = (&self.columns.rejected, &mut self.decoder);
                let letters = encode_row_letters(&self.source, record, rows, rejected, decoder);
                outputs.tally.add(Counted::DeadLetters, record.offset, letters.len());
                letters.iter().try_for_each(|letter| outputs.dead_letter.expect(None, letter))
            }
            Err(error) => {
                let Some(outputs) = outputs else { return Ok(()) };
                self.bytes.clear();
                outputs.tally.add(Counted::DeadLetters, record.offset, 1);
                encode_dead_letter_of(&self.source, record, &error, &mut self.bytes);
                outputs.dead_letter.expect(None, &self.bytes)
            }
        }
    }
}
