//! Tests of the log on Kafka with real brokers: the conformance checks, and faulty brokers, members and networks.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;

use warptape_eventlog::kafka::GroupProtocol;
use warptape_eventlog::{
    Consumer, EventLog, Fetched, KafkaLog, KafkaOptions, LogError, NewRecord, PartitionEnd, Record,
    RecordClock, TopicPartition, UNREADABLE_BATCH_HEADER, UnreadableBatch, conformance,
};

use crate::broker::{Broker, let_pass, service, shared, shared_log, unique};
use crate::{ARRIVAL_MAX, at, await_records, commit, record, topic};

const POLL: Duration = Duration::from_millis(100);
const ANY: usize = usize::MAX;

#[test]
fn conformance_of_kafka() {
    let broker = Broker::start("conformance");
    let log = KafkaLog::open(patient(&broker)).unwrap();
    for (name, check) in conformance::CHECKS {
        let started = Instant::now();
        check(&log);
        println!("{name}: {} ms", started.elapsed().as_millis());
    }
}

/// Polls until `done` returns true for a result.
fn poll_until(consumer: &mut dyn Consumer, mut done: impl FnMut(Fetched) -> bool) {
    let started = Instant::now();
    while !done(consumer.poll(POLL, 100, ANY).unwrap()) {
        assert!(started.elapsed() < ARRIVAL_MAX, "it did not come");
    }
}

/// Returns all records of a partition whose transactions have ended. It writes a last record to find the end, and
/// removes that from the result.
fn values(log: &dyn EventLog, source: &TopicPartition) -> Vec<String> {
    const LAST: &str = "the last one";
    let TopicPartition { topic, partition } = source;
    commit(&mut *log.producer(&unique("values")).unwrap(), [record(topic, *partition, LAST)]);
    let mut reader = log.reader(std::slice::from_ref(source)).unwrap();
    let mut values = Vec::new();
    poll_until(&mut *reader, |fetched| {
        if let Fetched::Records { records, .. } = fetched {
            values.extend(records.into_iter().map(|record| String::from_utf8(record.value).unwrap()));
        }
        values.last().is_some_and(|last| last == LAST)
    });
    values.retain(|value| value != LAST);
    values
}

#[test]
fn the_end_of_what_is_written_is_reached_when_transactions_have_ended() {
    let log = shared_log();
    let name = unique("written");
    topic(&log, &name, 2);
    let source = at(&name, 0);
    let mut reader = log.reader(std::slice::from_ref(&source)).unwrap();
    let mut producer = log.producer(&unique("written")).unwrap();
    producer.begin().unwrap();
    producer.send(record(&source.topic, 0, "one")).unwrap();
    let started = Instant::now();
    while log.written_end(&source).unwrap() == 0 {
        assert!(started.elapsed() < ARRIVAL_MAX, "it is not written");
    }
    assert_eq!(reader.offsets(&source).unwrap().next, 0, "it can be read");
    let ends = |readable, written| vec![PartitionEnd::default(), PartitionEnd { readable, written }];
    let both = [at(&name, 1), source.clone()];
    assert_eq!(log.ends(&both).unwrap(), ends(0, 1));
    producer.commit().unwrap();
    // The record, plus the commit marker, which is written a little later.
    let end = 2;
    while log.ends(&both).unwrap() != ends(end, end) {
        assert!(started.elapsed() < ARRIVAL_MAX, "{:?} after the commit", log.ends(&both));
    }
    assert_eq!(log.written_end(&source).unwrap(), end);
    assert!(log.ends(&[at(&name, 7)]).is_err(), "a partition that is not there");
    poll_until(&mut *reader, |fetched| matches!(fetched, Fetched::Records { .. }));
    while reader.position(&source).unwrap() < end {
        assert!(started.elapsed() < ARRIVAL_MAX, "the end is not reached");
        reader.poll(POLL, 100, ANY).unwrap();
    }
}

