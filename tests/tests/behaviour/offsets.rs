//! The engine does not trust the group's committed offsets. They may be set from outside, have expired, or belong to
//! another group. The log may also have removed ticks.

use std::path::Path;
use std::sync::Arc;

use crossbeam_channel::bounded;
use warptape_engine::AcceptedLoss;
use warptape_eventlog::sqlite::PortableFile;
use warptape_eventlog::{Durability, EventLog, SqliteLog, TopicPartition};
use warptape_pipeline::runtime::{EngineConfig, EngineError, Progress, Stop, Summary, Topics, run};
use warptape_replay::{Report, VerifyOptions, verify};
use warptape_schemas::tick::{Scales, Side, Tick, TickKind};
use warptape_tests::engine_run::{engine_config, feed, read_partition, run_to_end, stage_config, topic_ends};

pub const PARTITIONS: i32 = 2;
const LANES: i32 = 2;
const MILLISECOND_NS: i64 = 1_000_000;
const START_NS: i64 = 1_700_000_000_000_000_000;

/// Returns trades of some symbols, one every 50 milliseconds.
pub fn ticks(numbers: std::ops::Range<i64>) -> impl Iterator<Item = Tick> {
    numbers.map(|number| Tick {
        symbol: format!("SIM:S{}", number * 7 % 11),
        kind: TickKind::Trade,
        event_time_ns: START_NS + number * 50 * MILLISECOND_NS,
        receive_time_ns: 0,
        trade_id: 0,
        side: Side::None,
        price_e9: 100_000_000_000 + number * 37 % 1_000 * MILLISECOND_NS,
        size_e9: 1_000_000_000,
        bid_price_e9: 0,
        bid_size_e9: 0,
        ask_price_e9: 0,
        ask_size_e9: 0,
        scales: Scales::E9,
    })
}

pub fn config() -> EngineConfig {
    let mut config = engine_config(stage_config(&["1s", "tick:5"]), LANES);
    config.core.times.commit_interval_ns = 5 * MILLISECOND_NS;
    config.core.limits.snapshot_interval_records = 40;
    config.poll_records_max = 16;
    config
}

fn open(path: &Path) -> Arc<dyn EventLog> {
    Arc::new(SqliteLog::open(path, Durability::Process).expect("a log"))
}

/// Runs an engine until it reaches the ends of the log, or gives up.
pub fn try_run(log: &Arc<dyn EventLog>, config: EngineConfig) -> Result<Summary, EngineError> {
    let ends = |topic: &str| topic_ends(log.as_ref(), topic);
    let topics = &config.core.topics;
    let stop_at = Stop::At { ticks: ends(&topics.ticks), requests: ends(&topics.risk_requests) };
    let (stop, stopped) = bounded(1);
    stop.send(stop_at).expect("the receiver is here");
    run(log.clone(), config, Arc::new(Progress::new(LANES as usize)), stopped)
}

/// Key and value of a record.
type Output = (Option<Vec<u8>>, Vec<u8>);

/// Returns the keys and values of all outputs, by topic and partition.
fn outputs(log: &dyn EventLog, topics: &Topics) -> Vec<Vec<Output>> {
    let topics = [&topics.signals, &topics.late, &topics.dead_letter];
    let places = topics.iter().flat_map(|topic| (0..PARTITIONS).map(move |partition| (topic, partition)));
    let read = |(topic, partition): (&&String, i32)| {
        let records = read_partition(log, topic, partition).into_iter();
        records.map(|record| (record.key, record.value)).collect()
    };
    places.map(read).collect()
}

/// Asserts that two logs have the same outputs.
#[track_caller]
fn assert_alike(one: &dyn EventLog, other: &dyn EventLog, topics: &Topics) {
    for (one, other) in outputs(one, topics).iter().zip(outputs(other, topics)) {
        let first = one.iter().zip(&other).position(|(one, other)| one != other);
        assert_eq!(
            (first, one.len()),
            (None, other.len()),
            "where the first differs, and how many there are"
        );
    }
}

