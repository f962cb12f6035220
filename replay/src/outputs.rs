//! The output topics against a rerun of the stages, partition by partition.

use warptape_eventlog::{EventLog, LogError, OffsetRange, Record, TopicPartition};
use warptape_schemas::Describer;
use warptape_stages::RepeatedTrades;

use crate::accounts::{Covered, DigestCheck, OtherTicks};
use crate::comparison::Comparison;
use crate::cut::PartitionCut;
use crate::partition_reader::PartitionReader;
use crate::rerun::{Outputs, Rerun};
use crate::segments::{ConfigId, Segment, Segments};
use crate::{Divergence, OutputCounts, OutputDivergence, OutputOptions, ReplayError, TicksDivergence};

/// Compares the outputs of partitions with what their ticks give.
pub(crate) struct OutputCheck<'a> {
    pub(crate) log: &'a dyn EventLog,
    pub(crate) options: &'a OutputOptions,
    pub(crate) segments: &'a Segments,
    /// What was found identical.
    pub(crate) counts: OutputCounts,
    /// Trades whose id their symbol had before.
    pub(crate) repeated: RepeatedTrades,
}

/// A partition under one of its configurations, from its beginning to the end of the last segment under it.
struct SegmentRerun {
    config: ConfigId,
    to: i64,
    rerun: Rerun,
}

impl OutputCheck<'_> {
    /// Compares the outputs of one partition, for which the journal accounts as given. `progress` is told the tick records read by
    /// each step.
    pub(crate) fn check_partition(
        &mut self,
        partition: i32,
        cut: &PartitionCut,
        covered: Covered,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Option<Divergence>, ReplayError> {
        let open = |topic: &str, range: OffsetRange| {
            let source = TopicPartition { topic: topic.to_owned(), partition };
            PartitionReader::open(self.log, source, range)
        };
        let compare = |topic: &str, range: OffsetRange| -> Result<Comparison, LogError> {
            Ok(Comparison::new(open(topic, range)?, range.next))
        };
        let mut ticks = open(&self.options.ticks, cut.ticks)?;
        let mut outputs = Outputs {
            signals: compare(&self.options.signals, cut.signals)?,
            late: compare(&self.options.late, cut.late)?,
            dead_letter: compare(&self.options.dead_letter, cut.dead_letter)?,
        };
        let segments = self.segments.of(partition, cut.ticks.next);
        let mut reruns = self.reruns(&ticks.source, &segments)?;
        let mut digests = DigestCheck::new(covered);
        // Outputs that differ are still no reason to stop before it is known whether the ticks are those that were processed.
        let mut read_to = i64::MAX;
        let other = loop {
            let records = ticks.next_fetch()?;
            let Some(last) = records.last().filter(|_| records[0].offset < read_to) else {
                break digests.close_before(cut.ticks.next.min(read_to));
            };
            if let Some(other) = records.iter().find_map(|record| digests.add(record)) {
                break Some(other);
            }
            if read_to == i64::MAX {
                process(&records, &segments, &mut reruns, &mut outputs)?;
                self.counts.tick_records += records.len() as u64;
                progress(records.len() as u64);
            }
            if outputs.is_decided() && read_to == i64::MAX {
                read_to = digests.end_of(last.offset);
            }
        };
        self.counts.ticks += reruns.iter().map(|rerun| rerun.rerun.ticks).sum::<u64>();
        reruns.into_iter().for_each(|rerun| self.repeated.add(rerun.rerun.repeated));
        self.counts.signals += outputs.signals.identical();
        self.counts.late += outputs.late.identical();
        self.counts.dead_letters += outputs.dead_letter.identical();
        match other {
            Some(other) => Ok(Some(Divergence::Ticks(divergence(ticks.source, other)))),
            None => Ok(outputs.finish()?.map(Divergence::Output)),
        }
    }

    fn reruns(
        &self,
        source: &TopicPartition,
        segments: &[Segment],
    ) -> Result<Vec<SegmentRerun>, ReplayError> {
        let mut reruns: Vec<SegmentRerun> = Vec::new();
        for &Segment { to, config, .. } in segments {
            match reruns.iter_mut().find(|rerun| rerun.config == config) {
                Some(rerun) => rerun.to = to,
                None => {
                    let rerun = Rerun::new(source.clone(), &self.segments.config(config)?, self.options);
                    reruns.push(SegmentRerun { config, to, rerun });
                }
            }
        }
        Ok(reruns)
    }
}

/// Processes records under every configuration that is still to come or in force; outputs are of the one in force.
fn process(
    records: &[Record],
    segments: &[Segment],
    reruns: &mut [SegmentRerun],
    outputs: &mut Outputs,
) -> Result<(), LogError> {
    for segment in segments {
        let before = |offset: i64| records.partition_point(|record| record.offset < offset);
        let piece = &records[before(segment.from)..before(segment.to)];
        for SegmentRerun { config, to, rerun } in &mut *reruns {
            if segment.from < *to && !piece.is_empty() {
                rerun.process(piece, (*config == segment.config).then_some(&mut *outputs))?;
            }
        }
    }
    Ok(())
}

fn divergence(source: TopicPartition, other: OtherTicks) -> TicksDivergence {
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
    fn is_decided(&self) -> bool {
        [&self.signals, &self.late, &self.dead_letter].into_iter().any(Comparison::is_decided)
    }

    /// The first difference. One that was met comes before records that are left, which the rerun may not have come to.
    fn finish(self) -> Result<Option<OutputDivergence>, LogError> {
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
