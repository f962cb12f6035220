//! What docs/start.md and README.md tell newcomers to type works as it stands, on a real Kafka broker where they name one.

use std::path::Path;
use std::process::{Command, Stdio};

use super::kafka_clients::given;
use super::processes::{WARPTAPE, folder, texts};

/// The address that pages give to a broker on the reader's machine.
const BROKER: &str = "kafka:localhost:9092";

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    std::fs::read_to_string(path).expect("a page of the workspace")
}

/// The blocks of commands of a page.
fn blocks(page: &str) -> Vec<&str> {
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
    let path = format!(
        "{}:{}",
        Path::new(WARPTAPE).parent().expect("a folder").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let (mut said, mut run) = (String::new(), 0);
    for block in blocks(&page) {
        // The test's own broker stands in for the container's.
        if block.starts_with("docker ") {
            continue;
        }
        // What is left running is ended as by Ctrl-C, behind the commands of the second terminal.
        let end = if block.contains(" &\n") { "kill -INT $!\nwait $!\n" } else { "" };
        let script = format!("set -e\n{}{end}", block.replace(BROKER, &format!("kafka:{broker}")));
        let output = Command::new("sh")
            .args(["-c", &script])
            .current_dir(folder.path())
            .env_clear()
            .env("PATH", &path)
            .env("WARPTAPE__TOPICS__PREFIX", &prefix)
            .env("WARPTAPE__ENGINE__GROUP", format!("{prefix}group"))
            .stdin(Stdio::null())
            .output();
        said += &texts(&output.expect("a shell"), 0).0;
        run += block.lines().filter(|line| line.starts_with("warptape ")).count();
    }
    assert!(run > 12, "{run} commands");
    // Six bars in each log: four of a second, one of a minute, one of five.
    assert_eq!(
        said.lines().filter(|line| line.ends_with(" decisions, 6 signals: identical")).count(),
        2,
        "{said}"
    );
    assert_eq!(said.matches(r#""symbol":"MINE:ACME""#).count(), 6, "{said}");
    assert!(said.contains("caused by tick 0 of the record"), "{said}");
    assert!(
        std::fs::read_to_string(folder.path().join("run.html")).is_ok_and(|html| html.contains("MINE:ACME"))
    );
}

#[test]
fn commands_of_the_readme_are_those_of_the_start_page() {
    let (readme, start) = (page("README.md"), page("docs/start.md"));
    let commands: Vec<&str> = blocks(&readme)
        .into_iter()
        .flat_map(str::lines)
        .filter(|line| line.starts_with("warptape "))
        .collect();
    assert!(commands.len() >= 3, "{commands:?}");
    let others: Vec<_> = commands.into_iter().filter(|command| !start.contains(command)).collect();
    assert!(
        others.is_empty(),
        "README.md has commands that docs/start.md, which is tested, does not: {others:?}"
    );
}
