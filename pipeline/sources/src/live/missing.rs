//! Trades of one symbol that are counted as missing. One that comes after all is taken out.

use std::collections::VecDeque;

/// Number of newest ranges that are remembered; a trade of an older one stays counted.
const RANGES_MAX: usize = 1_024;

/// Ids without a trade, from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    from: i64,
    to: i64,
    /// Number of the cut that lies between; `None` within one connection.
    pub(super) cut: Option<usize>,
}

/// Ranges of missing ids, in ascending order.
#[derive(Debug, Default)]
pub(super) struct Missing(VecDeque<Range>);

impl Missing {
    /// Adds ids, which are greater than all before.
    pub(super) fn add(&mut self, from: i64, to: i64, cut: Option<usize>) {
        self.0.push_back(Range { from, to, cut });
        self.forget();
    }

    /// Takes an id out. Returns its range; `None` if it was not counted as missing.
    pub(super) fn take(&mut self, id: i64) -> Option<Range> {
        let index = self.0.partition_point(|range| range.to < id);
        let range = *self.0.get(index).filter(|range| range.from <= id)?;
        self.0.remove(index);
        if id < range.to {
            self.0.insert(index, Range { from: id + 1, ..range });
        }
        if range.from < id {
            self.0.insert(index, Range { to: id - 1, ..range });
        }
        self.forget();
        Some(range)
    }

    fn forget(&mut self) {
        self.0.drain(..self.0.len().saturating_sub(RANGES_MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_id_is_taken_once() {
        let mut missing = Missing::default();
        missing.add(7, 10, Some(3));
        missing.add(i64::MAX, i64::MAX, None);
        let mut taken = |id| missing.take(id).map(|range| range.cut);
        assert_eq!([6, 11, i64::MIN].map(&mut taken), [None; 3]);
        for id in [8, 7, 10, 9] {
            assert_eq!((taken(id), taken(id)), (Some(Some(3)), None), "{id}");
        }
        assert_eq!((taken(i64::MAX), taken(i64::MAX)), (Some(None), None));
        assert!(missing.0.is_empty());
    }

    #[test]
    fn the_number_of_ranges_is_bounded() {
        let mut missing = Missing::default();
        (0..2 * RANGES_MAX as i64).for_each(|number| missing.add(4 * number, 4 * number + 2, None));
        assert_eq!(missing.take(1), None, "the oldest are forgotten");
        let newest = 4 * (2 * RANGES_MAX as i64 - 1) + 1;
        assert!(missing.take(newest).is_some(), "from its middle, so that one range becomes two");
        assert_eq!(missing.0.len(), RANGES_MAX);
    }
}
