//! Opening a log: paths, foreign files, versions, missing permissions, and failures midway.

use rusqlite::Connection;
use warptape_eventlog::{LogError, OpenMode, open_url};

use super::*;

/// Checks that opening `path` fails for writing and for reading, with a message that contains these words.
fn check_refused(path: &Path, words: &[&str]) {
    let before = std::fs::read(path).ok();
    for error in [
        SqliteLog::open(path, Durability::Process).err().expect("opened for writing"),
        SqliteLog::open_existing(path).err().expect("opened for reading"),
    ] {
        let message = error.to_string();
        assert!(matches!(error, LogError::Unreadable { .. }), "{message}");
        let name = path.file_name().unwrap().to_string_lossy();
        for word in words.iter().copied().chain([name.as_ref()]) {
            assert!(message.contains(word), "{word:?} is missing in: {message}");
        }
    }
    assert_eq!(std::fs::read(path).ok(), before, "a file that is refused must not change");
}

#[test]
fn odd_and_relative_paths_work() {
    let directory = tempfile::tempdir().unwrap();
    for name in
        ["a b.db", "100%25?mode=ro#x.db", "é – 日本.db", "file:x.db", ":memory:", "'quote\".db", "-wal"]
    {
        let path = directory.path().join(name);
        let log = open(&path);
        assert_eq!(log.url(), format!("sqlite:{}", path.display()));
        topic(&log, "t", 1);
        commit(&mut *log.producer("p").unwrap(), [record("t", 0, name)]);
        drop(log);
        let log = SqliteLog::open_existing(&path).unwrap();
        let records = drain(&mut *log.reader(&[at("t", 0)]).unwrap());
        assert_eq!(records[0].1.value, name.as_bytes(), "{name}");
    }
}

#[test]
fn a_url_opens_what_it_names() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("log.db").display());
    let error = open_url(&url, OpenMode::Read).err().unwrap().to_string();
    assert!(error.contains(&url) && error.contains("no such file"), "{error}");
    let log = open_url(&url, OpenMode::Write(Durability::Full)).unwrap();
    assert_eq!(log.url(), url);
    open_url(&url, OpenMode::Read).unwrap();
}

#[test]
fn what_is_no_log_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);

    check_refused(&path("no-directory/log.db"), &[]);
    let error = SqliteLog::open(path("no-directory/log.db"), Durability::Process).err().unwrap().to_string();
    assert!(error.contains("no-directory cannot be used") && error.contains("create it"), "{error}");
    let error = SqliteLog::open_existing(path("missing.db")).err().unwrap().to_string();
    assert!(error.contains("no such file"), "{error}");
    assert!(!path("missing.db").exists(), "reading must not create a file");

    std::fs::create_dir(path("directory")).unwrap();
    check_refused(&path("directory"), &["a directory is not a log"]);

    std::fs::write(path("text.db"), "time,price\n".repeat(1000)).unwrap();
    check_refused(&path("text.db"), &["not an SQLite database"]);
    std::fs::write(path("short.db"), "SQLite format 3\0 and then nothing").unwrap();
    check_refused(&path("short.db"), &["not an SQLite database"]);

    let other = Connection::open(path("other.db")).unwrap();
    other.execute_batch("CREATE TABLE t(x)").unwrap();
    drop(other);
    check_refused(&path("other.db"), &["another program", "0x0"]);
    let other = Connection::open(path("app.db")).unwrap();
    other.execute_batch("PRAGMA application_id = 0x1234").unwrap();
    drop(other);
    check_refused(&path("app.db"), &["another program", "0x1234"]);
}

#[test]
fn an_empty_file_becomes_a_log_but_is_none_to_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.db");
    std::fs::write(&path, "").unwrap();
    let error = SqliteLog::open_existing(&path).err().unwrap().to_string();
    assert!(error.contains("the file is empty"), "{error}");
    topic(&open(&path), "t", 1);
}

#[test]
fn another_format_version_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.db");
    drop(open(&path));
    for (version, action) in [
        (2, "use the version of warptape that wrote it"),
        (7, "use the version of warptape that wrote it, or a newer one"),
    ] {
        let connection = Connection::open(&path).unwrap();
        connection.pragma_update(None, "user_version", version).unwrap();
        drop(connection);
        check_refused(&path, &[&format!("format version {version}"), "reads versions 3 to 6", action]);
        let error = SqliteLog::recover(&path, &mut |_| {}).unwrap_err().to_string();
        assert!(error.ends_with(action), "{error}");
    }
}

#[test]
fn a_log_opened_for_reading_cannot_be_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.db");
    let writer = open(&path);
    topic(&writer, "t", 1);
    let log = SqliteLog::open_existing(&path).unwrap();
    let check = |result: Result<(), LogError>| {
        let error = result.unwrap_err();
        assert!(matches!(error, LogError::ReadOnly { .. }), "{error}");
        assert!(error.to_string().contains("log.db"), "{error}");
    };
    check(log.producer("p").map(drop));
    check(log.subscribe("g", &["t"]).map(drop));
    check(log.create_topics(&[TopicSpec { name: "u".to_owned(), partitions: 1, ..TopicSpec::default() }]));
    // The reader sees records that are written after it was opened.
    let mut reader = log.reader(&[at("t", 0)]).unwrap();
    commit(&mut *writer.producer("p").unwrap(), [record("t", 0, "x")]);
    assert_eq!(await_records(&mut *reader, 1)[0].1.value, b"x");
    log.check().unwrap();
}

