//! Losses of a log without other damage: a missing, truncated or changed write-ahead log, an older file or a missing
//! one. Such a log is never mistaken for an older or an empty one.

use std::collections::BTreeMap;
use std::fs;

use warptape_eventlog::{LogError, sqlite::Loss};

use super::*;

/// The files of a log, by their suffixes.
pub type Files = BTreeMap<String, Vec<u8>>;
pub const ENDINGS: [&str; 4] = ["", "-wal", "-head", "-shm"];
/// The suffix of the folder of segments.
pub const SEGMENTS: &str = "-segments";

/// Reads the files of a log, except for the index of a write-ahead log, as after a crash.
pub fn files(log: &Path) -> Files {
    let read = |ending: String| Some((ending.clone(), fs::read(beside(log, &ending)).ok()?));
    // SQLite creates an empty write-ahead log if there is none.
    let is_something = |(ending, bytes): &(String, Vec<u8>)| ending != "-wal" || !bytes.is_empty();
    let segments = fs::read_dir(beside(log, SEGMENTS)).into_iter().flatten();
    let names = segments.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let endings = ENDINGS.into_iter().filter(|ending| *ending != "-shm").map(str::to_owned);
    let all = endings.chain(names.map(|name| format!("{SEGMENTS}/{name}")));
    all.filter_map(read).filter(is_something).collect()
}

/// Replaces the files of a log by these.
pub fn place(log: &Path, files: &Files) {
    for ending in ENDINGS {
        let _ = fs::remove_file(beside(log, ending));
    }
    let _ = fs::remove_dir_all(beside(log, SEGMENTS));
    for (ending, bytes) in files {
        if ending.starts_with(SEGMENTS) {
            fs::create_dir_all(beside(log, SEGMENTS)).unwrap();
        }
        fs::write(beside(log, ending), bytes).unwrap();
    }
}

pub fn beside(log: &Path, ending: &str) -> std::path::PathBuf {
    let mut path = log.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

/// Number of transactions in the write-ahead log, each of one record.
const TRANSACTIONS: i64 = 8;

/// Returns the files of a log after its process was killed, and its files after an earlier close. The former have
/// `TRANSACTIONS` records in the file, and as many more only in the write-ahead log.
fn crashed(folder: &Path) -> (Files, Files) {
    let path = folder.join("crashed.db");
    let write = |log: &SqliteLog| {
        let mut producer = log.producer("p").unwrap();
        for number in 0..TRANSACTIONS {
            producer.begin().unwrap();
            producer.send(record("t", 0, number.to_string().repeat(3000))).unwrap();
            producer.send_offsets("g", &[(at("t", 0), number)]).unwrap();
            producer.commit().unwrap();
        }
    };
    let log = open(&path);
    topic(&log, "t", 1);
    write(&log);
    drop(log);
    let closed = files(&path);
    assert!(!closed.contains_key("-wal"), "a closed log is one file and its head");
    let log = open(&path);
    write(&log);
    (files(&path), closed)
}

/// Reads the number of records and the committed offset of a log, which is opened in both modes.
fn read(path: &Path) -> Result<(usize, Option<i64>), LogError> {
    let before = files(path);
    let of = |log: SqliteLog| {
        (drain(&mut *log.reader(&[at("t", 0)]).unwrap()).len(), log.committed("g", &at("t", 0)).unwrap())
    };
    let read = SqliteLog::open_existing(path).map(of);
    let written = SqliteLog::open(path, Durability::Process).map(of);
    match (read, written) {
        (Ok(read), Ok(written)) => {
            assert_eq!(read, written);
            Ok(read)
        }
        (Err(error), Err(_)) => {
            assert!(files(path) == before, "what is refused is left as it is");
            Err(error)
        }
        (read, written) => panic!("reading gives {read:?}, writing {written:?}"),
    }
}

#[track_caller]
fn check_refused(path: &Path, words: &[&str]) {
    let error = read(path).expect_err("it was opened");
    assert!(matches!(error, LogError::Unreadable { .. }), "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "{word:?} is missing in: {error}");
    }
}

#[test]
fn a_log_without_its_write_ahead_log_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let (whole, closed) = crashed(folder.path());
    let all = (2 * TRANSACTIONS as usize, Some(TRANSACTIONS - 1));
    let without = |endings: &[&str]| {
        let mut files = whole.clone();
        files.retain(|ending, _| !endings.contains(&ending.as_str()));
        files
    };
    place(&path, &whole);
    assert_eq!(read(&path).unwrap(), all);

    let lost = ["log.db-head", "transactions are lost", "t/0 offsets 8 to 15", "log recover --log sqlite:"];
    place(&path, &without(&["-wal"]));
    check_refused(&path, &lost);
    // The file alone, as `cp log.db` copies it from a log in use, and then with its write-ahead log.
    place(&path, &without(&["-wal", "-head"]));
    check_refused(&path, &["log.db-head is missing", "was not closed", "log recover", "log backup"]);
    place(&path, &without(&["-head"]));
    check_refused(&path, &["log.db-head is missing", "log recover"]);
    // An older copy replaces the file.
    place(&path, &whole);
    fs::write(&path, &closed[""]).unwrap();
    fs::remove_file(beside(&path, "-wal")).unwrap();
    check_refused(&path, &lost);
    // The file is missing, and then empty.
    place(&path, &without(&[""]));
    let error = SqliteLog::open(&path, Durability::Process).err().unwrap().to_string();
    assert!(
        error.contains("missing or empty, but its head") && error.contains("put the file back"),
        "{error}"
    );
    assert!(!path.exists(), "what is refused is not made");
    fs::write(&path, "").unwrap();
    check_refused(&path, &["missing or empty"]);
}

