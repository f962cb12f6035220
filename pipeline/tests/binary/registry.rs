//! A schema registry beside the log: records written in its frame, records read from it, and the behaviour while it is
//! unavailable.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use warptape_eventlog::{Durability, EventLog, NewRecord, Record, SqliteLog};
use warptape_schemas::known::KnownSchema;
use warptape_schemas::tick::{Scales, Side, Tick, TickKind};
use warptape_schemas::{
    DeadLetterReason, REGISTRY_HEADER_SIZE, decode_dead_letter, encode_tick, fingerprint_of, known,
    registry_id_of, to_registry_frame, to_single_object,
};

use super::outputs::{first_difference, outputs, records};
use super::processes::{Running, ends, folder, run_until_drained, texts, warptape, warptape_with};
use super::registry_stub::{RegistryStub, State};

const RUN: [&str; 5] = ["run", "-c", "w.toml", "--log", "sqlite:w.db"];
const FEED: [&str; 9] =
    ["feed", "synth", "--ticks", "20000", "--symbols", "20", "-c", "w.toml", "--log=sqlite:w.db"];
const PASSWORD: &str = "hunter2-must-not-be-seen";

/// Writes a configuration with this registry; an empty address means no registry.
fn configure(folder: &Path, url: &str, more: &str) {
    let text = format!("[stages]\nbars = [\"tick:5\", \"1s\"]\n[schema_registry]\nurl = \"{url}\"\n{more}\n");
    std::fs::write(folder.join("w.toml"), text).expect("a file");
}

fn open(folder: &Path) -> SqliteLog {
    SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a log")
}

/// Runs the pipeline over the existing records, and returns the summary.
#[track_caller]
fn run_over(folder: &Path, log: &SqliteLog) -> String {
    let mut run = Running::start(folder, &RUN);
    run_until_drained(&mut run, log, "warptape");
    run.stop("TERM")
}

fn all(log: &SqliteLog, topic: &str) -> Vec<Record> {
    (0..).zip(ends(log, topic)).flat_map(|(partition, _)| records(log, topic, partition)).collect()
}

fn send(log: &SqliteLog, values: &[Vec<u8>]) {
    send_to(log, 0, values);
}

fn send_to(log: &SqliteLog, partition: i32, values: &[Vec<u8>]) {
    let mut producer = log.producer("test").expect("a producer");
    producer.begin().expect("a transaction");
    for value in values {
        let record =
            NewRecord { topic: "ticks".into(), partition, value: value.into(), ..NewRecord::default() };
        producer.send(record).expect("a record of the transaction");
    }
    producer.commit().expect("a commit");
}

fn trade(number: i64) -> Tick {
    Tick {
        symbol: "T:X".to_owned(),
        kind: TickKind::Trade,
        event_time_ns: 1_700_000_000_000_000_000 + number,
        receive_time_ns: 0,
        trade_id: number,
        side: Side::Buy,
        price_e9: 5,
        size_e9: 3,
        bid_price_e9: 0,
        bid_size_e9: 0,
        ask_price_e9: 0,
        ask_size_e9: 0,
        scales: Scales::E9,
    }
}

/// Returns a trade in the registry's frame.
fn framed(number: i64, id: u32) -> Vec<u8> {
    let mut value = Vec::new();
    encode_tick(&trade(number), &mut value).expect("a good tick");
    let mut framed = Vec::new();
    to_registry_frame(&value, id, &mut framed);
    framed
}

/// Returns a foreign schema of ticks, with a further field at the end.
fn foreign_schema() -> String {
    let mut json: serde_json::Value = serde_json::from_str(known::TICK.text).expect("JSON");
    let field = serde_json::json!({"name": "venue_note", "type": "string", "default": ""});
    json["fields"].as_array_mut().expect("fields").push(field);
    json.to_string()
}

/// All subjects, each with the schema whose written versions it has.
const SUBJECTS: [(&str, KnownSchema); 15] = [
    ("control-value", known::CONTROL),
    ("control.results-value", known::CONTROL_RESULT),
    ("dead-letter-value", known::DEAD_LETTER),
    ("feeds-value", known::FEED),
    ("journal-value", known::JOURNAL_ENTRY),
    ("late-value", known::LATE_TICK),
    ("lifecycle-value", known::LIFECYCLE),
    ("risk.requests-value", known::RISK_REQUEST),
    ("risk.results-value", known::RISK_RESULT),
    ("signals-value", known::SIGNAL),
    ("snapshots-value", known::SNAPSHOT),
    ("ticks-value", known::TICK),
    ("ticks-warptape.PackedTickBatch", known::PACKED_TICK_BATCH),
    ("ticks-warptape.ScaledTickBatch", known::SCALED_TICK_BATCH),
    ("ticks-warptape.TickBatch", known::TICK_BATCH),
];

