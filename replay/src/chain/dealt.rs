//! Finds the record of each row of a group. The journal alone does not show it, because it only counts the rows of
//! several records together.
//!
//! The intake deals the records again, starting some records earlier. The result is accepted if every group has as many
//! rows as the journal says. Otherwise the start lacked state, and the next try starts earlier.

use std::ops::Range;
use std::sync::Arc;

use warptape_engine::tick_record;
use warptape_eventlog::{EventLog, OffsetRange, Record, TopicPartition};
use warptape_schemas::journal::GroupIndex;
use warptape_schemas::{TickColumns, TickDecoder};
use warptape_stages::{GroupQueue, PartitionIntake, RowKind, Rows, StageConfig};

use crate::history::Arrival;
use crate::partition_reader::PartitionReader;
use crate::{OutputOptions, ReplayError};

/// Number of records before an arrival at which each try of the intake starts.
const WARM_UP_RECORDS: [i64; 4] = [64, 1_024, 16_384, 262_144];

/// The rows of an arrival, by group.
pub(crate) struct Dealt {
    groups: Vec<Vec<DealtRow>>,
    /// Symbols of the partition, by number.
    symbols: Vec<String>,
}

/// A row.
#[derive(Clone, Copy)]
struct DealtRow {
    /// Offset of the record, and index of the tick within it.
    tick: (i64, u32),
    /// Number of the tick's symbol; `None` for a row that moves a watermark.
    symbol: Option<u32>,
}

impl Dealt {
    /// Returns the index, among a group's rows, of the first or last row that a tick caused. The first may be the row
    /// of the watermark that the tick moved; the last is the tick's own.
    pub(crate) fn row_of(&self, group: GroupIndex, tick: (i64, u32), is_first: bool) -> Option<i64> {
        let rows = self.groups.get(usize::try_from(group).ok()?)?;
        let first = rows.partition_point(|row| row.tick < tick);
        let next = rows.partition_point(|row| row.tick <= tick);
        let found = if is_first { first } else { next.checked_sub(1)? };
        (first < next).then_some(found as i64)
    }

    /// Returns the number of a group's rows from records up to the one at an offset.
    pub(crate) fn rows_through(&self, group: GroupIndex, offset: i64) -> i64 {
        let rows = usize::try_from(group).ok().and_then(|group| self.groups.get(group));
        rows.map_or(0, |rows| rows.partition_point(|row| row.tick.0 <= offset) as i64)
    }

    /// Returns the symbols of the ticks in a range of a group's rows.
    pub(crate) fn symbols_of(&self, group: GroupIndex, rows: Range<i64>) -> impl Iterator<Item = &str> {
        let all = usize::try_from(group).ok().and_then(|group| self.groups.get(group));
        let place = |row: i64| usize::try_from(row).unwrap_or(0);
        let some = all.and_then(|all| all.get(place(rows.start)..place(rows.end).min(all.len())));
        let number = |row: &DealtRow| row.symbol.and_then(|number| usize::try_from(number).ok());
        some.unwrap_or_default()
            .iter()
            .filter_map(number)
            .filter_map(|number| self.symbols.get(number))
            .map(String::as_str)
    }

    /// True if every group has as many rows as the arrival says. The rows of a snapshot's barrier, one for each group,
    /// are at the end.
    fn fits(&self, arrival: &Arrival) -> bool {
        let mut more = self
            .groups
            .iter()
            .enumerate()
            .map(|(group, rows)| arrival.rows_of(group as GroupIndex) - rows.len() as i64);
        let Some(first) = more.next() else { return false };
        (0..=1).contains(&first) && more.all(|other| other == first)
    }
}

/// Deals arrivals again, and caches the last one.
pub(crate) struct Dealer<'a> {
    log: &'a dyn EventLog,
    options: &'a OutputOptions,
    last: Option<(Arc<Arrival>, Option<Arc<Dealt>>)>,
}