#[test]
fn a_head_that_may_not_be_read_is_not_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let (whole, _) = crashed(folder.path());
    place(&path, &whole);
    fs::set_permissions(beside(&path, "-head"), std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    // The superuser can read it anyway.
    let log = SqliteLog::open_existing(&path).unwrap();
    assert_eq!(drain(&mut *log.reader(&[at("t", 0)]).unwrap()).len(), 2 * TRANSACTIONS as usize);
}

#[test]
fn a_closed_log_is_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let (_, closed) = crashed(folder.path());
    let half = (TRANSACTIONS as usize, Some(TRANSACTIONS - 1));
    place(&path, &closed);
    assert_eq!(read(&path).unwrap(), half);
    // A closed log stays closed if it is only read, or opened for writing without a write.
    place(&path, &Files::from([(String::new(), closed[""].clone())]));
    assert_eq!(read(&path).unwrap(), half);
    assert_eq!(files(&path).keys().cloned().collect::<Vec<_>>(), [""]);
    // If there are two writers, the last one to end closes the log.
    let (one, two) = (open(&path), open(&path));
    let (mut first, mut second) = (one.producer("one").unwrap(), two.producer("two").unwrap());
    commit(&mut *first, [record("t", 0, "x")]);
    drop((first, one));
    commit(&mut *second, [record("t", 0, "y")]);
    assert!(SqliteLog::open_existing(&path).is_ok());
    drop((second, two));
    place(&path, &Files::from([(String::new(), fs::read(&path).unwrap())]));
    assert_eq!(read(&path).unwrap().0, TRANSACTIONS as usize + 2);
}

