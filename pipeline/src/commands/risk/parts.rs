//! Books too large for one record. A stress request is divided into parts, because the profits of a scenario add up.
//! Value at risk is not divided, because it is not the sum of the parts' values at risk.

use warptape_schemas::risk::{
    Asset, AssetKind, BadPosition, Instrument, PortfolioProblem, Position, Quantity, RiskError,
    RiskErrorCode, RiskMeasure, RiskOutcome, RiskProblem, RiskRequest, SpotPosition, StressResult,
};

use super::exchange::Answer;
use super::warnings;
use crate::usage_error::UsageError;

/// Number of positions in a part.
const POSITIONS: usize = 8_000;
/// Greatest number of positions in a request, as its schema says.
const POSITIONS_MAX: usize = 65_536;
/// Prefix by which errors name a position; its index follows.
const POSITION: &str = "problem.positions[";

/// Returns the parts of a request; the request itself if it is small enough.
pub fn of(request: RiskRequest) -> Result<Vec<RiskRequest>, UsageError> {
    let RiskProblem::Portfolio(problem) = &request.problem else { return Ok(vec![request]) };
    let is_stress = matches!(problem.measure, RiskMeasure::Stress(_));
    let count = problem.positions.len();
    if !is_stress && count > POSITIONS_MAX {
        return Err(UsageError(format!(
            "{count} positions are too many: value at risk takes at most {POSITIONS_MAX}. It cannot be \
             split, because the quantile of a sum is not the sum of quantiles. Merge positions in the same \
             instrument, or use `risk stress`, which is split"
        )));
    }
    if !is_stress || count <= POSITIONS {
        return Ok(vec![request]);
    }
    let part = |(number, positions): (usize, &[Position])| RiskRequest {
        request_id: format!("{}-part-{number}", request.request_id),
        problem: RiskProblem::Portfolio(PortfolioProblem {
            positions: positions.to_vec(),
            ..PortfolioProblem::clone(problem)
        }),
        ..request.clone()
    };
    Ok(problem.positions.chunks(POSITIONS).enumerate().map(part).collect())
}

/// Returns the answer to all parts: the first part's, with the sum of all. The other parts use the first part's market
/// data. A part with only bad positions is asked again with a good one added.
pub fn answer(
    parts: Vec<RiskRequest>,
    ask: &mut dyn FnMut(&RiskRequest) -> anyhow::Result<Answer>,
) -> anyhow::Result<Answer> {
    let (mut whole, mut outcomes, mut why) = (None::<Answer>, Vec::new(), None);
    let mut positions = 0;
    for mut part in parts {
        if let RiskProblem::Portfolio(problem) = &mut part.problem {
            whole.iter().for_each(|whole| warnings::give(&mut problem.assets, &whole.result.as_of));
            positions += problem.positions.len();
        }
        let mut found = ask(&part)?;
        if let RiskOutcome::Error(error) = &found.result.outcome {
            let error = error_in_whole(error.clone(), outcomes.len() * POSITIONS);
            let again =
                if may_be_of_rows(error.code) { Some(ask(&with_a_good_position(&part))?) } else { None };
            match again.filter(|again| matches!(again.result.outcome, RiskOutcome::Stress(_))) {
                Some(again) => found = again,
                None => {
                    let mut whole = whole.unwrap_or(found);
                    whole.result.outcome = RiskOutcome::Error(error);
                    return Ok(whole);
                }
            }
            why.get_or_insert(error);
        }
        outcomes.push(found.result.outcome.clone());
        whole.get_or_insert(found);
    }
    let mut whole = whole.expect("a request has a part");
    whole.result.outcome = match (sum(outcomes, positions), why) {
        (Some(outcome), _) => outcome,
        (None, why) => RiskOutcome::Error(why.expect("why no position has a value")),
    };
    Ok(whole)
}

/// True if the error may be due to a single row.
fn may_be_of_rows(code: RiskErrorCode) -> bool {
    matches!(
        code,
        RiskErrorCode::BadParameter | RiskErrorCode::UnknownSymbol | RiskErrorCode::MissingMarketData
    )
}

