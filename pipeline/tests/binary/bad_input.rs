//! Unusable records, late ticks, and invalid configurations, tested with the binary.

use std::path::Path;

use warptape_eventlog::{Durability, EventLog, NewRecord, SqliteLog, TopicSpec};
use warptape_schemas::signal::Signal;
use warptape_schemas::tick::{Scales, Side, Tick, TickKind};
use warptape_schemas::{
    DeadLetter, DeadLetterReason, HEADER_SIZE, LateTick, decode_dead_letter, decode_late_tick, decode_signal,
    encode_signal, encode_tick, encode_tick_batch, known,
};

use super::outputs::records;
use super::processes::{Running, folder, run_until_drained, texts, warptape, warptape_with};

pub const PARTITIONS: i32 = 2;
const GOOD_TICKS: i64 = 400;
/// Number of good records between two poisonous ones.
const GOOD_BETWEEN: i64 = 7;
/// Numbers of the good ticks that come too late. The next constant is their delay.
const LATE_TICKS: [i64; 2] = [101, 202];
const LATE_NS: i64 = 60_000_000_000;
const START_NS: i64 = 1_723_075_200_000_000_000;

fn trade(number: i64) -> Tick {
    let late_ns = if LATE_TICKS.contains(&number) { LATE_NS } else { 0 };
    Tick {
        symbol: format!("T:S{}", number / 2 % 3),
        kind: TickKind::Trade,
        event_time_ns: START_NS + number * 100_000_000 - late_ns,
        receive_time_ns: 0,
        trade_id: number,
        side: Side::Buy,
        price_e9: 1_000_000_000 + number * 37 % 101,
        size_e9: 1_000_000_000 + number,
        bid_price_e9: 0,
        bid_size_e9: 0,
        ask_price_e9: 0,
        ask_size_e9: 0,
        scales: Scales::E9,
    }
}

fn encoded(tick: &Tick) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_tick(tick, &mut bytes).expect("a good tick");
    bytes
}

/// Encodes an Avro `long`.
fn long(value: i64) -> Vec<u8> {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    let mut bytes = Vec::new();
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

/// Encodes a trade with any values, including those that `encode_tick` refuses.
fn raw_trade(kind: i64, event_time_ns: i64, price_e9: i64, size_e9: i64) -> Vec<u8> {
    let mut bytes = vec![0xc3, 0x01];
    bytes.extend(known::TICK.fingerprint.to_le_bytes());
    bytes.extend(long(3));
    bytes.extend(b"T:X");
    for value in [kind, event_time_ns, 0, 1, 1, price_e9, size_e9, 0, 0, 0, 0] {
        bytes.extend(long(value));
    }
    bytes
}

/// Returns a record of each kind of poison, with the reason of its rejection.
fn poisons() -> Vec<(DeadLetterReason, Vec<u8>)> {
    // The raw writer gives the same bytes as the real one for allowed values.
    let good =
        Tick { symbol: "T:X".to_owned(), trade_id: 1, event_time_ns: 7, price_e9: 5, size_e9: 3, ..trade(0) };
    assert_eq!(raw_trade(0, 7, 5, 3), encoded(&good));

    let good = encoded(&good);
    let mut unknown = good.clone();
    unknown[2..HEADER_SIZE].fill(0x55);
    let mut endless = good[..HEADER_SIZE].to_vec();
    endless.extend([0xff; 20]);
    let mut batch = Vec::new();
    // The record's symbol is new: a rejected record must not assign a number to it.
    let rows = [3, 4].map(|number| Tick { symbol: "T:ONLY-HERE".to_owned(), ..trade(number) });
    encode_tick_batch(&rows, &mut batch).expect("a good batch");
    batch.truncate(batch.len() - 2);
    let mut signal = Vec::new();
    encode_signal(&some_signal(), &mut signal);
    vec![
        (DeadLetterReason::NotFramed, b"{\"price\": 1}".to_vec()),
        (DeadLetterReason::NotFramed, Vec::new()),
        (DeadLetterReason::UnknownSchema, unknown),
        (DeadLetterReason::WrongSchema, signal),
        (DeadLetterReason::Truncated, good[..good.len() - 1].to_vec()),
        (DeadLetterReason::Truncated, batch),
        (DeadLetterReason::TrailingBytes, [&good[..], b"x"].concat()),
        (DeadLetterReason::Malformed, endless),
        (DeadLetterReason::BadPrice, raw_trade(0, 7, i64::MIN, 3)),
        (DeadLetterReason::BadPrice, raw_trade(0, 7, i64::MAX, 3)),
        (DeadLetterReason::BadPrice, raw_trade(0, 7, 0, 3)),
        (DeadLetterReason::BadPrice, raw_trade(0, 7, 0, 3)),
        (DeadLetterReason::BadSize, raw_trade(0, 7, 5, -3)),
        (DeadLetterReason::BadTime, raw_trade(0, 0, 5, 3)),
        (DeadLetterReason::BadTime, raw_trade(0, -7, 5, 3)),
        (DeadLetterReason::BadKind, raw_trade(2, 7, 5, 3)),
    ]
}

fn some_signal() -> Signal<'static> {
    Signal {
        symbol: "T:X".into(),
        kind: warptape_schemas::signal::SignalKind::EmaCrossUp,
        bar_spec: "1s".into(),
        bar_start_ns: 1,
        bar_end_ns: 2,
        source_offset: 0,
        source_index: 0,
        value: 1.0,
        threshold: 0.5,
        bar: None,
        name: None,
    }
}