#[test]
fn a_write_ahead_log_that_is_cut_or_changed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let (whole, _) = crashed(folder.path());
    let wal = &whole["-wal"];
    let mut refused = 0;
    for at in (0..wal.len()).step_by(1777) {
        let mut files = whole.clone();
        files.insert("-wal".to_owned(), wal[..at].to_vec());
        place(&path, &files);
        refused += u32::from(read(&path).is_err());
        let mut changed = wal.clone();
        changed[at] ^= 4;
        files.insert("-wal".to_owned(), changed);
        place(&path, &files);
        // Bytes that SQLite never reads may change.
        match read(&path) {
            Ok(read) => assert_eq!(read.0, 2 * TRANSACTIONS as usize, "bit of byte {at}"),
            Err(error) => {
                assert!(error.to_string().contains(" lost: the log has "), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 100, "{refused} were refused");
}

#[test]
fn a_recovery_goes_on_from_what_is_whole_and_says_what_it_gives_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let (whole, _) = crashed(folder.path());
    place(&path, &whole);
    let writer = open(&path);
    let producer = writer.producer("other").unwrap();
    let error = SqliteLog::recover(&path, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("stop it first"), "{error}");
    drop((producer, writer));
    assert_eq!(SqliteLog::recover(&path, &mut |_| {}).unwrap().losses, []);

    let mut files = whole.clone();
    let cut = files["-wal"].len() / 2;
    files.get_mut("-wal").unwrap().truncate(cut);
    place(&path, &files);
    let recovered = SqliteLog::recover(&path, &mut |_| {}).unwrap();
    let kept = recovered.kept.unwrap();
    assert_eq!(fs::read(beside(&kept, "-wal")).unwrap().len(), cut, "what was found is kept");
    let [Loss::Transactions(lost), Loss::Records { topic: name, partition: 0, first, next, .. }] =
        &recovered.losses[..]
    else {
        panic!("{:?}", recovered.losses)
    };
    assert_eq!((name.as_str(), *next), ("t", 2 * TRANSACTIONS));
    // The close was the last transaction.
    assert_eq!(next - first, *lost, "{:?}", recovered.losses);
    let log = open(&path);
    log.check().unwrap();
    // Lost offsets are not reused, and reading continues after them.
    let mut member = log.subscribe("g", &["t"]).unwrap();
    let read = drain(&mut *member);
    assert_eq!(read.last().unwrap().1.offset, first - 1);
    assert_eq!(member.position(&at("t", 0)).unwrap(), *next);
    commit(&mut *log.producer("p").unwrap(), [record("t", 0, "new")]);
    assert_eq!(drain(&mut *member)[0].1.offset, *next);
    drop((member, log));
    assert_eq!(SqliteLog::recover(&path, &mut |_| {}).unwrap().losses, []);
}

#[test]
fn a_recovery_that_was_killed_keeps_the_write_ahead_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let (whole, _) = crashed(folder.path());
    let mut cut = whole.clone();
    let length = whole["-wal"].len() / 2;
    cut.get_mut("-wal").unwrap().truncate(length);
    place(&path, &cut);
    let losses = SqliteLog::recover(&path, &mut |_| {}).unwrap().losses;
    fs::remove_file(beside(&path, "-damaged-1")).unwrap();
    fs::remove_file(beside(&path, "-damaged-1-wal")).unwrap();

    // The interrupted recovery had moved only the write-ahead log.
    place(&path, &cut);
    fs::write(beside(&path, "-recovering"), "a copy").unwrap();
    fs::rename(beside(&path, "-wal"), beside(&path, "-damaged-1-wal")).unwrap();
    // Another process opened the log meanwhile.
    assert!(SqliteLog::open_existing(&path).is_err());
    let recovered = SqliteLog::recover(&path, &mut |_| {}).unwrap();
    assert_eq!(recovered.losses, losses);
    assert_eq!(recovered.kept, Some(fs::canonicalize(beside(&path, "-damaged-1")).unwrap()));
    assert!(fs::read(beside(&path, "-damaged-1-wal")).unwrap() == cut["-wal"]);
    assert!(!beside(&path, "-recovering").exists());

    // Files kept by an earlier recovery are neither used nor overwritten.
    fs::remove_file(beside(&path, "-damaged-1")).unwrap();
    place(&path, &cut);
    let recovered = SqliteLog::recover(&path, &mut |_| {}).unwrap();
    assert_eq!(recovered.kept, Some(fs::canonicalize(beside(&path, "-damaged-2")).unwrap()));
    for kept in ["-damaged-1-wal", "-damaged-2-wal"] {
        assert!(fs::read(beside(&path, kept)).unwrap() == cut["-wal"], "{kept}");
    }
}

