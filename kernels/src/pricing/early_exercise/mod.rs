//! American options on one asset, exercisable at any time, by their exercise boundary. The source is Andersen, Lake and
//! Offengenden, *High Performance American Option Pricing*, Journal of Computational Finance 20, 2016.
//!
//! ```text
//! seed ──► boundary at 33 nodes of √τ ──► improved by integrals over itself ──┐
//!                    ▲                                                        │ until it stands still
//!                    └────────────────────────────────────────────────────────┘──► premium over the European option
//! ```
//!
//! A put of strike 1 is exercised once the price falls to `B(τ)`, τ years before expiry. It is worth the European
//! option plus the earnings of exercise (Kim 1990), with `v = T − τ` years from now:
//!
//! ```text
//! premium = ∫₀ᵀ r·e^{−rv}·Φ(−d₂(v, S/B(T−v))) − q·S·e^{−qv}·Φ(−d₁(v, S/B(T−v))) dv
//! ```
//!
//! `B` solves one of two fixed-point equations at `S = B`. Equation B of the paper, by which the option is worth the
//! payoff of exercise, always converges. Equation A, by which its slope is that of exercise, converges faster if `(r −
//! q)·√T/σ < 0.2`. Between nodes `ln²(B/X)` is a polynomial in √τ, with `X = min(1, r/q)`, the limit of B at expiry.
//! Integrals are taken over θ with `u = τ·sin²θ`, so that all square roots in them are smooth. The boundary uses Gauss
//! and Legendre's points. The premium uses Takahasi and Mori's, because it has a thin layer at `v = 0` if the spot is
//! near the boundary. A call is a put with spot and strike, and rate and yield, exchanged.
//!
//! If A does not converge, B is used. With a negative q it integrates below the boundary, because terms above it grow
//! as `e^{−qτ}` and cancel. If the price drifts down and T is long, the boundary changes only in a layer that is thin
//! compared with T. After `τ = 40/λ`, with `λ = r + (r − q − σ²/2)²/2σ²`, B equals that of an option without expiry to
//! all digits. If T is more than six times that, the curve covers the last `40/λ` years. The integral over the years
//! before is then a closed form (`endless.rs`).
//!
//! Delta and gamma are derivatives of the integral, and theta follows from the equation of Black and Scholes. Vega and
//! rho are differences of two premiums, whose boundaries took the same number of steps, added to those of the European
//! option.
//!
//! If `q < r < 0` (for a call `r < q < 0`), the option is exercised between two boundaries, which is refused. If
//! `r ≤ 0` and `q ≥ r`, a put is never exercised early, and equals the European one.

mod boundary;
mod device;
mod endless;
mod held;
mod nodes;
mod points;

use thiserror::Error;

use super::black_scholes::Greeks;
use super::options::{AssetMarket, OptionKind, Options, ParameterError};
use crate::device::{Device, DeviceError, WorkMemory};
use crate::isa::Isa;
use boundary::{Host, Settled};
pub use held::ExerciseBoundary;
use points::{Premium, Put};

/// Least rate with which early exercise counts: below it, exercise earns less than 1e-10 of the strike.
const RATE_MIN: f64 = 1e-13;
/// Value of `(r − q)·√T/σ` from which boundaries are improved by values, not by slopes.
const SMOOTH_MAX: f64 = 0.2;
/// Relative change of the volatility, up and down, for vega. Below: absolute change of a rate for rho, divided by the
/// years until expiry if these exceed one.
const VOLATILITY_BUMP: f64 = 1e-4;
const RATE_BUMP: f64 = 1e-5;

/// An American option on one asset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AmericanOption {
    /// The asset.
    pub market: AssetMarket,
    /// Call or put.
    pub kind: OptionKind,
    /// Strike.
    pub strike: f64,
    /// Years until expiry.
    pub expiry_years: f64,
}

/// The value of an option, and its Greeks if wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AmericanValue {
    /// The price, at least the payoff of immediate exercise and the European price.
    pub price: f64,
    /// The Greeks; those of the payoff if it is best to exercise now. `None` if they were not wanted.
    pub greeks: Option<AmericanGreeks>,
}

/// Greeks of an American option.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AmericanGreeks {
    /// Derivative of the price by spot.
    pub delta: f64,
    /// Second derivative by spot.
    pub gamma: f64,
    /// Derivative by volatility, per 1.0.
    pub vega: f64,
    /// Derivative by passing time, per year.
    pub theta: f64,
    /// Derivative by the rate, per 1.0.
    pub rho: f64,
    /// Derivative by the dividend yield, per 1.0.
    pub rho_foreign: f64,
}

