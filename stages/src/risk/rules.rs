//! Rules that earlier versions answered by: the results in their logs are right by these.

use warptape_events::risk::{Contract, RiskProblem, Sampling, SimulationProblem};

use super::{early_exercise, symbols_of};

/// Rules by which requests are answered, in the order in which they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rules {
    /// Closed forms lose digits of legs that are nearly nothing, and a simulated American option may be exercised where the European one is
    /// worth more.
    First,
    /// Sobol's points have a dimension for each step in the order of time, and may be those of antithetic pairs.
    SobolInTimeOrder,
    /// An American option without simulation has a boundary that is a curve in all years, and no value where that does not settle in one
    /// way.
    CurveInAllYears,
    /// A covariance is believed by parametric risk and judged otherwise by other measures; an error of 0 is met by samples that pay nothing;
    /// calls have no control, and small probabilities of a touch few digits; rounding decides on which side of its mean a close lies; one
    /// bad position is the end of a book. The newest rules of results without a number of rules.
    Trusting,
    /// The rules of this version, which results have as their number: [`RULES`](warptape_events::risk::RULES).
    Now,
}

impl Rules {
    /// The earlier rules by which a problem had another answer, the newest first.
    pub(super) fn of_before(problem: &RiskProblem) -> impl Iterator<Item = Self> {
        let (simulated, has_boundary) = match problem {
            RiskProblem::Simulation(problem) if early_exercise::is_asked(problem) => (None, true),
            RiskProblem::Simulation(problem) => (Some(problem), false),
            _ => (None, false),
        };
        let is_ordered = simulated.is_some_and(is_ordered);
        let is_american = simulated.is_some_and(|problem| matches!(problem.contract, Contract::American(_)));
        let is_first = is_american || matches!(problem, RiskProblem::Options(_));
        let is_closed = matches!(
            problem,
            RiskProblem::Options(_)
                | RiskProblem::ImpliedVolatilities(_)
                | RiskProblem::DigitalOptions(_)
                | RiskProblem::Contracts(_)
        );
        // One asset without a market was the end of all rows.
        let asks_market = symbols_of(problem).next().is_some();
        let rules = [
            (!is_closed || asks_market).then_some(Self::Trusting),
            has_boundary.then_some(Self::CurveInAllYears),
            is_ordered.then_some(Self::SobolInTimeOrder),
            is_first.then_some(Self::First),
        ];
        rules.into_iter().flatten()
    }

    /// True if they are those of this version.
    pub(super) fn are_now(self) -> bool {
        self == Self::Now
    }
}

/// Whether it matters which dimension of Sobol's points is which step, or whether pairs are refused with them.
fn is_ordered(problem: &SimulationProblem) -> bool {
    let has_steps = problem.steps > 1 && !matches!(problem.contract, Contract::Basket(_));
    problem.sampling == Sampling::Sobol && (has_steps || problem.antithetic)
}
