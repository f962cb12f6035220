//! Price and Greeks of digital options, which pay an amount of cash or of the asset if they end in the money. The
//! source is Reiner and Rubinstein, *Unscrambling the Binary Code*, Risk 4, 1991.
//!
//! With `w = +1` for a call and `−1` for a put, `s = σ√T`, `d₁ = (ln(S/K) + (r − q + σ²/2)·T)/s` and `d₂ = d₁ − s`, the
//! value is `V = A·Φ(w·d)`, whose derivative by `d` is `f = w·A·φ(d)`:
//!
//! | | of cash | of the asset |
//! | --- | --- | --- |
//! | `A`, `d` and the other one, `o` | `amount·e^{−rT}`, `d₂`, `d₁` | `amount·S·e^{−qT}`, `d₁`, `d₂` |
//! | delta | `f/(S·s)` | `V/S + f/(S·s)` |
//! | gamma | `−f·o/(S·s)²` | the same |
//! | vega | `−f·o/σ` | the same |
//! | theta | `r·V − f·((r − q − σ²/2)/s − d/(2T))` | `q·V − f·((r − q + σ²/2)/s − d/(2T))` |
//! | rho | `T·(f/s − V)` | `T·f/s` |
//! | vanna | `f·(o·d₂ − 1)/(S·s·σ)` | the same |
//! | volga | `−f·(o²·d − o − d)/σ²` | the same |
//!
//! Units are those of [`Greeks`].

use std::ops::Range;

use super::black_scholes::{GREEK_COLUMNS, Greeks, LANES, Rest, load};
use super::device::DevicePricing;
use super::options::{AssetMarket, OptionKind, Options, PRICE_RANGE, ParameterError, check};
use crate::device::{CudaSource, Device, DeviceError, Kernel};
use crate::isa::{HotLoop, Isa};
use crate::math::{Quotient, density_and_cdf, exp};
pub use warptape_terms::DigitalPayout;

/// Prices digital options in closed form: takes `DigitalArgs`, which are those of options.
pub const PRICE_DIGITALS: Kernel = Kernel {
    function: "price_digitals",
    args: "warptape::DigitalArgs",
    source: CudaSource { name: "digital.cu", text: include_str!("digital.cu") },
};

/// European digital options.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Digitals {
    /// Spot, strike and the other numbers of a standard option.
    options: Options,
    amounts: Vec<f64>,
    /// 1 if the asset is paid, 0 if cash is.
    pays_asset: Vec<f64>,
}

impl Digitals {
    /// Adds an option that pays an amount of cash, or a number of units of the asset.
    pub fn push(
        &mut self,
        kind: OptionKind,
        market: &AssetMarket,
        strike: f64,
        expiry_years: f64,
        (payout, amount): (DigitalPayout, f64),
    ) -> Result<(), ParameterError> {
        check("amount", amount, PRICE_RANGE)?;
        self.options.push(kind, market, strike, expiry_years)?;
        self.amounts.push(amount);
        self.pays_asset.push(if payout == DigitalPayout::Asset { 1.0 } else { 0.0 });
        Ok(())
    }

    /// Number of options.
    pub fn len(&self) -> usize {
        self.amounts.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.amounts.is_empty()
    }

    /// Adds price and Greeks of some options, in order.
    pub fn greeks(&self, isa: Isa, range: Range<usize>, greeks: &mut Greeks) {
        greeks.columns.iter_mut().for_each(|column| column.reserve(range.len()));
        isa.run(DigitalsLoop { digitals: self, range, greeks });
    }

    /// Computes [`Digitals::greeks`] on a device.
    pub fn greeks_on_device(
        &self,
        pricing: &mut DevicePricing,
        device: &mut dyn Device,
        range: Range<usize>,
        greeks: &mut Greeks,
    ) -> Result<(), DeviceError> {
        let columns = self.options.columns.iter().chain([&self.amounts, &self.pays_asset]);
        let given: Vec<&[f64]> = columns.map(|column| &column[range.clone()]).collect();
        pricing.greek_columns(device, &PRICE_DIGITALS, &given, greeks)
    }
}

struct DigitalsLoop<'a> {
    digitals: &'a Digitals,
    range: Range<usize>,
    greeks: &'a mut Greeks,
}

