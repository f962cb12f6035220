//! Risk requests in the real engine on an embedded log. Each request gets exactly one answer, which depends neither on
//! lanes nor on slices.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use warptape_emulator::Emulator;
use warptape_eventlog::{Durability, EventLog, NewRecord, SqliteLog};
use warptape_kernels::device::Devices;
use warptape_pipeline::runtime::{EngineConfig, Progress, Stop, run};
use warptape_schemas::journal::{Decision, Input, LaneSpec};
use warptape_schemas::risk::{RiskErrorCode, RiskOutcome, RiskRequest, RiskResult};
use warptape_schemas::{decode_journal_entry, decode_risk_result, encode_risk_request};
use warptape_sources::synth::{SynthConfig, SynthSource};
use warptape_tests::devices::EMULATOR;
use warptape_tests::engine_run::{engine_config, feed, publisher, read_partition, run_to_end, stage_config};
use warptape_tests::injected::InjectedLanes;

pub const PARTITIONS: i32 = 2;
pub const TICKS: u64 = 20_000;

/// Returns a log with a market but without requests.
fn market() -> (tempfile::TempDir, Arc<dyn EventLog>) {
    let (folder, log) = new_log();
    feed_ticks(&log);
    (folder, log)
}

/// Returns a log without topics.
pub fn new_log() -> (tempfile::TempDir, Arc<dyn EventLog>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = SqliteLog::open(folder.path().join("log.db"), Durability::Process).expect("a new log");
    (folder, Arc::new(log))
}

/// Publishes the market's ticks.
pub fn feed_ticks(log: &Arc<dyn EventLog>) {
    let config = SynthConfig { symbols: 20, ticks: Some(TICKS), ..SynthConfig::default() };
    feed(log, PARTITIONS, 64, SynthSource::new(config).expect("a market").take(TICKS as usize));
}

pub fn config(lanes: i32) -> EngineConfig {
    let mut config = engine_config(stage_config(&["1s"]), lanes);
    // The short slices cause many of them.
    config.core.scheduler.risk.slice_ns = 50_000;
    // The short interval gives enough returns.
    config.core.stages.market.sample_interval_ns = 100_000_000;
    config
}

fn asset() -> Value {
    json!({"symbol": "given", "spot": 100.0, "volatility": 0.25, "rate": 0.02})
}

fn simulation(contract: &str, precision: &str, standard_error: Option<f64>) -> Value {
    json!({"type": "simulation", "assets": [asset()], "expiry_years": 1.0, "steps": 8, "precision": precision,
           "contract": {"type": contract, "kind": "call", "strike": 105.0}, "paths_max": 200_000,
           "standard_error": standard_error})
}

/// Returns valid requests, by id.
pub fn good() -> Vec<(&'static str, Value)> {
    let option = |strike: i32| json!({"asset": 0, "kind": "put", "strike": strike, "expiry_years": 0.5});
    let options: Vec<Value> = (60..150).map(option).collect();
    let closes: Vec<f64> = (0..5_000_i32).map(|bar| 100.0 + f64::from(bar * 7919 % 101) / 10.0).collect();
    let rule = |window: i32| json!({"type": "band-breakout", "window": window, "width": 1.0});
    vec![
        ("options", json!({"type": "options", "assets": [asset()], "options": options})),
        (
            "implied",
            json!({"type": "implied-volatilities", "assets": [asset()], "options": [option(100)], "prices": [7.0]}),
        ),
        ("european", simulation("european", "f64", None)),
        ("asian", simulation("asian", "mixed", None)),
        ("asian to an error", simulation("asian", "f64", Some(0.01))),
        (
            "sweep",
            json!({"type": "sweep", "symbols": [{"symbol": "a", "closes": closes}],
                   "rules": (2..60).map(rule).collect::<Vec<_>>()}),
        ),
        ("greeks", {
            let mut problem = simulation("european", "f64", None);
            problem["greeks"] = json!(true);
            problem
        }),
        ("american", simulation("american", "f64", None)),
        ("sobol", {
            let mut problem = simulation("asian", "f64", None);
            problem["sampling"] = json!("sobol");
            problem
        }),
        ("basket", {
            let mut problem = simulation("basket", "f64", None);
            problem["assets"] = json!([asset(), asset()]);
            problem["contract"]["weights"] = json!([0.5, 0.5]);
            problem["correlations"] = json!([1.0, 0.3, 0.3, 1.0]);
            problem
        }),
        (
            "value at risk",
            json!({"type": "portfolio", "assets": [asset(), asset()], "books": [{"name": "all"}, {"name": "b", "parent": 0}],
                   "positions": (0..100).map(position).collect::<Vec<_>>(),
                   "measure": {"type": "monte-carlo", "confidence": 0.99, "scenarios": 5_000, "horizon_years": 0.04,
                               "covariance": [0.04, 0.01, 0.01, 0.09]}}),
        ),
        (
            "weights",
            json!({"type": "optimisation", "assets": [asset(), asset()], "expected_returns": [0.05, 0.08],
                   "covariance": [0.04, 0.01, 0.01, 0.09], "target_return": 0.06, "budget": 1.0,
                   "lower": [0.0, 0.0], "upper": [1.0, 1.0]}),
        ),
    ]
}

