//! Foreign records among the ticks of a campaign: near every limit, most of them poison, and some in transactions that
//! are never committed. All of them are counted, and compared with the log and the dead letters.

use std::collections::BTreeMap;
use std::time::Duration;

use warptape_eventlog::{EventLog, NewRecord, Producer};
use warptape_schemas::tick::{Scales, Side, Tick, TickColumns, TickKind};
use warptape_schemas::{
    DeadLetterReason, ROWS_MAX, SYMBOL_BYTES_MAX, SymbolTable, TickDecoder, decode_dead_letter, encode_tick,
    encode_tick_batch,
};

use super::campaign::Scene;
use super::history::Random;
use super::kafka_bombs::publish_bomb;
use super::kafka_market::{Market, PARTITIONS};
use super::kafka_poison::{noise, poison};
use super::outputs::records;
use super::processes::Running;

/// Venue of good foreign ticks. The next constants are the venues of ticks too far ahead, and of aborted ticks.
const GOOD: &str = "STRANGER";
const AHEAD: &str = "AHEAD";
const ABORTED: &str = "ABORTED";
/// Greatest distance of a record's size from the limit, in bytes.
const BELOW_LIMIT_BYTES: u64 = 64;
/// Greatest size of records that fit their topic only after compression by the client, in bytes.
const COMPRESSIBLE_BYTES_MAX: u64 = 16 << 20;
/// Number of symbols of a batch with the greatest number of rows. The next constant is the number of rows of a batch
/// with the longest symbols.
const WIDE_SYMBOLS: usize = 7;
const LONG_SYMBOLS: u64 = 16;
/// Greatest number of records of a jump; an eighth one would be followed.
const AHEAD_RECORDS_MAX: u64 = 7;
/// Distance between jumps, in nanoseconds. It exceeds the limit, so no two jumps count as one.
const AHEAD_STEP_NS: i64 = 10 * 86_400_000_000_000;
/// Number of aborted ticks in each partition. The next constant is the greatest time for which their transaction stays
/// open.
const ABORTED_TICKS: u64 = 20;
const OPEN_MS_MAX: u64 = 500;
/// Compression of a bomb. The next constant is its number of records of 5 MB each.
const BOMB_CODEC: &str = "zstd";
const BOMB_RECORDS: usize = 180;

/// Kinds of foreign records.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Poison with a random reason.
    AnyPoison,
    /// Noise of the greatest size that the topic accepts.
    LargeNoise,
    /// Zeros that the topic accepts only in compressed form.
    Compressible,
    /// A good batch with the greatest number of rows.
    Wide,
    /// A batch with one row too many.
    TooWide,
    /// Good ticks with the longest allowed symbols.
    LongSymbols,
    /// Ticks that are too far ahead.
    Ahead,
}

const KINDS: [Kind; 7] = [
    Kind::AnyPoison,
    Kind::LargeNoise,
    Kind::Compressible,
    Kind::Wide,
    Kind::TooWide,
    Kind::LongSymbols,
    Kind::Ahead,
];

/// A record or a batch that must become a dead letter.
enum Dying {
    /// A record, given by its key and value.
    Record(Vec<u8>, Vec<u8>),
    /// A batch with this number of records.
    Batch(usize),
}

/// The foreign records of an episode, as far as published.
#[derive(Default)]
pub struct Strangers {
    /// Kinds that still have to come before any kind comes again.
    next: Vec<Kind>,
    published: i64,
    /// Number of foreign ticks that are processed as ticks.
    good_ticks: u64,
    /// Number of ticks too far ahead.
    ahead_ticks: u64,
    /// Records and batches that must become dead letters, by partition, in order.
    poison: BTreeMap<i32, Vec<Dying>>,
}

impl Strangers {
    /// Returns the number of dead letters that there must be.
    pub fn dead(&self) -> u64 {
        self.poison.values().map(|records| records.len() as u64).sum()
    }

    /// Returns the number of foreign ticks in the log, and of other foreign records.
    pub fn readable(&self) -> [u64; 2] {
        [self.good_ticks + self.ahead_ticks, self.dead() - self.ahead_ticks]
    }

