//! A round that finds the exercise boundaries of a portfolio's American options, one option per unit. Boundaries do not
//! depend on spots, so scenarios that move only spots reuse them.

use std::ops::Range;
use std::sync::Arc;

use warptape_events::risk::RiskOutcome;
use warptape_kernels::Isa;
use warptape_kernels::portfolio::Portfolio;
use warptape_kernels::pricing::{AmericanError, ExerciseBoundary};

use super::super::rounds::{Next, Partial, Round, places};
use super::measures::Measure;
use super::{Held, first_round};

#[derive(Debug)]
pub(super) struct SettlingRound {
    pub held: Held,
    pub measure: Measure,
}

impl Round for SettlingRound {
    fn units(&self) -> i64 {
        self.held.portfolio.americans().len() as i64
    }

    fn rate_key(&self) -> String {
        "portfolio/boundaries".to_owned()
    }

    fn run(&self, isa: Isa, units: Range<i64>) -> Partial {
        let americans = &self.held.portfolio.americans()[places(units)];
        Partial::Boundaries(americans.iter().map(|(_, option)| option.boundary(isa).map(Arc::new)).collect())
    }

    fn finish(&self, partials: &[&Partial]) -> Next {
        let mut found: Vec<Result<Arc<ExerciseBoundary>, AmericanError>> = Vec::new();
        for partial in partials {
            if let Partial::Boundaries(more) = partial {
                found.extend_from_slice(more);
            }
        }
        let portfolio = &self.held.portfolio;
        let mut bad: Vec<(usize, String)> = Vec::new();
        let mut boundaries = Vec::new();
        for ((position, _), found) in portfolio.americans().into_iter().zip(found) {
            match found {
                Ok(boundary) => boundaries.push(boundary),
                Err(error) => bad.push((position, error.to_string())),
            }
        }
        let settled = |portfolio: Portfolio| portfolio.with_boundaries(Isa::detect(), boundaries);
        match self.held.without(bad) {
            Err(error) => Next::Outcome(RiskOutcome::Error(error)),
            Ok(held) => {
                let portfolio = Arc::new(settled((*held.portfolio).clone()));
                Next::Round(first_round(Held { portfolio, ..held }, self.measure.clone()))
            }
        }
    }
}
