//! The history of a recorded journal: batches, transactions and everything else, starting at the beginning or at any
//! entry.

use std::collections::BTreeMap;
use std::sync::Arc;

use warptape_eventlog::EventLog;
use warptape_replay::diff::{DiffSide, diff};
use warptape_replay::history::{
    Batch, BatchEnd, Bound, Ended, History, HistoryOptions, Item, LevelOf, Stay, StayEnd, Transaction,
    Window, read_history,
};
use warptape_replay::{ReplayError, read_recorded};
use warptape_scheduler::{RULES, Scheduler};
use warptape_schemas::decode_journal_entry;
use warptape_schemas::hex::Digits;
use warptape_schemas::journal::{
    Arrived, Completed, Decision, GroupArrival, Input, JournalEntry, LaneLost, LaneSpec, PartitionAssigned,
    Sealed, SealedPartition, Started, Woke,
};

use crate::recording::records;
use crate::recording::{Plan, narrow_config, options, record, scheduler_config};
use crate::scheduled::Scheduled;
use crate::tampered::Tampered;

fn plan(seed: u64) -> Plan {
    Plan { outcomes: true, checkpoint: Some(5), ..Plan::small(seed) }
}

fn items(log: &dyn EventLog, window: Window) -> Vec<Item> {
    let options = HistoryOptions { journal: "journal".to_owned(), partition: None, window };
    let mut items = Vec::new();
    let mut each = |ended, item| {
        items.extend((ended == Ended::Within).then_some(item));
        Ok(())
    };
    read_history(log, &options, &mut each, &mut |_| {}).unwrap();
    items
}

fn entries(log: &dyn EventLog) -> Vec<JournalEntry> {
    records(log, "journal", 0).iter().map(|record| decode_journal_entry(&record.value).unwrap()).collect()
}

fn batches(items: &[Item]) -> Vec<Arc<Batch>> {
    items
        .iter()
        .filter_map(|item| if let Item::Batch(batch) = item { Some(batch.clone()) } else { None })
        .collect()
}

fn transactions(items: &[Item]) -> Vec<Arc<Transaction>> {
    let of = |item: &Item| if let Item::Transaction(one) = item { Some(one.clone()) } else { None };
    items.iter().filter_map(of).collect()
}

#[test]
fn every_batch_has_its_rows_and_its_end() {
    let recording = record(plan(41));
    let entries = entries(&recording.log);
    let found = batches(&items(&recording.log, Window::default()));
    let dispatched = entries.iter().flat_map(|entry| &entry.decisions);
    let dispatched: Vec<_> = dispatched
        .filter_map(|decision| if let Decision::Dispatch(one) = decision { Some(one.clone()) } else { None })
        .collect();
    assert!(dispatched.len() > 30, "{} batches", dispatched.len());
    assert_eq!(found.len(), dispatched.len());
    for batch in &found {
        assert!(dispatched.contains(&batch.dispatch));
        let BatchEnd::Completed { at, service_ns, .. } = batch.end else { panic!("{:?}", batch.end) };
        assert!(at > batch.at && service_ns == 1_000);
        assert_eq!(batch.parts.len(), batch.dispatch.takes.len());
        for (part, take) in batch.parts.iter().zip(&batch.dispatch.takes) {
            assert_eq!((part.partition, part.group, part.rows), (take.partition, take.group, take.rows));
            assert_eq!(part.pieces.iter().map(|piece| piece.rows).sum::<i64>(), part.rows);
            assert!(part.placed.is_some_and(|placed| placed < batch.at));
            let oldest = part.pieces.first().unwrap().arrival.at_ns;
            assert!(batch.dispatch.oldest_arrival_ns <= oldest && oldest <= batch.at.at_ns);
        }
    }
}

