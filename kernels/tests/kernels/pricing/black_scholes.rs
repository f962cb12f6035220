//! Tests of the closed form and of implied volatility.

use warptape_kernels::Isa;
use warptape_kernels::math::{exp, ln};
use warptape_kernels::pricing::{AssetMarket, Greeks, NoVolatility, OptionKind, Options, implied_volatility};

use super::fixture;

const NAMES: [&str; 8] = ["price", "delta", "gamma", "vega", "theta", "rho", "vanna", "volga"];

struct Row {
    given: [f64; 7],
    quantlib: [f64; 6],
    exact: [f64; 8],
}

fn rows() -> Vec<Row> {
    let row = |numbers: [f64; 21]| Row {
        given: std::array::from_fn(|i| numbers[i]),
        quantlib: std::array::from_fn(|i| numbers[7 + i]),
        exact: std::array::from_fn(|i| numbers[13 + i]),
    };
    fixture(include_bytes!("../../../../tests/fixtures/black_scholes.csv.gz")).into_iter().map(row).collect()
}

fn kind(sign: f64) -> OptionKind {
    if sign > 0.0 { OptionKind::Call } else { OptionKind::Put }
}

/// Some options for devices.
pub fn some_options() -> Options {
    options_of(&rows()[..150])
}

fn options_of(rows: &[Row]) -> Options {
    let mut options = Options::default();
    for Row { given: [sign, spot, strike, rate, dividend_yield, volatility, years], .. } in rows {
        let market = AssetMarket {
            spot: *spot,
            rate: *rate,
            dividend_yield: *dividend_yield,
            volatility: *volatility,
        };
        options.push(kind(*sign), &market, *strike, *years).expect("all in range");
    }
    options
}

pub fn columns(greeks: &Greeks) -> [&[f64]; 8] {
    [
        greeks.price(),
        greeks.delta(),
        greeks.gamma(),
        greeks.vega(),
        greeks.theta(),
        greeks.rho(),
        greeks.vanna(),
        greeks.volga(),
    ]
}

fn greeks_of(isa: Isa, rows: &[Row]) -> Greeks {
    let mut greeks = Greeks::default();
    greeks.add(isa, &options_of(rows), 0..rows.len());
    greeks
}

/// Reference sizes for the errors of the eight columns. Price, delta, gamma, vega and rho have a fixed sign, so their
/// errors are relative to themselves. Theta, vanna and volga pass through 0, where no sum is exact in its last digit.
/// Theta's error is relative to the sum of its terms' magnitudes; for the other two, each `d` counts with the magnitude
/// of its terms.
fn sizes(row: &Row) -> [f64; 8] {
    let [sign, spot, strike, rate, carry, volatility, years] = row.given;
    let [price, delta, gamma, vega, _, rho, ..] = row.exact;
    let (asset, cash) = (sign * delta * spot, sign * rho / years);
    let theta = 0.5 * vega * volatility / years + (carry * asset).abs() + (rate * cash).abs();
    let deviation = volatility * years.sqrt();
    let d =
        (ln(spot / strike).abs() + (rate - carry).abs() * years + 0.5 * deviation * deviation) / deviation;
    let vanna = vega / spot * d / deviation;
    [price, delta.abs(), gamma, vega, theta, rho.abs(), vanna, vega * d * d / volatility]
}

/// A tenth of the guaranteed tolerance: differences of two rounded legs have relative errors of up to 2e-12.
const EXACT_TOLERANCE: f64 = 1e-13;

#[test]
fn closed_form_agrees_with_exact_values() {
    let rows = rows();
    let greeks = greeks_of(Isa::detect(), &rows);
    for (column, found) in columns(&greeks).into_iter().enumerate() {
        let mut worst = (0.0, 0);
        for (number, (row, found)) in rows.iter().zip(found).enumerate() {
            worst = worst.max_by_error((found - row.exact[column]).abs() / sizes(row)[column], number);
        }
        println!("{}: {worst:?}", NAMES[column]);
        let given = rows[worst.1].given;
        assert!(worst.0 < EXACT_TOLERANCE, "{} of {given:?}: {:e}", NAMES[column], worst.0);
    }
}

