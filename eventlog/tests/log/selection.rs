//! Readers that look for some records: they get all of these, whatever blocks they skip.

use std::collections::BTreeMap;
use std::fs;

use rusqlite::Connection;
use warptape_eventlog::sqlite::Keep;
use warptape_eventlog::{About, Selection};

use super::random::Random;
use super::segments::segment;
use super::*;

const KEYS: u64 = 40;

/// A record with its subject.
#[derive(Clone)]
struct Subject {
    own: Option<String>,
    keys: Vec<String>,
    times: (i64, i64),
}

fn name(random: &mut Random) -> String {
    format!("V:{}", random.below(KEYS))
}

fn subject(random: &mut Random, base_ns: i64) -> Subject {
    let least_ns = base_ns + random.below(200) as i64 - 100;
    Subject {
        own: (random.below(2) == 0).then(|| name(random)),
        keys: (0..random.below(3)).map(|_| name(random)).collect(),
        times: (least_ns, least_ns + random.below(20) as i64),
    }
}

/// Returns a record whose value has its subject, and bytes up to a length.
fn described(partition: i32, subject: &Subject, bytes: usize) -> NewRecord<'static> {
    let mut value = format!("{:?} {:?}", subject.keys, subject.times).into_bytes();
    value.resize(bytes.max(value.len()), b' ');
    let (least_ns, greatest_ns) = subject.times;
    let keys = subject.keys.iter().map(|key| key.clone().into_bytes().into()).collect();
    NewRecord {
        key: subject.own.clone().map(|own| own.into_bytes().into()),
        about: Some(About { keys, least_ns, greatest_ns }),
        ..record("t", partition, value)
    }
}

fn is_selected(subject: &Subject, selection: &Selection) -> bool {
    let is_own = |key: &[u8]| subject.own.as_ref().is_some_and(|own| own.as_bytes() == key);
    let has = |key: &[u8]| is_own(key) || subject.keys.iter().any(|name| name.as_bytes() == key);
    let (least_ns, greatest_ns) = subject.times;
    selection.key.as_deref().is_none_or(|key| if selection.by_own_key { is_own(key) } else { has(key) })
        && selection.takes_times(least_ns, greatest_ns)
}

fn selection(random: &mut Random, span_ns: i64) -> Selection {
    let time = |random: &mut Random| (random.below(3) > 0).then(|| random.below(span_ns as u64) as i64);
    let since_ns = time(random);
    Selection {
        key: (random.below(3) > 0).then(|| name(random)).map(String::into_bytes),
        by_own_key: random.below(4) == 0,
        until_ns: time(random).map(|until_ns| until_ns.max(since_ns.unwrap_or(0) + 1)),
        since_ns,
    }
}

/// Reads up to the present ends, as a caller does who knows them. Returns the records by place.
fn read(
    log: &SqliteLog,
    selection: &Selection,
    from: i64,
    records_max: usize,
) -> BTreeMap<(i32, i64), Vec<u8>> {
    let places = [at("t", 0), at("t", 1)];
    let mut reader = log.reader(&places).unwrap();
    assert_eq!(reader.select(selection), !selection.is_all());
    for place in &places {
        reader.seek(place, from).unwrap();
    }
    let ends = places.each_ref().map(|place| log.offsets(place).unwrap().next);
    let mut found = BTreeMap::new();
    let has_ended = |reader: &mut dyn Consumer| {
        places.iter().zip(ends).all(|(place, end)| reader.position(place).unwrap() >= end)
    };
    while !has_ended(&mut *reader) {
        if let Fetched::Records { source, records } =
            reader.poll(Duration::ZERO, records_max, usize::MAX).unwrap()
        {
            for record in records {
                assert!(found.insert((source.partition, record.offset), record.value).is_none());
            }
        }
    }
    found
}

