//! Speed of writes, reads and wakes of the embedded log.
//!
//! The baseline is a plain file without transactions, offsets or other readers. Its length-prefixed records are
//! appended and flushed once per transaction, and read back through a buffer into a vector per record. It is an upper
//! bound for any log in one file on this machine. Both sides sum the bytes that they read. Read benchmarks run on a
//! file in the page cache; commits survive process death (`Durability::Process`) unless named otherwise.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use warptape_eventlog::{
    Consumer, Durability, EventLog, Fetched, NewRecord, Producer, SqliteLog, TopicPartition, TopicSpec,
};

/// Values and transactions of one benchmark.
#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    value_bytes: usize,
    records_per_transaction: usize,
}

/// Batch records of a few hundred ticks, as `feed` and the engine write them.
const BATCHES: Load =
    Load { name: "5000 B, 200 per transaction", value_bytes: 5000, records_per_transaction: 200 };
/// Single ticks and signals.
const SINGLES: Load =
    Load { name: "100 B, 1000 per transaction", value_bytes: 100, records_per_transaction: 1000 };
/// Number of records in the file that is read back.
const READ_RECORDS: usize = 40_000;
const POLL_RECORDS: usize = 64;

impl Load {
    fn value(&self, number: usize) -> Vec<u8> {
        vec![(number % 251) as u8; self.value_bytes]
    }

    fn bytes(&self, records: usize) -> Throughput {
        Throughput::Bytes((self.value_bytes * records) as u64)
    }
}

fn open(directory: &Path, durability: Durability) -> SqliteLog {
    let log = SqliteLog::open(directory.join("log.db"), durability).unwrap();
    log.create_topics(&[TopicSpec { name: "t".to_owned(), partitions: 1, ..TopicSpec::default() }]).unwrap();
    log
}

fn source() -> TopicPartition {
    TopicPartition { topic: "t".to_owned(), partition: 0 }
}

fn commit(producer: &mut dyn Producer, load: Load, first: usize) {
    producer.begin().unwrap();
    for number in first..first + load.records_per_transaction {
        let value = load.value(number);
        producer.send(NewRecord { topic: "t".into(), value: value.into(), ..NewRecord::default() }).unwrap();
    }
    producer.commit().unwrap();
}

fn append(file: &mut BufWriter<File>, load: Load, first: usize) {
    for number in first..first + load.records_per_transaction {
        let value = load.value(number);
        file.write_all(&(value.len() as u32).to_le_bytes()).unwrap();
        file.write_all(&value).unwrap();
    }
    file.flush().unwrap();
}

/// The sum of the values' bytes.
fn read_log(consumer: &mut dyn Consumer) -> u64 {
    let mut sum = 0;
    while let Fetched::Records { records, .. } =
        consumer.poll(Duration::ZERO, POLL_RECORDS, usize::MAX).unwrap()
    {
        for record in black_box(records) {
            sum += u64::from(record.value[0]) * record.value.len() as u64;
        }
    }
    sum
}

fn read_file(path: &Path) -> u64 {
    let mut file = BufReader::with_capacity(1 << 16, File::open(path).unwrap());
    let mut sum = 0;
    let mut length = [0; 4];
    while file.read_exact(&mut length).is_ok() {
        let mut value = vec![0; u32::from_le_bytes(length) as usize];
        file.read_exact(&mut value).unwrap();
        let value = black_box(value);
        sum += u64::from(value[0]) * value.len() as u64;
    }
    sum
}

fn write(criterion: &mut Criterion) {
    for load in [BATCHES, SINGLES] {
        let mut group = criterion.benchmark_group(format!("write {}", load.name));
        group.throughput(load.bytes(load.records_per_transaction));
        group.bench_function("log", |bencher| {
            let directory = tempfile::tempdir().unwrap();
            let log = open(directory.path(), Durability::Process);
            let mut producer = log.producer("bench").unwrap();
            let mut first = 0;
            bencher.iter(|| {
                commit(&mut *producer, load, first);
                first += load.records_per_transaction;
            });
        });
        group.bench_function("plain file", |bencher| {
            let directory = tempfile::tempdir().unwrap();
            let mut file =
                BufWriter::with_capacity(1 << 16, File::create(directory.path().join("file")).unwrap());
            let mut first = 0;
            bencher.iter(|| {
                append(&mut file, load, first);
                first += load.records_per_transaction;
            });
        });
        group.finish();
    }
}

fn read(criterion: &mut Criterion) {
    for load in [BATCHES, SINGLES] {
        let directory = tempfile::tempdir().unwrap();
        let log = open(directory.path(), Durability::Process);
        let mut producer = log.producer("bench").unwrap();
        let plain = directory.path().join("file");
        let mut file = BufWriter::new(File::create(&plain).unwrap());
        for first in (0..READ_RECORDS).step_by(load.records_per_transaction) {
            commit(&mut *producer, load, first);
            append(&mut file, load, first);
        }
        let mut reader = log.reader(&[source()]).unwrap();
        assert_eq!(read_log(&mut *reader), read_file(&plain), "both must read the same");

        let mut group = criterion.benchmark_group(format!("read {}", load.name));
        group.throughput(load.bytes(READ_RECORDS));
        group.bench_function("log", |bencher| {
            bencher.iter(|| {
                reader.seek(&source(), 0).unwrap();
                read_log(&mut *reader)
            });
        });
        group.bench_function("plain file", |bencher| bencher.iter(|| read_file(&plain)));
        group.finish();
    }
}

/// Time from a commit to the record's arrival at a waiting reader: with one handle, as within a process, and with two,
/// as between processes. (Two handles of one file share nothing within a process.)
fn wake(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("commit to waiting reader");
    for (name, shared) in [("one handle", true), ("two handles", false)] {
        let directory = tempfile::tempdir().unwrap();
        let log = open(directory.path(), Durability::Process);
        let other = if shared { log.clone() } else { open(directory.path(), Durability::Process) };
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| {
                let mut producer = log.producer("bench").unwrap();
                let mut reader = other.reader(&[source()]).unwrap();
                let end = reader.offsets(&source()).unwrap().next;
                reader.seek(&source(), end).unwrap();
                let (ask, asked) = std::sync::mpsc::channel();
                let (tell, told) = std::sync::mpsc::channel();
                std::thread::scope(|scope| {
                    scope.spawn(move || {
                        while asked.recv().is_ok() {
                            let fetched = reader.poll(Duration::from_secs(10), 1, usize::MAX).unwrap();
                            assert!(matches!(fetched, Fetched::Records { .. }), "{fetched:?}");
                            tell.send(Instant::now()).unwrap();
                        }
                    });
                    let mut waited = Duration::ZERO;
                    for _ in 0..rounds {
                        ask.send(()).unwrap();
                        let load = Load { records_per_transaction: 1, ..SINGLES };
                        commit(&mut *producer, load, 0);
                        let committed = Instant::now();
                        waited += told.recv().unwrap().saturating_duration_since(committed);
                    }
                    drop(ask);
                    waited
                })
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = log;
    config = Criterion::default().sample_size(20).warm_up_time(Duration::from_secs(1));
    targets = write, read, wake
}
criterion_main!(log);
