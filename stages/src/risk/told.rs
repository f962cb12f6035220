//! Figures of a simulation besides the measured ones: Greeks that follow from others, and a judgement of the standard
//! error.

use warptape_events::risk::{Contract, Precision, SimulatedGreek, SimulationProblem, SimulationResult};
use warptape_kernels::pricing::AssetMarket;

use super::assets::Resolved;
use super::blocks::Paths;
use super::options::{POINTS, YEAR_DAYS};

/// Least effective number of samples behind an error: with fewer, it may be wrong by its own size.
const EFFECTIVE_MIN: f64 = 30.0;

/// Least ratio of price to spot for which 32-bit numbers are reliable: their least number is 1e-38.
const MIXED_LEAST: f64 = 1e-30;

/// Standard error of a mean of samples from 0 to `most`, of which `payers` paid. About 3 more could pay in as many
/// other samples.
fn bounded_error(most: f64, payers: f64, paths: i64) -> f64 {
    most * (payers + 3.0).sqrt() / paths as f64
}

/// Inputs of the derived figures.
#[derive(Debug)]
pub(super) struct Told {
    years: f64,
    assets: Vec<AssetMarket>,
    futures: Vec<bool>,
    is_american: bool,
    is_basket: bool,
    is_mixed: bool,
}

impl Told {
    pub(super) fn new(problem: &SimulationProblem, assets: &Resolved) -> Self {
        Self {
            years: problem.expiry_years,
            assets: assets.markets.clone(),
            futures: assets.futures.clone(),
            is_american: matches!(problem.contract, Contract::American(_)),
            is_basket: matches!(problem.contract, Contract::Basket(_)),
            is_mixed: problem.precision == Precision::Mixed,
        }
    }

    /// Adds the derived figures. Returns true if the standard error is reliable. It is unreliable if nothing was paid
    /// or few samples count, unless the payoff has a bound by which it can be judged.
    pub(super) fn judge(&self, result: &mut SimulationResult, effective: f64, paths_of: &Paths) -> bool {
        self.add_greeks(result);
        let spot = self.assets.iter().map(|asset| asset.spot).fold(0.0, f64::max);
        if self.is_mixed && result.price != 0.0 && result.price.abs() < MIXED_LEAST * spot {
            result.warning =
                "the price is too small for the 32-bit numbers of precision mixed, and may be far off: ask for f64"
                    .to_owned();
            return false;
        }
        let is_certain = paths_of.pays_never();
        if is_certain || effective >= EFFECTIVE_MIN || !effective.is_finite() || result.paths == 0 {
            return true;
        }
        let paths = result.paths;
        if let Some(most) = paths_of.most_of_put() {
            result.standard_error = f64::max(result.standard_error, bounded_error(most, effective, paths));
            if !result.greeks.is_empty() {
                result.warning = format!(
                    "standard errors of Greeks rest on some {effective:.1} of {paths} samples, and may be far too small"
                );
            }
            return true;
        }
        if effective == 0.0 {
            result.standard_error = f64::INFINITY;
            result.warning = format!(
                "none of {paths} samples paid anything, which is no standard error: raise paths_max, or ask for a closed form"
            );
        } else {
            result.warning = format!(
                "the standard error rests on some {effective:.1} of {paths} samples, and may be far too small: raise paths_max"
            );
        }
        false
    }

    /// Adds Greeks per day, per point, and by the yield. With `D` the derivative by the drift in a year, rho is
    /// `D − T·price`. The yield only moves the drift, by −1, so its Greek is `−(rho + T·price)`. A future has no drift,
    /// so its rho is `−T·price`. For a basket this holds by asset, with `D = T·S·delta`. An American option is
    /// discounted from its exercise on, so neither relation holds.
    fn add_greeks(&self, result: &mut SimulationResult) {
        let find = |name: &str| result.greeks.iter().find(|greek| greek.name == name).cloned();
        let (Some(theta), Some(rho)) = (find("theta"), find("rho")) else { return };
        let scaled = |greek: &SimulatedGreek, name: String, by: f64| SimulatedGreek {
            name,
            value: by * greek.value,
            standard_error: by.abs() * greek.standard_error,
        };
        let mut more = vec![scaled(&theta, "theta_per_day".to_owned(), 1.0 / YEAR_DAYS)];
        let places = |name: &str| -> Vec<String> {
            match self.is_basket {
                true => (0..self.assets.len()).map(|asset| format!("{name}[{asset}]")).collect(),
                false => vec![name.to_owned()],
            }
        };
        for (vega, name) in places("vega").iter().zip(places("vega_per_point")) {
            more.extend(find(vega).map(|vega| scaled(&vega, name, 1.0 / POINTS)));
        }
        let (years, price) = (self.years, result.price);
        let mut of_rate = rho.clone();
        if self.is_basket {
            let (mut held, mut held_error) = (0.0, 0.0);
            for (asset, (market, is_future)) in self.assets.iter().zip(&self.futures).enumerate() {
                let Some(delta) = find(&format!("delta[{asset}]")) else { continue };
                let by_spot = years * market.spot;
                if *is_future {
                    held += by_spot * delta.value;
                    held_error += by_spot * delta.standard_error;
                } else {
                    more.push(scaled(&delta, format!("rho_foreign[{asset}]"), -by_spot));
                }
            }
            of_rate.value -= held;
            of_rate.standard_error += held_error;
        } else if !self.is_american {
            // Errors of two figures from the same paths add up at most.
            let error = years * result.standard_error;
            if self.futures[0] {
                of_rate = SimulatedGreek { value: -(years * price), standard_error: error, ..of_rate };
            } else {
                more.push(SimulatedGreek {
                    name: "rho_foreign".to_owned(),
                    value: -(rho.value + years * price),
                    standard_error: rho.standard_error + error,
                });
            }
        }
        result
            .greeks
            .iter_mut()
            .filter(|greek| greek.name == "rho")
            .for_each(|greek| *greek = of_rate.clone());
        if self.is_american && self.futures[0] {
            result.greeks.retain(|greek| greek.name != "rho");
        }
        result.greeks.extend(more);
    }
}
