//! Runs `replay why`, `slowest` and `why-not` on the log of a run, and checks their answers against the log itself.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use warptape_eventlog::SqliteLog;
use warptape_schemas::journal::{CommitOutcome, Decision, Input, JournalEntry};
use warptape_schemas::{decode_journal_entry, decode_signal};

use super::outputs::records;
use super::processes::{Running, ends, folder, run_until_drained, texts, warptape, warptape_with};

const LOG: [&str; 2] = ["--log", "sqlite:w.db"];
/// Settings with small batches and few commits: rows that arrive together go to lanes in several batches, and wait for
/// commits.
const SETTINGS: [(&str, &str); 3] = [
    ("WARPTAPE__ENGINE__DEVICES", "cpu:2"),
    ("WARPTAPE__SCHEDULER__BATCH_ROWS_MAX", "700"),
    ("WARPTAPE__SCHEDULER__LANE_CREDIT_ROWS", "2000"),
];
const REQUEST: [&str; 16] = [
    "risk",
    "price",
    "--kind",
    "call",
    "--strike",
    "100",
    "--expiry-days",
    "30",
    "--spot",
    "100",
    "--volatility",
    "0.2",
    "--request-id",
    "mine",
    "--timeout-s",
    "120",
];
const OTHER_REQUEST: [&str; 16] = [
    "risk",
    "price",
    "--kind",
    "put",
    "--strike",
    "90",
    "--expiry-days",
    "30",
    "--spot",
    "100",
    "--volatility",
    "0.2",
    "--request-id",
    "other",
    "--timeout-s",
    "120",
];
/// Number of signals whose waits are checked.
const SIGNALS: usize = 1_000;

fn replay(folder: &Path, arguments: &[&str]) -> String {
    texts(&warptape(folder, &[&["replay"], arguments, &LOG].concat()), 0).0
}

