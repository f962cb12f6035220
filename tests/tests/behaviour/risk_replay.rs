//! Compares risk results of the real engine with their replay, and tests what is reported for changed results.

use std::sync::Arc;

use serde_json::{Value, json};
use warptape_eventlog::{Durability, EventLog, NewRecord, Record, SqliteLog, TopicPartition};
use warptape_kernels::Isa;
use warptape_pipeline::runtime::{EngineConfig, Topics};
use warptape_replay::{Divergence, OutputDivergence, OutputProblem, Report, VerifyOptions, verify};
use warptape_schemas::journal::RiskConfig;
use warptape_schemas::risk::{RiskError, RiskErrorCode, RiskOutcome, RiskRequest, RiskResult};
use warptape_schemas::{decode_risk_request, decode_risk_result, encode_risk_request, encode_risk_result};
use warptape_sources::synth::{SynthConfig, SynthSource};
use warptape_stages::risk::refusals;
use warptape_tests::engine_run::{engine_config, feed, read_partition, run_to_end, stage_config};
use warptape_tests::injected::InjectedLanes;

const PARTITIONS: i32 = 2;
/// Number of ticks of each process life.
const TICKS: usize = 10_000;
/// Partition that has most of the requests.
const ASKED: i32 = 1;

type Log = Arc<dyn EventLog>;

fn config(lanes: i32) -> EngineConfig {
    let mut config = engine_config(stage_config(&["1s"]), lanes);
    // The short slices cause many of them.
    config.core.scheduler.risk.slice_ns = 50_000;
    // The short interval gives enough returns.
    config.core.stages.market.sample_interval_ns = 100_000_000;
    config
}

fn new_log(folder: &tempfile::TempDir, name: &str) -> Log {
    Arc::new(SqliteLog::open(folder.path().join(name), Durability::Process).expect("a new log"))
}

/// Publishes the ticks of a process life. All lives share one market.
fn feed_life(log: &Log, life: usize) {
    let config = SynthConfig { symbols: 20, ..SynthConfig::default() };
    feed(log, PARTITIONS, 64, SynthSource::new(config).expect("a market").skip(life * TICKS).take(TICKS));
}

fn symbol_of(log: &Log, partition: i32) -> String {
    let record = read_partition(log.as_ref(), "signals", partition).pop().expect("a signal");
    String::from_utf8(record.key.expect("the symbol")).expect("UTF-8")
}

fn live_asset(symbol: &str) -> Value {
    json!({"symbol": symbol, "spot": {"from": "market"}, "volatility": {"from": "market"}})
}

fn options(asset: &Value, strike: f64) -> Value {
    let option = |strike| json!({"asset": 0, "kind": "put", "strike": strike, "expiry_years": 0.5});
    let options: Vec<Value> = (0..50).map(|step| option(strike + f64::from(step))).collect();
    json!({"type": "options", "assets": [asset], "options": options})
}

fn simulation(assets: &[Value], contract: &Value) -> Value {
    json!({"type": "simulation", "assets": assets, "expiry_years": 1.0, "steps": 8, "contract": contract,
           "correlations": if assets.len() > 1 { json!({"from": "market"}) } else { json!([]) },
           "paths_max": 100_000, "standard_error": 0.02})
}

fn request(id: &str, problem: Value) -> RiskRequest {
    let request = json!({"request_id": id, "tenant": "desk", "seed": 5, "problem": problem});
    serde_json::from_value(request).expect("a request")
}

fn ask(log: &Log, partition: i32, requests: &[RiskRequest]) {
    let mut values = Vec::new();
    for request in requests {
        let mut value = Vec::new();
        encode_risk_request(request, &mut value);
        values.push(value);
    }
    send(log, partition, values);
}

fn send(log: &Log, partition: i32, values: Vec<Vec<u8>>) {
    let mut producer = log.producer("asks").expect("a producer");
    producer.begin().expect("a transaction");
    for value in values {
        let (topic, value) = ("risk.requests".into(), value.into());
        producer.send(NewRecord { topic, partition, value, ..NewRecord::default() }).expect("it is taken");
    }
    producer.commit().expect("it is taken");
}