#[track_caller]
pub fn verified(log: &dyn EventLog, config: &EngineConfig) -> Report {
    let options =
        VerifyOptions { outputs: true, ..VerifyOptions::new(&config.core.topics, &config.core.group) };
    let report = verify(log, &options, &mut |_| {}).expect("the log can be read");
    assert!(report.is_identical(), "{report}");
    report
}

/// Sets the offsets of a group that has no members.
pub fn set_offsets(log: &dyn EventLog, group: &str, topic: &str, offsets: impl Fn(i32) -> i64) {
    let mut producer = log.producer(&format!("{group}-somebody")).expect("a producer");
    producer.begin().expect("a transaction");
    for partition in 0..PARTITIONS {
        let source = TopicPartition { topic: topic.to_owned(), partition };
        producer.send_position(group, &source, offsets(partition)).expect("it is taken");
    }
    producer.commit().expect("it is committed");
}

#[test]
fn offsets_that_somebody_has_set_are_not_believed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let whole = open(&folder.path().join("whole.db"));
    feed(&whole, PARTITIONS, 1, ticks(0..2_000));
    run_to_end(&whole, config());
    let log = open(&folder.path().join("log.db"));
    let (topics, group) = (config().core.topics, config().core.group);
    for piece in 0..4 {
        feed(&log, PARTITIONS, 1, ticks(piece * 500..(piece + 1) * 500));
        let ends = topic_ends(log.as_ref(), &topics.ticks);
        // The offsets are set to the beginning, to a third, and to the end.
        match piece {
            1 => set_offsets(log.as_ref(), &group, &topics.ticks, |_| 0),
            2 => set_offsets(log.as_ref(), &group, &topics.ticks, |partition| ends[partition as usize].1 / 3),
            3 => set_offsets(log.as_ref(), &group, &topics.ticks, |partition| ends[partition as usize].1),
            _ => {}
        }
        run_to_end(&log, config());
        verified(log.as_ref(), &config());
    }
    assert_alike(log.as_ref(), whole.as_ref(), &topics);
    // Set offsets are corrected even if no further records come.
    let right = |partition| log.committed(&group, &TopicPartition { topic: topics.ticks.clone(), partition });
    let before: Vec<_> = (0..PARTITIONS).map(|partition| right(partition).expect("an offset")).collect();
    set_offsets(log.as_ref(), &group, &topics.ticks, |_| 1);
    set_offsets(log.as_ref(), &group, &topics.risk_requests, |_| 0);
    run_to_end(&log, config());
    let after: Vec<_> = (0..PARTITIONS).map(|partition| right(partition).expect("an offset")).collect();
    assert_eq!(after, before);
    verified(log.as_ref(), &config());
}

#[test]
fn a_second_group_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = open(&folder.path().join("log.db"));
    feed(&log, PARTITIONS, 1, ticks(0..300));
    run_to_end(&log, config());
    let before: Vec<usize> = outputs(log.as_ref(), &config().core.topics).iter().map(Vec::len).collect();
    let mut other = config();
    other.core.group = "other".to_owned();
    let error = try_run(&log, other).expect_err("the log has another group").to_string();
    for told in ["\"warptape\"", "\"other\"", "engine.group = \"warptape\"", "topics.prefix"] {
        assert!(error.contains(told), "{told} is missing in {error}");
    }
    let after: Vec<usize> = outputs(log.as_ref(), &config().core.topics).iter().map(Vec::len).collect();
    assert_eq!(after, before);
    verified(log.as_ref(), &config());
}

/// Value that marks a topic as recreated, instead of offsets of its first remaining records.
const ANEW: [i64; 2] = [-1; 2];

