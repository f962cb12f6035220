//! Compares the output topics and the snapshots with a rerun of the stages, partition by partition.

use std::collections::BTreeMap;

use warptape_engine::Restored;
use warptape_eventlog::{EventLog, LogError, OffsetRange, Record, TopicPartition};
use warptape_schemas::Describer;
use warptape_stages::RepeatedTrades;

use crate::accounts::{Covered, DigestCheck, OtherTicks};
use crate::arrivals::Arrivals;
use crate::cause::{self, CauseOf};
use crate::comparison::Comparison;
use crate::cut::PartitionCut;
use crate::ownerships::Ownerships;
use crate::partition_reader::PartitionReader;
use crate::rerun::{Outputs, Rerun};
use crate::segments::{ConfigId, Segment, Segments};
use crate::snapshot;
use crate::states::StateCheck;
use crate::tally::Tally;
use crate::{
    Divergence, JournalDivergence, OutputCounts, OutputDivergence, OutputOptions, ReplayError,
    TicksDivergence,
};

/// Compares the outputs of partitions with those that their ticks yield. It begins with the first tick or, if the first
/// ticks were removed, with a snapshot.
pub(crate) struct OutputCheck<'a> {
    pub(crate) log: &'a dyn EventLog,
    /// Topic of the journal.
    pub(crate) journal: &'a str,
    pub(crate) options: &'a OutputOptions,
    pub(crate) segments: &'a Segments,
    pub(crate) arrivals: &'a Arrivals,
    /// Counts of identical outputs.
    pub(crate) counts: OutputCounts,
    /// Trades whose id occurred before in the same symbol.
    pub(crate) repeated: RepeatedTrades,
    /// Descriptions of the partitions whose comparison did not start at their beginning, in order.
    pub(crate) begins: Vec<String>,
    /// A partition whose first ticks were removed, and that has no snapshot to compare from, with its first remaining
    /// offset; `None` if there is none.
    pub(crate) gone: Option<(i32, i64)>,
    /// The owners of partitions over time.
    pub(crate) ownerships: &'a Ownerships,
    /// True if the beginning of a journal partition was removed.
    pub(crate) is_trimmed: bool,
}

/// The rerun of a partition with one of its configurations, up to the end of the configuration's last segment.
pub(crate) struct SegmentRerun {
    pub(crate) config: ConfigId,
    /// First record of the state.
    pub(crate) fold: i64,
    /// Fingerprint of the configuration; `None` if snapshots are not compared.
    pub(crate) fingerprint: Option<u64>,
    pub(crate) to: i64,
    pub(crate) rerun: Rerun,
}

