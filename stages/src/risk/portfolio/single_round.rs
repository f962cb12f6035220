//! Measures of one round: stress, whose units are scenarios, and parametric risk, which is one unit.

use std::ops::Range;
use std::sync::Arc;

use warptape_events::risk::{RiskOutcome, StressOutcome, StressResult};
use warptape_kernels::Isa;
use warptape_kernels::device::{Device, DeviceError};
use warptape_kernels::portfolio::{Covariance, Parametric, Profits, Scenarios};

use super::super::kept::{Follower, KeptProfits};
use super::super::rounds::{DeviceRisk, Next, Partial, Round};
use super::measures::Measure;
use super::simulated::{revalue, revalue_on_device, scenario_units, scenarios_width};
use super::{CHECKED, Held, WholeRisk, positions_cost, profits_of, stress_named};

/// Profits in named scenarios.
#[derive(Debug)]
pub(super) struct StressRound {
    pub held: Held,
    pub scenarios: Arc<Scenarios>,
    pub names: Vec<String>,
    /// Access to profits of earlier requests; `None` if none are kept.
    pub follower: Option<Follower>,
}

impl Round for StressRound {
    fn units(&self) -> i64 {
        scenario_units(&self.held.portfolio, &self.scenarios)
    }

    fn rate_key(&self) -> String {
        let key = if self.follower.is_some() { "portfolio/stress, kept" } else { "portfolio/stress" };
        key.to_owned()
    }

    fn unit_cost(&self) -> i64 {
        let positions = positions_cost(&self.held.portfolio);
        self.follower.as_ref().map_or(positions, |follower| follower.cost) as i64
    }

    fn unit_width(&self) -> usize {
        scenarios_width(&self.held.portfolio)
    }

    fn follow(&mut self, kept: &KeptProfits) {
        let units = self.units() as usize;
        if !self.held.portfolio.has_boundaries() {
            self.follower = kept.follower(&self.held.portfolio, &self.scenarios, units);
        }
    }

    fn run(&self, isa: Isa, units: Range<i64>) -> Partial {
        revalue(isa, &self.held.portfolio, &self.scenarios, self.follower.as_ref(), units)
    }

    fn run_on_device(
        &self,
        memory: &mut DeviceRisk,
        device: &mut dyn Device,
        units: Range<i64>,
    ) -> Result<Partial, DeviceError> {
        revalue_on_device(device, memory, &self.held.portfolio, &self.scenarios, &units)
    }

    fn finish(&self, partials: &[&Partial]) -> Next {
        let found = profits_of(partials);
        let measure = || {
            let (scenarios, names) = (self.scenarios.clone(), self.names.clone());
            Measure::Stress { scenarios, names }
        };
        let named = |scenario| stress_named(&self.names, scenario);
        if let Some(again) = self.held.again_without_unvalued(&found, named, measure) {
            return again;
        }
        let mut profits = Profits::default();
        found.iter().for_each(|part: &Arc<Profits>| profits.append(part));
        let scenario = |(number, name): (usize, &String)| StressOutcome {
            name: name.clone(),
            profit: profits.of_book(0)[number],
            books: (0..profits.books()).map(|book| profits.of_book(book)[number]).collect(),
        };
        Next::Outcome(RiskOutcome::Stress(StressResult {
            value: self.held.portfolio.book_values()[0],
            books: self.held.books.clone(),
            scenarios: self.names.iter().enumerate().map(scenario).collect(),
            bad_positions: self.held.bad_positions(),
        }))
    }
}

/// Risk by the deltas of all positions.
#[derive(Debug)]
pub(super) struct ParametricRound {
    pub held: Held,
    pub covariance: Covariance,
    pub confidence: f64,
    pub horizon_years: f64,
}

impl Round for ParametricRound {
    fn units(&self) -> i64 {
        1
    }

    fn rate_key(&self) -> String {
        "portfolio/parametric".to_owned()
    }

