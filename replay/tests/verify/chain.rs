//! Explanations of late signals. The waits of every signal of a recorded run add up to the difference of the records'
//! times.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use warptape_eventlog::{EventLog, NewRecord, TopicSpec};
use warptape_replay::ReplayError;
use warptape_replay::chain::{
    Chain, Holder, LaneName, Slow, SlowestOptions, Step, Wait, slowest, why_batch, why_lane, why_request,
    why_signal,
};
use warptape_replay::history::{Bound, Window};
use warptape_schemas::journal::{
    CommitEnded, CommitOutcome, Decision, Draining, Input, Sealed, SealedPartition, TaskClass,
};
use warptape_schemas::risk::{RiskError, RiskErrorCode, RiskOutcome, RiskResult};
use warptape_schemas::{decode_journal_entry, decode_signal, encode_risk_result};
use warptape_stages::group_of;

use crate::inputs;
use crate::recording::records;
use crate::recording::{PARTITIONS, Plan, options, record};
use crate::scheduled::Scheduled;
use crate::tampered::Tampered;

fn plan(seed: u64) -> Plan {
    Plan { outcomes: true, checkpoint: Some(5), ..Plan::small(seed) }
}

/// Returns the times of the seal and the commit of the transaction with a tick record, according to the entries.
fn committed(log: &dyn EventLog, partition: i32, offset: i64) -> (i64, i64) {
    let entries: Vec<_> = records(log, "journal", 0)
        .iter()
        .map(|record| decode_journal_entry(&record.value).unwrap())
        .collect();
    let sealed = entries.iter().find(|entry| match &entry.input {
        Input::Sealed(sealed) => sealed.partitions.iter().any(|part| {
            part.partition == partition && (part.first_offset..part.next_offset).contains(&offset)
        }),
        _ => false,
    });
    let sealed = sealed.expect("every signal's record was sealed");
    let ended = entries.iter().find_map(|entry| match &entry.input {
        Input::CommitEnded(ended) if ended.sealed == sealed.sequence => Some(*ended),
        _ => None,
    });
    let ended = ended.expect("every commit's outcome was recorded");
    assert_eq!(ended.outcome, CommitOutcome::Committed);
    (sealed.at_ns, ended.ended_ns)
}

fn check(log: &dyn EventLog, chain: &Chain) {
    let signal = &records(log, "signals", chain.signal.partition)[chain.signal.offset as usize];
    let signal = decode_signal(&signal.value).unwrap();
    assert_eq!(chain.tick.offset, signal.source_offset);
    let created_ns = records(log, "ticks", chain.tick.partition)[signal.source_offset as usize].timestamp_ns;
    let (sealed_ns, ended_ns) = committed(log, chain.tick.partition, signal.source_offset);
    assert_eq!(chain.transaction.sealed_ns, Some(sealed_ns));
    assert_eq!((chain.total_ns, chain.is_to_commit), (ended_ns - created_ns, true));
    assert_eq!(chain.waits.iter().map(|wait| wait.ns).sum::<i64>(), chain.total_ns);
    let batch = chain.batch.as_ref().expect("its batch is known");
    assert!(batch.completed.is_some_and(|at| at.at_ns <= sealed_ns));
    let wait = |step| chain.waits.iter().find(|wait| wait.step == step).map_or(0, |wait| wait.ns);
    assert_eq!((wait(Step::Service), wait(Step::Send), wait(Step::Commit)), (1_000, 100_000, 200_000));
}

#[test]
fn the_waits_of_every_signal_add_up() {
    let recording = record(plan(51));
    let log = &recording.log;
    let mut explained = 0;
    for partition in 0..PARTITIONS {
        for signal in records(log, "signals", partition) {
            let chain = why_signal(log, &options(), partition, signal.offset, &mut |_| {}).unwrap();
            check(log, &chain);
            assert!(chain.explanation.is_some() && chain.lanes.len() == 2);
            assert_eq!(chain.lanes.iter().filter(|lane| lane.is_chosen).count(), 1);
            explained += 1;
        }
    }
    assert!(explained > 100, "{explained} signals");
}

