//! Publishes ticks in the log: gathers them into records, encodes these, and writes them in transactions.
//!
//! The publisher is the producer of the source topic for `feed` and `demo`. It must not know the origin of ticks, and
//! reads the clock only for the create time of records.

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::sync::Arc;

use warptape_eventlog::{About, EventLog, LogError, NewRecord, Producer, TopicPartition, TopicSpec};
use warptape_schemas::tick::{Scales, Tick, TickKind};
use warptape_schemas::{
    EncodeError, SetEventTime, SymbolTable, encode_packed_tick_batch, encode_set_event_time, encode_tick,
};

use crate::clock::wall_clock_ns;
use crate::feed_ledger::FeedLedger;
use crate::runtime::{TopicPlan, Topics, topic_specs};
use crate::transaction::{StoppingSince, Transaction, TransactionWriter};
use warptape_sources::{Batcher, BatcherConfig, TickRecord};

/// Number of ticks at which a transaction is committed.
pub const TRANSACTION_TICKS_MAX: u64 = 65_536;
/// Longest wait of a tick for its record, in multiples of the ticks that fill a record of every partition.
const RECORDS_WAITED_MAX: u64 = 8;

/// Reasons why ticks could not be published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A tick is invalid, and no consumer would accept it. Its whole record is not published.
    #[error("tick of {symbol} at {event_time_ns} ns cannot be published: {cause}")]
    Tick {
        /// Symbol of the tick.
        symbol: String,
        /// Event time of the tick.
        event_time_ns: i64,
        /// The mistake.
        cause: EncodeError,
    },
}

/// Number of committed ticks and records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// Number of ticks.
    pub ticks: u64,
    /// Number of records with these ticks.
    pub records: u64,
}

/// Publishes ticks. Ticks that are not flushed before the publisher is dropped are not published.
///
/// A transaction is written once it is complete, and again until it is known to be in the log. Each transaction also
/// commits its number as an offset of a consumer group that only this publisher uses. So the log itself shows whether a
/// transaction without an answer was written.
pub struct Publisher {
    writer: TransactionWriter,
    batcher: Batcher,
    ledger: FeedLedger,
    /// Number of ticks accepted since the last commit.
    taken_ticks: u64,
    open: TickTransaction,
    published: Published,
    in_doubt_ticks: u64,
}

/// Records that are published together.
struct TickTransaction {
    topic: String,
    /// Group whose committed offset of the topic's first partition is the number of the last transaction.
    group: String,
    number: i64,
    /// Offset that was committed before this transaction; `None` before the first.
    number_before: Option<i64>,
    records: Vec<EncodedRecord>,
    ticks: u64,
    /// Number of `SetEventTime` records.
    words: u64,
    first_scales: FirstScales,
    /// Create time of the next records; `None` is the current time.
    stamp_ns: Option<i64>,
    /// Topic of the records with the sources' progress.
    feeds_topic: String,
    feeds: Vec<(String, Vec<u8>)>,
}

struct EncodedRecord {
    partition: i32,
    key: Option<String>,
    timestamp_ns: i64,
    value: Vec<u8>,
    /// Symbols of the ticks, as numbers of the transaction's table, each once.
    symbols: Vec<u32>,
    /// Least and greatest time that readers compare.
    times: (i64, i64),
}

impl Publisher {
    /// Creates a publisher for the topic of ticks with this number of partitions. `batch` is the greatest number of
    /// ticks in a record. `name` becomes the transactional id, and the name of a consumer group: a second publisher of
    /// the same name fences this one. Once `stopping_since` returns a time, calls wait less for a log that does not
    /// answer.
    pub fn new(
        log: &Arc<dyn EventLog>,
        name: &str,
        topic: &str,
        partitions: i32,
        batch: NonZeroUsize,
        stopping_since: StoppingSince,
    ) -> Result<Publisher, LogError> {
        let writer = TransactionWriter::new(log.clone(), name.to_owned(), stopping_since)?;
        let mut open = TickTransaction {
            topic: topic.to_owned(),
            group: name.to_owned(),
            number: 0,
            number_before: None,
            records: Vec::new(),
            ticks: 0,
            words: 0,
            first_scales: FirstScales::default(),
            stamp_ns: None,
            feeds_topic: String::new(),
            feeds: Vec::new(),
        };
        open.number_before = log.committed(&open.group, &open.counter())?;
        open.number = first_number(&log.url(), open.number_before);
        let age_ticks_max = RECORDS_WAITED_MAX * partitions.unsigned_abs() as u64 * batch.get() as u64;
        Ok(Publisher {
            writer,
            batcher: Batcher::new(BatcherConfig { partitions, record_ticks_max: batch, age_ticks_max }),
            ledger: FeedLedger::default(),
            taken_ticks: 0,
            open,
            published: Published::default(),
            in_doubt_ticks: 0,
        })
    }