impl HotLoop for DigitalsLoop<'_> {
    #[inline(always)]
    fn run(self) {
        let DigitalsLoop { digitals, range, greeks } = self;
        let Digitals { options, amounts, pays_asset } = digitals;
        let mut rest = Rest::NONE;
        let (mut amount, mut of_asset) = ([1.0; LANES], [0.0; LANES]);
        let mut found = [[0.0; LANES]; GREEK_COLUMNS];
        for first in range.clone().step_by(LANES) {
            let count = LANES.min(range.end - first);
            let given = load(options, first, count, &mut rest);
            amount[..count].copy_from_slice(&amounts[first..first + count]);
            of_asset[..count].copy_from_slice(&pays_asset[first..first + count]);
            for lane in 0..LANES {
                let values = values(given.lane(lane), amount[lane], of_asset[lane]);
                for (column, value) in found.iter_mut().zip(values) {
                    column[lane] = value;
                }
            }
            for (column, found) in greeks.columns.iter_mut().zip(&found) {
                column.extend_from_slice(&found[..count]);
            }
        }
    }
}

/// Price and Greeks of an option.
#[inline(always)]
fn values(
    [sign, spot, strike, rate, carry, volatility, years]: [f64; 7],
    amount: f64,
    of_asset: f64,
) -> [f64; GREEK_COLUMNS] {
    let pays_asset = of_asset > 0.0;
    let root = years.sqrt();
    let deviation = volatility * root;
    let quotient = Quotient::new(spot, strike);
    let below = spot * deviation;
    let inverse_of_both = 1.0 / (below * quotient.sum);
    let inverse = quotient.sum * inverse_of_both;
    let (by_deviation, by_spot) = (spot * inverse, deviation * inverse);
    let by_volatility = root * by_deviation;
    let half_variance = 0.5 * (volatility * volatility);
    let trend = (rate - carry) + if pays_asset { half_variance } else { -half_variance };
    let d = (quotient.ln(below * inverse_of_both) + trend * years) * by_deviation;
    let other = d + if pays_asset { -deviation } else { deviation };
    let d2 = if pays_asset { other } else { d };
    let discount = if pays_asset { carry } else { rate };
    let whole = amount * if pays_asset { spot } else { 1.0 } * exp(-(discount * years));
    let (density, probability) = density_and_cdf(sign * d);
    let price = whole * probability;
    let slope = sign * (whole * density);
    [
        price,
        slope * inverse + of_asset * (price * by_spot),
        -(slope * other) * inverse * inverse,
        -(slope * other) * by_volatility,
        discount * price - slope * (trend * by_deviation - 0.5 * d / years),
        years * (slope * by_deviation - (1.0 - of_asset) * price),
        slope * (other * d2 - 1.0) * (inverse * by_volatility),
        -slope * (other * other * d - other - d) * (by_volatility * by_volatility),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::ln;

    const NAMES: [&str; GREEK_COLUMNS] =
        ["price", "delta", "gamma", "vega", "theta", "rho", "vanna", "volga"];

    #[derive(Clone, Copy, Debug)]
    struct Asked {
        kind: OptionKind,
        market: AssetMarket,
        strike: f64,
        years: f64,
        payout: DigitalPayout,
        amount: f64,
    }

    /// Options of all four kinds, up to six standard deviations from the money.
    fn asked(count: usize) -> Vec<Asked> {
        let mut state = 7_u64;
        let mut uniform = move |least: f64, most: f64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            least + (most - least) * (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let option = |number: usize| {
            let (spot, volatility, years) = (uniform(50.0, 200.0), uniform(0.05, 0.9), uniform(0.1, 10.0));
            let deviations = uniform(-6.0, 6.0);
            Asked {
                kind: if number.is_multiple_of(2) { OptionKind::Call } else { OptionKind::Put },
                payout: if number % 4 < 2 { DigitalPayout::Cash } else { DigitalPayout::Asset },
                market: AssetMarket {
                    spot,
                    volatility,
                    rate: uniform(-0.02, 0.1),
                    dividend_yield: uniform(-0.01, 0.06),
                },
                strike: spot * exp(deviations * volatility * years.sqrt()),
                years,
                amount: uniform(0.5, 20.0),
            }
        };
        (0..count).map(option).collect()
    }

    fn digitals(asked: &[Asked]) -> Digitals {
        let mut digitals = Digitals::default();
        for Asked { kind, market, strike, years, payout, amount } in asked {
            digitals.push(*kind, market, *strike, *years, (*payout, *amount)).expect("all in range");
        }
        digitals
    }

    fn greeks_of(isa: Isa, asked: &[Asked]) -> Vec<[f64; GREEK_COLUMNS]> {
        let mut greeks = Greeks::default();
        digitals(asked).greeks(isa, 0..asked.len(), &mut greeks);
        (0..asked.len()).map(|place| greeks.columns.each_ref().map(|column| column[place])).collect()
    }

    /// The five-point rule of Gauss and Legendre.
    const NODES: [(f64, f64); 5] = [
        (0.0, 0.568_888_888_888_888_9),
        (-0.538_469_310_105_683_1, 0.478_628_670_499_366_47),
        (0.538_469_310_105_683_1, 0.478_628_670_499_366_47),
        (-0.906_179_845_938_664, 0.236_926_885_056_189_08),
        (0.906_179_845_938_664, 0.236_926_885_056_189_08),
    ];
    const PANELS: usize = 600;

    /// Price and Greeks by quadrature, and the sizes of their terms. The logarithm of the last price is normal, with
    /// mean `m` and deviation `s`. Derivatives by `m` are integrals of the payoff weighted by Hermite's polynomials.
    /// This needs neither Φ nor any derivative of the formula.
    fn by_quadrature(asked: &Asked) -> [[f64; GREEK_COLUMNS]; 2] {
        let Asked { kind, market, strike, years: t, payout, amount } = *asked;
        let AssetMarket { spot, rate, dividend_yield, volatility } = market;
        let trend = rate - dividend_yield - 0.5 * volatility * volatility;
        let s = volatility * t.sqrt();
        let edge = (ln(strike / spot) - trend * t) / s;
        let pays = |z: f64| match payout {
            DigitalPayout::Cash => amount,
            DigitalPayout::Asset => amount * spot * exp(trend * t + s * z),
        };
        // Most of the asset's value is one deviation higher.
        let peak = if payout == DigitalPayout::Asset { s } else { 0.0 };
        let [from, to] = match kind {
            OptionKind::Call => [edge.max(peak - 14.0), edge.max(peak) + 14.0],
            OptionKind::Put => [edge.min(peak) - 14.0, edge.min(peak + 14.0)],
        };
        let half = 0.5 * (to - from) / PANELS as f64;
        let (mut sums, mut sizes) = ([0.0; 5], [0.0; 5]);
        for panel in 0..PANELS {
            let middle = from + half * (2 * panel + 1) as f64;
            for (node, weight) in NODES {
                let z = middle + half * node;
                let density = exp(-0.5 * z * z) * 0.398_942_280_401_432_7;
                let part = weight * half * pays(z) * density * exp(-rate * t);
                let square = z * z;
                let weights =
                    [1.0, z, square - 1.0, z * (square - 3.0), square * square - 6.0 * square + 3.0];
                let mut scaled = part;
                for (number, weight) in weights.into_iter().enumerate() {
                    let part = scaled * weight;
                    scaled /= s;
                    sums[number] += part;
                    sizes[number] += part.abs();
                }
            }
        }
        let greeks = |[v, v1, v2, v3, v4]: [f64; 5], minus: f64| {
            let variance = volatility * volatility;
            [
                v,
                v1 / spot,
                (v2 + minus * v1) / (spot * spot),
                volatility * t * (v2 + minus * v1),
                match minus < 0.0 {
                    true => rate * v - trend * v1 - 0.5 * variance * v2,
                    false => rate.abs() * v + trend.abs() * v1 + 0.5 * variance * v2,
                },
                t * (v1 + minus * v),
                volatility * t * (v3 + minus * v2) / spot,
                t * (v2 + minus * v1) + variance * t * t * (v4 + minus * 2.0 * v3 + v2),
            ]
        };
        [greeks(sums, -1.0), greeks(sizes, 1.0)]
    }

    /// Greatest difference, relative to the size of the terms.
    const TOLERANCE: f64 = 1e-13;

    #[test]
    fn closed_form_agrees_with_quadrature() {
        let asked = asked(400);
        let mut worst = [0.0_f64; GREEK_COLUMNS];
        for (asked, found) in asked.iter().zip(greeks_of(Isa::detect(), &asked)) {
            let [expected, sizes] = by_quadrature(asked);
            for column in 0..GREEK_COLUMNS {
                let error = (found[column] - expected[column]).abs() / sizes[column];
                worst[column] = worst[column].max(error);
                let name = NAMES[column];
                assert!(error < TOLERANCE, "{name} of {asked:?}: {found:?}, expected {expected:?}");
            }
        }
        println!("{worst:?}");
    }

    /// An asset-or-nothing option minus cash-or-nothing of the strike's amount is a standard option.
    #[test]
    fn digitals_make_a_usual_option() {
        for asked in asked(200) {
            let asset = Asked { payout: DigitalPayout::Asset, amount: 1.0, ..asked };
            let cash = Asked { payout: DigitalPayout::Cash, amount: asked.strike, ..asked };
            let parts = greeks_of(Isa::detect(), &[asset, cash]);
            let mut options = Options::default();
            options.push(asked.kind, &asked.market, asked.strike, asked.years).expect("in range");
            let mut whole = Greeks::default();
            whole.add(Isa::detect(), &options, 0..1);
            let sign = asked.kind.sign();
            for (column, name) in NAMES.iter().enumerate() {
                let found = sign * (parts[0][column] - parts[1][column]);
                let size = parts[0][column].abs() + parts[1][column].abs();
                let expected = whole.columns[column][0];
                assert!((found - expected).abs() <= 2e-13 * size, "{name} of {asked:?}: {found}, {expected}");
            }
        }
    }

    #[test]
    fn all_processors_give_the_same_bits_however_the_work_is_cut() {
        let asked = asked(150);
        let digitals = digitals(&asked);
        let bits = |greeks: &Greeks| -> Vec<u64> {
            greeks.columns.iter().flatten().map(|number| number.to_bits()).collect()
        };
        let mut whole = Greeks::default();
        digitals.greeks(Isa::Baseline, 0..150, &mut whole);
        for isa in Isa::supported() {
            for cut in [0, 1, 64, 77] {
                let mut found = Greeks::default();
                digitals.greeks(isa, 0..cut, &mut found);
                digitals.greeks(isa, cut..150, &mut found);
                assert_eq!(bits(&found), bits(&whole), "{isa:?}, cut at {cut}");
            }
        }
    }

    /// With almost no volatility or time, and far from the money, the price is that of a certain payment. No number is
    /// NaN.
    #[test]
    fn without_deviation_it_is_known_what_is_paid() {
        for (volatility, years) in [(1e-6, 3e-9), (1e-6, 1.0), (1e-3, 1e-6), (1e-5, 60.0)] {
            for strike in [1e-12, 20.0, 99.0, 101.0, 739.0, 1e15] {
                for (kind, payout) in [
                    (OptionKind::Call, DigitalPayout::Cash),
                    (OptionKind::Put, DigitalPayout::Cash),
                    (OptionKind::Call, DigitalPayout::Asset),
                    (OptionKind::Put, DigitalPayout::Asset),
                ] {
                    let market = AssetMarket { spot: 100.0, rate: 0.0, dividend_yield: 0.0, volatility };
                    let asked = Asked { kind, market, strike, years, payout, amount: 5.0 };
                    let [found] = greeks_of(Isa::detect(), &[asked])[..] else { panic!("one is asked") };
                    let is_in = (kind == OptionKind::Call) == (100.0 > strike);
                    let pays = if payout == DigitalPayout::Asset { 500.0 } else { 5.0 };
                    assert_eq!(found[0], if is_in { pays } else { 0.0 }, "{asked:?}");
                    let delta = if is_in && payout == DigitalPayout::Asset { 5.0 } else { 0.0 };
                    assert!((found[1] - delta).abs() < 1e-12, "{asked:?}: {found:?}");
                    assert!(found.iter().all(|number| number.is_finite()), "{asked:?}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn amounts_are_checked() {
        let market = AssetMarket { spot: 100.0, rate: 0.0, dividend_yield: 0.0, volatility: 0.2 };
        let mut digitals = Digitals::default();
        let mut pushed = |strike, amount| {
            let pushed = digitals.push(OptionKind::Call, &market, strike, 1.0, (DigitalPayout::Cash, amount));
            pushed.err().map(|error| error.field)
        };
        assert_eq!(pushed(100.0, 0.0), Some("amount"));
        assert_eq!(pushed(0.0, 1.0), Some("strike"));
        assert_eq!(pushed(100.0, 1.0), None);
        assert_eq!((digitals.len(), digitals.options.len()), (1, 1));
    }
}