#[test]
fn with_a_registry_every_record_is_framed_and_nothing_else_changes() {
    let stub = RegistryStub::start(None);
    let (with, without) = (folder(), folder());
    configure(with.path(), &stub.url(), "");
    configure(without.path(), "", "");
    let logs = [with.path(), without.path()].map(|folder| {
        texts(&warptape(folder, &FEED), 0);
        let log = open(folder);
        run_over(folder, &log);
        log
    });

    // Each record names a schema of its topic, according to Confluent's naming strategies.
    let state = stub.state();
    let names: Vec<&str> = state.subjects.keys().map(String::as_str).collect();
    assert_eq!(names, SUBJECTS.map(|(subject, _)| subject));
    assert!(state.levels.keys().eq(state.subjects.keys()), "{:?}", state.levels);
    // In these subjects, new kinds of requests, answers, inputs and decisions add branches that earlier readers lack;
    // new kinds of signals add symbols.
    let growing =
        ["control-value", "journal-value", "risk.requests-value", "risk.results-value", "signals-value"];
    for (name, schema) in SUBJECTS {
        let expected = if growing.contains(&name) { "BACKWARD_TRANSITIVE" } else { "FULL_TRANSITIVE" };
        assert_eq!(state.levels[name], expected, "{name}");
        assert_eq!(state.subjects[name].len(), known::written(schema).count(), "{name}");
    }
    for topic in ["ticks", "signals", "journal", "snapshots", "lifecycle"] {
        let records = all(&logs[0], topic);
        assert!(!records.is_empty(), "{topic}");
        for record in &records {
            let id = registry_id_of(&record.value).expect("a record in the registry's frame");
            let of_topic = |(name, ids): (&String, &Vec<u32>)| name.starts_with(topic) && ids.contains(&id);
            assert!(state.subjects.iter().any(of_topic), "{topic} has a record of schema {id}");
        }
        assert!(all(&logs[1], topic).iter().all(|record| fingerprint_of(&record.value).is_some()), "{topic}");
    }
    // Each id is checked against the registered schema, and nothing else is requested.
    let asked =
        state.requests.iter().filter_map(|request| request.strip_prefix("GET /schemas/ids/")?.parse().ok());
    let (asked, kept): (BTreeSet<u32>, BTreeSet<u32>) =
        (asked.collect(), state.subjects.values().flatten().copied().collect());
    assert_eq!(asked, kept);
    // Records have several versions of their schemas, which are registered in order.
    let written = |(topic, schema): (&'static str, KnownSchema)| {
        let ids = state.subjects[&format!("{topic}-value")].clone();
        ids.into_iter().zip(known::written(schema)).map(move |(id, schema)| (topic, id, schema))
    };
    let schemas: Vec<_> =
        [("signals", known::SIGNAL), ("late", known::LATE_TICK)].into_iter().flat_map(written).collect();
    drop(state);

    // Except for the frame, the outputs have the same bytes.
    let [mut framed, plain] = [&logs[0], &logs[1]].map(|log| outputs(log, ""));
    for ((topic, _), records) in &mut framed {
        for record in records {
            let is_its =
                |(name, id, _): &&(&str, u32, _)| name == topic && registry_id_of(&record.value) == Some(*id);
            let (_, _, schema) = schemas.iter().find(is_its).expect("the schema of a record of its topic");
            to_single_object(&mut record.value, schema.fingerprint);
        }
    }
    assert_eq!(first_difference(&plain, &framed), None);

    // Commands for people and replay can decode the frame.
    let verify = ["replay", "verify", "--outputs", "-c", "w.toml", "--log", "sqlite:w.db"];
    let verified = [with.path(), without.path()].map(|folder| texts(&warptape(folder, &verify), 0).0);
    assert!(verified[0].ends_with(" signals: identical\n"), "{}", verified[0]);
    for topic in ["ticks", "signals", "journal", "lifecycle"] {
        let arguments =
            ["tail", topic, "-c", "w.toml", "--log", "sqlite:w.db", "--from-beginning", "--exit-at-end"];
        let (table, _) = texts(&warptape(with.path(), &arguments), 0);
        assert!(!table.contains("cannot be decoded") && table.lines().count() > 1, "{topic}: {table}");
    }
    stub.assert_documented();
}