/// Checks that the causes that held a signal up add up to the total, and that each lane has all waits for it.
fn check_held(slow: &Slow) {
    let Slow { chain, held_by, .. } = slow;
    assert_eq!(held_by.iter().map(|held| held.ns).sum::<i64>(), chain.total_ns);
    assert!(held_by.is_sorted_by(|one, next| one.ns >= next.ns));
    assert_eq!(held_by.iter().map(|held| held.waits.len()).sum::<usize>(), chain.waits.len());
    let of_lane = |step: Step| match step {
        Step::Queue | Step::Lane | Step::Service | Step::Handover => chain.batch.as_ref(),
        Step::OtherGroups => chain.last_batch.as_ref(),
        _ => None,
    };
    let lanes = chain.batch.iter().chain(&chain.last_batch).map(|batch| batch.lane);
    for lane in lanes.collect::<BTreeSet<_>>() {
        let is_its = |wait: &&Wait| of_lane(wait.step).is_some_and(|batch| batch.lane == lane);
        let ns = chain.waits.iter().filter(is_its).map(|wait| wait.ns).sum::<i64>();
        let held = held_by.iter().find(|held| matches!(held.by, Holder::Lane { lane: by, .. } if by == lane));
        assert_eq!(held.map_or(0, |held| held.ns), ns, "{chain:?}");
    }
}

#[test]
fn the_slowest_are_those_with_the_greatest_sums() {
    let recording = record(plan(52));
    let log = &recording.log;
    let all = |count| {
        let wanted = SlowestOptions { count, window: Window::default(), partition: None };
        slowest(log, &options(), wanted, &mut |_| {}).unwrap()
    };
    let found = all(10_000);
    let signals = (0..PARTITIONS).map(|partition| records(log, "signals", partition).len()).sum::<usize>();
    assert_eq!((found.signals.len(), found.seen), (signals, signals as u64));
    assert_eq!((found.without_commit, found.without_tick, found.without_record), (0, 0, 0));

    // The log lacks records that the journal accounts for, like an export without ticks.
    let gone = Tampered::new(log, "signals", 0, Vec::new());
    let wanted = SlowestOptions { count: 1, window: Window::default(), partition: None };
    let lacking = slowest(&gone, &options(), wanted, &mut |_| {}).unwrap();
    let in_partition_0 = records(log, "signals", 0).len() as u64;
    assert!(in_partition_0 > 0);
    assert_eq!((lacking.seen + in_partition_0, lacking.without_record), (found.seen, in_partition_0));

    let mut with_lanes = 0;
    for slow in &found.signals {
        check(log, &slow.chain);
        let most = slow.chain.waits.iter().map(|wait| wait.ns).max();
        assert_eq!(slow.main.map(|wait| wait.ns), most);
        check_held(slow);
        with_lanes += slow.held_by.iter().filter(|held| held.waits.len() > 1).count();
    }
    assert!(with_lanes > 10, "waits for one lane count together: {with_lanes}");
    let totals: Vec<_> = found.signals.iter().map(|slow| slow.chain.total_ns).collect();
    assert!(totals.is_sorted_by(|one, next| one >= next));
    let few: Vec<_> = all(7).signals.iter().map(|slow| slow.chain.signal.clone()).collect();
    let first: Vec<_> = found.signals.iter().take(7).map(|slow| slow.chain.signal.clone()).collect();
    assert_eq!(few, first);
}

/// A window knows a signal's waits from before the window: ended pauses of its partition, and the commit before its
/// own.
#[test]
fn a_window_knows_what_was_waited_for_before_it() {
    let recording = record(Plan { outcomes: true, late_outcomes: true, pauses: true, ..Plan::small(58) });
    let log = &recording.log;
    let within = |window| {
        let wanted = SlowestOptions { count: 10_000, window, partition: None };
        let found = slowest(log, &options(), wanted, &mut |_| {}).unwrap().signals;
        let chain = |slow: Slow| {
            let of = (slow.chain.signal.partition, slow.chain.signal.offset);
            (of, serde_json::to_value(slow.chain).unwrap())
        };
        found.into_iter().map(chain).collect::<BTreeMap<_, _>>()
    };
    let whole = within(Window::default());
    let has = |chain: &Value, step: &str| {
        chain["waits"].as_array().unwrap().iter().any(|wait| wait["step"] == step)
    };
    for step in ["pause", "previous_commit"] {
        assert!(whole.values().filter(|chain| has(chain, step)).count() > 50, "{step}");
    }
    let mut compared = 0;
    for (sequence, input) in (0..).zip(inputs(&records(log, "journal", 0))) {
        // Only windows that begin at a seal are compared, because their first transaction ends all its waits before the
        // window.
        if !matches!(input, Input::Sealed(_)) {
            continue;
        }
        let found = within(Window { from: Some(Bound::Sequence(sequence)), to: None });
        assert!(found.iter().all(|(of, chain)| whole[of] == *chain), "from {sequence}");
        compared += found.len();
    }
    assert!(compared > 1_000, "{compared}");
}