    /// Sets the create time of the records that are complete from now on, ns since the epoch. Without it, that is the
    /// current time.
    pub fn stamp(&mut self, create_ns: i64) {
        self.open.stamp_ns = Some(create_ns);
    }

    /// Starts to keep the progress of a feed's inputs in the log.
    pub fn keep(&mut self, ledger: FeedLedger) {
        ledger.topic().clone_into(&mut self.open.feeds_topic);
        self.ledger = ledger;
    }

    /// Accepts a tick of an input. The tick is in the log after [`Publisher::flush`] at the latest.
    pub fn push_from(&mut self, input: usize, tick: Tick) -> Result<(), PublishError> {
        self.ledger.count(input);
        self.push(tick)
    }

    /// Records the scale of a symbol's first price, in the transaction of the next tick.
    pub fn begin_scale(&mut self, symbol: String, scale: u8) {
        self.ledger.begin_scale(symbol, scale);
    }

    /// Accepts a tick, which is in the log after [`Publisher::flush`] at the latest.
    pub fn push(&mut self, tick: Tick) -> Result<(), PublishError> {
        let mut released = Vec::new();
        self.batcher.push(tick, &mut released);
        released.iter().try_for_each(|record| self.open.add(record))?;
        self.taken_ticks += 1;
        // All accepted ticks are flushed together, because a transaction also records the inputs' progress.
        if self.taken_ticks >= TRANSACTION_TICKS_MAX { self.flush() } else { Ok(()) }
    }

    /// Sets a partition's event time with a record among its ticks, in the transaction of the next tick.
    pub fn say_event_time(&mut self, partition: i32, set: &SetEventTime) -> Result<(), PublishError> {
        let mut released = Vec::new();
        self.batcher.flush_partition(partition, &mut released);
        released.iter().try_for_each(|record| self.open.add(record))?;
        self.open.add_word(partition, set);
        Ok(())
    }

    /// Commits all accepted ticks.
    pub fn flush(&mut self) -> Result<(), PublishError> {
        let mut released = Vec::new();
        self.batcher.flush(&mut released);
        released.iter().try_for_each(|record| self.open.add(record))?;
        self.taken_ticks = 0;
        self.commit()
    }

    /// Commits all accepted ticks, and records that the inputs are complete.
    pub fn finish(&mut self) -> Result<(), PublishError> {
        self.ledger.finish();
        self.flush()
    }

    /// Returns the committed ticks and records.
    pub fn published(&self) -> Published {
        self.published
    }

    /// Returns the number of ticks in a transaction that was given up with an unknown outcome: they may be in the log.
    pub fn in_doubt_ticks(&self) -> u64 {
        self.in_doubt_ticks
    }

    fn commit(&mut self) -> Result<(), PublishError> {
        self.open.feeds = self.ledger.take_records();
        if self.open.records.is_empty() && self.open.feeds.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.writer.write_surely(&self.open) {
            if is_in_doubt(&error) {
                self.in_doubt_ticks = self.open.ticks;
            }
            return Err(error.into());
        }
        self.published.ticks += self.open.ticks;
        self.published.records += self.open.records.len() as u64 - self.open.words;
        self.open.begin_next();
        Ok(())
    }
}

/// True if a tick does not fit a record of one tick. Such a record has prices and sizes in 1e-9, and a price of 0 in it
/// means "none".
fn needs_scales(tick: &Tick) -> bool {
    tick.scales != Scales::E9 || tick.kind == TickKind::Trade && tick.price_e9 == 0
}

/// The scale of each symbol's first price, and the symbols of each record.
#[derive(Debug, Default)]
struct FirstScales {
    symbols: SymbolTable,
    /// Scales, indexed by the symbols' numbers.
    scales: Vec<u8>,
    /// Number of each symbol's last record, indexed alike. Below: number of records.
    last_records: Vec<u64>,
    records: u64,
}

