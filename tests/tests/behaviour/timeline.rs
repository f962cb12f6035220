//! Compares the timelines of a run with its log: every batch and every commit exists, on tracks that Perfetto can show.

use std::collections::BTreeSet;
use std::io;

use warptape_eventlog::EventLog;
use warptape_replay::history::{
    Bound, BreakerChange, History, HistoryOptions, Item, Level, LevelOf, Moment, Paused, Window,
};
use warptape_schemas::decode_journal_entry;
use warptape_schemas::journal::{
    Breaker, BreakerReason, BreakerState, CommitOutcome, Decision, Input, JournalEntry, Pause,
};
use warptape_tests::drawn::{Drawn, DrawnSlice, read_drawn};
use warptape_tests::engine_run::read_partition;
use warptape_tests::random::Random;
use warptape_timeline::{Timeline, TimelineError, write_timeline};

use super::tables::recorded;

fn options(window: Window) -> HistoryOptions {
    HistoryOptions { journal: "journal".to_owned(), partition: None, window }
}

fn drawn(log: &dyn EventLog, window: Window) -> Drawn {
    let mut last = None;
    let mut bytes = Vec::new();
    let keep = &mut |progress| last = Some(progress);
    let written = write_timeline(log, &mut bytes, &options(window), keep).unwrap();
    let last = last.unwrap();
    assert_eq!(last.done, last.total);
    assert_eq!((written.bytes, written.left_out), (bytes.len() as u64, 0));
    read_drawn(&bytes).unwrap()
}

fn entries(log: &dyn EventLog) -> Vec<JournalEntry> {
    let records = read_partition(log, "journal", 0);
    records.iter().map(|record| decode_journal_entry(&record.value).unwrap()).collect()
}

#[test]
fn a_timeline_has_every_batch_and_every_commit() {
    let folder = tempfile::tempdir().unwrap();
    let log = recorded(&folder.path().join("log.db"));
    let drawn = drawn(&*log, Window::default());
    drawn.check_flows().unwrap();
    let entries = entries(&*log);
    let dispatched: Vec<_> = entries
        .iter()
        .flat_map(|entry| entry.decisions.iter().map(move |decision| (entry, decision)))
        .filter_map(|(entry, decision)| match decision {
            Decision::Dispatch(dispatch) => Some((entry.sequence, entry.at_ns, dispatch)),
            _ => None,
        })
        .collect();
    let batches: Vec<_> =
        drawn.slices.iter().filter(|slice| slice.numbers.contains_key("queue_wait_ns")).collect();
    assert!(batches.len() > 100 && batches.len() == dispatched.len(), "{}", batches.len());
    let ends: BTreeSet<_> = batches.iter().map(|slice| (slice.track, slice.end_ns)).collect();
    for (sequence, at_ns, dispatch) in dispatched {
        let is_it = |numbers: &std::collections::BTreeMap<String, i64>| {
            (numbers["sequence"], numbers["batch"]) == (sequence, dispatch.batch)
        };
        let slice = batches.iter().find(|slice| is_it(&slice.numbers)).unwrap();
        assert!(drawn.names[&slice.track].ends_with(&format!("/lane {0} (cpu:{0})", dispatch.lane)));
        assert_eq!(slice.numbers["rows"], dispatch.rows);
        let took_ns =
            slice.numbers["lane_wait_ns"] + slice.numbers["service_ns"] + slice.numbers["handover_ns"];
        assert_eq!(took_ns, slice.numbers["dispatch_to_completion_ns"]);
        assert_eq!(slice.end_ns, (at_ns + took_ns) as u64);
        // A lane may begin a batch before the engine learns that the previous one is done. The batch is then drawn from
        // that time on.
        let begin_ns = (at_ns + slice.numbers["lane_wait_ns"]) as u64;
        let is_behind = begin_ns < slice.begin_ns && ends.contains(&(slice.track, slice.begin_ns));
        assert!(slice.begin_ns == begin_ns || is_behind, "{slice:?}");
        // All rows were committed. The exceptions are barriers of snapshots, one per group, which belong to no
        // transaction.
        let is_committed = slice.flows.iter().all(|flow| drawn.flows[flow].0 > 1);
        assert!(is_committed || dispatch.rows == dispatch.takes.len() as i64, "{slice:?}");
    }
    let committed: BTreeSet<i64> = entries
        .iter()
        .filter_map(|entry| match &entry.input {
            Input::CommitEnded(ended) if ended.outcome == CommitOutcome::Committed => Some(ended.sealed),
            _ => None,
        })
        .collect();
    let commits = drawn.slices.iter().filter(|slice| slice.name == "commit");
    assert_eq!(commits.map(|slice| slice.numbers["sealed_sequence"]).collect::<BTreeSet<_>>(), committed);
    let names = drawn.slice_names();
    assert_eq!(names["service"], batches.len() as u64);
    assert_eq!(names["attempt"], committed.len() as u64);
    assert_eq!(
        drawn.flows.values().filter(|flow| **flow == (1, 1)).count() as u64,
        drawn.instants["arrived"]
    );
}

/// The counters of waiting and running work must end at zero, and must have been above zero before.
#[test]
fn counters_end_at_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let log = recorded(&folder.path().join("log.db"));
    let drawn = drawn(&*log, Window::default());
    assert!(drawn.counters.len() > 4);
    for (track, values) in &drawn.counters {
        assert!(values.is_sorted_by_key(|(at_ns, _)| at_ns), "{}", drawn.names[track]);
        assert_eq!(values.last().unwrap().1, 0, "{}", drawn.names[track]);
        assert!(values.iter().any(|(_, rows)| *rows > 0), "{}", drawn.names[track]);
    }
}

