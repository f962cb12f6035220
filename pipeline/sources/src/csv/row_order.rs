//! Checks whether a file's rows are in the order of their times, with the rules of `run`.
//!
//! A tick is late if it is more than the allowed lateness behind the greatest time before it. It is a dead letter if it
//! is more than `stages.future_max_ms` ahead. Each venue is checked separately, because a whole venue may be behind the
//! others.

use std::collections::BTreeMap;

use crate::gaps::JUMP_ROWS;
use crate::venues::Venues;

/// How far a file's rows may be out of order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderLimits {
    /// Greatest time by which a tick may be behind an earlier one, in nanoseconds.
    pub lateness_ns: i64,
    /// Greatest time by which a tick may be behind an earlier one, for venues with their own lateness, in nanoseconds.
    pub lateness_by_venue_ns: BTreeMap<String, i64>,
    /// Greatest time by which a tick may be ahead of earlier ones, in nanoseconds.
    pub ahead_ns_max: i64,
}

impl Default for OrderLimits {
    /// Returns limits that allow everything.
    fn default() -> OrderLimits {
        OrderLimits { lateness_ns: i64::MAX, lateness_by_venue_ns: BTreeMap::new(), ahead_ns_max: i64::MAX }
    }
}

/// A file counts as backwards if this many times more rows go back than forward.
const BACKWARDS_RATIO: u64 = 9;

/// Rows that are too far from those before them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Apart {
    pub(super) rows: u64,
    pub(super) first_line: u64,
    pub(super) greatest_ns: i64,
    pub(super) greatest_line: u64,
}

impl Apart {
    fn add(&mut self, line: u64, by_ns: i64) {
        if self.rows == 0 {
            self.first_line = line;
        }
        self.rows += 1;
        if by_ns > self.greatest_ns {
            (self.greatest_ns, self.greatest_line) = (by_ns, line);
        }
    }

    fn add_all(&mut self, other: Apart) {
        if self.rows == 0 {
            self.first_line = other.first_line;
        }
        self.rows += other.rows;
        if other.greatest_ns > self.greatest_ns {
            (self.greatest_ns, self.greatest_line) = (other.greatest_ns, other.greatest_line);
        }
    }
}

/// The order of a file's rows so far.
#[derive(Debug)]
pub(super) struct RowOrder {
    pub(super) limits: OrderLimits,
    pub(super) rows: u64,
    venues: Venues<Venue>,
    greatest_ns: i64,
    previous_ns: i64,
    rows_back: u64,
    rows_forth: u64,
    /// Rows too far behind others of the same venue.
    pub(super) late: Apart,
    /// Rows too far behind others of another venue, but not of their own.
    pub(super) behind_others: Apart,
    ahead: Apart,
}

#[derive(Debug)]
struct Venue {
    lateness_ns: i64,
    /// Greatest time among rows that were not far ahead.
    greatest_ns: i64,
    /// Rows too far ahead, since the last row that was not.
    ahead: Apart,
}

impl RowOrder {
    pub(super) fn new(limits: OrderLimits) -> RowOrder {
        RowOrder {
            limits,
            rows: 0,
            venues: Venues::default(),
            greatest_ns: i64::MIN,
            previous_ns: i64::MIN,
            rows_back: 0,
            rows_forth: 0,
            late: Apart::default(),
            behind_others: Apart::default(),
            ahead: Apart::default(),
        }
    }

    /// Returns the initial state, because the file is read again.
    pub(super) fn again(&self) -> RowOrder {
        RowOrder::new(self.limits.clone())
    }

    /// Adds the next row.
    pub(super) fn add(&mut self, line: u64, symbol: &str, time_ns: i64) {
        self.rows += 1;
        self.rows_back += u64::from(time_ns < self.previous_ns);
        self.rows_forth += u64::from(time_ns > self.previous_ns && self.rows > 1);
        self.previous_ns = time_ns;
        let OrderLimits { lateness_ns, lateness_by_venue_ns, .. } = &self.limits;
        let lateness_of = |name: &str| *lateness_by_venue_ns.get(name).unwrap_or(lateness_ns);
        let new = |name: &str| Venue {
            lateness_ns: lateness_of(name),
            greatest_ns: time_ns,
            ahead: Apart::default(),
        };
        let venue = self.venues.of(symbol, new);
        let ahead_ns = time_ns.saturating_sub(venue.greatest_ns);
        if ahead_ns > self.limits.ahead_ns_max {
            venue.ahead.add(line, ahead_ns);
            if venue.ahead.rows < JUMP_ROWS as u64 {
                return;
            }
            // Time continues at these rows, so none of them is wrong.
            venue.ahead = Apart::default();
        }
        self.ahead.add_all(std::mem::take(&mut venue.ahead));
        let behind_ns = -ahead_ns;
        if behind_ns > venue.lateness_ns {
            self.late.add(line, behind_ns);
        } else {
            let behind_ns = self.greatest_ns.saturating_sub(time_ns);
            if behind_ns > venue.lateness_ns {
                self.behind_others.add(line, behind_ns);
            }
        }
        venue.greatest_ns = venue.greatest_ns.max(time_ns);
        self.greatest_ns = self.greatest_ns.max(time_ns);
    }

    /// Returns the rows that are far ahead of those before and after them.
    pub(super) fn ahead(&self) -> Apart {
        self.venues.iter().fold(self.ahead, |mut all, venue| {
            all.add_all(venue.ahead);
            all
        })
    }

