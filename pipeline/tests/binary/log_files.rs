//! The files of an embedded log: checked, recovered and copied by the binary, and protected from other users. Also the
//! messages of processes that lack resources.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use warptape_eventlog::{Durability, SqliteLog};

use super::processes::{Running, WARPTAPE, ends, folder, run_until_drained, texts, warptape};

const LOG: [&str; 2] = ["--log", "sqlite:w.db"];

fn on_log(folder: &Path, command: &[&str], code: i32) -> (String, String) {
    texts(&warptape(folder, &[command, &LOG].concat()), code)
}

/// Creates a log like one that a killed process leaves: with ticks in its file, and more in its write-ahead log only.
fn killed_feed(folder: &Path) {
    on_log(folder, &["feed", "synth", "--symbols", "20", "--ticks", "20000"], 0);
    let log = SqliteLog::open_existing(folder.join("w.db")).expect("a log");
    let before: i64 = ends(&log, "ticks").iter().sum();
    let endless =
        ["feed", "synth", "--symbols", "20", "--ticks", "1000000000", "--rate", "50000", "--batch", "16"];
    let mut feed = Running::start(folder, &[&endless[..], &LOG].concat());
    feed.run_until("ticks are published", || {
        (ends(&log, "ticks").iter().sum::<i64>() > before + 200).then_some(())
    });
    feed.kill();
}

#[test]
fn a_log_from_a_stranger_is_refused_by_every_command_and_what_is_whole_of_it_is_recovered() {
    let folder = folder();
    let folder = folder.path();
    on_log(folder, &["feed", "synth", "--symbols", "20", "--ticks", "20000"], 0);
    let sql = "CREATE TRIGGER mine AFTER UPDATE ON partitions BEGIN DELETE FROM topics; END;
         CREATE VIEW endless AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n;";
    let alter = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])";
    let altered = Command::new("python3").args(["-c", alter]).arg(folder.join("w.db")).arg(sql).status();
    assert!(altered.expect("python3").success());
    for command in [
        &["run"][..],
        &["tail", "ticks", "--exit-at-end"],
        &["topics"],
        &["log", "check"],
        &["log", "backup", "c.db"],
    ] {
        let (_, error) = on_log(folder, command, 2);
        for part in
            ["the trigger \"mine\"", "the view \"endless\"", "not part of a log", "warptape log recover"]
        {
            assert!(error.contains(part), "{command:?}: {part:?} is missing in: {error}");
        }
    }
    let (said, _) = on_log(folder, &["log", "recover"], 0);
    assert!(said.contains("the trigger \"mine\" is left out: it does not belong to a log"), "{said}");
    let (said, _) = on_log(folder, &["log", "check"], 0);
    assert!(said.ends_with(": whole\n"), "{said}");
    let log = SqliteLog::open_existing(folder.join("w.db")).expect("a log");
    assert!(ends(&log, "ticks").iter().sum::<i64>() > 0);
}

#[test]
fn a_write_ahead_log_that_goes_while_it_is_used_ends_the_process_and_loses_nothing() {
    for (ending, arguments) in [("-wal", &["rm"][..]), ("-shm", &["rm"]), ("-shm", &["truncate", "-s", "0"])]
    {
        let folder = folder();
        let folder = folder.path();
        on_log(folder, &["topics", "create"], 0);
        let endless =
            ["feed", "synth", "--symbols", "20", "--ticks", "1000000000", "--rate", "50000", "--batch", "16"];
        let mut feed = Running::start(folder, &[&endless[..], &LOG].concat());
        let fed = |least: i64| {
            let log = SqliteLog::open_existing(folder.join("w.db")).ok()?;
            let fed = ends(&log, "ticks").iter().sum::<i64>();
            (fed > least).then_some(fed)
        };
        let before = feed.run_until("ticks are published", || fed(200));
        let file = format!("w.db{ending}");
        assert!(
            Command::new(arguments[0])
                .args(&arguments[1..])
                .arg(folder.join(&file))
                .status()
                .expect("it runs")
                .success()
        );
        let (status, _, error) = feed.finish();
        assert!(
            !status.success() && error.contains(&file) && error.contains("start again"),
            "{ending}: {status} {error}"
        );
        assert!(fed(before - 1).is_some(), "{ending}: something is lost");
        let (said, _) = on_log(folder, &["log", "check"], 0);
        assert!(said.ends_with(": whole\n"), "{said}");
    }
}