#[test]
fn a_transaction_has_all_rows_of_its_records() {
    let recording = record(plan(42));
    let sealed = entries(&recording.log);
    let sealed: Vec<_> = sealed
        .iter()
        .filter_map(
            |entry| if let Input::Sealed(one) = &entry.input { Some((entry, one.clone())) } else { None },
        )
        .collect();
    let found = transactions(&items(&recording.log, Window::default()));
    let found: Vec<_> = found.into_iter().filter(|one| one.sealed_ns.is_some()).collect();
    assert_eq!(found.len(), sealed.len());
    for (transaction, (entry, sealed)) in found.iter().zip(&sealed) {
        assert_eq!((transaction.sealed_sequence, transaction.sealed_ns), (entry.sequence, Some(entry.at_ns)));
        assert_eq!(transaction.committed_ns(), Some(entry.at_ns + 300_000));
        let accounts: Vec<_> = transaction.partitions.iter().map(|part| part.account).collect();
        assert_eq!(accounts, sealed.partitions);
        for part in &transaction.partitions {
            assert!(part.is_whole && !part.may_be_void);
            let (mut came, mut done) = (BTreeMap::<i32, i64>::new(), BTreeMap::<i32, i64>::new());
            for arrival in &part.arrivals {
                // A damaged record has no rows, so it is also part of the next arrival.
                let (first, next) = arrival.offsets.unwrap();
                assert!(first <= part.account.first_offset && next == part.account.next_offset);
                arrival.groups.iter().for_each(|(group, rows)| *came.entry(*group).or_default() += rows);
            }
            let of_partition =
                |batch: &&Arc<Batch>| batch.parts.iter().any(|one| one.partition == part.account.partition);
            assert!(part.batches.iter().all(|batch| of_partition(&batch)));
            for one in part.batches.iter().flat_map(|batch| &batch.parts) {
                *done.entry(one.group).or_default() += one.rows;
            }
            assert_eq!(came, done, "every record is complete in this run");
        }
    }
}

/// Entries after the last committed `Sealed` form another transaction: that of a drained process. A window that ends
/// earlier does not have it.
#[test]
fn the_last_transaction_of_a_process_that_drained_was_committed() {
    let recording = record(plan(46));
    let entries = entries(&recording.log);
    let drained = |found: &[Arc<Transaction>]| -> Vec<(Option<i64>, i64)> {
        let alone = found.iter().filter(|one| one.partitions.is_empty());
        let place = |one: &Arc<Transaction>| {
            assert!(one.attempts.is_empty() && one.committed_ns().is_none() && one.sealed_ns.is_none());
            assert_eq!(one.last_ns, Some(entries[one.sealed_sequence as usize].at_ns));
            (one.first_sequence, one.sealed_sequence)
        };
        alone.map(place).collect()
    };
    let ends = entries.iter().filter(|entry| matches!(entry.input, Input::Draining(_)));
    let ends: Vec<i64> = ends.map(|entry| entry.sequence).collect();
    let sealed = |before: i64| {
        let mut sealed =
            entries.iter().filter(|entry| entry.sequence < before && matches!(entry.input, Input::Sealed(_)));
        sealed.next_back().unwrap().sequence
    };
    let expected: Vec<_> = ends.iter().map(|end| (Some(sealed(*end) + 1), *end)).collect();
    let whole = Window::default();
    assert_eq!(expected.len(), 2);
    assert_eq!(drained(&transactions(&items(&recording.log, whole))), expected);
    for (cut, count) in [(ends[1], 1), (ends[0] + 1, 0), (ends[0], 0)] {
        let window = Window { to: Some(Bound::Sequence(cut)), ..whole };
        let found = drained(&transactions(&items(&recording.log, window)));
        assert_eq!(found, &expected[..count], "to {cut}");
    }
    // If no outcomes of commits are recorded, the boundaries between later transactions are unknown.
    let untold = record(Plan { outcomes: false, ..plan(47) });
    let found = transactions(&items(&untold.log, whole));
    assert!(!found.is_empty() && found.iter().all(|one| !one.partitions.is_empty()));
}

#[test]
fn groups_stay_until_the_process_ends() {
    let recording = record(plan(43));
    let items = items(&recording.log, Window::default());
    let stays: Vec<&Stay> =
        items.iter().filter_map(|item| if let Item::Stay(stay) = item { Some(stay) } else { None }).collect();
    assert_eq!(stays.len(), 2 * 2 * 3, "lives, partitions, groups");
    assert!(stays.iter().all(|stay| stay.placed.is_some() && stay.end == StayEnd::Open));
    assert_eq!(items.iter().filter(|item| matches!(item, Item::Life(_))).count(), 2);
}

