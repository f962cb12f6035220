//! Producers with different partitioners: a symbol in two partitions becomes two series, and the user is warned.

use warptape_eventlog::{Durability, EventLog, NewRecord, SqliteLog, TopicSpec};

use super::endpoint::{get, scrape, url_of};
use super::kafka_poison::tick;
use super::processes::{Running, folder, run_until_drained};

const RUN: [&str; 5] = ["run", "--log", "sqlite:w.db", "--listen", "127.0.0.1:0"];

fn publish(log: &SqliteLog, partition: i32, numbers: std::ops::RangeInclusive<i64>) {
    let mut producer = log.producer("test").expect("a producer");
    producer.begin().expect("a transaction");
    for number in numbers {
        let value = tick(number).into();
        let record = NewRecord { topic: "ticks".into(), partition, value, ..NewRecord::default() };
        producer.send(record).expect("a record of the transaction");
    }
    producer.commit().expect("a commit");
}

#[test]
fn a_symbol_in_two_partitions_is_told_of_everywhere() {
    let folder = folder();
    let log = SqliteLog::open(folder.path().join("w.db"), Durability::Process).expect("a new log");
    let ticks = TopicSpec { name: "ticks".to_owned(), partitions: 3, ..TopicSpec::default() };
    log.create_topics(&[ticks]).expect("a new topic");
    publish(&log, 0, 1..=20);
    let mut run = Running::start(folder.path(), &RUN);
    run_until_drained(&mut run, &log, "warptape");
    let url = url_of(&mut run);
    let shows = |url: &str, count: f64| (scrape(url)["warptape_split_symbols"] == count).then_some(());
    run.run_until("it is shown", || shows(&url, 0.0));
    assert!(!get(&url, "/health", &[]).1.contains("partitioner"));

    // Four of the seven symbols are published twice each; the second time adds nothing.
    publish(&log, 2, 1..=4);
    publish(&log, 2, 8..=11);
    run_until_drained(&mut run, &log, "warptape");
    run.run_until("it is shown", || shows(&url, 4.0));
    // Health is sampled, so the warning appears with a delay.
    run.run_until("health tells of it", || {
        let health = get(&url, "/health", &[]).1;
        (health.contains("\"partitioner\"") && health.contains("A:S1 in 0 and 2")).then_some(())
    });
    assert_eq!(get(&url, "/readyz", &[]).0, 200, "it works all the same");
    run.await_saying("symbols in two partitions");
    let summary = run.stop("TERM");
    assert!(summary.contains("split      symbols in two partitions: 4, the first being A:S1"), "{summary}");

    // Restored symbols also count.
    let mut run = Running::start(folder.path(), &RUN);
    let url = url_of(&mut run);
    publish(&log, 0, 21..=21);
    publish(&log, 2, 12..=12);
    run.run_until("it is shown", || shows(&url, 5.0));
    run.stop("TERM");
}
