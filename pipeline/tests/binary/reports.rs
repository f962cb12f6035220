//! Reports: one page about a run that browsers show correctly. Reports are never overwritten, and they show differences
//! of the run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::kafka_clients::given;
use super::processes::{is_long, recorded, texts, warptape};

const CONFIGURATION: &str = "\
[engine]
devices = [\"cpu:2\"]
commit_interval_ms = 20
poll_records_max = 8
[stages]
bars = [\"1s\", \"tick:20\"]
groups_per_partition = 6
[scheduler]
placement_policy = \"balanced\"
balance_interval_ms = 100
[topics]
partitions = 2
[autoscale]
policy = \"reactive\"
window_s = 1
";

fn run_in(folder: &Path, arguments: &[&str]) -> Output {
    let rest = ["-c", "warptape.toml", "--log", "sqlite:market.db"];
    warptape(folder, &[arguments, &rest].concat())
}

fn report(folder: &Path, arguments: &[&str], code: i32) -> (String, String) {
    texts(&run_in(folder, &[&["replay", "report"], arguments].concat()), code)
}

#[test]
fn a_report_is_a_page_of_the_run() {
    let here = recorded(CONFIGURATION);
    let (out, _) = report(here.path(), &["--to", "run.html", "--outputs"], 0);
    assert!(out.starts_with("report written to run.html: ") && out.contains("signals: identical"), "{out}");
    let page = fs::read_to_string(here.path().join("run.html")).expect("the page");
    let (slowest, _) = texts(&run_in(here.path(), &["replay", "slowest", "1", "-o", "json"]), 0);
    let slowest: serde_json::Value = serde_json::from_str(&slowest).expect("JSON");
    let chain = &slowest["signals"][0]["chain"];
    let signal = format!("signal:{}:{}", chain["signal"]["partition"], chain["signal"]["offset"]);
    for expected in [
        "Verified: journal and outputs are identical",
        "2 lives",
        &format!("warptape replay why {signal} --log sqlite:market.db"),
        "why on lane",
        "Lanes wanted",
        "warptape replay report --to run.html --outputs",
    ] {
        assert!(page.contains(expected), "{expected:?}");
    }
    // Existing files are not overwritten, and no unfinished file is left.
    let (_, error) = report(here.path(), &["--to", "run.html"], 2);
    assert!(error.contains("exists, and existing files are never overwritten"), "{error}");
    assert_eq!(fs::read_to_string(here.path().join("run.html")).expect("the page"), page);
    assert!(!here.path().join("run.html-unfinished").exists());

    // The page is limited to a window, and omits what was not requested.
    let window = [
        "--to",
        "window.html",
        "--since",
        "sequence:20",
        "--until",
        "sequence:40",
        "--no-verify",
        "--slowest",
        "0",
    ];
    let (out, _) = report(here.path(), &window, 0);
    assert!(out.contains("the run was not verified"), "{out}");
    let window = fs::read_to_string(here.path().join("window.html")).expect("the page");
    assert!(window.contains("Not verified") && window.contains("since entry 20, until entry 40"), "{window}");
    for (arguments, expected) in [
        (["--to", "x.html", "--slowest", "51"], "51 is not in 0..=50"),
        (["--to", "x.html", "--since", "yesterday"], "no bound; give a time such as"),
        (["--to", "no/x.html", "--slowest", "1"], "cannot be written"),
    ] {
        let code = if expected == "cannot be written" { 1 } else { 2 };
        let (_, error) = report(here.path(), &arguments, code);
        assert!(error.contains(expected), "{error}");
    }
    if is_long() {
        look_at(&here.path().join("run.html"));
    }
}

/// Checks the page in Chromium at two widths, in light and dark mode. Nothing may be cut off, too small, too pale, or
/// loaded from another site.
fn look_at(page: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/binary/report_in_browser.py");
    let mut python = Command::new(given("WARPTAPE_TEST_PYTHON"));
    python.arg(script).arg(page).stdin(Stdio::null());
    if let Some(pictures) = std::env::var_os("WARPTAPE_TEST_SCREENSHOTS") {
        fs::create_dir_all(&pictures).expect("a folder for pictures");
        python.arg(PathBuf::from(pictures));
    }
    let (out, _) = texts(&python.output().expect("Python starts"), 0);
    let seen: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    for width in [1280, 390] {
        let one = &seen[format!("{width}-dark")];
        let (texts, drawings) = (one["texts"].as_u64(), one["drawings"].as_u64());
        assert!(texts > Some(100) && drawings > Some(10), "{seen}");
    }
}