#[test]
fn a_log_is_checked_copied_and_recovered() {
    let folder = folder();
    let folder = folder.path();
    killed_feed(folder);
    let (said, _) = on_log(folder, &["log", "check"], 0);
    assert!(said.ends_with(": whole\n") && said.contains(" records in "), "{said}");
    let (said, _) = on_log(folder, &["log", "recover"], 0);
    assert!(said.contains("nothing in sqlite:w.db is damaged or lost"), "{said}");
    on_log(folder, &["log", "backup", "copy.db"], 0);
    let (said, _) = texts(&warptape(folder, &["log", "check", "--log", "sqlite:copy.db"]), 0);
    assert!(said.ends_with(": whole\n"), "{said}");

    // One flipped bit in the write-ahead log makes everything after it unreadable.
    let wal = folder.join("w.db-wal");
    let mut bytes = std::fs::read(&wal).expect("it is there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&wal, bytes).expect("it can be written");
    for command in [&["run"][..], &["tail", "ticks", "--exit-at-end"], &["topics"], &["log", "check"]] {
        let (_, error) = on_log(folder, command, 2);
        for part in ["sqlite:w.db", " lost: the log has ", "ticks/", "warptape log recover --log sqlite:w.db"]
        {
            assert!(error.contains(part), "{command:?}: {part:?} is missing in: {error}");
        }
    }
    let (said, _) = on_log(folder, &["log", "recover"], 0);
    for part in [" lost\n", "are given up", "now holds all intact contents", "w.db-damaged-1"] {
        assert!(said.contains(part), "{part:?} is missing in: {said}");
    }
    let (said, _) = on_log(folder, &["log", "check"], 0);
    assert!(said.contains("given up   ticks/") && said.ends_with(": whole\n"), "{said}");

    // The pipeline continues after the lost ticks.
    on_log(folder, &["feed", "synth", "--symbols", "20", "--ticks", "1000", "--seed", "5"], 0);
    let log = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a log");
    let mut run = Running::start(folder, &[&["run"][..], &LOG].concat());
    run_until_drained(&mut run, &log, "warptape");
    run.stop("TERM");
    log.check().expect("it is whole");
}

#[test]
fn damage_is_named_with_its_place() {
    let folder = folder();
    let folder = folder.path();
    on_log(folder, &["feed", "synth", "--symbols", "20", "--ticks", "20000"], 0);
    let path = folder.join("w.db");
    let mut bytes = std::fs::read(&path).expect("a log");
    // A symbol's name lies within a block of ticks, wherever SQLite stored the block.
    let place = bytes.windows(6).rposition(|found| found == b"SYNTH:").expect("a symbol");
    bytes[place + 5] ^= 16;
    std::fs::write(&path, bytes).expect("it can be written");
    let (said, _) = on_log(folder, &["log", "check"], 1);
    assert!(said.contains("damaged    ticks/") && said.contains(" offsets "), "{said}");
    let (_, error) = on_log(folder, &["tail", "ticks", "--from-beginning", "--exit-at-end"], 2);
    assert!(error.contains("the log is damaged: ticks/") && error.contains("checksum"), "{error}");
    let (_, error) = on_log(folder, &["run"], 1);
    assert!(error.contains("the log is damaged: ticks/"), "{error}");
    let (_, error) = texts(&warptape(folder, &["log", "check", "--log", "kafka:localhost:9"]), 2);
    assert!(error.contains("not an embedded log"), "{error}");
}

#[test]
fn files_of_a_log_are_for_their_owner_alone() {
    let folder = folder();
    let folder = folder.path();
    killed_feed(folder);
    let log = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a log");
    let mut run = Running::start(folder, &[&["run"][..], &LOG].concat());
    run.run_until("it commits", || ends(&log, "journal").iter().any(|end| *end > 0).then_some(()));
    run.kill();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let metadata = entry.metadata().expect("a file");
        let expected = if metadata.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(metadata.permissions().mode() & 0o777, expected, "{:?}", entry.path());
        names.push(entry.file_name().into_string().expect("a name"));
    }
    for name in ["w.db", "w.db-wal", "w.db-shm", "w.db-head", "w.db.warptape.lock"] {
        assert!(names.iter().any(|found| found == name), "{name} is missing: {names:?}");
    }
}

/// Runs the binary under a limit of the shell's `ulimit`. The process ends by itself, or is asked to end after
/// `told_after_s` seconds. If it cannot continue, it must give a reason. Returns true if it succeeded.
pub fn check_limited(folder: &Path, limit: &str, told_after_s: Option<u32>, command: &[&str]) -> bool {
    let told_after = told_after_s.map(|seconds| vec!["--preserve-status".to_owned(), seconds.to_string()]);
    let script = format!("ulimit {limit}; exec \"$0\" \"$@\"");
    let output = Command::new("timeout")
        .args(["--kill-after=100", "--foreground"])
        .args(told_after.unwrap_or_else(|| vec!["120".to_owned()]))
        .args(["sh", "-c", &script, WARPTAPE])
        .args(command)
        .current_dir(folder)
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .expect("a shell runs");
    let (status, error) = (output.status, String::from_utf8_lossy(&output.stderr));
    let what = format!("ulimit {limit}, {command:?}: {status}\n{error}");
    // The standard library aborts the process if a thread has no memory for its signal stack.
    if error.contains("failed to allocate an alternative stack") {
        return false;
    }
    assert!(status.signal().is_none() && matches!(status.code(), Some(0..=2)), "{what}");
    assert!(!error.contains("panicked"), "{what}");
    assert!(status.success() || error.contains("error: "), "{what}");
    status.success()
}

#[test]
fn too_little_of_anything_is_an_error_that_says_so() {
    let feed = ["feed", "synth", "--symbols", "20", "--ticks", "200000", "--log", "sqlite:w.db"];
    let demo = ["demo", "--ticks", "60000", "--data", "d"];
    let mut failed = 0;
    for command in [&feed[..], &demo] {
        // The limits are descriptors, KiB of address space, and file sizes in blocks of 512 bytes. They start far too
        // small.
        for descriptors in [10, 14, 18, 22, 26, 30, 36, 44, 60] {
            failed += u32::from(!check_limited(folder().path(), &format!("-n {descriptors}"), None, command));
        }
        for kib in [80_000, 100_000, 120_000, 160_000, 220_000, 300_000, 500_000] {
            failed += u32::from(!check_limited(folder().path(), &format!("-v {kib}"), None, command));
        }
        for blocks in [0, 1, 40, 100, 300, 2000] {
            failed += u32::from(!check_limited(folder().path(), &format!("-f {blocks}"), None, command));
        }
    }
    assert!(failed > 10, "{failed} were too little");
}
