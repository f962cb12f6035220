//! Tests of the source thread with a log that fails.

use std::sync::Arc;

use warptape_engine::{AcceptedLoss, Topics};
use warptape_eventlog::{Durability, EventLog, OffsetRange, Record, SqliteLog};

use super::*;
use crate::runtime::journals::Journals;

/// Longest wait for an expected event.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// Returns this many fetches from one partition, each with one record, and then fails. Its position is [`POSITION`] in
/// every partition.
struct GivenConsumer {
    partition: i32,
    fetches_left: usize,
}

const POSITION: i64 = 7;

impl Consumer for GivenConsumer {
    fn poll(&mut self, _: Duration, _: usize, _: usize) -> Result<Fetched, LogError> {
        self.fetches_left = self.fetches_left.checked_sub(1).ok_or_else(failure)?;
        let source = TopicPartition { topic: "ticks".to_owned(), partition: self.partition };
        let record = Record { offset: 0, timestamp_ns: 0, key: None, headers: Vec::new(), value: Vec::new() };
        Ok(Fetched::Records { source, records: vec![record] })
    }

    fn pause(&mut self, _: &[TopicPartition]) -> Result<(), LogError> {
        Ok(())
    }

    fn resume(&mut self, _: &[TopicPartition]) -> Result<(), LogError> {
        Ok(())
    }

    fn seek(&mut self, _: &TopicPartition, _: i64) -> Result<(), LogError> {
        Ok(())
    }

    fn committed(&mut self, _: &TopicPartition) -> Result<Option<i64>, LogError> {
        Ok(None)
    }

    fn position(&mut self, _: &TopicPartition) -> Result<i64, LogError> {
        Ok(POSITION)
    }

    fn offsets(&mut self, _: &TopicPartition) -> Result<OffsetRange, LogError> {
        Err(failure())
    }
}

fn failure() -> LogError {
    LogError::Fenced { url: "log".to_owned(), transactional_id: "group-0".to_owned() }
}

fn holder(log: SqliteLog, topics: Topics) -> Holder {
    let log: Arc<dyn EventLog> = Arc::new(log);
    let journals = Journals::new(log.clone(), &topics.journal).expect("a log");
    let (group, accepted_loss, waiting) = ("group".to_owned(), AcceptedLoss::None, BTreeMap::new());
    Holder { log, topics, group, accepted_loss, journals, written: Vec::new(), waiting }
}

/// The engine's queue is full with this many fetches. Then the log fails, and the engine must learn of it nevertheless.
#[test]
fn a_failure_is_heard_while_the_engine_takes_no_events() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = SqliteLog::open(folder.path().join("log.db"), Durability::default()).expect("a log");
    let (topics, fence) = (Topics::new(""), Fence::default());
    fence.open(0, 1);
    let consumer = Box::new(GivenConsumer { partition: 0, fetches_left: FETCHES_MAX });
    let source = SourceThread::start(
        holder(log, topics),
        consumer,
        fence.clone(),
        Clock::start(),
        (TickDecoder::new(), 1),
        [1, usize::MAX],
    );
    let error = source.failed.recv_timeout(ANSWER_MAX).expect("the failure is told");
    assert!(matches!(error, EngineError::Log(LogError::Fenced { .. })), "{error}");
    assert_eq!(source.events.len(), FETCHES_MAX, "nobody has taken what was read before");
    assert!(!fence.is_open(0, 1), "nothing may be committed in the name of a member that is gone");
    source.stop();
}

/// The lag of a quiet partition depends on its position, which is after the marker of the last transaction.
#[test]
fn the_position_of_a_quiet_partition_is_told_beside_a_busy_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = SqliteLog::open(folder.path().join("log.db"), Durability::default()).expect("a log");
    let (topics, consumer) =
        (Topics::new(""), Box::new(GivenConsumer { partition: 1, fetches_left: usize::MAX }));
    let source = SourceThread::start(
        holder(log, topics),
        consumer,
        Fence::default(),
        Clock::start(),
        (TickDecoder::new(), 1),
        [1, usize::MAX],
    );
    for partition in [0, 1] {
        let seek = SourceCommand::Seek { partition, offset: 6, generation: 3 };
        source.commands.send(seek).expect("the thread listens");
    }
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < ANSWER_MAX, "it is not told");
        let event = source.events.recv_timeout(ANSWER_MAX).expect("records come without end");
        if let Event::Positions(moved) = event {
            assert!(moved.contains(&Position { partition: 0, generation: 3, offset: POSITION }), "{moved:?}");
            break;
        }
    }
    source.stop();
}
