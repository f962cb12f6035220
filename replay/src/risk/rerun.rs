//! What comes of a request, by the production stages.

use std::cell::RefCell;
use std::collections::BTreeSet;

use warptape_schemas::encode_risk_result;
use warptape_schemas::journal::RejectReason;
use warptape_schemas::risk::{
    OptionResult, RiskError, RiskErrorCode, RiskOutcome, RiskRequest, RiskResult, TaskClass,
};
use warptape_stages::risk::{MarketOf, RiskTask, refusals, symbols_of};
use warptape_stages::{Isa, MarketConfig, SymbolMarket};

use crate::admissions::AdmissionEnd;

/// Prices that a symbol was sampled at where nothing is wrong with its market.
const CALM_SAMPLES: usize = 300;
/// What may be wrong with one: unknown, no price yet, prices without enough samples, or that stand still, or that leap.
const OTHERS: [Option<Known>; 5] = [
    None,
    Some((None, &[])),
    Some((Some(1.0), &[])),
    Some((Some(1e-9), &[1.0; 40])),
    Some((Some(9e9), &LEAPING)),
];

const LEAPING: [f64; 40] = {
    let mut prices = [1e-9; 40];
    let mut place = 1;
    while place < prices.len() {
        prices[place] = 9e9;
        place += 2;
    }
    prices
};

