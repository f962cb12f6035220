//! The commands in docs/start.md and README.md must work unchanged. If they name a Kafka broker, a real one is used.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::kafka_clients::given;
use super::processes::{Running, WARPTAPE, folder, texts};

/// Address that the pages use for a broker on the reader's machine.
const BROKER: &str = "kafka:localhost:9092";

/// Returns the path of a file or folder of the workspace.
pub fn of_workspace(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

pub fn page(name: &str) -> String {
    std::fs::read_to_string(of_workspace(name)).expect("a page of the workspace")
}

/// Returns the command blocks of a page.
pub fn blocks(page: &str) -> Vec<&str> {
    page.split("```sh\n")
        .skip(1)
        .map(|behind| behind.split_once("```").expect("the end of a block").0)
        .collect()
}

#[test]
fn commands_of_the_start_page_work_in_their_order() {
    let (folder, page) = (folder(), page("docs/start.md"));
    let broker = given("WARPTAPE_TEST_KAFKA");
    let prefix = format!("start-{}.", warptape_pipeline::clock::wall_clock_ns());
    let binaries = Path::new(WARPTAPE).parent().expect("a folder").display();
    let path = format!("{binaries}:{}", std::env::var("PATH").unwrap_or_default());
    let group = format!("{prefix}group");
    let environment =
        [("PATH", &*path), ("WARPTAPE__TOPICS__PREFIX", &prefix), ("WARPTAPE__ENGINE__GROUP", &group)];
    let (mut said, mut run, mut left_running) = (String::new(), 0, None);
    for block in blocks(&page) {
        // The test's own broker replaces the container.
        if block.starts_with("docker ") {
            continue;
        }
        run += block.lines().filter(|line| line.starts_with("warptape ")).count();
        if let Some(arguments) = block.strip_prefix("warptape run ").filter(|rest| !rest.contains("--until"))
        {
            let arguments: Vec<&str> = ["run"].into_iter().chain(arguments.split_whitespace()).collect();
            left_running = Some(Running::start_with(folder.path(), &arguments, &environment));
            continue;
        }
        let script = format!("set -e\n{}", block.replace(BROKER, &format!("kafka:{broker}")));
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(folder.path()).env_clear().envs(environment);
        said += &texts(&shell.stdin(Stdio::null()).output().expect("a shell"), 0).0;
        // The commands of the second terminal are done, so Ctrl-C ends the command in the first one.
        if let Some(running) = left_running.take() {
            running.stop("INT");
        }
    }
    assert!(run > 12, "{run} commands");
    // Each log has six bars: four of a second, one of a minute, one of five minutes.
    assert_eq!(
        said.lines().filter(|line| line.ends_with(" decisions, 6 signals: identical")).count(),
        2,
        "{said}"
    );
    assert_eq!(said.matches(r#""symbol":"MINE:ACME""#).count(), 6, "{said}");
    assert!(said.contains("caused by tick 0 of the record"), "{said}");
    let report = std::fs::read_to_string(folder.path().join("run.html")).expect("the report");
    // The number of signals in the report is not checked: it depends on the times that the journal of such a short run
    // has.
    assert!(report.contains("Run report: sqlite:mine.db") && report.contains("</svg>"), "{report}");
}

/// Each README command with output must occur on the start page, in `tests/newcomer.sh`, or among those for a build
/// with all features.
#[test]
fn commands_of_the_readme_are_tested() {
    let (readme, start) = (page("README.md"), page("docs/start.md"));
    let of_others = [
        "cargo run --release -- demo --ticks 2000000 --data warptape-demo",
        "warptape replay verify --outputs --log sqlite:warptape-demo/demo.db",
        "warptape replay what-if --slow cpu:1=2x --log sqlite:market.db",
    ];
    let shown = readme.lines().filter_map(|line| line.strip_prefix("$ "));
    let listed =
        blocks(&readme).into_iter().flat_map(str::lines).filter(|line| line.starts_with("warptape "));
    let commands: Vec<&str> = shown.chain(listed).collect();
    assert!(commands.len() >= 8, "{commands:?}");
    let is_tested = |command: &&str| start.contains(*command) || of_others.contains(command);
    let untested: Vec<_> = commands.into_iter().filter(|command| !is_tested(command)).collect();
    assert!(
        untested.is_empty(),
        "README.md has commands that docs/start.md, which is tested, does not: {untested:?}"
    );
}
