//! Sends risk requests while processes start and end. In the end the log must have exactly one result for each request,
//! and the right one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use warptape_eventlog::{EventLog, NewRecord, Producer, Record, TopicPartition};
use warptape_kernels::Isa;
use warptape_schemas::risk::{
    Quantity, RiskErrorCode, RiskOutcome, RiskProblem, RiskRequest, RiskResult, TaskClass,
};
use warptape_schemas::tick::TickColumns;
use warptape_schemas::{
    SymbolTable, TickDecoder, decode_risk_request, decode_risk_result, encode_risk_request,
    encode_risk_result,
};
use warptape_stages::risk::RiskTask;
use warptape_stages::risk::refusals::{encode_bounded, stated_limit};

use super::history::Random;
use super::kafka_poison::hopeless_request;
use super::outputs::records;
use super::processes::{DEADLINE, Running};

/// Time between requests while a process runs.
const PAUSE: Duration = Duration::from_millis(60);
/// Greatest time to a deadline, in milliseconds. It is so short that some deadlines are missed.
const DEADLINE_MS_MAX: u64 = 100;
/// Numbers of implied volatilities whose reasons take slightly fewer, or slightly more, bytes than a Kafka topic
/// accepts. The next constant limits a random addition.
const LARGE_OPTIONS: [u64; 2] = [9_500, 11_500];
const LARGE_OPTIONS_MORE: u64 = 500;
/// One request in this many, on average, repeats the id of an earlier request.
const DOUBLES_ONE_IN: u64 = 8;

/// Names of a group's topics and keys.
pub struct Topics {
    pub ticks: String,
    pub requests: String,
    pub results: String,
}

impl Topics {
    pub fn new(prefix: &str) -> Topics {
        let name = |topic: &str| format!("{prefix}{topic}");
        Topics { ticks: name("ticks"), requests: name("risk.requests"), results: name("risk.results") }
    }
}

/// Sends requests to all partitions of a log.
pub struct Asking<'a> {
    log: &'a dyn EventLog,
    topics: Topics,
    producer: Box<dyn Producer>,
    /// A symbol of each partition, from the partition's first record of ticks.
    symbols: Vec<String>,
    asked: u64,
}