/// Records three process lives: first only ticks, then requests of all kinds, and then further requests on a later
/// market.
fn record(log: &Log, lanes: i32) {
    feed_life(log, 0);
    run_to_end(log, config(lanes));
    let (near, far) = (symbol_of(log, ASKED), symbol_of(log, 0));
    let given = json!({"symbol": "given", "spot": 100.0, "volatility": 0.25});
    let asian = json!({"type": "asian", "kind": "call", "strike": 105.0});
    let basket = json!({"type": "basket", "kind": "call", "strike": 1.0, "weights": [0.5, 0.5]});
    let closes: Vec<f64> = (0..2_000_i32).map(|bar| 100.0 + f64::from(bar * 7919 % 101) / 10.0).collect();
    let rule = |window: i32| json!({"type": "band-breakout", "window": window, "width": 1.0});
    let rules: Vec<Value> = (2..30).map(rule).collect();
    let sweep = json!({"type": "sweep", "symbols": [{"symbol": "a", "closes": closes}], "rules": rules});
    let requests = [
        request("live", options(&live_asset(&near), 90.0)),
        request("given", simulation(std::slice::from_ref(&given), &asian)),
        request("basket", simulation(&[live_asset(&near), live_asset(&far)], &basket)),
        request("sweep", sweep),
        request("unknown", options(&live_asset("NOBODY:KNOWS"), 90.0)),
        request("bad", options(&given, -100.0)),
        RiskRequest { deadline_ns: Some(1), ..request("expired", options(&live_asset(&near), 80.0)) },
        request("live", options(&given, 90.0)),
        request("elsewhere", options(&live_asset(&far), 90.0)),
    ];
    ask(log, ASKED, &requests);
    send(log, ASKED, vec![b"not Avro".to_vec()]);
    ask(log, 0, &[request("live", options(&live_asset(&far), 90.0))]);
    feed_life(log, 1);
    run_to_end(log, {
        let mut config = config(lanes);
        if lanes > 2 {
            config.lanes = InjectedLanes::failing(1, 2);
        }
        config
    });
    feed_life(log, 2);
    ask(
        log,
        ASKED,
        &[request("later", options(&live_asset(&near), 90.0)), request("sweep", options(&given, 90.0))],
    );
    run_to_end(log, config(1));
}

fn verified(log: &Log) -> Report {
    let mut options = VerifyOptions::new(&Topics::new(""), &config(1).core.group);
    (options.outputs, options.sources.isa) = (true, Isa::Baseline);
    verify(log.as_ref(), &options, &mut |_| {}).expect("the log can be read")
}

fn results(log: &Log, partition: i32) -> Vec<RiskResult> {
    let records = read_partition(log.as_ref(), "risk.results", partition);
    records.iter().map(|record| decode_risk_result(&record.value).expect("a result")).collect()
}

#[test]
fn results_of_any_lanes_are_identical() {
    for lanes in [1, 2, 5] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let log = new_log(&folder, "log.db");
        record(&log, lanes);
        let report = verified(&log);
        assert!(report.is_identical(), "{lanes} lanes: {report}");
        let results = results(&log, ASKED);
        assert_eq!(results.len(), 12);
        assert_eq!(report.outputs.expect("they were asked for").risk_results, 13);
        assert!(report.to_string().ends_with(" signals, 13 risk results: identical"), "{report}");
        let partitions = |id: &str| {
            let result = results.iter().find(|result| result.request_id == id).expect(id);
            result.as_of.iter().map(|as_of| as_of.partition).collect::<Vec<_>>()
        };
        assert_eq!(partitions("basket"), [ASKED, 0], "a market of two partitions");
        assert!(partitions("expired").is_empty(), "refused before the market was taken");
    }
}

#[test]
fn requests_for_which_there_is_no_room_are_recomputed() {
    check_without_room(|risk| risk.tasks_max = 4, "4 requests wait, 4 may");
}

#[test]
fn requests_for_whose_bytes_there_is_no_room_are_recomputed() {
    check_without_room(|risk| risk.bytes_max = 500, "bytes of requests wait, 500 may");
}