    fn unit_cost(&self) -> i64 {
        self.held.portfolio.positions().len() as i64
    }

    fn is_host_only(&self) -> bool {
        true
    }

    fn run(&self, isa: Isa, _: Range<i64>) -> Partial {
        let exposures = self.held.portfolio.exposures(isa);
        let of_book = |book: usize| -> Parametric {
            let exposures = exposures.clone();
            let risk = self.held.portfolio.parametric_of(exposures, &self.covariance, book, self.confidence);
            risk.expect(CHECKED)
        };
        let all = of_book(0);
        let own: Vec<[f64; 2]> = (0..self.held.books.len())
            .map(|book| of_book(book).total)
            .map(|own| [own.value_at_risk, own.expected_shortfall])
            .collect();
        let positions = &all.positions;
        let columns = [
            positions.iter().map(|part| part.value_at_risk).collect(),
            positions.iter().map(|part| part.expected_shortfall).collect(),
        ];
        let measures = [all.total.value_at_risk, all.total.expected_shortfall];
        let horizon_years = Some(self.horizon_years);
        let whole = WholeRisk { measures, errors: None, scenarios: 0, horizon_years };
        Partial::Outcome(Box::new(self.held.result(&whole, &own, columns)))
    }

    fn finish(&self, partials: &[&Partial]) -> Next {
        Partial::outcome(partials)
    }
}

#[cfg(test)]
mod tests {
    use warptape_kernels::portfolio::{Instrument, Portfolio, Position, Shock};
    use warptape_kernels::pricing::{AssetMarket, OptionKind};

    use super::*;

    /// An option that was not refused before stands for one whose boundary does not settle, because random options all
    /// settle.
    #[test]
    fn a_position_without_a_value_in_a_scenario_is_a_bad_row() {
        let isa = Isa::detect();
        let market = AssetMarket { spot: 80.0, rate: 0.005, dividend_yield: -0.03, volatility: 0.15 };
        let (kind, strike, expiry_years) = (OptionKind::Put, 100.0, 5.0);
        let position = |instrument: Instrument| Position { asset: 0, book: 0, quantity: 1.0, instrument };
        let held = vec![
            position(Instrument::Option { kind, strike, expiry_years }),
            position(Instrument::American { kind, strike, expiry_years }),
        ];
        let portfolio = Portfolio::new(vec![market], vec![None], held).expect("good positions");
        let boundaries = portfolio.americans().into_iter();
        let boundaries = boundaries.map(|(_, option)| Arc::new(option.boundary(isa).expect("a boundary")));
        let portfolio = Arc::new(portfolio.clone().with_boundaries(isa, boundaries.collect()));
        let names = ["a", "b"].map(str::to_owned).to_vec();
        let scenarios = Scenarios::given(1, &[Shock::NONE, Shock::shift(0.0, 0.0, -0.015)]);
        let round = StressRound {
            held: Held {
                portfolio,
                books: vec![String::new()],
                positions: names.clone(),
                bad: Default::default(),
            },
            scenarios: Arc::new(scenarios.expect("good scenarios")),
            names,
            follower: None,
        };
        let run = |round: &dyn Round| {
            let units = (0..round.units()).map(|unit| round.run(isa, unit..unit + 1));
            round.finish(&units.collect::<Vec<_>>().iter().collect::<Vec<_>>())
        };
        let Next::Round(again) = run(&round) else { panic!("a position has no value") };
        let Next::Outcome(RiskOutcome::Stress(found)) = run(&*again) else { panic!("the other one has") };
        assert!(found.scenarios.iter().all(|scenario| scenario.profit.is_finite()), "{found:?}");
        let [bad] = &found.bad_positions[..] else { panic!("{found:?}") };
        let why = "problem.measure.scenarios[1] (\"b\"): no boundary";
        assert!(bad.name == "b" && bad.error.starts_with(why), "{bad:?}");
    }
}