#[test]
fn a_recovery_leaves_out_what_is_damaged_and_sets_groups_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let log = open(&path);
    topic(&log, "t", 2);
    let mut producer = log.producer("p").unwrap();
    for number in 0..40 {
        commit(&mut *producer, [record("t", 0, number.to_string()), record("t", 1, "x".repeat(5000))]);
    }
    producer.begin().unwrap();
    producer.send_offsets("ahead", &[(at("t", 0), 100), (at("t", 1), 40)]).unwrap();
    producer.commit().unwrap();
    drop((producer, log));
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute("UPDATE records_1_0 SET block = zeroblob(20) WHERE offset = 7", []).unwrap();
    other.execute("DELETE FROM records_1_1 WHERE offset BETWEEN 3 AND 5", []).unwrap();
    drop(other);

    let log = SqliteLog::open_existing(&path).unwrap();
    let checked = log.check_all(&mut |_| {}).unwrap();
    let damage = checked.damage.join("\n");
    for part in ["t/0 offsets 7 to 7", "checksum", "t/1 offsets 3 to 5", "nothing is there"] {
        assert!(damage.contains(part), "{part:?} is missing in: {damage}");
    }
    let mut reader = log.reader(&[at("t", 0)]).unwrap();
    let error = reader.poll(Duration::ZERO, 100, usize::MAX).unwrap_err().to_string();
    assert!(error.contains("t/0 at offset 7") && error.contains("checksum"), "{error}");
    let error = log.backup(folder.path().join("copy.db"), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("t/0 offsets 7 to 7"), "{error}");
    assert!(!folder.path().join("copy.db").exists());
    drop((reader, log));

    let recovered = SqliteLog::recover(&path, &mut |_| {}).unwrap();
    let said: Vec<_> = recovered.losses.iter().map(ToString::to_string).collect();
    let said = said.join("\n");
    for part in [
        "t/0 offsets 7 to 7 are given up",
        "t/1 offsets 3 to 5",
        "group \"ahead\" continues at offset 40 of t/0",
    ] {
        assert!(said.contains(part), "{part:?} is missing in: {said}");
    }
    let log = open(&path);
    let checked = log.check_all(&mut |_| {}).unwrap();
    assert_eq!((checked.damage, checked.records), (Vec::new(), 76));
    assert_eq!(checked.given_up, ["t/0 offsets 7 to 7", "t/1 offsets 3 to 5"]);
    let offsets = |partition| -> Vec<i64> {
        let read = drain(&mut *log.reader(&[at("t", partition)]).unwrap());
        read.iter().map(|(_, record)| record.offset).collect()
    };
    assert_eq!(offsets(0), (0..40).filter(|offset| *offset != 7).collect::<Vec<_>>());
    assert_eq!(offsets(1), (0..40).filter(|offset| !(3..6).contains(offset)).collect::<Vec<_>>());
    assert_eq!(log.committed("ahead", &at("t", 0)).unwrap(), Some(40));
    drop(log);

    // More damage follows right after the offsets that were already given up.
    for (partition, offset) in [(0, 8), (1, 6)] {
        let other = rusqlite::Connection::open(&path).unwrap();
        let sql = format!("UPDATE records_1_{partition} SET block = zeroblob(20) WHERE offset = {offset}");
        assert_eq!(other.execute(&sql, []).unwrap(), 1);
        drop(other);
        assert_ne!(SqliteLog::recover(&path, &mut |_| {}).unwrap().losses, []);
        let checked = open(&path).check_all(&mut |_| {}).unwrap();
        assert_eq!((checked.damage, checked.given_up.len()), (Vec::new(), 2), "{:?}", checked.given_up);
        let first = ["t/0 offsets 7 to ", "t/1 offsets 3 to "][partition];
        let given_up = &checked.given_up[partition];
        assert!(given_up.starts_with(first), "{given_up}");
        let last: i64 = given_up[first.len()..].parse().unwrap();
        assert!(last >= offset, "{given_up}");
    }
}

