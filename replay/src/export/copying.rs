//! Copies the planned records.

use std::collections::BTreeSet;

use warptape_eventlog::sqlite::PortableFile;
use warptape_eventlog::{EventLog, LogError, OffsetRange, TopicPartition};
use warptape_schemas::registry_id_of;

use super::plan::TopicPlan;
use super::state::Fold;
use super::{ExportProgress, ExportedTopic};
use crate::partition_reader::PartitionReader;
use crate::{OutputOptions, ReplayError};

/// A copy in progress.
pub(super) struct Copying<'a> {
    log: &'a dyn EventLog,
    file: &'a mut PortableFile,
    done: ExportProgress,
    progress: &'a mut dyn FnMut(ExportProgress),
    /// Ids of the schemas that ticks in the frame of a schema registry name.
    ids: BTreeSet<u32>,
}

impl<'a> Copying<'a> {
    pub(super) fn new(
        log: &'a dyn EventLog,
        file: &'a mut PortableFile,
        total: u64,
        progress: &'a mut dyn FnMut(ExportProgress),
    ) -> Self {
        Self { log, file, done: ExportProgress { done: 0, total }, progress, ids: BTreeSet::new() }
    }

    /// Copies the planned records of a topic.
    pub(super) fn copy_topic(&mut self, topic: &TopicPlan, ticks: &str) -> Result<ExportedTopic, LogError> {
        self.file.add_topic(&topic.spec)?;
        let name = topic.spec.name.clone();
        self.file.tell_record_clock(&name, self.log.record_clock(&name)?)?;
        let mut exported = ExportedTopic { name: name.clone(), ..ExportedTopic::default() };
        for (partition, range) in (0..).zip(&topic.copied) {
            let source = TopicPartition { topic: name.clone(), partition };
            if topic.is_trimmed[partition as usize] {
                self.file.remove_before(&source, range.first)?;
            }
            self.copy(&source, *range, name == ticks, &mut exported)?;
        }
        Ok(exported)
    }

    fn copy(
        &mut self,
        source: &TopicPartition,
        range: OffsetRange,
        are_ticks: bool,
        exported: &mut ExportedTopic,
    ) -> Result<(), LogError> {
        let done_before = self.done.done;
        if range.first < range.next {
            let mut reader = PartitionReader::open(self.log, source.clone(), range)?;
            loop {
                let records = reader.next_fetch()?;
                let Some(last) = records.last() else { break };
                if are_ticks {
                    self.ids.extend(records.iter().filter_map(|record| registry_id_of(&record.value)));
                }
                self.file.append(source, &records)?;
                exported.records += records.len() as u64;
                exported.bytes += records.iter().map(|record| record.value.len() as u64).sum::<u64>();
                self.done.done = done_before + (last.offset + 1 - range.first) as u64;
                (self.progress)(self.done);
            }
        }
        self.done.done = done_before + (range.next - range.first) as u64;
        (self.progress)(self.done);
        self.file.skip_to(source, range.next)
    }

    /// Writes the planned states, and returns the number of their records.
    pub(super) fn write_states(
        &mut self,
        folds: &[Fold],
        sources: &OutputOptions,
    ) -> Result<u64, ReplayError> {
        let mut records = 0;
        for fold in folds {
            let (done_before, total) = (self.done.done, self.done.total);
            let progress = &mut *self.progress;
            let mut advance = |folded: u64| progress(ExportProgress { done: done_before + folded, total });
            records += fold.write(self.log, self.file, sources, &mut advance)?;
            self.done.done = done_before + fold.to.unsigned_abs();
        }
        Ok(records)
    }

    /// Returns the ids of the schemas found.
    pub(super) fn finish(self) -> Vec<u32> {
        self.ids.into_iter().collect()
    }
}
