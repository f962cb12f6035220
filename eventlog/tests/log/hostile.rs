//! Untrusted logs: no code in their files runs, and none delays a command without end.

use std::fs;
use std::process::Command;

use rusqlite::Connection;
use warptape_eventlog::LogError;
use warptape_eventlog::sqlite::Loss;

use super::loss::{files, place};
use super::*;

/// Longest time that opening and reading a hostile file may take: some seconds on an idle machine, more on a busy one.
const HELD_UP_MAX: Duration = Duration::from_secs(120);
const PAGE_BYTES: usize = 4 * 1024;
/// Records of each topic.
const RECORDS: usize = 40;

/// Writes a closed log with a topic, most of whose records are in a segment, and a compacted topic.
fn write(path: &Path) {
    let log = open(path);
    topic(&log, "t", 1);
    let states = TopicSpec { name: "s".to_owned(), partitions: 1, compacted: true, ..TopicSpec::default() };
    log.create_topics(&[states]).unwrap();
    let mut producer = log.producer("p").unwrap();
    for number in 0..RECORDS {
        let key = number.to_string().into_bytes();
        let state = NewRecord { key: Some(key.into()), ..record("s", 0, "x") };
        producer.begin().unwrap();
        let bytes = if number == 0 { 70_000 } else { 2_000 };
        producer.send(record("t", 0, "x".repeat(bytes))).unwrap();
        producer.send(state).unwrap();
        producer.send_offsets("g", &[(at("t", 0), number as i64)]).unwrap();
        producer.commit().unwrap();
    }
}

/// Uses a log in all ways that commands do; stops at the first error.
fn use_all(log: &SqliteLog) -> Result<(), LogError> {
    log.topics()?;
    log.committed("other", &at("t", 0))?;
    for source in [at("t", 0), at("s", 0)] {
        let mut reader = log.reader(std::slice::from_ref(&source))?;
        let mut count = 0;
        while let Fetched::Records { records, .. } = reader.poll(Duration::ZERO, 50, usize::MAX)? {
            count += records.len();
            // One more record was written by then.
            assert!(count <= RECORDS + 1, "there is no end of records");
        }
    }
    log.check()
}

/// Runs four commands (read, copy, write and recover), and returns the errors of those that fail. Each command must
/// end.
fn refusals(path: &Path) -> Vec<String> {
    let before = files(path);
    let started = Instant::now();
    let write = || {
        let log = SqliteLog::open(path, Durability::Process)?;
        let mut producer = log.producer("p")?;
        producer.begin()?;
        let key = Some(b"1".as_slice().into());
        producer.send(NewRecord { key, ..record("s", 0, "new") })?;
        producer.send(record("t", 0, "new"))?;
        producer.commit()?;
        use_all(&log)
    };
    let copy = path.with_extension("copy");
    let _ = fs::remove_file(&copy);
    let results = [
        SqliteLog::open_existing(path).and_then(|log| use_all(&log)),
        SqliteLog::open_existing(path).and_then(|log| log.backup(&copy, &mut |_| {})),
        write(),
    ];
    let mut said: Vec<_> =
        results.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect();
    place(path, &before);
    said.extend(SqliteLog::recover(path, &mut |_| {}).err().map(|error| error.to_string()));
    assert!(started.elapsed() < HELD_UP_MAX, "it took {:?}", started.elapsed());
    for message in &said {
        assert!(message.contains("log.db"), "{message}");
    }
    said
}

fn alter(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

const ENDLESS: &str = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n";

#[test]
fn what_is_no_part_of_a_log_is_refused_by_name_and_left_out_by_recoveries() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    write(&path);
    let whole = files(&path);
    for (sql, name) in [
        (
            "CREATE TRIGGER mine AFTER INSERT ON partitions BEGIN DELETE FROM topics; END",
            "the trigger \"mine\"",
        ),
        (
            "CREATE TRIGGER mine AFTER UPDATE ON partitions BEGIN DELETE FROM records_1_0; DELETE FROM topics; END",
            "the trigger \"mine\"",
        ),
        ("CREATE VIEW mine AS SELECT * FROM topics", "the view \"mine\""),
        (&format!("CREATE VIEW mine AS {ENDLESS}"), "the view \"mine\""),
        ("CREATE TABLE mine(x)", "the table \"mine\""),
        ("CREATE VIRTUAL TABLE mine USING rtree(i, a, b)", "the table \"mine\""),
        ("CREATE INDEX mine ON records_1_0(abs(checksum))", "the index \"mine\""),
        ("CREATE UNIQUE INDEX mine ON records_1_0(count)", "the index \"mine\""),
        ("CREATE TABLE records_1_4096(offset INTEGER PRIMARY KEY)", "the table \"records_1_4096\""),
        ("ANALYZE", "the table \"sqlite_stat1\""),
    ] {
        place(&path, &whole);
        if sql.contains("UNIQUE") {
            alter(&path, "DELETE FROM records_1_0");
        }
        alter(&path, sql);
        let altered = files(&path);
        let said = refusals(&path);
        assert_eq!(said.len(), 3, "{sql}: a recovery goes on: {said:?}");
        for message in said {
            assert!(message.contains(name) && message.contains("not part of a log"), "{sql}: {message}");
        }
        if sql.contains("UNIQUE") {
            continue;
        }
        place(&path, &altered);
        let losses = SqliteLog::recover(&path, &mut |_| {}).unwrap().losses;
        assert!(losses.iter().all(|loss| matches!(loss, Loss::Foreign { .. })), "{sql}: {losses:?}");
        assert!(losses[0].to_string().contains("is left out"), "{losses:?}");
        use_all(&open(&path)).unwrap();
    }
}