/// Returns the part with an additional position that always has a value. A part without any valid position gets an
/// error as its answer. With the additional position it gets a stress result that lists the others as bad rows.
fn with_a_good_position(part: &RiskRequest) -> RiskRequest {
    let mut request = RiskRequest { request_id: format!("{}-again", part.request_id), ..part.clone() };
    if let RiskProblem::Portfolio(problem) = &mut request.problem {
        let asset = problem.assets.len() as i32;
        problem.assets.push(Asset {
            symbol: "given".to_owned(),
            spot: Quantity::Given(1.0),
            volatility: Quantity::Given(1.0),
            rate: 0.0,
            dividend_yield: 0.0,
            kind: AssetKind::Spot,
        });
        let instrument = Instrument::Spot(SpotPosition { asset });
        problem.positions.push(Position { name: String::new(), book: 0, quantity: 0.0, instrument });
    }
    request
}

/// Returns the sum of the parts' stress results, in their order; `None` if all `positions` are bad.
fn sum(outcomes: Vec<RiskOutcome>, positions: usize) -> Option<RiskOutcome> {
    let mut whole: Option<StressResult> = None;
    for (number, outcome) in outcomes.into_iter().enumerate() {
        let RiskOutcome::Stress(mut part) = outcome else { return Some(outcome) };
        let first = number * POSITIONS;
        for BadPosition { position, error, .. } in &mut part.bad_positions {
            *position += first as i32;
            *error = in_whole(error, first);
        }
        let Some(whole) = &mut whole else {
            whole = Some(part);
            continue;
        };
        whole.value += part.value;
        whole.bad_positions.extend(part.bad_positions);
        for (sum, part) in whole.scenarios.iter_mut().zip(part.scenarios) {
            sum.profit += part.profit;
            sum.books.iter_mut().zip(part.books).for_each(|(sum, part)| *sum += part);
        }
    }
    whole.filter(|whole| whole.bad_positions.len() < positions).map(RiskOutcome::Stress)
}

/// Converts an error about a part to one about the whole. `first` is the part's first position.
fn error_in_whole(error: RiskError, first: usize) -> RiskError {
    RiskError { field: in_whole(&error.field, first), ..error }
}

