//! Conformance checks for event logs.
//!
//! They use only the log's interface, and allow for differences between logs. Offsets ascend but need not be dense,
//! because a broker puts transaction markers among them. Times have at least milliseconds, and records may become
//! visible with a delay. Each check creates its own topics, named after it, and panics with its finding.

use std::time::{Duration, Instant};

use crate::{
    About, Consumer, EventLog, Fetched, LogError, NewRecord, Producer, Record, Selection, TopicPartition,
    TopicSpec,
};

/// Longest wait for a record or event that must arrive.
const ARRIVAL_MAX: Duration = Duration::from_secs(120);
/// Wait after which a record or event counts as absent.
const SILENCE: Duration = Duration::from_millis(50);
/// Timeout of one poll.
const POLL: Duration = Duration::from_millis(100);
const ANY: usize = usize::MAX;

/// A check with its name.
pub type Check = (&'static str, fn(&dyn EventLog));

/// All checks.
pub const CHECKS: &[Check] = &[
    ("records survive", records_survive),
    ("topics are listed", topics_are_listed),
    ("topics keep their settings", topics_keep_their_settings),
    ("an abort leaves nothing", an_abort_leaves_nothing),
    ("who owns nothing commits nothing", who_owns_nothing_commits_nothing),
    ("an open transaction is invisible", an_open_transaction_is_invisible),
    ("a dropped producer aborts", a_dropped_producer_aborts),
    ("a transaction spans topics and offsets", a_transaction_spans_topics_and_offsets),
    ("a position commits beside the members", a_position_commits_beside_the_members),
    ("a group resumes where it committed", a_group_resumes_where_it_committed),
    ("pause holds back one partition", pause_holds_back_one_partition),
    ("seek moves both ways", seek_moves_both_ways),
    ("positions reach the end", positions_reach_the_end),
    ("polls respect their limits", polls_respect_their_limits),
    ("partitions take turns", partitions_take_turns),
    (
        "a selection comes and the position reaches the end",
        a_selection_comes_and_the_position_reaches_the_end,
    ),
    ("a waiting poll wakes", a_waiting_poll_wakes),
    ("a newer producer fences", a_newer_producer_fences),
    ("compaction keeps the newest of each key", compaction_keeps_the_newest_of_each_key),
    ("unknown names are errors", unknown_names_are_errors),
    ("calls out of order are errors", calls_out_of_order_are_errors),
];

fn topic(log: &dyn EventLog, name: &str, partitions: i32, compacted: bool) {
    let spec = TopicSpec { name: name.to_owned(), partitions, compacted, ..TopicSpec::default() };
    log.create_topics(&[spec]).unwrap();
}

fn at(topic: &str, partition: i32) -> TopicPartition {
    TopicPartition { topic: topic.to_owned(), partition }
}

fn record(topic: &str, partition: i32, value: impl AsRef<[u8]>) -> NewRecord<'static> {
    NewRecord {
        topic: topic.to_owned().into(),
        partition,
        timestamp_ns: 1_723_000_000_123_000_000,
        value: value.as_ref().to_vec().into(),
        ..NewRecord::default()
    }
}

fn commit(producer: &mut dyn Producer, records: impl IntoIterator<Item = NewRecord<'static>>) {
    producer.begin().unwrap();
    for record in records {
        producer.send(record).unwrap();
    }
    producer.commit().unwrap();
}

/// Polls until `count` records have arrived; checks that they ascend and belong to `from`.
fn take(consumer: &mut dyn Consumer, from: &TopicPartition, count: usize) -> Vec<Record> {
    let started = Instant::now();
    let mut taken: Vec<Record> = Vec::new();
    while taken.len() < count {
        assert!(started.elapsed() < ARRIVAL_MAX, "{} of {count} records of {from:?} came", taken.len());
        match consumer.poll(POLL, count - taken.len(), ANY).unwrap() {
            Fetched::Records { source, records } => {
                assert_eq!(source, *from);
                assert!(!records.is_empty(), "a poll gave an empty run of records");
                taken.extend(records);
            }
            Fetched::Assigned(_) | Fetched::Idle => {}
            Fetched::Revoked(partitions) | Fetched::Lost(partitions) => {
                panic!("nobody else is in the group: {partitions:?}")
            }
        }
    }
    assert!(taken.is_sorted_by(|a, b| a.offset < b.offset), "offsets must ascend");
    taken
}

