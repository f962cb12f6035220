//! What comes of a request, by the production stages.

use std::cell::RefCell;
use std::collections::BTreeSet;

use warptape_schemas::journal::RejectReason;
use warptape_schemas::risk::{RiskError, RiskOutcome, RiskRequest, RiskResult, TaskClass};
use warptape_stages::risk::{MarketOf, RiskTask, refusals};
use warptape_stages::{Isa, MarketConfig, SymbolMarket};

use crate::admissions::AdmissionEnd;

/// Prices that a symbol was sampled at where nothing is wrong with its market.
const CALM_SAMPLES: usize = 300;
/// What may be wrong with one: unknown, no price yet, prices without enough samples, or that stand still, or that leap.
const OTHERS: [Option<Known>; 5] = [
    None,
    Some((None, &[])),
    Some((Some(1.0), &[])),
    Some((Some(1e-9), &[1.0, 1.0, 1.0, 1.0])),
    Some((Some(9e9), &[1e-9, 9e9, 1e-9, 9e9])),
];

/// Spot and samples.
type Known = (Option<f64>, &'static [f64]);

/// The result of a request that was admitted, by what the decision on it came to. What is no function of the log is as found.
pub(super) fn answered(
    found: &RiskResult,
    request: &RiskRequest,
    end: AdmissionEnd,
    market_of: MarketOf<'_>,
    isa: Isa,
) -> RiskResult {
    let task = match RiskTask::new(request, market_of) {
        Ok(task) => task,
        Err(error) => {
            // The scheduler may have been asked about one whose deadline had passed before anything was known of it.
            let error = match end {
                AdmissionEnd::Rejected(reject) if reject.reason == RejectReason::Expired => {
                    refusals::rejected(&reject)
                }
                _ => error,
            };
            return refused(found, Some(request), error);
        }
    };
    let outcome = match end {
        AdmissionEnd::Finished => task.outcome(isa),
        AdmissionEnd::Rejected(reject) => RiskOutcome::Error(refusals::rejected(&reject)),
        AdmissionEnd::Expired(expire) => RiskOutcome::Error(refusals::expired(&expire)),
    };
    RiskResult {
        request_id: request.request_id.clone(),
        tenant: request.tenant.clone(),
        class: request.class,
        outcome,
        as_of: task.as_of().to_vec(),
        seed: request.seed,
        ..found.clone()
    }
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
        ..found.clone()
    }
}

/// Why no task can be made of a request that has this outcome and no decision; `None` if one can. Nobody noted on which market
/// it was refused: where it asks for one, any error is right that some market makes, by its code and field.
pub(super) fn refusal(request: &RiskRequest, found: &RiskOutcome) -> Option<RiskError> {
    let asked = RefCell::new(BTreeSet::new());
    let calm_of = |symbol: &str| {
        asked.borrow_mut().insert(symbol.to_owned());
        Some(calm(symbol))
    };
    let error = RiskTask::new(request, &calm_of).err();
    let asked = asked.into_inner();
    let RiskOutcome::Error(found) = found else { return error };
    let is_found = |error: &RiskError| (error.code, &error.field) == (found.code, &found.field);
    let makes_it = |symbol: &String, other: Option<Known>| {
        let market_of = |asked: &str| match other {
            _ if asked != symbol => Some(calm(asked)),
            other => other.map(|(spot, samples)| market(spot, samples.to_vec())),
        };
        RiskTask::new(request, &market_of).is_err_and(|error| is_found(&error))
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
    let MarketConfig { sample_interval_ns, decay, .. } = MarketConfig::default();
    SymbolMarket {
        partition: 0,
        next_offset: 0,
        spot,
        samples: samples.into(),
        last_sample: 0,
        sample_interval_ns,
        decay,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use warptape_schemas::risk::{RiskErrorCode, SweepResult};

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

    /// Whether a result may say so.
    fn is_right(request: &RiskRequest, code: RiskErrorCode, field: &str) -> bool {
        let error = RiskError { code, field: field.to_owned(), message: "of then".to_owned() };
        refusal(request, &RiskOutcome::Error(error.clone())) == Some(error)
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
        assert_eq!(refusal(&request, &RiskOutcome::Sweep(SweepResult { cells: Vec::new() })), None);
    }

    #[test]
    fn what_is_wrong_by_itself_is_told_in_the_same_words() {
        let of_none = request(json!([given(), given()]), -1.0);
        assert!(!is_right(&of_none, BAD, "problem.options[0].strike"), "its words are known");
        assert!(!is_right(&of_none, MISSING, "problem.assets[1].spot"));
        let error =
            refusal(&of_none, &RiskOutcome::Sweep(SweepResult { cells: Vec::new() })).expect("the strike");
        assert_eq!((error.code, error.field.as_str()), (BAD, "problem.options[0].strike"));
        assert_eq!(refusal(&of_none, &RiskOutcome::Error(error.clone())), Some(error));
        let good = request(json!([given(), given()]), 1.0);
        assert!(!is_right(&good, UNKNOWN, "problem.assets[1].symbol"));
    }

    #[test]
    fn calm_markets_differ() {
        assert_ne!(calm("A").samples, calm("B").samples);
        assert_eq!(calm("A"), calm("A"));
    }
}