/// Converts a position at the beginning of a text from its index in the part to its index in the whole.
fn in_whole(text: &str, first: usize) -> String {
    let place = text.strip_prefix(POSITION).and_then(|rest| rest.split_once(']'));
    match place.and_then(|(place, rest)| Some((place.parse::<usize>().ok()?, rest))) {
        Some((place, rest)) => format!("{POSITION}{}]{rest}", place + first),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use warptape_eventlog::TopicPartition;

    use super::*;

    fn request(positions: usize, measure: &serde_json::Value) -> RiskRequest {
        let position =
            json!({"name": "p", "book": 0, "quantity": 1.0, "instrument": {"type": "spot", "asset": 0}});
        let problem = json!({"type": "portfolio", "assets": [{"symbol": "A", "spot": 1.0, "volatility": 0.2}],
                             "books": [{"name": "all"}], "positions": vec![position; positions], "measure": measure});
        serde_json::from_value(json!({"request_id": "r", "problem": problem})).expect("a request")
    }

    #[test]
    fn stress_is_divided_and_value_at_risk_is_not() {
        let stress = json!({"type": "stress", "scenarios": [{"name": "down"}]});
        let parts = of(request(20_001, &stress)).expect("divided");
        let sizes: Vec<usize> = parts
            .iter()
            .map(|part| match &part.problem {
                RiskProblem::Portfolio(problem) => problem.positions.len(),
                _ => 0,
            })
            .collect();
        assert_eq!(sizes, [8_000, 8_000, 4_001]);
        assert_eq!(parts[2].request_id, "r-part-2");
        let risk = json!({"type": "historical", "confidence": 0.9, "returns": [0.1]});
        assert_eq!(of(request(65_536, &risk)).expect("whole").len(), 1);
        let refused = of(request(65_537, &risk)).expect_err("too many").0;
        assert!(refused.starts_with("65537 positions are too many: value at risk"), "{refused}");
    }

    fn error(code: &str, field: &str) -> serde_json::Value {
        json!({"type": "error", "code": code, "field": field, "message": "why"})
    }

    fn stress(value: f64, profit: f64, bad: &[usize]) -> serde_json::Value {
        let bad_position = |place: &usize| json!({"position": place, "name": "x", "error": format!("problem.positions[{place}].quantity: [1]")});
        json!({"type": "stress", "value": value, "books": ["all", "desk"],
               "scenarios": [{"name": "down", "profit": profit, "books": [profit, 0.5]}],
               "bad_positions": bad.iter().map(bad_position).collect::<Vec<_>>()})
    }

    /// Returns the answer for `positions` positions from these outcomes of their parts, and the requests that were
    /// sent.
    fn answered(positions: usize, outcomes: &[serde_json::Value]) -> (RiskOutcome, Vec<String>) {
        let measure = json!({"type": "stress", "scenarios": [{"name": "down"}]});
        let (mut asked, mut outcomes) = (Vec::new(), outcomes.iter());
        let parts = of(request(positions, &measure)).expect("divided");
        let found = answer(parts, &mut |request| {
            let RiskProblem::Portfolio(problem) = &request.problem else { panic!("a portfolio") };
            asked.push(format!("{} {}", request.request_id, problem.positions.len()));
            let outcome = outcomes.next().expect("nothing more is asked");
            let result = json!({
                "request_id": request.request_id, "tenant": "", "class": "INTERACTIVE", "topic": "t", "partition": 0, "offset": 0,
                "outcome": outcome, "as_of": [], "seed": 0, "received_ns": 0, "started_ns": 0, "finished_ns": 0, "compute_ns": 0,
                "devices": [], "node": "n", "decision_sequence": 0});
            let result = serde_json::from_value(result)?;
            Ok(Answer { result, place: TopicPartition { topic: "t".to_owned(), partition: 0 }, offset: 0 })
        });
        (found.expect("answered").result.outcome, asked)
    }

    #[test]
    fn profits_add_up_and_bad_positions_keep_their_places() {
        let parts = [stress(1.0, -2.0, &[3]), stress(4.0, 8.0, &[3])];
        let (RiskOutcome::Stress(whole), _) = answered(8_010, &parts) else { panic!("a stress") };
        assert_eq!((whole.value, whole.scenarios[0].profit), (5.0, 6.0));
        assert_eq!(whole.scenarios[0].books, [6.0, 1.0]);
        let bad: Vec<_> = whole.bad_positions.iter().map(|bad| (bad.position, bad.error.as_str())).collect();
        let [first, second] = ["problem.positions[3].quantity: [1]", "problem.positions[8003].quantity: [1]"];
        assert_eq!(bad, [(3, first), (8_003, second)]);
    }

    /// An error in a part's first row does not fail the whole if other parts have good positions.
    #[test]
    fn a_part_of_bad_positions_alone_is_bad_rows() {
        let of_row = error("BAD_PARAMETER", "problem.positions[1].quantity");
        let parts = [stress(1.0, -2.0, &[]), of_row.clone(), stress(0.0, 0.0, &[0, 1])];
        let (RiskOutcome::Stress(whole), asked) = answered(8_002, &parts) else { panic!("a stress") };
        assert_eq!(asked, ["r-part-0 8000", "r-part-1 2", "r-part-1-again 3"]);
        assert_eq!((whole.value, whole.scenarios[0].profit), (1.0, -2.0));
        assert_eq!(whole.bad_positions.iter().map(|bad| bad.position).collect::<Vec<_>>(), [8_000, 8_001]);
        // If all positions are bad, the first one's error is the answer.
        let all: Vec<usize> = (0..8_000).collect();
        let parts = [of_row.clone(), stress(0.0, 0.0, &all), of_row.clone(), stress(0.0, 0.0, &[0, 1])];
        let (RiskOutcome::Error(found), _) = answered(8_002, &parts) else { panic!("no stress") };
        assert_eq!(found.field, "problem.positions[1].quantity");
        // An error of another kind remains an error, and names the position in the whole.
        let parts = [stress(1.0, -2.0, &[]), of_row.clone(), of_row];
        let (RiskOutcome::Error(found), _) = answered(8_002, &parts) else { panic!("no stress") };
        assert_eq!(found.field, "problem.positions[8001].quantity");
        let parts = [stress(1.0, -2.0, &[]), error("EXPIRED", "")];
        assert!(matches!(answered(8_002, &parts), (RiskOutcome::Error(_), asked) if asked.len() == 2));
    }
}