impl FirstScales {
    /// Returns the symbol of a tick whose price has another scale than the symbol's first price. Such a price may not
    /// be comparable with the earlier ones, and its record then becomes a dead letter. So such ticks get their own
    /// records.
    fn is_alone<'a>(&mut self, tick: &'a Tick) -> (u32, Option<&'a str>) {
        let symbol = self.symbols.intern(&tick.symbol);
        let index = symbol as usize;
        if index == self.scales.len() {
            self.scales.push(tick.scales.price);
            self.last_records.push(0);
        }
        (symbol, (self.scales[index] != tick.scales.price).then_some(&tick.symbol))
    }

    /// Returns each symbol of a record once.
    fn distinct(&mut self, symbols: impl Iterator<Item = u32>) -> Vec<u32> {
        self.records += 1;
        let is_first = |symbol: &u32| {
            std::mem::replace(&mut self.last_records[*symbol as usize], self.records) != self.records
        };
        symbols.filter(is_first).collect()
    }
}

impl TickTransaction {
    fn add(&mut self, record: &TickRecord) -> Result<(), PublishError> {
        let alone: Vec<(u32, Option<&str>)> =
            record.ticks.iter().map(|tick| self.first_scales.is_alone(tick)).collect();
        let mut ticks = record.ticks.as_slice();
        for run in alone.chunk_by(|(_, one), (_, next)| one == next) {
            let (of_run, others) = ticks.split_at(run.len());
            let symbols = self.first_scales.distinct(run.iter().map(|(symbol, _)| *symbol));
            self.add_record(record.partition, of_run, symbols)?;
            ticks = others;
        }
        Ok(())
    }

    fn add_record(&mut self, partition: i32, ticks: &[Tick], symbols: Vec<u32>) -> Result<(), PublishError> {
        let mut value = Vec::new();
        let encoded = match ticks {
            [tick] if !needs_scales(tick) => encode_tick(tick, &mut value),
            ticks => encode_packed_tick_batch(ticks, &mut value),
        };
        encoded.map_err(|cause| refused(ticks, cause))?;
        // A batch may contain many symbols, so only a single tick has a key.
        let key = if let [tick] = ticks { Some(tick.symbol.clone()) } else { None };
        let timestamp_ns = self.stamp_ns.unwrap_or_else(wall_clock_ns);
        let times_ns = ticks.iter().map(|tick| tick.event_time_ns);
        let times = (times_ns.clone().min().unwrap_or_default(), times_ns.max().unwrap_or_default());
        self.records.push(EncodedRecord { partition, key, timestamp_ns, value, symbols, times });
        self.ticks += ticks.len() as u64;
        Ok(())
    }

    fn add_word(&mut self, partition: i32, set: &SetEventTime) {
        let mut value = Vec::new();
        encode_set_event_time(set, &mut value);
        let timestamp_ns = wall_clock_ns();
        let (symbols, times) = (Vec::new(), (timestamp_ns, timestamp_ns));
        self.records.push(EncodedRecord { partition, key: None, timestamp_ns, value, symbols, times });
        self.words += 1;
    }

    /// Describes a record for readers of some symbols or times.
    fn about<'a>(&'a self, record: &EncodedRecord) -> About<'a> {
        let name = |symbol: &u32| Cow::Borrowed(self.first_scales.symbols.name(*symbol).as_bytes());
        let (least_ns, greatest_ns) = record.times;
        About { keys: record.symbols.iter().map(name).collect(), least_ns, greatest_ns }
    }

    fn begin_next(&mut self) {
        self.number_before = Some(self.number);
        self.number += 1;
        self.records.clear();
        (self.ticks, self.words) = (0, 0);
    }

    fn counter(&self) -> TopicPartition {
        TopicPartition { topic: self.topic.clone(), partition: 0 }
    }
}

impl Transaction for TickTransaction {
    fn send(&self, producer: &mut dyn Producer) -> Result<(), LogError> {
        for record in &self.records {
            producer.send(NewRecord {
                topic: self.topic.as_str().into(),
                partition: record.partition,
                key: record.key.as_deref().map(|key| key.as_bytes().into()),
                headers: Cow::default(),
                timestamp_ns: record.timestamp_ns,
                value: record.value.as_slice().into(),
                about: Some(self.about(record)),
            })?;
        }
        for (key, value) in &self.feeds {
            producer.send(NewRecord {
                topic: self.feeds_topic.as_str().into(),
                key: Some(key.as_bytes().into()),
                timestamp_ns: wall_clock_ns(),
                value: value.as_slice().into(),
                ..NewRecord::default()
            })?;
        }
        producer.send_offsets(&self.group, &[(self.counter(), self.number)])
    }