fn check_without_room(limit: impl FnOnce(&mut RiskConfig), message: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = new_log(&folder, "log.db");
    feed_life(&log, 0);
    let given = json!({"symbol": "given", "spot": 100.0, "volatility": 0.25});
    // Four long requests come first, so that the others arrive while they wait, even on a fast machine.
    let long = json!({"type": "simulation", "assets": [given], "expiry_years": 1.0, "steps": 256,
                      "contract": {"type": "asian", "kind": "call", "strike": 105.0}, "paths_max": 50_000});
    let requests: Vec<RiskRequest> = (0..12)
        .map(|number| {
            let problem = if number < 4 { long.clone() } else { options(&given, 90.0) };
            request(&format!("r-{number}"), problem)
        })
        .collect();
    ask(&log, ASKED, &requests);
    let mut config = config(1);
    limit(&mut config.core.scheduler.risk);
    run_to_end(&log, config);
    let is_overloaded = |result: &RiskResult| {
        matches!(&result.outcome, RiskOutcome::Error(error)
            if error.code == RiskErrorCode::Overloaded && error.message.contains(message))
    };
    assert!(results(&log, ASKED).iter().any(is_overloaded));
    let report = verified(&log);
    assert!(report.is_identical(), "{report}");
    let changed = diverged(&folder, &log, "risk.results", |records| {
        let result = |record: &Record| decode_risk_result(&record.value).expect("a result");
        let at = records.iter().position(|record| is_overloaded(&result(record))).expect("one is");
        change(&mut records[at], |result| outcome_error(result).message = "come back later".to_owned());
    });
    assert_eq!(fields(&changed), ["outcome.risk_error.message"], "{changed}");
}

/// A request that takes minutes runs beside small ones, one of which cancels it. Another request is never begun.
#[test]
fn what_was_cancelled_and_what_cost_too_much_is_recomputed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = new_log(&folder, "log.db");
    feed_life(&log, 0);
    run_to_end(&log, config(1));
    let live = live_asset(&symbol_of(&log, ASKED));
    let asian = json!({"type": "asian", "kind": "call", "strike": 105.0});
    let mut long = simulation(std::slice::from_ref(&live), &asian);
    long["steps"] = json!(1_000);
    long["paths_max"] = json!(30_000_000);
    long["standard_error"] = Value::Null;
    let mut longer = long.clone();
    longer["steps"] = json!(65_536);
    let cancel = |id: &str, other: &str| {
        let mut request = request(id, json!({"type": "options", "assets": [], "options": []}));
        request.cancels = Some(other.to_owned());
        request
    };
    let requests = [
        request("long", long),
        request("longer", longer),
        request("beside", options(&live, 90.0)),
        cancel("stop", "long"),
        cancel("again", "long"),
        cancel("nobody", "unknown"),
    ];
    ask(&log, ASKED, &requests);
    run_to_end(&log, {
        let mut config = config(1);
        config.core.limits.risk_cost_max_ns = 3_600_000_000_000;
        config
    });
    let found = results(&log, ASKED);
    let code = |id: &str| code_of(found.iter().find(|result| result.request_id == id).expect(id));
    let bad = Some(RiskErrorCode::BadParameter);
    let codes = ["long", "longer", "beside", "stop", "again", "nobody"].map(code);
    assert_eq!(codes, [Some(RiskErrorCode::Expired), bad, None, None, bad, bad]);
    let report = verified(&log);
    assert!(report.is_identical(), "{report}");

    let with = |id: &str, change_it: &dyn Fn(&mut RiskResult)| {
        diverged(&folder, &log, "risk.results", |records| {
            let result = |record: &Record| decode_risk_result(&record.value).expect("a result");
            let at = records.iter().position(|record| result(record).request_id == id).expect(id);
            change(&mut records[at], change_it);
        })
    };
    let by_another = with("long", &|result| {
        let error = outcome_error(result);
        error.message = error.message.replace("stop", "post");
    });
    assert_eq!(fields(&by_another), ["outcome.risk_error.message"], "{by_another}");
    let cheaper = with("longer", &|result| result.cost_max_ns = i64::MAX);
    assert!(!fields(&cheaper).is_empty(), "{cheaper}");
    let dearer = with("beside", &|result| result.cost_ns += 1);
    assert_eq!(fields(&dearer), ["cost_ns"], "{dearer}");
}

