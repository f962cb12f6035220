//! Finds the ticks before which event time must be set, so that `run` follows gaps.

use warptape_events::tick::Tick;

use super::Gaps;
use crate::partition_of;
use crate::venues::Venues;

/// Processes the ticks of a [`GapSurvey`](super::GapSurvey) a second time, in the same order.
#[derive(Debug)]
pub struct GapFollower {
    gaps: Gaps,
    ahead_ns_max: i64,
    /// Number of ticks so far, by input.
    given: Vec<u64>,
    /// Greatest time of each venue; `None` if the venue's rows disagree on its beginning.
    venues: Venues<Option<i64>>,
    /// Greatest time published to each partition; `None` before the partition's first tick.
    partitions: Vec<Option<i64>>,
}

/// An event time to be set before a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The partition.
    pub partition: i32,
    /// The event time to set.
    pub event_time_ns: i64,
    /// True if this feed's ticks have a gap before the tick; false if the tick is the partition's first one.
    pub is_gap: bool,
}

impl GapFollower {
    /// Follows gaps of more than `ahead_ns_max` in ticks of `inputs` inputs to `partitions` partitions.
    pub fn new(gaps: Gaps, ahead_ns_max: i64, inputs: usize, partitions: i32) -> GapFollower {
        GapFollower {
            gaps,
            ahead_ns_max,
            given: vec![0; inputs],
            venues: Venues::default(),
            partitions: vec![None; partitions.unsigned_abs() as usize],
        }
    }

    /// Processes the next tick of an input; `is_published` is false if the log already has it. A tick with a wrong time
    /// sets no event time.
    pub fn next(&mut self, input: usize, tick: &Tick, is_published: bool) -> Option<Word> {
        let given = &mut self.given[input];
        let later_ns = self.gaps.later.get(&(input, *given)).copied();
        *given += 1;
        let venue_ns = self.venues.of(&tick.symbol, |name| self.gaps.starts.get(name).copied());
        let followed_ns = (*venue_ns)?.max(later_ns.unwrap_or(i64::MIN));
        *venue_ns = Some(followed_ns);
        let time_ns = tick.event_time_ns;
        if time_ns > followed_ns.saturating_add(self.ahead_ns_max) {
            return None;
        }
        *venue_ns = Some(followed_ns.max(time_ns));
        if !is_published {
            return None;
        }
        let partition = partition_of(&tick.symbol, self.partitions.len() as i32);
        let before_ns = &mut self.partitions[partition as usize];
        let is_first = before_ns.is_none();
        let is_gap = before_ns.is_some_and(|before_ns| time_ns > before_ns.saturating_add(self.ahead_ns_max));
        *before_ns = (*before_ns).max(Some(time_ns));
        (is_first || is_gap).then_some(Word { partition, event_time_ns: time_ns, is_gap })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaps::{GapSurvey, TickPlace};
    use crate::test_ticks::tick;

    const DAY: i64 = 86_400_000_000_000;
    const MAX: i64 = 4 * DAY;

    fn ticks(rows: &[(&str, i64)]) -> Vec<Tick> {
        let of = |(symbol, event_time_ns): &(&str, i64)| {
            let (symbol, event_time_ns) = ((*symbol).to_owned(), *event_time_ns);
            Tick { symbol, event_time_ns, ..tick() }
        };
        rows.iter().map(of).collect()
    }

    /// Returns the numbers of the ticks before which event time is set, each with true if a gap is followed. The log
    /// already has the first `left` ticks.
    fn words(ticks: &[Tick], left: usize, partitions: i32) -> Vec<(usize, bool)> {
        let mut survey = GapSurvey::new(MAX, 1);
        for tick in ticks {
            survey.add(TickPlace { input: 0, line: 0 }, &tick.symbol, tick.event_time_ns);
        }
        let mut follower = GapFollower::new(survey.gaps(), MAX, 1, partitions);
        let said = ticks.iter().enumerate().filter_map(|(number, tick)| {
            let word = follower.next(0, tick, number >= left)?;
            assert_eq!(word.event_time_ns, tick.event_time_ns);
            Some((number, word.is_gap))
        });
        said.collect()
    }

    #[test]
    fn each_partition_is_told_before_its_first_tick_behind_a_gap() {
        let symbols = ["V:A", "V:B", "V:C", "V:D", "V:E"];
        let row = |row: i64| (symbols[row as usize % 5], row + if row < 20 { 0 } else { 20 * DAY });
        let ticks = ticks(&(0..60).map(row).collect::<Vec<_>>());
        assert_eq!(words(&ticks, 0, 1), [(0, false), (20, true)]);
        let partition = |number: usize| partition_of(&ticks[number].symbol, 3);
        let many = words(&ticks, 0, 3);
        let gaps: Vec<usize> = many.iter().filter(|(_, is_gap)| *is_gap).map(|(number, _)| *number).collect();
        for (place, &number) in gaps.iter().enumerate() {
            assert!((20..number).all(|before| partition(before) != partition(number)), "{many:?}");
            assert!(gaps[..place].iter().all(|other| partition(*other) != partition(number)));
        }
        let partitions: std::collections::BTreeSet<i32> = (0..5).map(partition).collect();
        assert_eq!(gaps.len(), partitions.len());
    }

    #[test]
    fn a_wrong_time_is_never_said_and_what_was_fed_before_is_said_once_more() {
        let mut rows: Vec<_> = (0..40).map(|row| ("V:A", row)).collect();
        rows[3].1 += 365 * DAY;
        rows.extend((0..40).map(|row| ("V:A", 20 * DAY + row)));
        rows[40].1 += 365 * DAY;
        rows[50].1 += 365 * DAY;
        rows.extend((0..7).map(|row| ("V:A", 50 * DAY + row)));
        let ticks = ticks(&rows);
        assert_eq!(words(&ticks, 0, 1), [(0, false), (41, true)]);
        // A feed may continue anywhere, and its first tick sets the partition's event time.
        for left in [1, 39, 41, 42, 60] {
            let expected = if left < 40 { vec![(left, false), (41, true)] } else { vec![(left, false)] };
            assert_eq!(words(&ticks, left, 1), expected, "{left}");
        }
        assert_eq!(words(&ticks, 40, 1), [(41, false)]);
        assert_eq!(words(&ticks, 80, 1), []);
    }

    #[test]
    fn a_quiet_symbol_in_a_partition_of_its_own_is_followed_where_others_went_on() {
        let other =
            ["V:B", "V:C", "V:D"].into_iter().find(|name| partition_of(name, 8) != partition_of("V:A", 8));
        let mut rows: Vec<_> = (0..30).map(|day| (other.expect("another partition"), day * DAY)).collect();
        rows.insert(0, ("V:A", 0));
        rows.push(("V:A", 29 * DAY + 1));
        assert_eq!(words(&ticks(&rows), 0, 1), [(0, false)]);
        assert_eq!(words(&ticks(&rows), 0, 8), [(0, false), (1, false), (31, true)]);
    }
}
