//! American options by their exercise boundary, compared with QuantLib, and tested by properties that hold for any
//! parameters.

use warptape_kernels::Isa;
use warptape_kernels::pricing::{
    AmericanError, AmericanGreeks, AmericanOption, AmericanValue, AssetMarket, Greeks, OptionKind, Options,
};

use super::fixture;

fn option(numbers: [f64; 7]) -> AmericanOption {
    let [sign, spot, strike, rate, dividend_yield, volatility, expiry_years] = numbers;
    let market = AssetMarket { spot, rate, dividend_yield, volatility };
    AmericanOption { market, kind: kind(sign), strike, expiry_years }
}

fn kind(sign: f64) -> OptionKind {
    if sign > 0.0 { OptionKind::Call } else { OptionKind::Put }
}

/// Some options for devices, for each equation that may converge, alternately with and without Greeks.
pub fn some_options() -> Vec<AmericanOption> {
    vec![
        option([-1.0, 100.0, 105.0, 0.05, 0.02, 0.2, 1.0]),
        option([1.0, 100.0, 100.0, 0.02, 0.06, 0.3, 2.0]),
        option([-1.0, 100.0, 100.0, 0.15, 0.0, 0.06, 3.0]),
        option([-1.0, 50.0, 100.0, 0.05, 0.02, 0.2, 0.01]),
        option([1.0, 100.0, 100.0, 0.05, 0.0, 0.2, 1.0]),
        option([1.0, 100.0, 100.0, -0.05, -0.02, 0.2, 1.0]),
        // First, slopes do not converge. Then, values from above the boundary do not converge. Then, most of the
        // boundary is an endless one.
        option(SLOPES_UNSETTLED),
        option([1.0, 0.1, 0.1, -1.448, 0.7086, 0.7243, 53.5]),
        option([-1.0, 300.0, 100.0, 0.02, 0.15, 0.01, 20.0]),
        option([1.0, 30.0, 100.0, 0.15, 0.02, 0.01, 20.0]),
        // No boundary is found, and the price cannot come near one.
        option([
            1.0,
            1.7108662922552177e-8,
            2261.7941721168304,
            -1.903764327296988,
            1.7616036864253226,
            4.449388597379363e-6,
            22.83874653793137,
        ]),
    ]
}

/// An option some hours before expiry, with nearly equal rate and yield.
const SLOPES_UNSETTLED: [f64; 7] = [
    1.0,
    0.41205870706758396,
    0.549749328932282,
    0.0019073244197010347,
    0.0018437849856608396,
    1.5734549498960795,
    0.00023145668897678632,
];

fn value(option: &AmericanOption) -> AmericanValue {
    option.value(Isa::detect(), true).unwrap_or_else(|error| panic!("{option:?}: {error}"))
}

fn pays(option: &AmericanOption) -> f64 {
    let sign = if option.kind == OptionKind::Call { 1.0 } else { -1.0 };
    f64::max(sign * (option.market.spot - option.strike), 0.0)
}

fn european(option: &AmericanOption) -> f64 {
    let (mut options, mut greeks) = (Options::default(), Greeks::default());
    options.push(option.kind, &option.market, option.strike, option.expiry_years).expect("in range");
    greeks.add(Isa::Baseline, &options, 0..1);
    greeks.price()[0]
}

#[test]
fn prices_and_greeks_are_those_of_quantlib() {
    let rows = fixture::<13>(include_bytes!("../../../../tests/fixtures/early_exercise.csv.gz"));
    assert!(rows.len() > 2_000, "{} rows", rows.len());
    let (mut worst_price, mut worst_greek, mut greeks) = (0.0, 0.0, 0);
    for row in rows.iter().step_by(if crate::is_long() { 1 } else { 8 }) {
        let given = *row.first_chunk().expect("there are seven");
        let option = option(given);
        let found =
            option.value(Isa::detect(), !row[8].is_nan()).unwrap_or_else(|error| panic!("{row:?}: {error}"));
        let unit = f64::max(option.strike, option.market.spot) / 100.0;
        let off = (found.price - row[7]).abs() / unit;
        assert!(off < 1e-6, "{row:?}: {found:?}, off by {off:e}");
        worst_price = f64::max(worst_price, off);
        if row[8].is_nan() {
            continue;
        }
        let AmericanGreeks { delta, gamma, vega, theta, rho, .. } = found.greeks.expect("they were wanted");
        let exact: [f64; 5] = *row.last_chunk().expect("there are five");
        for (found, exact) in [delta, gamma, vega, theta, rho].into_iter().zip(exact) {
            let off = (found - exact).abs();
            assert!(off < 1e-4 * unit.max(1.0), "{row:?}: {found} instead of {exact}, off by {off:e}");
            worst_greek = f64::max(worst_greek, off);
        }
        greeks += 1;
    }
    assert!(greeks > 10, "{greeks} rows with Greeks");
    println!("prices off by {worst_price:e} of 100, Greeks by {worst_greek:e}");
}

