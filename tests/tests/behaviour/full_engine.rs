//! An engine that is full because nothing is committed for a while must still receive certain events.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::bounded;
use warptape_eventlog::{
    Consumer, Durability, EventLog, Fetched, LogError, NewRecord, OffsetRange, Producer, SqliteLog,
    TopicPartition,
};
use warptape_pipeline::publisher::create_missing_topics;
use warptape_pipeline::runtime::{EngineError, Progress, Stop, TopicPlan, Topics, run};
use warptape_schemas::{LifecycleEvent, decode_lifecycle};
use warptape_tests::engine_run::{engine_config, stage_config};
use warptape_tests::wrapped_log::WrappedLog;

/// Number of unreadable records. Each becomes a dead letter with half of its bytes; together they exceed the limit of
/// bytes that wait for commits.
const POISON_RECORDS: u64 = 40;
const POISON_BYTES: usize = 1 << 20;
/// Longest wait for an expected event.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// Wait of one poll of the log.
const LOOK_WAIT: Duration = Duration::from_millis(50);

/// A gate that blocks commits while it is closed. The test opens it, which wakes the commits.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    changed: Condvar,
    /// True if a commit has reached the gate.
    was_reached: AtomicBool,
}

impl Gate {
    fn pass(&self) {
        self.was_reached.store(true, Ordering::Relaxed);
        let is_open = self.is_open.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_while(is_open, |is_open| !*is_open));
    }

    fn open(&self) {
        *self.is_open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }
}

/// Opens the gate when it is dropped, even if the test fails, so that the engine's thread can end.
struct Opened(Arc<Gate>);

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// A producer whose commits wait at the gate once all poison has become dead letters.
struct GatedProducer {
    producer: Box<dyn Producer>,
    progress: Arc<Progress>,
    gate: Arc<Gate>,
}

impl Producer for GatedProducer {
    fn begin(&mut self) -> Result<(), LogError> {
        self.producer.begin()
    }

    fn send(&mut self, record: NewRecord<'_>) -> Result<(), LogError> {
        self.producer.send(record)
    }

    fn send_offsets(&mut self, group: &str, offsets: &[(TopicPartition, i64)]) -> Result<(), LogError> {
        self.producer.send_offsets(group, offsets)
    }

    fn send_position(&mut self, group: &str, partition: &TopicPartition, next: i64) -> Result<(), LogError> {
        self.producer.send_position(group, partition, next)
    }

    fn commit_as_owner(&mut self, is_owner: &dyn Fn() -> bool) -> Result<(), LogError> {
        if has_all(&self.progress) {
            self.gate.pass();
        }
        self.producer.commit_as_owner(is_owner)
    }

    fn abort(&mut self) -> Result<(), LogError> {
        self.producer.abort()
    }
}

/// A consumer that fails once the engine has all poison, and a commit waits at the gate.
struct FailingConsumer {
    consumer: Box<dyn Consumer>,
    progress: Arc<Progress>,
    gate: Arc<Gate>,
}

impl Consumer for FailingConsumer {
    fn poll(&mut self, timeout: Duration, records_max: usize, bytes_max: usize) -> Result<Fetched, LogError> {
        if has_all(&self.progress) && self.gate.was_reached.load(Ordering::Relaxed) {
            return Err(failure());
        }
        self.consumer.poll(timeout, records_max, bytes_max)
    }

    fn pause(&mut self, partitions: &[TopicPartition]) -> Result<(), LogError> {
        self.consumer.pause(partitions)
    }

    fn resume(&mut self, partitions: &[TopicPartition]) -> Result<(), LogError> {
        self.consumer.resume(partitions)
    }

    fn seek(&mut self, partition: &TopicPartition, offset: i64) -> Result<(), LogError> {
        self.consumer.seek(partition, offset)
    }

    fn committed(&mut self, partition: &TopicPartition) -> Result<Option<i64>, LogError> {
        self.consumer.committed(partition)
    }

