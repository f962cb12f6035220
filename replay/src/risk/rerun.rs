//! Computes the result of a request with the production stages.

use warptape_schemas::journal::RejectReason;
use warptape_schemas::risk::{
    OptionResult, RiskError, RiskErrorCode, RiskOutcome, RiskRequest, RiskResult, TaskClass,
};
use warptape_stages::Isa;
use warptape_stages::risk::{MarketOf, RiskTask, refusals, symbols_of};

use crate::admissions::AdmissionEnd;

/// Returns the result of an admitted request, according to the end of its task. Fields that are not a function of the
/// log are copied from the found result.
pub(super) fn answered(
    found: &RiskResult,
    request: &RiskRequest,
    end: AdmissionEnd,
    cancelled: Option<&RiskError>,
    market_of: MarketOf<'_>,
    isa: Isa,
) -> RiskResult {
    let task = match RiskTask::new(request, market_of) {
        Ok(task) => task,
        Err(error) => {
            // The request's deadline may have passed before anything else was known about it when the scheduler was
            // asked.
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
        // The request's deadline may have passed before anything else was known about it.
        AdmissionEnd::Rejected(reject) if reject.reason == RejectReason::Expired && found.cost_ns == 0 => 0,
        _ => task.cost_ns(),
    };
    let outcome = match &end {
        AdmissionEnd::Finished if cancelled.is_some() || cost_ns > found.cost_max_ns => withdrawn(),
        AdmissionEnd::Finished => task.outcome(isa),
        AdmissionEnd::Rejected(reject) => RiskOutcome::Error(refusals::rejected(reject)),
        AdmissionEnd::Expired(expire) => RiskOutcome::Error(refusals::expired(expire)),
        AdmissionEnd::Shed(shed) => RiskOutcome::Error(refusals::shed(shed)),
        AdmissionEnd::Dropped => cancelled.cloned().map_or_else(withdrawn, RiskOutcome::Error),
    };
    // When a task was cancelled during the conclusion of its round, the scheduler no longer knew it.
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

/// Returns an outcome that no result has, so that the comparison fails. A request that was withdrawn, or would have
/// been refused, never has the answer of an admitted one.
fn withdrawn() -> RiskOutcome {
    let message = "the request was withdrawn, or costs more than was allowed".to_owned();
    RiskOutcome::Error(RiskError { code: RiskErrorCode::BadParameter, field: String::new(), message })
}

/// Returns the result of a request that cancelled another one.
pub(super) fn confirmed(found: &RiskResult, request: &RiskRequest) -> RiskResult {
    let nothing = RiskOutcome::Options(OptionResult { values: Vec::new() });
    let error = RiskError { code: RiskErrorCode::BadParameter, field: String::new(), message: String::new() };
    RiskResult { outcome: nothing, ..refused(found, Some(request), error) }
}

/// Returns the error for a cancellation without effect: the other request already had its result, or did not exist.
pub(super) fn not_cancelled(request_id: &str, found: &RiskOutcome) -> RiskError {
    let errors = [true, false].map(|is_known| refusals::not_cancelled(request_id, is_known));
    let is_found = |error: &&RiskError| matches!(found, RiskOutcome::Error(found) if found == *error);
    errors.iter().find(is_found).unwrap_or(&errors[0]).clone()
}

/// Returns the result of a request for which no task can be made.
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

/// Returns the result of a request that was refused without a decision, judged with the market that the result names.
/// If the request needs the market, the result must have the same offsets, from the first partition to the last. `None`
/// if the request is valid there.
pub(super) fn judged(
    found: &RiskResult,
    request: &RiskRequest,
    market_of: MarketOf<'_>,
) -> Option<RiskResult> {
    let (error, cost_ns) = match RiskTask::new(request, market_of) {
        Err(error) => (error, 0),
        Ok(task) if task.cost_ns() > found.cost_max_ns && found.cost_max_ns > 0 => {
            (refusals::too_costly(task.cost_ns(), found.cost_max_ns), task.cost_ns())
        }
        Ok(_) => return None,
    };
    let asks = symbols_of(&request.problem).next().is_some();
    let mut judged_on = if asks { found.judged_on.clone() } else { Vec::new() };
    judged_on.sort_by_key(|as_of| as_of.partition);
    let cost_max_ns = if cost_ns > 0 { found.cost_max_ns } else { 0 };
    Some(RiskResult { judged_on, cost_ns, cost_max_ns, ..refused(found, Some(request), error) })
}

/// Returns the error of a request that is valid with the market that its refusal names. No result has this error, so
/// the comparison fails.
pub(super) fn admitted() -> RiskError {
    let message = "the request is good on the market that the result names".to_owned();
    RiskError { code: RiskErrorCode::BadParameter, field: String::new(), message }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn request(strike: f64, asset: &Value) -> RiskRequest {
        let option = json!({"asset": 0, "kind": "call", "strike": strike, "expiry_years": 1.0});
        let problem = json!({"type": "options", "assets": [asset], "options": [option]});
        serde_json::from_value(json!({"request_id": "r", "problem": problem})).expect("a request")
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
            decision_sequence: -1,
            cost_ns: 0,
            cost_max_ns: 0,
            cancels: None,
            judged_on: Vec::new(),
            rules: 0,
        }
    }

    /// Returns code and field of the refusal without a market; `None` if the request is valid.
    fn judged_on_nothing(strike: f64, asset: &Value) -> Option<(RiskErrorCode, String)> {
        let judged = judged(&result(), &request(strike, asset), &|_| None)?;
        let RiskOutcome::Error(error) = judged.outcome else { panic!("no refusal: {:?}", judged.outcome) };
        Some((error.code, error.field))
    }

    #[test]
    fn a_refusal_without_a_market_is_what_the_request_comes_to_without_one() {
        let given = json!({"symbol": "A", "spot": 1.0, "volatility": 0.1});
        let live = json!({"symbol": "A", "spot": {"from": "market"}, "volatility": 0.1});
        let found = |code, field: &str| Some((code, field.to_owned()));
        let (unknown, bad) = (RiskErrorCode::UnknownSymbol, RiskErrorCode::BadParameter);
        assert_eq!(judged_on_nothing(1.0, &given), None);
        assert_eq!(judged_on_nothing(-1.0, &given), found(bad, "problem.options[0].strike"));
        assert_eq!(judged_on_nothing(1.0, &live), found(unknown, "problem.assets[0].symbol"));
    }

    #[test]
    fn a_refusal_for_what_it_costs_says_both_costs() {
        let request = request(1.0, &json!({"symbol": "A", "spot": 1.0, "volatility": 0.1}));
        let found = |cost_max_ns| RiskResult { cost_max_ns, ..result() };
        let judged = |cost_max_ns| judged(&found(cost_max_ns), &request, &|_| None);
        let cost_ns = RiskTask::new(&request, &|_| None).expect("a good request").cost_ns();
        assert_eq!(judged(cost_ns), None);
        let refused = judged(cost_ns - 1).expect("it costs more");
        assert_eq!(refused.outcome, RiskOutcome::Error(refusals::too_costly(cost_ns, cost_ns - 1)));
        assert_eq!((refused.cost_ns, refused.cost_max_ns), (cost_ns, cost_ns - 1));
    }
}
