//! Books that are too large for one record: a stress is asked for part by part, because profits in a scenario add up. Measures of a
//! distribution do not: the value at risk of a whole is no sum of those of its parts.

use warptape_schemas::risk::{
    BadPosition, PortfolioProblem, Position, RiskMeasure, RiskOutcome, RiskProblem, RiskRequest, StressResult,
};

use crate::cli::UsageError;

/// Positions of a part.
const POSITIONS: usize = 8_000;
/// Positions of a request at most, which its schema says.
const POSITIONS_MAX: usize = 65_536;

/// The parts of a request; itself, where it need not be divided.
pub fn of(request: RiskRequest) -> Result<Vec<RiskRequest>, UsageError> {
    let RiskProblem::Portfolio(problem) = &request.problem else { return Ok(vec![request]) };
    let is_stress = matches!(problem.measure, RiskMeasure::Stress(_));
    let count = problem.positions.len();
    if !is_stress && count > POSITIONS_MAX {
        return Err(UsageError(format!(
            "{count} positions; value at risk is asked for {POSITIONS_MAX} at most, and a larger book cannot be divided: the quantile of a \
             sum is no sum of quantiles; add up positions in the same instrument, or ask for a stress, which is divided"
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

/// The sum of the outcomes of parts, in their order; the first that is another outcome, such as an error.
pub fn sum(outcomes: Vec<RiskOutcome>) -> Option<RiskOutcome> {
    let mut whole: Option<StressResult> = None;
    for (number, outcome) in outcomes.into_iter().enumerate() {
        let RiskOutcome::Stress(mut part) = outcome else { return Some(outcome) };
        let first = (number * POSITIONS) as i32;
        for BadPosition { position, .. } in &mut part.bad_positions {
            *position += first;
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
    whole.map(RiskOutcome::Stress)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        assert!(refused.starts_with("65537 positions; value at risk"), "{refused}");
    }

    #[test]
    fn profits_add_up_and_bad_positions_keep_their_places() {
        let part = |value: f64, profit: f64| {
            let outcome = json!({"type": "stress", "value": value, "books": ["all", "desk"],
                "scenarios": [{"name": "down", "profit": profit, "books": [profit, 0.5]}],
                "bad_positions": [{"position": 3, "name": "x", "error": "why"}]});
            serde_json::from_value::<RiskOutcome>(outcome).expect("an outcome")
        };
        let Some(RiskOutcome::Stress(whole)) = sum(vec![part(1.0, -2.0), part(4.0, 8.0)]) else {
            panic!("a stress")
        };
        assert_eq!((whole.value, whole.scenarios[0].profit), (5.0, 6.0));
        assert_eq!(whole.scenarios[0].books, [6.0, 1.0]);
        assert_eq!(whole.bad_positions.iter().map(|bad| bad.position).collect::<Vec<_>>(), [3, 8_003]);
    }
}