    fn is_committed(&self, log: &dyn EventLog) -> Result<bool, LogError> {
        Ok(log.committed(&self.group, &self.counter())? == Some(self.number))
    }

    /// True if another publisher of the same name has written transactions since.
    fn is_superseded(&self, log: &dyn EventLog) -> Result<bool, LogError> {
        let committed = log.committed(&self.group, &self.counter())?;
        // Numbers only grow, and another publisher continues from the number that it finds.
        if committed < self.number_before {
            let (url, transactional_id) = (log.url(), self.group.clone());
            return Err(LogError::TransactionLost { url, transactional_id });
        }
        Ok(committed != self.number_before && committed != Some(self.number))
    }
}

/// Creates missing topics; returns the number of partitions of the topic of ticks.
pub fn create_missing_topics(log: &dyn EventLog, names: &Topics, plan: &TopicPlan) -> Result<i32, LogError> {
    let missing = MissingTopics::find(log, names, plan)?;
    log.create_topics(&missing.specs)?;
    Ok(missing.partitions)
}

/// Missing topics of a log.
pub struct MissingTopics {
    /// Specifications of the missing topics. A topic that belongs to the topic of ticks, or to the journal, gets as
    /// many partitions as that one has.
    pub specs: Vec<TopicSpec>,
    /// Number of partitions of the topic of ticks, existing or planned.
    pub partitions: i32,
    /// Existing topics that are compacted, although none of their records may be removed.
    pub compacted: Vec<String>,
}

impl MissingTopics {
    /// Compares the topics of the log with the plan.
    pub fn find(log: &dyn EventLog, names: &Topics, plan: &TopicPlan) -> Result<Self, LogError> {
        let planned = topic_specs(names, plan);
        let existing = log.topics_named(&planned.iter().map(|spec| &*spec.name).collect::<Vec<_>>())?;
        let ticks = existing.iter().find(|topic| topic.spec.name == names.ticks);
        let partitions = ticks.map_or(plan.partitions, |topic| topic.spec.partitions);
        let journal = existing.iter().find(|topic| topic.spec.name == names.journal);
        let journal_partitions = journal.map_or(plan.journal_partitions, |topic| topic.spec.partitions);
        let mut specs = topic_specs(names, &TopicPlan { partitions, journal_partitions, ..*plan });
        let is_compacted = |spec: &&TopicSpec| {
            let found = existing.iter().find(|topic| topic.spec.name == spec.name);
            !spec.compacted && found.is_some_and(|topic| topic.spec.compacted)
        };
        let compacted = specs.iter().filter(is_compacted).map(|spec| spec.name.clone()).collect();
        specs.retain(|spec| !existing.iter().any(|topic| topic.spec.name == spec.name));
        Ok(Self { specs, partitions, compacted })
    }
}

/// True if a transaction given up with this error may still be in the log.
fn is_in_doubt(error: &LogError) -> bool {
    matches!(error, LogError::OutcomeUnknown { .. } | LogError::Unreachable { .. } | LogError::Broker { .. })
}

fn refused(ticks: &[Tick], cause: EncodeError) -> PublishError {
    let row = if let EncodeError::Invalid(invalid) = &cause { invalid.row } else { 0 };
    let tick = &ticks[row.min(ticks.len() - 1)];
    PublishError::Tick { symbol: tick.symbol.clone(), event_time_ns: tick.event_time_ns, cause }
}

