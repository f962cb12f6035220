//! Random transactions, aborts, fencing, reopening and reading, compared with a model: a list per partition.

use std::collections::BTreeMap;

use proptest::prelude::*;
use warptape_eventlog::LogError;

use super::*;

/// The topics; the last one is compacted.
const TOPICS: [&str; 3] = ["a", "b", "c"];
const PARTITIONS: i32 = 2;
const PRODUCERS: [&str; 2] = ["p", "q"];

#[derive(Clone, Debug)]
enum Step {
    Begin(usize),
    Send {
        producer: usize,
        topic: usize,
        partition: i32,
        key: Option<u8>,
        length: usize,
    },
    SendOffset {
        producer: usize,
        partition: i32,
        next: i64,
    },
    Commit(usize),
    Abort(usize),
    /// A new producer with the same transactional id; the old one must be fenced.
    Replace(usize),
    Reopen,
    Poll {
        records_max: usize,
        bytes_max: usize,
    },
    Seek {
        topic: usize,
        partition: i32,
        offset: i64,
    },
    Pause {
        topic: usize,
        partition: i32,
    },
    Resume {
        topic: usize,
        partition: i32,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let producer = 0..PRODUCERS.len();
    let topic = 0..TOPICS.len();
    let partition = 0..PARTITIONS;
    let key = prop_oneof![1 => Just(None), 3 => (0..4_u8).prop_map(Some)];
    // Some values need overflow pages.
    let length = prop_oneof![9 => 0..200_usize, 1 => 0..60_000_usize];
    let send = (producer.clone(), topic.clone(), partition.clone(), key, length).prop_map(
        |(producer, topic, partition, key, length)| Step::Send { producer, topic, partition, key, length },
    );
    let send_offset = (producer.clone(), partition.clone(), 0..100_i64)
        .prop_map(|(producer, partition, next)| Step::SendOffset { producer, partition, next });
    let poll = (1..8_usize, prop_oneof![Just(usize::MAX), 1..5000_usize])
        .prop_map(|(records_max, bytes_max)| Step::Poll { records_max, bytes_max });
    let place = (topic, partition);
    let seek = (place.clone(), -2..30_i64).prop_map(|((topic, partition), offset)| Step::Seek {
        topic,
        partition,
        offset,
    });
    let step = prop_oneof![
        6 => producer.clone().prop_map(Step::Begin),
        20 => send,
        3 => send_offset,
        6 => producer.clone().prop_map(Step::Commit),
        2 => producer.clone().prop_map(Step::Abort),
        1 => producer.prop_map(Step::Replace),
        1 => Just(Step::Reopen),
        15 => poll,
        2 => seek,
        1 => place.clone().prop_map(|(topic, partition)| Step::Pause { topic, partition }),
        2 => place.prop_map(|(topic, partition)| Step::Resume { topic, partition }),
    ];
    prop::collection::vec(step, 1..150)
}

/// An open transaction.
#[derive(Default)]
struct Open {
    records: Vec<NewRecord<'static>>,
    offsets: BTreeMap<i32, i64>,
}

/// The expected content of the log.
#[derive(Default)]
struct Model {
    /// Committed records; `None` for one removed by compaction.
    partitions: BTreeMap<TopicPartition, Vec<Option<NewRecord<'static>>>>,
    offsets: BTreeMap<i32, i64>,
    open: [Option<Open>; PRODUCERS.len()],
    /// The reader's next offset of each partition.
    positions: BTreeMap<TopicPartition, i64>,
    paused: BTreeMap<TopicPartition, bool>,
}

impl Model {
    fn commit(&mut self, open: Open) {
        for record in open.records {
            let partition = self.partitions.entry(at(&record.topic, record.partition)).or_default();
            if record.topic == TOPICS[2] && record.key.is_some() {
                for older in partition.iter_mut() {
                    if older.as_ref().is_some_and(|older| older.key == record.key) {
                        *older = None;
                    }
                }
            }
            partition.push(Some(record));
        }
        self.offsets.extend(open.offsets);
    }

    /// Returns the records that a reader would get of a partition from its position on.
    fn rest(&self, source: &TopicPartition) -> Vec<(i64, &NewRecord<'static>)> {
        let position = self.positions[source];
        let records = self.partitions.get(source).map_or(&[][..], Vec::as_slice);
        let numbered = (0..).zip(records).filter(|(offset, _)| *offset >= position);
        numbered.filter_map(|(offset, record)| Some((offset, record.as_ref()?))).collect()
    }

