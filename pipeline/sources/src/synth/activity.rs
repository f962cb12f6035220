//! Distribution of trading: Zipf's law over symbols and a U-shape over the day.

use super::arithmetic::{exp, ln};
use super::random::Random;

const DAY_NS: i64 = 86_400_000_000_000;

/// Returns the activity at a time of day, with mean 1 over the day: 1.8 at midnight UTC, 0.6 at noon.
pub(super) fn activity(time_ns: i64) -> f64 {
    let of_day = time_ns.rem_euclid(DAY_NS) as f64 / DAY_NS as f64;
    let from_noon = 2.0 * of_day - 1.0;
    0.6 + 1.2 * from_noon * from_noon
}

/// Draws symbols with fixed unequal probabilities in constant time. Uses Walker's alias method with the tables of M. D.
/// Vose, "A linear algorithm for generating random numbers with a given distribution", 1991.
pub(super) struct SymbolDraw {
    columns: Vec<AliasColumn>,
}

/// One column of the table; all are drawn equally often.
struct AliasColumn {
    /// Share of the column's own symbol, out of 2³².
    own_below: u32,
    /// Symbol that has the rest of the column.
    alias: u32,
}

impl SymbolDraw {
    /// Creates a table in which the n-th symbol has a weight of `1/nˣ`, n from 1.
    pub(super) fn zipf(symbols: u32, exponent: f64) -> SymbolDraw {
        let weights: Vec<f64> = (1..=symbols).map(|rank| exp(-exponent * ln(f64::from(rank)))).collect();
        let mean = weights.iter().sum::<f64>() / f64::from(symbols);
        let mut shares: Vec<f64> = weights.iter().map(|weight| weight / mean).collect();
        let mut columns: Vec<AliasColumn> =
            (0..symbols).map(|alias| AliasColumn { own_below: u32::MAX, alias }).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..symbols).partition(|&symbol| shares[symbol as usize] < 1.0);
        while let (Some(&giver), Some(taker)) = (large.last(), small.pop()) {
            let share = shares[taker as usize];
            columns[taker as usize] =
                AliasColumn { own_below: (share * 4_294_967_296.0) as u32, alias: giver };
            shares[giver as usize] -= 1.0 - share;
            if shares[giver as usize] < 1.0 {
                large.pop();
                small.push(giver);
            }
        }
        // Columns that remain because of rounding stay whole.
        SymbolDraw { columns }
    }

    /// Draws a symbol's index.
    pub(super) fn draw(&self, random: &mut Random) -> usize {
        let bits = random.next_u64();
        let index = ((bits >> 32) * self.columns.len() as u64) >> 32;
        let column = &self.columns[index as usize];
        if (bits as u32) < column.own_below { index as usize } else { column.alias as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activity_is_a_u_with_mean_one() {
        for (time_ns, expected) in [(0, 1.8), (DAY_NS / 2, 0.6), (7 * DAY_NS + DAY_NS / 4, 0.9)] {
            assert!((activity(time_ns) - expected).abs() < 1e-12, "{}", activity(time_ns));
        }
        let mean = (0..10_000).map(|step| activity(step * (DAY_NS / 10_000))).sum::<f64>() / 10_000.0;
        assert!((mean - 1.0).abs() < 1e-3, "{mean}");
    }

    #[expect(clippy::disallowed_methods, reason = "the law as it is written, to a count's deviation")]
    fn check_zipf(symbols: u32, exponent: f64) {
        let draw = SymbolDraw::zipf(symbols, exponent);
        let mut random = Random::seeded(11);
        let draws = 400_000;
        let mut counts = vec![0_u32; symbols as usize];
        for _ in 0..draws {
            counts[draw.draw(&mut random)] += 1;
        }
        let total: f64 = (1..=symbols).map(|rank| f64::from(rank).powf(-exponent)).sum();
        for (rank, count) in (1..=symbols).zip(counts) {
            let expected = f64::from(draws) * f64::from(rank).powf(-exponent) / total;
            // The tolerance is six standard deviations of a count.
            let tolerance = 6.0 * expected.sqrt() + 1.0;
            assert!(
                (f64::from(count) - expected).abs() < tolerance,
                "rank {rank}: {count} against {expected}"
            );
        }
    }

    #[test]
    fn symbols_are_drawn_by_zipf_s_law() {
        check_zipf(1, 1.0);
        check_zipf(2, 1.0);
        check_zipf(100, 1.0);
        check_zipf(1_000, 0.7);
        check_zipf(17, 0.0);
        check_zipf(50, 4.0);
    }
}
