//! Anybody may publish records: no text in them becomes markup of the page, or acts on a display.

use std::sync::Arc;

use warptape_replay::chain::Seen;
use warptape_replay::history::{Item, LaneChange, Life, Moment, Window};
use warptape_report::{Gathered, Gathering, Verdict};
use warptape_schemas::journal::{LaneSpec, Started};

use crate::recording::{Plan, record, scheduler_config};
use crate::{gathered, page_of, parsed, text_of};

const HOSTILE: &str = "</title></style><script>alert(1)</script><img src=x onerror='a()'>\"&amp;]]>--><!--\u{1b}[2J\u{202e}\u{0}\u{200b}";

fn at(sequence: i64, at_ns: i64) -> Moment {
    Moment { sequence, at_ns }
}

fn hostile() -> Gathered {
    let recording = record(Plan { outcomes: true, ..Plan::small(81) });
    let mut slowest = gathered(&recording.log, Window::default()).slowest;
    for slow in &mut slowest.signals {
        slow.chain.signal.symbol = HOSTILE.to_owned();
    }
    let mut gathering = Gathering::new(Window::default());
    let started = Started {
        node: HOSTILE.to_owned(),
        software: HOSTILE.to_owned(),
        stage_config: String::new(),
        scheduler: warptape_schemas::journal::SchedulerConfig {
            placement_policy: HOSTILE.to_owned(),
            ..scheduler_config()
        },
        lanes: vec![LaneSpec::new(0, HOSTILE, 1)],
        autoscale: None,
        shadow: None,
        rules: 1,
    };
    let life = Life { journal: 0, began: Some(at(0, 5)), since: at(0, 5), started };
    let lost = LaneChange { at: at(1, 7), lane: 0, lost: Some(HOSTILE.to_owned()) };
    for item in [Item::Life(Arc::new(life)), Item::Lane(lost)] {
        gathering.see(Seen::Item(&item));
    }
    gathering.finish(slowest)
}

#[test]
fn no_text_of_records_becomes_part_of_the_page() {
    let found = hostile();
    let chains = vec![HOSTILE.to_owned(); 5];
    let page = page_of(&found, &Verdict::Failed(HOSTILE.to_owned()), &chains, HOSTILE);
    let document = parsed(&page);
    let count = |tag: &str| document.descendants().filter(|node| node.has_tag_name(tag)).count();
    assert_eq!((count("script"), count("img"), count("title") > 0, count("style")), (0, 0, true, 1));
    for obeyed in ['\u{1b}', '\u{202e}', '\u{0}', '\u{200b}'] {
        assert!(!page.contains(obeyed), "{obeyed:?}");
    }
    let text = text_of(document.root());
    let shown = HOSTILE
        .replace('\u{1b}', "\\u001b")
        .replace('\u{202e}', "\\u202e")
        .replace('\u{0}', "\\u0000")
        .replace('\u{200b}', "\\u200b");
    assert!(text.matches(&shown).count() > 10, "it is shown as it is: {shown}");
}

/// Clocks may have any value: the page makes sense for all times.
#[test]
fn odd_times_are_a_page() {
    for times in [[i64::MIN, i64::MAX], [0, 0], [i64::MAX, i64::MIN], [-5, 7]] {
        let mut gathering = Gathering::new(Window::default());
        for (sequence, at_ns) in (0..).zip(times) {
            let lost = LaneChange { at: at(sequence, at_ns), lane: 3, lost: Some("x".to_owned()) };
            gathering.see(Seen::Item(&Item::Lane(lost)));
            gathering.see(Seen::Signal { partition: 0, committed_ns: at_ns, latency_ns: Some(at_ns) });
        }
        let found = gathering.finish(Default::default());
        assert_eq!((found.totals.lanes_lost, found.latency.count()), (2, 2));
        page_of(&found, &Verdict::NotAsked, &[], "log");
    }
}