/// A history that begins later has the same items, if they begin within it.
#[test]
fn a_window_begins_and_ends_anywhere() {
    let recording = record(plan(44));
    let entries = entries(&recording.log);
    let all = batches(&items(&recording.log, Window::default()));
    for entry in entries.iter().step_by(7) {
        for bound in
            [Bound::Sequence(entry.sequence), Bound::Offset(entry.sequence), Bound::Time(entry.at_ns)]
        {
            let later = batches(&items(&recording.log, Window { from: Some(bound), to: None }));
            let begun: Vec<_> = later.iter().filter(|batch| batch.at.sequence >= entry.sequence).collect();
            let expected: Vec<_> = all.iter().filter(|batch| batch.at.sequence >= entry.sequence).collect();
            // Placements before the checkpoint at which the window begins are unknown.
            let without_placed = |batches: Vec<&Arc<Batch>>| {
                let of = |batch: &Arc<Batch>| {
                    let mut batch = Batch::clone(batch);
                    batch.parts.iter_mut().for_each(|part| part.placed = None);
                    if let BatchEnd::Completed { lane_free_ns, .. } = &mut batch.end {
                        *lane_free_ns = None;
                    }
                    batch
                };
                batches.into_iter().map(of).collect::<Vec<_>>()
            };
            assert_eq!(without_placed(begun), without_placed(expected), "from {bound:?}");

            if entry.sequence == 0 {
                // There is no entry before the first one.
                continue;
            }
            let earlier = batches(&items(&recording.log, Window { from: None, to: Some(bound) }));
            let ended = |batch: &&Arc<Batch>| matches!(batch.end, BatchEnd::Completed { at, .. } if at.sequence < entry.sequence);
            let expected: Vec<_> = all.iter().filter(ended).collect();
            assert_eq!(earlier.iter().filter(ended).collect::<Vec<_>>(), expected, "to {bound:?}");
        }
    }
}

/// A pause begins at its entry, however many checkpoints are between it and the window. If the entry is gone, the pause
/// counts from the checkpoint that shows it.
#[test]
fn a_pause_began_before_the_window() {
    let mut journal = Scheduled::new(|started| started.scheduler = narrow_config());
    journal.work(1_000);
    let groups = vec![GroupArrival { group: 0, rows: 40, bytes: 1_600 }];
    let (began, mut decisions) =
        journal.step(Input::Arrived(Arrived { partition: 0, next_offset: 2, groups }));
    assert!(decisions.iter().any(|decision| matches!(decision, Decision::Pause(_))), "{decisions:?}");
    let checkpoints: Vec<i64> = (0..3)
        .map(|_| {
            journal.step(Input::Woke(Woke {}));
            journal.checkpoint()
        })
        .collect();
    let resumed = loop {
        let (lane, batch) = dispatched(&decisions);
        let (sequence, next) =
            journal.step(Input::Completed(Completed { lane, batch, service_ns: 1, sample: None }));
        decisions = next;
        if decisions.iter().any(|decision| matches!(decision, Decision::Resume(_))) {
            break sequence;
        }
    };
    let log = journal.log();
    let entries = entries(log);
    let pause = |log: &dyn EventLog, from: i64| {
        let items = items(log, Window { from: Some(Bound::Sequence(from)), to: None });
        let mut pauses = items.into_iter().filter_map(|item| match item {
            Item::Pause(pause) => Some(pause),
            _ => None,
        });
        let found = pauses.next().unwrap();
        assert!(pauses.next().is_none() && found.until.unwrap().sequence == resumed);
        found
    };
    for from in [0, began, began + 1, checkpoints[0], checkpoints[1], checkpoints[2], resumed] {
        let found = pause(log, from);
        assert_eq!((found.from.sequence, found.from.at_ns), (began, entries[began as usize].at_ns), "{from}");
        assert!(found.pause.is_some());
    }
    let rest = records(log, "journal", 0).split_off(checkpoints[0] as usize);
    let trimmed = Tampered::trimmed(log, "journal", 0, rest);
    let found = pause(&trimmed, checkpoints[2]);
    assert_eq!((found.from.sequence, found.pause), (checkpoints[1], None));

    // In a comparison of two runs, the known part of the pause counts, with a remark.
    let options = options();
    let sides = [log as &dyn EventLog, &trimmed].map(|log| DiffSide { log, options: &options });
    let [whole, rest] = diff(sides, &mut |_| {}).unwrap().sides;
    let paused_ns = |from: i64| entries[resumed as usize].at_ns - entries[from as usize].at_ns;
    assert_eq!((whole.totals.pauses_begun_before, whole.totals.paused_ns), (0, paused_ns(began)));
    assert_eq!((rest.totals.pauses_begun_before, rest.totals.paused_ns), (1, paused_ns(checkpoints[0])));
}