impl<'a> Asking<'a> {
    /// Creates a sender. All partitions must have ticks.
    pub fn new(log: &'a dyn EventLog, topics: Topics, partitions: i32) -> Asking<'a> {
        let producer = producer(log, &topics);
        let symbol = |partition| first_symbol(log, &topics.ticks, partition);
        let symbols = (0..partitions).map(symbol).collect();
        Asking { log, topics, producer, symbols, asked: 0 }
    }

    /// Connects again after an outage.
    pub fn connect(&mut self) {
        self.producer = producer(self.log, &self.topics);
    }

    /// Lets a process run for this time, and sends requests meanwhile.
    #[track_caller]
    pub fn run_for(&mut self, run: &mut Running, time: Duration, random: &mut Random) {
        let mut left = time;
        loop {
            self.ask(random);
            run.run_for(left.min(PAUSE));
            left = left.saturating_sub(PAUSE);
            if left.is_zero() {
                return;
            }
        }
    }

    /// Sends a request of each kind to a random partition, in one transaction.
    pub fn ask(&mut self, random: &mut Random) {
        let partition = random.below(self.symbols.len() as u64) as usize;
        let mut values: Vec<Vec<u8>> = Vec::new();
        for problem in self.problems(partition, random) {
            let mut value = Vec::new();
            encode_risk_request(&self.request(problem, random), &mut value);
            values.push(value);
        }
        values.push(b"no request".to_vec());
        // The first request is always repeated here; others are repeated later, in any partition.
        values.push(values[0].clone());
        self.producer.begin().expect("a transaction");
        for value in values {
            let (topic, partition) = (self.topics.requests.as_str().into(), partition as i32);
            let record = NewRecord { topic, partition, value: value.into(), ..NewRecord::default() };
            self.producer.send(record).expect("a record of the transaction");
        }
        self.producer.commit().expect("a commit");
    }

    /// Sends requests whose results are about as large as a Kafka topic accepts: some smaller, some larger.
    pub fn ask_for_much(&mut self, random: &mut Random) {
        let partition = random.below(self.symbols.len() as u64) as i32;
        self.asked += 1;
        let options = LARGE_OPTIONS[random.below(2) as usize] + random.below(LARGE_OPTIONS_MORE);
        let value = hopeless_request(&format!("request {}", self.asked), options as usize);
        self.producer.begin().expect("a transaction");
        let topic = self.topics.requests.as_str().into();
        let record = NewRecord { topic, partition, value: value.into(), ..NewRecord::default() };
        self.producer.send(record).expect("a record of the transaction");
        self.producer.commit().expect("a commit");
    }

    fn problems(&self, partition: usize, random: &mut Random) -> Vec<Value> {
        let given = json!({"symbol": "given", "spot": 100.0, "volatility": 0.25, "rate": 0.02});
        let of = |partition: usize| json!({"symbol": self.symbols[partition], "spot": {"from": "market"}, "volatility": 0.3});
        let other = random.below(self.symbols.len() as u64) as usize;
        let option = |asset: i32| json!({"asset": asset, "kind": "put", "strike": 95.0, "expiry_years": 0.5});
        let simulation = |contract: &str, steps: i32, standard_error: Option<f64>| {
            json!({"type": "simulation", "assets": [given], "expiry_years": 1.0, "steps": steps, "paths_max": 30_000,
                   "contract": {"type": contract, "kind": "call", "strike": 105.0}, "standard_error": standard_error})
        };
        let returns: Vec<f64> = (0..200).map(|_| random.below(100) as f64 / 1e3 - 0.05).collect();
        let position = json!({"name": "p", "book": 0, "quantity": 3.0, "instrument":
            {"type": "option", "asset": 0, "kind": "put", "strike": 95.0, "expiry_years": 1.0}});
        vec![
            json!({"type": "options", "assets": [given], "options": (0..40).map(|_| option(0)).collect::<Vec<_>>()}),
            simulation("european", 1, None),
            simulation("asian", 4, Some(0.05)),
            json!({"type": "portfolio", "assets": [given], "books": [{"name": "all"}], "positions": [position],
                   "measure": {"type": "historical", "confidence": 0.9, "returns": returns}}),
            json!({"type": "options", "assets": [of(partition)], "options": [option(0)]}),
            json!({"type": "options", "assets": [of(partition), of(other)], "options": [option(0), option(1)]}),
            // This problem is invalid.
            json!({"type": "options", "assets": [given], "options": []}),
        ]
    }

    fn request(&mut self, problem: Value, random: &mut Random) -> RiskRequest {
        self.asked += 1;
        let before = if random.below(DOUBLES_ONE_IN) == 0 { random.below(self.asked) } else { 0 };
        let deadline_ns = match random.below(6) {
            0 => Some(1),
            1 => Some(now_ns() + 1_000_000 * random.below(DEADLINE_MS_MAX) as i64),
            _ => None,
        };
        let class = ["critical", "interactive", "batch"][random.below(3) as usize];
        let request = json!({
            "request_id": format!("request {}", self.asked - before), "tenant": format!("t{}", random.below(3)),
            "class": class, "seed": self.asked,
            "deadline_ns": deadline_ns, "problem": problem,
        });
        serde_json::from_value(request).expect("a request")
    }

    /// Waits until the group has answered all requests.
    #[track_caller]
    pub fn await_answers(&self, run: &mut Running, group: &str) {
        let behind = |partition| {
            let all = records(self.log, &self.topics.requests, partition);
            all.last().map_or(0, |last| last.offset + 1)
        };
        let partitions = 0..self.symbols.len() as i32;
        let ends: Vec<i64> = partitions.clone().map(behind).collect();
        run.run_while_moving("all requests are answered", || {
            let source = |partition| TopicPartition { topic: self.topics.requests.clone(), partition };
            let of = |partition| self.log.committed(group, &source(partition)).ok().flatten().unwrap_or(0);
            let done: Vec<i64> = partitions.clone().map(of).collect();
            if done.iter().zip(&ends).all(|(done, end)| done >= end) { Ok(()) } else { Err(done) }
        });
    }

    /// Asserts that each request has exactly one result, and the right one. Returns the numbers of results by kind.
    #[track_caller]
    pub fn check(&self) -> Counts {
        let mut counts = Counts::new();
        for partition in 0..self.symbols.len() as i32 {
            let [requests, results] = self.records(partition);
            if let Err(problem) = check(&requests, &results, &mut counts) {
                panic!("partition {partition} of {}: {problem}", self.topics.results);
            }
        }
        for kind in [ANSWER, OF_MARKET, "BadParameter", "Expired", "Duplicate"] {
            assert!(counts.contains_key(kind), "there is no {kind} among {counts:?}");
        }
        counts
    }

    /// Returns the requests and results of a partition. It waits a limited time for as many results as requests,
    /// because a commit is acknowledged before its records are readable.
    fn records(&self, partition: i32) -> [Vec<Record>; 2] {
        let since = Instant::now();
        loop {
            let found = [&self.topics.requests, &self.topics.results]
                .map(|topic| records(self.log, topic, partition));
            if found[1].len() >= found[0].len() || since.elapsed() >= DEADLINE {
                return found;
            }
        }
    }
}

fn producer(log: &dyn EventLog, topics: &Topics) -> Box<dyn Producer> {
    log.producer(&format!("{}-asking", topics.requests)).expect("a producer")
}

/// Numbers of results by kind.
pub type Counts = BTreeMap<String, usize>;

const TOO_LARGE: &str = "too large";
const ANSWER: &str = "answer";
const OF_MARKET: &str = "answer of the market";

fn now_ns() -> i64 {
    warptape_pipeline::clock::wall_clock_ns()
}

fn first_symbol(log: &dyn EventLog, ticks: &str, partition: i32) -> String {
    let (mut symbols, mut columns) = (SymbolTable::default(), TickColumns::default());
    let first = records(log, ticks, partition).into_iter().next().expect("the partition has ticks");
    TickDecoder::new().decode(&first.value, &mut symbols, &mut columns).expect("ticks");
    symbols.name(columns.symbol[0]).to_owned()
}

/// Compares the results of a partition with its requests.
fn check(requests: &[Record], results: &[Record], counts: &mut Counts) -> Result<(), String> {
    let mut by_offset: BTreeMap<i64, RiskResult> = BTreeMap::new();
    for record in results {
        let result = decode_risk_result(&record.value).map_err(|error| error.to_string())?;
        if record.key.as_deref() != Some(result.request_id.as_bytes()) {
            return Err(format!("the key of {} is {:?}", result.request_id, record.key));
        }
        let offset = result.offset;
        if by_offset.insert(offset, result).is_some() {
            return Err(format!("request {offset} has two results"));
        }
    }
    let mut ids = BTreeSet::new();
    for record in requests {
        let Some(result) = by_offset.remove(&record.offset) else {
            return Err(format!("request {} has no result", record.offset));
        };
        let kind = kind_of(record, &result, &mut ids)
            .ok_or_else(|| format!("not what request {} has to get: {result:?}", record.offset))?;
        *counts.entry(kind).or_default() += 1;
    }
    match by_offset.first_key_value() {
        Some((offset, _)) => Err(format!("a result of {offset}, where there is no request")),
        None => Ok(()),
    }
}

/// Returns the kind of a request's result; `None` if the result is wrong.
fn kind_of(record: &Record, result: &RiskResult, ids: &mut BTreeSet<String>) -> Option<String> {
    let code = match &result.outcome {
        RiskOutcome::Error(error) => Some(error.code),
        _ => None,
    };
    let is_right =
        |is_right: bool| is_right.then(|| code.map_or(ANSWER.to_owned(), |code| format!("{code:?}")));
    let Ok(request) = decode_risk_request(&record.value) else {
        return is_right(code == Some(RiskErrorCode::BadParameter) && result.request_id.is_empty());
    };
    let echo = (&result.request_id, &result.tenant, result.class, result.seed);
    if echo != (&request.request_id, &request.tenant, request.class, request.seed) {
        return None;
    }
    let is_double = !ids.insert(request.request_id.clone());
    if is_double || code == Some(RiskErrorCode::Duplicate) {
        return is_right(is_double && code == Some(RiskErrorCode::Duplicate));
    }
    if code == Some(RiskErrorCode::Expired) {
        return is_right(request.deadline_ns.is_some_and(|deadline_ns| deadline_ns <= result.finished_ns));
    }
    if code == Some(RiskErrorCode::UnknownSymbol) {
        // The request has several symbols, and another process may own the ticks of the other ones.
        return is_right(symbols(&request).len() > 1);
    }
    let expected = outcome(&with_market(&request, result)?);
    if let Some(bytes_max) = stated_limit(&result.outcome) {
        let mut bounded = RiskResult { outcome: expected, ..result.clone() };
        encode_bounded(&mut bounded, bytes_max);
        return (bounded.outcome == result.outcome).then(|| TOO_LARGE.to_owned());
    }
    let is_of_market = !result.as_of.is_empty() && code.is_none();
    // NaN differs from itself, so rows without numbers are compared by their bytes.
    let bytes = |outcome: RiskOutcome| {
        let mut bytes = Vec::new();
        encode_risk_result(&RiskResult { outcome, ..result.clone() }, &mut bytes);
        bytes
    };
    (bytes(result.outcome.clone()) == bytes(expected))
        .then(|| if is_of_market { Some(OF_MARKET.to_owned()) } else { is_right(true) })
        .flatten()
}

fn symbols(request: &RiskRequest) -> BTreeSet<&str> {
    let RiskProblem::Options(options) = &request.problem else { return BTreeSet::new() };
    options.assets.iter().map(|asset| asset.symbol.as_str()).collect()
}

/// Returns the request with the market data of its result. If it has several symbols, another process may own the ticks
/// of one; that symbol then has a bad row.
fn with_market(request: &RiskRequest, result: &RiskResult) -> Option<RiskRequest> {
    let mut request = request.clone();
    let RiskProblem::Options(options) = &mut request.problem else { return Some(request) };
    for asset in &mut options.assets {
        if matches!(asset.spot, Quantity::Market(_)) {
            match result.as_of.iter().find(|taken| taken.symbol == asset.symbol) {
                Some(taken) => asset.spot = Quantity::Given(taken.spot?),
                None if !result.as_of.is_empty() => {}
                None => return None,
            }
        }
    }
    Some(request)
}

/// Computes the outcome of a request on one thread.
fn outcome(request: &RiskRequest) -> RiskOutcome {
    match RiskTask::new(request, &|_| None) {
        Ok(task) => task.outcome(Isa::Baseline),
        Err(error) => RiskOutcome::Error(error),
    }
}

#[cfg(test)]
mod tests {
    use warptape_schemas::risk::{OptionResult, RiskError};

