//! Autoscaling of a running process. The metrics show the wanted number of lanes, the journal also the reasons, and
//! another process verifies the run.

use std::path::Path;
use std::time::Instant;

use warptape_eventlog::{Durability, SqliteLog};
use warptape_schemas::decode_journal_entry;
use warptape_schemas::journal::{Decision, Scale};

use super::endpoint::{scrape, url_of};
use super::outputs::records;
use super::processes::{DEADLINE, Running, folder, texts, warptape, warptape_with};

const LOG: [&str; 2] = ["--log", "sqlite:w.db"];
/// Settings: windows last a second. The target utilisation is a hundredth, so that few ticks need many lanes.
const SETTINGS: [(&str, &str); 7] = [
    ("WARPTAPE__AUTOSCALE__POLICY", "reactive"),
    ("WARPTAPE__AUTOSCALE__WINDOW_S", "1"),
    ("WARPTAPE__AUTOSCALE__UTILIZATION_PERCENT", "1"),
    ("WARPTAPE__AUTOSCALE__HYSTERESIS_PERCENT", "0"),
    ("WARPTAPE__AUTOSCALE__HOLD_WINDOWS", "0"),
    ("WARPTAPE__ENGINE__DEVICES", "cpu:1"),
    ("WARPTAPE__ENGINE__CHECKPOINT_INTERVAL_S", "1"),
];

fn wait_for(url: &str, what: &str, is_right: impl Fn(f64) -> bool) {
    let since = Instant::now();
    loop {
        let found = scrape(url).get("warptape_lanes_wanted").copied();
        if found.is_some_and(&is_right) {
            return;
        }
        assert!(since.elapsed() < DEADLINE, "{what}: {found:?} lanes are wanted");
    }
}

#[test]
fn lanes_are_wanted_while_there_is_load_and_the_run_is_verified() {
    let folder = folder();
    let folder = folder.path();
    let feed =
        ["feed", "synth", "--symbols", "100", "--ticks", "1000000000", "--batch", "100", "--rate", "200000"];
    let feed = Running::start(folder, &[&feed[..], &LOG].concat());
    let mut run =
        Running::start_with(folder, &[&["run", "--listen", "127.0.0.1:0"][..], &LOG].concat(), &SETTINGS);
    let url = url_of(&mut run);
    wait_for(&url, "under load", |lanes| lanes > 1.0);
    feed.stop("TERM");
    wait_for(&url, "without load", |lanes| lanes == 1.0);
    run.stop("TERM");

    let log = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a log");
    let entries = records(&log, "journal", 0);
    let entries: Vec<_> =
        entries.iter().map(|record| decode_journal_entry(&record.value).expect("an entry")).collect();
    let scale = |decision: &Decision| if let Decision::Scale(scale) = decision { Some(*scale) } else { None };
    let scales: Vec<Scale> = entries.iter().flat_map(|entry| &entry.decisions).filter_map(scale).collect();
    let wishes = entries.iter().filter(|entry| entry.decisions.iter().any(|one| scale(one).is_some()));
    let sequences: Vec<i64> = wishes.map(|entry| entry.sequence).collect();
    let follows = |pair: &[Scale]| pair[0].lanes == pair[1].lanes_before && pair[0].lanes != pair[1].lanes;
    assert!(scales[0].lanes_before == 1 && scales.windows(2).all(follows), "{scales:?}");
    assert!(scales.iter().any(|scale| scale.lanes > 1 && scale.load_e6 > 10_000), "{scales:?}");
    assert_eq!(scales.last().expect("there are some").lanes, 1);
    let told = texts(
        &warptape(folder, &[&["tail", "journal", "--from-beginning", "--exit-at-end"][..], &LOG].concat()),
        0,
    )
    .0;
    assert!(told.contains("lanes are wanted instead of 1: "), "{told}");
    check_why(folder, scales[1], &sequences);
    let verified = texts(&warptape(folder, &[&["replay", "verify", "--outputs"][..], &LOG].concat()), 0).0;
    assert!(verified.contains("identical"), "{verified}");
}

/// Checks the explanation of the second wish: its measured values, the changes that would have led to another wish, and
/// the first wish.
fn check_why(folder: &Path, scale: Scale, sequences: &[i64]) {
    let sequence = sequences[1].to_string();
    let why = |more: &[&str]| {
        texts(&warptape(folder, &[&["replay", "why", &sequence][..], more, &LOG].concat()), 0).0
    };
    let told = why(&[]);
    assert!(
        told.contains(&format!("the previous decision on the same subject, in entry {} at ", sequences[0])),
        "{told}"
    );
    let line = |name: &str| {
        let found = told.lines().find(|line| line.split_whitespace().next() == Some(name));
        let found = found.unwrap_or_else(|| panic!("no {name}: {told}"));
        found.split_whitespace().skip(1).map(|text| text.parse().expect("a number")).collect::<Vec<i64>>()
    };
    assert_eq!(line("load_e6"), [scale.load_e6]);
    assert_eq!(line("utilization_percent"), [scale.utilization_percent, 1]);
    assert_eq!(line("lanes_wanted")[0], i64::from(scale.lanes));
    assert!(told.contains("with load_e6 at least ") || told.contains("with load_e6 below "), "{told}");
    let json: serde_json::Value = serde_json::from_str(&why(&["-o", "json"])).expect("JSON");
    let mut explained = json["explanations"].as_array().expect("explanations").iter();
    let explained = explained.find(|one| one["decision"].get("Scale").is_some()).expect("the wish");
    assert_eq!(explained["before"]["decided"]["at"]["sequence"], sequences[0]);
    assert_eq!(explained["otherwise"][0]["With"]["name"], "load_e6", "{explained}");
}

#[test]
fn settings_that_contradict_each_other_are_named() {
    let folder = folder();
    let settings = [("WARPTAPE__AUTOSCALE__POLICY", "reactive"), ("WARPTAPE__AUTOSCALE__LANES_MIN", "65")];
    let check = warptape_with(folder.path(), &["config", "check"], &settings);
    let said = texts(&check, 1).0;
    assert!(
        said.contains("autoscale.lanes_min") && said.contains("it must be up to lanes_max (64)"),
        "{said}"
    );
}