#[test]
fn what_only_the_counts_reveal_is_seen_by_backups_and_recoveries() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let log = open(&path);
    topic(&log, "t", 1);
    let states = TopicSpec { name: "s".to_owned(), partitions: 1, compacted: true, ..TopicSpec::default() };
    log.create_topics(&[states]).unwrap();
    let mut producer = log.producer("p").unwrap();
    producer.begin().unwrap();
    for number in 0..5 {
        producer.send(record("t", 0, "x")).unwrap();
        let key = number.to_string().into_bytes();
        producer.send(NewRecord { key: Some(key.into()), ..record("s", 0, "x") }).unwrap();
    }
    producer.send_offsets("g", &[(at("t", 0), 2), (at("s", 0), 3)]).unwrap();
    producer.commit().unwrap();
    drop((producer, log));
    let whole = files(&path);
    for (number, (damage, found)) in [
        ("DELETE FROM records_2_0 WHERE offset = 2", "s/0 has 4 rows instead of 5"),
        ("DELETE FROM committed_offsets WHERE topic_id = 1", "there are 1 committed offsets instead of 2"),
        ("DELETE FROM topics WHERE topic_id = 2", "there are 1 topics instead of 2"),
        (
            "UPDATE partitions SET checksum = 1 WHERE topic_id = 1",
            "the end of partition 0 of topic number 1 does not match its checksum",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        place(&path, &whole);
        rusqlite::Connection::open(&path).unwrap().execute(damage, []).unwrap();
        let copy = folder.path().join(format!("copy-{number}.db"));
        let backup = SqliteLog::open_existing(&path).and_then(|log| {
            let checked = log.check_all(&mut |_| {}).unwrap().damage.join("\n");
            assert!(checked.contains(found), "{damage}: {checked}");
            log.backup(&copy, &mut |_| {})
        });
        let error = backup.expect_err(damage).to_string();
        assert!(error.contains(found) && !copy.exists(), "{damage}: {error}");
        let recovered = SqliteLog::recover(&path, &mut |_| {}).unwrap();
        let said: Vec<_> = recovered.losses.iter().map(ToString::to_string).collect();
        assert!(said.iter().any(|loss| loss.contains(found)), "{damage}: {said:?}");
        assert!(recovered.kept.is_some());
        open(&path).check().unwrap();
        assert_eq!(SqliteLog::recover(&path, &mut |_| {}).unwrap().losses, [], "{damage}");
    }
}

#[test]
fn a_recovery_believes_no_head_that_lags() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let (_, closed) = crashed(folder.path());
    // Another log has more transactions and fewer records.
    let log = open(&path);
    topic(&log, "t", 1);
    for _ in 0..3 * TRANSACTIONS {
        drop(log.producer("p").unwrap());
    }
    commit(&mut *log.producer("p").unwrap(), [record("t", 0, "x")]);
    drop(log);
    fs::write(beside(&path, "-head"), &closed["-head"]).unwrap();
    let recovered = SqliteLog::recover(&path, &mut |_| {}).unwrap();
    assert_eq!((recovered.losses, recovered.kept), (Vec::new(), None));
}