    use super::*;

    fn request(id: &str, deadline_ns: Option<i64>) -> RiskRequest {
        let asset = json!({"symbol": "given", "spot": 100.0, "volatility": 0.25});
        let option = json!({"asset": 0, "kind": "put", "strike": 95.0, "expiry_years": 0.5});
        let problem = json!({"type": "options", "assets": [asset], "options": [option]});
        let request = json!({"request_id": id, "tenant": "desk", "seed": 7, "deadline_ns": deadline_ns, "problem": problem});
        serde_json::from_value(request).expect("a request")
    }

    fn error(code: RiskErrorCode) -> RiskOutcome {
        RiskOutcome::Error(RiskError { code, field: String::new(), message: String::new() })
    }

    fn result(request_id: &str, offset: i64, outcome: RiskOutcome) -> RiskResult {
        let is_unreadable = request_id.is_empty();
        RiskResult {
            request_id: request_id.to_owned(),
            tenant: if is_unreadable { "" } else { "desk" }.to_owned(),
            class: TaskClass::Interactive,
            topic: "risk.requests".to_owned(),
            partition: 0,
            offset,
            outcome,
            as_of: Vec::new(),
            seed: if is_unreadable { 0 } else { 7 },
            received_ns: 1_000,
            started_ns: 0,
            finished_ns: 2_000,
            compute_ns: 0,
            devices: Vec::new(),
            node: "node-0".to_owned(),
            decision_sequence: 3,
            cost_ns: 0,
            cost_max_ns: 0,
            cancels: None,
            judged_on: Vec::new(),
            rules: warptape_schemas::risk::RULES,
        }
    }