/// A window without journal entries is refused. The error names the existing range.
#[test]
fn a_window_outside_of_the_journal_is_refused() {
    let recording = record(plan(45));
    let entries = entries(&recording.log);
    let (first, last) = (entries.first().unwrap(), entries.last().unwrap());
    let read = |from: Option<Bound>, to: Option<Bound>| {
        let window = Window { from, to };
        let options = HistoryOptions { journal: "journal".to_owned(), partition: None, window };
        let of_history = read_history(&recording.log, &options, &mut |_, _| Ok(()), &mut |_| {});
        let mut each = |_| Ok::<(), ReplayError>(());
        let of_records = read_recorded(&recording.log, ("journal", 0), window, &mut each, &mut |_| {});
        [of_history, of_records]
    };
    let (next_offset, later_ns) = (last.sequence + 1, last.at_ns + 1);
    let outside = [
        (Some(Bound::Time(later_ns)), None),
        (Some(Bound::Sequence(next_offset)), None),
        (Some(Bound::Offset(next_offset)), None),
        (Some(Bound::Time(i64::MAX - 1)), Some(Bound::Time(i64::MAX))),
        (None, Some(Bound::Time(first.at_ns))),
        (None, Some(Bound::Sequence(0))),
        (Some(Bound::Offset(0)), Some(Bound::Offset(0))),
    ];
    for (from, to) in outside {
        for found in read(from, to) {
            let error = found.unwrap_err();
            let ReplayError::OutsideJournal { there, .. } = &error else {
                panic!("{from:?} to {to:?}: {error}")
            };
            let [reach] = there[..] else { panic!("{there:?}") };
            assert_eq!((reach.first.sequence, reach.first.at_ns), (first.sequence, first.at_ns));
            assert_eq!((reach.last.sequence, reach.last.at_ns), (last.sequence, last.at_ns));
            let words = format!("has the sequences 0 to {}, from 1970-01-01T00:00:0", last.sequence);
            assert!(error.to_string().contains(&words), "{error}");
        }
    }
    // The first and last entry are inside the journal, and so is a moment between two entries.
    let inside = [
        (Some(Bound::Time(last.at_ns)), None),
        (Some(Bound::Sequence(last.sequence)), None),
        (None, Some(Bound::Sequence(1))),
        (None, Some(Bound::Time(first.at_ns + 1))),
        (Some(Bound::Time(first.at_ns + 1)), Some(Bound::Time(first.at_ns + 2))),
    ];
    for (from, to) in inside {
        read(from, to).into_iter().for_each(|found| found.unwrap());
    }
}

/// A scheduler, and the history of its inputs.
struct Steps {
    scheduler: Scheduler,
    history: History,
    items: Vec<Item>,
    sequence: i64,
}

