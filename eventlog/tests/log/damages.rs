//! Random damage to every file of logs of all kinds: what is read is what was written, or an error names the damage; and a recovery
//! gives nothing that was not written. `tests/crash --damages N` does N of them (`WARPTAPE_TEST_DAMAGES`), `WARPTAPE_TEST_SEED` says which.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rusqlite::Connection;
use warptape_eventlog::LogError;

use super::loss::{Files, files, place};
use super::random::Random;
use super::*;

const DAMAGES: u64 = 240;
const SEED: u64 = 0x5EED_0004;
const PARTITIONS: i32 = 2;

/// All that a log gives.
#[derive(Clone, Debug, Default, PartialEq)]
struct Content {
    records: BTreeMap<TopicPartition, Vec<Record>>,
    committed: Vec<Option<i64>>,
}

/// A log to be damaged.
struct Kind {
    name: &'static str,
    files: Files,
    /// Of an earlier moment, whole as well.
    older: Files,
    content: Content,
    /// Whether its rows carry checksums.
    has_checksums: bool,
}

fn sources() -> Vec<TopicPartition> {
    ["events", "states"].iter().flat_map(|topic| (0..PARTITIONS).map(|n| at(topic, n))).collect()
}

/// Writes so many transactions of records of all kinds.
fn write(log: &SqliteLog, transactions: std::ops::Range<i64>) {
    let mut producer = log.producer("p").unwrap();
    for number in transactions {
        producer.begin().unwrap();
        for count in 0..number % 7 + 1 {
            for partition in 0..PARTITIONS {
                let value = format!("{number}/{count};").repeat(1 + (number * 37 % 200) as usize);
                let headers = vec![("n".to_owned(), vec![number as u8]); usize::from(count == 0)];
                let event = NewRecord { headers: headers.into(), ..record("events", partition, &value) };
                producer.send(event).unwrap();
                let key = format!("key {}", (number + count) % 11).into_bytes();
                let state = NewRecord { key: Some(key.into()), ..record("states", partition, &value) };
                producer.send(state).unwrap();
            }
        }
        let offsets: Vec<_> = sources().into_iter().map(|source| (source, number)).collect();
        producer.send_offsets("g", &offsets).unwrap();
        producer.commit().unwrap();
    }
}

/// Tables of an older format, without any topic.
fn make_older(path: &Path, version: i32) {
    let tables = include_str!("format_1.sql").lines().filter(|line| !line.starts_with("INSERT"));
    let sql: Vec<_> = tables.collect();
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(&sql.join("\n")).unwrap();
    for table in ["records_1_0", "records_1_1", "records_2_0"] {
        connection.execute_batch(&format!("DROP TABLE {table}")).unwrap();
    }
    connection.pragma_update(None, "user_version", version).unwrap();
}

fn make(folder: &Path, name: &'static str, version: i32, is_crashed: bool) -> Kind {
    let path = folder.join(name);
    if version < 3 {
        make_older(&path, version);
    }
    let log = open(&path);
    let topics = [false, true].map(|compacted| TopicSpec {
        name: if compacted { "states" } else { "events" }.to_owned(),
        partitions: PARTITIONS,
        compacted,
        ..TopicSpec::default()
    });
    log.create_topics(&topics).unwrap();
    write(&log, 0..20);
    drop(log);
    let older = files(&path);
    let log = open(&path);
    write(&log, 20..40);
    let log = if is_crashed { Some(log) } else { None };
    let files = files(&path);
    drop(log);
    let content = read(&path).unwrap();
    Kind { name, files, older, content, has_checksums: version >= 3 }
}

/// Everything that can be read of a log; an error ends it.
fn read(path: &Path) -> Result<Content, LogError> {
    content(&SqliteLog::open_existing(path)?)
}

fn content(log: &SqliteLog) -> Result<Content, LogError> {
    let mut content = Content::default();
    let topics = log.topics()?;
    for source in sources() {
        let mut reader = log.reader(std::slice::from_ref(&source))?;
        let mut records = Vec::new();
        while let Fetched::Records { records: polled, .. } = reader.poll(Duration::ZERO, 50, usize::MAX)? {
            records.extend(polled);
            assert!(records.len() < 1_000, "there is no end of records");
        }
        let topic = topics.iter().find(|topic| topic.spec.name == source.topic).expect("a reader found it");
        assert_eq!(reader.position(&source)?, topic.offsets[source.partition as usize].next);
        content.committed.push(log.committed("g", &source)?);
        content.records.insert(source, records);
    }
    Ok(content)
}

