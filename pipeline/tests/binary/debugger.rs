//! `replay debug` for a user in a terminal, provided by tmux, and for scripts.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use warptape_eventlog::SqliteLog;

use super::processes::{
    DEADLINE, Running, WARPTAPE, folder, run_until_drained, texts, warptape, warptape_with,
};

const LOG: [&str; 2] = ["--log", "sqlite:w.db"];
const SETTINGS: [(&str, &str); 2] =
    [("WARPTAPE__ENGINE__DEVICES", "cpu:2"), ("WARPTAPE__SCHEDULER__BATCH_ROWS_MAX", "700")];
/// Text of the shell at the command's end, before the exit code.
const ENDED: &str = "ended with";

/// Records a run in a log.
fn recorded(path: &Path) {
    let feed = ["feed", "synth", "--symbols", "20", "--ticks", "20000"];
    texts(&warptape(path, &[&feed[..], &LOG].concat()), 0);
    let mut run = Running::start_with(path, &[&["run"][..], &LOG].concat(), &SETTINGS);
    let log = SqliteLog::open_existing(path.join("w.db")).expect("the log of the feed");
    run_until_drained(&mut run, &log, "warptape");
    run.stop("TERM");
}

/// A terminal of 120 columns and 40 lines in a tmux server of its own, which ends with it.
struct Tmux<'a> {
    folder: &'a Path,
}