/// A call without dividends equals the European one (issue: 9.22 to 9.30 instead of 9.413).
#[test]
fn what_is_never_exercised_early_is_the_european_option() {
    for numbers in [
        [1.0, 100.0, 100.0, 0.03, 0.0, 0.2, 1.0],
        [1.0, 100.0, 100.0, 0.0, -0.02, 0.2, 1.0],
        [-1.0, 100.0, 120.0, 0.0, 0.03, 0.2, 1.0],
        [-1.0, 100.0, 120.0, -0.02, -0.01, 0.2, 1.0],
    ] {
        let option = option(numbers);
        assert_eq!(value(&option).price.to_bits(), european(&option).to_bits(), "{option:?}");
    }
}

/// Random parameters from the allowed ranges give a value, or an error with a reason. The value is at least that of
/// exercise and of the European option.
#[test]
fn any_numbers_have_a_value_or_a_reason() {
    let mut state = 7_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let (mut refused, mut unsettled, cases) = (0, 0, if crate::is_long() { 2_000 } else { 250 });
    for number in 0..cases {
        let wide = number % 2 == 0;
        let mut ten_to = |low: f64, high: f64| {
            warptape_kernels::math::exp(std::f64::consts::LN_10 * (low + (high - low) * uniform()))
        };
        let strike = ten_to(-2.0, 4.0);
        let spot = if wide { ten_to(-12.0, 15.0) } else { strike * ten_to(-0.5, 0.5) };
        let volatility = if wide { ten_to(-6.0, 2.0) } else { ten_to(-2.0, 0.3) };
        let years = if wide { ten_to(-8.5, 1.77) } else { ten_to(-4.0, 1.5) };
        let scale = if wide { ten_to(-3.0, 1.0) } else { ten_to(-3.0, -0.7) };
        let [rate, carry] = [0, 1].map(|_| scale * (2.0 * uniform() - if wide { 1.0 } else { 0.2 }));
        let sign = if uniform() < 0.5 { 1.0 } else { -1.0 };
        let option = option([sign, spot, strike, rate, carry, volatility, years]);
        match option.value(Isa::detect(), number % 3 == 0) {
            Ok(AmericanValue { price, .. }) => {
                assert!(price >= pays(&option) && price >= european(&option), "{option:?}: {price}");
            }
            Err(AmericanError::TwoBoundaries { .. }) => refused += 1,
            Err(AmericanError::Unsettled) => {
                println!("{option:?} does not settle");
                unsettled += 1;
            }
            Err(AmericanError::Parameter(error)) => panic!("{option:?}: {error}"),
        }
    }
    println!("of {cases}, {refused} have two boundaries, {unsettled} do not settle");
    assert!(refused > 0 && unsettled == 0, "{refused} refused, {unsettled} unsettled");
}

/// Options that need more than one equation to converge.
#[test]
fn a_boundary_that_does_not_settle_by_slopes_or_from_above_settles_by_values() {
    for numbers in [SLOPES_UNSETTLED, [1.0, 0.1, 0.1, -1.448, 0.7086, 0.7243, 53.5]] {
        let option = option(numbers);
        let AmericanValue { price, greeks } = value(&option);
        assert!(price >= pays(&option) && price >= european(&option), "{option:?}: {price}");
        let delta = greeks.expect("wanted").delta;
        let of_spot = |spot| {
            let market = AssetMarket { spot, ..option.market };
            value(&AmericanOption { market, ..option }).price
        };
        let step = 1e-4 * option.market.spot;
        let slope = (of_spot(option.market.spot + step) - of_spot(option.market.spot - step)) / (2.0 * step);
        assert!((slope - delta).abs() < 1e-5, "{option:?}: {delta}, but prices say {slope}");
    }
}

/// The price certainly falls to the range of exercise long before expiry. The option is worth as much as one without
/// expiry, which is `(1 − b)·(S/b)^−λ` in strikes.
#[test]
#[expect(clippy::disallowed_methods, reason = "the reference is compared within a tolerance")]
fn long_before_expiry_an_option_that_is_surely_exercised_is_the_endless_one() {
    for [spot, rate, carry, volatility, years] in [
        [1.5, 0.02, 0.15, 0.003, 20.0],
        [3.0, 0.02, 0.15, 0.01, 30.0],
        [30.0, 4.36, 5.76, 1.1e-5, 3.76],
        [5.0, 1.0, 2.5, 0.5, 45.0],
    ] {
        let endless = |rate: f64, volatility: f64| {
            let variance = volatility * volatility;
            let drift = rate - carry - 0.5 * variance;
            let power = 2.0 * rate / ((drift * drift + 2.0 * rate * variance).sqrt() - drift);
            let level = power / (power + 1.0);
            (power, (1.0 - level) * (spot / level).powf(-power))
        };
        let (power, price) = endless(rate, volatility);
        let slope = |by: [f64; 2], step: f64| {
            let [(_, up), (_, down)] =
                [1.0, -1.0].map(|side| endless(rate + side * by[0], volatility + side * by[1]));
            (up - down) / (2.0 * step)
        };
        let put = option([-1.0, spot, 1.0, rate, carry, volatility, years]);
        let found = value(&put);
        assert!((found.price - price).abs() < 1e-10, "{put:?}: {found:?}, not {price}");
        let AmericanGreeks { delta, gamma, vega, theta, rho, .. } = found.greeks.expect("wanted");
        let of_volatility = 1e-4 * volatility;
        for (name, found, exact, unit) in [
            ("delta", delta, -power * price / spot, 1.0),
            ("gamma", gamma, power * (power + 1.0) * price / (spot * spot), 1.0),
            ("vega", vega, slope([0.0, of_volatility], of_volatility), 1.0),
            ("theta", theta, 0.0, 1.0),
            ("rho", rho, slope([1e-6, 0.0], 1e-6), years),
        ] {
            assert!((found - exact).abs() < 1e-6 * unit, "{put:?}: {name} is {found}, not {exact}");
        }
    }
}

