//! `replay debug` for users in a terminal, provided by tmux, and for scripts.

use std::path::Path;

use serde_json::Value;
use warptape_eventlog::SqliteLog;

use super::processes::{Running, folder, run_until_drained, texts, warptape, warptape_with};
use super::tmux::Tmux;

const LOG: [&str; 2] = ["--log", "sqlite:w.db"];
const SETTINGS: [(&str, &str); 2] =
    [("WARPTAPE__ENGINE__DEVICES", "cpu:2"), ("WARPTAPE__SCHEDULER__BATCH_ROWS_MAX", "700")];

/// Creates a log with a recorded run.
fn recorded(path: &Path) {
    let feed = ["feed", "synth", "--symbols", "20", "--ticks", "20000"];
    texts(&warptape(path, &[&feed[..], &LOG].concat()), 0);
    let mut run = Running::start_with(path, &[&["run"][..], &LOG].concat(), &SETTINGS);
    let log = SqliteLog::open_existing(path.join("w.db")).expect("the log of the feed");
    run_until_drained(&mut run, &log, "warptape");
    run.stop("TERM");
}

/// Starts the command in a terminal.
fn debug(tmux: &Tmux<'_>, arguments: &str) {
    tmux.start_command(&format!("\"$WARPTAPE\" replay debug {arguments} --log sqlite:w.db"));
}

#[test]
fn a_journal_is_stepped_through_in_a_terminal() {
    let folder = folder();
    let path = folder.path();
    recorded(path);
    let tmux = Tmux::start(path);

    debug(&tmux, "");
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
    tmux.await_screen(&["c searches for it", "c searches for: decision=Dispatch && lane=cpu:1"]);
    tmux.press(&["c"]);
    let broken = tmux.await_screen(&["Dispatch: batch ", "c searches for: decision=Dispatch"]);
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

    debug(&tmux, "--at 1 --break 'input=Arrived'");
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
    debug(&tmux, "");
    tmux.await_screen(&["sequence 0 "]);
    tmux.signal("TERM");
    tmux.await_end(0);
    debug(&tmux, "");
    tmux.await_screen(&["sequence 0 "]);
    tmux.close();
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
    // The first entry is also counted.
    let third = sequences[2].to_string();
    let out = debug(&["--at", &third, "--break", condition, "-o", "table", "--count", "1"]);
    assert!(
        out.trim_start().starts_with(&format!("{third}  20")) && out.contains("\n    Dispatch: batch"),
        "{out}"
    );
    let none = [&["replay", "debug", "--break", "lane=7", "-o", "json"][..], &LOG].concat();
    let (out, error) = texts(&warptape(path, &none), 0);
    assert!(out.is_empty() && error.contains("holds for none of the entries 0 to "), "{out}{error}");
    assert_eq!(debug(&["-o", "json", "--count", "3"]).lines().count(), 3);

    let refused = |arguments: &[&str], expected: &str| {
        let (_, error) =
            texts(&warptape_with(path, &[&["replay", "debug"], arguments, &LOG].concat(), &[]), 2);
        assert!(error.contains(expected), "{expected:?} is missing in {error}");
    };
    refused(&[], "Give `-o table` or `-o json`");
    for at in ["99999999", "offset:99999999", "2100-01-01T00:00:00Z"] {
        refused(&["--at", at, "-o", "table"], "partition 0 has the sequences 0 to ");
    }
    let nowhere = warptape(path, &["replay", "debug", "--log", "nowhere.db"]);
    assert!(texts(&nowhere, 2).1.contains("nowhere.db: no such file"), "the log comes before the terminal");
    refused(&["--break", "lane=1 & queue>5"], "character 8: a single & has no meaning: write &&");
    refused(&["--at", "yesterday", "-o", "json"], "is no bound; give a time such as");
    refused(&["-o", "json", "--partition", "7"], "no entries of a process with the ordinal 7");
}