#[test]
fn both_frames_are_read_by_id_and_by_fingerprint_and_an_unknown_id_is_a_dead_letter() {
    let stub = RegistryStub::start(None);
    let folder = folder();
    let folder = folder.path();
    // A log that began without a registry continues with one.
    configure(folder, "", "");
    texts(&warptape(folder, &FEED), 0);
    let log = open(folder);
    run_over(folder, &log);
    configure(folder, &stub.url(), "");
    let (foreign, signal) = {
        let mut state = stub.state();
        (state.add(&foreign_schema()), state.add(known::SIGNAL.text))
    };
    // The foreign schema's additional field is an empty string, which is one byte at the end.
    let with_note = |number| [framed(number, foreign), vec![0]].concat();
    let unknown = foreign + 1_000;
    send(&log, &[with_note(1), framed(2, unknown), with_note(3), framed(4, signal), framed(5, unknown)]);
    texts(&warptape(folder, &[&FEED[..], &["--again"]].concat()), 0);
    let summary = run_over(folder, &log);
    assert!(summary.lines().any(|line| line.starts_with("dead  ") && line.contains(" 3 ")), "{summary}");

    let letters: Vec<_> = all(&log, "dead-letter")
        .into_iter()
        .map(|mut record| {
            to_single_object(&mut record.value, known::DEAD_LETTER_2.fingerprint);
            decode_dead_letter(&record.value).expect("a dead letter")
        })
        .collect();
    let found: Vec<_> = letters.iter().map(|letter| (letter.reason, letter.value.clone())).collect();
    let expected = [
        (DeadLetterReason::UnknownSchema, framed(2, unknown)),
        (DeadLetterReason::WrongSchema, framed(4, signal)),
        (DeadLetterReason::UnknownSchema, framed(5, unknown)),
    ];
    assert_eq!(found, expected);
    assert!(letters[0].detail.contains(&format!("registry id {unknown}")), "{}", letters[0].detail);
    assert!(letters[1].detail.contains("the schema is of Signal"), "{}", letters[1].detail);

    // A dead letter is sent back with its original bytes, not with Warptape's frame.
    let one = ["dlq", "replay", "--offset", "0", "-c", "w.toml", "--log", "sqlite:w.db"];
    assert!(texts(&warptape(folder, &one), 0).0.contains("ticks partition 0"));
    assert_eq!(records(&log, "ticks", 0).last().map(|record| record.value.clone()), Some(framed(2, unknown)));
    run_over(folder, &log);

    let verify = ["replay", "verify", "--outputs", "-c", "w.toml", "--log", "sqlite:w.db"];
    // The journal records the request to publish the feed's ticks again.
    let (verified, _) = texts(&warptape(folder, &verify), 0);
    assert!(
        verified.contains(" signals: identical\nnote: trades with an id that their symbol had before: "),
        "{verified}"
    );
    // Each process requests an id only once.
    let count = |id: u32| {
        let request = format!("GET /schemas/ids/{id}");
        stub.state().requests.iter().filter(|made| **made == request).count()
    };
    assert_eq!(
        [count(foreign), count(unknown), count(signal)],
        [3, 4, 4],
        "two runs, the feed between them, and replay verify"
    );
    stub.assert_documented();
}

#[test]
fn a_registry_that_cannot_be_had_at_start_is_named_with_what_to_do() {
    let folder = folder();
    let folder = folder.path();
    let closed = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("an address");
    let refused = |url: &str, more: &str, parts: &[&str]| {
        configure(folder, url, more);
        for arguments in [&RUN[..], &FEED] {
            let (out, error) = texts(&warptape(folder, arguments), 1);
            assert!(out.is_empty() && error.contains(url) && !error.contains(PASSWORD), "{out}{error}");
            assert!(parts.iter().all(|part| error.contains(part)), "{parts:?}: {error}");
        }
    };
    let start = ["does not answer", "check schema_registry.url"];
    refused(&format!("http://{closed}"), "", &start);

    let away = RegistryStub::start(None);
    away.state().is_away = true;
    refused(&away.url(), "", &["503", "away for a test", start[1]]);

    // Basic authentication with user `me` and the password, according to RFC 7617.
    let guarded = RegistryStub::start(Some("Basic bWU6aHVudGVyMi1tdXN0LW5vdC1iZS1zZWVu"));
    std::fs::write(folder.join("password"), format!("{PASSWORD}\n")).expect("a file");
    refused(&guarded.url(), "", &["401", "WARPTAPE__SCHEMA_REGISTRY__PASSWORD_FILE"]);
    refused(
        &guarded.url(),
        "username = \"you\"\npassword_file = \"password\"",
        &["401", "schema_registry.username"],
    );
    configure(folder, &guarded.url(), "username = \"me\"\npassword_file = \"password\"");
    texts(&warptape(folder, &FEED), 0);
    guarded.assert_documented();

    let taken = RegistryStub::start(None);
    {
        let mut state = taken.state();
        let id = state.add("{\"type\": \"record\", \"name\": \"Order\", \"fields\": []}");
        state.subjects.insert("ticks-value".to_owned(), vec![id]);
    }
    refused(&taken.url(), "", &["ticks-value", "NAME_MISMATCH", "topics.prefix"]);
    // The address leads to another service.
    refused(&format!("{}/other", taken.url()), "", &["404", "check that schema_registry.url"]);
}