/// Checks that a reader with a selection gets every selected record. Returns the number of other records that it got.
fn check(log: &SqliteLog, subjects: &BTreeMap<(i32, i64), Subject>, random: &mut Random) -> usize {
    let selection = selection(random, 2_000);
    let from = random.below(300) as i64;
    let found = read(log, &selection, from, 1 + random.below(100) as usize);
    let mut others = 0;
    for (place, subject) in subjects.iter().filter(|((_, offset), _)| *offset >= from) {
        match (is_selected(subject, &selection), found.contains_key(place)) {
            (true, is_found) => assert!(is_found, "{place:?} is missing with {selection:?}"),
            (false, is_found) => others += usize::from(is_found),
        }
    }
    others
}

#[test]
fn a_selection_has_every_selected_record_and_few_others() {
    let mut random = Random::new(0x5e1e);
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("log.db"), folder.path().join("copy.db"));
    let log = open(&path);
    topic(&log, "t", 2);
    let (mut producer, mut subjects) = (log.producer("p").unwrap(), BTreeMap::new());
    let mut ends = [0, 0];
    for step in 0..200 {
        // Transactions of few keys, so that many blocks lack most keys, and of small records that make no large block.
        let kinds: Vec<_> = (0..1 + random.below(3)).map(|_| subject(&mut random, step * 10)).collect();
        let mut records = Vec::new();
        for _ in 0..1 + random.below(8) {
            let (partition, bytes) =
                (random.below(2) as usize, [50, 3_000, 40_000][random.below(3) as usize]);
            let subject = kinds[random.below(kinds.len() as u64) as usize].clone();
            records.push(described(partition as i32, &subject, bytes));
            subjects.insert((partition as i32, ends[partition]), subject);
            ends[partition] += 1;
        }
        commit(&mut *producer, records);
    }
    log.check().unwrap();
    log.backup(&copy, &mut |_| {}).unwrap();
    let copied = SqliteLog::open_existing(&copy).unwrap();
    copied.check().unwrap();
    let version = |path: &Path| -> i64 {
        Connection::open(path).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    };
    assert_eq!((version(&path), version(&copy)), (6, 5));
    for log in [&log, &copied] {
        let others: usize = (0..300).map(|_| check(log, &subjects, &mut random)).sum();
        let all = 300 * subjects.len();
        assert!(others < all / 5, "{others} of {all} records came that were not selected");
    }
    let all = read(&log, &Selection::default(), 0, 100);
    assert_eq!(all.len(), subjects.len());
    assert_eq!(read(&copied, &Selection::default(), 0, 100), all);
}

/// Commits a large record of each key in a transaction of its own.
fn write_keys(log: &SqliteLog, keys: std::ops::Range<i64>) {
    let mut producer = log.producer("p").unwrap();
    for key in keys {
        let subject = Subject { own: None, keys: vec![format!("V:{key}")], times: (key, key) };
        commit(&mut *producer, [NewRecord { timestamp_ns: key, ..described(0, &subject, 10_000) }]);
    }
}

fn of_key(key: i64) -> Selection {
    Selection { key: Some(format!("V:{key}").into_bytes()), ..Selection::default() }
}

fn offsets_of(log: &SqliteLog, selection: &Selection) -> Vec<i64> {
    read(log, selection, 0, 10).into_keys().map(|(_, offset)| offset).collect()
}

#[test]
fn records_that_nobody_described_always_come() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(&folder.path().join("log.db"));
    topic(&log, "t", 2);
    let mut producer = log.producer("q").unwrap();
    // As an older version writes them.
    for _ in 0..15 {
        commit(&mut *producer, [record("t", 0, vec![1; 10_000])]);
    }
    write_keys(&log, 15..30);
    // A block with a described record and another one.
    let subject = Subject { own: None, keys: Vec::new(), times: (0, 0) };
    commit(&mut *producer, [described(0, &subject, 5_000), record("t", 0, vec![1; 5_000])]);
    let expected: Vec<i64> = (0..15).chain([20, 30, 31]).collect();
    assert_eq!(offsets_of(&log, &of_key(20)), expected);
    let within = Selection { since_ns: Some(20), until_ns: Some(21), ..Selection::default() };
    assert_eq!(offsets_of(&log, &within), expected);
    // The own key decides even without a description.
    assert_eq!(offsets_of(&log, &Selection { by_own_key: true, ..of_key(20) }), [0; 0]);
    log.check().unwrap();
}

