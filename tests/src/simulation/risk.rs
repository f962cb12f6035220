//! Risk requests in a simulated run: read, answered, and interrupted by crashes. In the end, each must have exactly one
//! result, and the right one.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use warptape_engine::{Answered, Committed, Core, Event, Position, Preparation};
use warptape_eventlog::Record;
use warptape_kernels::Isa;
use warptape_pipeline::runtime::read_request;
use warptape_schemas::journal::Priced;
use warptape_schemas::risk::{
    RiskErrorCode, RiskOutcome, RiskProblem, RiskRequest, RiskResult, TaskClass, VanillaOption,
};
use warptape_schemas::{decode_risk_result, encode_risk_request, encode_risk_result};
use warptape_stages::SymbolMarket;
use warptape_stages::risk::{MarketOf, RiskTask, refusals};

use super::process::{Around, BackgroundWork, Process};
use super::source::{MARKERS, Reading, end_of};
use super::{Failure, Plant, World};
use crate::random::Random;
use crate::sequential;

/// Greatest number of requests of a partition.
const REQUESTS_MAX: i64 = 12;
/// Upper bound of deadlines, in nanoseconds. Some have passed on arrival, some pass later, and some never pass.
const DEADLINE_NS_MAX: i64 = 600_000_000;
/// Greatest number of requests of one fetch.
const FETCH_MAX: usize = 3;
/// Number of positions of a portfolio.
pub(super) const POSITIONS: usize = 5;

/// Requests of a run in the log.
pub(super) struct Requests {
    /// Requests by partition and offset.
    pub(super) log: Vec<Vec<RiskRequest>>,
    /// Committed offsets of the next request to read.
    pub(super) offsets: BTreeMap<i32, i64>,
    /// Market snapshots of each request, by its partition and offset. A snapshot is the list of offsets before which
    /// ticks were delivered.
    markets: BTreeMap<(i32, i64), Vec<Vec<i64>>>,
}

impl Requests {
    pub(super) fn new(random: &mut Random, partitions: usize) -> Self {
        let mut of_partition = |partition: usize| -> Vec<RiskRequest> {
            let count = random.between(0, REQUESTS_MAX);
            (0..count).map(|number| request(random, partition, partitions, number)).collect()
        };
        let log = (0..partitions).map(&mut of_partition).collect();
        Self { log, offsets: BTreeMap::new(), markets: BTreeMap::new() }
    }

    /// Returns the number of requests of a partition.
    pub(super) fn len(&self, partition: usize) -> usize {
        self.log[partition].len()
    }

    pub(super) fn ends(&self) -> Vec<(i32, i64)> {
        (0..).zip(self.log.iter().map(|log| log.len() as i64 + MARKERS)).collect()
    }
}

/// How far a process has read the requests.
#[derive(Default)]
pub(super) struct RequestReader {
    /// Next offset and generation, by partition.
    reading: BTreeMap<i32, (usize, u64)>,
    fetched: VecDeque<Event>,
    /// The generation and the position that were last reported, by partition.
    told: BTreeMap<i32, (u64, i64)>,
    /// Partitions whose answered requests must be looked up, with their assignments and the committed offsets.
    opening: VecDeque<(i32, u64, Committed)>,
}

impl RequestReader {
    pub(super) fn open(&mut self, partition: i32, assignment: u64, committed: Committed) {
        self.opening.push_back((partition, assignment, committed));
    }

    pub(super) fn seek(&mut self, partition: i32, offset: i64, generation: u64) {
        self.reading.insert(partition, (offset as usize, generation));
    }

    pub(super) fn forget(&mut self, partition: i32) {
        self.reading.remove(&partition);
        self.opening.retain(|&(opened, ..)| opened != partition);
    }

    /// Returns requests that were read, or a new position; `None` if there is nothing new.
    pub(super) fn fetched(&mut self) -> Option<Event> {
        self.fetched.pop_front()
    }

    /// Reads some requests of a partition.
    pub(super) fn read(&mut self, world: &mut World) {
        let partition = world.random.index(world.requests.log.len());
        let Some((next, generation)) = self.reading.get_mut(&(partition as i32)) else { return };
        let log = &world.requests.log[partition];
        let left = world.published(log.len()).saturating_sub(*next);
        if left == 0 {
            let position = end_of(log.len(), *next, world);
            let told = self.told.insert(partition as i32, (*generation, position));
            if told != Some((*generation, position)) {
                let (partition, generation) = (partition as i32, *generation);
                self.fetched.push_back(Event::RequestsPosition { partition, generation, position });
            }
            return;
        }
        let range = *next..*next + left.min(1 + world.random.index(FETCH_MAX));
        *next = range.end;
        let record = |offset: usize| {
            let mut value = Vec::new();
            encode_risk_request(&log[offset], &mut value);
            read_request(&Record {
                offset: offset as i64,
                key: None,
                headers: Vec::new(),
                timestamp_ns: 0,
                value,
            })
        };
        let (partition, generation) = (partition as i32, *generation);
        let requests = range.map(record).collect();
        self.fetched.push_back(Event::Requests { partition, generation, requests });
    }
}

