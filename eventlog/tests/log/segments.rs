//! Segments: files beside the log with the large blocks of its records.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rusqlite::Connection;
use warptape_eventlog::sqlite::{Loss, SEGMENT_BYTES};

use super::loss::{Files, SEGMENTS, beside, files, place};
use super::*;

/// Length of a value that goes to a segment.
pub const LARGE: usize = 10_000;
/// Records that a producer stores in rows before it takes a segment, at least.
pub const FIRST: usize = 7;

/// Returns a large value; its bytes identify it.
pub fn large(number: usize) -> Vec<u8> {
    format!("{number};").into_bytes().repeat(LARGE).split_off(number % 7)[..LARGE].to_vec()
}

/// Commits large records of partition 0, one per transaction.
pub fn write(producer: &mut dyn Producer, numbers: std::ops::Range<usize>) {
    for number in numbers {
        commit(producer, [record("t", 0, large(number))]);
    }
}

pub fn segment(path: &Path, number: u32) -> PathBuf {
    beside(path, SEGMENTS).join(format!("{number}.segment"))
}

/// Returns the numbers of the files of segments.
pub fn segments(path: &Path) -> Vec<u32> {
    let names = files(path).into_keys().filter_map(|name| {
        let number = name.strip_prefix(SEGMENTS)?.strip_prefix('/')?.strip_suffix(".segment")?;
        Some(number.parse().unwrap())
    });
    let mut numbers: Vec<u32> = names.collect();
    numbers.sort_unstable();
    numbers
}

fn version(path: &Path) -> i64 {
    Connection::open(path).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

/// Returns the offsets that can be read, each with the right value.
pub fn offsets(log: &SqliteLog) -> Vec<usize> {
    let read = drain(&mut *log.reader(&[at("t", 0)]).unwrap());
    let offset = |(_, record): (TopicPartition, Record)| {
        let offset = record.offset as usize;
        assert!(record.value == large(offset), "offset {offset} has another value");
        offset
    };
    read.into_iter().map(offset).collect()
}

/// Writes a closed log with `2 * FIRST` records in each of two segments.
fn two_segments(path: &Path) -> Files {
    let log = open(path);
    topic(&log, "t", 1);
    for run in 0..2 {
        write(&mut *log.producer("p").unwrap(), run * 3 * FIRST..(run + 1) * 3 * FIRST);
    }
    log.check().unwrap();
    drop(log);
    assert_eq!(segments(path), [1, 2]);
    files(path)
}

const ALL: usize = 6 * FIRST;

#[test]
fn large_blocks_are_in_segments_and_a_backup_is_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("log.db"), folder.path().join("copy.db"));
    let log = open(&path);
    topic(&log, "t", 2);
    let mut producer = log.producer("p").unwrap();
    for _ in 0..20 {
        commit(&mut *producer, [record("t", 1, "small")]);
    }
    assert!(!beside(&path, SEGMENTS).exists());
    assert_eq!(version(&path), 3, "a log without segments");
    write(&mut *producer, 0..100);
    assert_eq!((segments(&path), version(&path)), (vec![1], 4));
    let bytes = fs::metadata(segment(&path, 1)).unwrap().len() as usize;
    assert!((90 * LARGE..100 * LARGE).contains(&bytes), "{bytes} bytes");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&beside(&path, SEGMENTS)), mode(&segment(&path, 1))), (0o700, 0o600));
    for log in [open(&path), SqliteLog::open_existing(&path).unwrap()] {
        assert_eq!(offsets(&log), (0..100).collect::<Vec<_>>());
        log.check().unwrap();
    }

    log.backup(&copy, &mut |_| {}).unwrap();
    assert!(!beside(&copy, SEGMENTS).exists());
    assert_eq!(version(&copy), 3);
    let copied = open(&copy);
    copied.check().unwrap();
    assert_eq!(offsets(&copied), (0..100).collect::<Vec<_>>());
    // The copy is written like any log.
    write(&mut *copied.producer("p").unwrap(), 100..100 + 3 * FIRST);
    assert_eq!((segments(&copy), offsets(&copied).len()), (vec![1], 100 + 3 * FIRST));
}