/// Requests with the largest answers of each kind of problem. Answers with a row per option, position, scenario or rule
/// exceed a topic with the lowest allowed limit; the others fit any topic.
#[test]
fn an_answer_of_any_kind_that_its_topic_does_not_take_is_an_error_that_is_recomputed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = new_log(&folder, "log.db");
    feed_life(&log, 0);
    let given = json!({"symbol": "given", "spot": 100.0, "volatility": 0.25});
    let option = json!({"asset": 0, "kind": "call", "strike": 101.0, "expiry_years": 0.5});
    let digital = json!({"asset": 0, "kind": "call", "strike": 101.0, "expiry_years": 0.5, "pays": "cash", "amount": 9.0});
    let of_options = |kind: &str, option: &Value| json!({"type": kind, "assets": [given], "options": vec![option; 10_000]});
    let mut implied = of_options("implied-volatilities", &option);
    implied["prices"] = json!(vec![1_000.0; 10_000]);
    let name = |number: usize| format!("{number:0>64}");
    let books = |count: usize| -> Vec<Value> {
        let parent = |book: usize| if book == 0 { Value::Null } else { json!(0) };
        (0..count).map(|book| json!({"name": name(book), "parent": parent(book)})).collect()
    };
    let position = |number: usize| json!({"name": name(number), "book": 0, "quantity": 2.0, "instrument": {"type": "spot", "asset": 0}});
    let portfolio = |positions: usize, books: &[Value], measure: &Value| {
        json!({"type": "portfolio", "assets": [given], "books": books, "measure": measure,
               "positions": (0..positions).map(position).collect::<Vec<_>>()})
    };
    let returns: Vec<f64> = (0..40_i32).map(|day| f64::from(day - 20) / 1_000.0).collect();
    let historical = json!({"type": "historical", "confidence": 0.9, "returns": returns});
    let falls = |number: usize| json!({"name": name(number), "spot_shift": -1e-6 * number as f64});
    let stress = json!({"type": "stress", "scenarios": (0..1_000).map(falls).collect::<Vec<_>>()});
    // There are so many trades that their number takes three bytes.
    let rule = |number: usize| json!({"type": "ema-cross", "fast": 2 + number % 3, "slow": 6});
    let closes: Vec<f64> = (0..10_000_i32).map(|bar| 100.0 + f64::from(bar % 2)).collect();
    let sweep = json!({"type": "sweep", "symbols": [{"symbol": "a", "closes": closes}],
                       "rules": (0..20_000).map(rule).collect::<Vec<_>>()});
    let identity = |count: usize| -> Vec<f64> {
        (0..count * count).map(|cell| if cell % (count + 1) == 0 { 1.0 } else { 0.0 }).collect()
    };
    let basket = json!({"type": "simulation", "assets": vec![&given; 64], "correlations": identity(64), "greeks": true,
                        "contract": {"type": "basket", "kind": "call", "strike": 100.0, "weights": vec![1.0 / 64.0; 64]},
                        "expiry_years": 1.0, "steps": 1, "paths_max": 512});
    let weights = json!({"type": "optimisation", "assets": vec![&given; 256], "expected_returns": vec![0.05; 256],
                         "covariance": identity(256), "risk_aversion": 3.0, "budget": 1.0,
                         "lower": vec![0.0; 256], "upper": vec![1.0; 256]});
    let cases = [
        ("options", of_options("options", &option), true),
        ("digital-options", of_options("digital-options", &digital), true),
        ("implied-volatilities", implied, true),
        ("portfolio", portfolio(8_000, &books(1), &historical), true),
        ("stress", portfolio(1, &books(100), &stress), true),
        ("sweep", sweep, true),
        ("simulation", basket, false),
        ("optimisation", weights, false),
    ];
    let ids_of = |is_too_large| cases.iter().filter(move |case| case.2 == is_too_large).map(|case| case.0);
    let requests: Vec<RiskRequest> =
        cases.iter().map(|(id, problem, _)| request(id, problem.clone())).collect();
    ask(&log, ASKED, &requests);
    let bytes_max = refusals::RESULT_BYTES_MIN;
    run_to_end(&log, {
        let mut config = config(1);
        config.core.limits.risk_result_bytes_max = bytes_max;
        config
    });
    let found = results(&log, ASKED);
    let of = |id: &str| found.iter().find(|result| result.request_id == id).expect(id);
    for id in ids_of(true) {
        let RiskOutcome::Error(error) = &of(id).outcome else { panic!("{id} fits") };
        assert_eq!((error.code, error.field.as_str()), (RiskErrorCode::BadParameter, "problem"), "{id}");
        assert!(error.message.starts_with("the answer has "), "{id}: {}", error.message);
        assert!(
            error.message.contains(&format!(" takes {bytes_max}: ask for less")),
            "{id}: {}",
            error.message
        );
    }
    for id in ids_of(false) {
        let mut record = Vec::new();
        encode_risk_result(of(id), &mut record);
        assert_eq!(code_of(of(id)), None, "{id}: {:?}", of(id).outcome);
        assert!(record.len() < bytes_max as usize / 16, "{id} has {} bytes", record.len());
    }
    assert_eq!(found.len(), cases.len());
    let report = verified(&log);
    assert!(report.is_identical(), "{report}");
    assert_eq!(report.outputs.expect("they were asked for").risk_results, cases.len() as u64);
    // An answer that fits its topic must not be replaced by the error that it is too large.
    let changed = diverged(&folder, &log, "risk.results", |records| {
        let result = |record: &Record| decode_risk_result(&record.value).expect("a result");
        let small = records.iter().position(|record| result(record).request_id == "simulation").expect("one");
        let large = records.iter().find(|record| result(record).request_id == "sweep").expect("another");
        let outcome = result(large).outcome;
        change(&mut records[small], |result| result.outcome = outcome);
    });
    assert_eq!(changed.request_id.as_deref(), Some("simulation"), "{changed}");
}