fn request(random: &mut Random, partition: usize, partitions: usize, number: i64) -> RiskRequest {
    let asset = json!({"symbol": "given", "spot": 100.0, "volatility": 0.2});
    let mut count = 1;
    let problem = match random.index(10) {
        0 | 8 | 9 => portfolio(random, &asset),
        // These requests need market data. The market may not know the symbol, or not for long enough, or the data may
        // come from two partitions.
        2..5 => {
            let other = random.index(partitions);
            let symbols = [symbol(random, partition), symbol(random, other)];
            let of = |symbol: &String| {
                json!({"symbol": symbol, "spot": {"from": "market"},
                "volatility": if random.one_in(2) { json!(0.3) } else { json!({"from": "market"}) }})
            };
            let assets: Vec<Value> = symbols[..1 + usize::from(other != partition)].iter().map(of).collect();
            let options: Vec<Value> = (0..assets.len())
                .map(|asset| json!({"asset": asset, "kind": "put", "strike": 100.0, "expiry_years": 0.5}))
                .collect();
            json!({"type": "options", "assets": assets, "options": options})
        }
        // This request is invalid.
        1 => json!({"type": "options", "assets": [asset], "options": []}),
        _ => {
            // Some requests are so large that their rounds are concluded outside the core.
            count = if random.one_in(3) { 600 } else { random.between(1, 60) };
            let option = json!({"asset": 0, "kind": "call", "strike": 60, "expiry_years": 0.5});
            json!({"type": "options", "assets": [asset], "options": [option]})
        }
    };
    // Some request ids occur twice.
    let id = if number > 0 && random.one_in(5) { number - 1 } else { number };
    let class = ["critical", "interactive", "batch"][random.index(3)];
    let deadline_ns = random.one_in(3).then(|| random.between(0, DEADLINE_NS_MAX));
    let request = json!({"request_id": format!("{partition}/{id}"), "tenant": format!("t{}", random.index(3)),
                         "class": class, "seed": number, "gang": random.one_in(4), "deadline_ns": deadline_ns, "problem": problem});
    let mut request: RiskRequest = serde_json::from_value(request).expect("a request");
    // Options differ only in their strikes. They are copied, because creating them from JSON took much of a seed's
    // time.
    if let RiskProblem::Options(problem) = &mut request.problem {
        let copied = (1..count).map(|place| {
            let first = &problem.options[0];
            VanillaOption { strike: first.strike + place as f64, ..first.clone() }
        });
        let copied: Vec<_> = copied.collect();
        problem.options.extend(copied);
    }
    request
}

/// Draws one of a few portfolios, so that requests find values that were kept for others.
fn portfolio(random: &mut Random, asset: &Value) -> Value {
    let returns = |count: i32| -> Vec<f64> {
        (0..count).map(|number| f64::from(number * 37 % 101 - 50) / 1e3).collect()
    };
    let changed = random.index(POSITIONS);
    let position = |number: usize| {
        let quantity = if number == changed { random.between(-9, 9) } else { 3 };
        json!({"name": format!("p{number}"), "book": 0, "quantity": quantity, "instrument":
            {"type": "option", "asset": 0, "kind": "put", "strike": 90 + number, "expiry_years": 1.0}})
    };
    let positions: Vec<Value> = (0..POSITIONS).map(position).collect();
    json!({"type": "portfolio", "assets": [asset], "books": [{"name": "all"}], "positions": positions,
           "measure": {"type": "historical", "confidence": 0.9, "returns": returns(if random.one_in(4) { 40 } else { 150 })}})
}

fn symbol(random: &mut Random, partition: usize) -> String {
    format!("SIM:P{partition}S{}", random.index(5))
}

impl BackgroundWork {
    /// Turns the next request into a task, unless it was abandoned.
    pub(super) fn prepare(&mut self) -> Option<Event> {
        let preparation = self.preparing.pop_front()?;
        let prepared = match self.abandoned.remove(&preparation.number()) {
            true => preparation.abandon(),
            false => preparation.run(),
        };
        Some(Event::Prepared(prepared))
    }
}

