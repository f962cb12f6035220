use std::sync::atomic::{AtomicBool, Ordering};

use warptape_eventlog::{
    Durability, NewRecord, OffsetRange, Producer, RecordClock, SqliteLog, TopicInfo, TopicSpec,
};

use super::*;

const REQUESTS: &str = "requests";
const RESULTS: &str = "results";
/// The partition whose results have an open transaction.
const HELD: i32 = 0;
const OTHER: i32 = 1;
/// A time that is longer than any answer takes.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// A log with an open transaction at the end of one partition's results, until a test ends it.
struct HeldLog {
    log: SqliteLog,
    has_ended: Arc<AtomicBool>,
}

impl EventLog for HeldLog {
    fn create_topics(&self, topics: &[TopicSpec]) -> Result<(), LogError> {
        self.log.create_topics(topics)
    }

    fn topics(&self) -> Result<Vec<TopicInfo>, LogError> {
        self.log.topics()
    }

    fn subscribe(&self, group: &str, topics: &[&str]) -> Result<Box<dyn Consumer>, LogError> {
        self.log.subscribe(group, topics)
    }

    fn reader(&self, partitions: &[TopicPartition]) -> Result<Box<dyn Consumer>, LogError> {
        let reader = self.log.reader(partitions)?;
        Ok(Box::new(HeldReader { reader, has_ended: self.has_ended.clone() }))
    }

    fn producer(&self, transactional_id: &str) -> Result<Box<dyn Producer>, LogError> {
        self.log.producer(transactional_id)
    }

    fn committed(&self, group: &str, partition: &TopicPartition) -> Result<Option<i64>, LogError> {
        self.log.committed(group, partition)
    }

    fn written_end(&self, partition: &TopicPartition) -> Result<i64, LogError> {
        Ok(self.log.written_end(partition)? + i64::from(is_held(partition)))
    }

    fn record_bytes_max(&self, topics: &[&str]) -> Result<Vec<usize>, LogError> {
        self.log.record_bytes_max(topics)
    }

    fn record_clock(&self, topic: &str) -> Result<Option<RecordClock>, LogError> {
        self.log.record_clock(topic)
    }

    fn claim(&self, name: &str) -> Result<Box<dyn Send>, LogError> {
        self.log.claim(name)
    }

    fn has_member(&self, group: &str) -> Result<bool, LogError> {
        self.log.has_member(group)
    }

    fn url(&self) -> String {
        self.log.url()
    }
}

struct HeldReader {
    reader: Box<dyn Consumer>,
    has_ended: Arc<AtomicBool>,
}

fn is_held(partition: &TopicPartition) -> bool {
    partition.topic == RESULTS && partition.partition == HELD
}

impl Consumer for HeldReader {
    fn poll(&mut self, timeout: Duration, records_max: usize, bytes_max: usize) -> Result<Fetched, LogError> {
        self.reader.poll(timeout, records_max, bytes_max)
    }

    fn pause(&mut self, partitions: &[TopicPartition]) -> Result<(), LogError> {
        self.reader.pause(partitions)
    }

    fn resume(&mut self, partitions: &[TopicPartition]) -> Result<(), LogError> {
        self.reader.resume(partitions)
    }

    fn seek(&mut self, partition: &TopicPartition, offset: i64) -> Result<(), LogError> {
        self.reader.seek(partition, offset)
    }

    fn committed(&mut self, partition: &TopicPartition) -> Result<Option<i64>, LogError> {
        self.reader.committed(partition)
    }

    fn position(&mut self, partition: &TopicPartition) -> Result<i64, LogError> {
        let marker = i64::from(is_held(partition) && self.has_ended.load(Ordering::Relaxed));
        Ok(self.reader.position(partition)? + marker)
    }

    fn offsets(&mut self, partition: &TopicPartition) -> Result<OffsetRange, LogError> {
        self.reader.offsets(partition)
    }
}

fn publish(log: &dyn EventLog, partition: i32, value: &[u8]) {
    let mut producer = log.producer("asking").expect("a producer");
    producer.begin().expect("a transaction");
    let record = NewRecord { topic: REQUESTS.into(), partition, value: value.into(), ..NewRecord::default() };
    producer.send(record).expect("a record of the transaction");
    producer.commit().expect("a commit");
}

#[test]
fn a_transaction_that_does_not_end_holds_up_no_other_partition() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = SqliteLog::open(folder.path().join("log.db"), Durability::default()).expect("a log");
    let topic = |name: &str| TopicSpec { name: name.to_owned(), partitions: 2, ..TopicSpec::default() };
    log.create_topics(&[topic(REQUESTS), topic(RESULTS)]).expect("topics");
    publish(&log, HELD, b"first");
    publish(&log, OTHER, b"second");
    let has_ended = Arc::new(AtomicBool::new(false));
    let log = Arc::new(HeldLog { log, has_ended: has_ended.clone() });
    let names = RequestNames { requests: REQUESTS.to_owned(), results: RESULTS.to_owned() };
    let source = RequestSource::start(log.clone(), names, Duration::ZERO);
    let tell = |command| source.commands.send(command).expect("the thread runs");
    let next =
        || source.events.recv_timeout(ANSWER_MAX).expect("the thread tells it").expect("the log works");

    tell(RequestCommand::Open { partition: HELD, assignment: 1, committed: Committed::default() });
    tell(RequestCommand::Open { partition: OTHER, assignment: 2, committed: Committed::default() });
    let opened = next();
    assert!(matches!(
        opened,
        Event::RequestsOpened { partition: OTHER, assignment: 2, committed: Committed { offset: 0, .. }, .. }
    ));
    let expect = |partition: i32, generation: u64, offset: i64| loop {
        match next() {
            Event::RequestsPosition { .. } => {}
            Event::Requests { partition: of, generation: under, requests } => {
                let offsets: Vec<i64> = requests.iter().map(|request| request.offset).collect();
                assert_eq!((of, under, offsets), (partition, generation, vec![offset]));
                return;
            }
            _ => panic!("nothing else is to be told"),
        }
    };
    tell(RequestCommand::Read { partition: OTHER, offset: 0, generation: 7 });
    expect(OTHER, 7, 0);
    // The waiting partition is revoked and assigned again.
    tell(RequestCommand::Forget { partition: HELD });
    tell(RequestCommand::Open { partition: HELD, assignment: 3, committed: Committed::default() });
    publish(log.as_ref(), OTHER, b"third");
    expect(OTHER, 7, 1);

    has_ended.store(true, Ordering::Relaxed);
    let mut opened = next();
    while matches!(opened, Event::RequestsPosition { .. }) {
        opened = next();
    }
    assert!(matches!(opened, Event::RequestsOpened { partition: HELD, assignment: 3, .. }));
    tell(RequestCommand::Read { partition: HELD, offset: 0, generation: 8 });
    expect(HELD, 8, 0);
    source.stop();
}