/// Damages one of the files; says how.
fn damage(kind: &Kind, files: &mut Files, random: &mut Random) -> String {
    let endings: Vec<_> = files.keys().copied().collect();
    let ending = endings[random.below(endings.len() as u64) as usize];
    let bytes = files.get_mut(ending).unwrap();
    let length = bytes.len() as u64;
    let how = match random.below(10) {
        0 => {
            files.remove(ending);
            "removed".to_owned()
        }
        1 => {
            bytes.truncate(random.below(length) as usize);
            format!("cut to {} bytes", bytes.len())
        }
        2 => {
            let start = random.below(length) as usize;
            let end = (start + random.below(4096) as usize).min(bytes.len());
            bytes[start..end].fill(random.next() as u8);
            format!("{start}..{end} overwritten")
        }
        3 => {
            // With its head, what is older is a log as well.
            match kind.older.get(ending) {
                Some(older) if ending.is_empty() => *bytes = older.clone(),
                _ => bytes.clear(),
            }
            "replaced by an older one".to_owned()
        }
        flips => {
            // Beginnings have what matters most.
            let limit = if random.below(3) == 0 { length.min(200) } else { length };
            let count = if flips < 8 { 1 } else { 1 + random.below(8) };
            let places: Vec<_> = (0..count).map(|_| random.below(limit * 8) as usize).collect();
            for place in &places {
                bytes[place / 8] ^= 1 << (place % 8);
            }
            format!("bits {places:?} flipped")
        }
    };
    format!("{} {ending:?}: {how}", kind.name)
}

/// What a log of format 1 or 2 can say at least: how many records there are.
fn offsets(content: &Content) -> Vec<Vec<i64>> {
    content.records.values().map(|records| records.iter().map(|record| record.offset).collect()).collect()
}

/// Goes on with a damaged log; gives nothing that was not written.
fn recover(path: &Path, kind: &Kind) -> Result<(), LogError> {
    SqliteLog::recover(path, &mut |_| {})?;
    let log = open(path);
    log.check()?;
    let topics = log.topics()?;
    for source in sources() {
        if !topics.iter().any(|topic| topic.spec.name == source.topic) {
            continue;
        }
        let written = &kind.content.records[&source];
        for (_, record) in drain(&mut *log.reader(std::slice::from_ref(&source))?) {
            let was_written = |one: &Record| *one == record || !kind.has_checksums;
            // Of a compacted topic older records of a key may come back.
            let may_differ = source.topic == "states";
            assert!(may_differ || written.iter().any(was_written), "a recovery made {record:?}");
        }
        commit(&mut *log.producer("q")?, [record(&source.topic, source.partition, "more")]);
    }
    log.check()
}

#[test]
fn damage_to_any_file_of_any_log_is_named_or_harmless() {
    let number = |name: &str, default| {
        std::env::var(name).map_or(default, |text| {
            text.parse().unwrap_or_else(|_| panic!("{name} is a whole number, not {text:?}"))
        })
    };
    let (damages, seed) = (number("WARPTAPE_TEST_DAMAGES", DAMAGES), number("WARPTAPE_TEST_SEED", SEED));
    println!("WARPTAPE_TEST_SEED={seed}");
    let mut random = Random::new(seed);
    let folder = tempfile::tempdir().unwrap();
    let kinds = [
        make(folder.path(), "closed.db", 3, false),
        make(folder.path(), "crashed.db", 3, true),
        make(folder.path(), "closed-1.db", 1, false),
        make(folder.path(), "crashed-1.db", 1, true),
        make(folder.path(), "closed-2.db", 2, false),
        make(folder.path(), "crashed-2.db", 2, true),
    ];
    let (mut named, mut harmless, mut recovered) = (0, 0, 0);
    for round in 0..damages {
        // Logs of the newest format more often.
        let kind = &kinds[(random.below(12) as usize).checked_sub(6).unwrap_or(round as usize % 2)];
        let mut damaged = kind.files.clone();
        let what = format!("round {round}, {}", damage(kind, &mut damaged, &mut random));
        // With what recoveries keep of it.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.db");
        place(&path, &damaged);
        let is_of_file = damaged.get("") != kind.files.get("");
        let judge = |read: Result<Content, LogError>| match read {
            Ok(content) if kind.has_checksums || !is_of_file => {
                assert!(content == kind.content, "{what}: something else was read");
                true
            }
            // Without checksums a changed value stays unnoticed, but none may come or go, but for those of compacted topics.
            Ok(content) => {
                assert_eq!(offsets(&content)[..2], offsets(&kind.content)[..2], "{what}");
                true
            }
            Err(error) => {
                assert!(error.to_string().contains("log.db"), "{what}: {error}");
                false
            }
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let was_read = judge(read(&path));
            // Whoever writes is told as well, or goes on with all of it.
            place(&path, &damaged);
            let written = SqliteLog::open(&path, Durability::Process).and_then(|log| {
                let read = content(&log)?;
                log.producer("q").map(|_| read)
            });
            if judge(written) && was_read {
                return (true, false);
            }
            place(&path, &damaged);
            match recover(&path, kind) {
                Ok(()) => (false, true),
                Err(error) => {
                    assert!(error.to_string().contains("log.db"), "{what}: {error}");
                    (false, false)
                }
            }
        }));
        match outcome.unwrap_or_else(|_| panic!("{what}: panicked")) {
            (true, _) => harmless += 1,
            (false, is_recovered) => {
                named += 1;
                recovered += u64::from(is_recovered);
            }
        }
    }
    println!("{damages} damages: {named} named, of which {recovered} recovered; {harmless} harmless");
    assert!(named > damages / 4 && recovered > named / 2, "{named} named, {recovered} recovered");
}
