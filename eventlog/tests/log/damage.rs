//! Damaged files cause an error that names the file and the finding, never a panic, and never wrong records.

use std::panic::{AssertUnwindSafe, catch_unwind};

use warptape_eventlog::LogError;

use super::random::Random;
use super::*;

const PARTITIONS: i32 = 2;
const RECORDS: usize = 200;

/// Returns the value of the record at an offset; its length and bytes identify the record.
fn value(partition: i32, offset: usize) -> Vec<u8> {
    format!("{partition}/{offset};").repeat(1 + offset * 7 % 300).into_bytes()
}

/// Writes a log without a write-ahead log beside it, as a finished run leaves it.
fn write_log(path: &Path) {
    let log = open(path);
    topic(&log, "t", PARTITIONS);
    let mut producer = log.producer("p").unwrap();
    let record_at = |offset: usize, partition| NewRecord {
        headers: vec![("offset".to_owned(), offset.to_string().into_bytes())].into(),
        ..record("t", partition, value(partition, offset))
    };
    // Some transactions have one record, some many.
    let mut next = 0;
    for count in (1..20).cycle() {
        let offsets = next..RECORDS.min(next + count);
        next = offsets.end;
        commit(&mut *producer, offsets.flat_map(|offset| (0..PARTITIONS).map(move |p| record_at(offset, p))));
        if next == RECORDS {
            break;
        }
    }
    log.check().unwrap();
}

/// Reads all records of a log, up to the first error.
fn read_all(path: &Path) -> Result<Vec<(TopicPartition, Record)>, LogError> {
    let log = SqliteLog::open_existing(path)?;
    log.topics()?;
    let checked = log.check();
    let mut reader = log.reader(&[at("t", 0), at("t", 1)])?;
    let mut read = Vec::new();
    while let Fetched::Records { source, records } = reader.poll(Duration::ZERO, 64, usize::MAX)? {
        read.extend(records.into_iter().map(|record| (source.clone(), record)));
        assert!(read.len() <= RECORDS * PARTITIONS as usize, "more records came than were written");
    }
    checked.map(|()| read)
}

#[test]
fn a_truncated_log_is_refused_with_its_sizes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.db");
    write_log(&path);
    let whole = std::fs::read(&path).unwrap();
    let page_bytes = 4 * 1024;
    let pages = whole.len() / page_bytes;
    assert!(pages > 20, "{pages} pages are too few to cut");
    for length in
        [whole.len() - 1, whole.len() - page_bytes, whole.len() / 2, 3 * page_bytes + 7, page_bytes, 512]
    {
        std::fs::write(&path, &whole[..length]).unwrap();
        for error in [
            SqliteLog::open_existing(&path).err().expect("opened for reading"),
            SqliteLog::open(&path, Durability::Process).err().expect("opened for writing"),
        ] {
            let message = error.to_string();
            assert!(matches!(error, LogError::Unreadable { .. }), "{message}");
            for part in ["log.db", "truncated", &format!("{pages} pages"), &format!("found {length} bytes")] {
                assert!(message.contains(part), "{length} bytes: {part:?} is missing in: {message}");
            }
        }
        assert_eq!(std::fs::metadata(&path).unwrap().len(), length as u64, "a refused file must not change");
    }
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(read_all(&path).unwrap().len(), RECORDS * PARTITIONS as usize);
}

#[test]
fn a_log_cut_while_it_is_read_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.db");
    write_log(&path);
    let log = SqliteLog::open_existing(&path).unwrap();
    let mut reader = log.reader(&[at("t", 0), at("t", 1)]).unwrap();
    let first = reader.poll(Duration::ZERO, 1, usize::MAX).unwrap();
    assert!(matches!(first, Fetched::Records { .. }), "{first:?}");
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(5 * 4 * 1024).unwrap();
    let error = loop {
        match reader.poll(Duration::ZERO, 10, usize::MAX) {
            Ok(Fetched::Records { .. }) => {}
            Ok(other) => panic!("the end was reached: {other:?}"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, LogError::Unreadable { .. }), "{error}");
    assert!(error.to_string().contains("log.db"), "{error}");
}

#[test]
fn random_damage_is_an_error_or_does_not_matter() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.db");
    write_log(&path);
    let whole = std::fs::read(&path).unwrap();
    let expected = read_all(&path).unwrap();
    let mut random = Random::new(0x5EED_0001);
    let mut refused = 0;
    for round in 0..300 {
        let mut bytes = whole.clone();
        let length = bytes.len() as u64;
        let what = match round % 3 {
            0 => {
                // The header and the tables' roots are the most critical parts, so half of the bytes are damaged there.
                let limit = if random.below(2) == 0 { 100 } else { length };
                let at = random.below(limit) as usize;
                bytes[at] ^= 1 << random.below(8);
                format!("bit flip at {at}")
            }
            1 => {
                let start = random.below(length) as usize;
                let end = (start + random.below(4096) as usize).min(bytes.len());
                bytes[start..end].fill(random.next() as u8);
                format!("{start}..{end} overwritten")
            }
            _ => {
                // Two pages are swapped, as a faulty file system may do.
                let (a, b) = (random.below(length >> 12) as usize, random.below(length >> 12) as usize);
                for offset in 0..1 << 12 {
                    bytes.swap((a << 12) + offset, (b << 12) + offset);
                }
                format!("pages {a} and {b} exchanged")
            }
        };
        std::fs::write(&path, &bytes).unwrap();
        let read = catch_unwind(AssertUnwindSafe(|| read_all(&path)));
        match read.unwrap_or_else(|_| panic!("round {round}, {what}: panicked")) {
            Err(error) => {
                assert!(error.to_string().contains("log.db"), "round {round}, {what}: {error}");
                refused += 1;
            }
            Ok(read) => {
                let sorted = |records: &[(TopicPartition, Record)]| {
                    let mut records = records.to_vec();
                    records.sort_by_key(|(source, record)| (source.partition, record.offset));
                    records
                };
                assert!(sorted(&read) == sorted(&expected), "round {round}, {what}: other records came");
            }
        }
    }
    println!("{refused} of 300 were refused");
    assert!(refused >= 60, "only {refused} of 300 were refused");
}

#[test]
fn damage_found_while_writing_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.db");
    write_log(&path);
    let whole = std::fs::read(&path).unwrap();
    let mut random = Random::new(0x5EED_0002);
    let mut refused = 0;
    for round in 0..60 {
        let mut bytes = whole.clone();
        let start = random.below(bytes.len() as u64 >> 12) as usize;
        bytes[start << 12..(start + 1) << 12].fill(0xA5);
        std::fs::write(&path, &bytes).unwrap();
        for rest in ["-wal", "-shm", "-head"] {
            let _ = std::fs::remove_file(directory.path().join(format!("log.db{rest}")));
        }
        let write = || -> Result<(), LogError> {
            let log = SqliteLog::open(&path, Durability::Process)?;
            let mut producer = log.producer("p")?;
            producer.begin()?;
            for partition in 0..PARTITIONS {
                producer.send(record("t", partition, "x"))?;
            }
            producer.commit()
        };
        let written = catch_unwind(AssertUnwindSafe(write));
        if let Err(error) = written.unwrap_or_else(|_| panic!("round {round}, page {start}: panicked")) {
            assert!(error.to_string().contains("log.db"), "round {round}, page {start}: {error}");
            refused += 1;
        }
    }
    assert!(refused > 0, "no damage was noticed");
}
