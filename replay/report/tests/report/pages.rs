//! A page agrees with the journal, which these tests count independently.

use warptape_eventlog::{EventLog, SqliteLog};
use warptape_replay::chain::{Seen, Slowest};
use warptape_replay::history::{Bound, Hole, HoleCause, Item, Moment, Paused, Window};
use warptape_replay::verify;
use warptape_report::{EventKind, Gathering, ReasonKind, Verdict};
use warptape_schemas::journal::{AutoscaleConfig, Decision, Input, JournalEntry, Pause, Woke};
use warptape_schemas::{decode_journal_entry, decode_signal};

use crate::recording::{PARTITIONS, Plan, empty, options, record, records};
use crate::scheduled::Scheduled;
use crate::{gathered, page_of, parsed, text_of, tile};

fn entries(log: &dyn EventLog) -> Vec<JournalEntry> {
    records(log, "journal", 0).iter().map(|record| decode_journal_entry(&record.value).unwrap()).collect()
}

/// Counts of a journal, entry by entry.
#[derive(Debug, Default, PartialEq)]
struct Counted {
    lives: u64,
    rows: u64,
    batches: u64,
    signals: u64,
    late: u64,
    dead_letters: u64,
    committed: u64,
    busy_ns: u64,
}

fn counted(entries: &[JournalEntry]) -> Counted {
    let mut counted = Counted::default();
    for entry in entries {
        match &entry.input {
            Input::Started(_) => counted.lives += 1,
            Input::Sealed(sealed) => {
                for part in &sealed.partitions {
                    counted.signals += part.signals as u64;
                    counted.late += part.late as u64;
                    counted.dead_letters += part.dead_letters as u64;
                }
            }
            // No entry has the outcome of a life's last transaction. A drained process committed it, because its
            // entries exist.
            Input::CommitEnded(_) | Input::Draining(_) => counted.committed += 1,
            Input::Completed(completed) => counted.busy_ns += completed.service_ns as u64,
            _ => {}
        }
        for decision in &entry.decisions {
            if let Decision::Dispatch(dispatch) = decision {
                counted.batches += 1;
                counted.rows += dispatch.rows as u64;
            }
        }
    }
    counted
}

fn plan(seed: u64) -> Plan {
    Plan { outcomes: true, checkpoint: Some(5), ..Plan::small(seed) }
}

/// Computes the latencies of all signals from the entries and records alone.
fn latencies(log: &dyn EventLog, entries: &[JournalEntry]) -> Vec<i64> {
    let mut found = Vec::new();
    for partition in 0..PARTITIONS {
        let ticks = records(log, "ticks", partition);
        for record in records(log, "signals", partition) {
            let offset = decode_signal(&record.value).unwrap().source_offset;
            let has = |input: &Input| match input {
                Input::Sealed(sealed) => sealed.partitions.iter().any(|part| {
                    part.partition == partition && (part.first_offset..part.next_offset).contains(&offset)
                }),
                _ => false,
            };
            let sealed = entries.iter().find(|entry| has(&entry.input)).unwrap().sequence;
            let ended = entries.iter().find_map(|entry| match &entry.input {
                Input::CommitEnded(ended) if ended.sealed == sealed => Some(ended.ended_ns),
                _ => None,
            });
            found.extend(ended.map(|ended| ended - ticks[offset as usize].timestamp_ns));
        }
    }
    found.sort_unstable();
    found
}