/// The context before a checkpoint is known even if the checkpoint is between a record's publication and its arrival.
#[test]
fn pauses_before_a_checkpoint_are_known() {
    let recording = record(Plan { pauses: true, ..plan(59) });
    let log = &recording.log;
    let (entries, mut explained) = (records(log, "journal", 0), 0);
    let entries: Vec<_> = entries.iter().map(|record| decode_journal_entry(&record.value).unwrap()).collect();
    for partition in 0..PARTITIONS {
        for signal in records(log, "signals", partition) {
            let chain = why_signal(log, &options(), partition, signal.offset, &mut |_| {}).unwrap();
            assert_eq!(chain.unknown, [] as [String; 0]);
            let (began, assigned_ns) = (chain.process.began.unwrap(), chain.process.assigned_ns.unwrap());
            let arrived_ns = chain.arrival.unwrap().at_ns;
            let (mut paused_ns, mut since_ns) = (0, None);
            for entry in entries.iter().filter(|entry| entry.sequence > began.sequence) {
                for decision in &entry.decisions {
                    match decision {
                        Decision::Pause(pause) if pause.partition == partition => {
                            since_ns = Some(entry.at_ns)
                        }
                        Decision::Resume(resume) if resume.partition == partition => {
                            let until_ns = entry.at_ns.min(arrived_ns);
                            paused_ns += (until_ns - since_ns.take().unwrap().max(assigned_ns)).max(0);
                        }
                        _ => {}
                    }
                }
            }
            let found = chain.waits.iter().find(|wait| wait.step == Step::Pause).map_or(0, |wait| wait.ns);
            assert_eq!(found, paused_ns, "{chain:?}");
            explained += usize::from(paused_ns > 0);
        }
    }
    assert!(explained > 50, "{explained} signals");
}

/// A request refused without a task waited for the previous commit, which ended before a checkpoint.
#[test]
fn a_request_without_a_task_waited_for_the_commit_before() {
    let mut journal = Scheduled::new(|_| {});
    let seal = |journal: &mut Scheduled, risk_results| {
        let account = SealedPartition { risk_results, ..SealedPartition::default() };
        journal.step(Input::Sealed(Sealed { partitions: vec![account] })).0
    };
    let commit = |journal: &mut Scheduled, sealed| {
        let (sent_ns, ended_ns) = (journal.at_ns + 200, journal.at_ns + 300);
        let (attempt, outcome, looked_up) = (1, CommitOutcome::Committed, false);
        let ended = CommitEnded { sealed, attempt, sent_ns, ended_ns, outcome, looked_up };
        journal.step(Input::CommitEnded(ended));
        ended_ns
    };
    let before = seal(&mut journal, 0);
    let (received_ns, finished_ns) = (journal.at_ns + 10, journal.at_ns + 40);
    commit(&mut journal, before);
    let known_ns = journal.at_ns;
    journal.checkpoint();
    let sealed = seal(&mut journal, 1);
    let sealed_ns = journal.at_ns;
    let committed_ns = commit(&mut journal, sealed);
    journal.step(Input::Draining(Draining {}));

    let message = "it cannot be read".to_owned();
    let error = RiskError { code: RiskErrorCode::BadParameter, field: String::new(), message };
    let result = RiskResult {
        request_id: "mine".to_owned(),
        tenant: String::new(),
        class: TaskClass::Interactive,
        topic: "risk.requests".to_owned(),
        partition: 0,
        offset: 0,
        outcome: RiskOutcome::Error(error),
        as_of: Vec::new(),
        seed: 0,
        received_ns,
        started_ns: finished_ns,
        finished_ns,
        compute_ns: 0,
        devices: Vec::new(),
        node: "node".to_owned(),
        decision_sequence: -1,
        cost_ns: 0,
        cost_max_ns: 0,
        cancels: None,
        judged_on: Vec::new(),
        rules: warptape_schemas::risk::RULES,
    };
    let mut value = Vec::new();
    encode_risk_result(&result, &mut value);
    let log = journal.log();
    let name = "risk.results".to_owned();
    log.create_topics(&[TopicSpec { name, partitions: 1, ..TopicSpec::default() }]).unwrap();
    let mut producer = log.producer("results").unwrap();
    producer.begin().unwrap();
    let (topic, key, value) = ("risk.results".into(), Some(b"mine".into()), value.into());
    let timestamp_ns = sealed_ns;
    producer.send(NewRecord { topic, key, value, timestamp_ns, ..NewRecord::default() }).unwrap();
    producer.commit().unwrap();
    let chain = why_request(log, &options(), "mine", &mut |_| {}).unwrap();
    let waits: Vec<_> = chain.waits.iter().map(|wait| (wait.step, wait.ns)).collect();
    let expected = [
        (Step::Conclusion, finished_ns - received_ns),
        (Step::PreviousCommit, known_ns - finished_ns),
        (Step::CommitInterval, sealed_ns - known_ns),
        (Step::Send, 200),
        (Step::Commit, 100),
    ];
    assert_eq!((&waits[..], chain.total_ns), (&expected[..], committed_ns - received_ns));
}

