//! Dead letters from a user's view: their headers, `dlq list`, `dlq show` and `dlq replay`.

use std::path::Path;

use warptape_eventlog::{Durability, EventLog, NewRecord, Record, SqliteLog, TopicSpec};
use warptape_schemas::{DeadLetter, DeadLetterReason, decode_dead_letter, encode_dead_letter};

use super::outputs::records;
use super::processes::{Running, ends, folder, run_until_drained, texts, warptape};

const TICKS: [&[&[u8]]; 2] = [&[b"{\"price\": 1}"], &[b"", b"\xc3\x01UUUUUUUU"]];

fn send(log: &SqliteLog, topic: &str, partition: i32, value: &[u8]) {
    let mut producer = log.producer("test").expect("a producer");
    producer.begin().expect("a transaction");
    let (topic, value, key) = (topic.into(), value.into(), Some(b"key".into()));
    producer.send(NewRecord { topic, partition, key, value, ..NewRecord::default() }).expect("a record");
    producer.commit().expect("a commit");
}

/// Runs the pipeline over a log of two partitions that have only poison.
fn poisoned(folder: &Path) -> SqliteLog {
    let log = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a new log");
    let ticks = TopicSpec { name: "ticks".to_owned(), partitions: 2, ..TopicSpec::default() };
    log.create_topics(&[ticks]).expect("a new topic");
    for (partition, values) in (0..).zip(TICKS) {
        values.iter().for_each(|value| send(&log, "ticks", partition, value));
    }
    run_over(folder, &log);
    log
}

fn run_over(folder: &Path, log: &SqliteLog) {
    let mut run = Running::start(folder, &["run", "--log", "sqlite:w.db"]);
    run_until_drained(&mut run, log, "warptape");
    run.stop("TERM");
}

#[track_caller]
fn dlq(folder: &Path, arguments: &[&str]) -> String {
    let arguments = [&["dlq", "--log", "sqlite:w.db"], arguments].concat();
    texts(&warptape(folder, &arguments), 0).0
}

fn values(records: &[Record]) -> Vec<&[u8]> {
    records.iter().map(|record| &*record.value).collect()
}

#[test]
fn dead_letters_have_headers_that_other_tools_know() {
    let folder = folder();
    let log = poisoned(folder.path());
    let letter = &records(&log, "dead-letter", 1)[1];
    let headers: Vec<_> = letter
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), std::str::from_utf8(value).expect("a text")))
        .collect();
    let message = "no schema with fingerprint 5555555555555555 is known: publish with one of schemas/avro/*.avsc, or \
                   register the writer's schema";
    assert_eq!(
        headers,
        [
            ("__streams.errors.exception", "UNKNOWN_SCHEMA"),
            ("__streams.errors.message", message),
            ("__streams.errors.topic", "ticks"),
            ("__streams.errors.partition", "1"),
            ("__streams.errors.offset", "1"),
        ]
    );
}