    fn record(offset: i64, key: &str, value: Vec<u8>) -> Record {
        Record { offset, key: Some(key.into()), headers: Vec::new(), timestamp_ns: 0, value }
    }

    /// Returns an answered request, an expired one, a repeated one and an unreadable one. Their offsets have gaps, as
    /// on Kafka.
    fn requests() -> Vec<Record> {
        let asked = [request("a", None), request("b", Some(1_500)), request("a", None)];
        let mut records: Vec<Record> = (0..)
            .zip(&asked)
            .map(|(number, request)| {
                let mut value = Vec::new();
                encode_risk_request(request, &mut value);
                record(2 * number, "", value)
            })
            .collect();
        records.push(record(7, "", b"no request".to_vec()));
        records
    }

    /// Returns the results, in another order than the requests.
    fn results() -> Vec<RiskResult> {
        vec![
            result("a", 4, error(RiskErrorCode::Duplicate)),
            result("", 7, error(RiskErrorCode::BadParameter)),
            result("b", 2, error(RiskErrorCode::Expired)),
            result("a", 0, outcome(&request("a", None))),
        ]
    }

    fn checked(results: &[RiskResult]) -> Result<Counts, String> {
        let encoded = |result: &RiskResult| {
            let mut value = Vec::new();
            encode_risk_result(result, &mut value);
            record(0, &result.request_id, value)
        };
        let mut counts = Counts::new();
        let results: Vec<Record> = results.iter().map(encoded).collect();
        check(&requests(), &results, &mut counts).map(|()| counts)
    }