/// The reason why an American option has no value here.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum AmericanError {
    /// A number is out of range.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// The option is best exercised between two boundaries, which is not computed.
    #[error(
        "rate {rate} and dividend yield {dividend_yield} are negative so that exercise is best between two prices, not beyond one, \
         which is not computed: have it simulated, by paths_max and steps"
    )]
    TwoBoundaries {
        /// Interest rate.
        rate: f64,
        /// Dividend yield.
        dividend_yield: f64,
    },
    /// The boundary did not converge.
    #[error("no boundary of exercise is found for these numbers: have it simulated, by paths_max and steps")]
    Unsettled,
}

/// The values of an option that are known before any boundary is found.
struct Begun {
    /// Price, delta, gamma, vega, theta, rho of the European option.
    european: [f64; 6],
    /// Puts of strike 1: the option itself, then with changed volatilities and rates. Empty if it is never exercised
    /// early.
    puts: Vec<Put>,
    /// Two puts with changed yields, whose number of iterations is independent of the others.
    of_yields: Vec<Put>,
}

impl AmericanOption {
    /// Checks that the option can be valued, as far as that is known before the computation.
    pub fn check(&self) -> Result<(), AmericanError> {
        Options::default().push(self.kind, &self.market, self.strike, self.expiry_years)?;
        self.check_boundaries()
    }

    /// Refuses rates with which exercise is best between two prices.
    pub(crate) fn check_boundaries(&self) -> Result<(), AmericanError> {
        let AssetMarket { rate, dividend_yield, .. } = self.market;
        let (earns, carry) = match self.kind {
            OptionKind::Put => (rate, dividend_yield),
            OptionKind::Call => (dividend_yield, rate),
        };
        if carry < earns && earns < 0.0 {
            return Err(AmericanError::TwoBoundaries { rate, dividend_yield });
        }
        Ok(())
    }

    /// Price, and Greeks if they are wanted.
    pub fn value(&self, isa: Isa, has_greeks: bool) -> Result<AmericanValue, AmericanError> {
        let begun = self.begin(isa, has_greeks)?;
        let settle = |puts| boundary::settle(puts, &mut Host(isa)).unwrap_or_else(|never| match never {});
        self.conclude(&begun, settle(&begun.puts), settle(&begun.of_yields))
    }

    /// The same value as [`value`](Self::value), bit for bit, computed by a device.
    pub fn value_on_device(
        &self,
        device: &mut dyn Device,
        memory: &mut WorkMemory,
        has_greeks: bool,
    ) -> Result<Result<AmericanValue, AmericanError>, DeviceError> {
        let begun = match self.begin(Isa::detect(), has_greeks) {
            Ok(begun) => begun,
            Err(error) => return Ok(Err(error)),
        };
        let found = device::settle(device, memory, &begun.puts)?;
        let of_yields = device::settle(device, memory, &begun.of_yields)?;
        Ok(self.conclude(&begun, found, of_yields))
    }

    /// Derivative of the European option by the dividend yield, which follows from its delta.
    fn of_yield(&self, delta: f64) -> f64 {
        -(self.expiry_years * self.market.spot * delta)
    }

    /// The equivalent put of strike 1.
    fn put(&self) -> Put {
        let AssetMarket { spot, rate, dividend_yield, volatility } = self.market;
        match self.kind {
            OptionKind::Put => {
                Put::new(spot / self.strike, rate, dividend_yield, volatility, self.expiry_years)
            }
            OptionKind::Call => {
                Put::new(self.strike / spot, dividend_yield, rate, volatility, self.expiry_years)
            }
        }
    }

    /// The values known before any boundary. All puts have the times and the equation of the option itself.
    fn begin(&self, isa: Isa, has_greeks: bool) -> Result<Begun, AmericanError> {
        self.check()?;
        let (mut options, mut greeks) = (Options::default(), Greeks::default());
        options.push(self.kind, &self.market, self.strike, self.expiry_years)?;
        greeks.add(isa, &options, 0..1);
        let columns =
            [greeks.price(), greeks.delta(), greeks.gamma(), greeks.vega(), greeks.theta(), greeks.rho()];
        let put = self.put().prepared();
        let is_european = put.rate <= RATE_MIN && put.carry >= put.rate.min(0.0);
        let mut puts = if is_european { Vec::new() } else { vec![put] };
        let mut of_yields = Vec::new();
        if has_greeks && !is_european {
            let Put { years, endless_years, way, .. } = put;
            let put = |moved: Self| Put { years, endless_years, way, ..moved.put() };
            puts.extend(self.moved().map(put));
            of_yields.extend(self.moved_yields().map(put));
        }
        Ok(Begun { european: columns.map(|column| column[0]), puts, of_yields })
    }

