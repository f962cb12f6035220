//! The value of exercise in the first years of a long option, in closed form. In these years its boundary is that of an
//! option without expiry, a constant `b`. This module does not know curves.
//!
//! With `x = ln(S/b)`, a drift μ of the price's logarithm and `γ² = μ² + 2ρσ²`, a leg of the premium is
//!
//! ```text
//! J(x) = ∫₀ʰ ρ·e^{−ρv}·Φ(−(x + μv)/(σ√v)) dv = −e^{−ρh}·Φ(−(x + μh)/(σ√h)) + ((γ − μ)·A + (γ + μ)·C) / 2γ,
//! A = e^{−(μ + γ)x/σ²}·Φ((γh − x)/(σ√h)),   C = e^{(γ − μ)x/σ²}·Φ(−(γh + x)/(σ√h))      where x ≥ 0,
//! ```
//!
//! by parts and by the time at which a Brownian motion first reaches a level (Borodin and Salminen, *Handbook of
//! Brownian Motion*, 2002, II.2). If x < 0, A and C are those of −x and −μ, and
//! `J(x) = 1 − e^{−ρh}·Φ(…) − ((γ + μ)·A + (γ − μ)·C) / 2γ`.

use super::points::{Premium, Put};
use crate::math::{exp, mills, normal_cdf};

/// One leg of the premium, and its derivatives by the logarithm of the spot.
struct Leg {
    value: f64,
    slope: f64,
    curvature: f64,
}

/// The premium of the endless years, with `ln b`: earnings on cash minus those of the asset. γ is the same in both
/// legs.
pub fn premium(put: &Put, ln_level: f64) -> Premium {
    let Put { spot, rate, carry, volatility, endless_years, .. } = *put;
    let variance = volatility * volatility;
    let drift = put.drift();
    let root = (drift * drift + 2.0 * rate * variance).sqrt();
    let leg = |earned, drift| leg(earned, drift, root, put.ln_spot - ln_level, endless_years, volatility);
    let (cash, asset) = (leg(rate, drift), leg(carry, drift + variance));
    Premium {
        amount: cash.value - spot * asset.value,
        delta: cash.slope / spot - asset.value - asset.slope,
        gamma: (cash.curvature - cash.slope) / (spot * spot) - (asset.slope + asset.curvature) / spot,
    }
}

/// The leg with ρ = `earned`.
fn leg(earned: f64, drift: f64, root: f64, distance: f64, years: f64, volatility: f64) -> Leg {
    let (variance, spread) = (volatility * volatility, volatility * years.sqrt());
    // (γ + μ)/σ² and (γ − μ)/σ², whose product is 2ρ/σ²: neither loses digits.
    let sum = if drift < 0.0 { 2.0 * earned / (root - drift) } else { (root + drift) / variance };
    let difference = if drift < 0.0 { (root - drift) / variance } else { 2.0 * earned / (root + drift) };
    let is_above = distance >= 0.0;
    let (near, far) = if is_above { (sum, difference) } else { (difference, sum) };
    let (sign, begun) = if is_above { (1.0, 0.0) } else { (-1.0, 1.0) };
    let away = distance.abs();
    let deviations = (distance + drift * years) / spread;
    let reached = exp(-(near * away)) * normal_cdf((root * years - away) / spread);
    let returned =
        exp(-(earned * years + 0.5 * (deviations * deviations))) * mills((root * years + away) / spread);
    let crossed = 0.5 * variance / root * (far * reached + near * returned);
    Leg {
        value: begun - exp(-(earned * years)) * normal_cdf(-deviations) + sign * crossed,
        slope: -(earned / root) * (reached - returned),
        curvature: sign * (earned / root) * (near * reached + far * returned),
    }
}

#[cfg(test)]
mod tests {
    use super::super::boundary::{Host, settle_by_first_way};
    use super::super::points::{BY_SLOPES, BY_VALUES_BELOW};
    use super::*;
    use crate::isa::Isa;

    fn settled(put: &Put) -> (bool, Premium) {
        let found =
            settle_by_first_way(&[*put], &mut Host(Isa::detect())).unwrap_or_else(|never| match never {});
        let settled = found.expect("it settles")[0];
        (settled.is_exercised, settled.premium)
    }

    /// Compares both methods for an option with so few endless years that integrals over all years are accurate.
    #[test]
    fn the_closed_form_is_the_integral_over_the_endless_years() {
        // First, drifts due to the rates. Then, drifts due to the variance, with yields of either sign, for which no
        // curve is accurate to as many digits.
        for (rate, carry, volatility, tolerance) in [
            (0.02, 0.15, 0.03, 1e-9),
            (0.05, 0.08, 0.01, 1e-9),
            (1.0, 2.5, 0.7, 1e-9),
            (0.5, -0.4, 4.0, 1e-6),
            (0.3, 0.0, 3.0, 1e-6),
        ] {
            let mut worst = [0.0_f64; 3];
            let drift = Put::new(1.0, rate, carry, volatility, 1.0).drift();
            let curve_years = 40.0 / (rate + 0.5 * (drift / volatility) * (drift / volatility));
            let power = 2.0 * rate / ((drift * drift + 2.0 * rate * volatility * volatility).sqrt() - drift);
            for (times, away) in [2.5, 4.0, 5.5]
                .into_iter()
                .flat_map(|times| [-0.02, 0.001, 0.1, 0.5, 1.0, 1.5].map(|away| (times, away)))
            {
                let years = curve_years * times;
                // The spot is below the boundary, or above it by a part of the price's decrease.
                let spot = power / (power + 1.0) * exp(away * -drift * years);
                let way = if carry < 0.0 { BY_VALUES_BELOW } else { BY_SLOPES };
                let whole = Put { way, ..Put::new(spot, rate, carry, volatility, years) };
                let split = Put { years: curve_years, endless_years: years - curve_years, ..whole };
                let ((is_exercised, whole), (is_now, split)) = (settled(&whole), settled(&split));
                assert!(is_exercised == (away < 0.0) && is_now == is_exercised, "{spot}");
                let unit = f64::max(1.0, spot);
                let off = [
                    (whole.amount - split.amount) / unit,
                    whole.delta - split.delta,
                    (whole.gamma - split.gamma) * spot * volatility,
                ];
                for (worst, off) in worst.iter_mut().zip(off) {
                    *worst = worst.max(off.abs());
                }
            }
            println!(
                "{rate}, {carry}, {volatility}: amounts, deltas, gammas of a deviation off by {worst:?}"
            );
            let [amount, delta, gamma] = worst.map(|off| off / tolerance);
            assert!(
                amount < 1.0 && delta < 100.0 && gamma < 100.0,
                "{rate}, {carry}, {volatility}: {worst:?}"
            );
        }
    }
}