impl Steps {
    fn step(&mut self, input: Input) -> Vec<Decision> {
        let (sequence, at_ns) = (self.sequence, 1_000 + 10 * self.sequence);
        // Rows of a lost lane wait at once in the history; the scheduler gets them with the next arrival.
        let is_lost = matches!(input, Input::LaneLost(_));
        let mut decisions = Vec::new();
        self.scheduler.step(at_ns, &input, &mut decisions).unwrap();
        let (state_hash, hash) = (Digits::zeros(), Digits::zeros());
        let entry = JournalEntry { sequence, at_ns, input, decisions: decisions.clone(), state_hash, hash };
        self.history.step(&entry);
        self.sequence += 1;
        let items = self.history.take_items();
        for level in
            items.iter().filter_map(|item| if let Item::Level(level) = item { Some(level) } else { None })
        {
            let (scheduler, waits) = (&self.scheduler, matches!(level.of, LevelOf::Waiting(_)));
            let rows = match level.of {
                LevelOf::Waiting(partition) => scheduler.waiting_rows(partition),
                LevelOf::InFlight(lane) => scheduler.in_flight(lane).map(|batch| batch.rows).sum(),
            };
            assert!(level.rows == rows || waits && is_lost, "{level:?} of {rows}");
            assert_eq!(level.at.sequence, sequence);
        }
        self.items.extend(items);
        decisions
    }

    fn arrive(&mut self, next_offset: i64, rows: i64) -> Vec<Decision> {
        let groups = vec![GroupArrival { group: 0, rows, bytes: 10 * rows }];
        self.step(Input::Arrived(Arrived { partition: 0, next_offset, groups }))
    }
}

fn dispatched(decisions: &[Decision]) -> (i32, i64) {
    let of = |decision: &Decision| match decision {
        Decision::Dispatch(batch) => Some((batch.lane, batch.batch)),
        _ => None,
    };
    decisions.iter().find_map(of).expect("a batch is dispatched")
}

/// Rows that a lost lane returns keep their arrivals, even if records without rows were read meanwhile.
#[test]
fn rows_of_a_lost_lane_are_in_another_batch() {
    let (scheduler, history) = (Scheduler::new(), History::new(0));
    let mut steps = Steps { scheduler, history, items: Vec::new(), sequence: 0 };
    let lanes = (0..2).map(|lane| LaneSpec::new(lane, format!("cpu:{lane}"), 1)).collect();
    let (node, software, stage_config) = ("node".to_owned(), "test".to_owned(), "{}".to_owned());
    let scheduler = scheduler_config();
    steps.step(Input::Started(Box::new(Started {
        node,
        software,
        stage_config,
        scheduler,
        lanes,
        autoscale: None,
        shadow: None,
        rules: RULES,
    })));
    let (partition, groups) = (0, 1);
    steps.step(Input::PartitionAssigned(PartitionAssigned {
        partition,
        groups,
        committed_offset: 0,
        snapshot_offset: 0,
        ..PartitionAssigned::default()
    }));
    let decisions = steps.arrive(5, 4);
    let (lane, lost) = dispatched(&decisions);
    steps.step(Input::LaneLost(LaneLost { lane, reason: "it broke".to_owned(), kept: true }));
    // Records 5 to 8 were dead letters.
    let decisions = steps.arrive(9, 4);
    let (other, batch) = dispatched(&decisions);
    assert!(other != lane && batch > lost);
    steps.arrive(11, 3);
    steps.step(Input::Completed(Completed { lane: other, batch, service_ns: 1, sample: None }));
    steps.step(Input::Sealed(Sealed {
        partitions: vec![SealedPartition { partition, next_offset: 9, ..SealedPartition::default() }],
    }));
    steps.history.finish();
    steps.items.extend(steps.history.take_items());
    let items = steps.items;
    let levels = items.iter().filter(|item| matches!(item, Item::Level(_))).count();
    assert!(levels > 8, "{levels}");
    let found = batches(&items);
    assert!(matches!(found[0].end, BatchEnd::Lost(_)) && found[0].dispatch.batch == lost);
    let pieces = &found[1].parts[0].pieces;
    assert_eq!((found[1].dispatch.batch, pieces.len(), pieces[0].rows), (batch, 1, 4));
    assert_eq!(pieces[0].arrival.offsets, Some((0, 5)), "they came with the first records");
    let transaction = &transactions(&items)[0];
    let part = &transaction.partitions[0];
    assert_eq!(part.arrivals.iter().map(|arrival| arrival.offsets).collect::<Vec<_>>(), [Some((0, 5))]);
    assert_eq!(part.batches.len(), 1);
}
