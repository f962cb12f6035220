//! Errors of the functions in units in the last place, measured with `tests/fixtures/math.csv.gz`.

use std::io::Read;
use std::path::Path;

use super::exp::exp_less_1;
use super::{exp, inverse_normal_cdf, normal_cdf, normal_density};

/// Argument and exact value in two parts, for one function.
fn exact_values(function: &str) -> Vec<[f64; 3]> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/math.csv.gz");
    let mut text = String::new();
    let file = std::fs::File::open(path).expect("the fixture is there");
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("it is text");
    let row = |line: &str| {
        let (name, numbers) = line.split_once(',')?;
        let mut numbers = numbers.split(',').map(|number| number.parse().expect("a number"));
        (name == function).then(|| std::array::from_fn(|_| numbers.next().expect("three numbers")))
    };
    text.lines().filter_map(row).collect()
}

/// Checks that the largest error is below `bound` and near it; results that are not normal numbers are left out.
fn check(name: &str, function: fn(f64) -> f64, bound: f64) {
    let mut worst = (0.0, 0.0);
    let rows = exact_values(name);
    assert!(rows.len() > 1_400);
    for [x, high, low] in rows {
        let unit = f64::from_bits(high.abs().to_bits() + 1) - high.abs();
        let error = (((function(x) - high) - low) / unit).abs();
        if high.is_normal() && error > worst.0 {
            worst = (error, x);
        }
    }
    println!("{name}: largest error {} ulp at {:e}", worst.0, worst.1);
    assert!(worst.0 < bound, "{name}: {} ulp at {:e}", worst.0, worst.1);
    assert!(worst.0 > 0.45 && worst.0 > 0.5 * bound, "{name}: the bound is no measurement: {}", worst.0);
}

#[test]
fn errors_stay_below_their_bounds() {
    check("exp", exp, super::exp::ULP_ERROR_MAX);
    check("normal_cdf", normal_cdf, super::normal::CDF_ULP_ERROR_MAX);
    check("inverse_normal_cdf", inverse_normal_cdf, super::normal::INVERSE_ULP_ERROR_MAX);
}

/// Compares `exp_less_1` with its series for small arguments, and with `exp` where subtracting 1 costs no digits.
#[test]
fn exp_less_1_is_accurate_near_0_and_far_from_it() {
    let mut worst = 0.0_f64;
    for step in 1..200_000 {
        let x = 40.0 * (f64::from(step) / 200_000.0 - 0.5);
        let small = x / f64::from(1 + step % 1_000) / 40.0;
        let series = (1..=24).rev().fold(0.0, |rest, n| small / f64::from(n) * (1.0 + rest));
        worst = worst.max((exp_less_1(small) / series - 1.0).abs());
        if x.abs() > 0.7 {
            worst = worst.max((exp_less_1(x) / (exp(x) - 1.0) - 1.0).abs());
        }
    }
    println!("largest error {worst:e}");
    assert!(worst < 8e-16, "{worst:e}");
    assert_eq!(exp_less_1(0.0), 0.0);
    assert_eq!(exp_less_1(f64::NEG_INFINITY), -1.0);
    assert_eq!(exp_less_1(f64::INFINITY), f64::INFINITY);
    assert!(exp_less_1(f64::NAN).is_nan());
}

#[test]
fn special_values_of_exp() {
    assert_eq!(exp(0.0), 1.0);
    assert_eq!(exp(-0.0), 1.0);
    assert_eq!(exp(f64::INFINITY), f64::INFINITY);
    assert_eq!(exp(f64::NEG_INFINITY), 0.0);
    assert!(exp(f64::NAN).is_nan());
    // The last argument with a finite result, and the first without; then the same at the other end.
    assert!(exp(709.782_712_893_384).is_finite());
    assert_eq!(exp(709.782_712_893_384_1), f64::INFINITY);
    assert_eq!(exp(-745.133_219_101_941_1).to_bits(), 1);
    assert_eq!(exp(-745.133_219_101_941_2), 0.0);
}

#[test]
fn special_values_of_the_normal_distribution() {
    assert!((normal_cdf(0.0) - 0.5).abs() < 3e-16);
    assert_eq!(normal_cdf(f64::INFINITY), 1.0);
    assert_eq!(normal_cdf(f64::NEG_INFINITY), 0.0);
    assert!(normal_cdf(f64::NAN).is_nan());
    assert_eq!(normal_density(0.0), 0.398_942_280_401_432_7);
    assert_eq!(normal_density(f64::INFINITY), 0.0);
    assert_eq!(inverse_normal_cdf(0.5), 0.0);
    assert_eq!(inverse_normal_cdf(0.0), f64::NEG_INFINITY);
    assert_eq!(inverse_normal_cdf(1.0), f64::INFINITY);
    for p in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        assert!(inverse_normal_cdf(p).is_nan(), "{p}");
    }
}

#[test]
fn the_inverse_is_odd_and_rises() {
    for step in 1..2_000 {
        let p = f64::from(step) / 4_000.0;
        let upper = 1.0 - p;
        assert_eq!(inverse_normal_cdf(1.0 - upper), -inverse_normal_cdf(upper));
        assert!(inverse_normal_cdf(p) < inverse_normal_cdf(p + 1.0 / 8_000.0));
    }
}
