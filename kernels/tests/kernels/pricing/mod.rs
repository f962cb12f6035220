//! Prices, compared with QuantLib's and with exact ones (written by `tests/scripts/make_risk_fixtures.py`).

mod american;
mod american_greeks;
mod basket;
mod basket_greeks;
mod black_scholes;
mod device;
mod early_exercise;
mod greeks;
mod sampling;
mod simulation;

/// The rows of a fixture, without its header.
fn fixture<const N: usize>(compressed: &[u8]) -> Vec<[f64; N]> {
    let text = crate::text_of(compressed);
    let row = |line: &str| {
        let numbers: Vec<f64> = line.split(',').map(|number| number.parse().expect("a number")).collect();
        numbers.try_into().expect("all columns")
    };
    text.lines().skip(1).map(row).collect()
}
