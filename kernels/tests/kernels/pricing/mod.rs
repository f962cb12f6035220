//! Prices against QuantLib's and against exact ones, written by `tests/scripts/make_risk_fixtures.py`.

mod american;
mod american_greeks;
mod basket;
mod basket_greeks;
mod black_scholes;
mod device;
mod greeks;
mod sampling;
mod simulation;

use std::io::Read;
use std::path::Path;

/// The rows of a fixture, without its header.
fn fixture<const N: usize>(name: &str) -> Vec<[f64; N]> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../tests/fixtures/{name}.csv.gz"));
    let mut text = String::new();
    let file = std::fs::File::open(path).expect("the fixture is there");
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("it is text");
    let row = |line: &str| {
        let numbers: Vec<f64> = line.split(',').map(|number| number.parse().expect("a number")).collect();
        numbers.try_into().expect("all columns")
    };
    text.lines().skip(1).map(row).collect()
}
