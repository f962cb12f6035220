//! Explanations: one at a time, each for a bounded time, and only while its client waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use warptape_eventlog::{
    Consumer, EventLog, Fetched, LogError, OffsetRange, PartitionEnd, Producer, RecordClock, Selection,
    TopicInfo, TopicPartition, TopicSpec,
};

use super::{Answer, Explains, Subject};

/// Longest time of an explanation.
const WHY_MAX: Duration = Duration::from_secs(30);

/// Reasons for the lack of an explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unexplained {
    /// The log does not have the subject, or no longer has its causes.
    Missing(String),
    /// The log cannot be read.
    Failed(String),
}

/// Makes explanations.
pub(super) struct Explanations {
    log: Arc<dyn EventLog>,
    explains: Arc<dyn Explains>,
    turn: Arc<Semaphore>,
    longest: Duration,
}

impl Explanations {
    pub(super) fn new(log: Arc<dyn EventLog>, explains: Arc<dyn Explains>) -> Self {
        Self { log, explains, turn: Arc::new(Semaphore::new(1)), longest: WHY_MAX }
    }

    /// Explains a subject. The work ends at its next read once its time is up, or once this future is dropped.
    pub(super) async fn explain(&self, subject: Subject) -> Answer {
        let Ok(turn) = self.turn.clone().try_acquire_owned() else {
            return Answer::Busy("another explanation is being made: try again in a second");
        };
        let limit = Limit { until: Instant::now() + self.longest, is_left: Arc::default() };
        let _leaving = Leaving(limit.is_left.clone());
        let (log, explains, of_work) = (self.log.clone(), self.explains.clone(), limit.clone());
        let explained = spawn_blocking(move || {
            // Held until the work ends, even if its client waits no longer.
            let _turn = turn;
            explains.why(&BoundedLog { log: &*log, limit: of_work }, &subject)
        });
        match timeout(self.longest, explained).await {
            Ok(Ok(Ok(text))) => Answer::Text(text),
            Ok(Ok(Err(Unexplained::Missing(reason)))) => Answer::Missing(reason),
            Ok(Ok(Err(Unexplained::Failed(reason)))) if !limit.is_over() => Answer::Unavailable(reason),
            Ok(Err(_)) => Answer::Unavailable("the explanation failed: use `warptape replay why`".to_owned()),
            Ok(Ok(Err(Unexplained::Failed(_)))) | Err(_) => Answer::Unavailable(format!(
                "no explanation within {} s: use `warptape replay why`, which has no limit",
                self.longest.as_secs()
            )),
        }
    }
}

/// The end of an explanation's reading.
#[derive(Clone)]
struct Limit {
    until: Instant,
    /// True once nobody waits.
    is_left: Arc<AtomicBool>,
}

impl Limit {
    fn is_over(&self) -> bool {
        Instant::now() >= self.until || self.is_left.load(Ordering::Relaxed)
    }
}

/// Notes when it is dropped that nobody waits.
struct Leaving(Arc<AtomicBool>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A log whose readers fail beyond a limit.
struct BoundedLog<'a> {
    log: &'a dyn EventLog,
    limit: Limit,
}

