//! A full disk below the embedded log: a clear error, nothing lost, and what an uninterrupted run puts out once there is
//! space again.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use warptape_eventlog::{Durability, SqliteLog};

use super::outputs::{count, first_difference, outputs};
use super::processes::{Running, folder, run_until_drained, texts, warptape};

/// Size of the disk, and what is left of it when it is full: enough to begin, and less than the outputs.
const DISK_MIB: usize = 64;
const LEFT_KIB: usize = 1024;
const TICKS: &str = "60000";
const CONFIGURATION: &str = "stages.bars = [\"1s\", \"tick:1\"]\nengine.commit_interval_ms = 20\n";

/// A small disk of its own.
struct Disk {
    path: PathBuf,
    /// Holds the namespace in which it is mounted, where this user may not mount it for everybody.
    holder: Option<Child>,
    folder: TempDir,
}

impl Disk {
    /// `None` where this user may mount nothing at all.
    fn mount() -> Option<Disk> {
        let folder = folder();
        let options = format!("size={DISK_MIB}m");
        let mount = ["-t", "tmpfs", "-o", &options, "tmpfs"];
        let mounted = Command::new("mount").args(mount).arg(folder.path()).stderr(Stdio::null()).status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Disk { path: folder.path().to_owned(), holder: None, folder });
        }
        let script = format!("mount {} \"$1\" && echo mounted && read -r _", mount.join(" "));
        let mut holder = Command::new("unshare")
            .args(["-rm", "sh", "-c", &script, "sh"])
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut said = String::new();
        let stdout = holder.stdout.take().expect("a pipe");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut said)
            .expect("a pipe can be read");
        // Seen from outside through the process that is inside.
        let inside = folder.path().strip_prefix("/").expect("temporary folders have absolute paths");
        let path = PathBuf::from(format!("/proc/{}/root", holder.id())).join(inside);
        let disk = Disk { path, holder: Some(holder), folder };
        (said == "mounted\n").then_some(disk)
    }

    /// Takes all space but a little.
    fn fill(&self) {
        let available = self.available_kib();
        let mut ballast = File::create(self.path.join("ballast")).expect("a file");
        let block = [1; 1024];
        for _ in LEFT_KIB..available {
            ballast.write_all(&block).expect("there is space");
        }
    }

    fn make_space(&self) {
        std::fs::remove_file(self.path.join("ballast")).expect("the ballast is there");
    }

    fn available_kib(&self) -> usize {
        let output =
            Command::new("df").args(["-k", "--output=avail"]).arg(&self.path).output().expect("df runs");
        let text = String::from_utf8(output.stdout).expect("text");
        text.split_whitespace().last().and_then(|number| number.parse().ok()).expect("a number")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        match &mut self.holder {
            Some(holder) => {
                drop(holder.kill());
                drop(holder.wait());
            }
            None => drop(Command::new("umount").arg(self.folder.path()).status()),
        }
    }
}

fn feed(folder: &Path, log: &str) -> std::process::Output {
    warptape(folder, &["feed", "synth", "--symbols", "50", "--ticks", TICKS, "--batch", "16", "--log", log])
}

fn run(folder: &Path, log: &str) -> Running {
    Running::start(folder, &["run", "-c", "w.toml", "--log", log])
}

#[test]
fn a_full_disk_is_named_and_costs_nothing() {
    let Some(disk) = Disk::mount() else {
        println!(
            "not shown here: this user may mount no disk, neither as root nor in a namespace of its own"
        );
        return;
    };
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("w.toml"), CONFIGURATION).expect("a file");
    let path = disk.path.join("w.db");
    let url = format!("sqlite:{}", path.display());
    texts(&feed(folder, &url), 0);
    std::fs::copy(&path, folder.join("uninterrupted.db")).expect("the log fits here");
    let uninterrupted = SqliteLog::open(folder.join("uninterrupted.db"), Durability::Process).expect("a log");
    let mut undisturbed = run(folder, "sqlite:uninterrupted.db");
    run_until_drained(&mut undisturbed, &uninterrupted, "warptape");
    undisturbed.stop("TERM");

    disk.fill();
    let expect_full = |error: &str| {
        for part in [&*url, "the disk is full", "free some space"] {
            assert!(error.contains(part), "{part:?} is missing: {error}");
        }
    };
    let (status, _, error) = run(folder, &url).finish();
    assert_eq!(status.code(), Some(1), "{error}");
    expect_full(&error);
    let (_, error) = texts(&feed(folder, &url), 1);
    expect_full(&error);
    assert!(error.contains("stopped after 0 ticks were published"), "{error}");

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
}
