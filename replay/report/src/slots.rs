//! Values over time, in slots of equal width. If there are too many slots, the width doubles, and neighbouring slots
//! are merged.
//!
//! A slot begins at a multiple of the width. So the final slots depend on the values, but not on the order in which
//! they are added.

use std::collections::BTreeMap;

/// Greatest number of slots.
pub const SLOTS_MAX: usize = 240;
/// Width of the slots at the beginning, ns.
const WIDTH_NS_MIN: i64 = 1_000_000;
/// Greatest number of doublings; with it, a few slots cover all possible times.
const DOUBLINGS_MAX: u32 = 40;

/// A value that can be merged with the value of a neighbouring slot.
pub trait Merge: Default {
    /// Adds the value of the neighbouring slot.
    fn merge(&mut self, other: Self);
}

/// Slots of time.
#[derive(Clone, Debug)]
pub struct Slots<T> {
    doublings: u32,
    /// Slots by number: slot `n` begins at `n` times the width.
    slots: BTreeMap<i64, T>,
    /// The first and last time seen, ns since the epoch.
    span: Option<(i64, i64)>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { doublings: 0, slots: BTreeMap::new(), span: None }
    }
}

impl<T: Merge> Slots<T> {
    /// Returns the slot that contains a time.
    pub fn at(&mut self, at_ns: i64) -> &mut T {
        self.reach(at_ns);
        self.slots.entry(at_ns.div_euclid(self.width_ns())).or_default()
    }

    /// Passes each slot within an interval its part of the interval, ns. The interval is empty if its end is before its
    /// beginning.
    pub fn spread(&mut self, from_ns: i64, to_ns: i64, mut each: impl FnMut(&mut T, u64)) {
        if from_ns >= to_ns {
            return;
        }
        self.reach(from_ns);
        self.reach(to_ns);
        let width = i128::from(self.width_ns());
        for number in from_ns.div_euclid(self.width_ns())..=to_ns.div_euclid(self.width_ns()) {
            let begin = i128::from(number) * width;
            let part = i128::from(to_ns).min(begin + width) - i128::from(from_ns).max(begin);
            if part > 0 {
                each(self.slots.entry(number).or_default(), u64::try_from(part).unwrap_or(u64::MAX));
            }
        }
    }

    /// Widens the slots until they can include another time.
    fn reach(&mut self, at_ns: i64) {
        let (first, last) =
            self.span.map_or((at_ns, at_ns), |(first, last)| (first.min(at_ns), last.max(at_ns)));
        self.span = Some((first, last));
        while self.doublings < DOUBLINGS_MAX && self.count() > SLOTS_MAX {
            self.doublings += 1;
            for (number, slot) in std::mem::take(&mut self.slots) {
                self.slots.entry(number.div_euclid(2)).or_default().merge(slot);
            }
        }
    }
}

impl<T> Slots<T> {
    /// Returns the width of a slot, ns.
    pub fn width_ns(&self) -> i64 {
        WIDTH_NS_MIN << self.doublings
    }

    /// Returns the first and last time seen, in nanoseconds since the epoch; `None` before the first.
    pub fn span(&self) -> Option<(i64, i64)> {
        self.span
    }

    /// Returns the number of slots from the first to the last, including empty ones.
    pub fn count(&self) -> usize {
        let width = self.width_ns();
        self.span.map_or(0, |(first, last)| {
            let slots = last.div_euclid(width).abs_diff(first.div_euclid(width)).saturating_add(1);
            usize::try_from(slots).unwrap_or(usize::MAX)
        })
    }

    /// Returns the start of slot `index`, counted from the first, ns since the epoch.
    pub fn begin_ns(&self, index: usize) -> i64 {
        let first = self.span.map_or(0, |(first, _)| first.div_euclid(self.width_ns()));
        let begin = (i128::from(first) + index as i128) * i128::from(self.width_ns());
        i64::try_from(begin).unwrap_or(if begin < 0 { i64::MIN } else { i64::MAX })
    }

    /// Returns the part of slot `index` that is between the first and last time seen, ns; at least 1.
    pub fn covered_ns(&self, index: usize) -> u64 {
        let Some((first, last)) = self.span else { return 1 };
        let begin = i128::from(self.begin_ns(index));
        let end = begin + i128::from(self.width_ns());
        let covered = end.min(i128::from(last)) - begin.max(i128::from(first));
        u64::try_from(covered).unwrap_or(0).max(1)
    }

    /// Returns the value of each slot, in order; `None` for an empty slot.
    pub fn iter(&self) -> impl Iterator<Item = Option<&T>> {
        let first = self.span.map_or(0, |(first, _)| first.div_euclid(self.width_ns()));
        (0..self.count()).map(move |index| self.slots.get(&first.saturating_add(index as i64)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    struct Sum(u128);

    impl Merge for Sum {
        fn merge(&mut self, other: Self) {
            self.0 += other.0;
        }
    }

    fn slots_of(spans: &[(i64, i64)]) -> Slots<Sum> {
        let mut slots = Slots::<Sum>::default();
        for &(from, length) in spans {
            slots.at(from).0 += 1;
            slots.spread(from, from.saturating_add(length), |sum, ns| sum.0 += u128::from(ns) << 32);
        }
        slots
    }

    fn span() -> impl Strategy<Value = (i64, i64)> {
        let from = prop_oneof![-1_000_000_000_i64..9_000_000_000, any::<i64>(), 0_i64..100];
        let length = prop_oneof![0_i64..10_000_000, 0..i64::MAX, Just(0)];
        (from, length)
    }

    proptest! {
        #[test]
        fn sums_are_kept_in_any_order(spans in prop::collection::vec(span(), 1..40), rotated in 0_usize..40) {
            let slots = slots_of(&spans);
            let length = |&(from, length): &(i64, i64)| (i128::from(from.saturating_add(length)) - i128::from(from)) as u128;
            let expected = spans.len() as u128 + (spans.iter().map(length).sum::<u128>() << 32);
            prop_assert_eq!(slots.iter().flatten().map(|sum| sum.0).sum::<u128>(), expected);
            prop_assert!(slots.count() <= SLOTS_MAX);
            prop_assert_eq!(slots.iter().count(), slots.count());
            let mut others = spans.clone();
            others.rotate_left(rotated % spans.len());
            others.reverse();
            let others = slots_of(&others);
            prop_assert_eq!(others.width_ns(), slots.width_ns());
            prop_assert!(others.iter().eq(slots.iter()));
        }
    }

    #[test]
    fn a_time_is_in_the_slot_that_begins_before_it() {
        let mut slots: Slots<Sum> = Slots::default();
        assert_eq!((slots.count(), slots.iter().count(), slots.span()), (0, 0, None));
        slots.at(-1).0 += 1;
        slots.at(0).0 += 2;
        slots.spread(5, 5, |_, _| unreachable!("nothing lies between"));
        slots.spread(7, 5, |_, _| unreachable!("nothing lies between"));
        assert_eq!((slots.count(), slots.begin_ns(0), slots.begin_ns(1)), (2, -WIDTH_NS_MIN, 0));
        assert!(slots.iter().flatten().eq(&[Sum(1), Sum(2)]));
        assert_eq!((slots.covered_ns(0), slots.covered_ns(1)), (1, 1));
        slots.at(300 * WIDTH_NS_MIN).0 += 4;
        assert_eq!((slots.width_ns(), slots.begin_ns(0)), (2 * WIDTH_NS_MIN, -2 * WIDTH_NS_MIN));
        assert_eq!(slots.iter().flatten().map(|sum| sum.0).collect::<Vec<_>>(), [1, 2, 4]);
    }
}