#[test]
fn a_commit_that_the_journal_does_not_tell_of_is_unknown() {
    let recording = record(Plan { outcomes: false, ..plan(53) });
    let chain = why_signal(&recording.log, &options(), 0, 0, &mut |_| {}).unwrap();
    assert!(!chain.is_to_commit && chain.transaction.committed_ns.is_none());
    let words = "when it was committed: a journal holds only committed transactions";
    assert!(chain.unknown.iter().any(|unknown| unknown.starts_with(words)));
    let sum: i64 = chain.waits.iter().map(|wait| wait.ns).sum();
    assert_eq!(chain.tick.created_ns + sum, chain.transaction.sealed_ns.unwrap());
    let wanted = SlowestOptions { count: 10, window: Window::default(), partition: None };
    let found = slowest(&recording.log, &options(), wanted, &mut |_| {}).unwrap();
    assert!(found.signals.is_empty() && found.without_commit > 100);
}

#[test]
fn a_batch_and_a_lane_are_explained() {
    let recording = record(plan(54));
    let log = &recording.log;
    let chain = why_batch(log, &options(), 0, 5, &mut |_| {}).unwrap();
    assert_eq!(chain.batch.batch, 5);
    assert_eq!(chain.parts.iter().map(|part| part.rows).sum::<i64>(), chain.batch.rows);
    let completed = chain.batch.completed.unwrap();
    assert_eq!(chain.total_ns, completed.at_ns - chain.batch.oldest_arrival_ns);
    for part in &chain.parts {
        let symbols = part.symbols.as_ref().expect("the ticks are there");
        let ticks: i64 = symbols.iter().map(|symbol| symbol.rows).sum();
        assert!(0 < ticks && ticks <= part.rows && symbols[0].rows > 0, "{part:?}");
        assert!(symbols.iter().all(|symbol| group_of(&symbol.symbol, 3) as i32 == part.group), "{part:?}");
    }
    assert!(chain.sealed_sequence > Some(completed.sequence) && chain.explanation.is_some());
    let error = why_batch(log, &options(), 0, 1_000_000, &mut |_| {}).unwrap_err();
    assert!(matches!(error, ReplayError::NoBatch { batch: 1_000_000, .. }), "{error}");

    let last = records(log, "journal", 0).len() as i64 - 1;
    let lane = |lane: LaneName, at: Bound| why_lane(log, "journal", 0, &lane, at);
    let found = lane(LaneName::Index(1), Bound::Sequence(last)).unwrap();
    assert_eq!((found.at.sequence, found.lane.load.lane), (last - 1, 1));
    let times = found.row_times.iter().map(|time| time.lane).collect::<Vec<_>>();
    assert_eq!((times, found.decided.len(), found.lane.groups_max), (vec![0, 1], 0, Some(4)));
    let groups = found.lane.load.groups_placed as usize + found.lane.elsewhere.len();
    assert_eq!(groups, 2 * 3, "partitions, groups");
    let by_device = lane(LaneName::Device("CPU:1".to_owned()), Bound::Sequence(last)).unwrap();
    assert_eq!((by_device.lane, by_device.device.as_str()), (found.lane, "cpu:1"));
    let error = lane(LaneName::Device("cpu:9".to_owned()), Bound::Sequence(last)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no lane \"cpu:9\"; the process has the lanes 0 (cpu:0), 1 (cpu:1)"
    );
    assert!(matches!(lane(LaneName::Index(2), Bound::Sequence(last)), Err(ReplayError::NoLane { .. })));
    let at = |at: Bound| lane(LaneName::Index(0), at);
    assert!(matches!(at(Bound::Offset(0)), Err(ReplayError::NothingBefore { .. })));
    // The end is after the last entry, and nothing is after the end.
    assert_eq!(at(Bound::Sequence(last + 1)).unwrap().at.sequence, last);
    assert_eq!(at(Bound::Offset(last + 1)).unwrap().at.sequence, last);
    for beyond in [Bound::Sequence(last + 2), Bound::Offset(last + 2), Bound::Time(i64::MAX)] {
        assert!(matches!(at(beyond), Err(ReplayError::OutsideJournal { .. })), "{beyond:?}");
    }
}

