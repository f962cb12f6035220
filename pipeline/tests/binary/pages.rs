//! The commands in the pages of docs/ must work as written, in their order. Another test covers the start page.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::processes::{Running, WARPTAPE, folder, texts, warptape};
use super::start_page::{blocks, of_workspace, page};

/// Parts of commands that are skipped.
const SKIPPED: [&str; 25] = [
    // These need a broker, a Redis server or an endpoint at a fixed port.
    "kafka:",
    "redis",
    "http://",
    "127.0.0.1:9464",
    "warptape top",
    "localhost:",
    "warptape ready",
    // These need a GPU.
    "DEVICES=cuda",
    // These need a secret or recordings of the reader.
    "/run/secrets",
    "spot.jsonl",
    "BTCUSDT-",
    "trades.dbn",
    // These need a venue.
    "-live --symbols",
    // This needs a request that waits.
    "warptape risk cancel",
    // These run for minutes.
    "warptape train",
    "--seeds 20",
    // This reads requests from a program.
    "warptape mcp",
    // These install something, or need programs that the project does not need.
    "docker ",
    "helm ",
    "cargo ",
    "pip install",
    "useradd ",
    "install -",
    "systemctl ",
    "b3sum ",
];

/// Pages whose commands are not tested here. Lab notes only record what was measured, and the start page has its own
/// test.
const NOT_HERE: [&str; 2] = ["scheduling-results.md", "start.md"];

/// Makes a test of each page. It states how many `warptape` commands run, and how many commands are skipped.
macro_rules! pages {
    ($($test:ident: $page:literal, $run:literal run, $skipped:literal skipped;)*) => {
        /// The pages that are tested here.
        const PAGES: &[&str] = &[$($page),*];

        $(#[test]
        fn $test() {
            check($page, $run, $skipped);
        })*
    };
}

pages! {
    anchors: "anchors.md", 4 run, 0 skipped;
    commands: "commands.md", 23 run, 17 skipped;
    configuration: "configuration.md", 5 run, 1 skipped;
    control: "control.md", 11 run, 0 skipped;
    debugger: "debugger.md", 1 run, 3 skipped;
    export: "export.md", 6 run, 1 skipped;
    formulas: "formulas.md", 0 run, 1 skipped;
    feeds: "feeds.md", 2 run, 3 skipped;
    hot_state: "hot-state.md", 0 run, 5 skipped;
    incidents: "incidents.md", 2 run, 0 skipped;
    kafka: "kafka.md", 0 run, 5 skipped;
    live_page: "live-page.md", 1 run, 1 skipped;
    logs: "logs.md", 0 run, 3 skipped;
    mcp: "mcp.md", 0 run, 1 skipped;
    metrics: "metrics.md", 0 run, 1 skipped;
    operations: "operations.md", 0 run, 12 skipped;
    python: "python.md", 1 run, 1 skipped;
    replay: "replay.md", 18 run, 1 skipped;
    report: "report.md", 4 run, 0 skipped;
    risk: "risk.md", 7 run, 1 skipped;
    scheduling: "scheduling.md", 5 run, 5 skipped;
    timeline: "timeline.md", 3 run, 0 skipped;
    top: "top.md", 0 run, 3 skipped;
}

/// A step of a page.
enum Step {
    /// Commands of a block, one per line.
    Script(String),
    /// A command that does not end, so it runs beside the following ones.
    Beside(String),
}

/// The steps of a page, and the numbers of `warptape` commands that run and of commands that are skipped.
#[derive(Default)]
struct Plan {
    steps: Vec<Step>,
    run: usize,
    skipped: usize,
}

/// True if a test cannot run the command. For example, the debugger without `-o` needs a terminal.
fn is_skipped(command: &str) -> bool {
    let is_debugger = command.contains("warptape replay debug") && !command.contains(" -o ");
    is_debugger || SKIPPED.iter().any(|part| command.contains(part))
}

/// True if the command ends only at Ctrl-C.
fn is_endless(command: &str) -> bool {
    let is_without =
        |name: &str, ends: &[&str]| command.contains(name) && !ends.iter().any(|end| command.contains(end));
    is_without("warptape run", &["--until-caught-up"])
        || is_without("warptape tail", &["--exit-at-end"])
        || is_without("warptape demo", &["--seconds", "--ticks"])
}