/// If the deviation is so small that `d₁` and `d₂` are equal after rounding, an option has its value without
/// volatility.
#[test]
fn without_deviation_an_option_has_its_intrinsic_value() {
    for (volatility, years) in [(1e-6, 3e-9), (1e-6, 1e-6), (1e-6, 5e-5), (1e-5, 3e-9), (1e-4, 3e-9)] {
        for strike in [1e-12, 20.0, 99.9, 105.0, 200.0, 739.0, 1e15] {
            for sign in [1.0, -1.0] {
                let given = [sign, 100.0, strike, 0.0, 0.0, volatility, years];
                let row = Row { given, quantlib: [0.0; 6], exact: [0.0; 8] };
                let greeks = greeks_of(Isa::detect(), &[row]);
                let is_in = sign * (100.0 - strike) > 0.0;
                let (value, delta) = if is_in { (sign * (100.0 - strike), sign) } else { (0.0, 0.0) };
                assert_eq!(greeks.price(), [value], "{given:?}");
                assert!((greeks.delta()[0] - delta).abs() < 1e-15, "{given:?}: {greeks:?}");
                let others = columns(&greeks).into_iter().map(|column| column[0]);
                assert!(others.into_iter().all(f64::is_finite), "{given:?}: {greeks:?}");
            }
        }
    }
}

trait Worst {
    fn max_by_error(self, error: f64, row: usize) -> Self;
}

impl Worst for (f64, usize) {
    fn max_by_error(self, error: f64, row: usize) -> Self {
        if error > self.0 { (error, row) } else { self }
    }
}

#[test]
fn closed_form_agrees_with_quantlib() {
    let rows: Vec<Row> = rows();
    let greeks = greeks_of(Isa::detect(), &rows);
    let columns = columns(&greeks);
    let mut compared = 0;
    for column in 0..6 {
        let mut worst = (0.0, 0);
        for (number, row) in rows.iter().enumerate() {
            // The comparison skips rows in which QuantLib itself is inexact.
            let own_error = (row.quantlib[column] / row.exact[column] - 1.0).abs();
            if own_error < 5e-13 {
                compared += 1;
                worst =
                    worst.max_by_error((columns[column][number] / row.quantlib[column] - 1.0).abs(), number);
            }
        }
        println!("{}: {worst:?}", NAMES[column]);
        assert!(worst.0 < 1e-12, "{} of row {}: {:e}", NAMES[column], worst.1, worst.0);
    }
    println!("compared {compared}");
    assert!(compared > 6_000, "{compared} of 7,560");
}

#[test]
fn bits_are_the_same_for_all_instructions_and_cuts() {
    let rows = rows();
    let options = options_of(&rows);
    let whole = greeks_of(Isa::Baseline, &rows);
    let implied = |isa| {
        let mut volatilities = Vec::new();
        implied_volatility(isa, &options, 0..rows.len(), whole.price(), &mut volatilities);
        volatilities
    };
    let expected = implied(Isa::Baseline);
    for isa in Isa::supported() {
        assert_eq!(columns(&whole), columns(&greeks_of(isa, &rows)), "{isa:?}");
        assert_eq!(expected, implied(isa), "{isa:?}");
    }
    for part in [1, 7, 63, 64, 65, 599] {
        let mut greeks = Greeks::default();
        let mut volatilities = Vec::new();
        for first in (0..rows.len()).step_by(part) {
            let range = first..rows.len().min(first + part);
            greeks.add(Isa::detect(), &options, range.clone());
            implied_volatility(
                Isa::detect(),
                &options,
                range.clone(),
                &whole.price()[range],
                &mut volatilities,
            );
        }
        assert_eq!(whole, greeks, "in parts of {part}");
        assert_eq!(expected, volatilities, "in parts of {part}");
    }
}

#[test]
fn implied_volatility_of_a_price_is_the_volatility() {
    let mut rows = rows();
    // Further options far from the money, with very little and very much time, and exactly at the money.
    for (moneyness, deviation) in [
        (1.0, 1e-4),
        (1.0, 1e-2),
        (1.0, 0.5),
        (1.0, 4.0),
        (1.000_001, 1e-3),
        (0.999, 1e-2),
        (0.5, 0.05),
        (2.0, 0.05),
        (2.0, 0.08),
        (0.01, 0.5),
        (100.0, 0.5),
        (100.0, 3.0),
        (0.3, 6.0),
    ] {
        for sign in [1.0, -1.0] {
            // Only the price of an option out of the money determines the volatility precisely.
            if sign * (moneyness - 1.0) >= 0.0 {
                let given = [sign, 100.0, 100.0 * moneyness, 0.0, 0.0, deviation, 1.0];
                rows.push(Row { given, quantlib: [0.0; 6], exact: [0.0; 8] });
            }
        }
    }
    let greeks = greeks_of(Isa::detect(), &rows);
    let mut found = Vec::new();
    implied_volatility(Isa::detect(), &options_of(&rows), 0..rows.len(), greeks.price(), &mut found);
    let (mut worst, mut compared) = ((0.0, 0), 0);
    for (number, (row, found)) in rows.iter().zip(&found).enumerate() {
        let volatility = row.given[5];
        // A price does not determine its volatility if one rounding of it changes the volatility by more than 1e-10.
        let rounding = f64::EPSILON * greeks.price()[number] / greeks.vega()[number] / volatility;
        if rounding < 2e-12 {
            compared += 1;
            let found = found.unwrap_or_else(|error| panic!("row {number}, {:?}: {error}", row.given));
            worst = worst.max_by_error((found / volatility - 1.0).abs(), number);
        }
    }
    println!("{compared} of {}: {worst:?} {:?}", rows.len(), rows[worst.1].given);
    assert!(worst.0 < 1e-10, "row {}: {:e}, {:?}", worst.1, worst.0, rows[worst.1].given);
    assert!(compared > 560, "{compared}");
}

