//! Offsets of a group that expired or were set on a real broker, and ticks that its retention removed.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use rdkafka::admin::{AdminOptions, AlterConfig, ResourceSpecifier};
use warptape_engine::AcceptedLoss;
use warptape_eventlog::{Durability, EventLog, KafkaLog, SqliteLog, TopicPartition};
use warptape_pipeline::publisher::{Publisher, create_missing_topics};
use warptape_pipeline::runtime::{EngineConfig, TopicPlan, Topics};
use warptape_tests::engine_run::{self, read_partition, run_to_end, topic_ends};

use crate::kafka::{MARKERS_MAX, admin, await_answer, broker, unique};
use crate::offsets::{PARTITIONS, config, set_offsets, ticks, try_run, verified};

const BATCH: NonZeroUsize = NonZeroUsize::new(1).unwrap();

/// Returns a log with topics of its own, and the configuration of its group.
fn cluster(name: &str) -> (Arc<dyn EventLog>, EngineConfig) {
    let mut config = config();
    config.core.group = unique(name);
    config.core.topics = Topics::new(&config.core.group);
    let log: Arc<dyn EventLog> = Arc::new(KafkaLog::open(broker()).expect("a broker"));
    let plan = TopicPlan::new(PARTITIONS);
    create_missing_topics(log.as_ref(), &config.core.topics, &plan).expect("new topics");
    (log, config)
}

fn feed(log: &Arc<dyn EventLog>, config: &EngineConfig, numbers: Range<i64>) {
    let (id, topic) = (format!("{}feed", config.core.group), &config.core.topics.ticks);
    let publisher = Publisher::new(log, &id, topic, PARTITIONS, BATCH, Box::new(|| None));
    let mut publisher = publisher.expect("the log takes a producer");
    ticks(numbers).for_each(|tick| publisher.push(tick).expect("the tick is valid"));
    publisher.flush().expect("the log takes the ticks");
}

/// Returns the number of signals of a run that loses nothing.
fn signals_of(numbers: Range<i64>) -> usize {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = SqliteLog::open(folder.path().join("log.db"), Durability::Process).expect("a log");
    let log: Arc<dyn EventLog> = Arc::new(log);
    engine_run::feed(&log, PARTITIONS, 1, ticks(numbers));
    run_to_end(&log, config());
    signals(log.as_ref(), &config())
}

fn signals(log: &dyn EventLog, config: &EngineConfig) -> usize {
    (0..PARTITIONS).map(|partition| read_partition(log, &config.core.topics.signals, partition).len()).sum()
}

/// Makes the broker remove all current records of a topic because of their age, and then keep later ones.
fn age(log: &dyn EventLog, topic: &str) {
    keep_for(topic, "1");
    let since = Instant::now();
    let is_left = |partition| {
        let range = log.offsets(&TopicPartition { topic: topic.to_owned(), partition }).expect("the log");
        range.first < range.next
    };
    while (0..PARTITIONS).any(is_left) {
        assert!(since.elapsed() < MARKERS_MAX, "the broker keeps what is too old");
        std::thread::yield_now();
    }
    keep_for(topic, "-1");
}

fn keep_for(topic: &str, retention_ms: &str) {
    let altered = AlterConfig::new(ResourceSpecifier::Topic(topic)).set("retention.ms", retention_ms);
    let answer = await_answer(admin().alter_configs([&altered], &AdminOptions::new()));
    assert!(answer.expect("the broker answers").iter().all(Result::is_ok));
}

#[test]
fn a_group_s_offsets_that_expired_or_were_set_are_not_believed() {
    let (log, config) = cluster("believed");
    let (topics, group) = (&config.core.topics, &config.core.group);
    for (piece, change) in (0..).zip(["none", "expired", "back", "ahead", "none"]) {
        feed(&log, &config, piece * 200..(piece + 1) * 200);
        let ends = topic_ends(log.as_ref(), &topics.ticks);
        match change {
            "expired" => {
                let answer = await_answer(admin().delete_groups(&[group], &AdminOptions::new()));
                assert!(answer.expect("the broker answers").iter().all(Result::is_ok));
            }
            "back" => set_offsets(log.as_ref(), group, &topics.ticks, |_| 3),
            "ahead" => {
                set_offsets(log.as_ref(), group, &topics.ticks, |partition| ends[partition as usize].1)
            }
            _ => {}
        }
        run_to_end(&log, config.clone());
        verified(log.as_ref(), &config);
    }
    assert_eq!(signals(log.as_ref(), &config), signals_of(0..1_000));
    let mut other = config.clone();
    other.core.group = unique("other");
    let error = try_run(&log, other.clone()).expect_err("the log has another group").to_string();
    assert!(error.contains(group) && error.contains(&other.core.group), "{error}");
}

#[test]
fn what_retention_removes_is_covered_by_snapshots_folded_without_or_given_up() {
    let (log, config) = cluster("removed");
    let topics = &config.core.topics;
    feed(&log, &config, 0..300);
    run_to_end(&log, config.clone());
    age(log.as_ref(), &topics.ticks);
    // The snapshots cover everything that was processed.
    feed(&log, &config, 300..600);
    run_to_end(&log, config.clone());
    verified(log.as_ref(), &config);
    assert_eq!(signals(log.as_ref(), &config), signals_of(0..600));
    // The snapshots are void with other stages.
    let mut other = config.clone();
    other.core.stages = engine_run::stage_config(&["1s", "tick:7"]);
    other.core.new_segment = true;
    run_to_end(&log, other.clone());
    feed(&log, &other, 600..700);
    run_to_end(&log, other.clone());
    verified(log.as_ref(), &other);
    // These ticks are not read by any process.
    feed(&log, &other, 700..800);
    age(log.as_ref(), &topics.ticks);
    feed(&log, &other, 800..900);
    let error = try_run(&log, other.clone()).expect_err("ticks are lost").to_string();
    assert!(error.contains("--accept-loss 0:"), "{error}");
    let accepting = {
        let mut accepting = other.clone();
        accepting.core.accepted_loss = AcceptedLoss::Removed;
        accepting
    };
    run_to_end(&log, accepting);
    let told = verified(log.as_ref(), &other).to_string();
    assert!(told.contains("were given up"), "{told}");
    run_to_end(&log, other.clone());
    verified(log.as_ref(), &other);
}

#[test]
fn a_new_group_begins_with_the_first_ticks_that_retention_has_left() {
    let (log, config) = cluster("begun");
    feed(&log, &config, 0..300);
    age(log.as_ref(), &config.core.topics.ticks);
    feed(&log, &config, 300..600);
    run_to_end(&log, config.clone());
    let told = verified(log.as_ref(), &config).to_string();
    assert!(told.contains("ticks/0: records 0 to "), "{told}");
    assert!(signals(log.as_ref(), &config) > 50);
}