#[test]
fn a_page_has_the_numbers_of_the_journal() {
    let recording = record(plan(71));
    let log = &recording.log;
    let entries = entries(log);
    let (expected, latencies) = (counted(&entries), latencies(log, &entries));
    let found = gathered(log, Window::default());
    let totals = found.totals;
    let sum = |of: &dyn Fn(&warptape_report::Slot) -> u64| found.slots.iter().flatten().map(of).sum::<u64>();
    let gathered_counts = Counted {
        lives: totals.lives,
        rows: totals.rows,
        batches: totals.batches,
        signals: totals.transactions.signals,
        late: totals.transactions.late,
        dead_letters: totals.transactions.dead_letters,
        committed: totals.transactions.committed,
        busy_ns: found.lanes.values().map(|lane| lane.busy_ns).sum(),
    };
    assert_eq!(gathered_counts, expected);
    assert!(expected.signals > 100 && expected.batches > 20 && expected.late > 0, "{expected:?}");
    // The slots add up to the same totals, each amount at its time.
    assert_eq!((sum(&|slot| slot.rows), sum(&|slot| slot.signals)), (expected.rows, expected.signals));
    assert_eq!(sum(&|slot| slot.group_rows.values().sum()), expected.rows);
    assert_eq!(sum(&|slot| slot.lanes.values().map(|lane| lane.busy_ns).sum()), expected.busy_ns);
    assert_eq!(sum(&|slot| slot.latency.count()), latencies.len() as u64);
    assert_eq!(sum(&|slot| u64::from(slot.events[EventKind::Life as usize])), expected.lives);
    assert_eq!(found.reasons.total(ReasonKind::Batch), expected.batches);
    // Latencies are exact to a thousandth.
    assert_eq!(found.latency.count(), latencies.len() as u64);
    assert_eq!(found.latency.max_ns(), latencies.last().map(|ns| *ns as u64));
    for permille in [500, 990] {
        let exact = latencies[(latencies.len() * permille as usize).div_ceil(1000) - 1] as f64;
        let found = found.latency.permille_ns(permille).unwrap() as f64;
        assert!((found - exact).abs() <= exact / 1e3, "{permille}: {found} is not {exact}");
    }

    let report = verify(log, &options(), &mut |_| {}).unwrap();
    let words = report.to_string();
    let chains: Vec<String> =
        (0..found.slowest.signals.len()).map(|index| format!("chain {index}")).collect();
    let page = page_of(&found, &Verdict::Compared(Box::new(report)), &chains, "sqlite:market.db");
    let document = parsed(&page);
    let text = text_of(document.root());
    assert_eq!(tile(&document, "Signals").0, expected.signals.to_string());
    assert_eq!(
        tile(&document, "Signals").1,
        format!("{} late ticks, {} dead letters", expected.late, expected.dead_letters)
    );
    assert_eq!(tile(&document, "Batches").0, expected.batches.to_string());
    let untimed = format!("0 aborted attempts, {} at an unknown time", expected.lives);
    assert_eq!(tile(&document, "Commits"), (expected.committed.to_string(), untimed));
    assert_eq!(tile(&document, "Lanes lost").0, "0");
    assert!(text.contains("Verified: journal and outputs are identical") && text.contains(&words), "{words}");
    assert!(text.contains("chain 4") && text.contains("warptape replay why signal:"), "{text}");
    let charts = document.descendants().filter(|node| node.attribute("class") == Some("chart")).count();
    assert_eq!(charts, 5, "latency, signals, rows, waiting, groups");
    // Nothing is loaded from elsewhere, and no script runs.
    let asks = |node: &roxmltree::Node<'_, '_>| {
        let asked =
            ["src", "href", "xlink:href", "action", "srcset"].iter().filter_map(|name| node.attribute(*name));
        asked.into_iter().any(|to| !to.starts_with('#') && !to.starts_with("data:"))
            || node.has_tag_name("script")
            || node.attributes().any(|attribute| attribute.name().starts_with("on"))
    };
    assert_eq!(document.descendants().filter(asks).count(), 0);
    assert!(!page.contains("url(") && !page.contains("@import"));
}

#[test]
fn a_difference_is_said_in_words() {
    let recording = record(plan(72));
    let found = gathered(&recording.log, Window::default());
    let mut report = verify(&recording.log, &options(), &mut |_| {}).unwrap();
    let difference = warptape_replay::JournalEnd {
        topic: "journal".to_owned(),
        partition: 0,
        group: "group".to_owned(),
        next_sequence: 5,
        committed_sequence: 9,
    };
    report.divergence = Some(warptape_replay::Divergence::JournalEnd(difference));
    let words = report.to_string();
    let page = page_of(&found, &Verdict::Compared(Box::new(report)), &[], "log");
    let text = text_of(parsed(&page).root());
    assert!(text.contains("Differs from its replay") && text.contains(&words), "{words}");
    for (verdict, expected) in [
        (Verdict::NotAsked, "Not verified"),
        (Verdict::Failed("the ticks are gone".to_owned()), "Could not be verified"),
    ] {
        assert!(text_of(parsed(&page_of(&found, &verdict, &[], "log")).root()).contains(expected));
    }
}

