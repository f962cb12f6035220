//! How records lie in the file: many to a row, and as format 1 had them.

use rusqlite::Connection;

use super::*;

/// Reads a partition from an offset on, so many records or bytes a poll.
fn read_from(log: &SqliteLog, offset: i64, records_max: usize, bytes_max: usize) -> Vec<Record> {
    let mut reader = log.reader(&[at("t", 0)]).unwrap();
    reader.seek(&at("t", 0), offset).unwrap();
    let mut read = Vec::new();
    while let Fetched::Records { records, .. } = reader.poll(Duration::ZERO, records_max, bytes_max).unwrap()
    {
        assert!(records.len() <= records_max);
        read.extend(records);
    }
    read
}

#[test]
fn any_record_can_be_read_whatever_was_committed_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.db");
    let log = open(&path);
    topic(&log, "t", 1);
    let mut producer = log.producer("p").unwrap();
    let mut written = 0;
    // Rows of one record and of many, several rows to a commit, and a record larger than others' rows.
    for (count, bytes) in [(1, 10), (700, 100), (5, 30_000), (1, 200_000), (40, 0), (3, 1)] {
        let value = |number: i32| number.to_string().repeat(bytes).into_bytes();
        commit(&mut *producer, (written..written + count).map(|number| record("t", 0, value(number))));
        written += count;
    }
    log.check().unwrap();
    let all = read_from(&log, 0, usize::MAX, usize::MAX);
    assert!(all.iter().map(|record| record.offset).eq(0..i64::from(written)));
    for number in [0, 1, 700, 701, 705, 707, 749] {
        let text = number.to_string();
        assert!(all[number].value.starts_with(text.as_bytes()) || all[number].value.is_empty(), "{number}");
    }
    for (records_max, bytes_max) in [(1, usize::MAX), (7, usize::MAX), (usize::MAX, 1), (64, 5_000)] {
        for offset in [0, 1, 2, 350, 700, 701, 703, 706, 707, 748, 749] {
            let read = read_from(&log, offset, records_max, bytes_max);
            assert_eq!(
                read,
                all[offset as usize..],
                "from {offset}, {records_max} records, {bytes_max} bytes"
            );
        }
    }
    let rows: i64 = Connection::open(&path)
        .unwrap()
        .query_row("SELECT count(*) FROM records_1_0", [], |row| row.get(0))
        .unwrap();
    assert!(rows < i64::from(written) / 10, "{rows} rows for {written} records");
}

/// The newest values of `states`, and those of `events` by partition, of the stored log.
fn check_stored(log: &SqliteLog, more: usize) {
    log.check().unwrap();
    let read = |topic: &str, partition| drain(&mut *log.reader(&[at(topic, partition)]).unwrap());
    let text = |(_, record): &(_, Record)| String::from_utf8(record.value.clone()).unwrap();
    let states = read("states", 0);
    let newest = ["state 2.1", "state 2.2", "state 2.3"];
    assert!(states.iter().map(text).take(3).eq(newest));
    assert_eq!(states[0].1.key.as_deref(), Some(b"s1".as_slice()));
    let events = [read("events", 0), read("events", 1)];
    assert!(events[0].iter().map(text).take(3).eq(["event 0.0", "event 0.2", "event 1.0"]));
    assert_eq!(events[0][1].1.key.as_deref(), Some(b"k".as_slice()));
    assert_eq!(events[0][1].1.timestamp_ns, 1_700_000_000_000_000_002);
    assert_eq!(events[1][0].1.headers, [("trace".to_owned(), vec![0, 255])]);
    assert_eq!(events[0].len(), 6 + more);
    assert_eq!(log.committed("group", &at("events", 0)).unwrap(), Some(6));
}

#[test]
fn a_log_of_format_1_is_read_and_continued() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.db");
    Connection::open(&path).unwrap().execute_batch(include_str!("format_1.sql")).unwrap();
    check_stored(&SqliteLog::open_existing(&path).unwrap(), 0);
    let log = open(&path);
    check_stored(&log, 0);
    let mut producer = log.producer("writer").unwrap();
    commit(&mut *producer, (0..5).map(|_| record("events", 0, "more")));
    topic(&log, "new", 1);
    commit(&mut *producer, [record("new", 0, "new")]);
    drop((producer, log));
    let log = SqliteLog::open_existing(&path).unwrap();
    check_stored(&log, 5);
    assert_eq!(drain(&mut *log.reader(&[at("new", 0)]).unwrap()).len(), 1);
    // Programs of then read it as well.
    let version: i32 =
        Connection::open(&path).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 1);
}