fn expect_silence(consumer: &mut dyn Consumer) {
    let fetched = consumer.poll(SILENCE, ANY, ANY).unwrap();
    assert!(matches!(fetched, Fetched::Idle), "nothing was to come: {fetched:?}");
}

fn values(records: &[Record]) -> Vec<&str> {
    records.iter().map(|record| std::str::from_utf8(&record.value).unwrap()).collect()
}

fn records_survive(log: &dyn EventLog) {
    topic(log, "survive", 1, false);
    let header = |name: &str, value: &[u8]| (name.to_owned(), value.to_vec());
    let written = [
        NewRecord {
            key: Some(b"key".into()),
            // The order and repetition of headers matter.
            headers: vec![header("b", b"1"), header("a", b""), header("b", &[0, 255])].into(),
            ..record("survive", 0, b"value")
        },
        NewRecord { key: Some(b"".into()), ..record("survive", 0, b"") },
        record("survive", 0, (0..=255).cycle().take(100_000).collect::<Vec<u8>>()),
    ];
    commit(&mut *log.producer("survive").unwrap(), written.clone());
    let mut reader = log.reader(&[at("survive", 0)]).unwrap();
    let read = take(&mut *reader, &at("survive", 0), written.len());
    for (written, read) in written.iter().zip(&read) {
        assert_eq!(read.key.as_deref(), written.key.as_deref());
        assert_eq!(read.headers, *written.headers);
        assert_eq!(read.timestamp_ns, written.timestamp_ns);
        assert!(read.value == *written.value, "a value of {} bytes changed", written.value.len());
    }
    // Everything else arrives unchanged at a reader that ignores headers.
    let mut without = log.reader(&[at("survive", 0)]).unwrap();
    without.leave_headers();
    let bare = |records: Vec<Record>| -> Vec<Record> {
        records.into_iter().map(|record| Record { headers: Vec::new(), ..record }).collect()
    };
    assert!(bare(take(&mut *without, &at("survive", 0), written.len())) == bare(read));
}

fn topics_are_listed(log: &dyn EventLog) {
    topic(log, "listed.b", 2, false);
    topic(log, "listed.a", 1, true);
    let count = |log: &dyn EventLog| {
        let topics = log.topics().unwrap();
        assert!(topics.is_sorted_by(|a, b| a.spec.name < b.spec.name), "topics come by name");
        let find = |name: &str| topics.iter().find(|topic| topic.spec.name == name).unwrap().clone();
        let (a, b) = (find("listed.a"), find("listed.b"));
        assert_eq!((a.spec.partitions, a.spec.compacted, a.offsets.len()), (1, true, 1));
        assert_eq!((b.spec.partitions, b.spec.compacted, b.offsets.len()), (2, false, 2));
        b.offsets.iter().map(|range| range.next - range.first).collect::<Vec<_>>()
    };
    assert_eq!(count(log), [0, 0]);
    commit(&mut *log.producer("listed").unwrap(), [record("listed.b", 1, "x")]);
    let started = Instant::now();
    loop {
        let counts = count(log);
        assert_eq!(counts[0], 0);
        if counts[1] > 0 {
            break;
        }
        assert!(started.elapsed() < ARRIVAL_MAX, "the record does not count: {counts:?}");
    }
}

fn topics_keep_their_settings(log: &dyn EventLog) {
    topic(log, "settings", 2, false);
    topic(log, "settings", 2, false);
    for (partitions, compacted) in [(3, false), (2, true)] {
        let other = TopicSpec { name: "settings".to_owned(), partitions, compacted, ..TopicSpec::default() };
        let error = log.create_topics(&[other]).unwrap_err();
        assert!(matches!(error, LogError::TopicConflict { .. }), "{error}");
    }
    for (name, partitions) in [("", 1), ("a b", 1), ("..", 1), ("settings.none", 0), ("settings.minus", -1)] {
        let wrong = TopicSpec { name: name.to_owned(), partitions, ..TopicSpec::default() };
        let error = log.create_topics(&[wrong]).unwrap_err();
        assert!(matches!(error, LogError::TopicConflict { .. }), "{error}");
    }
}