    /// The option with a higher and a lower volatility, and with a higher and a lower rate. The earnings of exercise
    /// stay positive.
    fn moved(&self) -> [Self; 4] {
        let AssetMarket { rate, volatility, .. } = self.market;
        let with_volatility =
            |volatility| Self { market: AssetMarket { volatility, ..self.market }, ..*self };
        let with_rate = |rate| Self { market: AssetMarket { rate, ..self.market }, ..*self };
        let (of_volatility, of_rate) = (VOLATILITY_BUMP * volatility, RATE_BUMP / self.expiry_years.max(1.0));
        let is_least = self.kind == OptionKind::Put && rate <= of_rate;
        [
            with_volatility(volatility + of_volatility),
            with_volatility(volatility - of_volatility),
            with_rate(rate + of_rate),
            with_rate(if is_least { rate } else { rate - of_rate }),
        ]
    }

    /// The option with a higher and a lower yield.
    fn moved_yields(&self) -> [Self; 2] {
        let dividend_yield = self.market.dividend_yield;
        let by = RATE_BUMP / self.expiry_years.max(1.0);
        let is_least = self.kind == OptionKind::Call && dividend_yield <= by;
        let with = |dividend_yield| Self { market: AssetMarket { dividend_yield, ..self.market }, ..*self };
        [with(dividend_yield + by), with(if is_least { dividend_yield } else { dividend_yield - by })]
    }

    /// The value from the results of the puts; an error if one did not converge. Without results for changed yields
    /// there is no Greek by the yield.
    fn conclude(
        &self,
        begun: &Begun,
        found: Option<Vec<Settled>>,
        of_yields: Option<Vec<Settled>>,
    ) -> Result<AmericanValue, AmericanError> {
        let Begun { european, puts, .. } = begun;
        let found = match found {
            None if puts[0].is_out_of_reach() => Vec::new(),
            found => found.ok_or(AmericanError::Unsettled)?,
        };
        let AssetMarket { spot, rate, dividend_yield, volatility } = self.market;
        let sign = self.kind.sign();
        let pays = sign * (spot - self.strike);
        let [Settled { is_exercised, premium }, moved @ ..] = &found[..] else {
            let [price, delta, gamma, vega, theta, rho] = *european;
            let price = if pays > price { pays } else { price };
            return Ok(AmericanValue {
                price,
                greeks: Some(AmericanGreeks {
                    delta,
                    gamma,
                    vega,
                    theta,
                    rho,
                    rho_foreign: self.of_yield(delta),
                }),
            });
        };
        if *is_exercised && pays >= european[0] {
            let none = 0.0;
            let greeks = AmericanGreeks {
                delta: sign,
                gamma: none,
                vega: none,
                theta: none,
                rho: none,
                rho_foreign: none,
            };
            return Ok(AmericanValue { price: pays, greeks: Some(greeks) });
        }
        // The unit of the put is the strike or, for a call, the spot. So for a call, a change of the spot also changes
        // the unit.
        let Premium { amount, delta, gamma } = *premium;
        let (unit, delta, gamma) = match self.kind {
            OptionKind::Put => (self.strike, delta, gamma / self.strike),
            OptionKind::Call => {
                let ratio = puts[0].spot;
                (spot, amount - ratio * delta, ratio * ratio * gamma / spot)
            }
        };
        let price = european[0] + if amount > 0.0 { unit * amount } else { 0.0 };
        let price = if pays > price { pays } else { price };
        if !price.is_finite() {
            return Err(AmericanError::Unsettled);
        }
        let of_yield = self.of_yield(european[1]);
        let (delta, gamma) = (european[1] + delta, european[2] + gamma);
        let variance = volatility * volatility * (spot * spot);
        let theta = rate * price - (rate - dividend_yield) * (spot * delta) - 0.5 * variance * gamma;
        let by = |up: usize, of: fn(&Self) -> f64| {
            let moved_to = self.moved();
            let change = moved[up].premium.amount - moved[up + 1].premium.amount;
            unit * change / (of(&moved_to[up]) - of(&moved_to[up + 1]))
        };
        let greeks = (!moved.is_empty()).then(|| AmericanGreeks {
            delta,
            gamma,
            vega: european[3] + by(0, |option| option.market.volatility),
            theta,
            rho: european[5] + by(2, |option| option.market.rate),
            rho_foreign: match of_yields.as_deref() {
                Some([up, down]) => {
                    let [more, less] = self.moved_yields().map(|option| option.market.dividend_yield);
                    of_yield + unit * (up.premium.amount - down.premium.amount) / (more - less)
                }
                _ => f64::NAN,
            },
        });
        Ok(AmericanValue { price, greeks })
    }
}
