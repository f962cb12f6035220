//! The market as the ticks before an offset leave it: the host side of the stages once more, without groups and outputs.

use std::collections::BTreeMap;

use warptape_eventlog::{EventLog, LogError, OffsetRange, Record, TopicPartition};
use warptape_schemas::journal::AsOf;
use warptape_schemas::{TickColumns, TickDecoder};
use warptape_stages::{GroupQueue, PartitionIntake, StageConfig, SymbolMarket};

use crate::OutputOptions;
use crate::partition_reader::PartitionReader;

/// The markets of all partitions, each as of its own offset. Asked in the order of the journal, every tick is read once: a
/// partition that is asked for an earlier state begins anew.
pub(crate) struct MarketFold<'a> {
    log: &'a dyn EventLog,
    options: &'a OutputOptions,
    config: &'a StageConfig,
    /// The ticks there are, by partition.
    ticks: Vec<OffsetRange>,
    partitions: BTreeMap<i32, PartitionFold>,
}

struct PartitionFold {
    reader: PartitionReader,
    intake: PartitionIntake,
    queues: Vec<GroupQueue>,
    decoder: TickDecoder,
    columns: TickColumns,
    /// After the last record that was accepted.
    next_offset: i64,
}

impl<'a> MarketFold<'a> {
    pub(crate) fn new(
        log: &'a dyn EventLog,
        options: &'a OutputOptions,
        config: &'a StageConfig,
        ticks: Vec<OffsetRange>,
    ) -> Self {
        Self { log, options, config, ticks, partitions: BTreeMap::new() }
    }

    /// Comes to the state as of these offsets.
    pub(crate) fn advance(&mut self, as_of: &[AsOf]) -> Result<(), LogError> {
        for &AsOf { partition, next_offset } in as_of {
            let Some(&ticks) = usize::try_from(partition).ok().and_then(|index| self.ticks.get(index)) else {
                continue;
            };
            if self.partitions.get(&partition).is_none_or(|fold| fold.next_offset > next_offset) {
                let source = TopicPartition { topic: self.options.ticks.clone(), partition };
                let reader = PartitionReader::open(self.log, source, ticks)?;
                self.partitions.insert(partition, PartitionFold::new(reader, self.config, self.options));
            }
            let fold = self.partitions.get_mut(&partition).expect("it was just made where it was missing");
            fold.advance(next_offset)?;
        }
        Ok(())
    }

    /// What is known of a symbol in the first of these partitions that has it. They were just advanced to.
    pub(crate) fn market_of(&self, symbol: &str, as_of: &[AsOf]) -> Option<SymbolMarket> {
        as_of.iter().find_map(|&AsOf { partition, next_offset }| {
            self.partitions.get(&partition)?.intake.market_of(symbol, partition, next_offset)
        })
    }
}

impl PartitionFold {
    fn new(reader: PartitionReader, config: &StageConfig, options: &OutputOptions) -> Self {
        Self {
            reader,
            intake: PartitionIntake::new(config),
            queues: (0..config.groups_per_partition).map(|_| GroupQueue::default()).collect(),
            decoder: TickDecoder::with_source(options.schemas.clone()),
            columns: TickColumns::default(),
            next_offset: 0,
        }
    }

    fn advance(&mut self, next_offset: i64) -> Result<(), LogError> {
        while self.next_offset < next_offset
            && let Some(record) = self.reader.next_before(next_offset)?
        {
            self.accept(&record);
            self.next_offset = record.offset + 1;
        }
        Ok(())
    }

    fn accept(&mut self, record: &Record) {
        self.columns.clear();
        // What is rejected is a dead letter, and nothing of the market.
        if self.decoder.decode(&record.value, self.intake.symbols_mut(), &mut self.columns).is_ok() {
            let mut late = Vec::new();
            self.intake.accept(record.offset, &self.columns, 0, &mut self.queues, &mut late);
            self.queues.iter_mut().for_each(|queue| *queue = GroupQueue::default());
        }
    }
}