fn code_of(result: &RiskResult) -> Option<RiskErrorCode> {
    match &result.outcome {
        RiskOutcome::Error(error) => Some(error.code),
        _ => None,
    }
}

fn outcome_error(result: &mut RiskResult) -> &mut warptape_schemas::risk::RiskError {
    match &mut result.outcome {
        RiskOutcome::Error(error) => error,
        other => panic!("{other:?} is no error"),
    }
}

/// Returns the difference that a verification reports for a log with a changed partition.
fn diverged(
    folder: &tempfile::TempDir,
    log: &Log,
    topic: &str,
    change: impl FnOnce(&mut Vec<Record>),
) -> OutputDivergence {
    match verified_with(folder, log, topic, change).divergence {
        Some(Divergence::Output(divergence)) => divergence,
        other => panic!("a changed output expected, found {other:?}"),
    }
}

/// Returns the verification of a log with a changed partition. It copies everything into another log.
fn verified_with(
    folder: &tempfile::TempDir,
    log: &Log,
    topic: &str,
    change: impl FnOnce(&mut Vec<Record>),
) -> Report {
    let path = folder.path().join("changed.db");
    let copy = SqliteLog::open(&path, Durability::Process).expect("a new log");
    let topics = log.topics().expect("the log is readable");
    copy.create_topics(&topics.iter().map(|topic| topic.spec.clone()).collect::<Vec<_>>())
        .expect("new topics");
    let mut producer = copy.producer("copy").expect("a producer");
    producer.begin().expect("a transaction");
    let mut change = Some(change);
    let mut offsets = Vec::new();
    for info in &topics {
        for partition in 0..info.offsets.len() as i32 {
            let name = &info.spec.name;
            let mut records = read_partition(log.as_ref(), name, partition);
            if (name.as_str(), partition) == (topic, ASKED) {
                change.take().expect("a partition is read once")(&mut records);
            }
            for record in records {
                let Record { key, value, timestamp_ns, .. } = record;
                let (topic, key, value) = (name.clone().into(), key.map(Into::into), value.into());
                let record = NewRecord { topic, partition, key, value, timestamp_ns, ..NewRecord::default() };
                producer.send(record).expect("it is taken");
            }
            let source = TopicPartition { topic: name.clone(), partition };
            let committed = log.committed(&config(1).core.group, &source).expect("the log is readable");
            offsets.extend(committed.map(|offset| (source, offset)));
        }
    }
    producer.send_offsets(&config(1).core.group, &offsets).expect("it is taken");
    producer.commit().expect("it is taken");
    drop(producer);
    let copy: Log = Arc::new(copy);
    let report = verified(&copy);
    drop(copy);
    for file in [path.clone(), path.with_extension("db-head")] {
        std::fs::remove_file(file).expect("the copy is there");
    }
    // A log with few records has no segments.
    drop(std::fs::remove_dir_all(path.with_extension("db-segments")));
    report
}

