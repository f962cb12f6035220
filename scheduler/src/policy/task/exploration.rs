//! Exploration: a small share of choices is drawn at random among all alternatives. Each choice records its
//! probability, so that the effect of another policy can be estimated from the journal.

use serde::{Deserialize, Serialize};

use super::draw::draw;

/// Certainty, in parts per million.
pub(crate) const CERTAIN_PPM: i32 = 1_000_000;
/// Greatest share of drawn choices: two per cent.
pub(crate) const EXPLORE_PPM_MAX: i32 = 20_000;

/// A choice among several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Choice {
    pub(crate) index: usize,
    pub(crate) is_explored: bool,
    /// Probability of this choice, in parts per million.
    pub(crate) propensity_ppm: i32,
}

/// Address of a choice's draws: stream, seed and counter.
pub(crate) type Address<'a> = (&'a str, i64, i64);

/// True if the choice at this address is drawn.
pub(crate) fn is_explored((stream, seed, counter): Address<'_>, explore_ppm: i32) -> bool {
    (draw(stream, seed, counter, 0, CERTAIN_PPM as usize) as i32) < explore_ppm
}

/// Probability of choosing the preferred one of `count` alternatives, in parts per million.
pub(crate) fn preferred_ppm(explore_ppm: i32, count: usize) -> i32 {
    CERTAIN_PPM - explore_ppm + drawn_ppm(explore_ppm, count)
}

/// Probability of choosing a particular other one of `count` alternatives, in parts per million.
fn drawn_ppm(explore_ppm: i32, count: usize) -> i32 {
    explore_ppm / i32::try_from(count).unwrap_or(i32::MAX)
}

/// Chooses one of `count` alternatives, given the one that the policy prefers.
pub(crate) fn choose(address: Address<'_>, explore_ppm: i32, count: usize, preferred: usize) -> Choice {
    let (stream, seed, counter) = address;
    let is_explored = is_explored(address, explore_ppm);
    let index = if is_explored { draw(stream, seed, counter, 1, count) } else { preferred };
    let propensity_ppm = match index == preferred {
        true => preferred_ppm(explore_ppm, count),
        false => drawn_ppm(explore_ppm, count),
    };
    Choice { index, is_explored, propensity_ppm }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_choices_are_drawn_as_they_say() {
        let choices: Vec<_> =
            (0..100_000).map(|counter| choose(("test", 7, counter), 20_000, 4, 2)).collect();
        let explored = choices.iter().filter(|choice| choice.is_explored).count();
        assert!((1_850..2_150).contains(&explored), "{explored}");
        for index in 0..4 {
            let chosen: Vec<_> = choices.iter().filter(|choice| choice.index == index).collect();
            let expected_ppm = if index == 2 { 985_000 } else { 5_000 };
            assert!(chosen.iter().all(|choice| choice.propensity_ppm == expected_ppm), "{index}");
            let expected = expected_ppm as usize / 10;
            assert!(chosen.len().abs_diff(expected) < 120, "{index}: {} of {expected}", chosen.len());
        }
        let off = choose(("test", 7, 1), 0, 4, 2);
        assert_eq!(off, Choice { index: 2, is_explored: false, propensity_ppm: CERTAIN_PPM });
    }
}