/// Intervals in which members owned partitions, in the order of the members' events.
#[derive(Default)]
struct Ownership(Mutex<BTreeMap<TopicPartition, &'static str>>);

impl Ownership {
    fn take(&self, who: &'static str, partitions: &[TopicPartition]) {
        for partition in partitions {
            let before = self.0.lock().unwrap().insert(partition.clone(), who);
            assert_eq!(before, None, "{partition:?} was given to {who} before it was given up");
        }
    }

    fn give_up(&self, who: &'static str, partitions: &[TopicPartition]) {
        for partition in partitions {
            assert_eq!(self.0.lock().unwrap().remove(partition), Some(who), "{partition:?}");
        }
    }
}

/// Runs a member that copies records from one topic to another, with one transaction per poll, until told to stop. It
/// reports each copy.
fn copy(
    options: KafkaOptions,
    who: &'static str,
    [from, to]: [&str; 2],
    owners: &Ownership,
    stop: &AtomicBool,
    copied: &mpsc::Sender<(&'static str, usize)>,
) {
    let log = KafkaLog::open(options).unwrap();
    let mut consumer = log.subscribe(from, &[from]).unwrap();
    let mut producer = log.producer(&format!("{to}.{who}")).unwrap();
    // The next poll hands a revoked partition over; no other member gets it before that.
    let mut leaving = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        owners.give_up(who, &std::mem::take(&mut leaving));
        match consumer.poll(POLL, 50, ANY).unwrap() {
            Fetched::Assigned(partitions) => owners.take(who, &partitions),
            Fetched::Revoked(partitions) => leaving = partitions,
            Fetched::Lost(partitions) => panic!("{who} lost {partitions:?}"),
            Fetched::Idle => {}
            Fetched::Records { source, records } => {
                producer.begin().unwrap();
                for read in &records {
                    producer.send(record(to, source.partition, &read.value)).unwrap();
                }
                let next = records.last().unwrap().offset + 1;
                producer.send_offsets(from, &[(source.clone(), next)]).unwrap();
                match producer.commit() {
                    Ok(()) => copied.send((who, records.len())).unwrap(),
                    // The group was changing: the records are read again.
                    Err(LogError::Aborted { .. }) => {
                        producer.abort().unwrap();
                        let committed = consumer.committed(&source).unwrap().unwrap_or(0);
                        consumer.seek(&source, committed).unwrap();
                    }
                    Err(error) => panic!("{who}: {error}"),
                }
            }
        }
    }
    let partitions: Vec<_> = {
        let owned = owners.0.lock().unwrap();
        owned.iter().filter(|(_, owner)| **owner == who).map(|(partition, _)| partition.clone()).collect()
    };
    owners.give_up(who, &partitions);
}

/// Tells threads to stop when it is dropped, even if a test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Checks two members, one of which joins and leaves while records keep arriving: each record is copied once, in order.
fn check_two_members(protocol: GroupProtocol) {
    const PARTITIONS: i32 = 4;
    /// Number of rounds (one record per partition) that the first member copies alone, before and after the other one's
    /// membership.
    const ALONE: usize = 20;
    /// Session timeout that is long enough for a pause of the machine of some seconds.
    const SESSION: Duration = Duration::from_secs(30);
    let log = shared_log();
    let (from, to) = (unique("members.in"), unique("members.out"));
    topic(&log, &from, PARTITIONS);
    topic(&log, &to, PARTITIONS);
    let options = KafkaOptions { group_protocol: protocol, session_timeout: SESSION, ..shared() };
    let owners = Ownership::default();
    let (stop_first, stop_second) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut rounds = 0;
    std::thread::scope(|scope| {
        let _stop = (Stop(&stop_first), Stop(&stop_second));
        let (copied, heard) = mpsc::channel();
        let names = [from.as_str(), to.as_str()];
        let member = |who, stop| {
            let (options, copied, owners) = (options.clone(), copied.clone(), &owners);
            scope.spawn(move || copy(options, who, names, owners, stop, &copied))
        };
        let mut feed = log.producer(&unique("feed")).unwrap();
        let mut by = BTreeMap::from([("first", 0), ("second", 0)]);
        let started = Instant::now();
        // Feeds one round at a time until `enough` returns true.
        let mut feed_until = |enough: &dyn Fn(&BTreeMap<&str, usize>, usize) -> bool| {
            while !enough(&by, rounds) {
                assert!(started.elapsed() < ARRIVAL_MAX, "{by:?} records were copied, {rounds} rounds fed");
                let records = (0..PARTITIONS).map(|partition| record(&from, partition, rounds.to_string()));
                commit(&mut *feed, records);
                rounds += 1;
                while let Ok((who, count)) = heard.recv_timeout(Duration::from_millis(5)) {
                    *by.get_mut(who).unwrap() += count;
                }
            }
            rounds
        };
        let first = member("first", &stop_first);
        feed_until(&|by, rounds| by["first"] > 0 && rounds >= ALONE);
        let second = member("second", &stop_second);
        feed_until(&|by, _| by["second"] >= ALONE);
        drop(Stop(&stop_second));
        second.join().unwrap();
        let joined = feed_until(&|_, _| true);
        feed_until(&|_, rounds| rounds >= joined + ALONE);
        // No records are added now; otherwise a member slightly behind would never catch up.
        while by.values().sum::<usize>() < rounds * PARTITIONS as usize {
            assert!(started.elapsed() < ARRIVAL_MAX, "{by:?} records were copied of {rounds} rounds");
            if let Ok((who, count)) = heard.recv_timeout(POLL) {
                *by.get_mut(who).unwrap() += count;
            }
        }
        drop(Stop(&stop_first));
        first.join().unwrap();
    });
    let expected: Vec<_> = (0..rounds).map(|round| round.to_string()).collect();
    for partition in 0..PARTITIONS {
        assert_eq!(values(&log, &at(&to, partition)), expected, "partition {partition}");
    }
}

#[test]
fn members_share_partitions_and_hand_them_over() {
    check_two_members(GroupProtocol::Classic);
}

#[test]
fn members_share_partitions_by_the_brokers_protocol() {
    check_two_members(GroupProtocol::Consumer);
}

/// Waits until the broker considers a group stable: its members know their partitions, polled or not.
fn await_settled(group: &str) {
    let mut config = rdkafka::ClientConfig::new();
    let asker: rdkafka::consumer::BaseConsumer =
        config.set("bootstrap.servers", shared().brokers).create().unwrap();
    let started = Instant::now();
    loop {
        // A coordinator that is still loading returns an error.
        let list = rdkafka::consumer::Consumer::fetch_group_list(&asker, Some(group), ARRIVAL_MAX);
        let is_settled =
            |found: &rdkafka::groups::GroupInfo| found.state() == "Stable" && !found.members().is_empty();
        if list.is_ok_and(|list| list.groups().iter().any(is_settled)) {
            return;
        }
        assert!(started.elapsed() < ARRIVAL_MAX, "the group does not settle");
    }
}

#[test]
fn a_member_that_never_polled_can_leave() {
    // A static member leaves without a request, so librdkafka need not wait.
    let options = KafkaOptions { instance_id: Some("a".to_owned()), ..shared() };
    let log = KafkaLog::open(options).unwrap();
    let name = unique("unpolled");
    topic(&log, &name, 2);
    for _ in 0..5 {
        let consumer = log.subscribe(&name, &[&name]).unwrap();
        await_settled(&name);
        let (left, has_left) = mpsc::channel();
        std::thread::spawn(move || {
            drop(consumer);
            left.send(()).unwrap();
        });
        has_left.recv_timeout(ARRIVAL_MAX).expect("it leaves the group");
    }
}

#[test]
fn a_static_member_that_comes_back_gets_its_partitions_back() {
    /// Session timeout that is far longer than a join takes.
    const SESSION: Duration = Duration::from_secs(120);
    let log = shared_log();
    let name = unique("static");
    topic(&log, &name, 2);
    let options = |instance: &str| KafkaOptions {
        instance_id: Some(instance.to_owned()),
        session_timeout: SESSION,
        ..shared()
    };
    let joined = |instance: &str| {
        let log = KafkaLog::open(options(instance)).unwrap();
        let mut consumer = log.subscribe(&name, &[&name]).unwrap();
        let mut assigned = BTreeSet::new();
        poll_until(&mut *consumer, |fetched| {
            if let Fetched::Assigned(partitions) = fetched {
                assigned.extend(partitions);
            }
            assigned.len() == 2
        });
        consumer
    };
    let started = Instant::now();
    drop(joined("a"));
    drop(joined("a"));
    assert!(started.elapsed() < SESSION, "the session timeout passed in between");
    // If two members have the same name, the older one gets an error.
    let mut older = joined("a");
    let _newer = joined("a");
    let started = Instant::now();
    let error = loop {
        assert!(started.elapsed() < ARRIVAL_MAX, "the older member was not told");
        if let Err(error) = older.poll(POLL, ANY, ANY) {
            break error;
        }
    };
    assert!(matches!(error, LogError::MemberFenced { .. }), "{error}");
}

#[test]
fn a_member_that_is_silent_for_too_long_loses_its_partitions() {
    let log = shared_log();
    let name = unique("silent");
    topic(&log, &name, 1);
    let mut options = KafkaOptions { session_timeout: Duration::from_secs(2), ..shared() };
    options.extra.insert("max.poll.interval.ms".to_owned(), "2000".to_owned());
    let log = KafkaLog::open(options).unwrap();
    let mut consumer = log.subscribe(&name, &[&name]).unwrap();
    let source = at(&name, 0);
    poll_until(&mut *consumer, |fetched| matches!(fetched, Fetched::Assigned(_)));
    let_pass(Duration::from_secs(4));
    let mut lost = false;
    poll_until(&mut *consumer, |fetched| {
        lost |= matches!(&fetched, Fetched::Lost(partitions) if *partitions == [source.clone()]);
        lost
    });
    // The next polls make it a member again.
    poll_until(&mut *consumer, |fetched| matches!(fetched, Fetched::Assigned(_)));
    commit(&mut *log.producer(&name).unwrap(), [record(&name, 0, "x")]);
    assert_eq!(await_records(&mut *consumer, 1)[0].1.value, b"x");
}

#[test]
fn a_paused_partition_goes_where_it_is_sent() {
    let log = shared_log();
    let name = unique("paused");
    topic(&log, &name, 1);
    let source = at(&name, 0);
    commit(&mut *log.producer(&name).unwrap(), (0..500).map(|n| record(&name, 0, n.to_string())));
    let mut consumer = log.subscribe(&name, &[&name]).unwrap();
    poll_until(&mut *consumer, |fetched| matches!(fetched, Fetched::Assigned(_)));
    let next = |consumer: &mut dyn Consumer, count: usize| -> Vec<String> {
        let records = await_records(consumer, count);
        records.into_iter().map(|(_, record)| String::from_utf8(record.value).unwrap()).collect()
    };
    // As in the engine, the partition is paused at once, then sought, then resumed.
    consumer.pause(std::slice::from_ref(&source)).unwrap();
    consumer.seek(&source, 100).unwrap();
    assert!(matches!(consumer.poll(POLL, ANY, ANY).unwrap(), Fetched::Idle));
    consumer.resume(std::slice::from_ref(&source)).unwrap();
    assert_eq!(next(&mut *consumer, 2), ["100", "101"]);
    // Records held during the pause are delivered afterwards, once.
    consumer.pause(std::slice::from_ref(&source)).unwrap();
    assert!(matches!(consumer.poll(POLL, ANY, ANY).unwrap(), Fetched::Idle));
    consumer.resume(std::slice::from_ref(&source)).unwrap();
    assert_eq!(next(&mut *consumer, 398), (102..500).map(|n| n.to_string()).collect::<Vec<_>>());
    consumer.seek(&source, 7).unwrap();
    assert_eq!(next(&mut *consumer, 1), ["7"]);
    assert_eq!(consumer.position(&source).unwrap(), 8);
    // Calls for another member's partition are no error, because it may have been revoked.
    consumer.pause(&[at(&name, 7)]).unwrap();
    let error = consumer.seek(&source, 10_000).unwrap_err();
    assert!(matches!(error, LogError::OffsetOutOfRange { offset: 10_000, .. }), "{error}");
}

#[test]
fn records_over_the_limit_are_refused() {
    let log = shared_log();
    let name = unique("large");
    topic(&log, &name, 1);
    let mut producer = log.producer(&name).unwrap();
    producer.begin().unwrap();
    producer.send(record(&name, 0, "small")).unwrap();
    let error = producer.send(record(&name, 0, vec![0; 2 << 20])).unwrap_err();
    assert!(matches!(error, LogError::RecordTooLarge { .. }), "{error}");
    // No accepted record is lost.
    producer.commit().unwrap();
    assert_eq!(values(&log, &at(&name, 0)), ["small"]);

    // If the client's limit is higher, the broker rejects the record, and the transaction is aborted.
    let mut options = shared();
    options.extra.insert("message.max.bytes".to_owned(), "5000000".to_owned());
    let mut producer = KafkaLog::open(options).unwrap().producer(&name).unwrap();
    producer.begin().unwrap();
    producer.send(record(&name, 0, vec![0; 2 << 20])).unwrap();
    let error = producer.commit().unwrap_err();
    assert!(
        matches!(&error, LogError::Aborted { cause, .. } if cause.contains("max.message.bytes")),
        "{error}"
    );
    producer.abort().unwrap();
    // A gap in the sequence of sent records may abort another transaction.
    for attempt in 1.. {
        producer.begin().unwrap();
        producer.send(record(&name, 0, "again")).unwrap();
        match producer.commit() {
            Ok(()) => break,
            Err(LogError::Aborted { .. }) if attempt < 3 => producer.abort().unwrap(),
            Err(error) => panic!("attempt {attempt}: {error}"),
        }
    }
    assert_eq!(values(&log, &at(&name, 0)), ["small", "again"]);
}

/// Writes records of the largest allowed size, and many small ones that would fill one request, to the topic with the
/// lowest limit.
#[test]
fn producers_keep_to_what_each_topic_takes() {
    let broker = Broker::start("limits");
    let options = KafkaOptions::new(&broker.address);
    let log = KafkaLog::open(options.clone()).unwrap();
    let names = ["narrow", "usual", "wide"];
    names.iter().for_each(|name| topic(&log, name, 1));
    broker.alter("narrow", "max.message.bytes=70000");
    broker.alter("wide", "max.message.bytes=5000000");
    broker.alter("usual", "message.timestamp.type=LogAppendTime");
    let clocks = ["narrow", "usual"].map(|name| log.record_clock(name).unwrap());
    assert_eq!(clocks, [Some(RecordClock::Writer), Some(RecordClock::Log)]);
    let limits = log.record_bytes_max(&names).unwrap();
    let taken = [70_000, 1_048_588, 5_000_000];
    assert!(
        limits.iter().zip(taken).all(|(limit, taken)| (taken - 1_000..taken).contains(limit)),
        "{limits:?}"
    );
    let mut producer = log.producer("limits").unwrap();
    producer.begin().unwrap();
    let headers: Vec<_> = (0..5).map(|n| (format!("header {n}"), vec![n; 100])).collect();
    for (name, limit) in names.iter().zip(&limits) {
        let value = vec![7; limit - 5 * (8 + 100) - 3];
        let key = Some(b"key".into());
        let headers = headers.as_slice().into();
        let record =
            NewRecord { topic: (*name).into(), key, headers, value: value.into(), ..NewRecord::default() };
        producer.send(record).unwrap();
    }
    for _ in 0..3_000 {
        producer.send(record("narrow", 0, vec![8; 100])).unwrap();
    }
    producer.commit().unwrap();
    assert_eq!(values(&log, &at("narrow", 0)).len(), 3_001);

    // The client's own limit applies as well.
    let extra = [("message.max.bytes".to_owned(), "60000".to_owned())].into();
    let log = KafkaLog::open(KafkaOptions { extra, ..options }).unwrap();
    let limits = log.record_bytes_max(&names).unwrap();
    assert!(limits.iter().all(|limit| (59_000..60_000).contains(limit)), "{limits:?}");
    let mut producer = log.producer("limits").unwrap();
    producer.begin().unwrap();
    producer.send(record("wide", 0, vec![9; limits[2]])).unwrap();
    producer.commit().unwrap();
}

#[test]
fn a_fenced_producer_stays_fenced() {
    let log = shared_log();
    let name = unique("zombie");
    topic(&log, &name, 1);
    let mut zombie = log.producer(&name).unwrap();
    commit(&mut *zombie, [record(&name, 0, "a")]);
    let mut newer = shared_log().producer(&name).unwrap();
    // Its next call, whatever it is, returns the error.
    zombie.begin().unwrap();
    zombie.send(record(&name, 0, "lost")).unwrap();
    zombie.send_offsets(&name, &[(at(&name, 0), 1)]).unwrap();
    let fenced = |result: Result<(), LogError>| {
        let error = result.unwrap_err();
        assert!(matches!(error, LogError::Fenced { .. }), "{error}");
    };
    fenced(zombie.commit());
    fenced(zombie.abort());
    fenced(zombie.begin());
    commit(&mut *newer, [record(&name, 0, "b")]);
    assert_eq!(values(&log, &at(&name, 0)), ["a", "b"]);
    assert_eq!(log.committed(&name, &at(&name, 0)).unwrap(), None);
}

#[test]
fn a_transaction_that_the_broker_ended_for_its_age_is_no_other_producer_s() {
    let log =
        KafkaLog::open(KafkaOptions { transaction_timeout: Duration::from_secs(2), ..shared() }).unwrap();
    let name = unique("overdue");
    topic(&log, &name, 1);
    let source = at(&name, 0);
    let mut producer = log.producer(&name).unwrap();
    producer.begin().unwrap();
    producer.send(record(&name, 0, "late")).unwrap();
    let started = Instant::now();
    // The record, plus the abort marker.
    while log.written_end(&source).unwrap() < 2 {
        assert!(started.elapsed() < ARRIVAL_MAX, "the broker does not end it");
    }
    let error = producer.commit().unwrap_err();
    assert!(
        matches!(&error, LogError::OutcomeUnknown { cause, .. } if cause.contains("was open")),
        "{error}"
    );
    drop(producer);
    commit(&mut *log.producer(&name).unwrap(), [record(&name, 0, "again")]);
    assert_eq!(values(&log, &source), ["again"]);
}

/// Increases a topic's partitions on the shared broker to `partitions`.
fn add_partitions(topic: &str, partitions: usize) {
    use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions};
    let mut config = rdkafka::ClientConfig::new();
    let admin: AdminClient<DefaultClientContext> =
        config.set("bootstrap.servers", shared().brokers).create().unwrap();
    let (wanted, options) = ([NewPartitions::new(topic, partitions)], AdminOptions::new());
    let mut done = std::pin::pin!(admin.create_partitions(&wanted, &options));
    let mut task = std::task::Context::from_waker(std::task::Waker::noop());
    let started = Instant::now();
    loop {
        if let std::task::Poll::Ready(done) = done.as_mut().poll(&mut task) {
            assert!(done.unwrap().iter().all(Result::is_ok));
            return;
        }
        assert!(started.elapsed() < ARRIVAL_MAX, "the broker does not answer");
        std::thread::yield_now();
    }
}