impl Process {
    /// Looks up the answered requests of a partition; if none is to be looked up, passes read requests to the core.
    pub(super) fn deliver_requests(&mut self, world: &mut World) -> Result<(), Failure> {
        if let Some(opening) = self.around.requests.opening.pop_front() {
            return self.tell_answered(opening, world);
        }
        if world.plant == Plant::MarketBehind && !world.phase.stopping {
            let source = &self.around.source;
            let position = |(&partition, reading): (&i32, &Reading)| {
                let offset = source.delivered[partition as usize];
                Position { partition, generation: reading.generation, offset }
            };
            let positions = source.reading.iter().map(position).collect();
            self.tell(Event::Positions(positions), world)?;
        }
        if !self.core.wants().is_some_and(|wants| wants.requests) {
            return Ok(());
        }
        let Some(requests) = self.around.requests.fetched() else { return Ok(()) };
        let has_market = self.around.markets(&self.core);
        let mut read = self.around.requests.reading.keys();
        world.coverage.requests_held += usize::from(read.any(|&partition| !has_market[partition as usize]));
        self.tell(requests, world)
    }

    /// Starts reading a partition's requests at the position that results and journals give.
    fn tell_answered(
        &mut self,
        (partition, assignment, committed): (i32, u64, Committed),
        world: &mut World,
    ) -> Result<(), Failure> {
        let offset = committed.offset;
        let results = match world.plant {
            Plant::AnswersForgotten => Vec::new(),
            _ => world.results(partition),
        };
        world.coverage.answers_found += results.iter().filter(|result| result.offset >= offset).count();
        let found_before = world.published(world.requests.log[partition as usize].len()) as i64;
        let answered = Answered::of(&results, offset);
        self.tell(Event::RequestsOpened { partition, assignment, committed, found_before, answered }, world)
    }

    /// Turns the next request into a task, and passes it to the core.
    pub(super) fn prepare(&mut self, world: &mut World) -> Result<(), Failure> {
        let prepared = self.around.background.prepare();
        prepared.map_or(Ok(()), |prepared| self.tell(prepared, world))
    }

    /// Answers the next request for prices, and concludes the next round of a task, if there are any.
    pub(super) fn conclude(&mut self, world: &mut World) -> Result<(), Failure> {
        if let Some(question) = self.around.background.pricing.pop_front() {
            // The result does not depend on prices.
            let prices = question.kinds.iter().map(|kind| kind.cost ^ question.question).collect();
            let priced = Priced { question: question.question, prices };
            self.tell(Event::Priced(priced), world)?;
        }
        let Some(conclusion) = self.around.background.concluding.pop_front() else { return Ok(()) };
        world.coverage.rounds_in_background += 1;
        let now_ns = world.now_ns;
        self.tell(Event::Concluded(conclusion.run(|| now_ns)), world)
    }
}

impl Around {
    /// Records the market snapshot of a request.
    pub(super) fn begin_to_prepare(&mut self, preparation: Preparation, core: &Core, world: &mut World) {
        let seen = |(has_market, &delivered): (bool, &i64)| if has_market { delivered } else { 0 };
        let markets = self.markets(core).into_iter();
        let market: Vec<i64> = markets.zip(&self.source.delivered).map(seen).collect();
        world.coverage.markets_absent += usize::from(market != self.source.delivered);
        // A state lost in the same call, after the market snapshot, still existed at the snapshot.
        let lost =
            (0..market.len()).filter(|&partition| market[partition] != self.source.delivered[partition]);
        let markets = lost.fold(vec![market.clone()], |mut markets, partition| {
            for mut before in markets.clone() {
                before[partition] = self.source.delivered[partition];
                markets.push(before);
            }
            markets
        });
        let of_request =
            world.requests.markets.entry((preparation.partition, preparation.offset)).or_default();
        of_request.extend(markets);
        self.background.preparing.push_back(preparation);
    }

    /// For each partition, returns true if its ticks are delivered as far as they ever were.
    fn markets(&self, core: &Core) -> Vec<bool> {
        let status = core.status();
        let is_delivered = |(partition, &delivered): (i32, &i64)| {
            let mut owned = status.partitions.iter().filter(|owned| owned.is_restored);
            owned.any(|owned| owned.partition == partition && owned.read_to >= delivered)
        };
        (0..).zip(&self.source.delivered).map(is_delivered).collect()
    }
}

impl World {
    fn results(&self, partition: i32) -> Vec<RiskResult> {
        let results = self.topic("risk.results", partition).iter();
        results.map(|record| decode_risk_result(record).expect("results are written whole")).collect()
    }

    /// Returns the market of a symbol after the ticks before these offsets; `None` if the symbol is unknown.
    fn market_of(&self, symbol: &str, delivered: &[i64]) -> Option<SymbolMarket> {
        let mut partitions = (0_i32..).zip(self.source.iter().zip(delivered));
        partitions.find_map(|(partition, (log, &end))| {
            let intake = sequential::intake(&self.config.core.stages, &log[..end as usize]);
            intake.market_of(symbol, partition, end)
        })
    }

