//! Risk from only a covariance. Profits are assumed to be linear in the assets' returns, and these normal with mean 0
//! (delta-normal; J.P. Morgan, *RiskMetrics technical document*, 1996).
//!
//! The exposures of a book are `e_a = Σ quantity·delta·S`, in currency, and Σ is the covariance of returns over the
//! horizon. Then its profit has the standard deviation `s = √(eᵀΣe)`. At a confidence c, with `z = Φ⁻¹(c)`, the value
//! at risk is `z·s` and the expected shortfall `φ(z)/(1 − c)·s`. A position's component is `exposure·(Σe)_a/s` times
//! the same factor; components add up to the whole (Euler).

use super::covariance::Covariance;
use super::measures::{CONFIDENCE_RANGE, MeasureError};
use super::positions::{Instrument, Portfolio};
use super::tree;
use crate::isa::Isa;
use crate::math::{exp, inverse_normal_cdf, normal_density};
use crate::pricing::options::check;
use crate::pricing::{DigitalPayout, Digitals, Greeks, Options};

const CHECKED: &str = "checked with the portfolio";

/// Part of a book's risk, in currency.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Contribution {
    /// Contribution to the value at risk.
    pub value_at_risk: f64,
    /// Contribution to the expected shortfall.
    pub expected_shortfall: f64,
}

/// A book's risk.
#[derive(Clone, Debug, PartialEq)]
pub struct Parametric {
    /// Measures of the whole book.
    pub total: Contribution,
    /// Contribution of each of the portfolio's positions; 0 for positions outside the book.
    pub positions: Vec<Contribution>,
    /// Derivative of the profit by the return of each asset.
    pub exposures: Vec<f64>,
}

impl Portfolio {
    /// The derivative of each position's profit by its asset's return: `quantity·delta·S`.
    pub fn exposures(&self, isa: Isa) -> Vec<f64> {
        let (mut options, mut greeks) = (Options::default(), Greeks::default());
        let mut digitals = Digitals::default();
        for position in self.positions() {
            let market = &self.assets()[position.asset];
            match position.instrument {
                Instrument::Option { kind, strike, expiry_years } if expiry_years > 0.0 => {
                    options.push(kind, market, strike, expiry_years).expect(CHECKED);
                }
                Instrument::Digital { kind, strike, expiry_years, pays, amount } if expiry_years > 0.0 => {
                    digitals.push(kind, market, strike, expiry_years, (pays, amount)).expect(CHECKED);
                }
                _ => {}
            }
        }
        let mut of_digitals = Greeks::default();
        greeks.add(isa, &options, 0..options.len());
        digitals.greeks(isa, 0..digitals.len(), &mut of_digitals);
        let (mut option_deltas, mut digital_deltas) = (greeks.delta().iter(), of_digitals.delta().iter());
        let mut boundary_deltas = (0..self.positions().len())
            .filter_map(|number| self.held(number).boundary)
            .map(|boundary| boundary.delta(isa));
        let exposure = |position: &super::Position| {
            let market = &self.assets()[position.asset];
            let delta = match position.instrument {
                Instrument::Spot => 1.0,
                Instrument::Forward { expiry_years, .. } => exp(-(market.dividend_yield * expiry_years)),
                Instrument::Option { expiry_years, .. } if expiry_years > 0.0 => {
                    *option_deltas.next().expect("one for each option")
                }
                Instrument::American { expiry_years, .. } if expiry_years > 0.0 => {
                    boundary_deltas.next().expect("one for each option")
                }
                Instrument::Digital { expiry_years, .. } if expiry_years > 0.0 => {
                    *digital_deltas.next().expect("one for each option")
                }
                // An option that expires now has the delta of its payoff at the present spot. At the strike it pays
                // nothing, and its delta is 0.
                Instrument::Option { kind, strike, .. } | Instrument::American { kind, strike, .. } => {
                    if kind.sign() * (market.spot - strike) > 0.0 { kind.sign() } else { 0.0 }
                }
                Instrument::Digital { kind, strike, pays, amount, .. } => {
                    let is_paid = kind.sign() * (market.spot - strike) > 0.0;
                    if is_paid && pays == DigitalPayout::Asset { amount } else { 0.0 }
                }
            };
            position.quantity * delta * market.spot
        };
        self.positions().iter().map(exposure).collect()
    }

    /// The risk of a book and the books in it; the covariance is that of the assets' returns over the horizon.
    pub fn parametric(
        &self,
        isa: Isa,
        covariance: &Covariance,
        book: usize,
        confidence: f64,
    ) -> Result<Parametric, MeasureError> {
        self.parametric_of(self.exposures(isa), covariance, book, confidence)
    }

    /// The same risk from the exposures of all positions.
    pub fn parametric_of(
        &self,
        mut of_positions: Vec<f64>,
        covariance: &Covariance,
        book: usize,
        confidence: f64,
    ) -> Result<Parametric, MeasureError> {
        check("confidence", confidence, CONFIDENCE_RANGE)?;
        let (found, expected) = (covariance.assets(), self.assets().len());
        if found != expected {
            return Err(MeasureError::Assets { found, expected });
        }
        if book >= self.parents().len() {
            return Err(MeasureError::UnknownBook { book, books: self.parents().len() });
        }
        let is_within = self.books_within(book);
        let mut of_assets = vec![Vec::new(); expected];
        for (exposure, position) in of_positions.iter_mut().zip(self.positions()) {
            if is_within[position.book] {
                of_assets[position.asset].push(*exposure);
            } else {
                *exposure = 0.0;
            }
        }
        let exposures: Vec<f64> = of_assets.iter().map(|terms| tree::sum(terms)).collect();
        let products = covariance.product(&exposures);
        let terms: Vec<f64> = exposures.iter().zip(&products).map(|(one, other)| one * other).collect();
        let deviation = tree::sum(&terms).max(0.0).sqrt();
        let z = inverse_normal_cdf(confidence);
        let shortfall = normal_density(z) / (1.0 - confidence);
        let contribution =
            |share: f64| Contribution { value_at_risk: z * share, expected_shortfall: shortfall * share };
        let component = |(exposure, position): (&f64, &super::Position)| {
            let is_certain = deviation == 0.0;
            contribution(if is_certain { 0.0 } else { exposure * products[position.asset] / deviation })
        };
        Ok(Parametric {
            total: contribution(deviation),
            positions: of_positions.iter().zip(self.positions()).map(component).collect(),
            exposures,
        })
    }

    /// True for each book that is `book` or within it.
    fn books_within(&self, book: usize) -> Vec<bool> {
        let mut is_within = vec![false; self.parents().len()];
        for (number, parent) in self.parents().iter().enumerate() {
            // Parents come first.
            is_within[number] = number == book || parent.is_some_and(|parent| is_within[parent]);
        }
        is_within
    }
}