#[test]
fn transactions_of_any_size_go_to_segments_of_a_limited_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let log = SqliteLog::open(&path, Durability::Full).unwrap();
    topic(&log, "t", 4);
    topic(&log, "u", 1);
    let mut producer = log.producer("p").unwrap();
    // 16 MB per transaction, in blocks of many sizes, and one record in each of two topics.
    let sizes = [3_000, 70_000, 2_500_000, 100, 1_427_000];
    for number in 0..6 {
        let records =
            (0..4).flat_map(|partition| sizes.map(|bytes| record("t", partition, vec![number; bytes])));
        commit(&mut *producer, records.chain([record("u", 0, vec![number; 300_000])]));
    }
    // The first transaction is in rows, the fifth one exceeds the limit.
    assert_eq!(segments(&path), [1, 2, 3]);
    let bytes = |number| fs::metadata(segment(&path, number)).unwrap().len();
    let of_topic = [bytes(1), bytes(2), bytes(3)];
    assert!(of_topic.iter().any(|bytes| *bytes >= SEGMENT_BYTES), "{of_topic:?}");
    let read =
        drain(&mut *log.reader(&(0..4).map(|partition| at("t", partition)).collect::<Vec<_>>()).unwrap());
    assert_eq!(read.len(), 6 * 4 * sizes.len());
    for (_, record) in read {
        let number = record.offset / sizes.len() as i64;
        assert_eq!(record.value.len(), sizes[record.offset as usize % sizes.len()]);
        assert!(record.value.iter().all(|byte| i64::from(*byte) == number));
    }
    log.check().unwrap();
}

#[test]
fn compacted_topics_have_no_segments() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let log = open(&path);
    log.create_topics(&[TopicSpec {
        name: "s".to_owned(),
        partitions: 1,
        compacted: true,
        ..TopicSpec::default()
    }])
    .unwrap();
    let mut producer = log.producer("p").unwrap();
    for number in 0..3 * FIRST {
        let key = Some(vec![number as u8 % 2].into());
        commit(&mut *producer, [NewRecord { key, ..record("s", 0, large(number)) }]);
    }
    assert!(!beside(&path, SEGMENTS).exists());
    log.check().unwrap();
}

#[test]
fn what_a_failed_commit_has_appended_is_used_by_the_next_attempt_or_by_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let log = open(&path);
    topic(&log, "t", 1);
    let mut producer = log.producer("p").unwrap();
    write(&mut *producer, 0..10);
    let other = Connection::open(&path).unwrap();
    let bytes = || fs::metadata(segment(&path, 1)).unwrap().len() as usize;
    let before = bytes();
    for is_kept in [false, true] {
        other.execute_batch("ALTER TABLE committed_offsets RENAME TO elsewhere").unwrap();
        producer.begin().unwrap();
        producer.send(record("t", 0, large(10))).unwrap();
        producer.send_offsets("g", &[(at("t", 0), 7)]).unwrap();
        for _ in 0..3 {
            producer.commit().unwrap_err();
        }
        other.execute_batch("ALTER TABLE elsewhere RENAME TO committed_offsets").unwrap();
        assert_eq!(offsets(&log).len(), 10);
        match is_kept {
            true => producer.commit().unwrap(),
            false => producer.abort().unwrap(),
        }
    }
    // The aborted transaction has left its bytes, which nobody refers to.
    assert_eq!(bytes() - before, 2 * (LARGE + 20));
    write(&mut *producer, 11..14);
    assert_eq!(offsets(&log), (0..14).collect::<Vec<_>>());
    log.check().unwrap();
}

#[test]
fn producers_append_at_once_each_to_its_own_segment() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    topic(&open(&path), "t", 4);
    std::thread::scope(|scope| {
        for partition in 0..4 {
            let path = &path;
            scope.spawn(move || {
                // Each log object behaves like a process of its own.
                let log = open(path);
                let mut producer = log.producer(&partition.to_string()).unwrap();
                for number in 0..100 {
                    commit(&mut *producer, [record("t", partition, large(number))]);
                }
            });
        }
    });
    assert_eq!(segments(&path).len(), 4);
    let log = open(&path);
    log.check().unwrap();
    for partition in 0..4 {
        let read = drain(&mut *log.reader(&[at("t", partition)]).unwrap());
        assert!(read.iter().map(|(_, record)| &record.value).eq(&(0..100).map(large).collect::<Vec<_>>()));
    }
}

/// Checks that opening the log fails with a message that contains these words.
fn check_refused(path: &Path, words: &[&str]) {
    let before = files(path);
    for error in [
        SqliteLog::open_existing(path).err().expect("opened for reading"),
        SqliteLog::open(path, Durability::Process).err().expect("opened for writing"),
    ] {
        for word in words {
            assert!(error.to_string().contains(word), "{word:?} is missing in: {error}");
        }
    }
    assert!(files(path) == before, "a log that is refused must not change");
}