#[test]
fn a_producer_writes_to_partitions_that_were_added() {
    let log = shared_log();
    let name = unique("added");
    topic(&log, &name, 1);
    let mut producer = log.producer(&name).unwrap();
    commit(&mut *producer, [record(&name, 0, "before")]);
    producer.begin().unwrap();
    let error = producer.send(record(&name, 1, "too soon")).unwrap_err();
    assert!(matches!(error, LogError::UnknownPartition { .. }), "{error}");
    producer.abort().unwrap();
    add_partitions(&name, 2);
    let started = Instant::now();
    while log.partitions(&name).unwrap() < 2 {
        assert!(started.elapsed() < ARRIVAL_MAX, "the partition is not there");
    }
    commit(&mut *producer, [record(&name, 1, "after")]);
    assert_eq!(values(&log, &at(&name, 1)), ["after"]);
}

#[test]
fn a_broker_that_is_gone_is_out_of_reach() {
    let broker = Broker::start("gone");
    let log = KafkaLog::open(impatient(&broker)).unwrap();
    topic(&log, "t", 3);
    log.reach("t", ARRIVAL_MAX).unwrap();
    broker.pause();
    let error = log.reach("t", Duration::from_secs(1)).unwrap_err();
    assert!(matches!(error, LogError::Unreachable { .. }), "{error}");
    broker.go_on();
    log.reach("t", ARRIVAL_MAX).unwrap();
}