#[test]
fn a_backup_is_whole_while_others_write() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("log.db"), folder.path().join("copy.db"));
    let log = open(&path);
    topic(&log, "t", 1);
    let states = TopicSpec { name: "s".to_owned(), partitions: 1, compacted: true, ..TopicSpec::default() };
    log.create_topics(&[states]).unwrap();
    let mut producer = log.producer("p").unwrap();
    let send = |producer: &mut dyn Producer, number: i64| {
        producer.begin().unwrap();
        producer.send(record("t", 0, number.to_string())).unwrap();
        let key = (number % 3).to_string().into_bytes();
        producer.send(NewRecord { key: Some(key.into()), ..record("s", 0, number.to_string()) }).unwrap();
        producer.send_offsets("g", &[(at("t", 0), number)]).unwrap();
        producer.commit().unwrap();
    };
    (0..50).for_each(|number| send(&mut *producer, number));
    let mut number = 50;
    log.backup(&copy, &mut |_| {
        send(&mut *producer, number);
        number += 1;
    })
    .unwrap();
    assert!(number > 50, "nothing was written meanwhile");
    let error = log.backup(&copy, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("copy.db"), "{error}");
    for log in [open(&copy), SqliteLog::open_existing(&copy).unwrap()] {
        log.check().unwrap();
        let read = drain(&mut *log.reader(&[at("t", 0)]).unwrap());
        assert_eq!(read.len(), 50);
        let states = drain(&mut *log.reader(&[at("s", 0)]).unwrap());
        assert!(states.iter().map(|(_, record)| record.offset).eq([47, 48, 49]));
        assert_eq!(log.committed("g", &at("t", 0)).unwrap(), Some(49));
    }
}

/// Runs a command on a file in another process, because closing a file of the log here would drop this process's locks.
fn run(program: &str, arguments: &[&str], path: &Path) {
    assert!(std::process::Command::new(program).args(arguments).arg(path).status().unwrap().success());
}

#[test]
fn what_happens_to_files_beside_an_open_log_is_said_at_once_and_loses_nothing() {
    let became = "was deleted, moved or replaced while it was open";
    for (ending, program, arguments, words) in [
        (
            "-wal",
            "rm",
            &[][..],
            &["log.db-wal", became, "all of its contents are in the file now", "start again"][..],
        ),
        ("-shm", "rm", &[], &["log.db-shm", became, "is in the write-ahead log", "start again"]),
        (
            "-shm",
            "truncate",
            &["-s", "0"],
            &["log.db-shm", "was truncated while it was open", "is in the write-ahead log"],
        ),
        ("-shm", "truncate", &["-s", "100"], &["log.db-shm", "was truncated while it was open"]),
        ("-head", "rm", &[], &["log.db-head", became, "start again"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.db");
        let log = open(&path);
        topic(&log, "t", 1);
        let mut producer = log.producer("p").unwrap();
        let reading = SqliteLog::open_existing(&path).unwrap();
        let mut readers = [log.reader(&[at("t", 0)]).unwrap(), reading.reader(&[at("t", 0)]).unwrap()];
        for number in 0..50 {
            commit(&mut *producer, [record("t", 0, number.to_string())]);
        }
        readers.iter_mut().for_each(|reader| assert_eq!(drain(&mut **reader).len(), 50));
        run(program, arguments, &beside(&path, ending));
        let what = format!("{program} {arguments:?} {ending}");
        let check = |error: LogError| {
            let message = error.to_string();
            for word in words {
                assert!(message.contains(word), "{what}: {word:?} is missing in: {message}");
            }
        };
        producer.begin().unwrap();
        producer.send(record("t", 0, "one more")).unwrap();
        check(producer.commit().unwrap_err());
        if ending != "-head" {
            readers.iter_mut().for_each(|reader| check(reader.poll(Duration::ZERO, 1, 1).unwrap_err()));
            check(log.topics().unwrap_err());
            check(log.producer("q").err().unwrap());
        }
        // The files as if all processes were killed now.
        let left = files(&path);
        let killed = folder.path().join("killed.db");
        place(&killed, &left);
        match ending {
            "-head" => assert!(read(&killed).unwrap_err().to_string().contains("head"), "{what}"),
            _ => assert_eq!(read(&killed).unwrap().0, 50, "{what}"),
        }
        drop((producer, readers, log, reading));
        assert_eq!(read(&path).unwrap().0, 50, "{what}");
        open(&path).check().unwrap();
    }
}

#[test]
fn who_reads_an_index_that_was_cut_says_so_before_the_end() {
    const VARIABLE: &str = "WARPTAPE_LOG_TEST_SIGBUS";
    let query = |log: &rusqlite::Connection| {
        log.query_row("SELECT count(*) FROM topics", [], |row| row.get::<_, i64>(0))
    };
    if let Some(path) = std::env::var_os(VARIABLE) {
        warptape_eventlog::say_before_sigbus().unwrap();
        let path = std::path::PathBuf::from(path);
        let log = rusqlite::Connection::open(&path).unwrap();
        query(&log).unwrap();
        run("truncate", &["-s", "0"], &beside(&path, "-shm"));
        panic!("it goes on: {:?}", query(&log));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    topic(&open(&path), "t", 1);
    let test = "loss::who_reads_an_index_that_was_cut_says_so_before_the_end";
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let ended = child.args(["--exact", test, "--nocapture"]).env(VARIABLE, &path).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended.status), Some(7), "{said}");
    assert!(
        said.contains("log.db-shm, was cut while it was in use") && said.contains("start again"),
        "{said}"
    );
    open(&path).check().unwrap();
}

#[test]
fn an_index_that_was_cut_in_use_is_not_touched_by_who_opens_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let log = open(&path);
    topic(&log, "t", 1);
    let mut producer = log.producer("p").unwrap();
    commit(&mut *producer, [record("t", 0, "x")]);
    run("truncate", &["-s", "0"], &beside(&path, "-shm"));
    for opened in [SqliteLog::open(&path, Durability::Process), SqliteLog::open_existing(&path)] {
        let error = opened.err().unwrap().to_string();
        assert!(error.contains("was truncated while another process writes the log"), "{error}");
    }
    drop((producer, log));
    assert_eq!(read(&path).unwrap().0, 1);
}