impl OutputCheck<'_> {
    /// Compares the outputs of one partition, and its ticks with the journal's account. `progress` gets the number of
    /// tick records read in each step.
    pub(crate) fn check_partition(
        &mut self,
        partition: i32,
        cut: &PartitionCut,
        covered: Covered,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Option<Divergence>, ReplayError> {
        let segments = self.segments.of(partition, cut.ticks.next);
        let Some(Begin { read, from, restored }) = self.begin(partition, cut, &covered, &segments)? else {
            return Ok(None);
        };
        let covered = covered.from(read);
        let compare = |topic: &str, range: OffsetRange, cause_of: CauseOf| {
            let source = TopicPartition { topic: topic.to_owned(), partition };
            Comparison::open(self.log, source, range, from, cause_of)
        };
        let source = TopicPartition { topic: self.options.ticks.clone(), partition };
        let mut ticks = PartitionReader::open(self.log, source, OffsetRange { first: read, ..cut.ticks })?;
        let mut outputs = Outputs {
            signals: compare(&self.options.signals, cut.signals, cause::of_signal)?,
            late: compare(&self.options.late, cut.late, cause::of_late_tick)?,
            dead_letter: compare(&self.options.dead_letter, cut.dead_letter, cause::of_dead_letter)?,
            tally: Tally::new(&covered.clone().from(from).ranges),
        };
        self.note_begin(partition, from, restored.is_some(), &outputs);
        let mut states = self.states(partition, cut, read)?;
        let wanted = states.as_ref().map(StateCheck::fingerprints).unwrap_or_default();
        let mut reruns = self.reruns(&ticks.source, &segments, read, restored, &wanted)?;
        let mut digests = DigestCheck::new(covered);
        // Differing outputs do not end the loop before the ticks are known to be those that were processed.
        let mut read_to = i64::MAX;
        let other = loop {
            let records = ticks.next_fetch()?;
            let Some(last) = records.last().filter(|_| records[0].offset < read_to) else {
                if let (Some(states), i64::MAX) = (&mut states, read_to) {
                    compare_states(states, cut.ticks.next, &mut reruns)?;
                }
                break digests.close_before(cut.ticks.next.min(read_to));
            };
            if let Some(other) = records.iter().find_map(|record| digests.add(record)) {
                break Some(other);
            }
            if read_to == i64::MAX {
                let mut rest = &records[..];
                while let Some(states) = &mut states
                    && let Some(place) = states.next_place(last.offset)
                {
                    let (before, behind) =
                        rest.split_at(rest.partition_point(|record| record.offset < place));
                    process(before, &segments, &mut reruns, &mut outputs)?;
                    compare_states(states, place, &mut reruns)?;
                    rest = behind;
                }
                process(rest, &segments, &mut reruns, &mut outputs)?;
                self.counts.tick_records += records.len() as u64;
                progress(records.len() as u64);
            }
            if outputs.is_decided() && read_to == i64::MAX {
                read_to = digests.end_of(last.offset);
            }
        };
        let arrivals = self.check_arrivals(partition, &segments, &mut reruns);
        self.count(&outputs, reruns);
        if let Some(other) = other {
            return Ok(Some(Divergence::Ticks(divergence(ticks.source, other))));
        }
        let sealed = outputs.tally.divergence(&ticks.source, cut.ticks.next);
        let misstated = sealed.map(Divergence::Sealed).or(arrivals.map(Divergence::Journal));
        let found = outputs.finish()?.map(Divergence::Output).or(misstated);
        Ok(found.or_else(|| {
            let states = self.finish_states(states?, cut.ticks.next);
            states.map(Divergence::Output)
        }))
    }

    /// Counts the compared outputs of a partition.
    fn count(&mut self, outputs: &Outputs, reruns: Vec<SegmentRerun>) {
        self.counts.ticks += reruns.iter().map(|rerun| rerun.rerun.ticks).sum::<u64>();
        reruns.into_iter().for_each(|rerun| self.repeated.add(rerun.rerun.repeated));
        self.counts.signals += outputs.signals.identical();
        self.counts.late += outputs.late.identical();
        self.counts.dead_letters += outputs.dead_letter.identical();
    }

    /// Returns the first arrival whose rows differ from those of its records.
    fn check_arrivals(
        &self,
        partition: i32,
        segments: &[Segment],
        reruns: &mut [SegmentRerun],
    ) -> Option<JournalDivergence> {
        reruns.iter_mut().find_map(|SegmentRerun { config, fold, rerun, .. }| {
            let is_of = |segment: &&Segment| (segment.config, segment.fold) == (*config, *fold);
            let last = segments.iter().rfind(is_of)?;
            let groups = rerun.groups();
            self.arrivals.divergence(self.journal, partition, (*config, *fold), groups, rerun.sums(last.to))
        })
    }

    /// Returns the snapshots of a partition at or after an offset; `None` if the log has no such topic.
    fn states(
        &self,
        partition: i32,
        cut: &PartitionCut,
        from: i64,
    ) -> Result<Option<StateCheck>, ReplayError> {
        let Some(range) = cut.snapshots else { return Ok(None) };
        let source = TopicPartition { topic: self.options.snapshots.clone(), partition };
        let mut states = StateCheck::open(self.log, source, range, self.segments, self.is_trimmed)?;
        states.begin(from);
        Ok(Some(states))
    }

    /// Returns the first difference in snapshots, after the rerun has reached all their places.
    fn finish_states(&mut self, states: StateCheck, committed: i64) -> Option<OutputDivergence> {
        self.counts.snapshots += states.identical();
        let (passed, source) = (states.passed(), states.source.clone());
        let divergence = states.finish(committed, self.ownerships);
        if passed > 0 && divergence.is_none() {
            let TopicPartition { topic, partition } = source;
            self.begins.push(format!(
                "{topic}/{partition}: {passed} records were not compared: another version of warptape wrote \
                 them, the start of their stage configuration is unknown, or compaction removed their list \
                 of evicted symbols"
            ));
        }
        divergence
    }

    /// Returns a rerun for each configuration with outputs or snapshots. `wanted` has the fingerprints and last places
    /// of the snapshots.
    fn reruns(
        &self,
        source: &TopicPartition,
        segments: &[Segment],
        read: i64,
        mut restored: Option<Restored>,
        wanted: &BTreeMap<u64, i64>,
    ) -> Result<Vec<SegmentRerun>, ReplayError> {
        // A rerun from a snapshot covers nothing before the snapshot, and only its configuration. Segments whose states
        // include removed records are left out.
        let is_there = |segment: &&Segment| match restored.is_some() {
            true => segment.to > read,
            false => segment.fold >= read,
        };
        let mut ends: Vec<(ConfigId, i64, i64)> = Vec::new();
        for &Segment { to, config, fold, .. } in segments.iter().filter(is_there) {
            match ends.iter_mut().find(|(known, of, _)| (*known, *of) == (config, fold)) {
                Some((_, _, end)) => *end = to,
                None => ends.push((config, fold, to)),
            }
        }
        let others = if read > 0 || wanted.is_empty() { 0..0 } else { self.segments.all() };
        for config in others {
            if !ends.iter().any(|(known, ..)| *known == config) {
                ends.push((config, 0, 0));
            }
        }
        let mut reruns: Vec<SegmentRerun> = Vec::new();
        for &(config, fold, end) in &ends {
            let stages = match self.segments.config(config) {
                Ok(stages) => stages,
                // No record was processed with this configuration.
                Err(_) if end == 0 => continue,
                Err(error) => return Err(error),
            };
            let fingerprint = stages.fingerprint();
            let last_place = wanted.get(&fingerprint).copied();
            // A snapshot at or after the next fold's beginning is compared in the rerun of that fold.
            let later = ends.iter().filter(|(known, later, _)| *known == config && *later > fold);
            let next_fold = later.map(|(_, later, _)| *later).min().unwrap_or(i64::MAX);
            let to = end.max(last_place.unwrap_or(0).min(next_fold));
            if to > 0 {
                let rerun = match restored.take() {
                    Some(restored) => Rerun::from_snapshot(source.clone(), &stages, self.options, restored),
                    None => Rerun::new(source.clone(), &stages, self.options),
                };
                let rerun = rerun.with_bounds(self.arrivals.bounds(source.partition, (config, fold), read));
                reruns.push(SegmentRerun { config, fold, fingerprint: Some(fingerprint), to, rerun });
            }
        }
        Ok(reruns)
    }

    /// Returns the beginning of the comparison of a partition's outputs, with its state; `None` if there is no such
    /// state.
    fn begin(
        &mut self,
        partition: i32,
        cut: &PartitionCut,
        covered: &Covered,
        segments: &[Segment],
    ) -> Result<Option<Begin>, ReplayError> {
        let OffsetRange { first, next } = cut.ticks;
        if let Some(begin) = Begin::with_fold(segments, first).filter(|_| next > 0) {
            return Ok(Some(begin));
        }
        if first == 0 || next == 0 {
            return Ok(Some(Begin::default()));
        }
        // None of the remaining ticks has been processed yet.
        if next <= first {
            if !covered.ranges.is_empty() {
                self.gone.get_or_insert((partition, first));
                let ticks = &self.options.ticks;
                self.begins.push(format!(
                    "{ticks}/{partition} begins at offset {first}, after all processed records: its outputs were not compared"
                ));
            }
            return Ok(None);
        }
        let source = TopicPartition { topic: self.options.snapshots.clone(), partition };
        let restored = match segments.last() {
            // A state with another configuration would depend on removed ticks.
            Some(last) => {
                let config = self.segments.config(last.config)?;
                snapshot::earliest(self.log, source, last.from.max(first)..=next, &config, self.options.isa)?
            }
            None => None,
        };
        if restored.is_none() {
            self.gone.get_or_insert((partition, first));
            let ticks = &self.options.ticks;
            self.begins.push(format!(
                "{ticks}/{partition} begins at offset {first}, and there is no later snapshot under its last \
                 stage configuration: its outputs were not compared"
            ));
        }
        Ok(restored.map(|restored| Begin {
            read: restored.offset,
            from: restored.offset,
            restored: Some(restored),
        }))
    }

    /// Notes the offset at which the comparison of outputs begins, if it is not the partition's beginning.
    fn note_begin(&mut self, partition: i32, from: i64, is_snapshot: bool, outputs: &Outputs) {
        let OutputOptions { ticks, signals, late, dead_letter, .. } = self.options;
        if from > 0 {
            let what = if is_snapshot { "the snapshot at offset" } else { "offset" };
            self.begins.push(format!("{ticks}/{partition}: outputs were compared from {what} {from} on"));
        }
        let topics =
            [(signals, &outputs.signals), (late, &outputs.late), (dead_letter, &outputs.dead_letter)];
        for (topic, comparison) in topics {
            let from = match comparison.from {
                begin if begin == from => continue,
                i64::MAX => "none is left".to_owned(),
                begin => format!("only those caused at offset {begin} of {ticks} or later were compared"),
            };
            self.begins.push(format!("{topic}/{partition} has lost its first records: {from}"));
        }
    }
}