impl EventLog for BoundedLog<'_> {
    fn create_topics(&self, topics: &[TopicSpec]) -> Result<(), LogError> {
        self.log.create_topics(topics)
    }

    fn topics(&self) -> Result<Vec<TopicInfo>, LogError> {
        self.log.topics()
    }

    fn topics_named(&self, names: &[&str]) -> Result<Vec<TopicInfo>, LogError> {
        self.log.topics_named(names)
    }

    fn topic_names(&self) -> Result<Vec<String>, LogError> {
        self.log.topic_names()
    }

    fn partitions(&self, topic: &str) -> Result<i32, LogError> {
        self.log.partitions(topic)
    }

    fn subscribe(&self, group: &str, topics: &[&str]) -> Result<Box<dyn Consumer>, LogError> {
        self.log.subscribe(group, topics)
    }

    fn reader(&self, partitions: &[TopicPartition]) -> Result<Box<dyn Consumer>, LogError> {
        let reader = self.log.reader(partitions)?;
        Ok(Box::new(BoundedReader { reader, url: self.url(), limit: self.limit.clone() }))
    }

    fn producer(&self, transactional_id: &str) -> Result<Box<dyn Producer>, LogError> {
        self.log.producer(transactional_id)
    }

    fn offsets(&self, partition: &TopicPartition) -> Result<OffsetRange, LogError> {
        self.log.offsets(partition)
    }

    fn committed(&self, group: &str, partition: &TopicPartition) -> Result<Option<i64>, LogError> {
        self.log.committed(group, partition)
    }

    fn written_end(&self, partition: &TopicPartition) -> Result<i64, LogError> {
        self.log.written_end(partition)
    }

    fn ends(&self, partitions: &[TopicPartition]) -> Result<Vec<PartitionEnd>, LogError> {
        self.log.ends(partitions)
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

struct BoundedReader {
    reader: Box<dyn Consumer>,
    url: String,
    limit: Limit,
}

impl Consumer for BoundedReader {
    fn poll(&mut self, timeout: Duration, records_max: usize, bytes_max: usize) -> Result<Fetched, LogError> {
        if self.limit.is_over() {
            let (doing, cause) = ("reading for an explanation".to_owned(), "its time is up".to_owned());
            return Err(LogError::Storage { url: self.url.clone(), doing, cause });
        }
        let left = self.limit.until.saturating_duration_since(Instant::now());
        self.reader.poll(timeout.min(left), records_max, bytes_max)
    }

    fn leave_headers(&mut self) {
        self.reader.leave_headers();
    }

    fn select(&mut self, selection: &Selection) -> bool {
        self.reader.select(selection)
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
        self.reader.position(partition)
    }

    fn offsets(&mut self, partition: &TopicPartition) -> Result<OffsetRange, LogError> {
        self.reader.offsets(partition)
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;
    use tokio::runtime::{Builder, Runtime};
    use warptape_eventlog::{Durability, SqliteLog};
    use warptape_schemas::journal::{JournalEntry, Started};

    use super::*;

    /// Longest wait for the end of some work.
    const LONG: Duration = Duration::from_secs(60);

    /// An explanation of a log.
    type Why = fn(&dyn EventLog) -> Result<String, Unexplained>;

    /// Explains by a function.
    struct By(Why);

    impl Explains for By {
        fn entry(&self, _: &JournalEntry, _: Option<&Started>) -> (String, Vec<String>) {
            (String::new(), Vec::new())
        }

        fn why(&self, log: &dyn EventLog, _: &Subject) -> Result<String, Unexplained> {
            (self.0)(log)
        }
    }

    /// Reads until the log refuses.
    fn endless(log: &dyn EventLog) -> Result<String, Unexplained> {
        let failed = |error: LogError| Unexplained::Failed(error.to_string());
        let place = TopicPartition { topic: "t".to_owned(), partition: 0 };
        let mut reader = log.reader(&[place]).map_err(failed)?;
        loop {
            reader.poll(Duration::from_millis(1), 1, 1).map_err(failed)?;
        }
    }

    fn explanations(by: Why, longest: Duration) -> (Explanations, Runtime, TempDir) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let log = SqliteLog::open(folder.path().join("log.db"), Durability::Process).expect("a log");
        let topic = TopicSpec { name: "t".to_owned(), partitions: 1, ..TopicSpec::default() };
        log.create_topics(&[topic]).expect("a topic");
        let explanations = Explanations { longest, ..Explanations::new(Arc::new(log), Arc::new(By(by))) };
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        (explanations, runtime, folder)
    }

    fn subject() -> Subject {
        Subject::Request("a".to_owned())
    }

    /// Waits for the end of the explanation that is being made.
    async fn has_turn(explanations: &Explanations) -> bool {
        timeout(LONG, explanations.turn.acquire()).await.is_ok_and(|turn| turn.is_ok())
    }

    #[test]
    fn an_explanation_ends_with_its_time_and_the_next_one_has_its_turn() {
        let (explanations, runtime, _folder) = explanations(endless, Duration::from_millis(50));
        runtime.block_on(async {
            let (first, second) =
                tokio::join!(explanations.explain(subject()), explanations.explain(subject()));
            let is_late = matches!(&first, Answer::Unavailable(why) if why.contains("`warptape replay why`"));
            assert!(is_late && matches!(second, Answer::Busy(_)));
            assert!(has_turn(&explanations).await, "the work goes on beyond its time");
        });
    }

    #[test]
    fn an_explanation_ends_once_nobody_waits_for_it() {
        let (explanations, runtime, _folder) = explanations(endless, 10 * LONG);
        runtime.block_on(async {
            let left = timeout(Duration::from_millis(20), explanations.explain(subject())).await;
            assert!(left.is_err(), "it is answered");
            assert!(has_turn(&explanations).await, "the work goes on for nobody");
        });
    }

    #[test]
    fn what_is_not_there_differs_from_a_log_that_cannot_be_read() {
        let missing: Why = |_| Err(Unexplained::Missing("no entry 7".to_owned()));
        let failed: Why = |_| Err(Unexplained::Failed("no broker".to_owned()));
        let answer = |by: Why| {
            let (explanations, runtime, _folder) = explanations(by, LONG);
            runtime.block_on(explanations.explain(subject()))
        };
        assert!(matches!(answer(missing), Answer::Missing(why) if why == "no entry 7"));
        assert!(matches!(answer(failed), Answer::Unavailable(why) if why == "no broker"));
    }
}