fn an_abort_leaves_nothing(log: &dyn EventLog) {
    topic(log, "abort", 1, false);
    let mut producer = log.producer("abort").unwrap();
    producer.begin().unwrap();
    producer.send(record("abort", 0, "aborted")).unwrap();
    producer.abort().unwrap();
    commit(&mut *producer, [record("abort", 0, "kept")]);
    let mut reader = log.reader(&[at("abort", 0)]).unwrap();
    assert_eq!(values(&take(&mut *reader, &at("abort", 0), 1)), ["kept"]);
    expect_silence(&mut *reader);
}

fn who_owns_nothing_commits_nothing(log: &dyn EventLog) {
    topic(log, "owner", 1, false);
    let mut producer = log.producer("owner").unwrap();
    for offsets in [&[(at("owner", 0), 1)][..], &[]] {
        producer.begin().unwrap();
        producer.send(record("owner", 0, "aborted")).unwrap();
        producer.send_offsets("owner", offsets).unwrap();
        let error = producer.commit_as_owner(&|| false).unwrap_err();
        assert!(matches!(error, LogError::Aborted { .. }), "{error}");
        producer.abort().unwrap();
    }
    assert_eq!(log.committed("owner", &at("owner", 0)).unwrap(), None);
    commit(&mut *producer, [record("owner", 0, "kept")]);
    let mut reader = log.reader(&[at("owner", 0)]).unwrap();
    assert_eq!(values(&take(&mut *reader, &at("owner", 0), 1)), ["kept"]);
    expect_silence(&mut *reader);
}

fn an_open_transaction_is_invisible(log: &dyn EventLog) {
    topic(log, "open", 1, false);
    let mut reader = log.reader(&[at("open", 0)]).unwrap();
    let mut producer = log.producer("open").unwrap();
    producer.begin().unwrap();
    producer.send(record("open", 0, "x")).unwrap();
    expect_silence(&mut *reader);
    producer.commit().unwrap();
    assert_eq!(values(&take(&mut *reader, &at("open", 0), 1)), ["x"]);
}

fn a_dropped_producer_aborts(log: &dyn EventLog) {
    topic(log, "dropped", 1, false);
    let mut producer = log.producer("dropped").unwrap();
    producer.begin().unwrap();
    producer.send(record("dropped", 0, "lost")).unwrap();
    drop(producer);
    commit(&mut *log.producer("dropped").unwrap(), [record("dropped", 0, "kept")]);
    let mut reader = log.reader(&[at("dropped", 0)]).unwrap();
    assert_eq!(values(&take(&mut *reader, &at("dropped", 0), 1)), ["kept"]);
}

fn a_transaction_spans_topics_and_offsets(log: &dyn EventLog) {
    topic(log, "span.in", 1, false);
    topic(log, "span.out", 2, false);
    let mut feed = log.producer("span.feed").unwrap();
    commit(&mut *feed, (0..4).map(|n| record("span.in", 0, n.to_string())));
    let mut consumer = log.subscribe("span", &["span.in"]).unwrap();
    let mut producer = log.producer("span").unwrap();
    let source = at("span.in", 0);
    for (end, commits) in [("abort", false), ("commit", true)] {
        producer.begin().unwrap();
        producer.send(record("span.out", 0, end)).unwrap();
        producer.send(record("span.out", 1, end)).unwrap();
        producer.send_offsets("span", &[(source.clone(), 2)]).unwrap();
        producer.send_offsets("span", &[(source.clone(), 3)]).unwrap();
        // The last offsets sent count; none count before the transaction ends.
        take(&mut *consumer, &source, 1);
        assert_eq!(consumer.committed(&source).unwrap(), None, "before the {end}");
        if commits {
            producer.commit().unwrap();
        } else {
            producer.abort().unwrap();
        }
        assert_eq!(consumer.committed(&source).unwrap(), commits.then_some(3), "after the {end}");
        assert_eq!(
            log.committed("span", &source).unwrap(),
            commits.then_some(3),
            "after the {end}, from outside"
        );
        assert_eq!(log.committed("span.other", &source).unwrap(), None, "another group");
    }
    for partition in 0..2 {
        let mut reader = log.reader(&[at("span.out", partition)]).unwrap();
        assert_eq!(values(&take(&mut *reader, &at("span.out", partition), 1)), ["commit"]);
        expect_silence(&mut *reader);
    }
}