/// The beginning of the comparison of a partition's outputs.
#[derive(Default)]
struct Begin {
    /// The first tick record to read.
    read: i64,
    /// The first tick record whose outputs are compared.
    from: i64,
    /// The state before the first record to read; `None` for the empty state.
    restored: Option<Restored>,
}

impl Begin {
    /// Returns the beginning of the last segments whose states depend only on existing records; `None` if even the last
    /// segment's state does not.
    fn with_fold(segments: &[Segment], first: i64) -> Option<Self> {
        let made = segments.iter().rev().take_while(|segment| segment.fold >= first);
        let from = made.clone().map(|segment| segment.from).last()?;
        let read = made.map(|segment| segment.fold).min()?;
        Some(Self { read, from: from.max(read), restored: None })
    }
}

/// Compares snapshots at or before an offset with the states there. All records up to the offset must be processed.
fn compare_states(
    states: &mut StateCheck,
    up_to: i64,
    reruns: &mut [SegmentRerun],
) -> Result<(), ReplayError> {
    while let Some(place) = states.next_place(up_to) {
        let folds: Vec<(ConfigId, i64)> = reruns.iter().map(|rerun| (rerun.config, rerun.fold)).collect();
        for SegmentRerun { config, fold, fingerprint, to, rerun } in &mut *reruns {
            let is_later =
                |other: &(ConfigId, i64)| other.0 == *config && (*fold + 1..=place).contains(&other.1);
            if let Some(fingerprint) = fingerprint.filter(|fingerprint| states.wants(*fingerprint))
                && (*fold..=*to).contains(&place)
                && !folds.iter().any(is_later)
            {
                let state = rerun.state(place, &states.evicted_at(place, fingerprint));
                states.compare(fingerprint, state)?;
            }
        }
        states.pass();
    }
    Ok(())
}

