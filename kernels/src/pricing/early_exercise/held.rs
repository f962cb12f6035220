//! The boundary of an option that is held while the price of its asset moves. It does not depend on the spot, so it is
//! found once for all scenarios that move only spots.

use super::boundary::{self, Host, Integrals, Settled};
use super::points::{Curve, Put};
use super::{AmericanError, AmericanOption, RATE_MIN};
use crate::isa::Isa;
use crate::math::ln_of_positive;
use crate::pricing::black_scholes::Greeks;
use crate::pricing::options::{AssetMarket, OptionKind, Options};

/// An option with its exercise boundary.
#[derive(Clone, Debug, PartialEq)]
pub struct ExerciseBoundary {
    option: AmericanOption,
    put: Put,
    /// The boundary, and its present level; `None` if the option is never exercised early, or not at any price that it
    /// may reach.
    found: Option<(Curve, f64)>,
    /// True if the option is never exercised early, whatever the spot.
    is_european: bool,
}

impl AmericanOption {
    /// Finds the boundary.
    pub fn boundary(&self, isa: Isa) -> Result<ExerciseBoundary, AmericanError> {
        self.check()?;
        let put = self.put().prepared();
        let is_european = put.rate <= RATE_MIN && put.carry >= put.rate.min(0.0);
        let found = match is_european {
            true => None,
            false => boundary::boundary(&put, &mut Host(isa)).unwrap_or_else(|never| match never {}),
        };
        if found.is_none() && !is_european && !put.is_out_of_reach() {
            return Err(AmericanError::Unsettled);
        }
        Ok(ExerciseBoundary { option: *self, put, found, is_european })
    }
}

impl ExerciseBoundary {
    /// The option of the boundary.
    pub fn option(&self) -> &AmericanOption {
        &self.option
    }

    /// The value of the option at each of these spots. At the option's own spot it is that of
    /// [`AmericanOption::value`], bit for bit. It is NaN at a spot that may reach a boundary that was not found.
    pub fn values(&self, isa: Isa, spots: &[f64]) -> Vec<f64> {
        let AmericanOption { market, kind, strike, expiry_years } = self.option;
        let (mut options, mut european) = (Options::default(), Greeks::default());
        for &spot in spots {
            let pushed = options.push(kind, &AssetMarket { spot, ..market }, strike, expiry_years);
            pushed.expect("spots are moved within their range, and all else was checked");
        }
        european.add(isa, &options, 0..spots.len());
        let puts: Vec<Put> = spots.iter().map(|&spot| self.put_at(spot)).collect();
        let premiums = match &self.found {
            None => Vec::new(),
            Some((curve, _)) => {
                let curves = vec![*curve; puts.len()];
                Host(isa).premiums(&puts, &curves).unwrap_or_else(|never| match never {})
            }
        };
        let value = |number: usize| {
            let (spot, european) = (spots[number], european.price()[number]);
            let pays = kind.sign() * (spot - strike);
            let Some((_, level)) = self.found else {
                if !self.is_european && !puts[number].is_out_of_reach() {
                    return f64::NAN;
                }
                return if pays > european { pays } else { european };
            };
            let Settled { is_exercised, premium } = boundary::settled(&puts[number], level, premiums[number]);
            if is_exercised && pays >= european {
                return pays;
            }
            let unit = if kind == OptionKind::Put { strike } else { spot };
            let price = european + if premium.amount > 0.0 { unit * premium.amount } else { 0.0 };
            if pays > price { pays } else { price }
        };
        (0..spots.len()).map(value).collect()
    }

    /// Derivative of the value by the spot, at the option's own spot.
    pub fn delta(&self, isa: Isa) -> f64 {
        let AmericanOption { market, kind, strike, expiry_years } = self.option;
        let (mut options, mut european) = (Options::default(), Greeks::default());
        options.push(kind, &market, strike, expiry_years).expect("checked with the boundary");
        european.add(isa, &options, 0..1);
        let Some((curve, level)) = &self.found else { return european.delta()[0] };
        let premiums = Host(isa).premiums(&[self.put], &[*curve]).unwrap_or_else(|never| match never {});
        let Settled { is_exercised, premium } = boundary::settled(&self.put, *level, premiums[0]);
        let pays = kind.sign() * (market.spot - strike);
        if is_exercised && pays >= european.price()[0] {
            return kind.sign();
        }
        let of_premium = match kind {
            OptionKind::Put => premium.delta,
            OptionKind::Call => premium.amount - self.put.spot * premium.delta,
        };
        european.delta()[0] + of_premium
    }

    fn put_at(&self, spot: f64) -> Put {
        let AmericanOption { kind, strike, .. } = self.option;
        let spot = if kind == OptionKind::Put { spot / strike } else { strike / spot };
        Put { spot, ln_spot: ln_of_positive(spot), ..self.put }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A boundary that the present spot cannot reach may be within reach of another spot.
    #[test]
    fn a_boundary_that_is_not_found_gives_no_value_within_its_reach() {
        let market = AssetMarket { spot: 1e6, rate: 0.05, dividend_yield: 0.0, volatility: 0.2 };
        let option = AmericanOption { market, kind: OptionKind::Put, strike: 100.0, expiry_years: 1.0 };
        let found = option.boundary(Isa::Baseline).expect("a boundary");
        let not_found = ExerciseBoundary { found: None, ..found.clone() };
        let [far, near] = not_found.values(Isa::Baseline, &[1e6, 100.0])[..] else { panic!("two values") };
        assert_eq!(far, found.values(Isa::Baseline, &[1e6])[0]);
        assert!(near.is_nan());
    }
}