/// The value equals the payoff of exercise on both sides of the boundary, and has the same slope.
#[test]
fn the_value_touches_what_exercise_pays() {
    let of_spot = |spot: f64| value(&option([-1.0, spot, 100.0, 0.05, 0.02, 0.25, 1.0]));
    let (mut exercised, mut held) = (50.0, 100.0);
    for _ in 0..12 {
        let middle = 0.5 * (exercised + held);
        let is_exercised = of_spot(middle).greeks.expect("wanted").gamma == 0.0;
        if is_exercised { exercised = middle } else { held = middle }
    }
    // The spot differs from the boundary by about a ten-thousandth of it: nearer to it, vega and rho would be means of
    // both sides.
    let AmericanValue { price, greeks } = of_spot(held);
    let AmericanGreeks { delta, gamma, vega, theta, rho, .. } = greeks.expect("wanted");
    assert!(price - (100.0 - held) < 1e-5 && (delta + 1.0).abs() < 1e-3, "{price} {delta} at {held}");
    // The equation of Black and Scholes has θ = 0 there.
    let expected = 2.0 * (0.05 * 100.0 - 0.02 * held) / (0.25 * 0.25 * held * held);
    assert!((gamma / expected - 1.0).abs() < 0.01, "{gamma} instead of {expected}");
    assert!(vega.abs() < 0.1 && rho.abs() < 0.1 && theta.abs() < 0.01, "{vega} {rho} {theta}");
}

#[test]
fn what_instructions_are_used_does_not_show() {
    for option in some_options() {
        let baseline = option.value(Isa::Baseline, true);
        for isa in Isa::supported() {
            assert_eq!(option.value(isa, true), baseline, "{option:?} by {isa:?}");
        }
    }
}

#[test]
fn two_boundaries_are_refused_by_name() {
    for numbers in [[-1.0, 100.0, 100.0, -0.01, -0.03, 0.2, 1.0], [1.0, 100.0, 100.0, -0.03, -0.01, 0.2, 1.0]]
    {
        let error = option(numbers).value(Isa::Baseline, false).expect_err("there are two");
        assert!(error.to_string().contains("paths_max"), "{error}");
        assert_eq!(option(numbers).check().expect_err("known before"), error);
    }
    let error = option([1.0, 100.0, -1.0, 0.0, 0.0, 0.2, 1.0]).check().expect_err("no strike");
    assert!(matches!(error, AmericanError::Parameter(ref error) if error.field == "strike"), "{error}");
}

/// A stored boundary gives the values of full valuations at any spot, bit for bit, and its slope is delta.
#[test]
fn a_held_boundary_values_any_spot() {
    for numbers in [
        [-1.0, 100.0, 100.0, 0.03, 0.01, 0.2, 0.5],
        [1.0, 100.0, 110.0, 0.03, 0.06, 0.3, 2.0],
        [1.0, 100.0, 110.0, 0.03, 0.0, 0.3, 2.0],
        [-1.0, 1.5, 1.0, 0.02, 0.15, 0.003, 20.0],
    ] {
        let held = option(numbers);
        let boundary = held.boundary(Isa::detect()).expect("it settles");
        let spots: Vec<f64> =
            (0..70).map(|number| held.market.spot * (0.5 + f64::from(number) / 60.0)).collect();
        let found = boundary.values(Isa::detect(), &spots);
        for (&spot, found) in spots.iter().zip(&found) {
            let market = AssetMarket { spot, ..held.market };
            let whole = AmericanOption { market, ..held }.value(Isa::detect(), false).expect("a value").price;
            assert_eq!(*found, whole, "{numbers:?} at {spot}");
        }
        let delta = value(&held).greeks.expect("wanted").delta;
        assert!((boundary.delta(Isa::detect()) - delta).abs() < 1e-9, "{numbers:?}");
    }
}