    fn position(&mut self, partition: &TopicPartition) -> Result<i64, LogError> {
        self.consumer.position(partition)
    }

    fn offsets(&mut self, partition: &TopicPartition) -> Result<OffsetRange, LogError> {
        self.consumer.offsets(partition)
    }
}

fn has_all(progress: &Progress) -> bool {
    progress.dead_letters.load(Ordering::Relaxed) == POISON_RECORDS
}

fn failure() -> LogError {
    LogError::Fenced { url: "failing".to_owned(), transactional_id: "source".to_owned() }
}

fn publish_poison(log: &dyn EventLog) {
    create_missing_topics(log, &Topics::new(""), &TopicPlan::new(1)).expect("the topics can be made");
    let mut producer = log.producer("poison").expect("the log takes a producer");
    producer.begin().expect("nothing is open");
    let poison = vec![0; POISON_BYTES];
    for _ in 0..POISON_RECORDS {
        let record = NewRecord {
            topic: "ticks".into(),
            partition: 0,
            key: None,
            headers: Default::default(),
            timestamp_ns: 1,
            value: poison.as_slice().into(),
            ..NewRecord::default()
        };
        producer.send(record).expect("the log takes the record");
    }
    producer.commit().expect("the log takes the transaction");
}

/// True if the process reports its failure in the log in time.
fn is_failure_told(log: &dyn EventLog) -> bool {
    let lifecycle = TopicPartition { topic: "lifecycle".to_owned(), partition: 0 };
    let mut reader = log.reader(&[lifecycle]).expect("the topic exists");
    let until = Instant::now() + ANSWER_MAX;
    while Instant::now() < until {
        let Fetched::Records { records, .. } =
            reader.poll(LOOK_WAIT, 64, 1 << 20).expect("the log is readable")
        else {
            continue;
        };
        let event = |value: &[u8]| decode_lifecycle(value).expect("a lifecycle record").event;
        if records.iter().any(|record| event(&record.value) == LifecycleEvent::Failed) {
            return true;
        }
    }
    false
}

#[test]
fn a_source_that_fails_is_heard_while_the_engine_is_full() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut config = engine_config(stage_config(&["1s"]), 1);
    // All poison arrives at once, and little of it fits into the waiting transaction.
    config.poll_records_max = POISON_RECORDS as usize;
    config.poll_bytes_max = 2 * POISON_RECORDS as usize * POISON_BYTES;
    config.core.limits.commit_bytes_max = POISON_BYTES;
    let (gate, progress) = (Arc::new(Gate::default()), Arc::new(Progress::new(1)));
    let engine_id = config.transactional_id();
    let log = SqliteLog::open(folder.path().join("log.db"), Durability::Process).expect("a new log");
    let (of_consumer, of_producer) = ((gate.clone(), progress.clone()), (gate.clone(), progress.clone()));
    let wrapped = WrappedLog::new(log)
        .with_consumers(Box::new(move |consumer| {
            let (gate, progress) = of_consumer.clone();
            Box::new(FailingConsumer { consumer, progress, gate })
        }))
        .with_producers(Box::new(move |id, producer| {
            let (gate, progress) = of_producer.clone();
            if id == engine_id { Box::new(GatedProducer { producer, progress, gate }) } else { producer }
        }));
    let log: Arc<dyn EventLog> = Arc::new(wrapped);
    publish_poison(log.as_ref());

    let (_stop, stopped) = bounded::<Stop>(1);
    let (of_engine, of_progress) = (log.clone(), progress.clone());
    let opened = Opened(gate);
    let engine = std::thread::spawn(move || run(of_engine, config, of_progress, stopped));
    assert!(is_failure_told(log.as_ref()), "the engine goes on without its source while it is full");
    drop(opened);
    let result = engine.join().expect("it does not panic");
    assert!(matches!(result, Err(EngineError::Log(LogError::Fenced { .. }))), "{:?}", result.err());
    assert!(has_all(&progress), "it was full when it failed");
}
