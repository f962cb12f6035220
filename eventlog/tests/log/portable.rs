//! Files with records at the offsets that they had in another log: with gaps anywhere, complete or missing.

use std::fs;

use rusqlite::Connection;
use warptape_eventlog::sqlite::{GIVEN_UP_MAX, PortableFile};
use warptape_eventlog::{LogError, RecordClock};

use super::*;

fn spec(name: &str, partitions: i32, compacted: bool) -> TopicSpec {
    TopicSpec { name: name.to_owned(), partitions, compacted, ..TopicSpec::default() }
}

fn copied(offset: i64, key: Option<&str>) -> Record {
    Record {
        offset,
        timestamp_ns: 1_000 + offset,
        key: key.map(|key| key.as_bytes().to_vec()),
        headers: vec![("n".to_owned(), vec![offset as u8]); usize::from(offset % 3 == 0)],
        value: format!("value {offset} ").repeat(1 + offset as usize % 40).into_bytes(),
    }
}

/// Records at these offsets.
fn at_offsets(offsets: impl IntoIterator<Item = i64>) -> Vec<Record> {
    offsets.into_iter().map(|offset| copied(offset, None)).collect()
}

fn read(log: &SqliteLog, source: &TopicPartition) -> Vec<Record> {
    let mut reader = log.reader(std::slice::from_ref(source)).unwrap();
    let records = drain(&mut *reader).into_iter().map(|(_, record)| record).collect();
    assert_eq!(reader.position(source).unwrap(), reader.offsets(source).unwrap().next);
    records
}

#[test]
fn records_keep_offsets_times_keys_and_headers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy.db");
    let mut file = PortableFile::create(&path).unwrap();
    file.add_topic(&spec("t", 3, false)).unwrap();
    file.add_topic(&spec("compacted", 1, true)).unwrap();
    // Gaps at the beginning, in between and at the end, as in a log that ends transactions with markers, and an empty
    // partition.
    let gaps = at_offsets([7, 8, 9, 11, 12, 900]);
    let dense = at_offsets(0..500);
    let many = at_offsets((0..400).map(|n| n * 3));
    file.remove_before(&at("t", 0), 5).unwrap();
    for records in gaps.chunks(2) {
        file.append(&at("t", 0), records).unwrap();
    }
    file.skip_to(&at("t", 0), 1_000).unwrap();
    file.append(&at("t", 1), &dense).unwrap();
    file.append(&at("t", 2), &many).unwrap();
    let keyed: Vec<Record> =
        [(2, "a"), (5, "b"), (6, "a")].map(|(offset, key)| copied(offset, Some(key))).into();
    file.append(&at("compacted", 0), &keyed).unwrap();
    file.skip_to(&at("compacted", 0), 8).unwrap();
    file.commit("g", &at("t", 0), 950).unwrap();
    file.commit("g", &at("t", 0), 960).unwrap();
    assert!(!path.exists(), "it has no name before it is whole");
    file.finish().unwrap();
    let names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["copy.db"]);

    let log = SqliteLog::open_existing(&path).unwrap();
    let checked = log.check_all(&mut |_| {}).unwrap();
    assert_eq!((checked.damage.as_slice(), checked.partitions), (&[] as &[String], 4));
    let told = |text: &str| checked.given_up.iter().any(|given_up| given_up == text);
    assert!(told("t/0 offsets 0 to 6") && told("t/0 offsets 901 to 999"), "{:?}", checked.given_up);
    assert!(400 > GIVEN_UP_MAX && told("t/2 798 offsets in 399 places"), "{:?}", checked.given_up);
    assert_eq!(read(&log, &at("t", 0)), gaps);
    assert_eq!(read(&log, &at("t", 1)), dense);
    assert_eq!(read(&log, &at("t", 2)), many);
    assert_eq!(read(&log, &at("compacted", 0)), &keyed[1..]);
    assert_eq!(log.committed("g", &at("t", 0)).unwrap(), Some(960));
    assert_eq!(log.committed("g", &at("t", 1)).unwrap(), None);
    let offsets: Vec<_> =
        log.topics().unwrap()[1].offsets.iter().map(|range| (range.first, range.next)).collect();
    assert_eq!(offsets, [(7, 1_000), (0, 500), (0, 1_198)]);

    // The file is an ordinary log: it continues at its end, and a backup of it is the same.
    drop(log);
    let log = open(&path);
    commit(&mut *log.producer("p").unwrap(), [record("t", 0, "next")]);
    assert_eq!(read(&log, &at("t", 0)).last().unwrap().offset, 1_000);
    let backup = folder.path().join("backup.db");
    log.backup(&backup, &mut |_| {}).unwrap();
    assert_eq!(read(&open(&backup), &at("t", 0)), read(&log, &at("t", 0)));
}