/// Returns options for the listener with passwords.
fn secured(password: &str) -> KafkaOptions {
    let mut options = KafkaOptions::new(service("WARPTAPE_TEST_KAFKA_SASL"));
    for (key, value) in [
        ("security.protocol", "SASL_SSL"),
        ("sasl.mechanism", "SCRAM-SHA-256"),
        ("sasl.username", &service("WARPTAPE_TEST_KAFKA_SASL_USER")),
        ("sasl.password", password),
        ("ssl.ca.location", &service("WARPTAPE_TEST_KAFKA_SASL_CA")),
    ] {
        options.extra.insert(key.to_owned(), value.to_owned());
    }
    options
}

#[test]
fn a_password_opens_the_log() {
    let log = KafkaLog::open(secured(&service("WARPTAPE_TEST_KAFKA_SASL_PASSWORD"))).unwrap();
    let name = unique("secured");
    topic(&log, &name, 1);
    commit(&mut *log.producer(&name).unwrap(), [record(&name, 0, "x")]);
    let mut consumer = log.subscribe(&name, &[&name]).unwrap();
    assert_eq!(await_records(&mut *consumer, 1)[0].1.value, b"x");
}

#[test]
fn a_wrong_password_is_named_at_once() {
    // The first client makes the broker load the classes of this listener.
    KafkaLog::open(secured(&service("WARPTAPE_TEST_KAFKA_SASL_PASSWORD"))).unwrap();
    let mut quickest = Duration::MAX;
    for _ in 0..3 {
        let started = Instant::now();
        let error = KafkaLog::open(secured("battery-staple")).err().unwrap();
        quickest = quickest.min(started.elapsed());
        assert!(matches!(error, LogError::Authentication { .. }), "{error}");
        let shown = format!("{error} {error:?}");
        assert!(shown.contains("password") && !shown.contains("battery-staple"), "{shown}");
    }
    assert!(quickest < Duration::from_secs(10), "it took {quickest:?}");
}

