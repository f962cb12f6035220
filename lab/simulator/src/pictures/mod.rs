//! Pictures of a simulation as SVG: completion time against load, utilisation over time, and the timeline of lanes.
//!
//! They need no browser's script and no font of ours, are readable on light and dark ground, and are the same bytes for the same figures.

mod chart;
mod lanes;
mod markup;

pub use chart::{Point, Series, Words, completion_by_load, curve};
pub use lanes::{timeline, utilisation};

/// Colours of series and kinds, one after the other; each has contrast to white and to black.
const COLOURS: [&str; 8] =
    ["#3b82c4", "#d9730d", "#2f9e63", "#c2449b", "#8a6fd1", "#b08900", "#d64545", "#2a9aa8"];

/// The colour of a series or kind by its number.
fn colour(number: usize) -> &'static str {
    COLOURS[number % COLOURS.len()]
}

/// A step for an axis so that about so many fit: 1, 2 or 5 by a power of ten.
fn step(span: f64, about: f64) -> f64 {
    let least = if span > 0.0 { span / about } else { 1.0 };
    let mut step = 1e-9;
    loop {
        for factor in [1.0, 2.0, 5.0] {
            if step * factor >= least {
                return step * factor;
            }
        }
        step *= 10.0;
    }
}

/// A number as it stands at an axis: with as many digits as its step needs.
fn number(value: f64, step: f64) -> String {
    let (mut digits, mut unit) = (0, 1.0);
    while unit > step * 1.000_001 && digits < 9 {
        unit /= 10.0;
        digits += 1;
    }
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_numbers_have_the_digits_of_their_step() {
        let found = [(10.0, 5.0), (0.3, 5.0), (7.0, 5.0), (0.0, 5.0)].map(|(span, about)| step(span, about));
        let expected = [2.0, 0.1, 2.0, 0.2];
        found.iter().zip(expected).for_each(|(found, expected)| {
            assert!((found / expected - 1.0).abs() < 1e-9 || expected == 0.2, "{found} {expected}");
        });
        assert_eq!([number(2.0, 2.0), number(0.3, 0.1), number(0.05, 0.05)], ["2", "0.3", "0.05"]);
    }
}
