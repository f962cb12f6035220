//! The memory of an export does not grow with the log. The test measures the peak of its process, so it runs in a
//! process of its own.

#[path = "verify/recording.rs"]
#[allow(dead_code, reason = "this test records one plain run")]
mod recording;

use std::fs;
use std::time::Duration;

use warptape_eventlog::{
    Consumer, EventLog, Fetched, LogError, OffsetRange, Producer, Record, RecordClock, SqliteLog, TopicInfo,
    TopicPartition, TopicSpec,
};
use warptape_replay::{Bound, ExportOptions, VerifyOptions, Window, export, verify};
use warptape_schemas::{Checksum, Snapshot, encode_snapshot};

use recording::{Plan, options, record, records};

/// Size of one part of a state, in bytes.
const STATE_BYTES: usize = 1 << 20;
/// Number of snapshot records that compaction has not removed yet. Together they have three times as many bytes as the
/// export may use.
const SNAPSHOTS: i64 = 96;
/// Number of different offsets of these snapshots. Some are tried before a snapshot that can be restored.
const STATES: i64 = 16;
const PEAK_BYTES_MAX: u64 = 32 << 20;

/// A log with many snapshots of partition 0 before its own ones.
struct Uncompacted<'a> {
    log: &'a SqliteLog,
    own: Vec<Record>,
}

fn is_theirs(source: &TopicPartition) -> bool {
    (source.topic.as_str(), source.partition) == ("snapshots", 0)
}

impl EventLog for Uncompacted<'_> {
    fn create_topics(&self, topics: &[TopicSpec]) -> Result<(), LogError> {
        self.log.create_topics(topics)
    }

    fn topics(&self) -> Result<Vec<TopicInfo>, LogError> {
        let mut topics = self.log.topics()?;
        let topic = topics.iter_mut().find(|topic| topic.spec.name == "snapshots").unwrap();
        topic.offsets[0] = OffsetRange { first: 0, next: SNAPSHOTS + self.own.len() as i64 };
        Ok(topics)
    }

    fn subscribe(&self, group: &str, topics: &[&str]) -> Result<Box<dyn Consumer>, LogError> {
        self.log.subscribe(group, topics)
    }

    fn reader(&self, partitions: &[TopicPartition]) -> Result<Box<dyn Consumer>, LogError> {
        match partitions {
            [source] if is_theirs(source) => {
                Ok(Box::new(Shown { source: source.clone(), own: self.own.clone(), position: 0 }))
            }
            _ => self.log.reader(partitions),
        }
    }

    fn producer(&self, transactional_id: &str) -> Result<Box<dyn Producer>, LogError> {
        self.log.producer(transactional_id)
    }

    fn committed(&self, group: &str, partition: &TopicPartition) -> Result<Option<i64>, LogError> {
        self.log.committed(group, partition)
    }

    fn written_end(&self, partition: &TopicPartition) -> Result<i64, LogError> {
        self.log.written_end(partition)
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

/// Reads snapshots. The first ones are generated when they are read.
struct Shown {
    source: TopicPartition,
    own: Vec<Record>,
    position: i64,
}

impl Shown {
    fn end(&self) -> i64 {
        SNAPSHOTS + self.own.len() as i64
    }

    /// Makes parts of states that cannot be restored, as if taken with another configuration.
    fn record(&self, offset: i64) -> Record {
        if let Some(own) = usize::try_from(offset - SNAPSHOTS).ok().and_then(|index| self.own.get(index)) {
            return Record { offset, ..own.clone() };
        }
        let made = Snapshot {
            partition: 0,
            group: Snapshot::INTAKE,
            offset: 1 + offset % STATES,
            part: (offset / STATES) as i32,
            parts: (SNAPSHOTS / STATES) as i32,
            state_version: i32::MAX,
            state: vec![7; STATE_BYTES],
            checksum: Checksum,
        };
        let mut value = Vec::new();
        encode_snapshot(&made, &mut value);
        Record { offset, key: Some(b"0/0".to_vec()), headers: Vec::new(), timestamp_ns: 0, value }
    }
}

impl Consumer for Shown {
    fn poll(&mut self, _: Duration, records_max: usize, bytes_max: usize) -> Result<Fetched, LogError> {
        let (mut records, mut bytes) = (Vec::new(), 0);
        while self.position < self.end() && records.len() < records_max && bytes < bytes_max {
            let record = self.record(self.position);
            bytes += record.value.len();
            self.position += 1;
            records.push(record);
        }
        if records.is_empty() {
            return Ok(Fetched::Idle);
        }
        Ok(Fetched::Records { source: self.source.clone(), records })
    }

    fn pause(&mut self, _: &[TopicPartition]) -> Result<(), LogError> {
        Ok(())
    }

    fn resume(&mut self, _: &[TopicPartition]) -> Result<(), LogError> {
        Ok(())
    }

    fn seek(&mut self, _: &TopicPartition, offset: i64) -> Result<(), LogError> {
        self.position = offset;
        Ok(())
    }

    fn committed(&mut self, _: &TopicPartition) -> Result<Option<i64>, LogError> {
        Ok(None)
    }

    fn position(&mut self, _: &TopicPartition) -> Result<i64, LogError> {
        Ok(self.position)
    }

    fn offsets(&mut self, _: &TopicPartition) -> Result<OffsetRange, LogError> {
        Ok(OffsetRange { first: 0, next: self.end() })
    }
}

/// Returns the peak memory of this process, in bytes.
fn peak_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("the process's own status");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("its peak");
    let kib = line.split_whitespace().nth(1).and_then(|text| text.parse::<u64>().ok());
    kib.expect("a number of KiB") << 10
}

#[test]
fn snapshots_that_compaction_has_left_do_not_pile_up_in_memory() {
    let recording = record(Plan { checkpoint: Some(4), snapshot: Some(7), ..Plan::small(61) });
    let own = records(&recording.log, "snapshots", 0);
    let log = Uncompacted { log: &recording.log, own };
    let folder = tempfile::tempdir().unwrap();
    let VerifyOptions { journal, sources, .. } = options();
    let entries = records(&recording.log, "journal", 0).len() as i64;
    let window = Window { since: Some(Bound::Sequence(entries * 6 / 10)), ..Window::default() };
    let by = serde_json::json!({});
    let asked = ExportOptions { journal, sources, others: Vec::new(), window, with_ticks: true, by };
    let path = folder.path().join("export.db");
    let before = peak_bytes();
    export(&log, &path, &asked, &mut |_| {}).unwrap();
    let more = peak_bytes() - before;
    assert!(more <= PEAK_BYTES_MAX, "{} MiB more than before", more >> 20);
    // The state before the window's ticks was made nevertheless.
    let file = SqliteLog::open_existing(&path).unwrap();
    assert!(!records(&file, "snapshots", 0).is_empty());
    let report = verify(&file, &options(), &mut |_| {}).unwrap();
    assert!(report.is_identical(), "{report}");
}