    /// Returns true if the newest row is the first one.
    pub(super) fn is_backwards(&self) -> bool {
        self.rows_back > 0 && self.rows_back >= self.rows_forth.saturating_mul(BACKWARDS_RATIO)
    }

    /// Returns true if no row is earlier than the one before it.
    pub(super) fn is_sorted(&self) -> bool {
        self.rows_back == 0
    }

    /// Returns true if `run` would not accept all rows in this order.
    pub(super) fn is_refused(&self) -> bool {
        self.late.rows > 0 || self.ahead().rows >= JUMP_ROWS as u64
    }
}

/// Formats a length of time for people.
pub fn length_text(length_ns: i64) -> String {
    const UNITS: [(i64, &str); 4] = [
        (86_400_000_000_000, "days"),
        (3_600_000_000_000, "h"),
        (60_000_000_000, "min"),
        (1_000_000_000, "s"),
    ];
    let milliseconds = |unit: i64| (length_ns / (unit / 1_000), unit);
    match UNITS.into_iter().find(|(unit, _)| length_ns >= 2 * unit) {
        Some((unit, name)) => {
            let (thousandths, _) = milliseconds(unit);
            let text = format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
            format!("{} {name}", text.trim_end_matches('0').trim_end_matches('.'))
        }
        None => format!("{} ms", length_ns / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;
    const DAY: i64 = 86_400 * S;

    fn limits() -> OrderLimits {
        OrderLimits { lateness_ns: 2 * S, lateness_by_venue_ns: BTreeMap::new(), ahead_ns_max: 4 * DAY }
    }

    fn order(rows: &[(&str, i64)]) -> RowOrder {
        order_within(limits(), rows)
    }

    fn order_within(limits: OrderLimits, rows: &[(&str, i64)]) -> RowOrder {
        let mut order = RowOrder::new(limits);
        for (number, (symbol, time_ns)) in rows.iter().enumerate() {
            order.add(number as u64 + 1, symbol, *time_ns);
        }
        order
    }

    #[test]
    fn rows_within_the_lateness_pass() {
        let times = [10, 12, 11, 10, 13].map(|time| ("V:A", time * S));
        let found = order(&times);
        assert!(!found.is_refused() && !found.is_sorted() && !found.is_backwards());
        assert_eq!((found.late.rows, found.ahead().rows), (0, 0));
    }

    #[test]
    fn late_rows_are_counted_with_the_greatest_step() {
        let found = order(&[10, 13, 10, 20, 5, 21].map(|time| ("V:A", time * S)));
        assert_eq!(found.late, Apart { rows: 2, first_line: 3, greatest_ns: 15 * S, greatest_line: 5 });
        assert!(found.is_refused() && !found.is_backwards());
    }

    #[test]
    fn newest_first_is_recognised() {
        let found = order(&[20, 20, 16, 10, 10, 1].map(|time| ("V:A", time * S)));
        assert!(found.is_refused() && found.is_backwards());
    }

    #[test]
    fn a_venue_behind_another_one_is_in_order() {
        let rows: Vec<_> = (0..20).flat_map(|s| [("A:X", (s + 3) * S), ("B:X", s * S)]).collect();
        let found = order(&rows);
        assert!(!found.is_refused());
        assert_eq!((found.behind_others.rows, found.behind_others.greatest_ns), (20, 3 * S));

        let of_venue = |lateness_ns| BTreeMap::from([("B".to_owned(), lateness_ns)]);
        let within = |lateness_ns| OrderLimits { lateness_by_venue_ns: of_venue(lateness_ns), ..limits() };
        assert_eq!(order_within(within(3 * S), &rows).behind_others.rows, 0);
        assert_eq!(order_within(within(3 * S - 1), &rows).behind_others.rows, 20);
        let back = [("A:X", 9 * S), ("B:X", 9 * S), ("B:X", 6 * S), ("A:X", 6 * S)];
        assert_eq!(order_within(within(3 * S), &back).late.first_line, 4);
    }

    #[test]
    fn a_wrong_time_is_no_disorder_and_many_are() {
        let mut times: Vec<i64> = (0..100).map(|second| second * S).collect();
        times[5] += 365 * DAY;
        let rows: Vec<_> = times.iter().map(|time| ("V:A", *time)).collect();
        let found = order(&rows);
        assert!(!found.is_refused());
        assert_eq!((found.ahead().rows, found.ahead().first_line), (1, 6));
        let interleaved: Vec<_> = (0..10).flat_map(|s| [("V:A", s * S), ("V:A", s * S + 20 * DAY)]).collect();
        assert_eq!(order(&interleaved).ahead().rows, 10);
        assert!(order(&interleaved).is_refused());
        // A market that continues after weeks is a jump, not an error.
        let jump: Vec<_> = (0..20).map(|s| ("V:A", s * S + if s < 10 { 0 } else { 20 * DAY })).collect();
        assert_eq!(order(&jump).ahead().rows, 0);
        assert!(!order(&jump).is_refused());
    }

    #[test]
    fn lengths_are_readable() {
        let check = |ns, expected: &str| assert_eq!(length_text(ns), expected);
        check(3 * S, "3 s");
        check(2_500_000_000, "2.5 s");
        check(999_000_000, "999 ms");
        check(20 * DAY, "20 days");
        check(90 * 60 * S, "90 min");
    }
}
