//! How fast the log on Kafka reads and commits, against rdkafka on the same broker and topics.
//!
//! Consumption: the rival polls rdkafka's `BaseConsumer` and sums the bytes of borrowed messages; the log gives owned
//! records, whose bytes are summed. Both read a whole topic of committed records: timed from the first record on, where
//! broker and fetching threads share the processor, and once more when all of it was fetched before, where the reading
//! thread is alone.
//!
//! Commit: the rival is a transaction by hand, with a thread that serves its reports and messages that leave at once:
//! send, wait until all is delivered, send offsets, commit. Both write the same records to 16 partitions with the
//! offsets of 16 source partitions, and are timed from begin to commit. Numbers of visible records are checked at the end.
//!
//! To measure: `tests/services run cargo bench -p warptape-eventlog --bench kafka`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use rdkafka::consumer::{BaseConsumer, Consumer as _, DefaultConsumerContext};
use rdkafka::message::Message;
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer as _, ThreadedProducer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use warptape_eventlog::{EventLog, Fetched, KafkaLog, KafkaOptions, NewRecord, TopicPartition, TopicSpec};

const PARTITIONS: i32 = 16;
/// Records of one partition in a committed transaction.
const RECORDS_PER_PARTITION: usize = 10;
const VALUE: [u8; 100] = [7; 100];
const LONG: Duration = Duration::from_secs(30);
/// What it takes to fetch a whole topic.
const FETCH: Duration = Duration::from_millis(1500);
/// Settings of both sides that let librdkafka fetch a whole topic ahead.
const AHEAD: [(&str, &str); 2] =
    [("queued.min.messages", "1000000"), ("queued.max.messages.kbytes", "1000000")];

/// A topic to read.
struct Load {
    name: &'static str,
    value_bytes: usize,
    records: usize,
}

const LOADS: [Load; 2] = [
    Load { name: "100 B", value_bytes: 100, records: 500_000 },
    Load { name: "5000 B, 256 ticks", value_bytes: 5000, records: 40_000 },
];

fn brokers() -> String {
    std::env::var("WARPTAPE_TEST_KAFKA").expect("run this by `tests/services run cargo bench …`")
}

fn unique(name: &str) -> String {
    format!("bench.{name}.{}", std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos())
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
            let (topic, value) = (topic.into(), value.as_slice().into());
            producer.send(NewRecord { topic, value, ..NewRecord::default() }).unwrap();
        }
        producer.commit().unwrap();
    }
}

/// Reads the topic through the log; the time from the first record on.
fn read_log(log: &dyn EventLog, topic: &str, load: &Load, ahead: bool) -> Duration {
    let mut reader = log.reader(&[at(topic, 0)]).unwrap();
    let mut started = start(ahead);
    let (mut records_read, mut bytes) = (0, 0);
    while records_read < load.records {
        let Fetched::Records { records, .. } = reader.poll(LONG, 1024, usize::MAX).unwrap() else {
            panic!("{records_read} of {} records came", load.records);
        };
        started.get_or_insert_with(Instant::now);
        records_read += records.len();
        bytes += records.iter().map(|record| black_box(&record.value).len()).sum::<usize>();
    }
    assert_eq!(bytes, load.records * load.value_bytes);
    started.unwrap().elapsed()
}

/// The time to count from, after everything was fetched; `None`: from the first record.
fn start(ahead: bool) -> Option<Instant> {
    ahead.then(|| {
        std::thread::park_timeout(FETCH);
        Instant::now()
    })
}

/// Reads the topic through rdkafka; the time from the first record on.
fn read_rdkafka(topic: &str, load: &Load, ahead: bool) -> Duration {
    let mut config = ClientConfig::new();
    if ahead {
        config.extend(AHEAD.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }
    let consumer: BaseConsumer<DefaultConsumerContext> = config
        .set("bootstrap.servers", brokers())
        .set("group.id", "bench")
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("fetch.queue.backoff.ms", "20")
        .create()
        .unwrap();
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, Offset::Offset(0)).unwrap();
    consumer.assign(&list).unwrap();
    let mut started = start(ahead);
    let (mut records_read, mut bytes) = (0, 0);
    while records_read < load.records {
        let message = consumer.poll(LONG).expect("a message comes").unwrap();
        started.get_or_insert_with(Instant::now);
        records_read += 1;
        bytes += black_box(message.payload().unwrap()).len();
    }
    assert_eq!(bytes, load.records * load.value_bytes);
    started.unwrap().elapsed()
}