#[test]
fn what_stands_in_place_of_a_table_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    write(&path);
    let whole = files(&path);
    let view = |table: &str, columns: &str| {
        format!("DROP TABLE {table}; CREATE VIEW {table} AS SELECT {columns} FROM ({ENDLESS})")
    };
    let rows = "x AS offset, 0 AS checksum, 1 AS count, x'' AS block";
    for (sql, name) in [
        (view("topics", "x AS topic_id, 't' AS name, 1 AS partitions, 0 AS compacted, 0 AS checksum"), "topics"),
        (view("records_1_0", rows), "records_1_0"),
        (view("producers", "x AS transactional_id, 1 AS epoch"), "producers"),
        (
            "DROP TABLE producers; CREATE VIRTUAL TABLE producers USING fts5(transactional_id, epoch)".to_owned(),
            "producers",
        ),
        (
            "DROP TABLE given_up; CREATE TABLE given_up(topic_id INTEGER, partition INTEGER, first_offset INTEGER, next_offset INTEGER,
             checksum INTEGER AS (zeroblob(1000000000)))"
                .to_owned(),
            "given_up",
        ),
        (
            "DROP TABLE producers; CREATE TABLE producers(transactional_id TEXT NOT NULL PRIMARY KEY,
             epoch INTEGER NOT NULL DEFAULT (zeroblob(1000000000))) STRICT, WITHOUT ROWID"
                .to_owned(),
            "producers",
        ),
        ("ALTER TABLE partitions ADD COLUMN more INTEGER CHECK (more < 1)".to_owned(), "partitions"),
    ] {
        place(&path, &whole);
        alter(&path, &sql);
        let said = refusals(&path);
        assert_eq!(said.len(), 4, "{sql}: {said:?}");
        for message in said {
            assert!(message.contains(&format!("{name:?}")), "{sql}: {message}");
            assert!(message.contains("not part of a log"), "{sql}: {message}");
        }
    }
    place(&path, &whole);
    alter(&path, "DROP TABLE producers");
    let error = SqliteLog::open_existing(&path).err().unwrap().to_string();
    assert!(error.contains("the table \"producers\" is missing"), "{error}");
}

#[test]
fn what_comes_into_a_log_that_is_open_does_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let log = open(&path);
    topic(&log, "t", 1);
    let mut producer = log.producer("p").unwrap();
    alter(
        &path,
        "CREATE TRIGGER mine AFTER UPDATE ON partitions BEGIN DELETE FROM topics; DELETE FROM records_1_0; END",
    );
    commit(&mut *producer, [record("t", 0, "x")]);
    assert_eq!(drain(&mut *log.reader(&[at("t", 0)]).unwrap()).len(), 1);
    alter(&path, &format!("DROP TRIGGER mine; DROP TABLE producers; CREATE VIEW producers AS {ENDLESS}"));
    producer.begin().unwrap();
    let error = producer.commit().unwrap_err().to_string();
    assert!(error.contains("no such table"), "{error}");
}