/// A window shows the numbers of its part of the journal.
#[test]
fn a_window_has_its_own_numbers() {
    let recording = record(plan(73));
    let entries = entries(&recording.log);
    let all = gathered(&recording.log, Window::default());
    let middle = &entries[entries.len() / 2];
    for bound in [Bound::Sequence(middle.sequence), Bound::Time(middle.at_ns), Bound::Offset(middle.sequence)]
    {
        let before = gathered(&recording.log, Window { from: None, to: Some(bound) });
        let after = gathered(&recording.log, Window { from: Some(bound), to: None });
        let later = counted(&entries[middle.sequence as usize..]);
        assert_eq!(after.totals.batches, later.batches, "{bound:?}");
        assert_eq!(before.totals.batches + after.totals.batches, all.totals.batches, "{bound:?}");
        assert!(after.slots.span().unwrap().0 >= middle.at_ns, "{bound:?}");
        page_of(&after, &Verdict::NotAsked, &[], "log");
    }
}

fn nothing_of(log: &SqliteLog, window: Window, expected: &[&str]) {
    let page = page_of(&gathered(log, window), &Verdict::NotAsked, &[], "log");
    let text = text_of(parsed(&page).root());
    for words in expected {
        assert!(text.contains(words), "{words:?} is not in {text}");
    }
}

/// Only the part of a pause within the window counts, in the total and in each slot.
#[test]
fn a_pause_counts_within_the_window_alone() {
    let at = |at_ns| Moment { sequence: at_ns, at_ns };
    let pause = Some(Pause { partition: 3, waiting_rows: 9, high_water_rows: 8 });
    let pause = Item::Pause(Paused { from: at(400), pause, partition: 3, until: Some(at(1_700)) });
    for (from, expected) in [(None, 1_300), (Some(Bound::Time(1_000)), 700)] {
        let mut gathering = Gathering::new(Window { from, to: None });
        gathering.see(Seen::Item(&pause));
        let found = gathering.finish(Slowest::default());
        let of_slots: u64 = found.slots.iter().flatten().filter_map(|slot| slot.paused.get(&3)).sum();
        assert_eq!((found.paused[&3], of_slots), (expected, expected), "{from:?}");
    }
}

/// Events are a stuck process and a log that accepted nothing, but not a process with nothing to do.
#[test]
fn holes_of_the_journal_are_events_where_something_was_due() {
    let at = |at_ms: i64| Moment { sequence: at_ms, at_ns: at_ms * 1_000_000 };
    let mut gathering = Gathering::new(Window::default());
    for (from, cause) in [(0, HoleCause::Silence), (10_000, HoleCause::StoodStill), (20_000, HoleCause::Log)]
    {
        let hole = Hole { from: at(from), until: at(from + 2_000), cause };
        gathering.see(Seen::Item(&Item::Hole(hole)));
    }
    let found = gathering.finish(Slowest::default());
    let events: Vec<_> =
        found.events.iter().map(|((at_ns, ..), words)| (at_ns / 1_000_000, words.as_str())).collect();
    let [(12_000, stood_still), (22_000, log)] = events[..] else { panic!("{events:?}") };
    assert!(
        stood_still.contains("recorded nothing for 2000 ms") && stood_still.contains("SIGSTOP"),
        "{stood_still}"
    );
    assert!(log.contains("write lock"), "{log}");
}

#[test]
fn a_history_of_little_is_a_page_that_says_so() {
    let recording = record(plan(74));
    let log = &recording.log;
    // The window has one entry: the start of a process.
    let window = Window { from: None, to: Some(Bound::Offset(1)) };
    nothing_of(
        log,
        window,
        &["No lane worked", "No group was on a lane", "No signal was committed", "1 process in 1 life"],
    );
    // All transactions were committed, but no entry has the commit time.
    let recording = record(Plan { outcomes: false, ..plan(75) });
    let found = gathered(&recording.log, Window::default());
    let totals = found.totals.transactions;
    assert!(totals.committed > 20 && totals.untimed == totals.committed, "{totals:?}");
    assert!(totals.signals > 100 && found.latency.count() == 0);
    nothing_of(&recording.log, Window::default(), &["all with an unknown time from tick to commit"]);
    // Nothing was recorded.
    let recording = empty();
    let wanted =
        warptape_replay::chain::SlowestOptions { count: 5, window: Window::default(), partition: None };
    let error = warptape_report::gather(&recording.log, &options(), wanted, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("has no entries"), "{error}");
}

