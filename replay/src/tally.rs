//! Compares the number of outputs of each transaction in the rerun with the journal's account.

use warptape_eventlog::TopicPartition;

use crate::SealedDivergence;
use crate::accounts::SealedRange;
use crate::difference::Difference;

/// A kind of output that is counted.
#[derive(Clone, Copy)]
pub(crate) enum Counted {
    Signals,
    Late,
    DeadLetters,
}

/// Names of the counts in the journal, in the order of [`Counted`].
const NAMES: [&str; 3] = ["signals", "late", "dead_letters"];

/// Counts outputs by their transactions.
#[derive(Default)]
pub(crate) struct Tally {
    /// Ranges in ascending order, with the counts so far.
    ranges: Vec<(SealedRange, [i64; 3])>,
    /// Index of the range that each kind of output has reached.
    at: [usize; 3],
}

impl Tally {
    /// Creates the tally of transactions, which must be in the order of their offsets.
    pub(crate) fn new(ranges: &[SealedRange]) -> Self {
        Self { ranges: ranges.iter().map(|range| (*range, [0; 3])).collect(), at: [0; 3] }
    }

    /// Adds outputs that were caused by the source record at an offset, or by later ones of the same transaction.
    pub(crate) fn add(&mut self, output: Counted, offset: i64, count: usize) {
        let at = &mut self.at[output as usize];
        while self.ranges.get(*at).is_some_and(|(range, _)| range.next <= offset) {
            *at += 1;
        }
        if let Some((range, counts)) = self.ranges.get_mut(*at)
            && range.first <= offset
        {
            counts[output as usize] += count as i64;
        }
    }

    /// Returns the next offset at which signals begin to belong to another transaction, or to none.
    pub(crate) fn next_bound(&self, offset: i64) -> i64 {
        let mut bounds = self.ranges[self.at[Counted::Signals as usize].min(self.ranges.len())..]
            .iter()
            .flat_map(|(range, _)| [range.first, range.next]);
        bounds.find(|bound| *bound > offset).unwrap_or(i64::MAX)
    }

    /// Returns the first transaction before an offset of the source whose counts differ from the journal's. Records
    /// that were given up are ignored.
    pub(crate) fn divergence(&self, source: &TopicPartition, before: i64) -> Option<SealedDivergence> {
        let found = |range: &SealedRange| [range.signals, range.late, range.dead_letters];
        let is_other = |(range, counts): &&(SealedRange, [i64; 3])| {
            !range.is_lost && range.next <= before && found(range) != *counts
        };
        let (range, counts) = self.ranges.iter().find(is_other)?;
        let all = NAMES.into_iter().zip(*counts).zip(found(range));
        let others = all.filter(|((_, counted), found)| counted != found);
        Some(SealedDivergence {
            topic: source.topic.clone(),
            partition: source.partition,
            first_offset: range.first,
            next_offset: range.next,
            differences: others
                .map(|((name, counted), found)| Difference::new(name, counted, found))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use warptape_schemas::journal::SealedPartition;

    use super::*;

    #[test]
    fn each_transaction_has_the_outputs_of_its_records() {
        let range = |first_offset, next_offset, signals, late| {
            let account =
                SealedPartition { first_offset, next_offset, signals, late, ..SealedPartition::default() };
            SealedRange::of(&account)
        };
        let source = TopicPartition { topic: "ticks".to_owned(), partition: 0 };
        let mut tally = Tally::new(&[range(2, 5, 3, 1), range(5, 9, 4, 0)]);
        assert_eq!([0, 2, 4, 5, 9].map(|offset| tally.next_bound(offset)), [2, 5, 5, 9, i64::MAX]);
        // No account includes the outputs of the first records.
        tally.add(Counted::Signals, 1, 7);
        tally.add(Counted::Signals, 2, 2);
        tally.add(Counted::Late, 4, 1);
        tally.add(Counted::Signals, 4, 1);
        tally.add(Counted::Signals, 8, 5);
        assert_eq!(tally.divergence(&source, 5), None);
        let found = tally.divergence(&source, 9).expect("one signal more than the journal says");
        assert_eq!((found.first_offset, found.next_offset), (5, 9));
        assert_eq!(found.differences, [Difference::new("signals", 5, 4)]);
    }
}