/// Spot and samples.
type Known = (Option<f64>, &'static [f64]);

/// The result of a request that was admitted, as it follows from how the task ended. Fields that are no function of the log are copied
/// from the result that was found.
pub(super) fn answered(
    found: &RiskResult,
    request: &RiskRequest,
    end: AdmissionEnd,
    cancelled: Option<&RiskError>,
    market_of: MarketOf<'_>,
    isa: Isa,
) -> RiskResult {
    let before = || (found.rules == 0).then(|| RiskTask::of_before(request, market_of)).into_iter().flatten();
    // What is refused now may have been admitted by earlier versions.
    let task = match RiskTask::new(request, market_of).or_else(|error| before().next().ok_or(error)) {
        Ok(task) => task,
        Err(error) => {
            // The scheduler may have been asked about one whose deadline had passed before anything was known of it.
            let error = match &end {
                AdmissionEnd::Rejected(reject) if reject.reason == RejectReason::Expired => {
                    refusals::rejected(reject)
                }
                _ => error,
            };
            return refused(found, Some(request), error);
        }
    };
    let as_of = task.as_of().to_vec();
    let cost_ns = match &end {
        // Its deadline may have passed before anything was known of it.
        AdmissionEnd::Rejected(reject) if reject.reason == RejectReason::Expired && found.cost_ns == 0 => 0,
        _ => task.cost_ns(),
    };
    let outcome = match &end {
        AdmissionEnd::Finished if cancelled.is_some() || cost_ns > found.cost_max_ns => withdrawn(),
        AdmissionEnd::Finished => outcome_of(&task, before(), found, isa),
        AdmissionEnd::Rejected(reject) => RiskOutcome::Error(refusals::rejected(reject)),
        AdmissionEnd::Expired(expire) => RiskOutcome::Error(refusals::expired(expire)),
        AdmissionEnd::Shed(shed) => RiskOutcome::Error(refusals::shed(shed)),
        AdmissionEnd::Dropped => cancelled.cloned().map_or_else(withdrawn, RiskOutcome::Error),
    };
    // A task of which a round was being concluded was not known to the scheduler when it was cancelled.
    let outcome = match (end, cancelled) {
        (AdmissionEnd::Finished, Some(error)) => RiskOutcome::Error(error.clone()),
        _ => outcome,
    };
    RiskResult {
        request_id: request.request_id.clone(),
        tenant: request.tenant.clone(),
        class: request.class,
        outcome,
        as_of,
        seed: request.seed,
        cost_ns,
        cancels: None,
        judged_on: Vec::new(),
        ..found.clone()
    }
}

/// An outcome that no result has, so that the comparison fails: a request that was withdrawn, or would have been refused, is never
/// answered as an admitted one.
fn withdrawn() -> RiskOutcome {
    let message = "the request was withdrawn, or costs more than was allowed".to_owned();
    RiskOutcome::Error(RiskError { code: RiskErrorCode::BadParameter, field: String::new(), message })
}

/// The result of a request that cancelled another one.
pub(super) fn confirmed(found: &RiskResult, request: &RiskRequest) -> RiskResult {
    let nothing = RiskOutcome::Options(OptionResult { values: Vec::new() });
    let error = RiskError { code: RiskErrorCode::BadParameter, field: String::new(), message: String::new() };
    RiskResult { outcome: nothing, ..refused(found, Some(request), error) }
}

/// Why nothing was cancelled: the request had its result, or there was none.
pub(super) fn not_cancelled(request_id: &str, found: &RiskOutcome) -> RiskError {
    let errors = [true, false].map(|is_known| refusals::not_cancelled(request_id, is_known));
    let is_found = |error: &&RiskError| matches!(found, RiskOutcome::Error(found) if found == *error);
    errors.iter().find(is_found).unwrap_or(&errors[0]).clone()
}

/// The outcome of a task; the outcome that was found, if it is what the rules of an earlier version made of the request. Outcomes are compared
/// as bytes of the version that was found: it may lack figures that are told now, and numbers that are none equal nothing.
fn outcome_of(
    task: &RiskTask,
    mut before: impl Iterator<Item = RiskTask>,
    found: &RiskResult,
    isa: Isa,
) -> RiskOutcome {
    let bytes_of = |outcome: RiskOutcome| {
        let mut bytes = Vec::new();
        encode_risk_result(&RiskResult { outcome, ..found.clone() }, &mut bytes);
        bytes
    };
    let wanted = bytes_of(found.outcome.clone());
    let outcome = task.outcome(isa);
    let is_found = bytes_of(outcome.clone()) == wanted;
    if is_found || before.any(|before| bytes_of(before.outcome(isa)) == wanted) {
        return found.outcome.clone();
    }
    outcome
}

/// The result of a request that no task can be made of.
pub(super) fn refused(found: &RiskResult, request: Option<&RiskRequest>, error: RiskError) -> RiskResult {
    RiskResult {
        request_id: request.map_or(String::new(), |request| refusals::repeated(&request.request_id)),
        tenant: request.map_or(String::new(), |request| refusals::repeated(&request.tenant)),
        class: request.map_or(TaskClass::Interactive, |request| request.class),
        outcome: RiskOutcome::Error(error),
        as_of: Vec::new(),
        seed: request.map_or(0, |request| request.seed),
        cancels: request.and_then(|request| request.cancels.as_deref()).map(refusals::repeated),
        judged_on: Vec::new(),
        ..found.clone()
    }
}

/// The result of a request that was refused without a decision, on the market that the result names: of the same offsets, from the
/// first partition to the last, if the request asks the market at all.
pub(super) fn judged(found: &RiskResult, request: &RiskRequest, market_of: MarketOf<'_>) -> RiskResult {
    let is_found = |error: &RiskError| matches!(&found.outcome, RiskOutcome::Error(found) if found == error);
    let before =
        (found.rules == 0).then(|| RiskTask::refused_before(request, market_of).find(is_found)).flatten();
    let (error, cost_ns) = match RiskTask::new(request, market_of) {
        _ if before.is_some() => (before.expect("it is some"), 0),
        Err(error) => (error, 0),
        Ok(task) if task.cost_ns() > found.cost_max_ns => {
            (refusals::too_costly(task.cost_ns(), found.cost_max_ns), task.cost_ns())
        }
        Ok(_) => (admitted(), 0),
    };
    let asks = symbols_of(&request.problem).next().is_some();
    let mut judged_on = if asks { found.judged_on.clone() } else { Vec::new() };
    judged_on.sort_by_key(|as_of| as_of.partition);
    let cost_max_ns = if cost_ns > 0 { found.cost_max_ns } else { 0 };
    RiskResult { judged_on, cost_ns, cost_max_ns, ..refused(found, Some(request), error) }
}

/// An error that no result has, so that the comparison fails: on this market the request is not refused.
fn admitted() -> RiskError {
    let message = "the request is good on the market that the result names".to_owned();
    RiskError { code: RiskErrorCode::BadParameter, field: String::new(), message }
}

/// The estimated cost of a request and the limit on it, as its result has them.
#[derive(Clone, Copy, Default)]
pub(super) struct Costs {
    pub(super) cost_ns: i64,
    pub(super) cost_max_ns: i64,
    /// Number of the rules by which it was refused.
    pub(super) rules: i32,
}

/// Why no task can be made of a request that has this outcome and no decision; `None` if one can. Its result is of a version before
/// it was noted on which market a request was refused: where it asks for one, any error is right that some market makes, by its code
/// and field.
///
/// Where it asks for a market, what it costs is what its result says.
pub(super) fn refusal(request: &RiskRequest, found: &RiskOutcome, costs: Costs) -> Option<RiskError> {
    let asked = RefCell::new(BTreeSet::new());
    let calm_of = |symbol: &str| {
        asked.borrow_mut().insert(symbol.to_owned());
        Some(calm(symbol))
    };
    let task = RiskTask::new(request, &calm_of);
    let asked = asked.into_inner();
    let too_costly = |task: &RiskTask| {
        let cost_ns = if asked.is_empty() { task.cost_ns() } else { costs.cost_ns };
        let is_too_costly = cost_ns > costs.cost_max_ns && costs.cost_max_ns > 0;
        is_too_costly.then(|| refusals::too_costly(cost_ns, costs.cost_max_ns))
    };
    if let Some(error) = task.as_ref().ok().and_then(too_costly) {
        return Some(error);
    }
    let error = task.err();
    let RiskOutcome::Error(found) = found else { return error };
    let calm_of = |symbol: &str| Some(calm(symbol));
    let is_before = costs.rules == 0;
    if is_before && RiskTask::refused_before(request, &calm_of).any(|error| error == *found) {
        return Some(found.clone());
    }
    let mut before = RiskTask::of_before(request, &calm_of);
    // What is refused now may have been good then, but for what it costs.
    if is_before && error.is_some() && before.any(|task| too_costly(&task).as_ref() == Some(found)) {
        return Some(found.clone());
    }
    if is_before && error.is_none() && refusals::without_paths(request).as_ref() == Some(found) {
        return Some(found.clone());
    }
    let is_found = |error: &RiskError| (error.code, &error.field) == (found.code, &found.field);
    let makes_it = |symbol: &String, other: Option<Known>| {
        let market_of = |asked: &str| match other {
            _ if asked != symbol => Some(calm(asked)),
            other => other.map(|(spot, samples)| market(spot, samples.to_vec())),
        };
        let is_refused = RiskTask::new(request, &market_of).is_err_and(|error| is_found(&error));
        is_refused || is_before && RiskTask::refused_before(request, &market_of).any(|error| is_found(&error))
    };
    let is_made = || asked.iter().any(|symbol| OTHERS.iter().any(|&other| makes_it(symbol, other)));
    let is_right = !asked.is_empty() && (error.as_ref().is_some_and(is_found) || is_made());
    if is_right { Some(found.clone()) } else { error }
}

/// A market of a symbol in which nothing is wrong, and which no other moves with.
fn calm(symbol: &str) -> SymbolMarket {
    let mut state = symbol.bytes().fold(1, |state, byte| next(state ^ u64::from(byte)));
    let sample = |_| {
        state = next(state);
        1.0 + (state >> 54) as f64 * 1e-6
    };
    market(Some(1.0), (0..CALM_SAMPLES).map(sample).collect())
}

/// Knuth's linear congruence.
fn next(state: u64) -> u64 {
    state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
}

fn market(spot: Option<f64>, samples: Vec<f64>) -> SymbolMarket {
    let config = MarketConfig::default();
    let MarketConfig { sample_interval_ns, decay, .. } = config;
    SymbolMarket {
        partition: 0,
        next_offset: 0,
        spot,
        is_not_positive: false,
        time_ns: Some(1),
        samples: samples.into(),
        last_sample: 0,
        sample_interval_ns,
        decay,
        year_ns: config.year_ns(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use warptape_schemas::decode_risk_result;
    use warptape_schemas::risk::SweepResult;

    use super::*;

    const UNKNOWN: RiskErrorCode = RiskErrorCode::UnknownSymbol;
    const MISSING: RiskErrorCode = RiskErrorCode::MissingMarketData;
    const BAD: RiskErrorCode = RiskErrorCode::BadParameter;

    fn request(assets: Value, strike: f64) -> RiskRequest {
        let option = json!({"asset": 1, "kind": "call", "strike": strike, "expiry_years": 1.0});
        let problem = json!({"type": "options", "assets": assets, "options": [option]});
        serde_json::from_value(json!({"request_id": "r", "problem": problem})).expect("a request")
    }

    fn given() -> Value {
        json!({"symbol": "A", "spot": 1.0, "volatility": 0.1})
    }

    fn live() -> Value {
        json!({"symbol": "B", "spot": {"from": "market"}, "volatility": {"from": "market"}})
    }

    /// Whether a result may have this error.
    fn is_right(request: &RiskRequest, code: RiskErrorCode, field: &str) -> bool {
        let error = RiskError { code, field: field.to_owned(), message: "of then".to_owned() };
        refusal(request, &RiskOutcome::Error(error.clone()), Costs::default()) == Some(error)
    }

    #[test]
    fn an_error_of_the_market_is_right_where_the_market_is_asked() {
        let request = request(json!([given(), live()]), 1.0);
        assert!(is_right(&request, UNKNOWN, "problem.assets[1].symbol"));
        assert!(is_right(&request, MISSING, "problem.assets[1].spot"));
        assert!(is_right(&request, MISSING, "problem.assets[1].volatility"));
        assert!(is_right(&request, BAD, "problem.assets[1].volatility"), "prices that stand still");
        assert!(!is_right(&request, UNKNOWN, "problem.assets[0].symbol"));
        assert!(!is_right(&request, MISSING, "problem.assets[1].rate"));
        assert!(!is_right(&request, BAD, "problem.options[0].strike"));
        assert_eq!(
            refusal(&request, &RiskOutcome::Sweep(SweepResult { cells: Vec::new() }), Costs::default()),
            None
        );
    }

    #[test]
    fn what_is_wrong_by_itself_is_told_in_the_same_words() {
        let of_none = request(json!([given(), given()]), -1.0);
        assert!(!is_right(&of_none, BAD, "problem.options[0].strike"), "its words are known");
        assert!(!is_right(&of_none, MISSING, "problem.assets[1].spot"));
        let error =
            refusal(&of_none, &RiskOutcome::Sweep(SweepResult { cells: Vec::new() }), Costs::default())
                .expect("the strike");
        assert_eq!((error.code, error.field.as_str()), (BAD, "problem.options[0].strike"));
        assert_eq!(refusal(&of_none, &RiskOutcome::Error(error.clone()), Costs::default()), Some(error));
        let good = request(json!([given(), given()]), 1.0);
        assert!(!is_right(&good, UNKNOWN, "problem.assets[1].symbol"));
    }

    /// Simulations of American options were below the European price, and are right so in logs of then.
    #[test]
    fn what_an_earlier_version_answered_is_right_by_its_rules() {
        let problem = json!({"type": "simulation", "assets": [{"symbol": "A", "spot": 100.0, "volatility": 0.2, "rate": 0.03}],
                             "contract": {"type": "american", "kind": "call", "strike": 100.0}, "expiry_years": 1.0,
                             "steps": 8, "paths_max": 512});
        let request =
            serde_json::from_value(json!({"request_id": "r", "problem": problem})).expect("a request");
        let now = RiskTask::new(&request, &no_market).expect("a good request").outcome(Isa::Baseline);
        // The newest of them gave what these give.
        let mut before = by_rules_of_before(&request).split_off(1);
        assert_eq!(before.len(), 1);
        assert_ne!(now, before[0]);
        assert_eq!(computed(&request, &now), now);
        assert_eq!(computed(&request, &before[0]), before[0]);
        let RiskOutcome::Simulation(result) = &mut before[0] else { panic!("no price") };
        result.price += 1e-12;
        assert_eq!(computed(&request, &before[0]), now, "a changed result is none of both");
    }

    /// Closed forms lost digits of legs that are nearly nothing, and a row without numbers stands beside them. Records of then lack what
    /// is told now: theta per day and vega per point.
    #[test]
    fn options_of_records_of_then_are_right_by_their_rules() {
        let option = |strike: f64, years: f64| json!({"asset": 0, "kind": "call", "strike": strike, "expiry_years": years});
        for strikes in [&[100.0, 1e-3, 3e4][..], &[100.0, -1.0, 1e-3, 3e4]] {
            let options: Vec<Value> = strikes.iter().map(|&strike| option(strike, 25.0)).collect();
            let asset = json!({"symbol": "A", "spot": 100.0, "volatility": 1.0, "rate": 0.03});
            let problem = json!({"type": "options", "assets": [asset], "options": options});
            let request: RiskRequest =
                serde_json::from_value(json!({"request_id": "r", "problem": problem})).expect("a request");
            let now = RiskTask::new(&request, &no_market).expect("a good request").outcome(Isa::Baseline);
            let before = by_rules_of_before(&request).remove(0);
            let record = |outcome: &RiskOutcome| {
                let mut record = Vec::new();
                encode_risk_result(&RiskResult { outcome: outcome.clone(), ..result() }, &mut record);
                record
            };
            assert_ne!(record(&before), record(&now), "the last digits differ");
            for found in [&before, &now] {
                let read = decode_risk_result(&record(found)).expect("a result");
                assert_eq!(record(&computed(&request, &read.outcome)), record(found), "{strikes:?}");
            }
            let RiskOutcome::Options(mut changed) = before else { panic!("no prices") };
            changed.values[0].price += 1e-9;
            let changed = record(&RiskOutcome::Options(changed));
            let read = decode_risk_result(&changed).expect("a result");
            assert_eq!(
                record(&computed(&request, &read.outcome)),
                record(&now),
                "a changed result is none of both"
            );
        }
    }

    fn no_market(_: &str) -> Option<SymbolMarket> {
        None
    }

    fn by_rules_of_before(request: &RiskRequest) -> Vec<RiskOutcome> {
        RiskTask::of_before(request, &no_market).map(|task| task.outcome(Isa::Baseline)).collect()
    }

    /// The outcome of a request that was admitted, and has a result that says so.
    fn computed(request: &RiskRequest, outcome: &RiskOutcome) -> RiskOutcome {
        let found = RiskResult { outcome: outcome.clone(), ..result() };
        answered(&found, request, AdmissionEnd::Finished, None, &no_market, Isa::Baseline).outcome
    }

    fn result() -> RiskResult {
        RiskResult {
            request_id: String::new(),
            tenant: String::new(),
            class: TaskClass::Interactive,
            topic: String::new(),
            partition: 0,
            offset: 0,
            outcome: RiskOutcome::Options(OptionResult { values: Vec::new() }),
            as_of: Vec::new(),
            seed: 0,
            received_ns: 0,
            started_ns: 0,
            finished_ns: 0,
            compute_ns: 0,
            devices: Vec::new(),
            node: String::new(),
            decision_sequence: 0,
            cost_ns: 0,
            cost_max_ns: i64::MAX,
            cancels: None,
            judged_on: Vec::new(),
            rules: 0,
        }
    }

    /// Sobol's points had dimensions in the order of time, and might be those of antithetic pairs.
    #[test]
    fn points_in_the_order_of_time_are_right_in_logs_of_then() {
        let request = |contract: &str, antithetic: bool| -> RiskRequest {
            let problem = json!({"type": "simulation", "assets": [{"symbol": "A", "spot": 100.0, "volatility": 0.2}],
                                 "contract": {"type": contract, "kind": "put", "strike": 100.0}, "expiry_years": 1.0,
                                 "steps": 6, "paths_max": 512, "sampling": "sobol", "antithetic": antithetic});
            serde_json::from_value(json!({"request_id": "r", "problem": problem})).expect("a request")
        };
        for (contract, rules) in [("asian", 1), ("american", 2)] {
            let plain = request(contract, false);
            let now = RiskTask::new(&plain, &no_market).expect("a good request").outcome(Isa::Baseline);
            let before = by_rules_of_before(&plain).split_off(1);
            assert_eq!(before.len(), rules, "{contract}");
            for found in before.iter().chain([&now]) {
                assert_eq!(computed(&plain, found), *found);
            }
            assert!(!before.contains(&now));
            // What is refused now, without a decision, was admitted then.
            let paired = request(contract, true);
            let refused = RiskOutcome::Error(RiskTask::new(&paired, &no_market).expect_err("not with pairs"));
            assert_eq!(refusal(&paired, &refused, Costs::default()).map(RiskOutcome::Error), Some(refused));
            let before = by_rules_of_before(&paired);
            assert_eq!(before.len(), rules, "{contract}");
            for found in &before {
                assert_eq!(computed(&paired, found), *found);
            }
            assert_ne!(computed(&paired, &now), now, "nobody answered so");
            // Or refused for what it costs.
            let too_costly = RiskOutcome::Error(refusals::too_costly(5_000, 4_000));
            let costs = Costs { cost_ns: 5_000, cost_max_ns: 4_000, rules: 0 };
            assert_ne!(refusal(&paired, &too_costly, costs).map(RiskOutcome::Error), Some(too_costly));
            let cost_ns = RiskTask::of_before(&paired, &no_market).next().expect("good then").cost_ns();
            let costs = Costs { cost_ns, cost_max_ns: cost_ns - 1, rules: 0 };
            let too_costly = RiskOutcome::Error(refusals::too_costly(cost_ns, cost_ns - 1));
            assert_eq!(refusal(&paired, &too_costly, costs).map(RiskOutcome::Error), Some(too_costly));
        }
    }

    /// A result says by which rules it was answered: what others make of the request is no answer then.
    #[test]
    fn a_result_of_these_rules_is_right_by_no_others() {
        let request = |instrument: Value, measure: Value| -> RiskRequest {
            let problem = json!({"type": "portfolio", "books": [{"name": "all"}], "measure": measure,
                "assets": [{"symbol": "A", "spot": 100.0, "volatility": 0.2}, {"symbol": "B", "spot": 1.0, "volatility": 0.2}],
                "positions": [{"name": "p", "book": 0, "quantity": 1.0, "instrument": {"type": "spot", "asset": 1}},
                              {"name": "q", "book": 0, "quantity": 1.0, "instrument": instrument}]});
            serde_json::from_value(json!({"request_id": "r", "problem": problem})).expect("a request")
        };
        let spot = json!({"type": "spot", "asset": 0});
        // No covariance, but parametric risk believed it.
        let parametric = json!({"type": "parametric", "confidence": 0.99, "horizon_years": 1.0,
                                "covariance": [0.04, 0.09, 0.09, 0.04]});
        let believed = request(spot, parametric);
        let before = by_rules_of_before(&believed).remove(0);
        let by = |rules: i32| {
            let found = RiskResult { outcome: before.clone(), rules, ..result() };
            answered(&found, &believed, AdmissionEnd::Finished, None, &no_market, Isa::Baseline).outcome
        };
        assert_eq!(by(0), before);
        assert!(matches!(by(1), RiskOutcome::Error(_)));
        // What expires now was the end of a book.
        let history = json!({"type": "historical", "confidence": 0.9, "returns": [0.01, 0.0, -0.01, 0.0]});
        let put = json!({"type": "option", "asset": 0, "kind": "put", "strike": 110.0, "expiry_years": 0.0});
        let expires = request(put, history);
        let field = "problem.positions[1].instrument.expiry_years".to_owned();
        let message = "position 1: expiry_years is 0: give a number from 3e-9 to 6e1".to_owned();
        let found = RiskOutcome::Error(RiskError { code: BAD, field, message });
        let refused = |rules: i32| refusal(&expires, &found, Costs { rules, ..Costs::default() });
        assert_eq!(refused(0).map(RiskOutcome::Error), Some(found.clone()));
        assert_eq!(refused(1), None);
    }

    /// So they were refused, without a decision.
    #[test]
    fn an_american_option_without_paths_may_have_been_refused() {
        let problem = json!({"type": "simulation", "assets": [{"symbol": "A", "spot": 100.0, "volatility": 0.2}],
                             "contract": {"type": "american", "kind": "call", "strike": 100.0}, "expiry_years": 1.0});
        let request =
            serde_json::from_value(json!({"request_id": "r", "problem": problem})).expect("a request");
        let message = "0; it must be from 1 to 268435456".to_owned();
        let error = RiskError { code: BAD, field: "problem.paths_max".to_owned(), message };
        assert_eq!(refusal(&request, &RiskOutcome::Error(error.clone()), Costs::default()), Some(error));
        assert!(!is_right(&request, BAD, "problem.paths_max"), "in other words it was not");
    }

    #[test]
    fn calm_markets_differ() {
        assert_ne!(calm("A").samples, calm("B").samples);
        assert_eq!(calm("A"), calm("A"));
    }
}