#[test]
fn reading_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.db");
    topic(&open(&path), "t", 1);
    let bytes = std::fs::read(&path).unwrap();
    let log = SqliteLog::open_existing(&path).unwrap();
    assert_eq!(log.topics().unwrap().len(), 1);
    drop(log);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    // A reader leaves SQLite's index files behind, because it may not remove them; the next writer removes them.
    topic(&open(&path), "t", 1);
    let mut names: Vec<_> =
        std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["log.db", "log.db-head"]);
}

#[test]
fn a_file_that_is_deleted_or_replaced_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.db");
    let log = open(&path);
    topic(&log, "t", 1);
    let mut producer = log.producer("p").unwrap();
    let mut reader = log.reader(&[at("t", 0)]).unwrap();
    commit(&mut *producer, [record("t", 0, "x")]);
    assert_eq!(drain(&mut *reader).len(), 1);
    std::fs::remove_file(&path).unwrap();
    let check =
        |error: LogError| assert!(error.to_string().contains("was deleted, moved or replaced"), "{error}");
    producer.begin().unwrap();
    producer.send(record("t", 0, "y")).unwrap();
    check(producer.commit().unwrap_err());
    check(reader.poll(Duration::ZERO, 1, 1).unwrap_err());
}

#[test]
fn details_that_a_broker_would_not_keep() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(&directory.path().join("log.db"));
    topic(&log, "t", 2);
    let mut producer = log.producer("p").unwrap();
    let times = [i64::MIN, -1, 0, 1_723_000_000_123_456_789, i64::MAX];
    let timed = |timestamp_ns| NewRecord { timestamp_ns, ..record("t", 1, "x") };
    commit(&mut *producer, times.map(timed));
    producer.begin().unwrap();
    producer.send(record("t", 1, "aborted")).unwrap();
    producer.abort().unwrap();
    commit(&mut *producer, [timed(5)]);
    let mut reader = log.reader(&[at("t", 1)]).unwrap();
    let read = drain(&mut *reader);
    assert!(read.iter().map(|(_, record)| record.timestamp_ns).eq(times.into_iter().chain([5])));
    // Offsets are dense from 0, even if transactions were aborted.
    assert!(read.iter().map(|(_, record)| record.offset).eq(0..6));
}

#[test]
fn a_commit_that_fails_at_its_end_leaves_nothing_and_can_be_repeated() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.db");
    let log = open(&path);
    topic(&log, "t", 2);
    let mut producer = log.producer("p").unwrap();
    producer.begin().unwrap();
    producer.send(record("t", 0, "x")).unwrap();
    producer.send(record("t", 1, "y")).unwrap();
    producer.send_offsets("g", &[(at("t", 0), 7)]).unwrap();
    // Offsets are written last: their failure must roll back the records too.
    let other = Connection::open(&path).unwrap();
    other.execute_batch("ALTER TABLE committed_offsets RENAME TO elsewhere").unwrap();
    let mut reader = log.reader(&[at("t", 0), at("t", 1)]).unwrap();
    for _ in 0..2 {
        let error = producer.commit().unwrap_err().to_string();
        assert!(error.contains("log.db") && error.contains("committed_offsets"), "{error}");
        assert!(drain(&mut *reader).is_empty());
    }
    other.execute_batch("ALTER TABLE elsewhere RENAME TO committed_offsets").unwrap();
    let mut member = log.subscribe("g", &["t"]).unwrap();
    assert_eq!(member.committed(&at("t", 0)).unwrap(), None);
    assert!(drain(&mut *member).is_empty());
    producer.commit().unwrap();
    assert_eq!(drain(&mut *member).len(), 2);
    assert_eq!(member.committed(&at("t", 0)).unwrap(), Some(7));
}

/// Opens a log as a process without permissions, in a directory that it cannot write.
#[cfg(unix)]
#[test]
fn a_read_only_directory_can_be_read() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;

    const VARIABLE: &str = "WARPTAPE_LOG_TEST_READ_ONLY";
    if let Some(path) = std::env::var_os(VARIABLE) {
        let path = Path::new(&path);
        let log = SqliteLog::open_existing(path).unwrap();
        log.check().unwrap();
        assert_eq!(drain(&mut *log.reader(&[at("t", 0)]).unwrap())[0].1.value, b"x");
        let error = SqliteLog::open(path, Durability::Process).err().unwrap();
        assert!(matches!(error, LogError::ReadOnly { .. } | LogError::Denied { .. }), "{error}");
        assert!(error.to_string().contains("log?.db"), "{error}");
        let error = SqliteLog::open_existing(path.with_file_name("secret.db")).err().unwrap();
        assert!(matches!(error, LogError::Denied { .. }), "{error}");
        assert!(error.to_string().contains("permissions"), "{error}");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    // The question mark in the name has a meaning in a URI.
    let path = directory.path().join("log?.db");
    let log = open(&path);
    topic(&log, "t", 1);
    commit(&mut *log.producer("p").unwrap(), [record("t", 0, "x")]);
    drop(log);
    let program = directory.path().join("program");
    // The program is copied by another process. A child forked by a concurrent test would inherit this process's open
    // copy, and a file open for writing cannot run.
    let copied =
        std::process::Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status();
    assert!(copied.unwrap().success());
    let secret = directory.path().join("secret.db");
    std::fs::copy(&path, &secret).unwrap();
    let set = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    set(&path, 0o444);
    set(&secret, 0o000);
    set(directory.path(), 0o555);
    let mut command = std::process::Command::new(&program);
    let test = "opening::a_read_only_directory_can_be_read";
    command.args(["--exact", test, "--nocapture"]).env(VARIABLE, &path).current_dir("/");
    // Permissions do not bind the superuser, so the test changes its identity.
    if std::fs::File::create(directory.path().join("probe")).is_ok() {
        command.uid(65534).gid(65534);
    }
    let output = command.output().unwrap();
    set(directory.path(), 0o755);
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