/// Records of each source partition in order, each with the reason of its rejection; `None` for good records.
pub type Source = Vec<Vec<(Vec<u8>, Option<DeadLetterReason>)>>;

/// Returns good ticks in all partitions, with or without all the poison among them.
pub fn source(with_poison: bool) -> Source {
    let mut partitions: Source = vec![Vec::new(); PARTITIONS as usize];
    let mut poisons = poisons().into_iter();
    for number in 0..GOOD_TICKS {
        let partition = &mut partitions[number as usize % PARTITIONS as usize];
        partition.push((encoded(&trade(number)), None));
        if with_poison && number % GOOD_BETWEEN == 0 {
            partition.extend(poisons.next().map(|(reason, bytes)| (bytes, Some(reason))));
        }
    }
    assert!(!with_poison || poisons.next().is_none(), "too few good ticks to hide all the poison among");
    partitions
}

/// Writes the records into a new log and runs the pipeline over it. Returns the log and the summary.
pub fn run_over(folder: &Path, name: &str, source: &Source) -> (SqliteLog, String) {
    let log = SqliteLog::open(folder.join(name), Durability::Process).expect("a new log");
    let ticks = TopicSpec { name: "ticks".to_owned(), partitions: PARTITIONS, ..TopicSpec::default() };
    log.create_topics(&[ticks]).expect("a new topic");
    let mut producer = log.producer("test").expect("a producer");
    producer.begin().expect("a transaction");
    for (partition, records) in (0..).zip(source) {
        for (number, (value, _)) in records.iter().enumerate() {
            let key = Some(format!("key {number}").into_bytes().into());
            let (topic, value) = ("ticks".into(), value.into());
            let record = NewRecord { topic, partition, key, value, ..NewRecord::default() };
            producer.send(record).expect("a record of the transaction");
        }
    }
    producer.commit().expect("a commit");
    std::fs::write(
        folder.join("w.toml"),
        "[stages]\nbars = [\"tick:2\", \"1s\"]\nallowed_lateness_ms = 1000\n",
    )
    .expect("a file");
    let mut run = Running::start(folder, &["run", "-c", "w.toml", "--log", &format!("sqlite:{name}")]);
    run_until_drained(&mut run, &log, "warptape");
    let summary = run.stop("TERM");
    (log, summary)
}

/// Returns the signals and late ticks of a partition. Their offsets count only good records.
fn good_outputs(log: &SqliteLog, source: &Source, partition: i32) -> (Vec<Signal<'static>>, Vec<LateTick>) {
    let records_before = &source[partition as usize];
    let good_before = |offset: i64| {
        records_before[..offset as usize].iter().filter(|(_, reason)| reason.is_none()).count() as i64
    };
    let signals = records(log, "signals", partition).into_iter().map(|record| {
        let mut signal = decode_signal(&record.value).expect("a signal").into_owned();
        signal.source_offset = good_before(signal.source_offset);
        signal
    });
    let late = records(log, "late", partition).into_iter().map(|record| {
        let mut late = decode_late_tick(&record.value).expect("a late tick");
        late.offset = good_before(late.offset);
        late
    });
    (signals.collect(), late.collect())
}

