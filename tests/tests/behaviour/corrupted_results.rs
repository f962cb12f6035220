//! A hundred corruptions of risk results, drawn from a seed. Each must be found at its place, and no other record may
//! be blamed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use tempfile::TempDir;
use warptape_eventlog::{Durability, EventLog, NewRecord, Record, SqliteLog};
use warptape_kernels::Isa;
use warptape_pipeline::runtime::Topics;
use warptape_replay::{Divergence, OutputProblem, Report, VerifyOptions, verify};
use warptape_schemas::risk::{RiskRequest, RiskResult};
use warptape_schemas::{decode_risk_result, encode_risk_request, encode_risk_result};
use warptape_sources::synth::{SynthConfig, SynthSource};
use warptape_tests::engine_run::{engine_config, feed, read_partition, run_to_end, stage_config};
use warptape_tests::random::Random;

use crate::corruption::{ALL, Corruption, corrupt};
use crate::tampered::Tampered;

const CORRUPTIONS: usize = 100;
const SEED: u64 = 79;

/// Sends requests that are answered, rejected, or unreadable, and runs the engine.
fn record(log: &Arc<dyn EventLog>) {
    let market = SynthSource::new(SynthConfig { symbols: 5, ..SynthConfig::default() }).expect("a market");
    feed(log, 1, 64, market.take(2_000));
    let mut producer = log.producer("asks").expect("a producer");
    producer.begin().expect("a transaction");
    for number in 0..12 {
        let strike = if number % 4 == 3 { -1.0 } else { 90.0 + f64::from(number) };
        let asset = json!({"symbol": "given", "spot": 100.0, "volatility": 0.25});
        let option = json!({"asset": 0, "kind": "put", "strike": strike, "expiry_years": 0.5});
        let problem = json!({"type": "options", "assets": [asset], "options": [option]});
        let request =
            json!({"request_id": format!("r-{number}"), "tenant": "desk", "seed": 5, "problem": problem});
        let request: RiskRequest = serde_json::from_value(request).expect("a request");
        let mut value = Vec::new();
        encode_risk_request(&request, &mut value);
        if number == 7 {
            value.truncate(9);
        }
        let (topic, value) = ("risk.requests".into(), value.into());
        producer.send(NewRecord { topic, value, ..NewRecord::default() }).expect("it is taken");
    }
    producer.commit().expect("it is committed");
    run_to_end(log, engine_config(stage_config(&["1s"]), 2));
}

fn verified(log: &dyn EventLog) -> Report {
    let group = engine_config(stage_config(&["1s"]), 1).core.group;
    let mut options = VerifyOptions::new(&Topics::new(""), &group);
    (options.outputs, options.sources.isa) = (true, Isa::Baseline);
    verify(log, &options, &mut |_| {}).expect("the log can be read")
}

/// True if only times, devices or the limit in force were changed, which nothing else in the log records.
fn is_unrecorded(before: &[Record], after: &[Record]) -> bool {
    let without = |record: &Record| {
        let (devices, times) = (Vec::new(), 0);
        let result = decode_risk_result(&record.value).ok()?;
        let cost_max_ns = 0;
        Some(RiskResult {
            received_ns: times,
            started_ns: times,
            finished_ns: times,
            compute_ns: times,
            devices,
            cost_max_ns,
            ..result
        })
    };
    before.len() == after.len()
        && before.iter().zip(after).filter(|(before, after)| before != after).all(|(before, after)| {
            let found = without(after);
            found.is_some() && found == without(before)
        })
}

/// Returns a recorded log, its folder, and its results. The replay of the log must be identical.
fn recorded() -> (Arc<dyn EventLog>, TempDir, Vec<Record>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = SqliteLog::open(folder.path().join("log.db"), Durability::Process).expect("a new log");
    let log: Arc<dyn EventLog> = Arc::new(log);
    record(&log);
    let whole = verified(log.as_ref());
    assert!(whole.is_identical(), "{whole}");
    assert_eq!(whole.outputs.expect("they were compared").risk_results, 12);
    let results = read_partition(log.as_ref(), "risk.results", 0);
    (log, folder, results)
}

#[test]
fn corrupted_risk_results_are_found_and_blamed() {
    let (log, _folder, before) = recorded();
    let mut random = Random::new(SEED);
    let mut counts: BTreeMap<Corruption, usize> = BTreeMap::new();
    let mut done = 0;
    while done < CORRUPTIONS {
        let at = random.index(before.len());
        let corruption = ALL[random.index(ALL.len())];
        let mut after = before.clone();
        // Answers may come in any order, so swapping them is not a corruption.
        let is_any_order = corruption == Corruption::Swapped;
        if is_any_order
            || !corrupt(&mut after, at, corruption, &mut |end| random.index(end as usize) as u64)
            || is_unrecorded(&before, &after)
        {
            continue;
        }
        let report = verified(&Tampered::new(log.as_ref(), "risk.results", 0, after));
        let is_near = |offset: i64| match corruption {
            Corruption::Removed | Corruption::Duplicated => offset >= at as i64,
            _ => offset == at as i64,
        };
        let is_blamed = matches!(&report.divergence, Some(Divergence::Output(one))
            if one.topic == "risk.results" && is_near(one.offset));
        assert!(is_blamed, "{corruption:?} of {at} (seed {SEED}, number {done}): {report}");
        *counts.entry(corruption).or_default() += 1;
        done += 1;
    }
    assert_eq!(counts.len(), ALL.len() - 1, "{counts:?}");
}

/// If a result names another request, or none, then that result is blamed. The request without a result is not blamed,
/// and neither is the other request's result.
#[test]
fn a_result_that_names_another_request_is_blamed_itself() {
    let (log, _folder, before) = recorded();
    let requests = before.len() as i64;
    let mut random = Random::new(SEED);
    let (mut named, mut nowhere, mut partitions) = (0, 0, 0);
    for number in 0..CORRUPTIONS {
        let at = random.index(before.len());
        let mut result = decode_risk_result(&before[at].value).expect("a result");
        let (own, is_partition) = (result.offset, number % 4 == 3);
        if is_partition {
            result.partition += 1 + random.index(9) as i32;
            partitions += 1;
        } else {
            let others = (-2..requests + 3).filter(|offset| *offset != own).collect::<Vec<_>>();
            result.offset = others[random.index(others.len())];
            let is_request = (0..requests).contains(&result.offset);
            *(if is_request { &mut named } else { &mut nowhere }) += 1;
        }
        let mut after = before.clone();
        after[at].value.clear();
        encode_risk_result(&result, &mut after[at].value);
        let report = verified(&Tampered::new(log.as_ref(), "risk.results", 0, after));
        let Some(Divergence::Output(found)) = &report.divergence else { panic!("{report}") };
        let OutputProblem::Changed { differences } = &found.problem else { panic!("{report}") };
        let [difference] = &differences[..] else { panic!("{report}") };
        let (field, expected) = if is_partition { ("partition", 0) } else { ("offset", own) };
        assert_eq!(
            (found.topic.as_str(), found.offset, found.request_id.as_ref()),
            ("risk.results", at as i64, Some(&result.request_id)),
            "{report}"
        );
        assert_eq!((difference.field.as_str(), &difference.expected), (field, &Some(json!(expected))));
    }
    assert!(named > 30 && nowhere > 5 && partitions > 20, "{named}, {nowhere}, {partitions}");
}