#[test]
fn dead_letters_are_listed_and_shown_byte_by_byte() {
    let folder = folder();
    let folder = folder.path();
    let log = poisoned(folder);
    send(&log, "dead-letter", 0, b"none of ours");

    let list = dlq(folder, &["list"]);
    let rows: Vec<Vec<&str>> = list.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["PARTITION", "OFFSET", "TIME", "REASON", "SOURCE", "BYTES"]);
    let without_time = |row: &[&str]| [&row[..2], &row[3..]].concat().join(" ");
    assert_eq!(without_time(&rows[1]), "0 0 NOT_FRAMED ticks:0:0 12");
    assert!(without_time(&rows[2]).starts_with("0 1 (unreadable) no Avro single-object header"), "{list}");
    assert_eq!(without_time(&rows[3]), "1 0 NOT_FRAMED ticks:1:0 0");
    assert_eq!(without_time(&rows[4]), "1 1 UNKNOWN_SCHEMA ticks:1:1 10");
    assert_eq!(rows.len(), 5);

    assert_eq!(dlq(folder, &["list", "-o", "text"]), list, "the earlier name of the format");
    let text = dlq(folder, &["list", "-o", "csv"]);
    let letters: Vec<csv::StringRecord> =
        csv::Reader::from_reader(text.as_bytes()).into_records().map(|row| row.expect("a row")).collect();
    assert!(text.starts_with("partition,offset,written,reason,source_topic,"), "{text}");
    let of = |row: usize, columns: &[usize]| columns.iter().map(|at| &letters[row][*at]).collect::<Vec<_>>();
    let place = [0, 1, 3, 4, 5, 6, 7, 8, 9];
    assert_eq!(of(0, &place), ["0", "0", "NOT_FRAMED", "ticks", "0", "0", "", "", "12"]);
    assert_eq!(of(1, &place), ["0", "1", "(unreadable)", "", "", "", "", "", "12"]);
    assert!(letters[1][10].starts_with("no Avro single-object header"), "{text}");
    assert!(letters[0][2].ends_with('Z') && letters.len() == 4, "{text}");
    let raw = dlq(folder, &["list", "-o", "json", "--raw"]);
    let numbers = dlq(folder, &["list", "-o", "json"]);
    assert!(raw.contains(r#""offset":"0""#) && numbers.contains(r#""offset":0"#), "{raw}{numbers}");

    let shown = dlq(folder, &["show", "0"]);
    for part in [
        "record     dead-letter partition 0 offset 0\n",
        "header     __streams.errors.exception: NOT_FRAMED\n",
        "source     ticks partition 0 offset 0\n",
        "reason     NOT_FRAMED\n",
        "key        3 bytes\n  00000000  6b 65 79                                          |key|\n",
        "value      12 bytes\n  00000000  7b 22 70 72 69 63 65 22  3a 20 31 7d              |{\"price\": 1}|\n",
    ] {
        assert!(shown.contains(part), "{part:?} is missing in:\n{shown}");
    }
    assert!(dlq(folder, &["show", "1"]).contains("|none of ours|"));
    let of_second = dlq(folder, &["show", "1:1"]);
    assert!(of_second.starts_with("record     dead-letter partition 1 offset 1\n"), "{of_second}");
    assert_eq!(of_second, dlq(folder, &["show", "1", "--partition", "1"]));
    for (arguments, part) in [
        (&["dlq", "show", "7"][..], "has no record at offset 7"),
        (&["dlq", "show", "0", "--partition", "2"], "give one from 0 to 1"),
        (&["dlq", "show", "2:0"], "give one from 0 to 1"),
        (&["dlq", "show", "0/0"], "give PARTITION:OFFSET"),
        (&["dlq", "show", "0:1", "--partition", "1"], "given twice"),
    ] {
        let arguments = [arguments, &["--log", "sqlite:w.db"]].concat();
        let (_, error) = texts(&warptape(folder, &arguments), 2);
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn replay_sends_the_original_bytes_once_however_often_it_is_called() {
    let folder = folder();
    let folder = folder.path();
    let log = poisoned(folder);
    let said = dlq(folder, &["replay"]);
    let total = |said: &str, name: &str| {
        let line = said.lines().find(|line| line.starts_with(name));
        line.map_or(0, |line| {
            line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("a number")
        })
    };
    const EARLIER: &str = "Dead letters that an earlier call replayed were not sent again";
    assert!(total(&said, "replayed") == 3 && !said.contains(EARLIER), "{said}");
    assert!(said.contains("1   ticks partition 0\n") && said.contains("2   ticks partition 1\n"), "{said}");
    for (partition, expected) in (0..).zip(TICKS) {
        let ticks = records(&log, "ticks", partition);
        assert_eq!(values(&ticks), [expected, expected].concat());
        assert!(ticks.iter().all(|record| record.key.as_deref() == Some(b"key")));
    }

    let said = dlq(folder, &["replay"]);
    assert!(total(&said, "replayed") == 0 && said.contains(EARLIER), "{said}");
    assert_eq!(ends(&log, "ticks"), [2, 4]);

    // Records that are still wrong die again, and only they are new. A record that is not a dead letter is skipped
    // once.
    run_over(folder, &log);
    send(&log, "dead-letter", 0, b"none of ours");
    let said = dlq(folder, &["replay"]);
    assert_eq!((total(&said, "replayed"), total(&said, "unreadable")), (3, 1), "{said}");
    let said = dlq(folder, &["replay"]);
    assert_eq!((total(&said, "replayed"), total(&said, "unreadable")), (0, 0), "{said}");
    assert_eq!(ends(&log, "ticks"), [3, 6]);

    // The letters in the given range are sent, and the output mentions that they were sent before.
    let said = dlq(folder, &["replay", "--from", "1", "--to", "2", "--partition", "1"]);
    assert_eq!((total(&said, "replayed"), total(&said, "again")), (2, 2), "{said}");
    assert!(said.contains("A second call with this range sends these dead letters again"), "{said}");
    assert_eq!(ends(&log, "ticks"), [3, 8]);
    let said = dlq(folder, &["replay", "--offset", "0"]);
    assert_eq!((total(&said, "replayed"), total(&said, "again")), (2, 2), "{said}");
    assert_eq!(ends(&log, "ticks"), [4, 9]);
}

/// Writes a forged dead letter about a record of any topic.
fn forge(log: &SqliteLog, topic: &str, partition: i32, detail: &str) {
    let mut value = Vec::new();
    let letter = DeadLetter {
        topic: topic.to_owned(),
        partition,
        offset: 0,
        reason: DeadLetterReason::Other,
        detail: detail.to_owned(),
        key: None,
        value: b"forged".to_vec(),
        cut: None,
        last_offset: None,
        rows: Vec::new(),
    };
    encode_dead_letter(&letter, &mut value);
    send(log, "dead-letter", 0, &value);
}

#[test]
fn replay_sends_to_what_the_pipeline_reads_and_nowhere_else() {
    let folder = folder();
    let folder = folder.path();
    let log = poisoned(folder);
    for topic in
        ["signals", "journal", "late", "snapshots", "dead-letter", "lifecycle", "risk.results", "x\u{1b}[2J"]
    {
        forge(&log, topic, 0, "");
    }
    forge(&log, "ticks", 2, "");
    forge(&log, "ticks", -1, "");
    forge(&log, "risk.requests", 1, "");
    let before = |topic| ends(&log, topic);
    let outputs = ["signals", "journal", "late", "snapshots", "dead-letter", "lifecycle", "risk.results"];
    let expected = outputs.map(before);
    let said = dlq(folder, &["replay"]);
    assert_eq!(outputs.map(before), expected, "{said}");
    assert_eq!((before("ticks"), before("risk.requests")), (vec![2, 4], vec![0, 1]), "{said}");
    let count = |part: &str| said.lines().filter(|line| line.contains(part)).count();
    assert_eq!(count("which the pipeline does not read: not sent"), 10, "{said}");
    assert!(said.contains("1   name signals partition 0 as their source, which"), "{said}");
    let said = dlq(folder, &["replay", "--from", "0", "--to", "100"]);
    assert_eq!(outputs.map(before), expected, "{said}");
}

#[test]
fn what_a_terminal_obeys_is_never_printed() {
    const OBEYED: &str = "\u{1b}]0;title\u{7}\u{9b}2J\u{202e}\u{2066}\u{200b}\u{2028}\r\t\u{7f}";
    let folder = folder();
    let folder = folder.path();
    let log = poisoned(folder);
    forge(&log, OBEYED, 0, OBEYED);
    let at = (ends(&log, "dead-letter")[0] - 1).to_string();
    let tail = ["tail", "dead-letter", "--from-beginning", "--exit-at-end"];
    for command in [
        &["dlq", "list"][..],
        &["dlq", "show", &at],
        &["dlq", "replay"],
        &tail,
        &[&tail[..], &["-o", "json"]].concat(),
    ] {
        let arguments = [command, &["--log", "sqlite:w.db"]].concat();
        let (out, error) = texts(&warptape(folder, &arguments), 0);
        let is_obeyed = |text: &str| {
            text.chars().any(|c| c != '\n' && (c.is_control() || (!c.is_ascii() && OBEYED.contains(c))))
        };
        assert!(!is_obeyed(&out) && !is_obeyed(&error), "{command:?}: {out:?}{error:?}");
        assert!(out.contains("\\u001b]0;title\\u0007\\u009b2J\\u202e\\u2066\\u200b"), "{command:?}: {out:?}");
    }
}

#[test]
fn a_letter_adds_no_lines_to_what_is_shown_of_it() {
    const LINES: &str = "ticks\nreason     FORGED";
    let folder = folder();
    let folder = folder.path();
    let log = poisoned(folder);
    forge(&log, LINES, 0, LINES);
    let at = (ends(&log, "dead-letter")[0] - 1).to_string();
    let mut producer = log.producer("forger of headers").expect("a producer");
    producer.begin().expect("it begins");
    let headers = vec![(LINES.into(), LINES.as_bytes().into())];
    let record = NewRecord { topic: "dead-letter".into(), headers: headers.into(), ..NewRecord::default() };
    producer.send(record).and_then(|()| producer.commit()).expect("it is sent");
    let of_header = (ends(&log, "dead-letter")[0] - 1).to_string();
    for command in [&["list"][..], &["show", &at], &["show", &of_header]] {
        let shown = dlq(folder, command);
        assert!(!shown.lines().any(|line| line.starts_with("reason     FORGED")), "{shown}");
        assert!(command[0] == "list" || shown.contains("ticks\\u000areason     FORGED"), "{shown}");
    }
}

#[test]
fn dlq_makes_no_log_and_names_a_missing_topic() {
    let folder = folder();
    let folder = folder.path();
    for command in [&["dlq", "list"][..], &["dlq", "show", "0"], &["dlq", "replay"]] {
        let arguments = [command, &["--log", "sqlite:none.db"]].concat();
        texts(&warptape(folder, &arguments), 2);
        assert!(!folder.join("none.db").exists());
    }
    drop(SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a new log"));
    let (_, error) = texts(&warptape(folder, &["dlq", "replay", "--log", "sqlite:w.db"]), 2);
    assert!(error.contains("no topic dead-letter"), "{error}");
}

/// A record is larger than a dead letter can hold. The letter has its size, and replay takes the original from its
/// topic.
#[test]
fn a_letter_of_a_large_record_leads_to_the_original() {
    let folder = folder();
    let folder = folder.path();
    let log = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a new log");
    let ticks = TopicSpec { name: "ticks".to_owned(), partitions: 1, ..TopicSpec::default() };
    log.create_topics(&[ticks]).expect("a new topic");
    let large: Vec<u8> = (0..3 << 20).map(|place: u32| (place % 251) as u8).collect();
    send(&log, "ticks", 0, &large);
    run_over(folder, &log);

    let written = records(&log, "dead-letter", 0);
    let letter = decode_dead_letter(&written[0].value).expect("a dead letter");
    assert_eq!(letter.value, large[..DeadLetter::VALUE_BYTES_MAX]);
    let list = dlq(folder, &["list"]);
    assert!(list.lines().nth(1).is_some_and(|row| row.ends_with(" 3145728")), "{list}");
    let shown = dlq(folder, &["show", "0"]);
    assert!(
        shown.contains("cut        the original has 3 bytes of key and 3145728 of value; "),
        "{}",
        &shown[..600]
    );

    // Two more letters point to missing records: the topic ends before the offset, or has another record there.
    let mut none = letter.clone();
    none.offset = 7;
    let mut other = letter;
    other.cut.as_mut().expect("it is cut").value_bytes += 1;
    for letter in [none, other] {
        let mut value = Vec::new();
        encode_dead_letter(&letter, &mut value);
        send(&log, "dead-letter", 0, &value);
    }
    let arguments = ["dlq", "--log", "sqlite:w.db", "replay"];
    let (out, error) = texts(&warptape(folder, &arguments), 0);
    assert!(out.starts_with("replayed          1\n"), "{out}");
    assert!(out.contains("kept back         2   "), "{out}");
    assert!(error.contains("the original, ticks partition 0 offset 7, was removed"), "{error}");
    assert!(error.contains("part of a record of 3145729 bytes"), "{error}");
    let sent = records(&log, "ticks", 0);
    assert_eq!((sent.len(), sent[1].key.as_deref()), (2, Some(&b"key"[..])));
    assert!(sent[1].value == large, "the original is sent as it was");
}