/// A rejection names the market on which it was decided. So exactly one rejection is right, and not every one that some
/// market would cause.
#[test]
fn a_refusal_is_recomputed_on_its_market() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = new_log(&folder, "log.db");
    let config = || {
        let mut config = config(1);
        // The long interval gives too few returns.
        config.core.stages.market.sample_interval_ns = 1_000_000_000;
        config
    };
    feed_life(&log, 0);
    run_to_end(&log, config());
    let near = symbol_of(&log, ASKED);
    let given = json!({"symbol": "given", "spot": 100.0, "volatility": 0.25});
    let requests = [
        request("few", options(&live_asset(&near), 90.0)),
        request("unknown", options(&live_asset("NOBODY:KNOWS"), 90.0)),
        request("bad", options(&given, -100.0)),
    ];
    ask(&log, ASKED, &requests);
    feed_life(&log, 1);
    run_to_end(&log, config());
    let found = results(&log, ASKED);
    assert_eq!(found.len(), requests.len());
    // A request for an unknown symbol waits for the symbol's first tick, so any of the three may be answered first.
    let at = |id: &str| found.iter().position(|result| result.request_id == id).expect(id);
    let (few, unknown, bad) = (at("few"), at("unknown"), at("bad"));
    for (at, code) in [
        (few, RiskErrorCode::MissingMarketData),
        (unknown, RiskErrorCode::UnknownSymbol),
        (bad, RiskErrorCode::BadParameter),
    ] {
        assert_eq!(code_of(&found[at]), Some(code), "{:?}", found[at]);
    }
    for result in [&found[few], &found[unknown]] {
        let partitions: Vec<i32> = result.judged_on.iter().map(|as_of| as_of.partition).collect();
        assert_eq!(partitions, [0, ASKED], "{result:?}");
    }
    assert!(found[bad].judged_on.is_empty(), "it asks for no market");
    assert_eq!(verified(&log).divergence, None);

    let with = |at: usize, change_it: &dyn Fn(&mut RiskResult)| {
        verified_with(&folder, &log, "risk.results", |records| change(&mut records[at], change_it))
    };
    let named = |report: Report| match report.divergence {
        Some(Divergence::Output(divergence)) => fields(&divergence).join(" "),
        other => panic!("a changed output expected, found {other:?}"),
    };
    // The result names a number of returns that the market did not have.
    let other_number = |result: &mut RiskResult| {
        let error = outcome_error(result);
        error.message = format!("2{}", error.message);
    };
    assert_eq!(named(with(few, &other_number)), "outcome.risk_error.message");
    // The result names no market, so no symbol would be known.
    let on_nothing = named(with(few, &|result| result.judged_on.clear()));
    assert!(on_nothing.contains("outcome.risk_error.code"), "{on_nothing}");
    // The result names unknown rules.
    let unknown_rules =
        with(few, &|result| result.rules = 7).divergence.expect("it cannot be judged").to_string();
    let said =
        "answered by rules 7, and this software knows rules 1: use the version of warptape that wrote it";
    assert!(unknown_rules.contains(said) && unknown_rules.contains("request few"), "{unknown_rules}");
    // The result has another error than the right one.
    let no_price =
        |result: &mut RiskResult| outcome_error(result).field = "problem.assets[0].spot".to_owned();
    assert_eq!(named(with(few, &no_price)), "outcome.risk_error.field");
    // The result names another market, in which the symbol is not known yet, or which the request does not use.
    let nothing_yet = |result: &mut RiskResult| {
        result.judged_on.iter_mut().for_each(|as_of| as_of.next_offset = 0);
    };
    assert!(named(with(few, &nothing_yet)).contains("outcome.risk_error.code"));
    assert_eq!(with(unknown, &nothing_yet).divergence, None, "nobody knew it there either");
    let judged_on = found[few].judged_on.clone();
    assert!(with(bad, &|result| result.judged_on = judged_on.clone()).divergence.is_some());
    assert!(named(with(unknown, &|result| result.judged_on.reverse())).starts_with("judged_on[0]."));
    assert_eq!(named(with(few, &|result| result.node = "nobody".to_owned())), "node");
}