#[test]
fn an_unknown_certificate_is_named_at_once() {
    let mut options = secured(&service("WARPTAPE_TEST_KAFKA_SASL_PASSWORD"));
    options.extra.remove("ssl.ca.location");
    let error = KafkaLog::open(options).err().unwrap();
    assert!(matches!(error, LogError::Authentication { .. }), "{error}");
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[test]
fn options_that_librdkafka_does_not_know_are_named() {
    let mut options = shared();
    options.extra.insert("sasl.pasword".to_owned(), "correct-horse".to_owned());
    let shown = KafkaLog::open(options).err().unwrap().to_string();
    assert!(shown.contains("sasl.pasword") && !shown.contains("correct-horse"), "{shown}");
}

#[test]
fn a_cluster_that_is_not_there_is_named() {
    // An address with a privileged port, where nothing listens.
    const NOWHERE: &str = "127.0.0.1:1";
    let options = KafkaOptions { request_timeout: Duration::from_secs(2), ..KafkaOptions::new(NOWHERE) };
    let error = KafkaLog::open(options).err().unwrap();
    assert!(matches!(error, LogError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains(NOWHERE), "{error}");
}

/// Options with long waits, for a broker that has just started or is busy.
fn patient(broker: &Broker) -> KafkaOptions {
    KafkaOptions {
        transaction_timeout: Duration::from_secs(600),
        request_timeout: ARRIVAL_MAX,
        stall_timeout: ARRIVAL_MAX,
        ..KafkaOptions::new(&broker.address)
    }
}

/// Options with short waits, for brokers that will not answer.
fn impatient(broker: &Broker) -> KafkaOptions {
    KafkaOptions {
        request_timeout: Duration::from_secs(3),
        stall_timeout: Duration::from_secs(1),
        ..KafkaOptions::new(&broker.address)
    }
}

/// Repeats a call while the broker is busy.
fn insisting<T>(mut call: impl FnMut() -> Result<T, LogError>) -> T {
    let started = Instant::now();
    loop {
        match call() {
            Ok(done) => return done,
            Err(error @ LogError::Unreachable { .. }) => {
                assert!(started.elapsed() < ARRIVAL_MAX, "{error}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Time longer than a commit waits, and shorter than a transaction's timeout.
const PAUSE_MAX: Duration = Duration::from_secs(8);

#[test]
fn a_commit_without_an_answer_is_never_a_lie() {
    let broker = Broker::start("paused");
    let patient = KafkaLog::open(patient(&broker)).unwrap();
    topic(&patient, "out", 1);
    topic(&patient, "in", 1);
    let (out, source) = (at("out", 0), at("in", 0));
    // After this, the broker has its internal topics for transactions and groups.
    let mut first = patient.producer("p").unwrap();
    first.begin().unwrap();
    first.send(record("out", 0, "first")).unwrap();
    first.send_offsets("g", &[(source.clone(), 0)]).unwrap();
    first.commit().unwrap();
    drop(first);
    let log = insisting(|| KafkaLog::open(impatient(&broker)));
    let mut unknown = 0;
    let mut producer = insisting(|| log.producer("p"));
    for round in 0..6_i64 {
        let before = patient.committed("g", &source).unwrap();
        producer.begin().unwrap();
        insisting(|| producer.send(record("out", 0, round.to_string())));
        producer.send_offsets("g", &[(source.clone(), round + 1)]).unwrap();
        // The pause begins before, during or after the commit, a little later in each round.
        if round == 0 {
            broker.pause();
        }
        let result = std::thread::scope(|scope| {
            let (ended, has_ended) = std::sync::mpsc::channel::<()>();
            let broker = &broker;
            scope.spawn(move || {
                let_pass(Duration::from_millis(3 * round as u64));
                broker.pause();
                // librdkafka (2.12.1) may wait for a hanging coordinator without limit, whatever the timeout.
                let _ = has_ended.recv_timeout(PAUSE_MAX);
                broker.go_on();
            });
            let result = producer.commit();
            drop(ended);
            result
        });
        let mut is_unknown = false;
        if let Err(error) = &result {
            assert!(matches!(error, LogError::OutcomeUnknown { .. }), "{error}");
            // The producer is unusable now.
            assert!(matches!(producer.begin().unwrap_err(), LogError::OutcomeUnknown { .. }));
            assert!(matches!(producer.abort().unwrap_err(), LogError::OutcomeUnknown { .. }));
            is_unknown = true;
            unknown += 1;
        }
        if is_unknown {
            // A new producer settles the transaction.
            drop(producer);
            producer = patient.producer("p").unwrap();
        }
        let committed = patient.committed("g", &source).unwrap();
        let is_there = values(&patient, &out).contains(&round.to_string());
        println!("round {round}: {} then {is_there}", if is_unknown { "unknown" } else { "committed" });
        assert_eq!(is_there, committed == Some(round + 1), "records and offsets go together");
        assert!(is_there || is_unknown, "it was said to be committed");
        assert!(is_there || committed == before);
        drop(producer);
        producer = insisting(|| log.producer("p"));
    }
    assert!(unknown > 0, "no commit was caught without an answer");
}

#[test]
fn a_broker_that_comes_back_is_found_again() {
    let broker = Broker::start("restart");
    let log = KafkaLog::open(patient(&broker)).unwrap();
    topic(&log, "t", 1);
    let mut producer = log.producer("p").unwrap();
    commit(&mut *producer, [record("t", 0, "before")]);
    let mut reader = log.reader(&[at("t", 0)]).unwrap();
    assert_eq!(await_records(&mut *reader, 1)[0].1.value, b"before");
    producer.begin().unwrap();
    producer.send(record("t", 0, "during")).unwrap();
    broker.kill();
    broker.start_again();
    match producer.commit() {
        Ok(()) => {}
        // The broker may have lost unacknowledged records.
        Err(LogError::Aborted { .. }) => {
            producer.abort().unwrap();
            commit(&mut *producer, [record("t", 0, "during")]);
        }
        Err(error) => panic!("{error}"),
    }
    assert_eq!(await_records(&mut *reader, 1)[0].1.value, b"during");
}

#[test]
fn a_broker_that_does_not_answer_is_a_stall() {
    let broker = Broker::start("stalled");
    topic(&KafkaLog::open(patient(&broker)).unwrap(), "t", 1);
    let log = insisting(|| KafkaLog::open(impatient(&broker)));
    let mut reader = insisting(|| log.reader(&[at("t", 0)]));
    assert!(matches!(insisting(|| reader.poll(POLL, ANY, ANY)), Fetched::Idle));
    broker.pause();
    let started = Instant::now();
    let error = loop {
        assert!(started.elapsed() < ARRIVAL_MAX, "nobody noticed");
        if let Err(error) = reader.poll(POLL, ANY, ANY) {
            break error;
        }
    };
    assert!(matches!(error, LogError::Unreachable { .. } | LogError::Stalled { .. }), "{error}");
    broker.go_on();
}

/// A record of zeros is small in the log, whatever its length. Unchanged librdkafka unpacks up to 100 MB of them with
/// zstd, and any number with gzip.
#[test]
fn a_record_that_is_large_when_it_is_unpacked_is_read() {
    const BYTES: usize = 120_000_000;
    let log = packing("zstd", &[("message.max.bytes", "200000000")]);
    let name = unique("inflated");
    topic(&log, &name, 1);
    let source = at(&name, 0);
    let mut producer = log.producer(&name).unwrap();
    commit(&mut *producer, [record(&name, 0, "before")]);
    commit(&mut *producer, [record(&name, 0, vec![0_u8; BYTES])]);
    commit(&mut *producer, [record(&name, 0, "behind")]);
    let read = read_all(&KafkaLog::open(shared()).unwrap(), &source, 0);
    let sizes: Vec<usize> = read.iter().map(|record| record.value.len()).collect();
    assert_eq!(sizes, [6, BYTES, 6]);
}

/// Returns a log whose producers compress and have these options of librdkafka.
fn packing(codec: &str, extra: &[(&str, &str)]) -> KafkaLog {
    let codec = ("compression.type", codec);
    let extra = extra.iter().chain([&codec]);
    let extra = extra.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    KafkaLog::open(KafkaOptions { extra, ..shared() }).unwrap()
}

/// Reads from an offset on, up to the record with the value `behind`.
fn read_all(log: &dyn EventLog, source: &TopicPartition, from: i64) -> Vec<Record> {
    let mut reader = log.reader(std::slice::from_ref(source)).unwrap();
    reader.seek(source, from).unwrap();
    let mut read = Vec::new();
    poll_until(&mut *reader, |fetched| {
        if let Fetched::Records { records, .. } = fetched {
            read.extend(records);
        }
        read.last().is_some_and(|last: &Record| last.value == b"behind")
    });
    read
}

#[test]
fn one_record_stands_for_a_batch_that_is_too_large_unpacked() {
    const LIMIT: usize = 16 << 20;
    let strict = KafkaLog::open(KafkaOptions { unpacked_bytes_max: LIMIT, ..shared() }).unwrap();
    for (codec, number) in [("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4)] {
        let log = packing(codec, &[("message.max.bytes", "100000000")]);
        let name = unique(&format!("bomb-{codec}"));
        topic(&log, &name, 2);
        let source = at(&name, 0);
        let mut producer = log.producer(&name).unwrap();
        let zeros = |bytes: usize| record(&name, 0, vec![0_u8; bytes]);
        commit(&mut *producer, [record(&name, 0, "before")]);
        // Aborted batches are invisible, and are not unpacked either.
        producer.begin().unwrap();
        producer.send(zeros(LIMIT + 1)).unwrap();
        producer.abort().unwrap();
        commit(&mut *producer, [zeros(LIMIT)]);
        commit(&mut *producer, [zeros(LIMIT - 4096)]);
        commit(&mut *producer, [record(&name, 0, "behind"), record(&name, 1, "behind")]);

        let read = read_all(&strict, &source, 0);
        let sizes: Vec<usize> = read.iter().map(|record| record.value.len()).collect();
        assert_eq!(sizes, [6, 0, LIMIT - 4096, 6], "{codec}: what is within the limit is read");
        let batch = UnreadableBatch::of(&read[1]).expect("it stands for a batch");
        assert_eq!((batch.records, batch.codec), (1, number), "{codec}");
        assert_eq!(
            (batch.first_offset, batch.limit_bytes),
            (batch.last_offset, Some(LIMIT as i64)),
            "{codec}"
        );
        // A member of a group behaves the same, and its other partitions continue.
        let mut member = strict.subscribe(&name, &[&name]).unwrap();
        let mut seen: BTreeMap<i32, Vec<Record>> = BTreeMap::new();
        poll_until(&mut *member, |fetched| {
            if let Fetched::Records { source, records } = fetched {
                seen.entry(source.partition).or_default().extend(records);
            }
            seen.len() == 2
                && seen.values().all(|records| records.last().is_some_and(|last| last.value == b"behind"))
        });
        assert_eq!(seen[&0], read, "{codec}");
        // With a higher limit the batch is readable.
        assert_eq!(read_all(&log, &source, 0).len(), 4, "{codec}");
    }
}

/// Reading from anywhere in a batch ends at the same offset, and records take memory however small they are.
#[test]
fn a_batch_of_too_many_records_is_the_same_from_each_of_them() {
    const COUNT: usize = 100_000;
    let limit = *KafkaOptions::UNPACKED_BYTES_ALLOWED.start();
    let strict = KafkaLog::open(KafkaOptions { unpacked_bytes_max: limit, ..shared() }).unwrap();
    for codec in ["gzip", "snappy", "lz4", "zstd"] {
        let log = packing(codec, &[("batch.num.messages", "1000000")]);
        let name = unique(&format!("crumbs-{codec}"));
        topic(&log, &name, 1);
        let source = at(&name, 0);
        let mut producer = log.producer(&name).unwrap();
        commit(&mut *producer, (0..COUNT).map(|_| record(&name, 0, "x")).collect::<Vec<_>>());
        commit(&mut *producer, [record(&name, 0, "behind")]);
        let read = read_all(&strict, &source, 0);
        let batches: Vec<UnreadableBatch> = read.iter().filter_map(UnreadableBatch::of).collect();
        let unread: i64 = batches.iter().map(|batch| batch.records).sum();
        assert_eq!(
            read.len() - 1 - batches.len() + unread as usize,
            COUNT,
            "{codec}: each is read, or in a batch"
        );
        let batch = *batches.first().expect("one batch of many");
        assert_eq!(batch.last_offset - batch.first_offset + 1, batch.records, "{codec}");
        for from in [batch.first_offset, (batch.first_offset + batch.last_offset) / 2, batch.last_offset] {
            let first = read_all(&strict, &source, from).into_iter().next();
            assert_eq!(first, Some(batch.record()), "{codec} from {from}");
        }
        assert_eq!(read_all(&log, &source, 0).len(), COUNT + 1, "{codec}");
    }
}

/// Returns values of all kinds: some that compress a thousandfold, some that do not at all, of many lengths.
fn any_values() -> Vec<Vec<u8>> {
    let mut state = 1_u64;
    let mut byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    let noise: Vec<u8> = std::iter::repeat_with(&mut byte).take(300_000).collect();
    let words = b"a tick of BINANCE:BTCUSDT at 64,000.01 ".repeat(200);
    let mut values: Vec<Vec<u8>> = (0..300).map(|number| words[..number * 26].to_vec()).collect();
    values.extend((1..40).map(|number| noise[number..number * 100].to_vec()));
    values.extend([noise, vec![0; 900_000], vec![7; 65_536], vec![7; 65_537]]);
    values
}

#[test]
fn every_codec_reads_back() {
    let expected = any_values();
    for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let log = packing(codec, &[]);
        let name = unique(&format!("codec-{codec}"));
        topic(&log, &name, 1);
        let mut producer = log.producer(&name).unwrap();
        let values = expected.iter().map(|value| record(&name, 0, value));
        commit(&mut *producer, values.chain([record(&name, 0, "behind")]).collect::<Vec<_>>());
        let read = read_all(&log, &at(&name, 0), 0);
        let values: Vec<&Vec<u8>> = read.iter().map(|record| &record.value).collect();
        assert!(
            values[..expected.len()].iter().zip(&expected).all(|(found, sent)| *found == sent),
            "{codec}"
        );
        assert_eq!(values.len(), expected.len() + 1, "{codec}");
    }
}

#[test]
fn no_stranger_s_record_stands_for_a_batch() {
    let log = shared_log();
    let name = unique("pretender");
    topic(&log, &name, 1);
    let batch = UnreadableBatch::parse("first=0 last=0 records=1 bytes=1 codec=4 limit=1 time_ms=1").unwrap();
    let header = |name: &str| (name.to_owned(), batch.record().headers[0].1.clone());
    let headers = [header("theirs"), header(UNREADABLE_BATCH_HEADER)];
    let pretender = NewRecord { headers: headers.to_vec().into(), ..record(&name, 0, "behind") };
    commit(&mut *log.producer(&name).unwrap(), [pretender]);
    let read = read_all(&log, &at(&name, 0), 0);
    assert_eq!(read[0].headers, headers[..1]);
    assert_eq!(UnreadableBatch::of(&read[0]), None);
}

/// Creates and removes the same topics concurrently with a test, until it is dropped.
struct Neighbours {
    stop: mpsc::Sender<()>,
    thread: Option<std::thread::JoinHandle<usize>>,
}

impl Neighbours {
    const TOPICS: usize = 12;
    /// Numbers of partitions of each topic, in turn.
    const PARTITIONS: [i32; 2] = [8, 2];

    fn start(prefix: String) -> Self {
        let (stop, stopped) = mpsc::channel();
        let config = [("bootstrap.servers", shared().brokers)];
        let config: ClientConfig = config.map(|(key, value)| (key.to_owned(), value)).into_iter().collect();
        let churn = move || {
            let admin: AdminClient<_> = config.create().unwrap();
            let options = AdminOptions::new();
            let mut rounds = 0;
            while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
                let names: Vec<String> = (0..Self::TOPICS).map(|topic| format!("{prefix}-{topic}")).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let partitions = Self::PARTITIONS[rounds % Self::PARTITIONS.len()];
                let new = |name| NewTopic::new(name, partitions, TopicReplication::Fixed(1));
                block_on(admin.create_topics(&names.iter().copied().map(new).collect::<Vec<_>>(), &options))
                    .unwrap();
                // A broker learns of topics later than its controller. Without this wait it would fall behind for
                // minutes, and delay all concurrent tests.
                Self::await_known(&admin, names[Self::TOPICS - 1], true);
                block_on(admin.delete_topics(&names, &options)).unwrap();
                Self::await_known(&admin, names[Self::TOPICS - 1], false);
                rounds += 1;
            }
            rounds
        };
        Self { stop, thread: Some(std::thread::spawn(churn)) }
    }

    fn await_known(admin: &AdminClient<DefaultClientContext>, topic: &str, is_known: bool) {
        loop {
            let metadata = admin.inner().fetch_metadata(Some(topic), Duration::from_secs(60)).unwrap();
            if metadata.topics().iter().all(|topic| topic.error().is_none()) == is_known {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    /// Stops the thread; returns how often all topics were created and removed.
    fn end(mut self) -> usize {
        self.stop.send(()).unwrap();
        self.thread.take().unwrap().join().unwrap()
    }
}

fn block_on<T>(answer: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut answer = pin!(answer);
    loop {
        match answer.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn topics_are_looked_up_while_those_of_others_come_and_go() {
    let log = shared_log();
    let (name, other) = (unique("own"), unique("own-too"));
    topic(&log, &name, 3);
    topic(&log, &other, 1);
    commit(&mut *log.producer(&name).unwrap(), [record(&name, 1, "one")]);
    let neighbours = Neighbours::start(unique("neighbour"));
    let missing = unique("missing");
    for _ in 0..20 {
        let found = log.topics_named(&[&other, &missing, &name]).unwrap();
        let names: Vec<_> = found.iter().map(|info| info.spec.name.as_str()).collect();
        assert_eq!(names, [&name, &other]);
        let ranges: Vec<_> = found[0].offsets.iter().map(|range| (range.first, range.next)).collect();
        assert_eq!(ranges, [(0, 0), (0, 2), (0, 0)], "a record and the marker behind it");
        assert_eq!(log.topic(&missing).unwrap(), None);
        log.create_topics(&[warptape_eventlog::TopicSpec {
            name: other.clone(),
            partitions: 1,
            ..Default::default()
        }])
        .unwrap();
        // A listing of all topics contains the permanent ones.
        let listed = log.topics().unwrap();
        assert!([&name, &other].iter().all(|own| listed.iter().any(|info| info.spec.name == **own)));
    }
    let rounds = neighbours.end();
    assert!(rounds >= 2, "{rounds}");
}