fn position(number: i32) -> Value {
    let strike = 60.0 + f64::from(number);
    json!({"name": format!("p{number}"), "book": number % 2, "quantity": f64::from(number - 50),
           "instrument": {"type": "option", "asset": number % 2, "kind": "put", "strike": strike, "expiry_years": 0.5}})
}

pub fn request(id: &str, problem: Value) -> RiskRequest {
    let request =
        json!({"request_id": id, "tenant": "desk", "class": "batch", "seed": 5, "problem": problem});
    serde_json::from_value(request).expect("a request")
}

pub fn ask(log: &Arc<dyn EventLog>, partition: i32, requests: &[RiskRequest]) {
    let values = requests.iter().map(|request| {
        let mut value = Vec::new();
        encode_risk_request(request, &mut value);
        value
    });
    send(log, partition, values);
}

fn send(log: &Arc<dyn EventLog>, partition: i32, values: impl Iterator<Item = Vec<u8>>) {
    let mut producer = log.producer("asks").expect("a producer");
    producer.begin().expect("a transaction");
    for value in values {
        let record = NewRecord {
            topic: "risk.requests".into(),
            partition,
            key: None,
            headers: Default::default(),
            timestamp_ns: 1,
            value: value.into(),
            ..NewRecord::default()
        };
        producer.send(record).expect("the log takes it");
    }
    producer.commit().expect("the log takes it");
}

pub fn results(log: &Arc<dyn EventLog>, partition: i32) -> Vec<RiskResult> {
    let records = read_partition(log.as_ref(), "risk.results", partition);
    records.iter().map(|record| decode_risk_result(&record.value).expect("a result")).collect()
}

/// Returns the outcomes by id, and checks that each id occurs once.
pub fn outcomes(log: &Arc<dyn EventLog>, partition: i32) -> BTreeMap<String, RiskOutcome> {
    let mut outcomes = BTreeMap::new();
    for result in results(log, partition) {
        let before = outcomes.insert(result.request_id.clone(), result.outcome);
        assert_eq!(before, None, "{} is answered twice", result.request_id);
    }
    outcomes
}

/// Returns the number of tasks that all of their lanes began at the same time.
fn gangs(log: &Arc<dyn EventLog>) -> usize {
    let entries = read_partition(log.as_ref(), "journal", 0).into_iter();
    let decisions = entries.flat_map(|entry| decode_journal_entry(&entry.value).expect("an entry").decisions);
    decisions.filter(|decision| matches!(decision, Decision::Split(split) if split.gang)).count()
}

/// Returns a symbol of the market, and its partition.
fn a_symbol(log: &Arc<dyn EventLog>) -> (String, i32) {
    let record = read_partition(log.as_ref(), "signals", 1).pop().expect("a signal");
    (String::from_utf8(record.key.expect("the symbol")).expect("UTF-8"), 1)
}