fn plan(page: &str) -> Plan {
    let mut plan = Plan::default();
    for block in blocks(page) {
        let mut script = String::new();
        for line in block.replace("\\\n", " ").lines() {
            let command = line.split(" #").next().unwrap_or_default().trim_end();
            if command.is_empty() || command.starts_with('#') {
                continue;
            }
            if is_skipped(command) {
                plan.skipped += 1;
                continue;
            }
            plan.run += usize::from(command.contains("warptape "));
            if is_endless(command) {
                plan.steps.push(Step::Script(std::mem::take(&mut script)));
                plan.steps.push(Step::Beside(command.to_owned()));
                continue;
            }
            script += command;
            // Exit status 1 means that the two runs differ, which is expected.
            script += if command.contains("warptape replay diff") { " || [ $? -eq 1 ]\n" } else { "\n" };
        }
        plan.steps.push(Step::Script(script));
    }
    plan
}

/// Returns a folder with everything that the page's commands need: files of the repository, and the log of earlier
/// pages.
fn prepared(page: &str) -> TempDir {
    const INCIDENTS: &str = "tests/fixtures/incidents";
    let folder = folder();
    let path = folder.path();
    symlink(of_workspace("examples"), path.join("examples")).expect("a link");
    if page.contains(INCIDENTS) {
        fs::create_dir_all(path.join(INCIDENTS)).expect("a folder");
        let incident = "tests/fixtures/incidents/throttled-device.db";
        fs::copy(of_workspace(incident), path.join(incident)).expect("a copy");
    }
    if let Some((_, block)) = page.split_once("```toml\n# warptape.toml\n") {
        let (settings, _) = block.split_once("```").expect("the end of a block");
        fs::write(path.join("warptape.toml"), settings).expect("a file");
    }
    let is_feed = |line: &str| line.contains("warptape feed") && line.contains("sqlite:market.db");
    if page.contains("sqlite:market.db") && !page.lines().any(is_feed) {
        let log = ["--log", "sqlite:market.db"];
        let feed = ["feed", "synth", "--symbols", "500", "--ticks", "500000", "--seed", "7"];
        for command in [&feed[..], &["run", "--until-caught-up"]] {
            texts(&warptape(path, &[command, &log].concat()), 0);
        }
    }
    folder
}

/// Starts a command that runs beside others. Environment variables may precede its name.
fn start(folder: &Path, command: &str, environment: &[(&str, &str)]) -> Running {
    let words: Vec<&str> = command.split_whitespace().collect();
    let name = words.iter().position(|word| *word == "warptape").expect("a command of warptape");
    let variables = words[..name].iter().filter_map(|word| word.split_once('='));
    let environment: Vec<(&str, &str)> = environment.iter().copied().chain(variables).collect();
    Running::start_with(folder, &words[name + 1..], &environment)
}

/// Runs the commands of a page.
#[track_caller]
fn check(name: &str, run: usize, skipped: usize) {
    let page = page(&format!("docs/{name}"));
    let plan = plan(&page);
    assert_eq!((plan.run, plan.skipped), (run, skipped), "docs/{name}: commands run, and commands skipped");
    if run == 0 {
        return;
    }
    let folder = prepared(&page);
    let binaries = Path::new(WARPTAPE).parent().expect("a folder").display();
    let path = format!("{binaries}:{}", std::env::var("PATH").unwrap_or_default());
    let temporary = folder.path().display().to_string();
    let environment = [("PATH", &*path), ("TMPDIR", &*temporary)];
    let mut beside: Option<Running> = None;
    for step in plan.steps {
        match step {
            Step::Script(script) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", &format!("set -e\n{script}")]).current_dir(folder.path());
                shell.env_clear().envs(environment).stdin(Stdio::null());
                texts(&shell.output().expect("a shell"), 0);
            }
            Step::Beside(command) => {
                if let Some(running) = beside.take() {
                    running.stop("INT");
                }
                beside = Some(start(folder.path(), &command, &environment));
            }
        }
    }
    if let Some(running) = beside {
        running.stop("INT");
    }
}

#[test]
fn every_page_with_commands_is_tested() {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(of_workspace("docs")).expect("the pages") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name in UTF-8");
        if !name.ends_with(".md") {
            continue;
        }
        let text = page(&format!("docs/{name}"));
        assert!(!text.contains("```console"), "docs/{name}: blocks of commands begin with ```sh");
        if text.contains("```sh\n") {
            found.insert(name);
        }
    }
    let tested: BTreeSet<String> = PAGES.iter().chain(&NOT_HERE).map(|name| (*name).to_owned()).collect();
    assert_eq!(found, tested);
}
