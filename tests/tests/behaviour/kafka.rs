//! On a real broker, the engine must give the same signals as on the embedded log.

use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crossbeam_channel::bounded;
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions};
use rdkafka::client::DefaultClientContext;
use warptape_eventlog::{
    Durability, EventLog, KafkaLog, KafkaOptions, NewRecord, SqliteLog, TopicPartition, TopicSpec,
};
use warptape_pipeline::publisher::create_missing_topics;
use warptape_pipeline::runtime::{Progress, Stop, TopicPlan, Topics, run, topic_specs};
use warptape_replay::{VerifyOptions, verify};
use warptape_tests::engine_run::{engine_config, feed, read_partition, run_to_end};

use crate::recordings::{recorded_ticks, stage_config};

const PARTITIONS: i32 = 4;
const LANES: i32 = 2;
const BATCH: NonZeroUsize = NonZeroUsize::new(64).unwrap();
/// Output topics of a run whose keys and values depend only on the ticks.
const OUTPUTS: [fn(&Topics) -> &str; 3] =
    [|topics| &topics.signals, |topics| &topics.late, |topics| &topics.dead_letter];

/// Returns a name that is unique on the broker.
pub fn unique(name: &str) -> String {
    format!("{name}-{}.", warptape_pipeline::clock::wall_clock_ns())
}

pub fn broker() -> KafkaOptions {
    let address = std::env::var("WARPTAPE_TEST_KAFKA").expect(
        "WARPTAPE_TEST_KAFKA is not set: run the tests by tests/run, or by `tests/services run cargo test …`",
    );
    KafkaOptions::new(address)
}

/// Key and value of a record.
type Output = (Option<Vec<u8>>, Vec<u8>);

/// Returns all outputs, by topic and partition.
fn outputs(log: &dyn EventLog, topics: &Topics) -> Vec<Vec<Output>> {
    let places = OUTPUTS.iter().flat_map(|topic| (0..PARTITIONS).map(|partition| (topic(topics), partition)));
    let read = |(topic, partition)| {
        read_partition(log, topic, partition).into_iter().map(|record| (record.key, record.value)).collect()
    };
    places.map(read).collect()
}

/// Longest wait for the markers of a transaction. They are written after the commit, and readers need them.
pub const MARKERS_MAX: Duration = Duration::from_secs(120);

/// Waits until there are `expected` outputs, and returns all of them.
fn outputs_of(log: &dyn EventLog, topics: &Topics, expected: usize) -> Vec<Vec<Output>> {
    let since = Instant::now();
    loop {
        let found = outputs(log, topics);
        if found.iter().flatten().count() >= expected || since.elapsed() > MARKERS_MAX {
            return found;
        }
    }
}

/// Copies all ticks in one transaction, so that they keep their offsets. A second transaction would put a marker
/// between them.
fn copy_ticks(from: &dyn EventLog, to: &dyn EventLog, topic: &str) {
    let mut producer = to.producer(&format!("{topic}-copy")).expect("a producer");
    producer.begin().expect("a transaction");
    for partition in 0..PARTITIONS {
        for (offset, record) in (0..).zip(read_partition(from, "ticks", partition)) {
            assert_eq!(record.offset, offset, "the embedded log is dense");
            let (topic, key) = (topic.into(), record.key.map(Into::into));
            let (value, timestamp_ns) = (record.value.into(), record.timestamp_ns);
            let copy = NewRecord { topic, partition, key, timestamp_ns, value, ..NewRecord::default() };
            producer.send(copy).expect("a record of the transaction");
        }
    }
    producer.commit().expect("a commit");
    let ticks = |log, topic| -> usize {
        (0..PARTITIONS).map(|partition| read_partition(log, topic, partition).len()).sum()
    };
    let (expected, since) = (ticks(from, "ticks"), Instant::now());
    while ticks(to, topic) < expected {
        assert!(since.elapsed() < MARKERS_MAX, "the ticks cannot be read");
    }
}

/// Increases the number of a topic's partitions to `partitions`.
fn add_partitions(topic: &str, partitions: usize) {
    let (wanted, options) = ([NewPartitions::new(topic, partitions)], AdminOptions::new());
    let done = await_answer(admin().create_partitions(&wanted, &options)).expect("the broker answers");
    assert!(done.iter().all(Result::is_ok));
}

/// Returns an administration client for the broker.
pub fn admin() -> AdminClient<DefaultClientContext> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", broker().brokers).create().expect("a client")
}