fn answers(config: EngineConfig) -> BTreeMap<String, RiskOutcome> {
    answers_of(config, false)
}

fn answers_of(config: EngineConfig, gang: bool) -> BTreeMap<String, RiskOutcome> {
    let (_folder, log) = market();
    let requests: Vec<RiskRequest> =
        good().into_iter().map(|(id, problem)| RiskRequest { gang, ..request(id, problem) }).collect();
    ask(&log, 0, &requests);
    run_to_end(&log, config);
    let outcomes = outcomes(&log, 0);
    assert_eq!(gangs(&log) > 0, gang, "as it was asked");
    assert_eq!(outcomes.len(), requests.len());
    for (id, outcome) in &outcomes {
        assert!(!matches!(outcome, RiskOutcome::Error(_)), "{id}: {outcome:?}");
    }
    outcomes
}

#[test]
fn neither_lanes_nor_devices_show_in_answers() {
    let one = answers(config(1));
    assert_eq!(answers(config(8)), one, "eight lanes");
    let mut failing = config(4);
    failing.lanes = InjectedLanes::failing(2, 2);
    assert_eq!(answers(failing.clone()), one, "a lane that fails");
    assert_eq!(answers_of(failing, true), one, "gangs");
    let mut mixed = config(2);
    mixed.devices = EMULATOR.clone() as Arc<dyn Devices>;
    mixed.core.lanes.push(LaneSpec { width: Emulator::WIDTH, ..LaneSpec::new(2, "cuda:0", 1) });
    mixed.core.scheduler.risk.slice_ns = 500_000_000;
    assert_eq!(answers(mixed), one, "lanes on the processor and on a device");
}

#[test]
fn what_cannot_be_answered_says_why() {
    let (_folder, log) = market();
    run_to_end(&log, config(2));
    let (symbol, partition) = a_symbol(&log);
    let of = |symbol: &str| {
        let quantity = json!({"from": "market"});
        let asset = json!({"symbol": symbol, "spot": quantity, "volatility": quantity});
        let option = json!({"asset": 0, "kind": "call", "strike": 100.0, "expiry_years": 0.1});
        json!({"type": "options", "assets": [asset], "options": [option]})
    };
    let expired =
        RiskRequest { deadline_ns: Some(1), ..request("expired", simulation("asian", "f64", None)) };
    let market = request("market", of(&symbol));
    let unknown = request("unknown", of("NOBODY:KNOWS"));
    let mut problem = simulation("european", "f64", None);
    problem["contract"]["strike"] = json!(-1.0);
    let bad = request("bad", problem);
    ask(&log, partition, &[market.clone(), unknown, bad, expired, market.clone()]);
    send(&log, partition, [b"not Avro".to_vec()].into_iter());
    run_to_end(&log, config(2));
    let results = results(&log, partition);
    let of = |offset: i64| {
        let mut found = results.iter().filter(|result| result.offset == offset);
        let result = found.next().unwrap_or_else(|| panic!("request {offset} has no answer"));
        assert!(found.next().is_none(), "request {offset} has two answers");
        result
    };
    let code = |offset: i64| match &of(offset).outcome {
        RiskOutcome::Error(error) => Some(error.code),
        _ => None,
    };
    assert_eq!(code(0), None);
    let [taken] = of(0).as_of.as_slice() else { panic!("{:?}", of(0)) };
    assert_eq!((&taken.symbol, taken.partition), (&symbol, partition));
    assert_eq!(taken.next_offset, read_partition(log.as_ref(), "ticks", partition).len() as i64);
    assert!(taken.spot.is_some_and(|spot| spot > 0.0) && taken.volatility.is_some());
    assert!(of(0).decision_sequence >= 0);
    assert_eq!(code(1), Some(RiskErrorCode::UnknownSymbol));
    assert_eq!(code(2), Some(RiskErrorCode::BadParameter));
    assert_eq!(code(3), Some(RiskErrorCode::Expired));
    assert_eq!(code(4), Some(RiskErrorCode::Duplicate));
    assert_eq!((code(5), of(5).request_id.as_str()), (Some(RiskErrorCode::BadParameter), ""));
    // A later process life still knows which requests were answered.
    ask(&log, partition, &[market]);
    run_to_end(&log, config(1));
    let results = super::risk::results(&log, partition);
    assert_eq!(results.len(), 7);
    let RiskOutcome::Error(error) = &results[6].outcome else { panic!("{:?}", results[6]) };
    assert_eq!((error.code, results[6].offset), (RiskErrorCode::Duplicate, 6));
}

