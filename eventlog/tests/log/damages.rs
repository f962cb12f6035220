//! Random damage to every file of logs of all kinds. Reading gives the written records, or an error that names the
//! damage; a recovery never invents records. `tests/crash --damages N` runs N cases (`WARPTAPE_TEST_DAMAGES`), from the
//! seed `WARPTAPE_TEST_SEED`.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use warptape_eventlog::{About, LogError};

use super::loss::{Files, files, place};
use super::random::Random;
use super::*;

const DAMAGES: u64 = 240;
const SEED: u64 = 0x5EED_0004;
const PARTITIONS: i32 = 2;

/// The whole content of a log.
#[derive(Clone, Debug, Default, PartialEq)]
struct Content {
    records: BTreeMap<TopicPartition, Vec<Record>>,
    committed: Vec<Option<i64>>,
}

/// A log to be damaged.
struct Kind {
    name: &'static str,
    files: Files,
    /// Complete files of an earlier moment.
    older: Files,
    content: Content,
}

fn sources() -> Vec<TopicPartition> {
    ["events", "states"].iter().flat_map(|topic| (0..PARTITIONS).map(|n| at(topic, n))).collect()
}

/// Writes `transactions` with records of all kinds.
fn write(log: &SqliteLog, transactions: std::ops::Range<i64>) {
    let mut producer = log.producer("p").unwrap();
    // The following large blocks go to a segment.
    commit(&mut *producer, [record("events", 0, "x".repeat(70_000))]);
    for number in transactions {
        producer.begin().unwrap();
        for count in 0..number % 7 + 1 {
            for partition in 0..PARTITIONS {
                let value = format!("{number}/{count};").repeat(1 + (number * 37 % 200) as usize);
                let headers = vec![("n".to_owned(), vec![number as u8]); usize::from(count == 0)];
                // Blocks of one partition have statistics.
                let about = (partition == 1).then(|| About::at(number));
                let event =
                    NewRecord { headers: headers.into(), about, ..record("events", partition, &value) };
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

fn make(folder: &Path, name: &'static str, is_crashed: bool) -> Kind {
    let path = folder.join(name);
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
    Kind { name, files, older, content }
}

/// Reads the whole content of a log, up to the first error.
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

/// Damages one of the files; returns a description.
fn damage(kind: &Kind, files: &mut Files, random: &mut Random) -> String {
    let endings: Vec<_> = files.keys().cloned().collect();
    let ending = &endings[random.below(endings.len() as u64) as usize];
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
            // An older file with its older head is a valid log as well.
            match kind.older.get(ending) {
                Some(older) if ending.is_empty() => *bytes = older.clone(),
                _ => bytes.clear(),
            }
            "replaced by an older one".to_owned()
        }
        flips => {
            // The beginnings of files are the most critical parts.
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

/// Recovers a damaged log, and checks that it has only written records.
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
            // Older records of a key may reappear in a compacted topic.
            let may_differ = source.topic == "states";
            assert!(may_differ || written.contains(&record), "a recovery made {record:?}");
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
    let kinds = [make(folder.path(), "closed.db", false), make(folder.path(), "crashed.db", true)];
    let (mut named, mut harmless, mut recovered) = (0, 0, 0);
    for round in 0..damages {
        let kind = &kinds[round as usize % kinds.len()];
        let mut damaged = kind.files.clone();
        let what = format!("round {round}, {}", damage(kind, &mut damaged, &mut random));
        // A folder with room for the originals that recoveries keep.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.db");
        place(&path, &damaged);
        let judge = |read: Result<Content, LogError>| match read {
            Ok(content) => {
                assert!(content == kind.content, "{what}: something else was read");
                true
            }
            Err(error) => {
                assert!(error.to_string().contains("log.db"), "{what}: {error}");
                false
            }
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let was_read = judge(read(&path));
            // A writer gets the same error, or continues with the complete log.
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