    /// Applies `change` to the right results, and asserts the place of the problem that is reported.
    #[track_caller]
    fn check_found(change: impl FnOnce(&mut Vec<RiskResult>), place: &str) {
        let mut results = results();
        change(&mut results);
        let found = checked(&results).expect_err("a problem");
        assert!(found.starts_with(place), "{found}");
    }

    #[test]
    fn right_results_are_right_and_every_kind_of_wrong_one_is_found() {
        let counts = checked(&results()).expect("right results");
        assert_eq!(counts.values().collect::<Vec<_>>(), [&1; 4], "{counts:?}");
        check_found(|results| drop(results.remove(3)), "request 0 has no result");
        check_found(|results| results.push(results[3].clone()), "request 0 has two results");
        check_found(|results| results.push(result("c", 9, results[3].outcome.clone())), "a result of 9");
        let wrong = |request: i64| format!("not what request {request} has to get");
        check_found(|results| results[0].outcome = results[3].outcome.clone(), &wrong(4));
        check_found(|results| results[1].outcome = error(RiskErrorCode::Expired), &wrong(7));
        check_found(|results| results[2].finished_ns = 1_400, &wrong(2));
        check_found(|results| results[3].outcome = error(RiskErrorCode::Duplicate), &wrong(0));
        check_found(|results| results[3].outcome = error(RiskErrorCode::Overloaded), &wrong(0));
        check_found(|results| results[3].outcome = error(RiskErrorCode::UnknownSymbol), &wrong(0));
        check_found(|results| results[3].seed = 8, &wrong(0));
        let price = |results: &mut Vec<RiskResult>| {
            let RiskOutcome::Options(OptionResult { values }) = &mut results[3].outcome else {
                panic!("prices")
            };
            values[0].price += 1e-12;
        };
        check_found(price, &wrong(0));
    }
}