/// Finds batches in the last of two lives with the same batch numbers. A search that reads all entries up to a batch
/// reports progress; a search that leaps reads a few thousand entries, wherever the batch is.
#[test]
fn a_batch_far_back_is_found_in_the_last_life_without_reading_what_is_behind_it() {
    const BATCHES: i64 = 12_000;
    let mut journal = Scheduled::new(|_| {});
    let mut dispatched = Vec::new();
    for life in 0..2 {
        if life > 0 {
            journal.start();
        }
        dispatched = (0..BATCHES)
            .map(|number| {
                if number % 3_000 == 2_999 {
                    journal.checkpoint();
                }
                journal.work(1_000).0
            })
            .collect::<Vec<_>>();
    }
    let log = journal.log();
    let mut most = 0;
    for number in [0, 1, 500, 2_998, 2_999, 3_000, 5_777, BATCHES - 2, BATCHES - 1] {
        let mut words = 0;
        let chain = why_batch(log, &options(), 0, number, &mut |_| words += 1).unwrap();
        assert_eq!((chain.batch.batch, chain.batch.at.sequence), (number, dispatched[number as usize]));
        most = most.max(words);
    }
    assert!(most <= 3, "{most} times 4,096 of {} entries were read", 2 * BATCHES);
    let error = why_batch(log, &options(), 0, BATCHES, &mut |_| {}).unwrap_err();
    assert!(matches!(error, ReplayError::NoBatch { batch: BATCHES, .. }), "{error}");
}

/// Brokers may assign create times; the journal is then searched.
#[test]
fn a_signal_is_explained_whatever_its_create_time() {
    let recording = record(plan(56));
    let mut signals = records(&recording.log, "signals", 1);
    let expected = why_signal(&recording.log, &options(), 1, 20, &mut |_| {}).unwrap();
    signals.iter_mut().for_each(|signal| signal.timestamp_ns = 1);
    let log = Tampered::new(&recording.log, "signals", 1, signals);
    let found = why_signal(&log, &options(), 1, 20, &mut |_| {}).unwrap();
    assert_eq!(serde_json::to_value(&found).unwrap(), serde_json::to_value(&expected).unwrap());
}

/// Removed entries are not replaced by guesses, and the waits still add up.
#[test]
fn what_was_removed_from_the_journal_is_unknown() {
    let recording = record(Plan { lives: 1, ..plan(57) });
    let log = &recording.log;
    let journal = records(log, "journal", 0);
    let last = records(log, "signals", 0).len() as i64 - 1;
    let whole = why_signal(log, &options(), 0, last, &mut |_| {}).unwrap();
    // Only the `Sealed` entry and the entries after it remain.
    let sealed = whole.transaction.sealed_sequence as usize;
    let log = Tampered::trimmed(log, "journal", 0, journal[sealed..].to_vec());
    let found = why_signal(&log, &options(), 0, last, &mut |_| {}).unwrap();
    assert_eq!((found.total_ns, found.is_to_commit), (whole.total_ns, true));
    assert_eq!(found.waits.iter().map(|wait| wait.ns).sum::<i64>(), found.total_ns);
    assert!(found.arrival.is_none() && found.batch.is_none() && found.explanation.is_none());
    assert!(found.unknown.iter().any(|unknown| unknown.starts_with("when the record arrived")), "{found:?}");
}

#[test]
fn what_is_not_there_is_named() {
    let recording = record(plan(55));
    let error = why_signal(&recording.log, &options(), 0, 1_000_000, &mut |_| {}).unwrap_err();
    assert!(
        error.to_string().contains("signals\" partition 0 has no usable record at offset 1000000"),
        "{error}"
    );
    let error = why_signal(&recording.log, &options(), 9, 0, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("the partition does not exist"), "{error}");
}