#[test]
fn a_log_without_its_segments_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let whole = two_segments(&path);
    let first = format!("{SEGMENTS}/1.segment");
    let alone = Files::from([(String::new(), whole[""].clone())]);
    place(&path, &alone);
    check_refused(
        &path,
        &[
            "log.db-segments/1.segment does not exist",
            "2.segment does not exist",
            "put the folder",
            "log backup",
            "log recover",
        ],
    );
    let mut damaged = whole.clone();
    damaged.remove(&first);
    place(&path, &damaged);
    check_refused(&path, &["1.segment does not exist"]);
    let bytes = whole[&first].len();
    damaged.insert(first.clone(), whole[&first][..bytes - 1].to_vec());
    place(&path, &damaged);
    check_refused(&path, &[&format!("1.segment has {} bytes instead of {bytes}", bytes - 1)]);
    place(&path, &whole);
    fs::remove_file(segment(&path, 1)).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", segment(&path, 1)).unwrap();
    check_refused(&path, &["1.segment is a link, not a file"]);

    // A recovery gives the records up.
    let said = |losses: &[Loss]| losses.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    for files in [&alone, &damaged] {
        place(&path, files);
        let recovered = SqliteLog::recover(&path, &mut |_| {}).unwrap();
        let said = said(&recovered.losses);
        assert!(said.contains("t/0 offsets ") && said.contains("1.segment"), "{said}");
        let log = open(&path);
        log.check().unwrap();
        assert!(offsets(&log).len() >= 2 * FIRST && offsets(&log).len() < ALL);
        assert!(!beside(&path, SEGMENTS).exists(), "a copy has no segments");
        // The damaged log is kept as a whole.
        let kept = recovered.kept.unwrap();
        assert_eq!(beside(&kept, SEGMENTS).exists(), files.len() > 1);
        drop(log);
        place(&kept, &Files::new());
        fs::remove_file(&kept).ok();
    }
}

#[test]
fn damage_to_a_segment_is_named_and_recovered_from() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let whole = two_segments(&path);
    let [first, second] = [1, 2].map(|number| format!("{SEGMENTS}/{number}.segment"));
    let mut flipped = whole.clone();
    let bytes = flipped.get_mut(&first).unwrap();
    let place_of = bytes.len() - 5;
    bytes[place_of] ^= 1;
    let mut swapped = whole.clone();
    swapped.insert(first.clone(), whole[&second].clone());
    swapped.insert(second, whole[&first].clone());
    for (name, damaged) in [("flipped", flipped), ("swapped", swapped)] {
        place(&path, &damaged);
        let log = SqliteLog::open_existing(&path).unwrap();
        let checked = log.check_all(&mut |_| {}).unwrap().damage.join("\n");
        for word in ["t/0 offsets ", "the checksum of a block of 1 records from offset ", "1.segment"] {
            assert!(checked.contains(word), "{name}: {word:?} is missing in: {checked}");
        }
        let mut reader = log.reader(&[at("t", 0)]).unwrap();
        let error = loop {
            match reader.poll(Duration::ZERO, 1, 1) {
                Ok(Fetched::Records { records, .. }) => {
                    assert!(records[0].value == large(records[0].offset as usize))
                }
                Ok(other) => panic!("{name}: the end was reached: {other:?}"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(
            error.contains("log.db: the log is damaged: t/0 at offset ") && error.contains("1.segment"),
            "{error}"
        );
        let error = log.backup(folder.path().join("copy.db"), &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("1.segment"), "{error}");
        drop((reader, log));
        let recovered = SqliteLog::recover(&path, &mut |_| {}).unwrap();
        assert!(recovered.losses.iter().all(|loss| matches!(loss, Loss::Records { .. })), "{recovered:?}");
        let log = open(&path);
        log.check().unwrap();
        let lost: i64 = recovered
            .losses
            .iter()
            .map(|loss| match loss {
                Loss::Records { first, next, .. } => next - first,
                _ => 0,
            })
            .sum();
        assert_eq!(offsets(&log).len() as i64, ALL as i64 - lost);
        if name == "flipped" {
            assert_eq!(lost, 1);
        }
        fs::remove_dir_all(beside(&recovered.kept.unwrap(), SEGMENTS)).unwrap();
    }
}

#[test]
fn segments_of_another_log_are_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("log.db"), folder.path().join("copy.db"));
    two_segments(&path);
    SqliteLog::open_existing(&path).unwrap().backup(&copy, &mut |_| {}).unwrap();
    // The backup takes the place of the log, whose folder stays.
    fs::remove_file(beside(&path, "-head")).unwrap();
    fs::rename(&copy, &path).unwrap();
    let before = files(&path);
    let error = SqliteLog::open(&path, Durability::Process).err().unwrap().to_string();
    for word in [".segment belongs to another log", "move the folder ", "log.db-segments away"] {
        assert!(error.contains(word), "{word:?} is missing in: {error}");
    }
    assert!(files(&path) == before);
    // It can be read, and written without the folder.
    assert_eq!(offsets(&SqliteLog::open_existing(&path).unwrap()).len(), ALL);
    fs::rename(beside(&path, SEGMENTS), folder.path().join("away")).unwrap();
    let log = open(&path);
    write(&mut *log.producer("p").unwrap(), ALL..ALL + 3 * FIRST);
    assert_eq!(offsets(&log).len(), ALL + 3 * FIRST);
    drop(log);
    // An older state of the log takes its place.
    let older = fs::read(&path).unwrap();
    let log = open(&path);
    write(&mut *log.producer("p").unwrap(), ALL + 3 * FIRST..ALL + 6 * FIRST);
    drop(log);
    fs::remove_file(beside(&path, "-head")).unwrap();
    fs::write(&path, older).unwrap();
    let error = SqliteLog::open(&path, Durability::Process).err().unwrap().to_string();
    assert!(
        error.contains("put the file back") && error.contains("log.db-segments from number 2 on"),
        "{error}"
    );
    fs::remove_file(segment(&path, 2)).unwrap();
    assert_eq!(offsets(&open(&path)).len(), ALL + 3 * FIRST);
}