#[test]
fn a_write_ahead_log_may_become_shorter_and_must_not_be_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let log = open(&path);
    topic(&log, "t", 1);
    let mut producer = log.producer("p").unwrap();
    let mut reader = log.reader(&[at("t", 0)]).unwrap();
    for _ in 0..20 {
        commit(&mut *producer, [record("t", 0, "x".repeat(1000))]);
    }
    assert_eq!(drain(&mut *reader).len(), 20);
    let wal = beside(&path, "-wal");
    let other = rusqlite::Connection::open(&path).unwrap();
    other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    assert_eq!(fs::metadata(&wal).unwrap().len(), 0);
    drop(other);
    for _ in 0..20 {
        commit(&mut *producer, [record("t", 0, "y".repeat(1000))]);
    }
    assert_eq!(drain(&mut *reader).len(), 20);
    let half = (fs::metadata(&wal).unwrap().len() / 2).to_string();
    run("truncate", &["-s", &half], &wal);
    producer.begin().unwrap();
    for _ in 0..2 {
        let error = producer.commit().unwrap_err().to_string();
        assert!(
            error.contains("log.db-wal was truncated while it was open") && error.contains("recover"),
            "{error}"
        );
        assert!(reader.poll(Duration::ZERO, 1, 1).is_err());
    }
    drop((producer, reader, log));
    check_refused(&path, &["are lost", "t/0 offsets"]);
    let losses = SqliteLog::recover(&path, &mut |_| {}).unwrap().losses;
    assert!(matches!(losses[..], [Loss::Transactions(_), Loss::Records { .. }]), "{losses:?}");
}

#[test]
fn a_log_of_one_byte_is_not_an_empty_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let (whole, closed) = crashed(folder.path());
    for files in [&whole, &closed] {
        let mut cut = files.clone();
        cut.get_mut("").unwrap().truncate(1);
        place(&path, &cut);
        check_refused(&path, &["missing or empty, but its head"]);
        assert!(SqliteLog::recover(&path, &mut |_| {}).is_err());
        cut.retain(|ending, _| ending.is_empty());
        place(&path, &cut);
        check_refused(&path, &["truncated: one byte is left of it"]);
        let error = SqliteLog::recover(&path, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("one byte is left"), "{error}");
    }
    assert_eq!(fs::read(&path).unwrap(), b"S");
}