/// Returns the expected dead letters of a partition; their details are copied from the letters found.
fn expected_letters(source: &Source, partition: i32, found: &[DeadLetter]) -> Vec<DeadLetter> {
    let poisonous = (0..).zip(&source[partition as usize]).filter_map(|(offset, (value, reason))| {
        let reason = (*reason)?;
        Some((offset, value.clone(), reason))
    });
    let letter = |(index, (offset, value, reason)): (usize, (i64, Vec<u8>, DeadLetterReason))| DeadLetter {
        topic: "ticks".to_owned(),
        partition,
        offset,
        reason,
        detail: found.get(index).map(|letter| letter.detail.clone()).unwrap_or_default(),
        key: Some(format!("key {offset}").into_bytes()),
        value,
        cut: None,
        last_offset: None,
        rows: Vec::new(),
    };
    poisonous.enumerate().map(letter).collect()
}

#[test]
fn every_poison_dies_once_and_changes_nothing_else() {
    let folder = folder();
    let folder = folder.path();
    let (clean_source, source) = (source(false), source(true));
    let (clean_log, clean_summary) = run_over(folder, "clean.db", &clean_source);
    let (log, summary) = run_over(folder, "poisoned.db", &source);
    assert!(!clean_summary.contains("dead  "), "{clean_summary}");
    let dead = summary.lines().find(|line| line.starts_with("dead  ")).expect("a line about the dead");
    assert!(dead.contains(&format!(" {} ", poisons().len())), "{dead}");

    for partition in 0..PARTITIONS {
        let letters: Vec<DeadLetter> = records(&log, "dead-letter", partition)
            .iter()
            .map(|record| decode_dead_letter(&record.value).expect("a dead letter"))
            .collect();
        assert_eq!(letters, expected_letters(&source, partition, &letters));
        assert!(!letters.is_empty() && letters.iter().all(|letter| !letter.detail.is_empty()), "{letters:?}");
        assert!(records(&clean_log, "dead-letter", partition).is_empty());

        let (signals, late) = good_outputs(&log, &source, partition);
        let (clean_signals, clean_late) = good_outputs(&clean_log, &clean_source, partition);
        assert!(signals.len() as i64 > GOOD_TICKS / 2 / i64::from(PARTITIONS), "{}", signals.len());
        assert_eq!(signals, clean_signals, "partition {partition}");
        assert_eq!(late, clean_late, "partition {partition}");

        let number = LATE_TICKS[usize::from(LATE_TICKS[0] % 2 != i64::from(partition))];
        let late: Vec<Tick> = late.iter().map(LateTick::tick).collect();
        assert_eq!(late, [trade(number)], "partition {partition}");
    }

    let verify = ["replay", "verify", "--outputs", "--log", "sqlite:poisoned.db"];
    assert!(texts(&warptape(folder, &verify), 0).0.ends_with(" signals: identical\n"));
    let tail = ["tail", "dead-letter", "--from-beginning", "--exit-at-end", "--log", "sqlite:poisoned.db"];
    let (table, _) = texts(&warptape(folder, &tail), 0);
    for (reason, _) in poisons() {
        assert!(table.contains(reason.name()), "{} is missing in:\n{table}", reason.name());
    }
}

#[test]
fn run_and_demo_name_all_mistakes_and_touch_nothing() {
    let folder = folder();
    let text = "[engine]\ndevices = [\"gpu\"]\ncommit_interval_ms = 0\n[stages]\nbars = [\"1x\"]\n[topic]\n";
    std::fs::write(folder.path().join("w.toml"), text).expect("a file");
    for command in [&["run"][..], &["demo", "--data", "d"], &["feed", "synth"]] {
        let arguments = [command, &["-c", "w.toml"]].concat();
        let (out, error) = texts(&warptape(folder.path(), &arguments), 2);
        assert!(out.is_empty(), "{out}");
        for part in [
            "4 mistakes",
            "engine.devices (w.toml:2)",
            "engine.commit_interval_ms (w.toml:3): found 0; allowed: a whole number from 1 to 60000",
            "stages.bars (w.toml:5)",
            "topic (w.toml:6)",
        ] {
            assert!(error.contains(part), "{command:?}: {part:?} is missing in: {error}");
        }
        assert!(!folder.path().join("warptape.db").exists() && !folder.path().join("d/demo.db").exists());
    }
}

#[test]
fn a_fault_of_a_device_that_cannot_be_is_named() {
    let folder = folder();
    let run = |faults: &str| {
        let demo = ["demo", "--ticks", "1000", "--data", faults];
        warptape_with(folder.path(), &demo, &[("WARPTAPE_DEVICE_FAULTS", faults)])
    };
    let wrong = run("cuda:0=fire:1");
    let error = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(
        !wrong.status.success() && error.contains("\"fire:1\" is no fault of a device; write DEVICE=FAULT"),
        "{error}"
    );
    texts(&run("cuda:0=launch:1"), 0);
}