    /// Publishes a record in a random partition, among the market's ticks.
    pub fn publish(&mut self, scene: &dyn Scene, random: &mut Random) {
        if self.next.is_empty() {
            self.next = KINDS.to_vec();
        }
        let kind = self.next.remove(random.below(self.next.len() as u64) as usize);
        let partition = random.below(scene.partitions() as u64) as i32;
        self.published += 1;
        let key = format!("stranger {}", self.published).into_bytes();
        let values = self.values(kind, scene, partition, key.len(), random);
        println!("  {kind:?}: {} in partition {partition}", values.len());
        let log = scene.compressing();
        let log: &dyn EventLog = match kind {
            Kind::Compressible | Kind::Wide | Kind::TooWide => &*log,
            _ => scene.log(),
        };
        let mut producer = log.producer(&format!("{}-stranger", topic(scene))).expect("a producer");
        producer.begin().expect("a transaction");
        for value in &values {
            send(&mut *producer, scene, partition, &key, value);
        }
        producer.commit().expect("a commit");
        if !matches!(kind, Kind::Wide | Kind::LongSymbols) {
            self.poison
                .entry(partition)
                .or_default()
                .extend(values.into_iter().map(|value| Dying::Record(key.clone(), value)));
        }
    }

    /// Publishes a batch with an unbounded unpacked size in a random partition.
    pub fn bomb(&mut self, market: &Market, random: &mut Random) {
        let partition = random.below(PARTITIONS as u64) as i32;
        println!("  a bomb in partition {partition}");
        publish_bomb(market.brokers(), &market.topic("ticks"), partition, BOMB_CODEC, BOMB_RECORDS);
        self.poison.entry(partition).or_default().push(Dying::Batch(BOMB_RECORDS));
    }

    fn values(
        &mut self,
        kind: Kind,
        scene: &dyn Scene,
        partition: i32,
        key_bytes: usize,
        random: &mut Random,
    ) -> Vec<Vec<u8>> {
        let number = self.published;
        let one_of = |mut all: Vec<Vec<u8>>, random: &mut Random| {
            vec![all.swap_remove(random.below(all.len() as u64) as usize)]
        };
        match kind {
            Kind::AnyPoison => one_of(DeadLetterReason::ALL.into_iter().flat_map(poison).collect(), random),
            Kind::LargeNoise => {
                let below = random.below(BELOW_LIMIT_BYTES) as usize;
                vec![noise(scene.noise_bytes_max() - key_bytes - below)]
            }
            Kind::Compressible => vec![vec![0; random.below(COMPRESSIBLE_BYTES_MAX) as usize]],
            Kind::Wide => {
                let time_ns = market_time_ns(scene, partition);
                let rows = (0..ROWS_MAX).map(|row| {
                    let symbol = format!("{GOOD}:{number}-{}", row % WIDE_SYMBOLS);
                    Tick { price_e9: 1_000_000_000 + (row % 101) as i64, ..trade(symbol, time_ns) }
                });
                self.good_ticks += ROWS_MAX as u64;
                vec![batch(&rows.collect::<Vec<_>>())]
            }
            Kind::TooWide => one_of(poison(DeadLetterReason::TooManyRows), random),
            Kind::LongSymbols => {
                let time_ns = market_time_ns(scene, partition);
                let symbol = |row: u64| {
                    format!("{GOOD}:{:0>1$}", number * 100 + row as i64, SYMBOL_BYTES_MAX - GOOD.len() - 1)
                };
                self.good_ticks += LONG_SYMBOLS;
                vec![batch(&(0..LONG_SYMBOLS).map(|row| trade(symbol(row), time_ns)).collect::<Vec<_>>())]
            }
            Kind::Ahead => {
                let time_ns = i64::MAX - number * AHEAD_STEP_NS;
                let count = 1 + random.below(AHEAD_RECORDS_MAX);
                self.ahead_ticks += count;
                (0..count).map(|row| one(&trade(format!("{AHEAD}:{row}"), time_ns + row as i64))).collect()
            }
        }
    }

    /// Begins a transaction over all partitions that is never committed: it is aborted, dropped, or fenced.
    pub fn abort(&mut self, scene: &dyn Scene, run: &mut Running, random: &mut Random) {
        let id = format!("{}-aborted", topic(scene));
        let mut producer = scene.log().producer(&id).expect("a producer");
        producer.begin().expect("a transaction");
        for partition in 0..scene.partitions() {
            let time_ns = market_time_ns(scene, partition);
            for number in 0..ABORTED_TICKS {
                let tick = one(&trade(format!("{ABORTED}:{number}"), time_ns + number as i64));
                send(&mut *producer, scene, partition, b"aborted", &tick);
                send(&mut *producer, scene, partition, b"aborted", b"no tick, and never committed");
            }
        }
        run.run_for(Duration::from_millis(random.below(OPEN_MS_MAX)));
        match random.below(3) {
            0 => producer.abort().expect("an abort"),
            1 => drop(producer),
            _ => {
                let _newer = scene.log().producer(&id).expect("a producer");
                assert!(producer.commit().is_err(), "a fenced producer has committed");
            }
        }
    }