/// Returns a publisher's first number. Earlier publishers of its name may have counted, and on a cluster a replaced one
/// may still do so. The clock makes the numbers differ, because no two publishers start at the same time. The embedded
/// log checks offsets against its records, and rejects a replaced publisher at once.
fn first_number(url: &str, before: Option<i64>) -> i64 {
    let next = before.unwrap_or(0).saturating_add(1);
    if url.starts_with("kafka:") { next.max(wall_clock_ns()) } else { next }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use warptape_eventlog::{Durability, Fetched, SqliteLog, TopicPartition};
    use warptape_schemas::tick::{Scales, Side, TickKind};
    use warptape_schemas::{SymbolTable, TickColumns, TickDecoder};

    use super::*;
    use warptape_sources::partition_of;

    const PARTITIONS: i32 = 3;

    #[test]
    fn a_topic_that_is_compacted_and_must_not_be_is_told_of() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let log = SqliteLog::open(folder.path().join("w.db"), Durability::Process).expect("a new log");
        let names = Topics::new("t.");
        let spec = |name: &str| TopicSpec {
            name: name.to_owned(),
            partitions: PARTITIONS,
            compacted: true,
            ..TopicSpec::default()
        };
        log.create_topics(&[spec(&names.ticks), spec(&names.journal), spec(&names.snapshots)])
            .expect("topics");
        let missing = MissingTopics::find(&log, &names, &TopicPlan::new(PARTITIONS)).expect("topics");
        assert_eq!(missing.compacted, [names.ticks, names.journal]);
    }

    fn log() -> (tempfile::TempDir, Arc<dyn EventLog>, Topics) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let log = SqliteLog::open(folder.path().join("w.db"), Durability::Process).expect("a new log");
        let names = Topics::new("t.");
        assert_eq!(create_missing_topics(&log, &names, &TopicPlan::new(PARTITIONS)).unwrap(), PARTITIONS);
        (folder, Arc::new(log), names)
    }

    fn tick(number: i64) -> Tick {
        Tick {
            symbol: format!("A:S{}", number % 7),
            kind: TickKind::Trade,
            event_time_ns: 1 + number,
            receive_time_ns: 0,
            trade_id: number,
            side: Side::Buy,
            price_e9: 5,
            size_e9: 1,
            bid_price_e9: 0,
            bid_size_e9: 0,
            ask_price_e9: 0,
            ask_size_e9: 0,
            scales: Scales::E9,
        }
    }

    /// Returns the trade ids of each partition in log order, and the number of records.
    fn read(log: &Arc<dyn EventLog>, topic: &str) -> (Vec<Vec<i64>>, u64) {
        let mut ids = Vec::new();
        let mut records_read = 0;
        for partition in 0..PARTITIONS {
            let partition = TopicPartition { topic: topic.to_owned(), partition };
            let mut reader = log.reader(std::slice::from_ref(&partition)).unwrap();
            let (mut decoder, mut symbols, mut columns) =
                (TickDecoder::new(), SymbolTable::default(), TickColumns::default());
            let end = reader.offsets(&partition).unwrap().next;
            let mut next = 0;
            while next < end {
                if let Fetched::Records { records, .. } = reader.poll(Duration::ZERO, 100, 1 << 20).unwrap() {
                    for record in records {
                        decoder.decode(&record.value, &mut symbols, &mut columns).unwrap();
                        next = record.offset + 1;
                        records_read += 1;
                    }
                }
            }
            ids.push(columns.trade_id);
        }
        (ids, records_read)
    }

    fn publisher(log: &Arc<dyn EventLog>, names: &Topics, batch: usize) -> Publisher {
        let batch = NonZeroUsize::new(batch).unwrap();
        Publisher::new(log, "test", &names.ticks, PARTITIONS, batch, Box::new(|| None)).unwrap()
    }

    #[test]
    fn every_tick_arrives_once_and_in_order_whatever_the_batch() {
        for batch in [1, 2, 7, 1000] {
            let (_folder, log, names) = log();
            let mut publisher = publisher(&log, &names, batch);
            (0..100).for_each(|number| publisher.push(tick(number)).unwrap());
            publisher.flush().unwrap();
            let (ids, records) = read(&log, &names.ticks);
            assert_eq!(publisher.published(), Published { ticks: 100, records }, "batch {batch}");
            assert!(ids.iter().all(|ids| ids.is_sorted()), "batch {batch}: {ids:?}");
            let mut all: Vec<i64> = ids.into_iter().flatten().collect();
            all.sort_unstable();
            assert_eq!(all, (0..100).collect::<Vec<_>>(), "batch {batch}");
        }
    }

    #[test]
    fn a_price_of_another_scale_than_its_symbols_first_takes_no_other_tick_with_it() {
        let (_folder, log, names) = log();
        let mut publisher = publisher(&log, &names, 100);
        let scaled = |number, scale| Tick { scales: Scales { price: scale, size: 9 }, ..tick(number) };
        // One symbol has the same scale from its first price on, the other one changes its scale.
        let ticks = [tick(0), scaled(1, 14), tick(0), scaled(0, 14), scaled(0, 14), tick(0), scaled(1, 14)];
        let partitions = ticks.iter().map(|tick| partition_of(&tick.symbol, PARTITIONS));
        let partition = partitions.clone().next().unwrap();
        let count = ticks.iter().filter(|tick| partition_of(&tick.symbol, PARTITIONS) == partition).count();
        ticks.clone().into_iter().for_each(|tick| publisher.push(tick).unwrap());
        publisher.flush().unwrap();
        let lengths: Vec<u64> = {
            let partition = TopicPartition { topic: names.ticks.clone(), partition };
            let mut reader = log.reader(std::slice::from_ref(&partition)).unwrap();
            let Fetched::Records { records, .. } = reader.poll(Duration::ZERO, 100, 1 << 20).unwrap() else {
                panic!("the records are there")
            };
            let mut decoder = TickDecoder::new();
            let mut rows = |value: &[u8]| {
                decoder.decode(value, &mut SymbolTable::default(), &mut TickColumns::default()).unwrap()
            };
            records.iter().map(|record| rows(&record.value) as u64).collect()
        };
        assert_eq!(lengths.len(), 3, "before, alone, behind: {lengths:?}");
        assert_eq!((lengths[1], lengths.iter().sum::<u64>()), (2, count as u64));
    }

    #[test]
    fn what_is_not_flushed_is_not_published() {
        let (_folder, log, names) = log();
        let mut first = publisher(&log, &names, 1);
        first.push(tick(0)).unwrap();
        drop(first);
        assert_eq!(read(&log, &names.ticks).1, 0);
        let mut second = publisher(&log, &names, 1);
        second.flush().unwrap();
        assert_eq!(second.published(), Published::default());
    }

    #[test]
    fn who_was_replaced_knows_it_once_the_other_one_has_written() {
        let (_folder, log, names) = log();
        let mut first = publisher(&log, &names, 1);
        let is_superseded = |publisher: &Publisher| publisher.open.is_superseded(log.as_ref()).unwrap();
        assert!(!is_superseded(&first), "nobody has written");
        first.push(tick(0)).unwrap();
        first.flush().unwrap();
        assert!(!is_superseded(&first), "it has written itself");
        let number = first.open.number;
        // The publisher's next transaction may be in the log without its knowledge.
        (first.open.number, first.open.number_before) = (number - 1, None);
        assert!(!is_superseded(&first) && first.open.is_committed(log.as_ref()).unwrap());
        (first.open.number, first.open.number_before) = (number, Some(number - 1));
        let mut second = publisher(&log, &names, 1);
        second.open.number = first_number("kafka:one:9092", second.open.number_before);
        assert_ne!(second.open.number, number, "numbers of two publishers differ");
        assert!(!is_superseded(&first) && !is_superseded(&second));
        second.push(tick(1)).unwrap();
        second.flush().unwrap();
        assert!(is_superseded(&first) && !is_superseded(&second));
        assert!(!first.open.is_committed(log.as_ref()).unwrap());
    }

    #[test]
    fn a_log_that_has_lost_a_transaction_is_not_taken_for_another_publisher() {
        let (_folder, log, names) = log();
        let mut publisher = publisher(&log, &names, 1);
        publisher.push(tick(0)).unwrap();
        publisher.flush().unwrap();
        // Simulates that one more transaction was acknowledged.
        publisher.open.begin_next();
        let error = publisher.open.is_superseded(log.as_ref()).unwrap_err();
        assert!(matches!(error, LogError::TransactionLost { .. }), "{error}");
    }

    #[test]
    fn a_tick_that_cannot_be_is_named() {
        let (_folder, log, names) = log();
        let mut publisher = publisher(&log, &names, 1);
        let error = publisher.push(Tick { size_e9: -1, ..tick(3) }).unwrap_err().to_string();
        assert!(error.contains("tick of A:S3 at 4 ns") && error.contains("size_e9"), "{error}");
    }

    #[test]
    fn existing_topics_keep_their_partitions() {
        let (_folder, log, names) = log();
        assert_eq!(create_missing_topics(log.as_ref(), &names, &TopicPlan::new(8)).unwrap(), PARTITIONS);
        let partitions = |name: &str| {
            let topics = log.topics().unwrap();
            topics.into_iter().find(|topic| topic.spec.name == name).unwrap().spec.partitions
        };
        assert_eq!((partitions(&names.signals), partitions(&names.journal)), (PARTITIONS, 1));
    }
}