#[test]
fn a_registry_behind_tls_must_be_one_that_the_system_trusts() {
    let (stub, certificate) = RegistryStub::start_tls();
    let folder = folder();
    let folder = folder.path();
    configure(folder, &stub.url(), "");
    let (_, error) = texts(&warptape(folder, &FEED), 1);
    assert!(error.contains(&stub.url()) && error.contains("certificate"), "{error}");
    assert!(stub.state().requests.is_empty());

    std::fs::write(folder.join("authorities.pem"), certificate).expect("a file");
    texts(&warptape_with(folder, &FEED, &[("SSL_CERT_FILE", "authorities.pem")]), 0);
    assert_eq!(stub.state().subjects.len(), 5);
    stub.assert_documented();
}

#[test]
fn a_registry_that_gives_one_id_to_all_schemas_is_not_believed() {
    let stub = RegistryStub::start(None);
    stub.state().has_one_id = true;
    let folder = folder();
    configure(folder.path(), &stub.url(), "");
    for arguments in [&RUN[..], &FEED] {
        let (_, error) = texts(&warptape(folder.path(), arguments), 1);
        let named = ["id 70000", "holds another schema under that id", &stub.url()];
        assert!(named.iter().all(|word| error.contains(word)), "{error}");
    }
    // No unreadable record was written, so everything continues once the registry works.
    *stub.state() = State::default();
    texts(&warptape(folder.path(), &FEED), 0);
    let log = open(folder.path());
    run_over(folder.path(), &log);
}

/// Settings with two partitions, and a shorter time after which a record counts as stray.
const TWO_PARTITIONS: &str = "retry_ms = 1500\n[topics]\npartitions = 2";

/// Returns the number of signals and late ticks of a partition, which are the outputs of trades with a known schema.
fn signals(log: &SqliteLog, partition: i32) -> usize {
    ["signals", "late"].map(|topic| records(log, topic, partition).len()).iter().sum()
}

#[test]
fn a_stray_record_is_a_dead_letter_and_holds_up_no_other_partition() {
    let stub = RegistryStub::start(None);
    let folder = folder();
    let folder = folder.path();
    configure(folder, &stub.url(), TWO_PARTITIONS);
    texts(&warptape(folder, &FEED), 0);
    let log = open(folder);
    let mut run = Running::start(folder, &RUN);
    run_until_drained(&mut run, &log, "warptape");
    let good = stub.state().subjects["ticks-value"][0];
    let (failing, foreign) = (good + 1_000, good + 1_001);
    stub.state()
        .broken
        .extend([(failing, (500, "<html>oops</html>")), (foreign, (200, "<html>hello</html>"))]);

    let before = [signals(&log, 0), signals(&log, 1)];
    let ticks =
        |numbers: std::ops::Range<i64>| numbers.map(|number| framed(number, good)).collect::<Vec<_>>();
    send(&log, &[vec![framed(1, failing)], ticks(2..12), vec![framed(12, foreign)], ticks(13..23)].concat());
    send_to(&log, 1, &ticks(0..10));
    run.run_until("the other partition goes on", || (signals(&log, 1) > before[1]).then_some(()));
    assert!(all(&log, "dead-letter").is_empty(), "it was not asked for long enough");
    run_until_drained(&mut run, &log, "warptape");
    assert!(signals(&log, 0) > before[0], "the partition goes on behind them");
    run.stop("TERM");
    let letters: Vec<_> = all(&log, "dead-letter")
        .into_iter()
        .map(|mut record| {
            to_single_object(&mut record.value, known::DEAD_LETTER_2.fingerprint);
            let letter = decode_dead_letter(&record.value).expect("a dead letter");
            (letter.reason, letter.value)
        })
        .collect();
    let dead = |value| (DeadLetterReason::UnknownSchema, value);
    assert_eq!(letters, [dead(framed(1, failing)), dead(framed(12, foreign))]);
    let verify = ["replay", "verify", "--outputs", "-c", "w.toml", "--log", "sqlite:w.db"];
    assert!(texts(&warptape(folder, &verify), 0).0.contains(" signals: identical\n"));
    stub.assert_documented();
}

