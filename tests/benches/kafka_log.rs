//! Speed of reading and committing through the log on Kafka, compared with rdkafka on the same broker and topics.
//!
//! Reading: the log returns owned records, which may go to other threads. The rival polls rdkafka's `BaseConsumer`. It
//! either detaches each message for the same purpose, or only reads its key and value, which is less work than the log
//! does. The records have no headers, and the log is set to ignore headers; detaching looks for them. Both sides use
//! the same fetch sizes, read a whole topic of committed records, and sum the bytes of keys and values. They are timed
//! from the first record on. The topic is so long that records fetched before it hardly matter.
//!
//! Committing: the rival is a hand-written transaction, without linger and with a thread for delivery reports. It
//! sends, waits for delivery, sends offsets, and commits. Both sides write the same records to 16 partitions with the
//! offsets of 16 source partitions, and are timed from begin to commit. The numbers of visible records are checked at
//! the end.
//!
//! All sides take turns, and their medians are compared. They use the allocator of the `warptape` binary, also for C
//! code. This matters, because one thread allocates and another one frees.
//!
//! To measure, run `tests/services run cargo bench -p warptape-tests --bench kafka_log`.

use std::cell::Cell;
use std::hint::black_box;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer as _, DefaultConsumerContext};
use rdkafka::message::Message;
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer as _, ThreadedProducer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use warptape_allocator::Allocator;
use warptape_eventlog::{
    EventLog, Fetched, KafkaLog, KafkaOptions, NewRecord, Record, TopicPartition, TopicSpec,
};
use warptape_tests::turns::in_turn;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

const PARTITIONS: i32 = 16;
/// Number of records per partition in a committed transaction.
const RECORDS_PER_PARTITION: usize = 10;
const KEY: &[u8] = b"BENCH:SYMBOL";
const VALUE: [u8; 100] = [7; 100];
const LONG: Duration = Duration::from_secs(30);
const READS: usize = 20;
const COMMITS: usize = 400;

/// The records of a topic that is read.
struct Load {
    name: &'static str,
    value_bytes: usize,
    records: usize,
}

const LOADS: [Load; 2] = [
    Load { name: "100 B", value_bytes: 100, records: 4_000_000 },
    Load { name: "5000 B, 256 ticks", value_bytes: 5000, records: 100_000 },
];

fn brokers() -> String {
    std::env::var("WARPTAPE_TEST_KAFKA").expect("run this by `tests/services run cargo bench …`")
}

fn unique(name: &str) -> String {
    format!("bench.{name}.{}", warptape_pipeline::clock::wall_clock_ns())
}

fn at(topic: &str, partition: i32) -> TopicPartition {
    TopicPartition { topic: topic.to_owned(), partition }
}

fn new_topic(log: &dyn EventLog, name: &str, partitions: i32) -> String {
    let name = unique(name);
    log.create_topics(&[TopicSpec { name: name.clone(), partitions, ..TopicSpec::default() }]).unwrap();
    name
}

fn fill(log: &dyn EventLog, topic: &str, load: &Load) {
    const TRANSACTION_RECORDS: usize = 10_000;
    let value = vec![7; load.value_bytes];
    let mut producer = log.producer(topic).unwrap();
    for first in (0..load.records).step_by(TRANSACTION_RECORDS) {
        producer.begin().unwrap();
        for _ in first..(first + TRANSACTION_RECORDS).min(load.records) {
            let (topic, key, value) = (topic.into(), Some(KEY.into()), value.as_slice().into());
            producer.send(NewRecord { topic, key, value, ..NewRecord::default() }).unwrap();
        }
        producer.commit().unwrap();
    }
}

/// Lets both sides take turns, and prints their medians and quartiles.
fn compare(
    name: &str,
    times: usize,
    mut ours: impl FnMut() -> Duration,
    mut rival: impl FnMut() -> Duration,
) {
    let [ours, rival] = in_turn(times, [&mut ours, &mut rival]);
    let speed = ours.speed_of(&rival);
    println!("{name}: log {ours}, rdkafka {rival}");
    println!("{name}: log takes {:.2} of the time, {speed:.2} x the speed; {times} times each", 1.0 / speed);
}

/// Reads the topic through the log, and returns the time from the first record on.
fn read_log(log: &dyn EventLog, topic: &str, load: &Load) -> Duration {
    let mut reader = log.reader(&[at(topic, 0)]).unwrap();
    reader.leave_headers();
    let mut started = None;
    let (mut records_read, mut bytes) = (0, 0);
    while records_read < load.records {
        let Fetched::Records { records, .. } = reader.poll(LONG, 1024, usize::MAX).unwrap() else {
            panic!("{records_read} of {} records came", load.records);
        };
        started.get_or_insert_with(Instant::now);
        records_read += records.len();
        let size = |record: &Record| record.key.as_ref().unwrap().len() + black_box(&record.value).len();
        bytes += records.iter().map(size).sum::<usize>();
    }
    assert_eq!(bytes, load.records * (KEY.len() + load.value_bytes));
    started.unwrap().elapsed()
}

/// How the rival handles a message.
#[derive(Clone, Copy, Debug)]
enum Rival {
    Detaches,
    Borrows,
}