fn a_position_commits_beside_the_members(log: &dyn EventLog) {
    topic(log, "position.in", 1, false);
    topic(log, "position.out", 2, false);
    let [source, out] = [at("position.in", 0), at("position.out", 1)];
    let mut producer = log.producer("position").unwrap();
    commit(&mut *producer, [record("position.in", 0, "a")]);
    let mut both = |offset, position, is_committed| {
        producer.begin().unwrap();
        producer.send(record("position.out", 1, "x")).unwrap();
        producer.send_offsets("position", &[(source.clone(), offset)]).unwrap();
        producer.send_position("position", &out, 0).unwrap();
        producer.send_position("position", &out, position).unwrap();
        if is_committed { producer.commit() } else { producer.abort() }.unwrap();
        [&source, &out].map(|partition| log.committed("position", partition).unwrap())
    };
    let mut consumer = log.subscribe("position", &["position.in"]).unwrap();
    take(&mut *consumer, &source, 1);
    assert_eq!(both(1, 1_000, false), [None, None]);
    // A position may be beyond the end of its partition, because it need not be an offset of the partition.
    assert_eq!(both(1, 1_000, true), [Some(1), Some(1_000)]);
    drop(consumer);
    assert_eq!(both(1, 7, true), [Some(1), Some(7)]);
    let error = producer.send_position("position", &out, 1).unwrap_err();
    assert!(matches!(error, LogError::TransactionState { .. }), "{error}");
}

fn a_group_resumes_where_it_committed(log: &dyn EventLog) {
    topic(log, "resume", 1, false);
    let source = at("resume", 0);
    let mut producer = log.producer("resume").unwrap();
    commit(&mut *producer, ["a", "b", "c"].map(|value| record("resume", 0, value)));
    {
        let mut consumer = log.subscribe("resume", &["resume"]).unwrap();
        let started = Instant::now();
        let assigned = loop {
            assert!(started.elapsed() < ARRIVAL_MAX, "no partition was assigned");
            match consumer.poll(POLL, ANY, ANY).unwrap() {
                Fetched::Assigned(partitions) => break partitions,
                Fetched::Idle => {}
                other => panic!("the assignment comes before {other:?}"),
            }
        };
        assert_eq!(assigned, std::slice::from_ref(&source));
        assert_eq!(consumer.committed(&source).unwrap(), None);
        let read = take(&mut *consumer, &source, 2);
        assert_eq!(values(&read), ["a", "b"]);
        producer.begin().unwrap();
        producer.send_offsets("resume", &[(source.clone(), read[1].offset + 1)]).unwrap();
        producer.commit().unwrap();
    }
    let mut consumer = log.subscribe("resume", &["resume"]).unwrap();
    assert_eq!(values(&take(&mut *consumer, &source, 1)), ["c"]);
    drop(consumer);
    // Another group has no committed offset.
    let mut other = log.subscribe("resume.other", &["resume"]).unwrap();
    assert_eq!(values(&take(&mut *other, &source, 3)), ["a", "b", "c"]);
}

fn pause_holds_back_one_partition(log: &dyn EventLog) {
    topic(log, "pause", 2, false);
    let mut producer = log.producer("pause").unwrap();
    commit(&mut *producer, [record("pause", 0, "a0"), record("pause", 1, "a1")]);
    let mut reader = log.reader(&[at("pause", 0), at("pause", 1)]).unwrap();
    reader.pause(&[at("pause", 0)]).unwrap();
    assert_eq!(values(&take(&mut *reader, &at("pause", 1), 1)), ["a1"]);
    commit(&mut *producer, [record("pause", 0, "b0")]);
    expect_silence(&mut *reader);
    reader.resume(&[at("pause", 0)]).unwrap();
    assert_eq!(values(&take(&mut *reader, &at("pause", 0), 2)), ["a0", "b0"]);
}