/// Returns a copy of a log without the first records of some topics. `lost` has the first remaining offsets of each
/// topic.
fn trimmed(from: &dyn EventLog, to: &Path, lost: &[(&str, [i64; 2])]) -> Arc<dyn EventLog> {
    let mut copy = PortableFile::create(to).expect("a new file");
    for info in from.topics().expect("the log is readable") {
        copy.add_topic(&info.spec).expect("a new topic");
        for (partition, range) in (0..).zip(info.offsets) {
            let at = TopicPartition { topic: info.spec.name.clone(), partition };
            let mut records = read_partition(from, &at.topic, partition);
            let first = lost.iter().find(|(topic, _)| *topic == at.topic);
            if first.is_some_and(|(_, first)| *first == ANEW) {
                continue;
            }
            if let Some((_, first)) = first {
                let first = first[partition as usize].min(range.next);
                records.retain(|record| record.offset >= first);
                copy.remove_before(&at, first).expect("it is empty");
            }
            copy.append(&at, &records).expect("the disk takes it");
            copy.skip_to(&at, range.next).expect("the disk takes it");
            if let Some(next) = from.committed(&config().core.group, &at).expect("the log is readable") {
                copy.commit(&config().core.group, &at, next).expect("the disk takes it");
            }
        }
    }
    copy.finish().expect("the disk takes it");
    open(to)
}

/// Returns the end offset of the ticks in each partition.
fn tick_ends(log: &dyn EventLog) -> [i64; 2] {
    let ends = topic_ends(log, "ticks");
    [ends[0].1, ends[1].1]
}

/// Returns a log that was processed to its end, and the end offsets of its ticks.
fn processed(path: &Path, count: i64) -> (Arc<dyn EventLog>, [i64; 2]) {
    let log = open(path);
    feed(&log, PARTITIONS, 1, ticks(0..count));
    run_to_end(&log, config());
    let ends = tick_ends(log.as_ref());
    (log, ends)
}

#[test]
fn a_log_that_lost_its_beginning_is_processed_from_the_first_record_that_is_left() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = open(&folder.path().join("whole.db"));
    feed(&log, PARTITIONS, 1, ticks(0..1_000));
    let first = tick_ends(log.as_ref()).map(|end| end / 3);
    let log = trimmed(log.as_ref(), &folder.path().join("trimmed.db"), &[("ticks", first)]);
    run_to_end(&log, config());
    let report = verified(log.as_ref(), &config());
    assert!(report.outputs.expect("they are compared").signals > 100, "{report}");
    let told = report.to_string();
    for (partition, first) in first.into_iter().enumerate() {
        let given_up = format!("ticks/{partition}: records 0 to {} were given up", first - 1);
        assert!(told.contains(&given_up), "{given_up:?} is missing in {told}");
    }
    // Another stage configuration folds the remaining ticks again, and begins a segment.
    feed(&log, PARTITIONS, 1, ticks(1_000..1_500));
    let mut other = config();
    other.core.stages = stage_config(&["1s", "tick:7"]);
    other.core.new_segment = true;
    run_to_end(&log, other.clone());
    feed(&log, PARTITIONS, 1, ticks(1_500..1_600));
    run_to_end(&log, other.clone());
    assert!(verified(log.as_ref(), &other).to_string().contains("another stage configuration"));
}

#[test]
fn where_snapshots_stand_for_removed_ticks_nothing_is_lost() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (whole, ends) = processed(&folder.path().join("whole.db"), 1_000);
    let log = trimmed(whole.as_ref(), &folder.path().join("trimmed.db"), &[("ticks", ends)]);
    for log in [&whole, &log] {
        feed(log, PARTITIONS, 1, ticks(1_000..1_500));
        run_to_end(log, config());
    }
    let topics = config().core.topics;
    assert_alike(log.as_ref(), whole.as_ref(), &topics);
    verified(log.as_ref(), &config());
}

