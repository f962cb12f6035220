//! The storage of records in the file: many per row.

use rusqlite::Connection;

use super::*;

/// Reads a partition from an offset on, with these limits of a poll.
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
    // Rows of one record and of many, several rows per commit, and a record larger than other rows.
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