    /// Asserts that the log has these ticks by venue, besides the foreign ones, and no others.
    pub fn check_ticks(&self, scene: &dyn Scene, others: &[(&str, u64)]) {
        let own = [(GOOD, self.good_ticks), (AHEAD, self.ahead_ticks)];
        let expected = own.iter().chain(others).filter(|(_, ticks)| *ticks > 0);
        let expected: BTreeMap<String, u64> =
            expected.map(|(venue, ticks)| ((*venue).to_owned(), *ticks)).collect();
        assert_eq!(ticks_by_venue(scene), expected, "ticks in the log by venue");
    }

    /// Asserts that each expected record became one dead letter, and that no other record did.
    pub fn check_dead_letters(&self, scene: &dyn Scene) {
        for partition in 0..scene.partitions() {
            let expected = self.poison.get(&partition).map_or(&[][..], Vec::as_slice);
            let letters = records(scene.log(), &format!("{}dead-letter", scene.prefix()), partition);
            assert_eq!(letters.len(), expected.len(), "dead letters of partition {partition}");
            for (letter, dying) in letters.iter().zip(expected) {
                let letter = decode_dead_letter(&letter.value).expect("a dead letter");
                let (is_next, name) = match dying {
                    Dying::Record(key, value) => {
                        (letter.is_of(Some(key), value), String::from_utf8_lossy(key).into_owned())
                    }
                    Dying::Batch(count) => {
                        let is_whole = letter.last_offset == Some(letter.offset + *count as i64 - 1);
                        let is_batch = letter.reason == DeadLetterReason::UnreadableBatch && is_whole;
                        (is_batch, format!("a batch of {count} records"))
                    }
                };
                assert!(is_next, "partition {partition}: {name} is not the next to die, but {letter:?}");
            }
        }
    }
}

/// Returns the time of the market in a partition, as far as its records are readable.
pub fn market_time_ns(scene: &dyn Scene, partition: i32) -> i64 {
    let (mut symbols, mut columns) = (SymbolTable::default(), TickColumns::default());
    let mut decoder = TickDecoder::new();
    for record in scene.ticks()[partition as usize].iter().rev() {
        let is_tick = decoder.decode(&record.value, &mut symbols, &mut columns).is_ok();
        if is_tick && venue(&symbols, columns.symbol[0]) == "SYNTH" {
            return columns.event_time_ns[0];
        }
        columns.clear();
    }
    panic!("partition {partition} has no ticks of the market");
}

fn ticks_by_venue(scene: &dyn Scene) -> BTreeMap<String, u64> {
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    let mut decoder = TickDecoder::new();
    for ticks in scene.ticks() {
        let (mut symbols, mut columns) = (SymbolTable::default(), TickColumns::default());
        for record in ticks {
            columns.clear();
            if decoder.decode(&record.value, &mut symbols, &mut columns).is_err() {
                continue;
            }
            for symbol in &columns.symbol {
                *found.entry(venue(&symbols, *symbol).to_owned()).or_default() += 1;
            }
        }
    }
    found
}

fn venue(symbols: &SymbolTable, symbol: u32) -> &str {
    let name = symbols.name(symbol);
    name.split_once(':').map_or(name, |(venue, _)| venue)
}

fn topic(scene: &dyn Scene) -> String {
    format!("{}ticks", scene.prefix())
}

fn send(producer: &mut dyn Producer, scene: &dyn Scene, partition: i32, key: &[u8], value: &[u8]) {
    let (topic, key) = (topic(scene), Some(key.into()));
    let record = NewRecord {
        topic: topic.as_str().into(),
        partition,
        key,
        value: value.into(),
        ..NewRecord::default()
    };
    producer.send(record).expect("a record of the transaction");
}

fn trade(symbol: String, event_time_ns: i64) -> Tick {
    Tick {
        symbol,
        kind: TickKind::Trade,
        event_time_ns,
        receive_time_ns: 0,
        trade_id: 0,
        side: Side::Buy,
        price_e9: 1_000_000_000,
        size_e9: 1,
        bid_price_e9: 0,
        bid_size_e9: 0,
        ask_price_e9: 0,
        ask_size_e9: 0,
        scales: Scales::E9,
    }
}

fn one(tick: &Tick) -> Vec<u8> {
    let mut value = Vec::new();
    encode_tick(tick, &mut value).expect("a good tick");
    value
}

fn batch(ticks: &[Tick]) -> Vec<u8> {
    let mut value = Vec::new();
    encode_tick_batch(ticks, &mut value).expect("a good batch");
    value
}