fn consumption(criterion: &mut Criterion) {
    let log = KafkaLog::open(KafkaOptions::new(brokers())).unwrap();
    let extra = AHEAD.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let ahead_log = KafkaLog::open(KafkaOptions { extra, ..KafkaOptions::new(brokers()) }).unwrap();
    for load in &LOADS {
        let topic = new_topic(&log, "read", 1);
        fill(&log, &topic, load);
        for (name, ahead, log) in [("", false, &log), (", fetched ahead", true, &ahead_log)] {
            let mut group = criterion.benchmark_group(format!("read, {}{name}", load.name));
            group.sampling_mode(SamplingMode::Flat).sample_size(10).measurement_time(Duration::from_secs(5));
            group.throughput(Throughput::Elements(load.records as u64));
            group.bench_function("log", |bencher| {
                bencher.iter_custom(|times| (0..times).map(|_| read_log(log, &topic, load, ahead)).sum());
            });
            group.bench_function("rdkafka", |bencher| {
                bencher.iter_custom(|times| (0..times).map(|_| read_rdkafka(&topic, load, ahead)).sum());
            });
            group.finish();
        }
    }
}

/// Records and source offsets of one transaction, by partition.
fn offsets(source: &str, next: i64) -> Vec<(TopicPartition, i64)> {
    (0..PARTITIONS).map(|partition| (at(source, partition), next)).collect()
}

fn commit(criterion: &mut Criterion) {
    let log = KafkaLog::open(KafkaOptions::new(brokers())).unwrap();
    let (source, out) = (new_topic(&log, "source", PARTITIONS), new_topic(&log, "out", PARTITIONS));
    let mut group = criterion.benchmark_group("commit, 16 partitions x 10 records, 16 offsets");
    group.sample_size(50).measurement_time(Duration::from_secs(10));
    let mut committed: u64 = 0;

    let mut producer = log.producer(&unique("log")).unwrap();
    group.bench_function("log", |bencher| {
        bencher.iter(|| {
            committed += 1;
            producer.begin().unwrap();
            for number in 0..RECORDS_PER_PARTITION as i32 * PARTITIONS {
                let (topic, value) = (out.as_str().into(), VALUE.as_slice().into());
                let partition = number % PARTITIONS;
                producer.send(NewRecord { topic, partition, value, ..NewRecord::default() }).unwrap();
            }
            producer.send_offsets("bench.log", &offsets(&source, committed as i64)).unwrap();
            producer.commit().unwrap();
        });
    });

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
    group.bench_function("rdkafka", |bencher| {
        bencher.iter(|| {
            committed += 1;
            rival.begin_transaction().unwrap();
            for number in 0..RECORDS_PER_PARTITION as i32 * PARTITIONS {
                let record: BaseRecord<'_, [u8], [u8]> =
                    BaseRecord::to(&out).partition(number % PARTITIONS).payload(&VALUE);
                rival.send(record).map_err(|(error, _)| error).unwrap();
            }
            while rival.in_flight_count() > 0 {
                std::thread::yield_now();
            }
            let mut list = TopicPartitionList::new();
            for (source, next) in offsets(&source, committed as i64) {
                list.add_partition_offset(&source.topic, source.partition, Offset::Offset(next)).unwrap();
            }
            rival.send_offsets_to_transaction(&list, &member.group_metadata().unwrap(), LONG).unwrap();
            rival.commit_transaction(LONG).unwrap();
        });
    });
    group.finish();

    let mut reader = log.reader(&[at(&out, 0)]).unwrap();
    let mut visible = 0;
    while visible < committed * RECORDS_PER_PARTITION as u64 {
        let Fetched::Records { records, .. } = reader.poll(LONG, 1024, usize::MAX).unwrap() else {
            panic!("{visible} records of {committed} transactions came");
        };
        visible += records.len() as u64;
    }
    assert_eq!(visible, committed * RECORDS_PER_PARTITION as u64);
}

criterion_group!(benches, consumption, commit);
criterion_main!(benches);