impl<'a> Dealer<'a> {
    pub(crate) fn new(log: &'a dyn EventLog, options: &'a OutputOptions) -> Self {
        Self { log, options, last: None }
    }

    /// Returns the rows of an arrival under a configuration; `None` if the log no longer has their records.
    pub(crate) fn deal(
        &mut self,
        config: &StageConfig,
        arrival: &Arc<Arrival>,
    ) -> Result<Option<Arc<Dealt>>, ReplayError> {
        if let Some((last, dealt)) = &self.last
            && Arc::ptr_eq(last, arrival)
        {
            return Ok(dealt.clone());
        }
        let dealt = self.deal_anew(config, arrival)?.map(Arc::new);
        self.last = Some((arrival.clone(), dealt.clone()));
        Ok(dealt)
    }

    fn deal_anew(&self, config: &StageConfig, arrival: &Arrival) -> Result<Option<Dealt>, ReplayError> {
        let Some((first, next)) = arrival.offsets else { return Ok(None) };
        let topic = self.log.topic(&self.options.ticks)?;
        let range =
            topic.and_then(|topic| topic.offsets.get(usize::try_from(arrival.partition).ok()?).copied());
        let Some(range) = range.filter(|range| range.first <= first && next <= range.next) else {
            return Ok(None);
        };
        for records in WARM_UP_RECORDS {
            let start = range.first.max(first - records);
            let mut fold = Fold::new(config, self.options);
            let source = TopicPartition { topic: self.options.ticks.clone(), partition: arrival.partition };
            let mut reader = PartitionReader::open(self.log, source, OffsetRange { first: start, next })?;
            while let Some(record) = reader.next()? {
                fold.accept(&record, record.offset >= first);
            }
            if fold.dealt.fits(arrival) {
                return Ok(Some(fold.finish()));
            }
            if start == range.first {
                break;
            }
        }
        Ok(None)
    }
}

/// State of the intake after some records.
struct Fold {
    intake: PartitionIntake,
    queues: Vec<GroupQueue>,
    decoder: TickDecoder,
    columns: TickColumns,
    dealt: Dealt,
}

impl Fold {
    fn new(config: &StageConfig, options: &OutputOptions) -> Self {
        let groups = config.groups_per_partition as usize;
        Self {
            intake: PartitionIntake::new(config),
            queues: (0..groups).map(|_| GroupQueue::default()).collect(),
            decoder: TickDecoder::with_source(options.schemas.clone()).by_rows(true),
            columns: TickColumns::default(),
            dealt: Dealt { groups: vec![Vec::new(); groups], symbols: Vec::new() },
        }
    }

    fn accept(&mut self, record: &Record, is_kept: bool) {
        let (columns, queues) = (&mut self.columns, &mut self.queues);
        // Rejected records have no rows.
        let (intake, decoder) = (&mut self.intake, &mut self.decoder);
        let _ = tick_record(record)
            .and_then(|record| intake.accept_record(record, decoder, columns, queues, &mut Vec::new()));
        let symbols = if is_kept { self.columns.symbol.clone() } else { Vec::new() };
        for (queue, dealt) in self.queues.iter_mut().zip(&mut self.dealt.groups) {
            if is_kept {
                let Rows { kind, offset, index, .. } = &queue.rows;
                let rows = kind.iter().zip(offset.iter().zip(index));
                dealt.extend(rows.map(|(kind, (offset, index))| {
                    DealtRow {
                        tick: (*offset, *index),
                        symbol: (kind.is_trade() || *kind == RowKind::QUOTE)
                            .then(|| symbols.get(*index as usize).copied())
                            .flatten(),
                    }
                }));
            }
            *queue = GroupQueue::default();
        }
    }

    fn finish(mut self) -> Dealt {
        self.dealt.symbols = self.intake.symbols_mut().iter().map(str::to_owned).collect();
        self.dealt
    }
}
