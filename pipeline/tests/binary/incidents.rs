//! Recorded incidents, and the answers that an engineer gets who looks for the cause. Files list commands with their
//! expected answers, which are compared with the commands' output.
//!
//! `WRITE_GOLDEN=1` updates the answers; the commands stay.

use std::fs;
use std::path::{Path, PathBuf};

use warptape_replay::fixture::assert_verified;

use super::processes::{folder, texts, warptape};

fn incidents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/incidents")
}

/// Text at the start of a line with a command.
const PROMPT: &str = "$ warptape ";

#[track_caller]
fn check(name: &str, causes: &[&str]) {
    let folder = folder();
    // Opening a log creates files beside it, so a copy is used.
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

/// Returns the report page of an incident.
fn report(name: &str, window: &[&str]) -> String {
    let folder = folder();
    fs::copy(incidents().join(format!("{name}.db")), folder.path().join("incident.db"))
        .expect("the recording");
    let report = ["replay", "report", "--to", "incident.html", "--log", "sqlite:incident.db"];
    texts(&warptape(folder.path(), &[&report, window].concat()), 0);
    fs::read_to_string(folder.path().join("incident.html")).expect("the page")
}

#[test]
fn a_hot_symbol_is_found() {
    let found = report("hot-symbol", &[]);
    // The group has a quarter of all rows of the run.
    let greatest = "<td>1/1</td><td>1,025</td><td>25 %</td><td>45 %</td>";
    assert!(found.contains(greatest), "the page does not say when group 1/1 had how much of all rows");
    let causes = [
        "lane 1 (cpu:1)    472.130",
        "behind earlier batches of the lane",
        "        1      1      1    54  376 to 388  2026-11-28T08:39:15.979584Z  SYNTH:AAAA 53",
    ];
    check("hot-symbol", &causes);
}

#[test]
fn a_throttled_device_is_found() {
    let causes = [
        "because of lane 1 (cuda:1)",
        "clock 210 MHz, lowered by hardware_thermal_slowdown",
        "ms_per_row",
        "its device is at 89 °C, its limit is 90 °C",
    ];
    check("throttled-device", &causes);

    // The page of the whole run lists this among its events. The page of a later window lists it as in force at the
    // window's beginning.
    let heat = "counts with 25 % of its weight: its device is at 89 °C";
    let page = report("throttled-device", &[]);
    assert!(page.contains(heat) && page.contains("was told to end") && !page.contains("In force at"));
    let later = report("throttled-device", &["--since", "2026-11-28T08:39:22Z"]);
    let standing = later
        .split("In force at the beginning of the window")
        .nth(1)
        .and_then(|rest| rest.split("In the window").next());
    let standing = standing.expect("something was in force");
    assert!(standing.contains(heat) && standing.contains("was told to end"), "{standing}");
}

#[test]
fn bad_weights_are_found() {
    check("bad-weights", &["because of lane 2 (cpu:2)", "weight"]);
}
