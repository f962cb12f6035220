//! Estimated cost of a request before it is admitted: time of one core, by the kind of its units and their greatest
//! number.
//!
//! The rates are not measured on this machine, so that the same request is admitted or refused everywhere. Those of
//! options, paths, positions and rules are about three times the time of one core with AVX-512 (docs/benchmarks.md).
//! One core without AVX2 takes about that time. The others are guesses: nobody has measured them.

use warptape_kernels::pricing::BLOCK_SAMPLES;

/// An option in closed form with its Greeks.
const OPTION_NS: u64 = 250;
/// A volatility implied by a price.
const IMPLIED_NS: u64 = 2_500;
/// A step of a path.
const STEP_NS: u64 = 10;
/// Paths with Greeks, relative to those without.
const GREEKS_FACTOR: u64 = 4;
/// A date of a pilot path, in the search for the exercise rule.
const PILOT_NS: u64 = 40;
/// An American option by its exercise boundary, with Greeks.
const BOUNDARY_NS: u64 = 20_000_000;
/// An American option in a scenario by a known boundary.
const PREMIUM_NS: u64 = 60_000;
/// A position in a scenario.
const POSITION_NS: u64 = 40;
/// A profit in the sort of profits.
const ORDERED_NS: u64 = 300;
/// A position of a book with parametric risk.
const PARAMETRIC_NS: u64 = 20;
/// A product in the solver of an optimisation, which takes some dozens of factorisations.
const SOLVER_NS: u64 = 100;
/// A product of a covariance.
const PRODUCT_NS: u64 = 2;
/// A rule on a bar.
const BAR_NS: u64 = 10;

/// The greatest estimate.
const COST_NS_MAX: u64 = i64::MAX as u64;

/// Cost of options in closed form.
pub(super) fn options(count: usize) -> u64 {
    count as u64 * OPTION_NS
}

/// Cost of volatilities implied by prices.
pub(super) fn implied(count: usize) -> u64 {
    count as u64 * IMPLIED_NS
}

/// Cost of blocks of samples, with paths of `steps` steps.
pub(super) fn blocks(blocks: u64, steps: u64, has_greeks: bool) -> u64 {
    let factor = if has_greeks { GREEKS_FACTOR } else { 1 };
    product(&[blocks, BLOCK_SAMPLES, steps, STEP_NS, factor])
}

/// Cost of finding the exercise rule from blocks of pilot paths.
pub(super) fn exercise(dates: u64, blocks: u64) -> u64 {
    product(&[dates, blocks, BLOCK_SAMPLES, PILOT_NS])
}

/// Cost of an American option by its exercise boundary.
pub(super) fn boundary() -> u64 {
    BOUNDARY_NS
}

/// Cost of revaluing positions in scenarios.
pub(super) fn revaluation(positions: usize, scenarios: u64) -> u64 {
    product(&[positions as u64, scenarios, POSITION_NS])
}

/// Cost of revaluing American options in scenarios. Boundaries are found anew if a scenario moves more than spots.
pub(super) fn early_exercise(options: usize, scenarios: u64, are_anew: bool) -> u64 {
    let each_ns = if are_anew { BOUNDARY_NS } else { PREMIUM_NS };
    product(&[options as u64, scenarios, each_ns]).saturating_add(product(&[options as u64, BOUNDARY_NS]))
}

/// Cost of contracts one by one.
pub(super) fn contracts(closed: usize, americans: usize) -> u64 {
    options(closed).saturating_add(product(&[americans as u64, BOUNDARY_NS]))
}

/// Cost of sorting the profits of books.
pub(super) fn ordering(books: usize, scenarios: u64) -> u64 {
    product(&[books as u64, scenarios, ORDERED_NS])
}

/// Cost of parametric risk.
pub(super) fn parametric(books: usize, positions: usize, assets: usize) -> u64 {
    product(&[books as u64, positions as u64 + assets.pow(2) as u64, PARAMETRIC_NS])
}

/// Cost of the weights of `assets` assets, and of a covariance of `returns` returns.
pub(super) fn optimisation(assets: usize, returns: usize) -> u64 {
    product(&[assets.pow(3) as u64, SOLVER_NS]).saturating_add(product(&[
        assets as u64,
        returns as u64,
        PRODUCT_NS,
    ]))
}

/// Cost of trading rules on bars.
pub(super) fn sweep(rules: usize, bars: usize) -> u64 {
    product(&[rules as u64, bars as u64, BAR_NS])
}

fn product(factors: &[u64]) -> u64 {
    factors.iter().fold(1, |product, factor| u64::saturating_mul(product, *factor)).min(COST_NS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Other requests wait for a unit that cannot be cut. The largest of each kind takes at most seconds of one lane.
    #[test]
    fn the_longest_unit_is_bounded() {
        let longest = [
            blocks(1, 2 * 65_536, true),
            exercise(1, 128),
            revaluation(8_000, 64),
            ordering(1, 1 << 24),
            parametric(1_000, 1_048, 256),
            optimisation(256, 256 * 4_096),
            sweep(8, 2_000_000),
        ];
        assert!(longest.iter().all(|&unit_ns| unit_ns < 6_000_000_000), "{longest:?}");
    }

    #[test]
    fn the_greatest_estimate_is_a_number() {
        assert_eq!(blocks(u64::MAX, u64::MAX, true), COST_NS_MAX);
    }
}
