//! Several processes on one log. The other processes are this test binary started again for one test, with the log's
//! path in the environment.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, Stdio};

use warptape_eventlog::LogError;

use super::random::Random;
use super::*;

const PATH_VARIABLE: &str = "WARPTAPE_LOG_TEST_PATH";
const ROLE_VARIABLE: &str = "WARPTAPE_LOG_TEST_ROLE";
/// Prefix of a child's lines for its parent; the test harness writes other lines.
const MARK: &str = "child: ";

/// The log's path and a number; `None` if this process was not started by [`start`].
fn child_role() -> Option<(std::path::PathBuf, u64)> {
    let path = std::env::var_os(PATH_VARIABLE)?;
    Some((path.into(), std::env::var(ROLE_VARIABLE).unwrap().parse().unwrap()))
}

fn tell(line: impl std::fmt::Display) {
    println!("{MARK}{line}");
}

/// Another process; killed when dropped.
struct Other {
    process: Child,
    lines: Box<dyn Iterator<Item = String>>,
    /// Standard input of the process; closing it tells the process to end.
    _input: ChildStdin,
}

/// Starts this binary for one test, which must look for its [`child_role`] first.
fn start(test: &str, path: &Path, role: u64) -> Other {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(PATH_VARIABLE, path)
        .env(ROLE_VARIABLE, role.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = process.stdin.take().unwrap();
    let output = BufReader::new(process.stdout.take().unwrap());
    // The harness writes the test's name without a line end before the child's first line.
    let lines = output
        .lines()
        .map(Result::unwrap)
        .filter_map(|line| line.find(MARK).map(|start| line[start + MARK.len()..].to_owned()));
    Other { process, lines: Box::new(lines), _input: input }
}

impl Other {
    fn next_line(&mut self) -> String {
        self.lines.next().expect("the other process ended early")
    }

    /// Kills the process (SIGKILL); returns the lines that it had written.
    fn kill(mut self) -> Vec<String> {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        std::mem::replace(&mut self.lines, Box::new(std::iter::empty())).collect()
    }

    /// Waits until the process ends successfully.
    fn finish(mut self) {
        for _ in &mut self.lines {}
        let status = self.process.wait().unwrap();
        assert!(status.success(), "the other process failed: {status}");
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Writes transactions for ever. Each contains its number in many records of two partitions, and as an offset.
fn write_for_ever(path: &Path, first: u64) {
    let log = open(path);
    let mut producer = log.producer("writer").unwrap();
    for number in first.. {
        producer.begin().unwrap();
        for _ in 0..50 {
            for partition in 0..2 {
                producer.send(record("t", partition, number.to_le_bytes().repeat(500))).unwrap();
            }
        }
        producer.send_offsets("g", &[(at("t", 0), number as i64)]).unwrap();
        producer.commit().unwrap();
        tell(number);
    }
}

#[test]
fn a_killed_writer_loses_nothing_committed_and_shows_nothing_else() {
    if let Some((path, first)) = child_role() {
        return write_for_ever(&path, first);
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.db");
    topic(&open(&path), "t", 2);
    let mut random = Random::new(0x5EED_0003);
    let mut last_seen = None;
    for round in 0..20 {
        let first = last_seen.map_or(0, |last: u64| last + 1);
        let test = "processes::a_killed_writer_loses_nothing_committed_and_shows_nothing_else";
        let mut writer = start(test, &path, first);
        let mut told: u64 = writer.next_line().parse().unwrap();
        for _ in 0..random.below(5) {
            told = writer.next_line().parse().unwrap();
        }
        // The kill happens during the next transaction or two, mostly while they are written.
        let moment = Instant::now() + Duration::from_micros(random.below(8000));
        while Instant::now() < moment {
            std::hint::spin_loop();
        }
        if let Some(line) = writer.kill().last() {
            // The last line may be incomplete.
            told = line.parse().unwrap_or(told);
        }

        let log = open(&path);
        log.check().unwrap();
        let numbers = |partition| {
            let records = drain(&mut *log.reader(&[at("t", partition)]).unwrap());
            assert_eq!(records.len() % 50, 0, "round {round}: a part of a transaction is visible");
            let numbers: Vec<u64> = records
                .chunks(50)
                .map(|transaction| {
                    let number = &transaction[0].1.value;
                    assert!(transaction.iter().all(|(_, record)| record.value == *number));
                    u64::from_le_bytes(number[..8].try_into().unwrap())
                })
                .collect();
            let expected: Vec<u64> = (0..numbers.len() as u64).collect();
            assert_eq!(numbers, expected, "round {round}: transactions are lost or doubled");
            numbers.len() as u64 - 1
        };
        let last = numbers(0);
        assert_eq!(numbers(1), last, "round {round}: the partitions differ");
        assert!(last >= told, "round {round}: {last} is the last, {told} was committed");
        assert!(last <= told + 1, "round {round}: {last} is the last, the writer was at {told}");
        let mut member = log.subscribe("g", &["t"]).unwrap();
        assert_eq!(
            member.committed(&at("t", 0)).unwrap(),
            Some(last as i64),
            "round {round}: offsets differ"
        );
        last_seen = Some(last);
    }
}

#[test]
fn a_second_member_is_refused_until_the_first_dies() {
    if let Some((path, _)) = child_role() {
        let log = open(&path);
        let _member = log.subscribe("engine", &["t"]).unwrap();
        tell("joined");
        let _ = std::io::stdin().read(&mut [0]);
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.db");
    let log = open(&path);
    topic(&log, "t", 1);
    let mut other = start("processes::a_second_member_is_refused_until_the_first_dies", &path, 0);
    assert_eq!(other.next_line(), "joined");
    // Opening the file under another name does not avoid the lock.
    let link = directory.path().join("link.db");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for log in [&log, &open(&link)] {
        let error = log.subscribe("engine", &["t"]).err().unwrap();
        assert!(matches!(error, LogError::GroupTaken { .. }), "{error}");
        let id = format!("process {}", other.process.id());
        for part in ["log.db", "\"engine\"", &id, "stop it first"] {
            assert!(error.to_string().contains(part), "{part:?} is missing in: {error}");
        }
    }
    log.subscribe("another", &["t"]).unwrap();
    other.kill();
    let member = log.subscribe("engine", &["t"]).unwrap();
    let error = log.subscribe("engine", &["t"]).err().unwrap().to_string();
    assert!(error.contains(&format!("this process, {}", std::process::id())), "{error}");
    drop(member);
    log.subscribe("engine", &["t"]).unwrap();
}

#[test]
fn processes_write_side_by_side_while_others_read() {
    const WRITERS: u64 = 3;
    const TRANSACTIONS: u64 = 200;
    const RECORDS: u64 = 5;
    if let Some((path, writer)) = child_role() {
        let log = open(&path);
        topic(&log, "t", 2);
        let mut producer = log.producer(&format!("writer-{writer}")).unwrap();
        for transaction in 0..TRANSACTIONS {
            let value = format!("{writer} {transaction}");
            commit(&mut *producer, (0..RECORDS * 2).map(|n| record("t", (n % 2) as i32, &value)));
        }
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.db");
    // The file does not exist yet: the first process creates it, while the others wait.
    let test = "processes::processes_write_side_by_side_while_others_read";
    let writers: Vec<_> = (0..WRITERS).map(|writer| start(test, &path, writer)).collect();
    topic(&open(&path), "t", 2);
    let log = SqliteLog::open_existing(&path).unwrap();
    let mut reader = log.reader(&[at("t", 0), at("t", 1)]).unwrap();
    let arrived = await_records(&mut *reader, (WRITERS * TRANSACTIONS * RECORDS * 2) as usize);
    writers.into_iter().for_each(Other::finish);
    assert!(drain(&mut *reader).is_empty());
    for partition in 0..2 {
        let values: Vec<_> = (arrived.iter())
            .filter(|(source, _)| source.partition == partition)
            .map(|(_, record)| String::from_utf8(record.value.clone()).unwrap())
            .collect();
        let mut next = [0; WRITERS as usize];
        for transaction in values.chunks(RECORDS as usize) {
            // A transaction's records are adjacent, and those of one writer are in order.
            assert!(transaction.iter().all(|value| value == &transaction[0]), "{transaction:?}");
            let (writer, number) = transaction[0].split_once(' ').unwrap();
            let expected = &mut next[writer.parse::<usize>().unwrap()];
            assert_eq!(number.parse::<u64>().unwrap(), *expected, "writer {writer}");
            *expected += 1;
        }
        assert_eq!(next, [TRANSACTIONS; WRITERS as usize]);
    }
    open(&path).check().unwrap();
}

#[test]
fn a_producer_of_another_process_fences() {
    if let Some((path, _)) = child_role() {
        commit(&mut *open(&path).producer("engine").unwrap(), [record("t", 0, "new")]);
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.db");
    let log = open(&path);
    topic(&log, "t", 1);
    let mut old = log.producer("engine").unwrap();
    commit(&mut *old, [record("t", 0, "old")]);
    old.begin().unwrap();
    old.send(record("t", 0, "lost")).unwrap();
    start("processes::a_producer_of_another_process_fences", &path, 0).finish();
    let error = old.commit().unwrap_err();
    assert!(matches!(error, LogError::Fenced { .. }), "{error}");
    let values: Vec<_> =
        drain(&mut *log.reader(&[at("t", 0)]).unwrap()).into_iter().map(|(_, record)| record.value).collect();
    assert_eq!(values, [b"old", b"new"]);
}
