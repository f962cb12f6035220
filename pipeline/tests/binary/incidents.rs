//! Recorded incidents, and what an engineer is told who looks for the cause. Each file of commands and answers is held against the commands.
//!
//! `WRITE_GOLDEN=1` writes the answers down; the commands stay.

use std::fs;
use std::path::{Path, PathBuf};

use warptape_replay::fixture::assert_verified;

use super::processes::{folder, texts, warptape};

fn incidents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/incidents")
}

/// A line of a file that is a command.
const PROMPT: &str = "$ warptape ";

#[track_caller]
fn check(name: &str, causes: &[&str]) {
    let folder = folder();
    // Who opens a log leaves files beside it.
    let copy = folder.path().join("incident.db");
    fs::copy(incidents().join(format!("{name}.db")), &copy).expect("the recording");
    assert_verified(&copy);

    let golden = incidents().join(format!("{name}.txt"));
    let expected = fs::read_to_string(&golden).expect("its commands");
    let mut found = String::new();
    for command in expected.lines().filter_map(|line| line.strip_prefix(PROMPT)) {
        let words: Vec<&str> = command.split(' ').chain(["--log", "sqlite:incident.db"]).collect();
        let (said, _) = texts(&warptape(folder.path(), &words), 0);
        if !found.is_empty() {
            found.push('\n');
        }
        found.push_str(&format!("{PROMPT}{command}\n{said}"));
    }
    if std::env::var_os("WRITE_GOLDEN").is_some() {
        fs::write(&golden, &found).expect("the file can be written");
    }
    let expected = fs::read_to_string(&golden).expect("its answers");
    assert!(found == expected, "{name}.txt has\n{expected}\nand this is said:\n{found}");
    for cause in causes {
        assert!(found.contains(cause), "nobody is told of {cause:?}:\n{found}");
    }
}

#[test]
fn a_hot_symbol_is_found() {
    let causes = [
        "lane 1 (cpu:1)      454.343",
        "behind other batches of the lane",
        "        1      1      1    59  354 to 366",
    ];
    check("hot-symbol", &causes);
}

#[test]
fn a_throttled_device_is_found() {
    let causes = [
        "because of lane 1 (cuda:1)",
        "clock 210 MHz, held down by hardware_thermal_slowdown",
        "ms_per_row",
        "its device has 89 °C, and throttles at 90 °C",
        "lane 1 gets no work: beside the other lanes its batches take",
    ];
    check("throttled-device", &causes);

    // The page of the run has it among its events.
    let folder = folder();
    let copy = folder.path().join("incident.db");
    fs::copy(incidents().join("throttled-device.db"), &copy).expect("the recording");
    let report = ["replay", "report", "--to", "incident.html", "--log", "sqlite:incident.db"];
    texts(&warptape(folder.path(), &report), 0);
    let page = fs::read_to_string(folder.path().join("incident.html")).expect("the page");
    assert!(
        page.contains("counts with 25 % of its weight: its device has 89 °C"),
        "the page does not say why"
    );
}

#[test]
fn bad_weights_are_found() {
    check("bad-weights", &["because of lane 2 (cpu:2)", "weight"]);
}