/// Waits for an answer of the broker.
pub fn await_answer<T>(answer: impl Future<Output = T>) -> T {
    let mut answer = pin!(answer);
    let mut task = Context::from_waker(Waker::noop());
    let since = Instant::now();
    loop {
        if let Poll::Ready(answer) = answer.as_mut().poll(&mut task) {
            return answer;
        }
        assert!(since.elapsed() < MARKERS_MAX, "the broker does not answer");
        std::thread::yield_now();
    }
}

/// Publishes a record that becomes a dead letter.
fn publish_junk(log: &dyn EventLog, topic: &str, partition: i32) {
    let mut producer = log.producer(&format!("{topic}-junk")).expect("a producer");
    producer.begin().expect("a transaction");
    let (topic, value) = (topic.into(), b"junk".into());
    let record = NewRecord { topic, partition, value, ..NewRecord::default() };
    producer.send(record).expect("a record of the transaction");
    producer.commit().expect("a commit");
}

#[test]
fn partitions_that_are_added_are_read_once_the_outputs_have_them_too() {
    let prefix = unique("added");
    let topics = Topics::new(&prefix);
    let kafka: Arc<dyn EventLog> = Arc::new(KafkaLog::open(broker()).expect("a broker"));
    let specs = topic_specs(&topics, &TopicPlan::new(2)).into_iter().map(|spec| match spec.name {
        ref name if *name == topics.ticks || *name == topics.signals => TopicSpec { partitions: 1, ..spec },
        _ => spec,
    });
    kafka.create_topics(&specs.collect::<Vec<_>>()).expect("new topics");
    let config = {
        let mut config = engine_config(stage_config(), LANES);
        config.core.topics = topics.clone();
        config.core.group = prefix.clone();
        config
    };
    let (stop, stopped) = bounded(1);
    let engine = {
        let (log, progress) = (kafka.clone(), Arc::new(Progress::new(LANES as usize)));
        std::thread::spawn(move || run(log, config, progress, stopped))
    };
    let await_offset = |partition, offset: i64| {
        let (source, since) = (TopicPartition { topic: topics.ticks.clone(), partition }, Instant::now());
        while kafka.committed(&prefix, &source).expect("the broker answers") < Some(offset) {
            assert!(!engine.is_finished(), "the engine ended");
            assert!(since.elapsed() < MARKERS_MAX, "partition {partition} is not read");
        }
    };
    publish_junk(kafka.as_ref(), &topics.ticks, 0);
    await_offset(0, 1);
    add_partitions(&topics.ticks, 2);
    publish_junk(kafka.as_ref(), &topics.ticks, 1);
    // This record comes after the first record and the marker of its transaction.
    publish_junk(kafka.as_ref(), &topics.ticks, 0);
    await_offset(0, 3);
    add_partitions(&topics.signals, 2);
    await_offset(1, 1);
    stop.send(Stop::Now).expect("the engine runs");
    let summary = engine.join().expect("it does not panic").expect("it does not fail");
    assert_eq!(summary.dead_letters, 3);
}

#[test]
fn recordings_give_the_same_outputs_as_on_the_embedded_log() {
    let Some(ticks) = recorded_ticks() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let embedded = SqliteLog::open(folder.path().join("log.db"), Durability::Process).expect("a new log");
    let embedded: Arc<dyn EventLog> = Arc::new(embedded);
    feed(&embedded, PARTITIONS, BATCH.get(), ticks.iter().cloned());
    let summary = run_to_end(&embedded, engine_config(stage_config(), LANES));
    let expected = outputs(embedded.as_ref(), &Topics::new(""));

    let prefix = unique("recordings");
    let (topics, group) = (Topics::new(&prefix), prefix.clone());
    let kafka: Arc<dyn EventLog> = Arc::new(KafkaLog::open(broker()).expect("a broker"));
    create_missing_topics(kafka.as_ref(), &topics, &TopicPlan::new(PARTITIONS)).expect("new topics");
    copy_ticks(embedded.as_ref(), kafka.as_ref(), &topics.ticks);
    let config = {
        let mut config = engine_config(stage_config(), LANES);
        config.core.topics = topics.clone();
        config.core.group = group.clone();
        config
    };
    let on_kafka = run_to_end(&kafka, config);
    assert_eq!((on_kafka.ticks, on_kafka.signals), (summary.ticks, summary.signals));
    assert!(
        outputs_of(kafka.as_ref(), &topics, expected.iter().flatten().count()) == expected,
        "the outputs differ from those on the embedded log"
    );

    let mut options = VerifyOptions::new(&topics, &group);
    options.outputs = true;
    let report = verify(kafka.as_ref(), &options, &mut |_| {}).expect("the log can be read");
    assert!(report.is_identical(), "{report}");
    assert_eq!(report.outputs.expect("they were asked for").signals, summary.signals);
}
