//! Removal of segments: by retention, and by the next opening.

use std::fs;

use warptape_eventlog::LogError;
use warptape_eventlog::sqlite::Keep;

use super::segments::{FIRST, LARGE, large, offsets, segment, segments, write};
use super::*;

/// Removes the records that `keep_from` does not need; returns their number.
fn trim(log: &SqliteLog, keep_from: i64) -> u64 {
    let mut trimmer = log.trimmer("t").unwrap();
    while !trimmer.count().unwrap() {}
    let keep = Keep { since_ns: None, bytes_max: Some(0) };
    let mut records = 0;
    loop {
        match trimmer.trim(&keep, &[keep_from]).unwrap().records {
            0 => return records,
            trimmed => records += trimmed,
        }
    }
}

#[test]
fn retention_removes_segments_without_records() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let log = open(&path);
    topic(&log, "t", 1);
    let step = 3 * FIRST;
    let mut offset = 0;
    // Runs 0 and 1 are over, run 2 goes on.
    let mut producers = Vec::new();
    for _ in 0..3 {
        let mut producer = log.producer("p").unwrap();
        write(&mut *producer, offset..offset + step);
        offset += step;
        producers.push(producer);
    }
    let live = producers.pop();
    drop(producers);
    assert_eq!(segments(&path), [1, 2, 3]);
    let bytes = {
        let mut trimmer = log.trimmer("t").unwrap();
        while !trimmer.count().unwrap() {}
        trimmer.bytes() as usize
    };
    assert_eq!(bytes, 3 * step * (LARGE + 20));
    assert_eq!(trim(&log, step as i64 - 1), step as u64 - 1);
    assert_eq!(segments(&path), [1, 2, 3], "one row refers to the first segment");
    assert_eq!(trim(&log, step as i64), 1);
    assert_eq!(segments(&path), [2, 3]);
    log.check().unwrap();
    // A backup that goes on keeps the segments of its snapshot.
    let copy = folder.path().join("copy.db");
    let mut is_trimmed = false;
    log.backup(&copy, &mut |_| {
        if !is_trimmed {
            is_trimmed = true;
            assert_eq!(trim(&log, 2 * step as i64), step as u64);
            assert_eq!(segments(&path), [2, 3]);
        }
    })
    .unwrap();
    assert_eq!(offsets(&open(&copy)), (step..3 * step).collect::<Vec<_>>());
    // The next opening removes it, and so does the next removal. A live producer keeps its segment.
    assert_eq!(trim(&log, 3 * step as i64), step as u64 - 1, "the last row stays");
    drop(open(&path));
    assert_eq!(segments(&path), [3]);
    let mut live = live.unwrap();
    write(&mut *live, offset..offset + 2);
    assert_eq!(trim(&log, i64::MAX), 2);
    assert_eq!(offsets(&log), [offset + 1]);
    drop(live);
    write(&mut *log.producer("p").unwrap(), offset + 2..offset + 2 + step);
    trim(&log, i64::MAX);
    drop(open(&path));
    assert_eq!(segments(&path), [4]);
    log.check().unwrap();
}

#[test]
fn segments_that_were_taken_for_nothing_are_removed_by_the_next_opening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let log = open(&path);
    topic(&log, "t", 1);
    let mut producer = log.producer("p").unwrap();
    write(&mut *producer, 0..FIRST);
    assert_eq!(segments(&path), [1]);
    // Another process opens the log while the producer lives.
    drop(open(&path));
    assert_eq!(segments(&path), [1]);
    write(&mut *producer, FIRST..2 * FIRST);
    drop((producer, log));
    let log = open(&path);
    assert_eq!(segments(&path), [1]);
    write(&mut *log.producer("p").unwrap(), 2 * FIRST..3 * FIRST);
    assert_eq!(segments(&path), [1, 2]);
    // A process that dies before its transaction commits leaves a file without blocks.
    fs::write(segment(&path, 3), "header").unwrap();
    drop(log);
    let log = open(&path);
    assert_eq!(segments(&path), [1, 3]);
    write(&mut *log.producer("p").unwrap(), 3 * FIRST..5 * FIRST);
    assert_eq!(segments(&path), [1, 3]);
    assert_eq!(offsets(&log).len(), 5 * FIRST);
    log.check().unwrap();
}

#[test]
fn a_reader_among_removals_is_overtaken_and_never_finds_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let log = open(&path);
    topic(&log, "t", 1);
    let step = 2 * FIRST;
    let (mut overtaken, mut from_start) = (0, 0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let log = open(&path);
            for run in 0..60 {
                // Each run takes another segment, and the ones before go.
                write(&mut *log.producer("p").unwrap(), run * step..(run + 1) * step);
                trim(&log, (run * step) as i64);
            }
        });
        let reader_log = SqliteLog::open_existing(&path).unwrap();
        while !writer.is_finished() {
            let mut reader = reader_log.reader(&[at("t", 0)]).unwrap();
            from_start += 1;
            for _ in 0..3 * step {
                match reader.poll(Duration::ZERO, 1, 1) {
                    Ok(Fetched::Records { records, .. }) => {
                        assert!(records[0].value == large(records[0].offset as usize));
                    }
                    Ok(_) => break,
                    Err(LogError::OffsetOutOfRange { .. }) => {
                        overtaken += 1;
                        break;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            SqliteLog::open_existing(&path).unwrap();
        }
    });
    println!("{from_start} readers, {overtaken} overtaken");
    log.check().unwrap();
}