    fn check_poll(&mut self, fetched: Fetched, records_max: usize, bytes_max: usize) {
        let waiting: Vec<_> = (self.positions.keys())
            .filter(|source| !self.paused[*source] && !self.rest(source).is_empty())
            .cloned()
            .collect();
        let (source, records) = match fetched {
            Fetched::Idle => return assert!(waiting.is_empty(), "records of {waiting:?} did not come"),
            Fetched::Records { source, records } => (source, records),
            other => panic!("a reader has no group: {other:?}"),
        };
        assert!(waiting.contains(&source), "{source:?} is paused or has nothing");
        assert!(!records.is_empty() && records.len() <= records_max, "{} records", records.len());
        let before_last = records[..records.len() - 1].iter().map(|record| record.value.len()).sum::<usize>();
        assert!(before_last < bytes_max, "{before_last} bytes without the last record, limit {bytes_max}");
        for (record, (offset, expected)) in records.iter().zip(self.rest(&source)) {
            assert_eq!(record.offset, offset);
            let read = NewRecord {
                topic: source.topic.as_str().into(),
                partition: source.partition,
                key: record.key.as_deref().map(Into::into),
                headers: record.headers.as_slice().into(),
                timestamp_ns: record.timestamp_ns,
                value: record.value.as_slice().into(),
                ..NewRecord::default()
            };
            assert!(read == *expected, "{source:?} offset {offset} differs");
        }
        let last = records.last().unwrap().offset;
        self.positions.insert(source, last + 1);
    }
}

fn sources() -> Vec<TopicPartition> {
    TOPICS.iter().flat_map(|topic| (0..PARTITIONS).map(move |partition| at(topic, partition))).collect()
}

/// The log with all its open handles.
struct Subject {
    log: SqliteLog,
    producers: Vec<Box<dyn Producer>>,
    reader: Box<dyn Consumer>,
}

impl Subject {
    fn open(path: &Path, model: &mut Model) -> Self {
        let log = open(path);
        let specs = TOPICS.map(|name| TopicSpec {
            name: name.to_owned(),
            partitions: PARTITIONS,
            compacted: name == TOPICS[2],
            ..TopicSpec::default()
        });
        log.create_topics(&specs).unwrap();
        model.open = Default::default();
        model.positions = sources().into_iter().map(|source| (source, 0)).collect();
        model.paused = sources().into_iter().map(|source| (source, false)).collect();
        let producers = PRODUCERS.map(|id| log.producer(id).unwrap()).into();
        let reader = log.reader(&sources()).unwrap();
        Self { log, producers, reader }
    }
}

fn run(steps: Vec<Step>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.db");
    let mut model = Model::default();
    let mut subject = Subject::open(&path, &mut model);
    for (number, step) in (0_i64..).zip(steps) {
        match step {
            Step::Begin(producer) => {
                let begun = subject.producers[producer].begin();
                assert_eq!(begun.is_ok(), model.open[producer].is_none());
                model.open[producer].get_or_insert_default();
            }
            Step::Send { producer, topic, partition, key, length } => {
                let record = NewRecord {
                    key: key.map(|key| vec![key].into()),
                    headers: (0..number % 3).map(|n| (n.to_string(), vec![0; n as usize])).collect(),
                    timestamp_ns: number,
                    ..record(TOPICS[topic], partition, vec![number as u8; length])
                };
                let sent = subject.producers[producer].send(record.clone());
                assert_eq!(sent.is_ok(), model.open[producer].is_some());
                model.open[producer].iter_mut().for_each(|open| open.records.push(record.clone()));
            }
            Step::SendOffset { producer, partition, next } => {
                let sent = subject.producers[producer].send_offsets("group", &[(at("a", partition), next)]);
                assert_eq!(sent.is_ok(), model.open[producer].is_some());
                model.open[producer].iter_mut().for_each(|open| {
                    open.offsets.insert(partition, next);
                });
            }
            Step::Commit(producer) => {
                let committed = subject.producers[producer].commit();
                assert_eq!(committed.is_ok(), model.open[producer].is_some());
                if let Some(open) = model.open[producer].take() {
                    model.commit(open);
                }
            }
            Step::Abort(producer) => {
                let aborted = subject.producers[producer].abort();
                assert_eq!(aborted.is_ok(), model.open[producer].take().is_some());
            }
            Step::Replace(producer) => {
                let new = subject.log.producer(PRODUCERS[producer]).unwrap();
                let mut old = std::mem::replace(&mut subject.producers[producer], new);
                if model.open[producer].take().is_some() {
                    let error = old.commit().unwrap_err();
                    assert!(matches!(error, LogError::Fenced { .. }), "{error}");
                }
            }
            Step::Reopen => {
                drop(subject);
                subject = Subject::open(&path, &mut model);
            }
            Step::Poll { records_max, bytes_max } => {
                let fetched = subject.reader.poll(Duration::ZERO, records_max, bytes_max).unwrap();
                model.check_poll(fetched, records_max, bytes_max);
            }
            Step::Seek { topic, partition, offset } => {
                subject.reader.seek(&at(TOPICS[topic], partition), offset).unwrap();
                model.positions.insert(at(TOPICS[topic], partition), offset);
            }
            Step::Pause { topic, partition } => {
                subject.reader.pause(&[at(TOPICS[topic], partition)]).unwrap();
                model.paused.insert(at(TOPICS[topic], partition), true);
            }
            Step::Resume { topic, partition } => {
                subject.reader.resume(&[at(TOPICS[topic], partition)]).unwrap();
                model.paused.insert(at(TOPICS[topic], partition), false);
            }
        }
    }
    check_end(subject, model);
}

/// Checks at the end that exactly the expected records exist.
fn check_end(mut subject: Subject, mut model: Model) {
    subject.reader.resume(&sources()).unwrap();
    model.paused.values_mut().for_each(|paused| *paused = false);
    for source in sources() {
        subject.reader.seek(&source, 0).unwrap();
        model.positions.insert(source, 0);
    }
    loop {
        let fetched = subject.reader.poll(Duration::ZERO, 10, usize::MAX).unwrap();
        let done = matches!(fetched, Fetched::Idle);
        model.check_poll(fetched, 10, usize::MAX);
        if done {
            break;
        }
    }
    let mut member = subject.log.subscribe("group", &["a"]).unwrap();
    for partition in 0..PARTITIONS {
        assert_eq!(
            member.committed(&at("a", partition)).unwrap(),
            model.offsets.get(&partition).copied(),
            "committed offset of partition {partition}"
        );
    }
    for source in sources() {
        let length = model.partitions.get(&source).map_or(0, Vec::len);
        let found = subject.log.reader(std::slice::from_ref(&source)).unwrap().offsets(&source).unwrap();
        assert_eq!(found.next, length as i64, "end of {source:?}");
    }
    subject.log.check().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_log_is_what_the_model_says(steps in steps()) {
        run(steps);
    }
}
