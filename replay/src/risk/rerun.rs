//! What comes of a request, by the production stages.

use std::cell::RefCell;
use std::collections::BTreeSet;

use warptape_schemas::risk::{RiskError, RiskOutcome, RiskRequest, RiskResult, TaskClass};
use warptape_stages::risk::{Finished, MarketOf, RiskTask, refusals};
use warptape_stages::{Isa, SymbolMarket};

use crate::admissions::AdmissionEnd;

/// A market in which everything can be asked.
const CALM: Known = (Some(1.0), &[1.0, 1.0001, 1.0002, 1.0001]);
/// Markets in which something cannot: an unknown symbol, no price yet, prices without enough samples, or that stand still, or
/// that leap.
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
        Err(error) => return refused(found, Some(request), error),
    };
    let outcome = match end {
        AdmissionEnd::Finished => outcome(&task, isa),
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

/// All rounds of a task, each in one piece.
fn outcome(task: &RiskTask, isa: Isa) -> RiskOutcome {
    let mut round = task.first_round();
    let mut partials = Vec::new();
    loop {
        partials.push(task.run(isa, round.first_unit..round.first_unit + round.units));
        match task.finish(partials.iter().cloned()) {
            Finished::Outcome(outcome) => return outcome,
            Finished::More(next) => round = next,
        }
    }
}

/// The result of a request that no task can be made of.
pub(super) fn refused(found: &RiskResult, request: Option<&RiskRequest>, error: RiskError) -> RiskResult {
    RiskResult {
        request_id: request.map_or(String::new(), |request| request.request_id.clone()),
        tenant: request.map_or(String::new(), |request| request.tenant.clone()),
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
    let calm = |symbol: &str| {
        asked.borrow_mut().insert(symbol.to_owned());
        Some(market(CALM))
    };
    let error = RiskTask::new(request, &calm).err();
    let RiskOutcome::Error(found) = found else { return error };
    let is_found = |error: RiskError| (error.code, &error.field) == (found.code, &found.field);
    let makes_it = |symbol: &String, other: Option<Known>| {
        let market_of = |asked: &str| if asked == symbol { other.map(market) } else { Some(market(CALM)) };
        RiskTask::new(request, &market_of).is_err_and(is_found)
    };
    let is_made = asked.borrow().iter().any(|symbol| OTHERS.iter().any(|&other| makes_it(symbol, other)));
    if is_made { Some(found.clone()) } else { error }
}

fn market((spot, samples): Known) -> SymbolMarket {
    SymbolMarket {
        partition: 0,
        next_offset: 0,
        spot,
        samples: samples.to_vec(),
        last_sample: 0,
        sample_interval_ns: 1_000_000_000,
    }
}
