//! Axes of time and of durations: the values at which lines are drawn, and their labels.

use super::numbers::{self, Precision};
use crate::drawing::Line;
use crate::slots::Slots;

/// Greatest number of lines on the axis of time.
const TIMES_MAX: i128 = 8;
const SECOND_NS: i64 = 1_000_000_000;
const MINUTE_NS: i64 = 60 * SECOND_NS;
const DAY_NS: i64 = 86_400 * SECOND_NS;

/// The axis of time that all charts share.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TimeAxis {
    /// Number of slots.
    pub(super) slots: usize,
    pub(super) width_ns: i64,
    pub(super) lines: Vec<Line>,
    /// Day of the first slot.
    pub(super) day: String,
}

impl TimeAxis {
    /// Makes the axis of slots; there is at least one.
    pub(super) fn new<T>(slots: &Slots<T>) -> Self {
        let (count, width_ns) = (slots.count().max(1), slots.width_ns());
        let begin = i128::from(slots.begin_ns(0));
        let length = (i128::from(width_ns) * count as i128).max(1);
        let steps = steps();
        let step = steps.iter().copied().find(|step| length / i128::from(*step) < TIMES_MAX);
        let step = step.unwrap_or(i64::MAX / 4);
        let precision = match step {
            _ if step < SECOND_NS => Precision::Milliseconds,
            _ if step < MINUTE_NS => Precision::Seconds,
            _ if step < DAY_NS => Precision::Minutes,
            _ => Precision::Days,
        };
        let mut lines = Vec::new();
        let mut at = begin.div_euclid(step.into()) * i128::from(step);
        while at <= begin + length {
            if let (true, Ok(ns)) = (at >= begin, i64::try_from(at)) {
                let place = (at - begin) as f64 / length as f64;
                lines.push(Line { at: place, label: numbers::clock(ns, precision) });
            }
            at += i128::from(step);
        }
        Self { slots: count, width_ns, lines, day: numbers::day(slots.begin_ns(0)) }
    }
}

/// Returns distances between lines that readers are used to.
fn steps() -> Vec<i64> {
    let mut steps = Vec::new();
    for unit in [1_000_000, 10_000_000, 100_000_000] {
        steps.extend([unit, 2 * unit, 5 * unit]);
    }
    steps.extend([1, 2, 5, 10, 15, 30].map(|seconds| seconds * SECOND_NS));
    steps.extend([1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720].map(|minutes| minutes * MINUTE_NS));
    steps.extend(
        [1, 2, 7, 14, 30, 90, 180, 365, 730, 1_825, 3_650, 7_300, 18_250, 36_500].map(|days| days * DAY_NS),
    );
    steps
}

/// Returns the top of an axis from 0 to at least `max`: a round number whose half is round, too.
pub(super) fn nice_top(max: f64) -> f64 {
    if !max.is_finite() || max <= 0.0 {
        return 1.0;
    }
    let mut unit = 1e-9;
    while unit * 10.0 < max && unit < 1e30 {
        unit *= 10.0;
    }
    let tops = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0].map(|factor| factor * unit);
    tops.into_iter().find(|top| *top >= max).unwrap_or(max)
}

/// A logarithmic axis of durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogAxis {
    /// Ends of the axis, as powers of ten of a nanosecond.
    pub(super) low: u32,
    pub(super) high: u32,
}

impl LogAxis {
    /// Makes the axis for values from `min_ns` to `max_ns`.
    pub(super) fn new(min_ns: u64, max_ns: u64) -> Self {
        let low = min_ns.max(1).ilog10();
        let high = max_ns.max(1).ilog10();
        let high = if 10_u64.pow(high) < max_ns { high + 1 } else { high };
        Self { low, high: high.max(low + 1) }
    }

    /// Returns the position of a value: 0 at the top, 1 at the bottom.
    pub(super) fn place(self, ns: u64) -> f64 {
        #[expect(clippy::disallowed_methods, reason = "it is a place on a page, whose last bit nobody sees")]
        let power = (ns.max(1) as f64).log10();
        let place = (f64::from(self.high) - power) / f64::from(self.high - self.low);
        place.clamp(0.0, 1.0)
    }

    /// Returns lines at all powers of ten, or at some of them if there are many.
    pub(super) fn lines(self) -> Vec<Line> {
        let step = (self.high - self.low).div_ceil(5).max(1) as usize;
        let powers = (self.low..=self.high).step_by(step);
        let line = |power: u32| Line {
            at: f64::from(self.high - power) / f64::from(self.high - self.low),
            label: match power {
                0..=18 => numbers::duration(10_u64.pow(power)),
                _ => "10¹⁹ ns".to_owned(),
            },
        };
        powers.map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slots::Merge;

    #[derive(Default)]
    struct Nothing;

    impl Merge for Nothing {
        fn merge(&mut self, _: Self) {}
    }

    #[test]
    fn lines_of_time_are_few_and_round() {
        for (from, to) in [(0, 0), (5, 7_000_000_000), (0, 86_400 * SECOND_NS), (i64::MIN, i64::MAX), (-7, 3)]
        {
            let mut slots: Slots<Nothing> = Slots::default();
            slots.at(from);
            slots.at(to);
            let axis = TimeAxis::new(&slots);
            assert!(axis.lines.len() <= TIMES_MAX as usize + 1, "{from} to {to}: {axis:?}");
            assert!(axis.lines.iter().all(|line| (0.0..=1.0).contains(&line.at)), "{axis:?}");
        }
        let mut slots: Slots<Nothing> = Slots::default();
        slots.at(1_795_489_200 * SECOND_NS);
        slots.at(1_795_489_500 * SECOND_NS);
        let labels: Vec<_> = TimeAxis::new(&slots).lines.into_iter().map(|line| line.label).collect();
        assert_eq!(labels, ["03:00", "03:01", "03:02", "03:03", "03:04", "03:05"]);
    }

    #[test]
    fn axes_hold_their_values() {
        assert_eq!(
            [0.0, 1.0, 1.6, 7.0, 24.0, f64::NAN].map(|max| (nice_top(max) * 1e3).round()),
            [1e3, 1e3, 2e3, 8e3, 3e4, 1e3]
        );
        assert!(nice_top(1e300) >= 1e300);
        for (min, max) in [(0, 0), (1, 1), (1_000_000, 1_000_000), (1_500_000, 90_000_000), (3, u64::MAX)] {
            let axis = LogAxis::new(min, max);
            assert!(axis.low < axis.high && axis.place(min) >= axis.place(max), "{axis:?}");
            assert!(axis.lines().len() >= 2 && axis.lines().len() <= 7, "{:?}", axis.lines());
        }
        assert_eq!(LogAxis::new(1_500_000, 90_000_000), LogAxis { low: 6, high: 8 });
    }
}