#[test]
fn a_window_begins_where_it_does() {
    let folder = tempfile::tempdir().unwrap();
    let log = recorded(&folder.path().join("log.db"));
    let entries = entries(&*log);
    let first = &entries[entries.len() / 3];
    let next = &entries[entries.len() / 2];
    let window =
        Window { from: Some(Bound::Sequence(first.sequence)), to: Some(Bound::Sequence(next.sequence)) };
    let drawn = drawn(&*log, window);
    let is_within = |at_ns: u64| (first.at_ns as u64..=next.at_ns as u64).contains(&at_ns);
    assert!(is_within(drawn.first_ns));
    assert!(drawn.slices.iter().all(|slice| is_within(slice.begin_ns) && is_within(slice.end_ns)));
    assert!(drawn.slices.len() > 20, "{}", drawn.slices.len());
}

/// Slices that began before the window are drawn from the beginning of the window on, with a mark.
#[test]
fn what_began_before_a_window_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let log = recorded(&folder.path().join("log.db"));
    let mut history = History::new(0);
    history.step(&entries(&*log)[0]);
    let life = history.take_items().swap_remove(0);
    let Item::Life(of) = &life else { panic!("{life:?}") };
    let since_ns = of.since.at_ns;
    let at = |sequence: i64| Moment { sequence, at_ns: since_ns + sequence * 1_000 };
    let breaker = |sequence, state| {
        let (reason, measured, limit) = (BreakerReason::Slow, 3, 2);
        Item::Breaker(BreakerChange {
            at: at(sequence),
            breaker: Breaker { lane: 1, state, reason, measured, limit },
        })
    };
    let pause = |from: i64, until: i64, decision: Option<(i64, i64)>| {
        let pause = decision.map(|(waiting_rows, high_water_rows)| Pause {
            partition: 0,
            waiting_rows,
            high_water_rows,
        });
        Item::Pause(Paused { from: at(from), pause, partition: 0, until: Some(at(until)) })
    };
    let mut timeline = Timeline::new(Vec::new(), true);
    timeline.add(&life).unwrap();
    timeline.add_before(&breaker(3, BreakerState::Open));
    for item in [
        Item::Level(Level { at: at(20), of: LevelOf::Waiting(0), rows: 5 }),
        pause(7, 30, Some((9, 8))),
        pause(9, 40, None),
        pause(41, 50, Some((9, 8))),
        breaker(60, BreakerState::Closed),
    ] {
        timeline.add(&item).unwrap();
    }
    let drawn = read_drawn(&timeline.finish().unwrap().0).unwrap();
    let ns = |sequence: i64| at(sequence).at_ns as u64;
    let slices: Vec<_> = drawn.slices.iter().filter(|slice| slice.name != "assigned").collect();
    let [first, unknown, within, open] = &slices[..] else { panic!("{slices:?}") };
    let told = |slice: &DrawnSlice, key: &str| slice.numbers.get(key).copied();
    assert_eq!((first.begin_ns, told(first, "before_window_ns")), (ns(20), Some(13_000)));
    assert_eq!((told(first, "sequence"), told(first, "waiting_rows")), (Some(7), Some(9)));
    assert_eq!((unknown.texts["began"].as_str(), told(unknown, "sequence")), ("before entry 9", None));
    assert_eq!((told(within, "before_window_ns"), told(within, "sequence")), (None, Some(41)));
    assert_eq!((open.name.as_str(), open.begin_ns, open.end_ns), ("breaker: open", ns(20), ns(60)));
    assert_eq!((told(open, "before_window_ns"), told(open, "sequence")), (Some(17_000), Some(3)));
}

#[test]
fn what_cannot_be_drawn_or_written_is_an_error() {
    struct Full;
    impl io::Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let log = recorded(&folder.path().join("log.db"));
    let refused = write_timeline(&*log, Full, &options(Window::default()), &mut |_| {}).unwrap_err();
    assert!(matches!(refused, TimelineError::Unwritable(_)), "{refused}");
    let missing = HistoryOptions { journal: "nobody".to_owned(), ..options(Window::default()) };
    let refused = write_timeline(&*log, Vec::new(), &missing, &mut |_| {}).unwrap_err();
    assert!(refused.to_string().contains("no topic \"nobody\""), "{refused}");
}

/// Forged times do no harm, and neither do missing, repeated or moved entries.
#[test]
fn a_damaged_journal_is_drawn_as_well_as_it_can_be() {
    let folder = tempfile::tempdir().unwrap();
    let log = recorded(&folder.path().join("log.db"));
    let whole = entries(&*log);
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let mut entries: Vec<_> = whole.iter().take(400).cloned().collect();
        for _ in 0..40 {
            let (one, other) = (random.index(400), random.index(400));
            match random.index(4) {
                0 => entries[one].at_ns = [0, -5, i64::MIN, i64::MAX][random.index(4)],
                1 => {
                    entries[one].at_ns =
                        entries[one].at_ns.saturating_sub(random.between(-1_000_000, 1 << 40))
                }
                2 => entries.swap(one, other),
                _ => entries[one] = entries[other].clone(),
            }
        }
        for is_window in [false, true] {
            let (mut history, mut timeline) = (History::new(0), Timeline::new(Vec::new(), is_window));
            for entry in &entries {
                history.step(entry);
                history.take_items().iter().for_each(|item| timeline.add(item).unwrap());
            }
            history.finish();
            history.take_items().iter().for_each(|item| timeline.add(item).unwrap());
            let (bytes, drawn) = timeline.finish().unwrap();
            let read = read_drawn(&bytes).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert!(drawn.batches > 10 && read.slices.len() as u64 >= drawn.slices, "seed {seed}: {drawn:?}");
        }
    }
}