#[test]
fn skipped_blocks_are_not_read_but_count_for_the_position() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let log = open(&path);
    topic(&log, "t", 2);
    write_keys(&log, 0..40);
    // The segment has no intact block, and its file keeps its length.
    let length = fs::metadata(segment(&path, 1)).unwrap().len();
    fs::write(segment(&path, 1), vec![0; length as usize]).unwrap();
    let mut reader = log.reader(&[at("t", 0)]).unwrap();
    // The records of this key are in a row, as the first ones are.
    reader.select(&of_key(3));
    let found = await_records(&mut *reader, 1);
    assert_eq!(found[0].1.offset, 3);
    while reader.position(&at("t", 0)).unwrap() < 40 {
        assert!(matches!(reader.poll(Duration::ZERO, 10, usize::MAX).unwrap(), Fetched::Idle));
    }
    let error = log.check().unwrap_err().to_string();
    assert!(error.contains("does not match"), "{error}");
    // New records are found after what was skipped.
    let mut producer = log.producer("q").unwrap();
    let subject = Subject { own: Some("V:3".to_owned()), keys: Vec::new(), times: (0, 0) };
    commit(&mut *producer, [described(0, &subject, 100)]);
    assert_eq!(await_records(&mut *reader, 1)[0].1.offset, 40);
}

#[test]
fn readers_that_skip_begin_after_removed_records() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(&folder.path().join("log.db"));
    topic(&log, "t", 2);
    write_keys(&log, 0..40);
    let mut fresh = log.reader(&[at("t", 0)]).unwrap();
    fresh.select(&of_key(35));
    let mut trimmer = log.trimmer("t").unwrap();
    while !trimmer.count().unwrap() {}
    assert!((400_000..420_000).contains(&trimmer.bytes()), "{}", trimmer.bytes());
    let keep = Keep { since_ns: Some(30), bytes_max: None };
    while trimmer.trim(&keep, &[i64::MAX; 2]).unwrap().records > 0 {}
    assert_eq!(log.offsets(&at("t", 0)).unwrap().first, 30);
    assert_eq!(await_records(&mut *fresh, 1)[0].1.offset, 35);
    assert_eq!(offsets_of(&log, &of_key(35)), [35]);
    log.check().unwrap();
}

#[test]
fn damaged_statistics_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let log = open(&path);
    topic(&log, "t", 2);
    write_keys(&log, 0..20);
    drop(log);
    let connection = Connection::open(&path).unwrap();
    let stored = |offset: i64| -> Vec<u8> {
        connection
            .query_row("SELECT block FROM records_1_0 WHERE offset = ?1", [offset], |row| row.get(0))
            .unwrap()
    };
    let whole = stored(15);
    // A time, the filter, and the length.
    for byte in [6, 22, 0] {
        let mut changed = whole.clone();
        changed[byte] ^= 0x10;
        let set = |bytes: &[u8]| {
            connection.execute("UPDATE records_1_0 SET block = ?1 WHERE offset = 15", [bytes]).unwrap();
        };
        set(&changed);
        let log = open(&path);
        let mut reader = log.reader(&[at("t", 0)]).unwrap();
        reader.select(&of_key(18));
        let error = loop {
            match reader.poll(Duration::ZERO, 10, usize::MAX) {
                Ok(_) => assert!(reader.position(&at("t", 0)).unwrap() <= 15, "byte {byte}"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains("t/0 at offset 15") && error.contains("statistics"), "{error}");
        let error = log.check().unwrap_err().to_string();
        assert!(error.contains("t/0 offsets 15 to 15") && error.contains("statistics"), "{error}");
        drop((reader, log));
        set(&whole);
    }
    assert_eq!(offsets_of(&open(&path), &of_key(18)), [18]);
}