/// Processes records with each configuration that is in force or still to come. Only outputs of the one in force are
/// compared.
pub(crate) fn process(
    records: &[Record],
    segments: &[Segment],
    reruns: &mut [SegmentRerun],
    outputs: &mut Outputs,
) -> Result<(), LogError> {
    for segment in segments {
        let before = |offset: i64| records.partition_point(|record| record.offset < offset);
        let piece = &records[before(segment.from)..before(segment.to)];
        let begins = outputs.begins();
        let begun = |record: &Record| begins.map(|begin| begin <= record.offset);
        for piece in piece.chunk_by(|record, next| begun(record) == begun(next)) {
            outputs.reach(piece[0].offset);
            for SegmentRerun { config, fold, to, rerun, .. } in &mut *reruns {
                if segment.from < *to {
                    let is_of_segment = (*config, *fold) == (segment.config, segment.fold);
                    let piece = &piece[piece.partition_point(|record| record.offset < *fold)..];
                    rerun.process(piece, is_of_segment.then_some(&mut *outputs))?;
                }
            }
        }
    }
    Ok(())
}

pub(crate) fn divergence(source: TopicPartition, other: OtherTicks) -> TicksDivergence {
    let OtherTicks { first, next, expected, found } = other;
    let TopicPartition { topic, partition } = source;
    let digits = |digest: u64| format!("{digest:016x}");
    TicksDivergence {
        topic,
        partition,
        first_offset: first,
        next_offset: next,
        expected: digits(expected),
        found: digits(found),
    }
}

impl Outputs {
    /// Returns the tick offsets from which each output is compared.
    fn begins(&self) -> [i64; 3] {
        [&self.signals, &self.late, &self.dead_letter].map(|comparison| comparison.from)
    }

    /// Announces that the next outputs are caused by ticks at or after this offset.
    fn reach(&mut self, offset: i64) {
        for comparison in [&mut self.signals, &mut self.late, &mut self.dead_letter] {
            comparison.reach(offset);
        }
    }

    /// Returns the offsets after the last records that were found identical.
    pub(crate) fn next_offsets(&self) -> [i64; 3] {
        [&self.signals, &self.late, &self.dead_letter].map(Comparison::next_offset)
    }

    /// Ends the rerun at this offset of the ticks. The topics may continue after it.
    pub(crate) fn stop_at(&mut self, offset: i64) {
        self.signals.stop_at(offset, cause::of_signal);
        self.late.stop_at(offset, cause::of_late_tick);
        self.dead_letter.stop_at(offset, cause::of_dead_letter);
    }

    pub(crate) fn is_decided(&self) -> bool {
        [&self.signals, &self.late, &self.dead_letter].into_iter().any(Comparison::is_decided)
    }

    /// Returns the first difference. A difference already found comes before surplus records, which the rerun may not
    /// have reached.
    pub(crate) fn finish(self) -> Result<Option<OutputDivergence>, LogError> {
        let describer = Describer::new();
        let mut comparisons = [self.signals, self.late, self.dead_letter];
        comparisons.sort_by_key(|comparison| !comparison.differs());
        for comparison in comparisons {
            let divergence = comparison.finish(&describer)?;
            if divergence.is_some() {
                return Ok(divergence);
            }
        }
        Ok(None)
    }
}