fn replay_json(folder: &Path, arguments: &[&str]) -> Value {
    let out = replay(folder, &[arguments, &["-o", "json"]].concat());
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

/// Facts about each partition's tick records, read from the log without the code under test.
struct Log {
    entries: Vec<JournalEntry>,
    /// Publication times of tick records, by partition.
    created_ns: Vec<Vec<i64>>,
    /// End offset and commit time of each committed transaction, by partition and first offset.
    commits: BTreeMap<(i32, i64), (i64, i64)>,
}

impl Log {
    fn read(log: &SqliteLog) -> Self {
        let entries: Vec<JournalEntry> = records(log, "journal", 0)
            .iter()
            .map(|record| decode_journal_entry(&record.value).expect("an entry"))
            .collect();
        let of_partition =
            |partition| records(log, "ticks", partition).iter().map(|one| one.timestamp_ns).collect();
        let created_ns = (0..ends(log, "ticks").len() as i32).map(of_partition).collect();
        let mut commits = BTreeMap::new();
        for entry in &entries {
            let Input::CommitEnded(ended) = &entry.input else { continue };
            let sealed =
                entries.iter().find(|other| other.sequence == ended.sealed).expect("what was sealed");
            if let (Input::Sealed(sealed), CommitOutcome::Committed) = (&sealed.input, ended.outcome) {
                for part in sealed.partitions.iter().filter(|part| part.next_offset > part.first_offset) {
                    commits.insert((part.partition, part.first_offset), (part.next_offset, ended.ended_ns));
                }
            }
        }
        Self { entries, created_ns, commits }
    }

    /// Returns the commit time of a tick record's outputs; `None` if the journal does not contain it.
    fn committed_ns(&self, partition: i32, offset: i64) -> Option<i64> {
        let before = self.commits.range(..=(partition, offset)).next_back();
        let (&(found, _), &(next, ended_ns)) = before?;
        (found == partition && offset < next).then_some(ended_ns)
    }
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Checks the chain of a signal against the log, and returns the signal's latency, in nanoseconds.
#[track_caller]
fn check(chain: &Value, log: &SqliteLog, told: &Log) -> i64 {
    let (partition, offset) =
        (number(&chain["signal"]["partition"]) as i32, number(&chain["tick"]["offset"]));
    let signals = records(log, "signals", partition);
    let signal =
        signals.iter().find(|one| one.offset == number(&chain["signal"]["offset"])).expect("a signal");
    assert_eq!(decode_signal(&signal.value).expect("a signal").source_offset, offset);
    let measured_ns = told.committed_ns(partition, offset).expect("it was committed")
        - told.created_ns[partition as usize][offset as usize];
    let waits = chain["waits"].as_array().expect("waits");
    let sum: i64 = waits.iter().map(|wait| number(&wait["ns"])).sum();
    assert_eq!((sum, number(&chain["total_ns"])), (measured_ns, measured_ns), "{chain}");
    assert!(waits.iter().all(|wait| number(&wait["ns"]) > 0), "one machine has one clock: {chain}");
    assert_eq!(chain["unknown"], Value::Array(Vec::new()), "{chain}");
    // The named batch must contain the rows: it was dispatched after their arrival, and completed before the seal.
    let batch = number(&chain["batch"]["batch"]);
    let dispatched =
        told.entries.iter().find(|entry| entry.sequence == number(&chain["batch"]["at"]["sequence"]));
    let dispatched = dispatched.expect("the entry that dispatched it");
    let group = (partition, number(&chain["arrival"]["group"]) as i32);
    assert!(dispatched.decisions.iter().any(|decision| match decision {
        Decision::Dispatch(one) => {
            one.batch == batch && one.takes.iter().any(|take| (take.partition, take.group) == group)
        }
        _ => false,
    }));
    assert!(number(&chain["arrival"]["at_ns"]) <= dispatched.at_ns);
    assert!(number(&chain["batch"]["completed"]["at_ns"]) <= number(&chain["transaction"]["sealed_ns"]));
    measured_ns
}

#[test]
fn the_cause_of_a_late_signal_is_found() {
    let folder = folder();
    let path = folder.path();
    let feed = ["feed", "synth", "--symbols", "40", "--ticks", "150000"];
    texts(&warptape(path, &[&feed[..], &LOG].concat()), 0);
    let mut run = Running::start_with(path, &[&["run"][..], &LOG].concat(), &SETTINGS);
    let log = SqliteLog::open_existing(path.join("w.db")).expect("the log of the feed");
    run_until_drained(&mut run, &log, "warptape");
    texts(&warptape(path, &[&REQUEST[..], &LOG].concat()), 0);
    // The next commit records the outcome of the previous one; another answer causes that commit here.
    texts(&warptape(path, &[&OTHER_REQUEST[..], &LOG].concat()), 0);
    run.stop("TERM");

    let told = Log::read(&log);
    let found = replay_json(path, &["slowest", &SIGNALS.to_string()]);
    let slowest = found["signals"].as_array().expect("signals");
    assert_eq!(slowest.len(), SIGNALS);
    let latencies: Vec<i64> = slowest.iter().map(|slow| check(&slow["chain"], &log, &told)).collect();
    assert!(latencies.is_sorted_by(|one, next| one >= next), "the slowest come first");
    let signals = ends(&log, "signals").iter().sum::<i64>();
    assert_eq!(number(&found["seen"]) + number(&found["without_commit"]), signals);
    let cut = slowest.iter().filter(|slow| {
        let arrival = &slow["chain"]["arrival"];
        number(&arrival["group_rows"]) > number(&slow["chain"]["batch"]["rows"])
    });
    assert!(cut.count() > 0, "some rows that came together went to lanes in several batches");

    explain(path, &slowest[0]["chain"], &log, &told);
    request(path, &log, &told);
    windows(path, &told);
    mistakes(path);
}

/// Tests the other ways to ask for the slowest signal, and the text of the answer.
fn explain(path: &Path, slowest: &Value, log: &SqliteLog, told: &Log) {
    let signal = &slowest["signal"];
    let name = format!("signal:{}:{}", signal["partition"], signal["offset"]);
    let chain = replay_json(path, &["why", &name]);
    check(&chain, log, told);
    assert_eq!((&chain["waits"], &chain["batch"]), (&slowest["waits"], &slowest["batch"]));
    assert!(chain["lanes"].as_array().is_some_and(|lanes| lanes.len() == 2), "{chain}");
    let decision = &chain["explanation"]["decision"]["Dispatch"];
    assert_eq!(decision["batch"], chain["batch"]["batch"]);

    let words = replay(path, &["why", &name]);
    for expected in
        [" from publication to its commit; ", "wait_ms  until", "why batch ", "why on lane ", "waiting_rows"]
    {
        assert!(words.contains(expected), "{expected:?} is missing in\n{words}");
    }
    let symbol = signal["symbol"].as_str().expect("a symbol");
    let at = number(&signal["bar_end_ns"]);
    let at = format!("{symbol}@{}", utc(at));
    let by_time = replay_json(path, &["why", &at]);
    assert_eq!(
        (&by_time["signal"]["symbol"], &by_time["signal"]["bar_end_ns"]),
        (&signal["symbol"], &signal["bar_end_ns"])
    );

    let batch = format!("batch:{}", chain["batch"]["batch"]);
    let of_batch = replay_json(path, &["why", &batch]);
    assert_eq!(of_batch["batch"]["at"], chain["batch"]["at"]);
    let sum: i64 = of_batch["waits"].as_array().expect("waits").iter().map(|wait| number(&wait["ns"])).sum();
    assert_eq!(sum, number(&of_batch["total_ns"]));
    assert!(replay(path, &["why", &batch]).contains("sealed first by entry "));
    // The explanation must name the entry that placed the group, and that entry must have an explanation.
    let placed = chain["batch"]["placed"]["sequence"].to_string();
    assert!(replay(path, &["why", &placed]).contains("Place: group "));
}

/// Tests the explanation of a request's answer, and checks its waits against the log.
fn request(path: &Path, log: &SqliteLog, told: &Log) {
    let chain = replay_json(path, &["why", "request:mine"]);
    let (partition, offset) = (number(&chain["partition"]) as i32, number(&chain["offset"]));
    let requests = records(log, "risk.requests", partition);
    let request = requests.iter().find(|one| one.offset == offset).expect("a request");
    let ended = told.entries.iter().find_map(|entry| match &entry.input {
        Input::CommitEnded(ended) if ended.sealed == number(&chain["transaction"]["sealed_sequence"]) => {
            Some(ended.ended_ns)
        }
        _ => None,
    });
    let measured_ns = ended.expect("its commit") - request.timestamp_ns;
    let sum: i64 = chain["waits"].as_array().expect("waits").iter().map(|wait| number(&wait["ns"])).sum();
    assert_eq!((sum, number(&chain["total_ns"])), (measured_ns, measured_ns), "{chain}");
    let arrived = number(&chain["task"]["arrived"]["sequence"]);
    let arrived = told.entries.iter().find(|entry| entry.sequence == arrived).expect("an entry");
    assert!(matches!(&arrived.input, Input::TaskArrived(task) if task.request_id == "mine"));
    assert_eq!(chain["task"]["end"], "finished");
    let words = replay(path, &["why", "request:mine"]);
    assert!(words.contains("answer to the interactive request \"mine\""), "{words}");
}

/// Formats a time, given in nanoseconds, for the command line.
fn utc(ns: i64) -> String {
    let (seconds, ns) = (ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // The algorithm converts days since the epoch to a civil date. It counts in eras of 400 years that begin in March.
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let date = of_year - (153 * shifted_month + 2) / 5 + 1;
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{ns:09}Z")
}

fn windows(path: &Path, told: &Log) {
    let signals_of = |sequence: i64| {
        let sealed = told.entries.iter().find(|entry| entry.sequence == sequence).expect("what was sealed");
        match &sealed.input {
            Input::Sealed(sealed) => sealed.partitions.iter().map(|part| part.signals).sum(),
            _ => 0,
        }
    };
    let ended: Vec<(usize, i64)> = (0..)
        .zip(&told.entries)
        .filter_map(|(index, entry)| match &entry.input {
            Input::CommitEnded(ended) => Some((index, signals_of(ended.sealed))),
            _ => None,
        })
        .collect();
    // The window begins after the outcome of a commit in the middle of the journal.
    let (index, _) = ended[ended.len() / 2];
    let middle = &told.entries[index + 1];
    let earlier: i64 = ended.iter().filter(|(other, _)| *other <= index).map(|(_, signals)| signals).sum();
    let later: i64 = ended.iter().filter(|(other, _)| *other > index).map(|(_, signals)| signals).sum();
    let seen =
        |arguments: &[&str]| number(&replay_json(path, &[&["slowest", "1"][..], arguments].concat())["seen"]);
    let from = format!("sequence:{}", middle.sequence);
    assert_eq!((seen(&["--to", &from]), seen(&["--from", &from])), (earlier, later));
    assert!(seen(&["--from", &utc(middle.at_ns)]) >= later);

    let lane = replay_json(path, &["why-not", "cpu:1", "--at", &middle.sequence.to_string()]);
    assert_eq!(lane["device"], "cpu:1");
    assert_eq!(lane, replay_json(path, &["why-not", "1", "--at", &from]), "a bare number is a sequence");
    assert_eq!(
        (number(&lane["at"]["sequence"]), number(&lane["lane"]["load"]["lane"])),
        (middle.sequence - 1, 1)
    );
    let words = replay(path, &["why-not", "1", "--at", &from]);
    assert!(words.contains("groups on other lanes:") && words.contains("\nbatches: "), "{words}");

    // No commit precedes the first entries.
    let none = replay(path, &["slowest", "--since", "sequence:0", "--until", "sequence:1"]);
    assert_eq!(none, "the window has no signal with a known latency\n0 signals checked\n");
}

fn mistakes(path: &Path) {
    let refused = |arguments: &[&str], expected: &str| {
        let (_, error) = texts(&warptape_with(path, &[&["replay"], arguments, &LOG].concat(), &[]), 2);
        assert!(error.contains(expected), "{expected:?} is missing in {error}");
    };
    refused(&["why", "signal:0:99999999"], "no usable record at offset 99999999");
    refused(
        &["why", "SYNTH:AAZZ@2024-08-08T00:00:00Z"],
        "knows no symbol \"SYNTH:AAZZ\"; did you mean SYNTH:AAA",
    );
    refused(&["why", "SYNTH:AAAA@2026-11-24T10:00:00Z"], "Its bars end from 2024-08-08T00:00:0");
    refused(&["why", "request:nobody"], "no answer to the risk request \"nobody\"");
    refused(&["why", "batch:99999999"], "has no batch 99999999");
    refused(&["why", "nonsense"], "SYMBOL@TIME");
    refused(
        &["why-not", "7", "--at", "sequence:5"],
        "there is no lane 7; the process has the lanes 0 (cpu:0), 1 (cpu:1)",
    );
    refused(&["why-not", "cuda:1", "--at", "5"], "no lane \"cuda:1\"");
    refused(&["why-not", "1", "--at", "2100-01-01T00:00:00Z"], "partition 0 has the sequences 0 to ");
    refused(&["slowest", "w.db"], "from 1 to 10000");
    refused(
        &["slowest", "--since", "sequence:50", "--until", "offset:9"],
        "partition 0 has the sequences 0 to ",
    );
}