fn seek_moves_both_ways(log: &dyn EventLog) {
    topic(log, "seek", 1, false);
    let source = at("seek", 0);
    commit(&mut *log.producer("seek").unwrap(), ["a", "b", "c", "d"].map(|value| record("seek", 0, value)));
    let mut reader = log.reader(std::slice::from_ref(&source)).unwrap();
    let first = take(&mut *reader, &source, 4);
    reader.seek(&source, first[1].offset).unwrap();
    assert_eq!(values(&take(&mut *reader, &source, 1)), ["b"]);
    reader.seek(&source, first[3].offset).unwrap();
    assert_eq!(values(&take(&mut *reader, &source, 1)), ["d"]);
    let range = reader.offsets(&source).unwrap();
    assert!(range.first <= first[0].offset && range.next > first[3].offset, "{range:?}");
    reader.seek(&source, range.next).unwrap();
    expect_silence(&mut *reader);
    reader.seek(&source, range.first).unwrap();
    assert_eq!(take(&mut *reader, &source, 4), first);
}

fn positions_reach_the_end(log: &dyn EventLog) {
    topic(log, "ends", 2, false);
    let source = at("ends", 0);
    let mut producer = log.producer("ends").unwrap();
    commit(&mut *producer, ["a", "b", "c"].map(|value| record("ends", 0, value)));
    producer.begin().unwrap();
    producer.send(record("ends", 0, "aborted")).unwrap();
    producer.abort().unwrap();
    let mut reader = log.reader(&[source.clone(), at("ends", 1)]).unwrap();
    let first = reader.offsets(&source).unwrap().first;
    assert_eq!(reader.position(&source).unwrap(), first);
    let read = take(&mut *reader, &source, 3);
    assert!(reader.position(&source).unwrap() > read[2].offset);
    // The end may move for a moment after a commit has returned; all records before it are still read.
    let started = Instant::now();
    let mut end = first;
    loop {
        assert!(started.elapsed() < ARRIVAL_MAX, "at {} of {end}", reader.position(&source).unwrap());
        expect_silence(&mut *reader);
        let before = std::mem::replace(&mut end, reader.offsets(&source).unwrap().next);
        if end == before && end > read[2].offset && reader.position(&source).unwrap() >= end {
            break;
        }
    }
    // A partition without records is at its end from the beginning.
    let empty = reader.offsets(&at("ends", 1)).unwrap();
    assert_eq!(reader.position(&at("ends", 1)).unwrap(), empty.next);
    reader.seek(&source, read[1].offset).unwrap();
    assert_eq!(reader.position(&source).unwrap(), read[1].offset);
}

fn polls_respect_their_limits(log: &dyn EventLog) {
    topic(log, "limits", 1, false);
    let source = at("limits", 0);
    commit(&mut *log.producer("limits").unwrap(), (0..20).map(|_| record("limits", 0, [7; 1000])));
    let run = |records_max: usize, bytes_max: usize| {
        let mut reader = log.reader(std::slice::from_ref(&source)).unwrap();
        let started = Instant::now();
        let mut lengths = Vec::new();
        while lengths.iter().sum::<usize>() < 20 {
            assert!(started.elapsed() < ARRIVAL_MAX, "{lengths:?} records came");
            if let Fetched::Records { records, .. } = reader.poll(POLL, records_max, bytes_max).unwrap() {
                lengths.push(records.len());
            }
        }
        lengths.into_iter().max()
    };
    assert!(run(7, ANY) <= Some(7));
    // A single record may exceed the limit, and a poll returns at least one.
    assert!(run(ANY, 3500) <= Some(4));
    assert_eq!(run(ANY, 1), Some(1));
}

/// Records of each partition of "turns".
const TURNS_RECORDS: usize = 500;

fn partitions_take_turns(log: &dyn EventLog) {
    topic(log, "turns", 3, false);
    let mut producer = log.producer("turns").unwrap();
    let records = |partition| (0..TURNS_RECORDS).map(move |_| record("turns", partition, "x"));
    commit(&mut *producer, (0..3).flat_map(records));
    // A broker delivers partition by partition. All partitions get time to deliver; then they must take turns. If that
    // time was too short for a partition, another one was drained meanwhile, and the attempt is inconclusive.
    let started = Instant::now();
    let turns = loop {
        assert!(started.elapsed() < ARRIVAL_MAX, "one partition after the other was read out");
        if let Some(turns) = turns_of_three(log, 90) {
            break turns;
        }
    };
    assert!(turns.iter().all(|turns| *turns >= 25), "one partition was served alone: {turns:?} of 90 turns");
}