/// Backups and recovered logs keep the record clock, and damage to it is detected.
#[test]
fn times_are_of_the_clock_that_was_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy.db");
    let mut file = PortableFile::create(&path).unwrap();
    let clocks =
        [("written", Some(RecordClock::Writer)), ("appended", Some(RecordClock::Log)), ("untold", None)];
    for (name, clock) in clocks {
        file.add_topic(&spec(name, 2, false)).unwrap();
        file.append(&at(name, 0), &at_offsets(0..3)).unwrap();
        file.tell_record_clock(name, clock).unwrap();
    }
    assert!(file.tell_record_clock("none", None).is_err());
    file.finish().unwrap();
    let clocks = |path: &std::path::Path| {
        let log = SqliteLog::open_existing(path).unwrap();
        assert_eq!(log.check_all(&mut |_| {}).unwrap().damage, [] as [String; 0]);
        ["written", "appended", "untold", "none"].map(|name| log.record_clock(name).unwrap())
    };
    let told = [Some(RecordClock::Writer), Some(RecordClock::Log), None, None];
    assert_eq!(clocks(&path), told);
    let backup = folder.path().join("backup.db");
    SqliteLog::open_existing(&path).unwrap().backup(&backup, &mut |_| {}).unwrap();
    assert_eq!(clocks(&backup), told);

    let changed = "UPDATE partitions SET next_offset = 2 WHERE topic_id = 2 AND partition = -1";
    Connection::open(&backup).unwrap().execute_batch(changed).unwrap();
    let log = SqliteLog::open_existing(&backup).unwrap();
    let expected = "the clock of topic number 2 does not match its checksum";
    let found = log.check_all(&mut |_| {}).unwrap().damage;
    assert!(matches!(&found[..], [found] if found.ends_with(expected)), "{found:?}");
    assert!(log.record_clock("appended").is_err());
    drop(log);
    let recovered = SqliteLog::recover(&backup, &mut |_| {}).unwrap();
    assert_eq!(recovered.losses.len(), 1, "{recovered:?}");
    assert_eq!(clocks(&backup), [Some(RecordClock::Writer), None, None, None], "it is not known any more");
}

/// A partition whose first transactions were aborted begins at 0 all the same, so that it does not seem to have lost
/// records.
#[test]
fn offsets_that_never_had_records_are_not_removed_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy.db");
    let mut file = PortableFile::create(&path).unwrap();
    file.add_topic(&spec("t", 4, false)).unwrap();
    file.append(&at("t", 0), &at_offsets([3, 4])).unwrap();
    file.skip_to(&at("t", 1), 6).unwrap();
    file.remove_before(&at("t", 2), 4).unwrap();
    file.append(&at("t", 2), &at_offsets([6])).unwrap();
    file.remove_before(&at("t", 3), 9).unwrap();
    file.finish().unwrap();
    let check = |log: &SqliteLog| {
        let topic = &log.topics().unwrap()[0];
        let offsets: Vec<_> = topic.offsets.iter().map(|range| (range.first, range.next)).collect();
        assert_eq!(offsets, [(0, 5), (0, 6), (6, 7), (9, 9)]);
        for (partition, count) in [(0, 2), (1, 0), (2, 1), (3, 0)] {
            assert_eq!(read(log, &at("t", partition)).len(), count);
        }
        assert_eq!(log.check_all(&mut |_| {}).unwrap().damage, [] as [String; 0]);
    };
    let log = SqliteLog::open_existing(&path).unwrap();
    check(&log);
    let backup = folder.path().join("backup.db");
    log.backup(&backup, &mut |_| {}).unwrap();
    check(&SqliteLog::open_existing(&backup).unwrap());
}