/// Reads the topic through rdkafka, and returns the time from the first record on.
fn read_rdkafka(topic: &str, load: &Load, rival: Rival) -> Duration {
    let consumer: BaseConsumer<DefaultConsumerContext> = ClientConfig::new()
        .set("bootstrap.servers", brokers())
        .set("group.id", "bench")
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("fetch.message.max.bytes", (4 << 20).to_string())
        .set("queued.min.messages", "200000")
        .set("fetch.queue.backoff.ms", "5")
        .create()
        .unwrap();
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, Offset::Offset(0)).unwrap();
    consumer.assign(&list).unwrap();
    let mut started = None;
    let (mut records_read, mut bytes) = (0, 0);
    while records_read < load.records {
        let message = consumer.poll(LONG).expect("a message comes").unwrap();
        started.get_or_insert_with(Instant::now);
        records_read += 1;
        bytes += match rival {
            Rival::Borrows => size(&message),
            Rival::Detaches => size(&black_box(message.detach())),
        };
    }
    assert_eq!(bytes, load.records * (KEY.len() + load.value_bytes));
    started.unwrap().elapsed()
}

fn size(message: &impl Message) -> usize {
    message.key().unwrap().len() + black_box(message.payload().unwrap()).len()
}

fn reading(log: &dyn EventLog) {
    for load in &LOADS {
        let topic = new_topic(log, "read", 1);
        fill(log, &topic, load);
        let name = format!("{} records of {}", load.records, load.name);
        for rival in [Rival::Detaches, Rival::Borrows] {
            let name = format!("{name}, rdkafka {rival:?}");
            compare(&name, READS, || read_log(log, &topic, load), || read_rdkafka(&topic, load, rival));
        }
    }
}

/// Returns the source offsets of a transaction, by partition.
fn offsets(source: &str, next: i64) -> Vec<(TopicPartition, i64)> {
    (0..PARTITIONS).map(|partition| (at(source, partition), next)).collect()
}

fn commit(log: &dyn EventLog) {
    let (source, out) = (new_topic(log, "source", PARTITIONS), new_topic(log, "out", PARTITIONS));
    let committed = Cell::new(0);
    let next = || committed.replace(committed.get() + 1) + 1;

    let mut producer = log.producer(&unique("log")).unwrap();
    let ours = || {
        let offsets = offsets(&source, next());
        let started = Instant::now();
        producer.begin().unwrap();
        for number in 0..RECORDS_PER_PARTITION as i32 * PARTITIONS {
            let (topic, value) = (out.as_str().into(), VALUE.as_slice().into());
            let partition = number % PARTITIONS;
            producer.send(NewRecord { topic, partition, value, ..NewRecord::default() }).unwrap();
        }
        producer.send_offsets("bench.log", &offsets).unwrap();
        producer.commit().unwrap();
        started.elapsed()
    };

    let rival: ThreadedProducer<DefaultProducerContext> = ClientConfig::new()
        .set("bootstrap.servers", brokers())
        .set("transactional.id", unique("rdkafka"))
        .set("linger.ms", "0")
        .create()
        .unwrap();
    rival.init_transactions(LONG).unwrap();
    let member: BaseConsumer<DefaultConsumerContext> = ClientConfig::new()
        .set("bootstrap.servers", brokers())
        .set("group.id", "bench.rdkafka")
        .create()
        .unwrap();
    let by_hand = || {
        let mut list = TopicPartitionList::new();
        for (source, next) in offsets(&source, next()) {
            list.add_partition_offset(&source.topic, source.partition, Offset::Offset(next)).unwrap();
        }
        let started = Instant::now();
        rival.begin_transaction().unwrap();
        for number in 0..RECORDS_PER_PARTITION as i32 * PARTITIONS {
            let record: BaseRecord<'_, [u8], [u8]> =
                BaseRecord::to(&out).partition(number % PARTITIONS).payload(&VALUE);
            rival.send(record).map_err(|(error, _)| error).unwrap();
        }
        while rival.in_flight_count() > 0 {
            std::thread::yield_now();
        }
        rival.send_offsets_to_transaction(&list, &member.group_metadata().unwrap(), LONG).unwrap();
        rival.commit_transaction(LONG).unwrap();
        started.elapsed()
    };
    compare("a commit, 16 partitions x 10 records, 16 offsets", COMMITS, ours, by_hand);

    let committed = committed.get() as usize;
    let mut reader = log.reader(&[at(&out, 0)]).unwrap();
    let mut visible = 0;
    while visible < committed * RECORDS_PER_PARTITION {
        let Fetched::Records { records, .. } = reader.poll(LONG, 1024, usize::MAX).unwrap() else {
            panic!("{visible} records of {committed} transactions came");
        };
        visible += records.len();
    }
    assert_eq!(visible, committed * RECORDS_PER_PARTITION);
}

fn main() {
    warptape_allocator::set_up();
    // `cargo test --benches` only checks that the benchmark runs.
    if std::env::args().any(|argument| argument == "--bench") {
        let log = KafkaLog::open(KafkaOptions::new(brokers())).unwrap();
        commit(&log);
        reading(&log);
    }
}
