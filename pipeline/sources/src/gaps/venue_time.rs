//! The greatest time of one venue on which its rows agree.

use std::collections::VecDeque;

/// Number of consecutive rows far ahead after which time moves; `run` follows as many of one symbol.
pub const JUMP_ROWS: usize = 8;

/// The time of one venue.
///
/// A row far ahead waits for the next ones. If one of these is not ahead, the row is wrong. If all are, time moves to
/// the earliest of them, so that a wrong time among them is not followed either.
#[derive(Debug)]
pub(super) struct VenueTime<P> {
    /// Greatest time that is not far ahead; `None` until enough rows confirm the first one.
    greatest_ns: Option<i64>,
    /// Rows since the first one far ahead; between two calls fewer than [`JUMP_ROWS`].
    waiting: VecDeque<(P, i64)>,
}

/// The beginning of a venue's time, or a jump far ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step<P> {
    /// The first row after the step.
    pub(super) place: P,
    /// The greatest time before the step; `None` at the venue's beginning.
    pub(super) from_ns: Option<i64>,
    pub(super) to_ns: i64,
}

impl<P: Copy> VenueTime<P> {
    pub(super) fn new() -> VenueTime<P> {
        VenueTime { greatest_ns: None, waiting: VecDeque::new() }
    }

    /// Returns the greatest time that is not far ahead; `None` before the first.
    pub(super) fn greatest_ns(&self) -> Option<i64> {
        self.greatest_ns
    }

    /// Processes the next row, and appends the steps that are now certain to `steps`.
    pub(super) fn add(&mut self, place: P, time_ns: i64, ahead_ns_max: i64, steps: &mut Vec<Step<P>>) {
        self.waiting.push_back((place, time_ns));
        while let Some(&(place, first_ns)) = self.waiting.front() {
            let limit_ns = self.greatest_ns.map(|greatest_ns| greatest_ns.saturating_add(ahead_ns_max));
            let is_ahead = |time_ns: i64| limit_ns.is_none_or(|limit_ns| time_ns > limit_ns);
            if !is_ahead(first_ns) {
                self.greatest_ns = self.greatest_ns.max(Some(first_ns));
                self.waiting.pop_front();
            } else if self.waiting.iter().any(|(_, time_ns)| !is_ahead(*time_ns)) {
                self.waiting.pop_front();
            } else if self.waiting.len() >= JUMP_ROWS {
                let to_ns = self.waiting.iter().map(|(_, time_ns)| *time_ns).fold(i64::MAX, i64::min);
                steps.push(Step { place, from_ns: self.greatest_ns, to_ns });
                self.greatest_ns = Some(to_ns);
            } else {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the steps in rows with these times, if more than 10 counts as far ahead. A step has the row's number,
    /// and the times before and after it.
    fn steps(times: &[i64]) -> Vec<(usize, Option<i64>, i64)> {
        let (mut venue, mut steps) = (VenueTime::new(), Vec::new());
        for (number, time) in times.iter().enumerate() {
            venue.add(number, *time, 10, &mut steps);
        }
        steps.into_iter().map(|Step { place, from_ns, to_ns }| (place, from_ns, to_ns)).collect()
    }

    fn rows(parts: &[(i64, usize)]) -> Vec<i64> {
        parts.iter().flat_map(|(from, count)| (0..*count as i64).map(move |row| from + row)).collect()
    }

    #[test]
    fn eight_rows_make_time_go_on() {
        assert_eq!(steps(&rows(&[(0, 9), (100, 7)])), [(0, None, 0)]);
        assert_eq!(steps(&rows(&[(0, 9), (100, 8)])), [(0, None, 0), (9, Some(8), 100)]);
        // A few rows before a gap are enough for a beginning.
        assert_eq!(steps(&rows(&[(0, 2), (100, 8)])), [(0, None, 0), (2, Some(1), 100)]);
        assert_eq!(steps(&rows(&[(0, 7)])), []);
    }

    #[test]
    fn wrong_times_are_not_followed_wherever_they_stand() {
        // A wrong row is among rows in order, at the beginning, before a gap, and after one.
        for times in [rows(&[(0, 9), (900, 7), (9, 9)]), rows(&[(900, 1), (0, 9), (900, 1), (9, 9)])] {
            assert_eq!(steps(&times), [(0, None, 0)]);
        }
        for (times, row) in
            [(rows(&[(0, 9), (900, 1), (100, 9)]), 9), (rows(&[(0, 9), (100, 2), (900, 5), (102, 9)]), 9)]
        {
            assert_eq!(steps(&times), [(0, None, 0), (row, Some(8), 100)]);
        }
    }

    #[test]
    fn rows_that_are_all_far_from_each_other_are_gaps_up_to_the_last_seven() {
        let times: Vec<i64> = (0..10).map(|row| 30 * row).collect();
        assert_eq!(steps(&times), [(0, None, 0), (1, Some(0), 30), (2, Some(30), 60)]);
    }
}