impl<'a> Tmux<'a> {
    fn start(folder: &'a Path) -> Self {
        let tmux = Self { folder };
        let size = ["-x", "120", "-y", "40"];
        tmux.run(&[&["new-session", "-d"][..], &size, &["env", "PS1=ready ", "sh", "-i"]].concat());
        tmux
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux")
            .args(["-f", "/dev/null", "-S"])
            .arg(self.folder.join("tmux"))
            .args(arguments)
            .current_dir(self.folder)
            .env_remove("TMUX")
            .env("TERM", "xterm-256color")
            .env("LC_ALL", "C.UTF-8")
            .env("WARPTAPE", WARPTAPE)
            .stdin(Stdio::null())
            .output()
            .expect("tmux is installed: tests/run does it, from the Debian package of this name");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tmux {arguments:?}: {error}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Presses keys, by tmux's names for them.
    fn press(&self, keys: &[&str]) {
        self.run(&[&["send-keys"], keys].concat());
    }

    /// Types text unchanged.
    fn write(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
    }

    /// Types a command.
    fn command(&self, text: &str) {
        self.write(text);
        self.press(&["Enter"]);
    }

    /// Waits until the screen shows all of these texts, and returns it.
    #[track_caller]
    fn await_screen(&self, expected: &[&str]) -> String {
        let until = Instant::now() + DEADLINE;
        loop {
            let screen = self.run(&["capture-pane", "-p"]);
            let missing: Vec<_> = expected.iter().filter(|text| !screen.contains(**text)).collect();
            if missing.is_empty() {
                return screen;
            }
            assert!(Instant::now() < until, "{missing:?} is not shown:\n{screen}");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// True if a full screen is shown instead of the shell's.
    fn is_on_other_screen(&self) -> bool {
        self.run(&["display-message", "-p", "#{alternate_on}"]).trim() == "1"
    }

    /// Starts the command; the shell prints afterwards its exit code, and whether the terminal is as before.
    fn debug(&self, arguments: &str) {
        let command = format!("stty -g >before; \"$WARPTAPE\" replay debug {arguments} --log sqlite:w.db; ");
        let after = "printf 'ended %s %s, ' with $?; stty -g >after; cmp before after && echo restored";
        self.command(&(command + after));
    }

    #[track_caller]
    fn await_end(&self, code: i32) {
        let screen = self.await_screen(&[&format!("{ENDED} {code}, restored")]);
        assert!(!self.is_on_other_screen(), "{screen}");
        assert_eq!(self.run(&["display-message", "-p", "#{cursor_flag}"]).trim(), "1", "the cursor is shown");
        self.command("clear");
        let until = Instant::now() + DEADLINE;
        while self.run(&["capture-pane", "-p"]).contains(ENDED) {
            assert!(Instant::now() < until, "the screen is not cleared");
        }
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        let socket = self.folder.join("tmux");
        drop(Command::new("tmux").arg("-S").arg(socket).arg("kill-server").output());
    }
}

#[test]
fn a_journal_is_stepped_through_in_a_terminal() {
    let folder = folder();
    let path = folder.path();
    recorded(path);
    let tmux = Tmux::start(path);

    tmux.debug("");
    tmux.await_screen(&["sequence 0 ", "as recorded", "Started: process", "0 cpu:0", "? lists the keys"]);
    assert!(tmux.is_on_other_screen());
    tmux.press(&["n"]);
    tmux.await_screen(&["sequence 1 "]);
    tmux.press(&["Right"]);
    tmux.await_screen(&["sequence 2 "]);
    tmux.press(&["p"]);
    tmux.await_screen(&["sequence 1 "]);
    tmux.press(&["b"]);
    tmux.await_screen(&["condition: _"]);
    tmux.write("decision=Dispatch && lane=cpu:1 && colour=red");
    tmux.press(&["Enter"]);
    tmux.await_screen(&["there is no field \"colour\""]);
    tmux.press(&[&["BSpace"; 14][..], &["Enter"]].concat());
    tmux.await_screen(&["c continues to where it holds", "c goes to: decision=Dispatch && lane=cpu:1"]);
    tmux.press(&["c"]);
    let broken = tmux.await_screen(&["Dispatch: batch ", "c goes to: decision=Dispatch"]);
    tmux.press(&["e"]);
    tmux.await_screen(&[" why ", "choice", "  *  lane 1 "]);
    let title = broken.lines().next().expect("a title").trim_end();
    let sequence = title.split_whitespace().nth(2).and_then(|number| number.parse::<i64>().ok());
    let next = sequence.expect("the third word is the sequence") + 1;
    tmux.press(&["e", "n"]);
    tmux.await_screen(&[&format!("sequence {next} ")]);
    tmux.press(&["C"]);
    tmux.await_screen(&[title]);
    tmux.press(&["g"]);
    tmux.write("99999999");
    tmux.press(&["Enter"]);
    tmux.await_screen(&["there is no entry at sequence 99999999 or after it; this is the last one"]);
    tmux.press(&["q"]);
    tmux.await_end(0);

    tmux.debug("--at 1 --break 'input=Arrived'");
    tmux.await_screen(&["sequence 1 "]);
    tmux.press(&["c"]);
    tmux.await_screen(&["Arrived: "]);
    tmux.press(&["C-c"]);
    tmux.await_end(0);
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let folder = folder();
    let path = folder.path();
    recorded(path);
    let tmux = Tmux::start(path);
    tmux.debug("");
    tmux.await_screen(&["sequence 0 "]);
    let shell = tmux.run(&["display-message", "-p", "#{pane_pid}"]).trim().to_owned();
    let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children"));
    let process = children.expect("a shell").trim().to_owned();
    let status = Command::new("kill").args(["-TERM", &process]).status().expect("kill runs");
    assert!(status.success(), "no process {process:?}");
    tmux.await_end(0);
}

#[test]
fn scripts_get_the_entries_of_which_a_condition_holds() {
    let folder = folder();
    let path = folder.path();
    recorded(path);
    let debug = |arguments: &[&str]| {
        let arguments = [&["replay", "debug"], arguments, &LOG].concat();
        texts(&warptape(path, &arguments), 0).0
    };
    let condition = "decision=Dispatch && lane=cpu:1 && sequence>3";
    let out = debug(&["--break", condition, "-o", "json", "--count", "5"]);
    let found: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(found.len(), 5, "{out}");
    let sequences: Vec<i64> = found.iter().map(|one| one["sequence"].as_i64().expect("a number")).collect();
    assert!(sequences.is_sorted() && sequences[0] > 3, "{sequences:?}");
    for one in &found {
        let mut decisions = one["decisions"].as_array().expect("decisions").iter();
        assert!(decisions.any(|decision| decision["Dispatch"]["lane"] == 1), "{one}");
        assert_eq!(one["differences"], Value::Array(Vec::new()));
    }
    // The first entry counts as well.
    let third = sequences[2].to_string();
    let out = debug(&["--at", &third, "--break", condition, "-o", "table", "--count", "1"]);
    assert!(
        out.trim_start().starts_with(&format!("{third}  20")) && out.contains("\n    Dispatch: batch"),
        "{out}"
    );
    let none = [&["replay", "debug", "--break", "lane=7", "-o", "json"][..], &LOG].concat();
    let (out, error) = texts(&warptape(path, &none), 0);
    assert!(out.is_empty() && error.contains("holds of none of the entries 0 to "), "{out}{error}");
    assert_eq!(debug(&["-o", "json", "--count", "3"]).lines().count(), 3);

    let refused = |arguments: &[&str], expected: &str| {
        let (_, error) =
            texts(&warptape_with(path, &[&["replay", "debug"], arguments, &LOG].concat(), &[]), 2);
        assert!(error.contains(expected), "{expected:?} is missing in {error}");
    };
    refused(&[], "give `-o table` or `-o json`");
    for at in ["99999999", "offset:99999999", "2100-01-01T00:00:00Z"] {
        refused(&["--at", at, "-o", "table"], "partition 0 has the sequences 0 to ");
    }
    let nowhere = warptape(path, &["replay", "debug", "--log", "nowhere.db"]);
    assert!(texts(&nowhere, 2).1.contains("nowhere.db: no such file"), "the log comes before the terminal");
    refused(&["--break", "lane=1 & queue>5"], "character 8: one & means nothing: write &&");
    refused(&["--at", "yesterday", "-o", "json"], "is no time such as");
    refused(&["-o", "json", "--partition", "7"], "no entries of a process with the ordinal 7");
}