#[test]
fn a_seek_into_a_gap_finds_what_follows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy.db");
    let mut file = PortableFile::create(&path).unwrap();
    file.add_topic(&spec("t", 1, false)).unwrap();
    file.append(&at("t", 0), &at_offsets((0..90).filter(|n| n % 10 > 3))).unwrap();
    file.skip_to(&at("t", 0), 100).unwrap();
    file.finish().unwrap();
    let log = SqliteLog::open_existing(&path).unwrap();
    let mut reader = log.reader(&[at("t", 0)]).unwrap();
    for (from, first) in [(0, Some(4)), (9, Some(9)), (10, Some(14)), (41, Some(44)), (90, None), (100, None)]
    {
        reader.seek(&at("t", 0), from).unwrap();
        let found = drain(&mut *reader).first().map(|(_, record)| record.offset);
        assert_eq!(found, first, "from {from}");
        assert_eq!(reader.position(&at("t", 0)).unwrap(), 100);
    }
}

#[test]
fn offsets_only_rise() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = PortableFile::create(folder.path().join("copy.db")).unwrap();
    file.add_topic(&spec("t", 1, false)).unwrap();
    file.append(&at("t", 0), &at_offsets([4])).unwrap();
    let error = file.append(&at("t", 0), &at_offsets([4])).unwrap_err().to_string();
    assert!(error.contains("5 or more in t/0"), "{error}");
    let error = file.append(&at("t", 1), &at_offsets([4])).unwrap_err().to_string();
    assert!(error.contains("t/1"), "{error}");
}

#[test]
fn nothing_is_written_over_and_nothing_half_written_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy.db");
    let unfinished = folder.path().join("copy.db-unfinished");
    let refused = |expected: &str| {
        let error = PortableFile::create(&path).err().expect("it is refused");
        assert!(matches!(error, LogError::Unreadable { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    };
    for beside in ["copy.db", "copy.db-wal", "copy.db-head"].map(|name| folder.path().join(name)) {
        fs::write(&beside, "something").unwrap();
        refused(&format!("{} exists, ", beside.display()));
        assert_eq!(fs::read(&beside).unwrap(), b"something");
        fs::remove_file(&beside).unwrap();
    }
    // An empty file may be replaced, and so may the unfinished file of a killed process.
    fs::write(&path, "").unwrap();
    fs::write(&unfinished, "left by another").unwrap();
    let mut file = PortableFile::create(&path).unwrap();
    refused("another process is writing");
    file.add_topic(&spec("t", 1, false)).unwrap();
    file.append(&at("t", 0), &at_offsets(0..100_000)).unwrap();
    // The unfinished file is not accepted as a log.
    fs::copy(&unfinished, folder.path().join("killed.db")).unwrap();
    SqliteLog::open_existing(folder.path().join("killed.db")).err().expect("half a file is refused");
    drop(file);
    assert!(!unfinished.exists() && fs::metadata(&path).unwrap().len() == 0);
    let file = PortableFile::create(&path).unwrap();
    file.finish().unwrap();
    assert_eq!(SqliteLog::open_existing(&path).unwrap().topics().unwrap(), []);
    // Another process created the file meanwhile: it is not replaced.
    let other = folder.path().join("other.db");
    let file = PortableFile::create(&other).unwrap();
    fs::write(&other, "mine").unwrap();
    let error = file.finish().unwrap_err().to_string();
    assert!(error.contains("another process has created the file meanwhile"), "{error}");
    assert_eq!(fs::read(&other).unwrap(), b"mine");
    refused("exists, and existing files");
}
