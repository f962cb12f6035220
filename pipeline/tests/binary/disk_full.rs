//! A full disk under the embedded log. The error is clear, and nothing is lost. Once there is space again, the outputs
//! equal those of an uninterrupted run.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;
use warptape_eventlog::{Durability, SqliteLog};

use super::files_of_logs::copy_log;
use super::outputs::{count, first_difference, outputs};
use super::processes::{Running, folder, run_until_drained, texts, warptape};

/// Size of the disk. The next constant is the space left on the full disk: enough to start, but less than the outputs
/// need.
const DISK_MIB: usize = 64;
const LEFT_KIB: usize = 1024;
const TICKS: &str = "60000";
const CONFIGURATION: &str = "stages.bars = [\"1s\", \"tick:1\"]\nengine.commit_interval_ms = 20\n";

/// Environment variable that skips the test if it is 1.
pub const NO_MOUNT: &str = "WARPTAPE_TEST_NO_MOUNT";
/// Environment variable that is 1 in the second run of the test, which is in a namespace.
pub const IN_NAMESPACE: &str = "WARPTAPE_TEST_IN_NAMESPACE";

/// A small mounted disk for one test.
pub struct Disk {
    folder: TempDir,
}

impl Disk {
    /// Mounts a disk; `None` if this user may not mount.
    pub fn mount() -> Option<Disk> {
        let folder = folder();
        let options = format!("size={DISK_MIB}m");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(folder.path())
            .stderr(Stdio::null())
            .status();
        mount.is_ok_and(|status| status.success()).then(|| Disk { folder })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Fills the disk, except for the given space in KiB.
    pub fn fill(&self, left_kib: usize) {
        let available = self.available_kib();
        let path = self.path().join("ballast");
        let mut ballast = File::options().create(true).append(true).open(path).expect("a file");
        let block = [1; 1024];
        for _ in left_kib..available {
            ballast.write_all(&block).expect("there is space");
        }
    }

    fn make_space(&self) {
        std::fs::remove_file(self.path().join("ballast")).expect("the ballast is there");
    }

    fn available_kib(&self) -> usize {
        let output =
            Command::new("df").args(["-k", "--output=avail"]).arg(self.path()).output().expect("df runs");
        let text = String::from_utf8(output.stdout).expect("text");
        text.split_whitespace().last().and_then(|number| number.parse().ok()).expect("a number")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg(self.path()).status());
    }
}

fn feed(folder: &Path, log: &str, seed: &str) -> Output {
    let market = ["feed", "synth", "--symbols", "50", "--ticks", TICKS, "--seed", seed];
    warptape(folder, &[&market[..], &["--batch", "16", "--log", log]].concat())
}

/// Returns the number of ticks in a log.
fn ticks(folder: &Path, log: &str) -> usize {
    let tail = ["tail", "ticks", "--from-beginning", "--exit-at-end", "-o", "json", "--log", log];
    texts(&warptape(folder, &tail), 0).0.lines().count()
}

fn run(folder: &Path, log: &str) -> Running {
    Running::start(folder, &["run", "-c", "w.toml", "--log", log])
}

#[test]
fn a_full_disk_is_named_and_costs_nothing() {
    let is_set = |name: &str| std::env::var(name).is_ok_and(|value| value == "1");
    if is_set(NO_MOUNT) {
        return;
    }
    match Disk::mount() {
        Some(disk) => fill_and_make_space(&disk),
        None if is_set(IN_NAMESPACE) => panic!("no disk can be mounted in a namespace either"),
        None => run_in_namespace("a_full_disk_is_named_and_costs_nothing"),
    }
}

/// Runs a test again in a namespace of its own. In it this user may mount a disk, which only the namespace sees.
pub fn run_in_namespace(test: &str) {
    let output = Command::new("unshare")
        .arg("-rm")
        .arg(std::env::current_exe().expect("the test's own path"))
        .args([test, "--nocapture", "--include-ignored"])
        .env(IN_NAMESPACE, "1")
        .output()
        .expect("unshare runs, or WARPTAPE_TEST_NO_MOUNT=1 leaves this test out");
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && out.contains(" 1 passed"),
        "this user may mount no disk, and in a namespace of its own (`unshare -rm`):\n{out}{error}\n\
         Where no disk can be mounted, {NO_MOUNT}=1 leaves this test out."
    );
}

fn fill_and_make_space(disk: &Disk) {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("w.toml"), CONFIGURATION).expect("a file");
    let path = disk.path().join("w.db");
    let url = format!("sqlite:{}", path.display());
    texts(&feed(folder, &url, "1"), 0);
    copy_log(&path, &folder.join("uninterrupted.db"));
    let uninterrupted = SqliteLog::open(folder.join("uninterrupted.db"), Durability::Process).expect("a log");
    let mut undisturbed = run(folder, "sqlite:uninterrupted.db");
    run_until_drained(&mut undisturbed, &uninterrupted, "warptape");
    undisturbed.stop("TERM");

    disk.fill(LEFT_KIB);
    let expect_full = |error: &str| {
        for part in [&*url, "the disk is full", "free some space"] {
            assert!(error.contains(part), "{part:?} is missing: {error}");
        }
    };
    let (status, _, error) = run(folder, &url).finish();
    assert_eq!(status.code(), Some(1), "{error}");
    expect_full(&error);

    disk.make_space();
    let log = SqliteLog::open(&path, Durability::Process).expect("the log is sound");
    log.check().expect("the log is sound");
    let mut resumed = run(folder, &url);
    run_until_drained(&mut resumed, &log, "warptape");
    resumed.stop("TERM");
    let (expected, found) = (outputs(&uninterrupted, ""), outputs(&log, ""));
    assert!(count(&expected, "signals") > 1000, "too few to say anything");
    assert_eq!(first_difference(&expected, &found), None);
    let verify = ["replay", "verify", "--outputs", "-c", "w.toml", "--log", &url];
    assert!(texts(&warptape(folder, &verify), 0).0.ends_with(" signals: identical\n"));
    drop(log);

    let before = ticks(folder, &url);
    disk.fill(LEFT_KIB);
    let (_, error) = texts(&feed(folder, &url, "2"), 1);
    expect_full(&error);
    disk.make_space();
    // The moment at which space runs out varies: it may be before the first tick, or after some ticks.
    assert_eq!(ticks(folder, &url), before + said_published(&error), "{error}");
}

/// Returns the number of ticks that a failed feed reports as published; 0 if it reports none.
fn said_published(error: &str) -> usize {
    let said =
        error.split_once("stopped after ").and_then(|(_, rest)| rest.split_once(" ticks were published"));
    said.map_or(0, |(count, _)| count.replace(',', "").parse().expect("a number of ticks"))
}
