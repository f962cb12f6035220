//! Pages of recorded runs: they are well formed, agree with the journal, and stay small for any recording.

mod hostile;
mod pages;
#[path = "../../../tests/verify/recording.rs"]
mod recording;
#[path = "../../../tests/verify/scheduled.rs"]
mod scheduled;
mod sizes;

use roxmltree::{Document, Node, ParsingOptions};
use warptape_eventlog::EventLog;
use warptape_replay::chain::{SlowestOptions, Step};
use warptape_replay::history::Window;
use warptape_report::{About, Gathered, Page, Verdict, gather, html};

fn gathered(log: &dyn EventLog, window: Window) -> Gathered {
    gather(log, &recording::options(), SlowestOptions { count: 5, window, partition: None }, &mut |_| {})
        .unwrap()
}

fn about(text: &str) -> About {
    About {
        log: text.to_owned(),
        topics: vec![("journal", text.to_owned())],
        asked: Some(text.to_owned()),
        command: text.to_owned(),
        log_arguments: text.to_owned(),
        made_ns: 1_795_489_200_000_000_000,
        software: text.to_owned(),
    }
}

fn cause(_: Step) -> &'static str {
    "in the queue of its group"
}

/// Returns the page of gathered items, after checking that it is well formed and contains no NaN.
fn page_of(gathered: &Gathered, verdict: &Verdict, chains: &[String], text: &str) -> String {
    let about = about(text);
    let page = html(&Page { about: &about, verdict, gathered, chains, cause });
    let document = parsed(&page);
    for node in document.descendants() {
        let texts = node.attributes().map(|attribute| attribute.value()).chain(node.text());
        for said in texts {
            assert!(!said.contains("NaN") && !said.contains("inf"), "{said:?}");
        }
    }
    page
}

fn parsed(page: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(page, options).expect("the page is well formed")
}

/// Returns all text in a node.
fn text_of(node: Node<'_, '_>) -> String {
    node.descendants().filter(Node::is_text).filter_map(|node| node.text()).collect()
}

/// Returns the number in the tile with a name, and the text below it.
fn tile(document: &Document<'_>, name: &str) -> (String, String) {
    let of_class = |node: Node<'_, '_>, class: &str| {
        let found = node.children().find(|child| child.attribute("class") == Some(class));
        text_of(found.expect("a tile has three texts"))
    };
    let is_tile =
        |node: &Node<'_, '_>| node.attribute("class").is_some_and(|class| class.starts_with("tile "));
    let found = document.descendants().filter(is_tile).find(|node| of_class(*node, "label") == name);
    let found = found.unwrap_or_else(|| panic!("no tile {name:?}"));
    (of_class(found, "value"), of_class(found, "sub"))
}
