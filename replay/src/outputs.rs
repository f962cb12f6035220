//! The output topics against a rerun of the stages, partition by partition.

use warptape_eventlog::{EventLog, LogError, OffsetRange, TopicPartition};
use warptape_schemas::Describer;
use warptape_stages::StageConfig;

use crate::comparison::Comparison;
use crate::cut::PartitionCut;
use crate::partition_reader::PartitionReader;
use crate::rerun::{Outputs, Rerun};
use crate::{OutputCounts, OutputDivergence, OutputOptions};

/// Compares the outputs of one partition, and adds what is identical to `counts`. `progress` is told the tick records
/// read by each step.
pub(crate) fn check_partition(
    log: &dyn EventLog,
    options: &OutputOptions,
    config: &StageConfig,
    partition: i32,
    cut: &PartitionCut,
    counts: &mut OutputCounts,
    progress: &mut dyn FnMut(u64),
) -> Result<Option<OutputDivergence>, LogError> {
    let open = |topic: &str, range: OffsetRange| {
        let source = TopicPartition { topic: topic.to_owned(), partition };
        PartitionReader::open(log, source, range)
    };
    let compare = |topic: &str, range: OffsetRange| -> Result<Comparison, LogError> {
        Ok(Comparison::new(open(topic, range)?, range.next))
    };
    let mut ticks = open(&options.ticks, cut.ticks)?;
    let mut outputs = Outputs {
        signals: compare(&options.signals, cut.signals)?,
        late: compare(&options.late, cut.late)?,
        dead_letter: compare(&options.dead_letter, cut.dead_letter)?,
    };
    let mut rerun = Rerun::new(ticks.source.clone(), config, options);
    while !outputs.is_decided() {
        let records = ticks.next_fetch()?;
        if records.is_empty() {
            break;
        }
        rerun.process(&records, &mut outputs)?;
        counts.tick_records += records.len() as u64;
        progress(records.len() as u64);
    }
    counts.ticks += rerun.ticks;
    counts.signals += outputs.signals.identical();
    counts.late += outputs.late.identical();
    counts.dead_letters += outputs.dead_letter.identical();
    let describer = Describer::new();
    for comparison in [outputs.signals, outputs.late, outputs.dead_letter] {
        let divergence = comparison.finish(&describer)?;
        if divergence.is_some() {
            return Ok(divergence);
        }
    }
    Ok(None)
}

impl Outputs {
    fn is_decided(&self) -> bool {
        [&self.signals, &self.late, &self.dead_letter].into_iter().any(Comparison::is_decided)
    }
}
