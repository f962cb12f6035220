//! `warptape control` beside a running pipeline: commands are executed and answered, and foreign records do not stop
//! it.

use std::path::Path;

use serde_json::Value;
use warptape_eventlog::{Durability, EventLog, NewRecord, SqliteLog};
use warptape_schemas::control::{Control, ControlCommand, ControlOutcome, Rebalance};
use warptape_schemas::journal::{Decision, Input, ReleaseCause};
use warptape_schemas::{decode_control_result, decode_journal_entry, encode_control};

use super::outputs::records;
use super::processes::{Running, folder, run_until_drained, texts, warptape};

const LOG: [&str; 2] = ["--log", "sqlite:w.db"];
/// Arguments with a long timeout, because a busy machine needs time.
const PATIENCE: [&str; 2] = ["--timeout-s", "120"];

fn market(folder: &Path) -> (SqliteLog, Running) {
    let feed = [&["feed", "synth", "--symbols", "20", "--ticks", "40000"][..], &LOG].concat();
    texts(&warptape(folder, &feed), 0);
    let log = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a log");
    let mut run = Running::start(folder, &[&["run"][..], &LOG].concat());
    run_until_drained(&mut run, &log, "warptape");
    (log, run)
}

/// Sends a command, and returns the answer of the only process.
fn tell(folder: &Path, words: &[&str], code: i32) -> String {
    texts(&warptape(folder, &[&["control"], words, &PATIENCE, &LOG].concat()), code).0
}

#[test]
fn what_an_operator_tells_is_done_answered_and_reproduced() {
    let folder = folder();
    let folder = folder.path();
    let (log, run) = market(folder);
    assert!(tell(folder, &["drain", "1"], 0).contains("process 0 (node-0): done: lane 1 is drained"));
    let refused = tell(folder, &["drain", "0"], 1);
    assert!(refused.contains("refused: no other lane than 0 is ready and in service"), "{refused}");
    assert!(tell(folder, &["drain", "7"], 1).contains("there is no lane 7"));
    assert!(tell(folder, &["undrain", "1"], 0).contains("lane 1 is drained no more"));
    assert!(tell(folder, &["weight", "1", "3"], 0).contains("weighs 3, and weighed 1"));
    assert!(tell(folder, &["rebalance", "--all"], 0).contains("groups those move"));
    assert!(tell(folder, &["tenant-weight", "desk", "2"], 0).contains("tenant desk weighs 2"));
    assert!(tell(folder, &["breaker", "0", "open"], 0).contains("held open"));
    assert!(tell(folder, &["policy", "tasks", "dice"], 1).contains("refused: "));
    assert!(tell(folder, &["policy", "placement", "dice"], 1).contains("there are: rendezvous, balanced"));
    let answer = tell(folder, &["policy", "placement", "balanced"], 0);
    assert!(answer.contains("the policy of placement is balanced, and was rendezvous"), "{answer}");
    let answer = tell(folder, &["breaker", "0", "auto", "-o", "json"], 0);
    let answer: Value = serde_json::from_str(&answer).expect("one JSON object");
    assert_eq!((&answer["outcome"], &answer["ordinal"]), (&Value::from("DONE"), &Value::from(0)));

    // Further ticks go through lanes after their groups have moved.
    let feed = ["feed", "synth", "--symbols", "20", "--ticks", "60000", "--seed", "9"];
    texts(&warptape(folder, &[&feed[..], &LOG].concat()), 0);
    let mut run = run;
    run_until_drained(&mut run, &log, "warptape");
    run.stop("TERM");
    let journal: Vec<_> = records(&log, "journal", 0)
        .iter()
        .map(|record| decode_journal_entry(&record.value).expect("an entry"))
        .collect();
    let sequence = answer["sequence"].as_i64().expect("a sequence") as usize;
    assert!(matches!(&journal[sequence].input, Input::Control(control) if control.id == answer["id"]));
    let causes = |cause: ReleaseCause| {
        let is_it = |decision: &&Decision| matches!(decision, Decision::Release(of) if of.cause == cause);
        journal.iter().flat_map(|entry| &entry.decisions).filter(is_it).count()
    };
    assert!(causes(ReleaseCause::Drained) > 0 && causes(ReleaseCause::Breaker) > 0);
    assert!(causes(ReleaseCause::Rebalance) > 0);
    let verified = texts(&warptape(folder, &[&["replay", "verify", "--outputs"][..], &LOG].concat()), 0).0;
    assert!(verified.contains("identical"), "{verified}");
}

#[test]
fn nothing_that_is_published_there_stops_a_process_and_each_record_is_answered_once() {
    let folder = folder();
    let folder = folder.path();
    let (log, run) = market(folder);
    let control = |id: &str, deadline_ns| Control {
        id: id.to_owned(),
        at_ns: -1,
        by: "stranger".to_owned(),
        deadline_ns,
        command: ControlCommand::Rebalance(Rebalance {}),
    };
    let encoded = |control: Control| {
        let mut value = Vec::new();
        encode_control(&control, &mut value);
        value
    };
    let long = "x".repeat(300_000);
    let values = [
        b"garbage".to_vec(),
        Vec::new(),
        encoded(control("late", 5)),
        encoded(control(&long, i64::MAX)),
        encoded(control("", i64::MAX)),
        encoded(control("twice", i64::MAX)),
        encoded(control("twice", i64::MAX)),
    ];
    let publish = || {
        let mut producer = log.producer("a stranger").expect("a producer");
        producer.begin().expect("a transaction");
        for value in &values {
            let topic = "control".into();
            let value = value.as_slice().into();
            producer.send(NewRecord { topic, value, ..NewRecord::default() }).expect("it is taken");
        }
        producer.commit().expect("it is committed");
    };
    publish();
    assert!(tell(folder, &["undrain", "0"], 0).contains("lane 0 is not drained"));
    run.stop("TERM");
    // The next process life answers commands that were published while no process ran.
    publish();
    let run = Running::start(folder, &[&["run"][..], &LOG].concat());
    assert!(tell(folder, &["undrain", "0"], 0).contains("lane 0 is not drained"));
    run.stop("TERM");
    let answers: Vec<_> = records(&log, "control.results", 0)
        .iter()
        .map(|record| decode_control_result(&record.value).expect("an answer"))
        .collect();
    let offsets: Vec<i64> = answers.iter().map(|answer| answer.offset).collect();
    assert!(offsets.is_sorted_by(|one, next| one < next), "{offsets:?}");
    assert_eq!(answers.len(), 2 * (values.len() + 1));
    for answers in answers.chunks(values.len() + 1) {
        let refused = |index: usize| answers[index].outcome == ControlOutcome::Refused;
        assert!(refused(0) && refused(1) && refused(2) && refused(3), "{answers:?}");
        assert!(!refused(4) && !refused(5) && !refused(6), "{answers:?}");
        assert!(answers[0].detail.contains("cannot be read") && answers[0].sequence.is_none());
        assert!(answers[2].detail.contains("after its deadline") && answers[2].sequence.is_some());
        assert!(answers[3].detail.contains("the id has 300000 bytes") && answers[3].id.len() == 256);
    }
    let verify = ["replay", "verify", "--outputs", "-o", "json"];
    let verified = texts(&warptape(folder, &[&verify[..], &LOG].concat()), 0).0;
    let verified: Value = serde_json::from_str(&verified).expect("one JSON object");
    assert_eq!(verified["divergence"], Value::Null);
    assert_eq!(verified["outputs"]["control_results"], answers.len());
}