/// Counts wanted lanes again, nanosecond by nanosecond. A window shows the number that was already wanted before it.
#[test]
fn wanted_lanes_are_a_chart_and_changes_of_them_events() {
    const S: i64 = 1_000_000_000;
    let autoscale =
        AutoscaleConfig { window_ns: S, clear_ns: S, hold_windows: 0, ..AutoscaleConfig::default() };
    let mut journal = Scheduled::new(|started| started.autoscale = Some(autoscale));
    for service_ns in [5 * S / 2, S / 100, 7 * S / 2, 7 * S / 2] {
        journal.at_ns = (journal.at_ns / S + 1) * S;
        journal.step(Input::Woke(Woke {}));
        journal.work(service_ns);
        journal.checkpoint();
        journal.at_ns = (journal.at_ns / S + 1) * S;
        journal.step(Input::Woke(Woke {}));
    }
    let log = journal.log();
    let entries = entries(log);
    let (mut wanted, mut lane_ns, mut wishes) = ((entries[0].at_ns, 2), 0, Vec::new());
    for entry in &entries {
        for decision in &entry.decisions {
            let Decision::Scale(scale) = decision else { continue };
            lane_ns += i128::from(entry.at_ns - wanted.0) * i128::from(wanted.1);
            wanted = (entry.at_ns, scale.lanes);
            wishes.push((entry.at_ns, scale.lanes));
        }
    }
    let last_ns =
        entries.iter().filter(|entry| matches!(entry.input, Input::Completed(_))).map(|one| one.at_ns);
    let last_ns = last_ns.chain(wishes.iter().map(|(at_ns, _)| *at_ns)).max().unwrap();
    lane_ns += i128::from(last_ns - wanted.0) * i128::from(wanted.1);
    let lane_ns = u128::try_from(lane_ns).unwrap();
    let of = |found: &warptape_report::Gathered| {
        found.slots.iter().flatten().map(|slot| slot.wanted_lane_ns).sum::<u128>()
    };
    let found = gathered(log, Window::default());
    assert!(wishes.len() >= 3, "{wishes:?}");
    assert_eq!((of(&found), found.totals.wishes, found.totals.scaled), (lane_ns, wishes.len() as u64, 1));
    let events = found.events.keys().filter(|place| place.3 == EventKind::Wanted).count();
    assert_eq!(events, wishes.len());
    let page = page_of(&found, &Verdict::NotAsked, &[], "log");
    let document = parsed(&page);
    let text = text_of(document.root());
    let (_, lanes) = wishes[0];
    assert!(text.contains("Lanes wanted") && text.contains("Number of wanted lanes changed"), "{text}");
    assert!(text.contains(&format!("process 0 wants {lanes} lanes instead of 2: ")), "{text}");

    // The window begins shortly before the last change. The earlier wanted number still holds, and is not an event.
    let (at_ns, _) = *wishes.last().unwrap();
    let window = Window { from: Some(Bound::Time(at_ns - 1_000)), to: None };
    let found = gathered(log, window);
    assert_eq!((found.totals.wishes, found.totals.scaled), (1, 1));
    let (_, before) = wishes[wishes.len() - 2];
    let after = wishes[wishes.len() - 1].1;
    let expected = i128::from(before) * 1_000 + i128::from(after) * i128::from(last_ns - at_ns);
    assert_eq!(of(&found), u128::try_from(expected).unwrap());

    // Without autoscaling this chart does not exist.
    let found = gathered(&record(plan(71)).log, Window::default());
    let page = page_of(&found, &Verdict::NotAsked, &[], "log");
    assert!(found.totals.scaled == 0 && !page.contains("Lanes wanted"));
}