/// Returns a portfolio with a live asset and many given scenarios, so that preparing its task takes time.
fn large(symbol: &str) -> Value {
    const ASSETS: i32 = 64;
    let live = json!({"symbol": symbol, "spot": {"from": "market"}, "volatility": 0.2});
    let assets: Vec<Value> = (1..ASSETS).map(|_| asset()).chain([live]).collect();
    let returns = (0..ASSETS * 16_384).map(|number| f64::from(number * 37 % 101 - 50) / 1e4);
    let position =
        json!({"name": "p", "book": 0, "quantity": 1.0, "instrument": {"type": "spot", "asset": 3}});
    json!({"type": "portfolio", "assets": assets, "books": [{"name": "all"}], "positions": [position],
           "measure": {"type": "historical", "confidence": 0.99, "returns": returns.collect::<Vec<_>>()}})
}

/// True if ticks arrived after a request's market snapshot, and went to a lane before the request became a task.
fn was_overtaken(log: &Arc<dyn EventLog>, result: &RiskResult) -> bool {
    let [taken] = &result.as_of[..] else { panic!("{:?}", result.as_of) };
    let entries = read_partition(log.as_ref(), "journal", 0).into_iter();
    let entries = entries.map(|entry| decode_journal_entry(&entry.value).expect("an entry"));
    let is_later = |input: &Input| {
        matches!(input, Input::Arrived(arrived)
            if arrived.partition == taken.partition && arrived.next_offset > taken.next_offset)
    };
    let is_dispatch = |decision: &Decision| matches!(decision, Decision::Dispatch(_));
    let before = entries.take_while(|entry| entry.sequence < result.decision_sequence);
    before.skip_while(|entry| !is_later(&entry.input)).any(|entry| entry.decisions.iter().any(is_dispatch))
}

#[test]
fn ticks_go_to_lanes_while_a_request_is_made_a_task() {
    const ATTEMPTS: usize = 20;
    let (_folder, log) = market();
    run_to_end(&log, config(1));
    let (symbol, partition) = a_symbol(&log);
    let (stop, stopped) = crossbeam_channel::bounded(1);
    let (of_engine, progress) = (log.clone(), Arc::new(Progress::new(1)));
    let engine = std::thread::spawn(move || run(of_engine, config(1), progress, stopped).expect("it works"));
    let source = SynthSource::new(SynthConfig { symbols: 20, ..SynthConfig::default() }).expect("a market");
    let mut ticks = source.skip(TICKS as usize);
    let mut publisher = publisher(&log, PARTITIONS, 64);
    let is_overtaken = (0..ATTEMPTS).any(|attempt| {
        ask(&log, partition, &[request(&attempt.to_string(), large(&symbol))]);
        let result = loop {
            assert!(!engine.is_finished(), "it goes on until it is stopped");
            (0..256).for_each(|_| publisher.push(ticks.next().expect("it has no end")).expect("a good tick"));
            publisher.flush().expect("the log takes it");
            if let Some(result) = results(&log, partition).into_iter().nth(attempt) {
                break result;
            }
        };
        assert!(matches!(result.outcome, RiskOutcome::Portfolio(_)), "{:?}", result.outcome);
        was_overtaken(&log, &result)
    });
    stop.send(Stop::Now).expect("the engine runs");
    engine.join().expect("it ends");
    assert!(is_overtaken, "ticks wait while requests are made tasks");
}
