//! Surveys ticks in feeding order for gaps, which are places where time jumps far ahead for good.

use std::collections::HashMap;

use super::EarliestTicks;
use super::venue_time::{JUMP_ROWS, Step, VenueTime};
use crate::venues::Venues;

/// Greatest number of gaps kept.
const GAPS_MAX: usize = 65_536;

/// The place of a tick in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickPlace {
    /// Index of the input among the files.
    pub input: usize,
    /// Line of the tick, or its record in a file without lines.
    pub line: u64,
}

/// The place of a tick, and the survey's state when it was read.
#[derive(Clone, Copy, Debug)]
struct Seen {
    place: TickPlace,
    /// Number of the input's ticks before this one.
    ordinal: u64,
    /// Greatest time of all venues; `None` before the first.
    stream_ns: Option<i64>,
}

/// A step of a venue's time.
#[derive(Debug)]
struct Found {
    venue: String,
    step: Step<Seen>,
    /// The latest time before the gap; `None` if a venue's time was already behind it.
    limit_ns: Option<i64>,
    /// Number of later ticks, of any venue, with times before the gap.
    rows_back: usize,
}

impl Found {
    /// Returns true if other ticks stay before the gap. One venue is then ahead of the others, and the market has no
    /// gap.
    fn is_contested(&self) -> bool {
        self.rows_back >= JUMP_ROWS
    }

    /// Returns the length of the gap in nanoseconds; `None` at the beginning of the ticks.
    fn length_ns(&self) -> Option<i64> {
        let before_ns =
            self.step.from_ns.or(self.step.place.stream_ns.filter(|_| self.limit_ns.is_some()))?;
        Some(self.step.to_ns.saturating_sub(before_ns)).filter(|_| !self.is_contested())
    }
}

/// Finds gaps.
#[derive(Debug)]
pub struct GapSurvey {
    ahead_ns_max: i64,
    venues: Venues<VenueTime<Seen>>,
    /// Number of ticks of each input so far.
    given: Vec<u64>,
    stream_ns: Option<i64>,
    /// Least and greatest time of all ticks.
    range_ns: (i64, i64),
    earliest: EarliestTicks,
    found: Vec<Found>,
    is_full: bool,
    /// Greatest limit among gaps that are not contested.
    contest_ns: i64,
    steps: Vec<Step<Seen>>,
}

impl GapSurvey {
    /// Creates a survey for gaps of more than `ahead_ns_max` in the ticks of `inputs` inputs.
    pub fn new(ahead_ns_max: i64, inputs: usize) -> GapSurvey {
        GapSurvey {
            ahead_ns_max,
            venues: Venues::default(),
            given: vec![0; inputs],
            stream_ns: None,
            range_ns: (i64::MAX, i64::MIN),
            earliest: EarliestTicks::default(),
            found: Vec::new(),
            is_full: false,
            contest_ns: i64::MIN,
            steps: Vec::new(),
        }
    }

    /// Processes the next tick.
    pub fn add(&mut self, place: TickPlace, symbol: &str, time_ns: i64) {
        self.earliest.add(place, symbol, time_ns);
        let ahead_ns_max = self.ahead_ns_max;
        let given = &mut self.given[place.input];
        let seen = Seen { place, ordinal: *given, stream_ns: self.stream_ns };
        *given += 1;
        self.range_ns = (self.range_ns.0.min(time_ns), self.range_ns.1.max(time_ns));
        if time_ns <= self.contest_ns {
            self.contest(time_ns);
        }
        let venue = self.venues.of(symbol, |_| VenueTime::new());
        venue.add(seen, time_ns, ahead_ns_max, &mut self.steps);
        self.stream_ns = self.stream_ns.max(venue.greatest_ns());
        for step in self.steps.drain(..) {
            let limit_ns = step.place.stream_ns.map(|before_ns| before_ns.saturating_add(ahead_ns_max));
            let limit_ns = limit_ns.filter(|limit_ns| step.to_ns > *limit_ns);
            self.contest_ns = self.contest_ns.max(limit_ns.unwrap_or(i64::MIN));
            self.is_full |= self.found.len() >= GAPS_MAX;
            if !self.is_full {
                let venue = self.venues.last_name().to_owned();
                self.found.push(Found { venue, step, limit_ns, rows_back: 0 });
            }
        }
    }

    /// Counts a tick that is before gaps already found.
    fn contest(&mut self, time_ns: i64) {
        self.contest_ns = i64::MIN;
        for found in self.found.iter_mut().filter(|found| !found.is_contested()) {
            let Some(limit_ns) = found.limit_ns else { continue };
            found.rows_back += usize::from(time_ns <= limit_ns);
            if !found.is_contested() {
                self.contest_ns = self.contest_ns.max(limit_ns);
            }
        }
    }