/// Rates for which forwards are too large for a number.
#[test]
fn a_forward_may_be_as_large_as_it_will() {
    let market = AssetMarket { spot: 100.0, rate: 10.0, dividend_yield: -10.0, volatility: 6.5 };
    let mut options = Options::default();
    for kind in [OptionKind::Put, OptionKind::Put, OptionKind::Call, OptionKind::Call] {
        options.push(kind, &market, 100.0, 60.0).unwrap();
    }
    let mut greeks = Greeks::default();
    greeks.add(Isa::detect(), &options, 0..1);
    let put = greeks.price()[0];
    let (asset, cash) = (100.0 * exp(600.0), 100.0 * exp(-600.0));
    assert!(put > 0.5 * cash && put < cash, "{put:e}");
    let mut found = Vec::new();
    implied_volatility(
        Isa::detect(),
        &options,
        0..4,
        &[put, 1.1 * cash, 0.9 * asset, 1.1 * asset],
        &mut found,
    );
    assert!((found[0].unwrap() / 6.5 - 1.0).abs() < 1e-10, "{:?}", found[0]);
    let expected = [NoVolatility::TooHigh, NoVolatility::TooLow, NoVolatility::TooHigh];
    assert_eq!(found[1..], expected.map(Err));
}

#[test]
fn a_price_without_a_volatility_says_why() {
    let mut options = Options::default();
    let market = AssetMarket { spot: 100.0, rate: 0.05, dividend_yield: 0.0, volatility: 0.2 };
    for _ in 0..6 {
        options.push(OptionKind::Call, &market, 90.0, 1.0).unwrap();
    }
    let least = 100.0 - 90.0 * exp(-0.05);
    let prices = [-1.0, least - 1e-9, 100.0, 1e300, f64::NAN, f64::INFINITY];
    let mut found = Vec::new();
    implied_volatility(Isa::detect(), &options, 0..6, &prices, &mut found);
    let expected = [
        NoVolatility::TooLow,
        NoVolatility::TooLow,
        NoVolatility::TooHigh,
        NoVolatility::TooHigh,
        NoVolatility::NotFinite,
        NoVolatility::NotFinite,
    ];
    assert_eq!(found, expected.map(Err));
}

/// If `σ√T` exceeds 4, one leg of the option in the money is almost 0, and keeps its digits.
#[test]
fn legs_that_are_nearly_nothing_keep_their_digits() {
    use warptape_kernels::math::{exp, ln, normal_cdf};
    let (spot, rate, dividend_yield) = (100.0, 0.03, 0.01);
    for volatility in [3.9, 4.5, 7.5, 12.0, 25.0, 60.0] {
        for (years, strike) in [(1.0, 60.0), (1.0, 100.0), (1.1, 160.0)] {
            let market = AssetMarket { spot, rate, dividend_yield, volatility };
            let mut options = Options::default();
            for kind in [OptionKind::Call, OptionKind::Put] {
                options.push(kind, &market, strike, years).expect("in range");
            }
            let mut greeks = Greeks::default();
            greeks.add(Isa::detect(), &options, 0..2);
            let deviation = volatility * f64::sqrt(years);
            let drift = (rate - dividend_yield + 0.5 * volatility * volatility) * years;
            let d1 = (ln(spot / strike) + drift) / deviation;
            let of_asset = -exp(-dividend_yield * years) * normal_cdf(-d1);
            let of_cash = years * strike * exp(-rate * years) * normal_cdf(d1 - deviation);
            // Both are of the order of exp(−d²/2), and so their precision is that of the square of d.
            let allowed = 1e-13 + 1e-15 * d1 * d1;
            for (found, expected) in [(greeks.delta()[1], of_asset), (greeks.rho()[0], of_cash)] {
                let off = (found / expected - 1.0).abs();
                assert!(
                    off < allowed,
                    "{market:?}, strike {strike}: {found} instead of {expected}, off by {off:e}"
                );
            }
        }
    }
}