#[test]
fn without_snapshots_the_state_is_that_of_the_ticks_that_are_left() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (whole, ends) = processed(&folder.path().join("whole.db"), 1_000);
    let lost = [("ticks", ends.map(|end| end / 2)), ("snapshots", [i64::MAX; 2])];
    let log = trimmed(whole.as_ref(), &folder.path().join("trimmed.db"), &lost);
    feed(&log, PARTITIONS, 1, ticks(1_000..1_500));
    run_to_end(&log, config());
    let told = verified(log.as_ref(), &config()).to_string();
    let anew = format!("the state is computed from offset {} on", ends[0] / 2);
    assert!(told.contains(&anew), "{anew:?} is missing in {told}");
    // The next process life continues from its own snapshots.
    feed(&log, PARTITIONS, 1, ticks(1_500..1_600));
    run_to_end(&log, config());
    assert!(verified(log.as_ref(), &config()).to_string().contains(&anew));
}

#[test]
fn ticks_that_were_removed_unread_are_given_up_only_when_that_is_said() {
    for keeps_snapshots in [true, false] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (whole, ends) = processed(&folder.path().join("whole.db"), 1_000);
        feed(&whole, PARTITIONS, 1, ticks(1_000..1_300));
        let first = tick_ends(whole.as_ref());
        feed(&whole, PARTITIONS, 1, ticks(1_300..1_600));
        let snapshots = if keeps_snapshots { [0; 2] } else { [i64::MAX; 2] };
        let lost = [("ticks", first), ("snapshots", snapshots)];
        let log = trimmed(whole.as_ref(), &folder.path().join("trimmed.db"), &lost);
        let error = try_run(&log, config()).expect_err("records are lost").to_string();
        let [from, to] = [ends[0], first[0]];
        let command = format!("--accept-loss 0:{to},1:{}", first[1]);
        for told in [&command, &format!("ticks/0 was processed up to offset {from} and begins at {to}")] {
            assert!(error.contains(told), "{told:?} is missing in {error}");
        }
        // Accepting only some of the losses is not enough.
        let mut accepting = config();
        accepting.core.accepted_loss = AcceptedLoss::Before([(0, first[0]), (1, first[1] - 1)].into());
        try_run(&log, accepting.clone()).expect_err("records of the other partition are lost");
        accepting.core.accepted_loss = AcceptedLoss::Before([(0, first[0]), (1, first[1])].into());
        run_to_end(&log, accepting);
        let told = verified(log.as_ref(), &config()).to_string();
        let given_up = format!("ticks/0: records {from} to {} were given up", to - 1);
        assert!(told.contains(&given_up), "{given_up:?} is missing in {told}");
        // The loss needs to be accepted only once, because the journal records it.
        feed(&log, PARTITIONS, 1, ticks(1_600..1_700));
        run_to_end(&log, config());
        verified(log.as_ref(), &config());
    }
}

#[test]
fn outputs_that_no_journal_accounts_for_are_not_made_again() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (whole, ends) = processed(&folder.path().join("whole.db"), 1_000);
    let log = trimmed(whole.as_ref(), &folder.path().join("trimmed.db"), &[("journal", ANEW)]);
    for log in [&whole, &log] {
        feed(log, PARTITIONS, 1, ticks(1_000..1_500));
    }
    let error = try_run(&log, config()).expect_err("nobody knows how far it was").to_string();
    for (partition, end) in ends.into_iter().enumerate() {
        let told = format!(
            "ticks/{partition}: the journals account for no records, but there are outputs of records before offset "
        );
        assert!(error.contains(&told) && error.contains(&format!("has committed offset {end}")), "{error}");
    }
    assert!(error.contains("`warptape run --accept-loss 0:"), "{error}");
    let mut accepting = config();
    accepting.core.accepted_loss = AcceptedLoss::Before([(0, ends[0]), (1, ends[1])].into());
    run_to_end(&log, accepting);
    run_to_end(&whole, config());
    let topics = config().core.topics;
    assert_alike(log.as_ref(), whole.as_ref(), &topics);
    verified(log.as_ref(), &config());
}