fn fields(divergence: &OutputDivergence) -> Vec<&str> {
    let OutputProblem::Changed { differences } = &divergence.problem else { panic!("{divergence}") };
    differences.iter().map(|difference| difference.field.as_str()).collect()
}

fn change(record: &mut Record, change: impl FnOnce(&mut RiskResult)) {
    let mut result = decode_risk_result(&record.value).expect("a result");
    change(&mut result);
    record.value.clear();
    encode_risk_result(&result, &mut record.value);
}

/// True if the record is the first result with this request id.
fn is_of(record: &Record, id: &str) -> bool {
    let result = decode_risk_result(&record.value).expect("a result");
    result.request_id == id && code_of(&result) != Some(RiskErrorCode::Duplicate)
}

#[test]
fn what_was_changed_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = new_log(&folder, "log.db");
    record(&log, 2);
    assert!(verified(&log).is_identical());
    let at = |id: &str| {
        let records = read_partition(log.as_ref(), "risk.results", ASKED);
        records.iter().position(|record| is_of(record, id)).expect(id)
    };
    let check = |id: &str, field: &str, change_result: &dyn Fn(&mut RiskResult)| {
        let offset = at(id);
        let found = diverged(&folder, &log, "risk.results", |records| {
            change(&mut records[offset], |result| change_result(result));
        });
        assert_eq!(found.offset, offset as i64, "{id}: {found}");
        assert_eq!((found.topic.as_str(), found.partition), ("risk.results", ASKED));
        assert_eq!(fields(&found)[0], field, "{id}: {found}");
        found
    };
    let flip = |number: &mut f64| *number = f64::from_bits(number.to_bits() ^ 1);
    let found = check("live", "outcome.option_result.values[7].price", &|result| match &mut result.outcome {
        RiskOutcome::Options(options) => flip(&mut options.values[7].price),
        other => panic!("{other:?}"),
    });
    assert_eq!(found.request_id.as_deref(), Some("live"));
    let text = found.to_string();
    assert!(text.contains(", request live: different\n"), "{text}");
    check("given", "outcome.simulation_result.standard_error", &|result| match &mut result.outcome {
        RiskOutcome::Simulation(simulation) => flip(&mut simulation.standard_error),
        other => panic!("{other:?}"),
    });
    check("basket", "as_of[1].spot", &|result| flip(result.as_of[1].spot.as_mut().expect("it was taken")));
    check("later", "as_of[0].next_offset", &|result| result.as_of[0].next_offset -= 1);
    let live = results(&log, ASKED).swap_remove(at("live"));
    check("later", "as_of[0].next_offset", &|result| {
        (result.as_of, result.outcome) = (live.as_of.clone(), live.outcome.clone());
    });
    check("given", "seed", &|result| result.seed += 1);
    check("sweep", "decision_sequence", &|result| result.decision_sequence = -1);
    check("elsewhere", "node", &|result| result.node.push('x'));
    check("unknown", "outcome.risk_error.code", &|result| {
        outcome_error(result).code = RiskErrorCode::Expired
    });
    check("bad", "outcome.risk_error.message", &|result| outcome_error(result).message.clear());
    check("expired", "outcome.risk_error.code", &|result| {
        outcome_error(result).code = RiskErrorCode::Overloaded;
    });
    let expired = results(&log, ASKED).swap_remove(at("expired")).outcome;
    check("elsewhere", "outcome", &|result| result.outcome = expired.clone());
    check("elsewhere", "partition", &|result| result.partition = 0);
}