#[test]
fn a_segment_that_goes_while_it_is_written_ends_its_producer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let log = open(&path);
    topic(&log, "t", 1);
    let mut producer = log.producer("p").unwrap();
    write(&mut *producer, 0..3 * FIRST);
    fs::rename(segment(&path, 1), folder.path().join("away")).unwrap();
    producer.begin().unwrap();
    producer.send(record("t", 0, large(3 * FIRST))).unwrap();
    for _ in 0..2 {
        let error = producer.commit().unwrap_err().to_string();
        assert!(error.contains("1.segment was deleted, moved or replaced while it was open"), "{error}");
    }
    fs::rename(folder.path().join("away"), segment(&path, 1)).unwrap();
    producer.commit().unwrap();
    assert_eq!(offsets(&log).len(), 3 * FIRST + 1);
}

#[test]
fn a_log_of_an_earlier_version_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/incidents/bad-weights.db");
    fs::copy(recording, &path).unwrap();
    let page_bytes = |path: &Path| -> i64 {
        Connection::open(path).unwrap().pragma_query_value(None, "page_size", |row| row.get(0)).unwrap()
    };
    assert_eq!((version(&path), page_bytes(&path)), (3, 16 * 1024));
    let log = open(&path);
    let all = |log: &SqliteLog| drain(&mut *log.reader(&[at("signals", 0)]).unwrap());
    let before = all(&log);
    assert!(!before.is_empty());
    let mut producer = log.producer("p").unwrap();
    for number in 0..3 * FIRST {
        commit(&mut *producer, [record("signals", 0, large(number))]);
    }
    assert_eq!((version(&path), segments(&path)), (4, vec![1]));
    log.check().unwrap();
    drop((producer, log));
    let log = SqliteLog::open_existing(&path).unwrap();
    let after = all(&log);
    assert_eq!(after.len(), before.len() + 3 * FIRST);
    assert!(after[..before.len()] == before[..]);
    // A process that does not know segments reads the copy.
    log.backup(folder.path().join("copy.db"), &mut |_| {}).unwrap();
    assert_eq!(version(&folder.path().join("copy.db")), 3);
    assert!(all(&open(&folder.path().join("copy.db"))) == after);
}

#[test]
fn a_wait_for_the_disk_is_worth_many_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let log = SqliteLog::open(&path, Durability::Full).unwrap();
    topic(&log, "t", 1);
    let mut producer = log.producer("p").unwrap();
    write(&mut *producer, 0..100);
    assert!(!beside(&path, SEGMENTS).exists());
    let many = || (0..30).map(|_| record("t", 0, vec![7; LARGE]));
    commit(&mut *producer, many());
    commit(&mut *producer, many());
    let bytes = || fs::metadata(segment(&path, 1)).unwrap().len() as usize;
    let before = bytes();
    assert!(before > 30 * LARGE);
    write(&mut *producer, 160..170);
    assert_eq!(bytes(), before);
    log.check().unwrap();
}