    /// Returns true if the range of times is large enough for a gap, whatever the order of the ticks.
    pub fn may_have_gaps(&self) -> bool {
        let (least_ns, greatest_ns) = self.range_ns;
        greatest_ns.saturating_sub(least_ns) > self.ahead_ns_max
    }

    /// Returns the earliest ticks so far.
    pub fn earliest(&self) -> &EarliestTicks {
        &self.earliest
    }

    /// Returns the gaps found so far.
    pub fn gaps(&self) -> Gaps {
        let certain = || self.found.iter().filter(|found| !found.is_contested());
        let starts = certain().filter(|found| found.step.from_ns.is_none());
        let later = certain().filter(|found| found.step.from_ns.is_some());
        let mut summaries: Vec<Option<GapSummary>> = vec![None; self.given.len()];
        for found in certain() {
            let Some(length_ns) = found.length_ns() else { continue };
            let TickPlace { input, line } = found.step.place.place;
            let summary = summaries[input].get_or_insert(GapSummary { count: 0, line, length_ns });
            summary.count += 1;
        }
        Gaps {
            starts: starts.map(|found| (found.venue.clone(), found.step.to_ns)).collect(),
            later: later
                .map(|found| ((found.step.place.place.input, found.step.place.ordinal), found.step.to_ns))
                .collect(),
            summaries,
            is_cut: self.is_full,
        }
    }
}

/// The gaps of one input: their number, and the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapSummary {
    /// Number of gaps.
    pub count: u64,
    /// First line after the first gap.
    pub line: u64,
    /// Length of the first gap, in nanoseconds.
    pub length_ns: i64,
}

/// Gaps in the ticks of some inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// First time of each venue whose rows agree on it.
    pub(super) starts: HashMap<String, i64>,
    /// A venue's time after a gap. The key is the input of the first tick after the gap, and the number of that input's
    /// earlier ticks.
    pub(super) later: HashMap<(usize, u64), i64>,
    summaries: Vec<Option<GapSummary>>,
    is_cut: bool,
}

impl Gaps {
    /// Returns the gaps of an input; `None` if it has none.
    pub fn of_input(&self, input: usize) -> Option<GapSummary> {
        self.summaries.get(input).copied().flatten()
    }

    /// Returns true if there are more gaps than can be kept.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000_000_000;

    fn summaries(inputs: usize, ticks: &[(usize, &str, i64)]) -> Vec<Option<(u64, u64, i64)>> {
        let mut survey = GapSurvey::new(4 * DAY, inputs);
        for (number, (input, symbol, time_ns)) in ticks.iter().enumerate() {
            survey.add(TickPlace { input: *input, line: number as u64 + 1 }, symbol, *time_ns);
        }
        let gaps = survey.gaps();
        (0..inputs)
            .map(|input| gaps.of_input(input).map(|gap| (gap.count, gap.line, gap.length_ns / DAY)))
            .collect()
    }

    fn of(input: usize, symbol: &str, day: i64) -> impl Iterator<Item = (usize, &str, i64)> {
        (0..10).map(move |row| (input, symbol, day * DAY + row))
    }

    #[test]
    fn gaps_within_a_file_and_between_files_are_found() {
        let within: Vec<_> = of(0, "V:A", 0).chain(of(0, "V:B", 20)).collect();
        assert_eq!(summaries(1, &within), [Some((1, 11, 19))]);
        let between: Vec<_> = of(0, "V:A", 0).chain(of(1, "V:A", 20)).collect();
        assert_eq!(summaries(2, &between), [None, Some((1, 11, 19))]);
        let of_two_venues: Vec<_> = of(0, "V:A", 0).chain(of(1, "W:A", 20)).collect();
        assert_eq!(summaries(2, &of_two_venues), [None, Some((1, 11, 19))]);
    }

    #[test]
    fn a_venue_that_is_always_ahead_of_another_one_has_no_gap() {
        let days = |row: i64| [(0, "V:A", row), (0, "W:B", row + 20 * DAY)];
        let rows: Vec<_> = (0..40).flat_map(days).collect();
        assert_eq!(summaries(1, &rows), [None]);
    }

    #[test]
    fn a_venue_pauses_beside_one_that_goes_on() {
        let mut rows: Vec<_> = (0..30).map(|day| (0, "W:B", day * DAY)).collect();
        rows.extend(of(0, "V:A", 0).chain(of(0, "V:A", 20)));
        rows.sort_by_key(|(_, _, time_ns)| *time_ns);
        assert_eq!(summaries(1, &rows)[0].map(|(count, _, days)| (count, days)), Some((1, 19)));
    }
}