/// A result that is too large for its topic becomes an error, and no other result may replace this error.
#[test]
fn a_result_that_was_too_large_is_recomputed() {
    const BYTES_MAX: i64 = refusals::RESULT_BYTES_MIN;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = new_log(&folder, "large.db");
    feed_life(&log, 0);
    let given = json!({"symbol": "given", "spot": 100.0, "volatility": 0.25});
    let volatilities = |count: usize| {
        let option = json!({"asset": 0, "kind": "call", "strike": 100.0, "expiry_years": 0.5});
        json!({"type": "implied-volatilities", "assets": [given], "options": vec![option; count],
               "prices": vec![1_000_000.5; count]})
    };
    ask(&log, ASKED, &[request("small", volatilities(2)), request("large", volatilities(9_000))]);
    run_to_end(&log, {
        let mut config = config(2);
        config.core.limits.risk_result_bytes_max = BYTES_MAX;
        config
    });
    // Another process life has a higher limit.
    ask(&log, ASKED, &[request("again", volatilities(9_000))]);
    run_to_end(&log, config(2));
    let found = results(&log, ASKED);
    let of = |id: &str| found.iter().find(|result| result.request_id == id).expect("a result");
    for id in ["small", "again"] {
        assert!(matches!(of(id).outcome, RiskOutcome::ImpliedVolatilities(_)), "{id}");
    }
    assert_eq!(refusals::stated_limit(&of("again").outcome), None);
    assert_eq!(refusals::stated_limit(&of("large").outcome), Some(BYTES_MAX));
    assert_eq!(verified(&log).divergence, None);

    let RiskOutcome::Error(error) = &of("large").outcome else { panic!("stated above") };
    // A small result must not be replaced by this error. The error must not state another size, or a limit that no
    // process had.
    let changed = |id: &str, message: String| {
        let outcome = RiskOutcome::Error(RiskError { message, ..error.clone() });
        diverged(&folder, &log, "risk.results", |records| {
            let record = records.iter_mut().find(|record| is_of(record, id)).expect("a result");
            change(record, |result| result.outcome = outcome);
        })
    };
    changed("small", error.message.clone());
    changed("large", error.message.replace("answer has ", "answer has 9"));
    changed("large", error.message.replace(&BYTES_MAX.to_string(), "1000"));
}

#[test]
fn missing_and_surplus_results_are_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = new_log(&folder, "log.db");
    record(&log, 1);
    let count = results(&log, ASKED).len() as i64;
    let tampered = |change: &dyn Fn(&mut Vec<Record>)| diverged(&folder, &log, "risk.results", change);
    let found = tampered(&|records| records.retain(|record| !is_of(record, "basket")));
    assert_eq!((found.offset, found.request_id.as_deref()), (count - 1, Some("basket")), "{found}");
    assert!(matches!(found.problem, OutputProblem::Missing { count: 1, .. }), "{found}");
    let found = tampered(&Vec::clear);
    assert!(matches!(found.problem, OutputProblem::Missing { count: 12, .. }), "{found}");
    let found = tampered(&|records| records.push(records[3].clone()));
    assert_eq!(found.offset, count, "{found}");
    assert!(matches!(found.problem, OutputProblem::Surplus { count: 1, .. }), "{found}");
    let found = tampered(&|records| {
        let mut other = records[0].clone();
        change(&mut other, |result| result.offset = 77);
        records.push(other);
    });
    assert_eq!(found.offset, count, "{found}");
    assert!(matches!(found.problem, OutputProblem::Surplus { count: 1, .. }), "{found}");
    let found = tampered(&|records| records[5].value.truncate(20));
    assert_eq!(found.offset, 5, "{found}");
    assert!(matches!(found.problem, OutputProblem::Unreadable { .. }), "{found}");
}

#[test]
fn a_changed_request_shows_in_its_result() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = new_log(&folder, "log.db");
    record(&log, 1);
    let change_seed = |records: &mut Vec<Record>| {
        let mut request = decode_risk_request(&records[1].value).expect("a request");
        request.seed += 1;
        records[1].value.clear();
        encode_risk_request(&request, &mut records[1].value);
    };
    let found = diverged(&folder, &log, "risk.requests", change_seed);
    assert_eq!(found.request_id.as_deref(), Some("given"));
    assert_eq!(fields(&found).last(), Some(&"seed"), "{found}");
}
