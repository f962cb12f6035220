//! Cuts of a live feed's connection. Their memory does not depend on the length of the feed.

use std::collections::BTreeMap;

/// Number of first cuts that are kept.
pub const FIRST_CUTS: usize = 20;

/// The end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Time by the local clock.
    pub time_ns: i64,
    /// The reason, in words.
    pub reason: String,
    /// Number of symbols with trades before it.
    pub symbols: usize,
    /// Number of these symbols without a trade since, so that missing trades do not show yet.
    pub unchecked: usize,
    /// Number of trades that are missing.
    pub missing: u64,
}

/// The first cuts, and those that are not checked for all symbols yet: at most one of these per symbol.
#[derive(Default)]
pub(super) struct Cuts {
    kept: BTreeMap<usize, Cut>,
    count: usize,
}

impl Cuts {
    /// Adds a cut; its number is the count before.
    pub(super) fn add(&mut self, cut: Cut) {
        if self.count < FIRST_CUTS || cut.unchecked > 0 {
            self.kept.insert(self.count, cut);
        }
        self.count += 1;
    }

    /// Returns the number of all cuts.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Returns the first cuts.
    pub(super) fn first(&self) -> impl Iterator<Item = &Cut> {
        self.kept.range(..FIRST_CUTS).map(|(_, cut)| cut)
    }

    /// Checks one more symbol, which misses some trades. Returns the cut if it is checked for all symbols now.
    pub(super) fn check(&mut self, number: usize, missing: u64) -> Option<Cut> {
        let cut = self.kept.get_mut(&number)?;
        cut.unchecked = cut.unchecked.saturating_sub(1);
        cut.missing = cut.missing.saturating_add(missing);
        if cut.unchecked > 0 {
            return None;
        }
        if number < FIRST_CUTS { Some(cut.clone()) } else { self.kept.remove(&number) }
    }

    /// Takes a trade off those that a cut misses, if the cut is kept.
    pub(super) fn recover(&mut self, number: usize) {
        if let Some(cut) = self.kept.get_mut(&number) {
            cut.missing = cut.missing.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(symbols: usize) -> Cut {
        Cut { time_ns: 0, reason: String::new(), symbols, unchecked: symbols, missing: 0 }
    }

    #[test]
    fn the_first_cuts_and_unchecked_ones_are_kept() {
        let mut cuts = Cuts::default();
        (0..FIRST_CUTS + 1_000).for_each(|_| cuts.add(cut(0)));
        cuts.add(cut(2));
        assert_eq!((cuts.count(), cuts.first().count()), (FIRST_CUTS + 1_001, FIRST_CUTS));
        assert_eq!(cuts.kept.len(), FIRST_CUTS + 1);
        let last = cuts.count() - 1;
        assert_eq!(cuts.check(last, 3), None);
        cuts.recover(last);
        assert_eq!(cuts.check(last, 1), Some(Cut { unchecked: 0, missing: 3, ..cut(2) }));
        assert_eq!((cuts.kept.len(), cuts.check(last, 1)), (FIRST_CUTS, None));
        cuts.recover(last);
    }
}