/// Counts the polls that returned records of each partition of "turns", once all partitions have delivered; `None` if
/// one was drained before `count` polls.
fn turns_of_three(log: &dyn EventLog, count: usize) -> Option<[usize; 3]> {
    let sources = [at("turns", 0), at("turns", 1), at("turns", 2)];
    let mut reader = log.reader(&sources).unwrap();
    let started = Instant::now();
    let mut idle = log.reader(&[]).unwrap();
    (0..10).for_each(|_| expect_silence(&mut *idle));
    let mut served = [0_usize; 3];
    let mut turns = [0_usize; 3];
    while turns.iter().sum::<usize>() < count {
        assert!(started.elapsed() < ARRIVAL_MAX, "{served:?} records came");
        if let Fetched::Records { source, records } = reader.poll(POLL, 1, ANY).unwrap() {
            let partition = usize::try_from(source.partition).unwrap();
            if served.iter().all(|served| *served > 0) {
                turns[partition] += 1;
            }
            served[partition] += records.len();
        }
        if served.contains(&TURNS_RECORDS) {
            return None;
        }
    }
    Some(turns)
}

fn a_selection_comes_and_the_position_reaches_the_end(log: &dyn EventLog) {
    topic(log, "select", 1, false);
    let mut producer = log.producer("select").unwrap();
    for number in 0..40_u8 {
        let (keys, value) = (vec![vec![number % 10].into()], vec![number; 5_000]);
        let about = Some(About { keys, ..About::at(number.into()) });
        commit(&mut *producer, [NewRecord { about, ..record("select", 0, value) }]);
    }
    let source = at("select", 0);
    let end = log.offsets(&source).unwrap().next;
    let mut reader = log.reader(std::slice::from_ref(&source)).unwrap();
    let (key, since_ns) = (Some(vec![3]), Some(20));
    let is_selective = reader.select(&Selection { key, since_ns, ..Selection::default() });
    let (mut selected, mut others) = (Vec::new(), 0);
    let started = Instant::now();
    while reader.position(&source).unwrap() < end {
        assert!(started.elapsed() < ARRIVAL_MAX, "the end {end} was not reached");
        let Fetched::Records { records, .. } = reader.poll(POLL, ANY, ANY).unwrap() else { continue };
        for number in records.iter().map(|record| record.value[0]) {
            if number % 10 == 3 && number >= 20 { selected.push(number) } else { others += 1 }
        }
    }
    assert_eq!(selected, [23, 33]);
    // A log that leaves out others may deliver some, such as those of its first blocks.
    assert_eq!(others < 38, is_selective, "{others} other records");
}

fn a_waiting_poll_wakes(log: &dyn EventLog) {
    topic(log, "wakes", 1, false);
    let mut reader = log.reader(&[at("wakes", 0)]).unwrap();
    let mut producer = log.producer("wakes").unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            let started = Instant::now();
            let fetched = reader.poll(ARRIVAL_MAX, ANY, ANY).unwrap();
            (matches!(fetched, Fetched::Records { .. }), started.elapsed())
        });
        commit(&mut *producer, [record("wakes", 0, "x")]);
        let (woken, waited) = waiting.join().unwrap();
        assert!(woken && waited < ARRIVAL_MAX / 2, "woken: {woken}, after {waited:?}");
    });
}

fn a_newer_producer_fences(log: &dyn EventLog) {
    topic(log, "fence", 1, false);
    let mut old = log.producer("fence").unwrap();
    commit(&mut *old, [record("fence", 0, "a")]);
    old.begin().unwrap();
    old.send(record("fence", 0, "lost")).unwrap();
    let mut new = log.producer("fence").unwrap();
    let error = old.commit().unwrap_err();
    assert!(matches!(error, LogError::Fenced { .. }), "{error}");
    commit(&mut *new, [record("fence", 0, "b")]);
    let error = old.commit().unwrap_err();
    assert!(matches!(error, LogError::Fenced { .. }), "{error}");
    // A producer with another transactional id is not fenced.
    commit(&mut *log.producer("fence.other").unwrap(), [record("fence", 0, "c")]);
    let mut reader = log.reader(&[at("fence", 0)]).unwrap();
    assert_eq!(values(&take(&mut *reader, &at("fence", 0), 3)), ["a", "b", "c"]);
    expect_silence(&mut *reader);
}

