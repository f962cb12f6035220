//! Tests of the embedded log from outside: the conformance checks, and its additional guarantees.

use warptape_eventlog::{
    Consumer, Durability, EventLog, Fetched, NewRecord, Producer, Record, SqliteLog, TopicPartition,
    TopicSpec, conformance,
};

#[expect(dead_code, reason = "the tests of the binary use more of it")]
mod broker;
mod damage;
mod damages;
mod format;
mod hostile;
mod kafka;
mod loss;
mod model;
mod opening;
mod portable;
mod processes;
mod random;
mod segment_removal;
mod segments;
mod selection;

use std::path::Path;
use std::time::{Duration, Instant};

#[test]
fn conformance_of_the_embedded_log() {
    for (name, check) in conformance::CHECKS {
        for durability in [Durability::Process, Durability::Full] {
            println!("{name}, {durability:?}");
            let directory = tempfile::tempdir().unwrap();
            check(&SqliteLog::open(directory.path().join("log.db"), durability).unwrap());
        }
    }
}

#[test]
fn all_conformance_checks_share_one_log() {
    let directory = tempfile::tempdir().unwrap();
    let log = SqliteLog::open(directory.path().join("log.db"), Durability::Process).unwrap();
    for (name, check) in conformance::CHECKS {
        println!("{name}");
        check(&log);
    }
    log.check().unwrap();
}

fn open(path: &Path) -> SqliteLog {
    SqliteLog::open(path, Durability::Process).unwrap()
}

fn topic(log: &dyn EventLog, name: &str, partitions: i32) {
    let spec = TopicSpec { name: name.to_owned(), partitions, ..TopicSpec::default() };
    log.create_topics(&[spec]).unwrap();
}

fn at(topic: &str, partition: i32) -> TopicPartition {
    TopicPartition { topic: topic.to_owned(), partition }
}

fn record(topic: &str, partition: i32, value: impl AsRef<[u8]>) -> NewRecord<'static> {
    NewRecord {
        topic: topic.to_owned().into(),
        partition,
        value: value.as_ref().to_vec().into(),
        ..NewRecord::default()
    }
}

fn commit(producer: &mut dyn Producer, records: impl IntoIterator<Item = NewRecord<'static>>) {
    producer.begin().unwrap();
    for record in records {
        producer.send(record).unwrap();
    }
    producer.commit().unwrap();
}

/// Returns all records available now.
fn drain(consumer: &mut dyn Consumer) -> Vec<(TopicPartition, Record)> {
    let mut drained = Vec::new();
    loop {
        match consumer.poll(Duration::ZERO, 100, usize::MAX).unwrap() {
            Fetched::Records { source, records } => {
                drained.extend(records.into_iter().map(|record| (source.clone(), record)));
            }
            Fetched::Idle => return drained,
            Fetched::Assigned(_) | Fetched::Revoked(_) | Fetched::Lost(_) => {}
        }
    }
}

/// Longest wait for something that must arrive: far more than a busy machine needs.
const ARRIVAL_MAX: Duration = Duration::from_secs(300);

/// Polls until `count` records have arrived.
fn await_records(consumer: &mut dyn Consumer, count: usize) -> Vec<(TopicPartition, Record)> {
    let started = Instant::now();
    let mut arrived = Vec::new();
    while arrived.len() < count {
        assert!(started.elapsed() < ARRIVAL_MAX, "{} of {count} records came", arrived.len());
        if let Fetched::Records { source, records } =
            consumer.poll(Duration::from_millis(100), count - arrived.len(), usize::MAX).unwrap()
        {
            arrived.extend(records.into_iter().map(|record| (source.clone(), record)));
        }
    }
    arrived
}