#[test]
fn a_registry_that_is_away_is_waited_for_and_loses_no_record() {
    let stub = RegistryStub::start(None);
    let folder = folder();
    let folder = folder.path();
    configure(folder, &stub.url(), TWO_PARTITIONS);
    texts(&warptape(folder, &FEED), 0);
    let log = open(folder);
    let mut run = Running::start(folder, &RUN);
    run_until_drained(&mut run, &log, "warptape");

    let foreign = stub.state().add(&foreign_schema());
    let good = stub.state().subjects["ticks-value"][0];
    stub.state().is_away = true;
    let before = [signals(&log, 0), signals(&log, 1)];
    send(&log, &(0..10).map(|number| [framed(number, foreign), vec![0]].concat()).collect::<Vec<_>>());
    send_to(&log, 1, &(0..10).map(|number| framed(number, good)).collect::<Vec<_>>());
    run.run_until("the other partition goes on", || (signals(&log, 1) > before[1]).then_some(()));
    // The pause exceeds the time for which the id of a stray record is requested.
    run.run_for(Duration::from_secs(3));
    assert_eq!(signals(&log, 0), before[0]);
    let verify = ["replay", "verify", "--outputs", "-c", "w.toml", "--log", "sqlite:w.db"];
    stub.state().is_away = false;
    run_until_drained(&mut run, &log, "warptape");
    assert!(signals(&log, 0) > before[0] && all(&log, "dead-letter").is_empty());
    run.stop("TERM");
    assert!(texts(&warptape(folder, &verify), 0).0.contains(" signals: identical\n"));
    stub.assert_documented();
}

#[test]
fn schema_ids_in_headers_are_read() {
    let stub = RegistryStub::start(None);
    let folder = folder();
    let folder = folder.path();
    configure(folder, &stub.url(), TWO_PARTITIONS);
    texts(&warptape(folder, &FEED), 0);
    let log = open(folder);
    run_over(folder, &log);
    let good = stub.state().subjects["ticks-value"][0];
    let guid: [u8; 16] = std::array::from_fn(|index| index as u8 + 0xa0);
    stub.state().guids.insert("a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf".to_owned(), good);

    let datum = |number| framed(number, good)[REGISTRY_HEADER_SIZE..].to_vec();
    let by_id = [&[0][..], &good.to_be_bytes()].concat();
    let by_guid = [&[1][..], &guid].concat();
    let unknown = [1; 17];
    let mut producer = log.producer("test").expect("a producer");
    producer.begin().expect("a transaction");
    for (number, header) in [&by_id[..], &by_guid, &by_guid, &unknown, &by_id].into_iter().enumerate() {
        let headers = vec![("theirs".to_owned(), vec![1]), ("__value_schema_id".to_owned(), header.to_vec())];
        let (topic, value) = ("ticks".into(), datum(number as i64).into());
        producer
            .send(NewRecord { topic, value, headers: headers.into(), ..NewRecord::default() })
            .expect("a record");
    }
    producer.commit().expect("a commit");
    let before = signals(&log, 0);
    let summary = run_over(folder, &log);
    assert!(summary.lines().any(|line| line.starts_with("dead  ") && line.contains(" 1 ")), "{summary}");
    assert!(signals(&log, 0) >= before, "{summary}");
    let count = |what: &str| stub.state().requests.iter().filter(|request| request.contains(what)).count();
    assert_eq!([count("a0a1a2a3-"), count("01010101-")], [1, 1], "once for each guid");

    // Both the log and an exported file verify; the file does not need a registry.
    let verify = |log| ["replay", "verify", "--outputs", "-c", "w.toml", "--log", log];
    assert!(texts(&warptape(folder, &verify("sqlite:w.db")), 0).0.contains(" signals: identical\n"));
    let export =
        ["replay", "export", "--with-ticks", "--to", "out.db", "-c", "w.toml", "--log", "sqlite:w.db"];
    texts(&warptape(folder, &export), 0);
    configure(folder, "", "[topics]\npartitions = 2");
    assert!(texts(&warptape(folder, &verify("sqlite:out.db")), 0).0.contains(" signals: identical\n"));
    stub.assert_documented();
}