fn compaction_keeps_the_newest_of_each_key(log: &dyn EventLog) {
    topic(log, "compact", 1, true);
    let source = at("compact", 0);
    let keyed = |key: &str, value: &str| NewRecord {
        key: Some(key.as_bytes().to_vec().into()),
        ..record("compact", 0, value)
    };
    let mut producer = log.producer("compact").unwrap();
    commit(&mut *producer, [keyed("a", "a1"), keyed("b", "b1"), keyed("a", "a2")]);
    commit(&mut *producer, [keyed("b", "b2"), keyed("c", "c1")]);
    producer.begin().unwrap();
    producer.send(keyed("c", "aborted")).unwrap();
    producer.abort().unwrap();
    let mut reader = log.reader(std::slice::from_ref(&source)).unwrap();
    let mut newest = std::collections::BTreeMap::new();
    let started = Instant::now();
    while newest.get(b"c".as_slice()) != Some(&b"c1".to_vec()) {
        assert!(started.elapsed() < ARRIVAL_MAX, "{newest:?} came");
        if let Fetched::Records { records, .. } = reader.poll(POLL, 1, ANY).unwrap() {
            for record in records {
                newest.insert(record.key.unwrap(), record.value);
            }
        }
    }
    let newest: Vec<_> = newest.into_values().collect();
    assert_eq!(newest, [b"a2", b"b2", b"c1"]);
    expect_silence(&mut *reader);
}

fn unknown_names_are_errors(log: &dyn EventLog) {
    topic(log, "known", 2, false);
    let unknown_topic = |error: LogError| {
        assert!(matches!(error, LogError::UnknownTopic { .. }), "{error}");
        assert!(error.to_string().contains("\"unknown\""), "{error}");
    };
    let unknown_partition =
        |error: LogError| assert!(matches!(error, LogError::UnknownPartition { .. }), "{error}");
    unknown_topic(log.subscribe("unknown", &["unknown"]).err().unwrap());
    unknown_topic(log.reader(&[at("unknown", 0)]).err().unwrap());
    unknown_partition(log.reader(&[at("known", 2)]).err().unwrap());
    let mut producer = log.producer("unknown").unwrap();
    producer.begin().unwrap();
    unknown_topic(producer.send(record("unknown", 0, "x")).unwrap_err());
    unknown_partition(producer.send(record("known", 2, "x")).unwrap_err());
    unknown_partition(producer.send(record("known", -1, "x")).unwrap_err());
    unknown_topic(producer.send_offsets("g", &[(at("unknown", 0), 1)]).unwrap_err());
    // A refused record leaves the transaction usable, and the log finds a topic that was created meanwhile.
    topic(log, "known.later", 1, false);
    producer.send(record("known.later", 0, "x")).unwrap();
    producer.commit().unwrap();
    let mut reader = log.reader(&[at("known.later", 0)]).unwrap();
    take(&mut *reader, &at("known.later", 0), 1);
    unknown_partition(reader.seek(&at("known", 0), 0).unwrap_err());
    unknown_partition(reader.pause(&[at("known", 0)]).unwrap_err());
}

fn calls_out_of_order_are_errors(log: &dyn EventLog) {
    topic(log, "order", 1, false);
    let mut producer = log.producer("order").unwrap();
    let wrong = |result: Result<(), LogError>| {
        let error = result.unwrap_err();
        assert!(matches!(error, LogError::TransactionState { .. }), "{error}");
    };
    wrong(producer.send(record("order", 0, "x")));
    wrong(producer.send_offsets("order", &[]));
    wrong(producer.commit());
    wrong(producer.abort());
    producer.begin().unwrap();
    wrong(producer.begin());
    producer.send(record("order", 0, "x")).unwrap();
    producer.commit().unwrap();
    wrong(producer.commit());
}