    /// Checks that every request has exactly one result, and the right one.
    pub(super) fn check_risk(&mut self) -> Result<(), Failure> {
        for partition in 0..self.requests.log.len() as i32 {
            let requests = &self.requests.log[partition as usize];
            let committed = self.requests.offsets.get(&partition).copied().unwrap_or(0);
            let end = requests.len() as i64;
            if !(end..=end + MARKERS).contains(&committed) {
                let found =
                    format!("requests of {partition}: committed offset {committed} of {}", requests.len());
                return Err(Failure::Outputs(found));
            }
            let mut results: Vec<RiskResult> = self.results(partition);
            results.sort_by_key(|result| result.offset);
            // A market before a marker is the same as after it.
            for as_of in results.iter_mut().flat_map(|result| &mut result.as_of) {
                as_of.next_offset = as_of.next_offset.min(self.source[as_of.partition as usize].len() as i64);
            }
            let offsets: Vec<i64> = results.iter().map(|result| result.offset).collect();
            if offsets != (0..requests.len() as i64).collect::<Vec<_>>() {
                return Err(Failure::Outputs(format!("requests of {partition} have results at {offsets:?}")));
            }
            for (number, (request, result)) in requests.iter().zip(&results).enumerate() {
                let is_double =
                    requests[..number].iter().any(|before| before.request_id == request.request_id);
                // These are the market snapshots of the request in all processes.
                let markets = self.requests.markets.get(&(partition, result.offset));
                let is_right_by = |delivered: &Vec<i64>| {
                    let market_of = |symbol: &str| self.market_of(symbol, delivered);
                    is_right(request, is_double, result, &market_of)
                };
                let is_right = match markets {
                    None => is_right(request, is_double, result, &|_| None),
                    Some(markets) => markets.iter().any(is_right_by),
                };
                if !is_right {
                    return Err(Failure::Outputs(format!(
                        "request {number} of {partition}, behind {markets:?}: {:?} as of {:?}",
                        result.outcome, result.as_of
                    )));
                }
                self.coverage.risk_answers += 1;
                self.coverage.risk_of_market += usize::from(!result.as_of.is_empty());
                let expired = matches!(&result.outcome, RiskOutcome::Error(error) if error.code == RiskErrorCode::Expired);
                self.coverage.risk_expired += usize::from(expired);
                let overloaded = matches!(&result.outcome, RiskOutcome::Error(error) if error.code == RiskErrorCode::Overloaded);
                self.coverage.risk_shed += usize::from(overloaded);
                self.coverage.expired_before_taken += usize::from(expired && markets.is_none());
            }
        }
        Ok(())
    }
}

fn is_right(request: &RiskRequest, is_double: bool, result: &RiskResult, market_of: MarketOf<'_>) -> bool {
    let outcome = &result.outcome;
    let code = match outcome {
        RiskOutcome::Error(error) => Some(error.code),
        _ => None,
    };
    if is_double || code == Some(RiskErrorCode::Duplicate) {
        return is_double && code == Some(RiskErrorCode::Duplicate);
    }
    if code == Some(RiskErrorCode::Expired) {
        let is_overdue = request.deadline_ns.is_some_and(|deadline_ns| deadline_ns <= result.finished_ns);
        // The request may not have had a market snapshot.
        let of_task = || RiskTask::new(request, market_of).is_ok_and(|task| task.as_of() == result.as_of);
        return is_overdue && (result.as_of.is_empty() || of_task());
    }
    if code == Some(RiskErrorCode::Overloaded) {
        // The log does not determine which task is shed, but a critical task never is.
        let of_task = RiskTask::new(request, market_of).is_ok_and(|task| task.as_of() == result.as_of);
        return request.class != TaskClass::Critical && of_task;
    }
    let panicked = RiskOutcome::Error(refusals::panicked());
    match RiskTask::new(request, market_of) {
        Err(error) => *outcome == RiskOutcome::Error(error) && *outcome != panicked,
        Ok(task) if task.as_of() != result.as_of => false,
        // In production a panic becomes an error result; here it is a defect.
        Ok(task) => {
            let expected = RiskResult { outcome: task.outcome(Isa::Baseline), ..result.clone() };
            bytes(result) == bytes(&expected) && *outcome != panicked
        }
    }
}

/// Encodes a result for a comparison of bits, in which a row with NaN equals itself.
fn bytes(result: &RiskResult) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_risk_result(result, &mut bytes);
    bytes
}