/// Replaces a table's root by a stack of pages. Every cell of a page points to the page below it, so that the rows of
/// the lowest page repeat endlessly.
fn build_tower(path: &Path, name: &str) {
    let connection = Connection::open(path).unwrap();
    let root: usize = connection
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = ?1", [name], |row| row.get::<_, i64>(0))
        .map_or(1, |root| root as usize);
    drop(connection);
    const LEVELS: usize = 12;
    const CELLS: usize = 500;
    let mut bytes = fs::read(path).unwrap();
    let start = (root - 1) * PAGE_BYTES;
    let header = if root == 1 { 100 } else { 0 };
    let lowest = bytes[start..start + PAGE_BYTES].to_vec();
    let kind = lowest[header];
    assert!([0x0a, 0x0d].contains(&kind), "{name} has {kind:#x}, not one page");
    // The header and the cell pointers move to the page's beginning.
    let cells = u16::from_be_bytes([lowest[header + 3], lowest[header + 4]]) as usize;
    let mut page = lowest.clone();
    page.copy_within(header..header + 8 + 2 * cells, 0);
    bytes.extend(page);
    let first = u16::from_be_bytes([lowest[header + 8], lowest[header + 9]]) as usize;
    // Inner pages of an index contain whole rows; those of a table contain only row numbers.
    let row = |number: usize| match kind {
        0x0d => vec![0x80 | (number >> 14) as u8, 0x80 | (number >> 7) as u8 & 0x7f, number as u8 & 0x7f],
        _ => lowest[first..first + 1 + usize::from(lowest[first])].to_vec(),
    };
    for level in 0..LEVELS {
        let below = (bytes.len() / PAGE_BYTES) as u32;
        let (mut page, header) = match level == LEVELS - 1 && root == 1 {
            true => (lowest.clone(), 100),
            false => (vec![0; PAGE_BYTES], 0),
        };
        let mut end = PAGE_BYTES;
        let mut count = 0;
        while count < CELLS && end > header + 12 + 2 * count + 64 {
            let cell = [&below.to_be_bytes()[..], &row(count + 1)].concat();
            end -= cell.len();
            page[end..end + cell.len()].copy_from_slice(&cell);
            let pointer = header + 12 + 2 * count;
            page[pointer..pointer + 2].copy_from_slice(&(end as u16).to_be_bytes());
            count += 1;
        }
        page[header] = kind - 8;
        page[header + 1..header + 3].fill(0);
        page[header + 3..header + 5].copy_from_slice(&(count as u16).to_be_bytes());
        page[header + 5..header + 7].copy_from_slice(&(end as u16).to_be_bytes());
        page[header + 7] = 0;
        page[header + 8..header + 12].copy_from_slice(&below.to_be_bytes());
        match level == LEVELS - 1 {
            true => bytes[start..start + PAGE_BYTES].copy_from_slice(&page),
            false => bytes.extend(page),
        }
    }
    let pages = (bytes.len() / PAGE_BYTES) as u32;
    bytes[28..32].copy_from_slice(&pages.to_be_bytes());
    fs::write(path, bytes).unwrap();
}

#[test]
fn trees_that_lead_around_in_circles_hold_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    write(&path);
    let whole = files(&path);
    for table in [
        "sqlite_schema",
        "topics",
        "partitions",
        "committed_offsets",
        "given_up",
        "producers",
        "segments",
        "records_1_0",
        "records_2_0",
        "records_2_0_keys",
    ] {
        place(&path, &whole);
        if table == "given_up" {
            alter(&path, "INSERT INTO given_up VALUES (1, 0, 100, 101, 0)");
        }
        build_tower(&path, table);
        let started = Instant::now();
        let said = refusals(&path);
        println!("{table}, {:?}: {said:#?}", started.elapsed());
        assert!(!said.is_empty(), "{table}");
    }
}

#[test]
fn what_is_no_file_is_refused_and_nobody_waits_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let pipe = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let check = |words: &[&str]| {
        let recovered = SqliteLog::recover(&path, &mut |_| {}).map(drop);
        let results = [
            SqliteLog::open_existing(&path).map(drop),
            SqliteLog::open(&path, Durability::Process).map(drop),
            recovered,
        ];
        for result in results {
            let error = result.expect_err("it was opened").to_string();
            for word in words {
                assert!(error.contains(word), "{word:?} is missing in: {error}");
            }
        }
    };
    pipe(&path);
    check(&["log.db", "a pipe, a socket or a device is not a log"]);
    fs::remove_file(&path).unwrap();
    let device = SqliteLog::open_existing("/dev/zero").err().unwrap().to_string();
    assert!(device.contains("is not a log"), "{device}");
    write(&path);
    let whole = files(&path);
    for ending in ["-wal", "-shm", "-journal", "-head", "-segments"] {
        place(&path, &whole);
        let beside = folder.path().join(format!("log.db{ending}"));
        let _ = fs::remove_file(&beside);
        let _ = fs::remove_dir_all(&beside);
        pipe(&beside);
        check(&[&format!("log.db{ending} is a pipe"), "remove it"]);
        fs::remove_file(&beside).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &beside).unwrap();
        check(&[&format!("log.db{ending} is a link")]);
        fs::remove_file(&beside).unwrap();
    }
}
