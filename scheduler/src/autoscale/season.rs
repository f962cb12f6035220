//! Seasons: the number of windows after which a pattern repeats, and the shape of the pattern.
//!
//! The season is the lag of a peak in the autocorrelation of arrivals. Behind its first zero, it is the first peak
//! about as high as the highest. The history must contain three seasons. The peak must reach five standard deviations
//! of white noise; one is 1 ÷ √pairs.

/// Most windows of a search.
pub const HISTORY_WINDOWS: usize = 720;
/// Longest season that a search finds: the searched windows contain three of them.
pub const FOUND_WINDOWS_MAX: usize = HISTORY_WINDOWS / SEASONS_MIN;
/// Seasons that must have passed.
const SEASONS_MIN: usize = 3;
/// Least number of windows for a search.
const HISTORY_MIN: usize = 24;
/// Least height of a peak, in thousandths of the variance, however many pairs there are.
const CORRELATION_MIN: i64 = 300;
/// Least height of a peak in standard deviations of white noise, squared.
const DEVIATIONS_SQUARED: i64 = 25;
/// A peak with this percentage of the highest counts as equally high: multiples of a season have peaks as well.
const ALIKE_PERCENT: i64 = 85;
/// Bits of the values in products, so that sums of the products stay below 2^63.
const VALUE_BITS: u32 = 20;

/// The length of the season in a history of windows; `None` if there is none.
pub fn find(history: &[i64]) -> Option<usize> {
    let values = centred(history)?;
    let longest = values.len() / SEASONS_MIN;
    let product = |lag: usize| -> i64 {
        let pairs = values.iter().zip(&values[lag..]);
        pairs.map(|(one, other)| one * other).sum()
    };
    let variance = product(0);
    let number = values.len() as i128;
    // Correlations in thousandths, each divided by the number of its pairs.
    let correlation = |lag: usize| -> i64 {
        let pairs = (values.len() - lag) as i128;
        (i128::from(product(lag)) * number * 1_000 / (pairs * i128::from(variance))) as i64
    };
    let correlations: Vec<i64> = (0..=longest + 1).map(correlation).collect();
    let fallen = correlations.iter().position(|found| *found <= 0)?;
    let highest = correlations.get(fallen..=longest)?.iter().copied().max()?;
    let is_alike = |lag: &usize| correlations[*lag] * 100 >= highest * ALIKE_PERCENT;
    let first = (fallen..=longest).find(is_alike)?;
    // The top of the first peak; noise may add smaller ones beside it.
    let hill = first..=(first + first / 4).min(longest);
    let lag = hill.rev().max_by_key(|lag| correlations[*lag])?;
    if correlations[lag + 1] > correlations[lag] {
        return None;
    }
    let (found, pairs) = (correlations[lag], (values.len() - lag) as i64);
    let is_above_noise = found * found * pairs >= DEVIATIONS_SQUARED * 1_000_000;
    (found >= CORRELATION_MIN && is_above_noise).then_some(lag)
}

/// Values less their mean, scaled to few bits; `None` if there are too few, or if all are equal.
fn centred(history: &[i64]) -> Option<Vec<i64>> {
    if history.len() < HISTORY_MIN {
        return None;
    }
    let mean = mean(history);
    let mut values: Vec<i64> = history.iter().map(|value| value - mean).collect();
    let greatest = values.iter().map(|value| value.abs()).max().filter(|greatest| *greatest > 0)?;
    values
        .iter_mut()
        .for_each(|value| *value = ((i128::from(*value) << VALUE_BITS) / i128::from(greatest)) as i64);
    Some(values)
}

fn mean(values: &[i64]) -> i64 {
    let sum: i128 = values.iter().map(|value| i128::from(*value)).sum();
    (sum / values.len() as i128) as i64
}

/// The level of a history, and the difference of each window of a season from it, by the window's number modulo the
/// season. Only the newest whole seasons count. The last window of the history has the number `last_number`.
///
/// # Panics
/// The history is shorter than a season.
pub fn profile(history: &[i64], last_number: i64, season: usize) -> (i64, Vec<i64>) {
    let whole = history.len() / season * season;
    assert!(whole > 0, "a profile needs a season");
    let history = &history[history.len() - whole..];
    let level = mean(history);
    let first_number = last_number - whole as i64 + 1;
    let mut profile = vec![0; season];
    for (index, slot) in profile.iter_mut().enumerate() {
        let offset = (index as i64 - first_number).rem_euclid(season as i64) as usize;
        let of_phase: Vec<i64> = history[offset..].iter().step_by(season).copied().collect();
        *slot = mean(&of_phase) - level;
    }
    (level, profile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autoscale::tests::noise;

    fn planted(season: usize, windows: usize, swing: i64, seed: u64) -> Vec<i64> {
        let of = |number: usize| {
            let is_high = number % season < season / 2;
            10_000_000 + if is_high { swing } else { -swing } + noise(seed, number as i64, 1_000_000)
        };
        (0..windows).map(of).collect()
    }

    #[test]
    fn planted_seasons_are_found() {
        for (season, windows) in [(8, 64), (24, 96), (60, 240), (200, 720), (230, 720)] {
            for seed in 0..20 {
                let found = find(&planted(season, windows, 3_000_000, seed));
                assert_eq!(found, Some(season), "of {windows} windows, seed {seed}");
            }
        }
        // One window of twelve is high.
        let spikes: Vec<i64> =
            (0..120).map(|number| if number % 12 == 5 { 9_000_000 } else { 1_000_000 }).collect();
        assert_eq!(find(&spikes), Some(12));
    }

    #[test]
    fn there_is_no_season_in_noise_in_a_line_or_in_too_few_windows() {
        let found = (0..200).filter(|seed| find(&planted(24, 720, 0, *seed)).is_some()).count();
        assert_eq!(found, 0);
        assert_eq!(find(&[5; 720]), None);
        assert_eq!(find(&(0..720).collect::<Vec<_>>()), None);
        assert_eq!(find(&planted(24, 48, 3_000_000, 1)), None, "two seasons are none yet");
    }

    #[test]
    fn a_profile_is_by_the_numbers_of_windows() {
        // Windows 8 to 15; the newest six count.
        let history = [99, 99, 4, 1, 7, 6, 1, 5];
        let (level, profile) = profile(&history, 15, 3);
        assert_eq!(level, 4);
        // Windows 12 and 15, 10 and 13, 11 and 14.
        assert_eq!(profile, [2, 1, -3]);
    }
}
