//! The market after the ticks before an offset. Runs the host side of the stages again, without groups and outputs.

use std::collections::BTreeMap;

use warptape_engine::tick_record;
use warptape_eventlog::{EventLog, LogError, OffsetRange, Record, TopicPartition};
use warptape_schemas::journal::AsOf;
use warptape_schemas::{TickColumns, TickDecoder};
use warptape_stages::{GroupQueue, PartitionIntake, StageConfig, SymbolMarket};

use crate::OutputOptions;
use crate::partition_reader::PartitionReader;

/// The markets of all partitions, each at its own offset. If requests come in the order of the journal, every tick is
/// read once. A request for an earlier state of a partition restarts the partition.
pub(crate) struct MarketFold<'a> {
    log: &'a dyn EventLog,
    options: &'a OutputOptions,
    config: StageConfig,
    /// The existing ticks, by partition.
    ticks: Vec<OffsetRange>,
    partitions: BTreeMap<i32, PartitionFold>,
}

struct PartitionFold {
    reader: PartitionReader,
    intake: PartitionIntake,
    queues: Vec<GroupQueue>,
    decoder: TickDecoder,
    columns: TickColumns,
    /// Offset after the last accepted record.
    next_offset: i64,
}

impl<'a> MarketFold<'a> {
    pub(crate) fn new(
        log: &'a dyn EventLog,
        options: &'a OutputOptions,
        config: StageConfig,
        ticks: Vec<OffsetRange>,
    ) -> Self {
        Self { log, options, config, ticks, partitions: BTreeMap::new() }
    }

    /// Advances to the state at these offsets.
    pub(crate) fn advance(&mut self, as_of: &[AsOf]) -> Result<(), LogError> {
        for &AsOf { partition, next_offset } in as_of {
            let Some(&ticks) = usize::try_from(partition).ok().and_then(|index| self.ticks.get(index)) else {
                continue;
            };
            if self.partitions.get(&partition).is_none_or(|fold| fold.next_offset > next_offset) {
                let source = TopicPartition { topic: self.options.ticks.clone(), partition };
                let reader = PartitionReader::open(self.log, source, ticks)?;
                self.partitions.insert(partition, PartitionFold::new(reader, &self.config, self.options));
            }
            let fold = self.partitions.get_mut(&partition).expect("it was just made where it was missing");
            fold.advance(next_offset)?;
        }
        Ok(())
    }

    /// Returns the market of a symbol in the first of these partitions that has it. The caller must first advance to
    /// `as_of`.
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
            decoder: TickDecoder::with_source(options.schemas.clone()).by_rows(true),
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
        let (columns, queues) = (&mut self.columns, &mut self.queues);
        // A rejected record becomes a dead letter, and is not part of the market.
        let (intake, decoder) = (&mut self.intake, &mut self.decoder);
        let _ = tick_record(record)
            .and_then(|record| intake.accept_record(record, decoder, columns, queues, &mut Vec::new()));
        self.queues.iter_mut().for_each(|queue| *queue = GroupQueue::default());
    }
}

#[cfg(test)]
mod tests {
    use warptape_eventlog::{Durability, NewRecord, SqliteLog, TopicSpec};
    use warptape_schemas::encode_tick;
    use warptape_schemas::tick::{Scales, Side, Tick, TickKind};
    use warptape_stages::Isa;

    use super::*;

    /// Writes one trade per record, at prices 1, 2 and so on. The third record is invalid.
    fn feed(log: &SqliteLog, records: i64) {
        let mut producer = log.producer("feed").unwrap();
        producer.begin().unwrap();
        for number in 1..=records {
            let tick = Tick {
                symbol: "A:X".to_owned(),
                kind: TickKind::Trade,
                event_time_ns: number * 1_000_000_000,
                receive_time_ns: 0,
                trade_id: 1,
                side: Side::Buy,
                price_e9: number * 1_000_000_000,
                size_e9: 1,
                bid_price_e9: 0,
                bid_size_e9: 0,
                ask_price_e9: 0,
                ask_size_e9: 0,
                scales: Scales::E9,
            };
            let mut value = Vec::new();
            encode_tick(&tick, &mut value).unwrap();
            if number == 3 {
                value.truncate(4);
            }
            let (topic, value) = ("ticks".into(), value.into());
            producer.send(NewRecord { topic, value, ..NewRecord::default() }).unwrap();
        }
        producer.commit().unwrap();
    }

    #[test]
    fn the_market_is_that_of_the_records_before_an_offset_also_of_an_earlier_one() {
        let folder = tempfile::tempdir().unwrap();
        let log = SqliteLog::open(folder.path().join("log.db"), Durability::Process).unwrap();
        log.create_topics(&[TopicSpec { name: "ticks".to_owned(), partitions: 1, ..TopicSpec::default() }])
            .unwrap();
        feed(&log, 600);
        let topic = String::new;
        let options = OutputOptions {
            schemas: None,
            ticks: "ticks".to_owned(),
            signals: topic(),
            late: topic(),
            dead_letter: topic(),
            snapshots: topic(),
            risk_requests: topic(),
            risk_results: topic(),
            control: topic(),
            control_results: topic(),
            group: topic(),
            isa: Isa::Baseline,
        };
        let config = StageConfig::unlimited(vec!["1s".parse().unwrap()], 0, 2);
        let ticks = vec![OffsetRange { first: 0, next: 600 }];
        let mut fold = MarketFold::new(&log, &options, config, ticks);
        for (next_offset, spot) in [
            (0, None),
            (2, Some(2.0)),
            (3, Some(2.0)),
            (500, Some(500.0)),
            (4, Some(4.0)),
            (600, Some(600.0)),
        ] {
            let as_of = [AsOf { partition: 0, next_offset }, AsOf { partition: 1, next_offset }];
            fold.advance(&as_of).unwrap();
            let found = fold.market_of("A:X", &as_of);
            assert_eq!(found.as_ref().and_then(|found| found.spot), spot, "as of {next_offset}");
            assert!(found.is_none_or(|found| (found.partition, found.next_offset) == (0, next_offset)));
            assert_eq!(fold.market_of("A:Y", &as_of), None);
        }
    }
}
