//! What lanes of a class take for a unit of cost, by the key that tasks give, learnt from every slice.
//!
//! The rate is time by cost of the last slices, those before counting ever less: so a large slice tells more than a small
//! one, whose time is mostly that of a launch. It owns the estimate; it must not know who works or for whom.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::classes::ClassId;
use crate::config::{COST_MAX, DURATION_NS_MAX, UNITS_MAX};
use crate::name::Name;
use crate::state_hash::{Component, StateHash, hash_component};

/// With each slice, what was before counts for 1/8 less.
const SMOOTHING: i64 = 8;
/// A slice costs at most so many times what the largest so far did: a first measurement may be a bad one.
const GROWTH: i64 = 2;
/// Keys that are known of each class of lanes. Beyond, the one that was not met for longest is forgotten.
const RATES_MAX: usize = 1_024;
const FS_PER_NS: i128 = 1_000_000;

// What loses an eighth, rounded down, before it gains something stays below nine gains and eight. Time loses 1/15 at least
// once costs add up to eight.
const _: () = assert!(UNITS_MAX.checked_mul(COST_MAX).unwrap().checked_mul(SMOOTHING + 2).is_some());
const _: () = assert!(DURATION_NS_MAX.checked_mul(4 * SMOOTHING).is_some());

/// All rates.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Rates {
    classes: Vec<BTreeMap<Name, Rate>>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Rate {
    service_ns: i64,
    /// Positive.
    cost: i64,
    /// Cost of the largest slice so far.
    cost_max: i64,
    /// The last slice.
    slice: i64,
    contribution: u64,
}

impl Rate {
    fn hash(&self, class: usize, key: &str) -> u64 {
        let key = xxh3_64(key.as_bytes()) as i64;
        let fields = [class as i64, key, self.service_ns, self.cost, self.cost_max, self.slice];
        hash_component(Component::Rate, fields)
    }
}

fn bounded(wide: i128, max: i64) -> i64 {
    wide.min(i128::from(max)) as i64
}

impl Rates {
    pub(crate) fn new(classes: usize) -> Self {
        Self { classes: (0..classes).map(|_| BTreeMap::new()).collect() }
    }

    fn rate(&self, class: ClassId, key: &str) -> Option<&Rate> {
        self.classes[class.index()].get(key)
    }

    /// Time for a unit of cost in femtoseconds; 0 while unknown.
    pub(crate) fn fs_per_cost(&self, class: ClassId, key: &str) -> i64 {
        let fs = |rate: &Rate| i128::from(rate.service_ns) * FS_PER_NS / i128::from(rate.cost);
        self.rate(class, key).map_or(0, |rate| bounded(fs(rate), i64::MAX))
    }

    /// Time for so much cost in nanoseconds; `None` while unknown.
    pub(crate) fn predict_ns(&self, class: ClassId, key: &str, cost: i64) -> Option<i64> {
        let ns = |rate: &Rate| i128::from(cost) * i128::from(rate.service_ns) / i128::from(rate.cost);
        self.rate(class, key).map(|rate| bounded(ns(rate), DURATION_NS_MAX))
    }

    /// Units of a slice that takes about the wanted time: one at least, and one while nothing is known.
    pub(crate) fn slice_units(&self, class: ClassId, key: &str, unit_cost: i64, wanted_ns: i64) -> i64 {
        let Some(rate) = self.rate(class, key) else { return 1 };
        let grown = rate.cost_max * GROWTH;
        // A time of 0 was too short for its clock.
        let wanted = i128::from(wanted_ns) * i128::from(rate.cost) / i128::from(rate.service_ns.max(1));
        (bounded(wanted, grown) / unit_cost).max(1)
    }

    /// Learns what a slice of so much cost took.
    pub(crate) fn learn(
        &mut self,
        class: ClassId,
        key: &Name,
        slice: i64,
        cost: i64,
        service_ns: i64,
        hash: &mut StateHash,
    ) {
        let class = class.index();
        let rates = &mut self.classes[class];
        if rates.len() >= RATES_MAX && !rates.contains_key(key) {
            let oldest = rates.iter().min_by_key(|(_, rate)| rate.slice).map(|(key, _)| key.clone());
            let forgotten = oldest.and_then(|oldest| rates.remove(&oldest)).expect("rates are known");
            hash.remove(forgotten.contribution);
        }
        let rate = rates.entry(key.clone()).or_default();
        // Time loses the share that cost does, to the last unit, so that a rate that does not change stays as it is.
        let kept = rate.cost - rate.cost / SMOOTHING;
        let kept_ns = i128::from(rate.service_ns) * i128::from(kept) / i128::from(rate.cost.max(1));
        rate.service_ns = kept_ns as i64 + service_ns.min(DURATION_NS_MAX);
        rate.cost = kept + cost;
        rate.cost_max = rate.cost_max.max(cost);
        rate.slice = slice;
        let now = rate.hash(class, key);
        hash.replace(&mut rate.contribution, now);
    }

    /// Hash of everything here, by walking.
    pub(crate) fn walked_hash(&self) -> u64 {
        let classes = self.classes.iter().enumerate();
        let hashes =
            classes.flat_map(|(class, rates)| rates.iter().map(move |(key, rate)| rate.hash(class, key)));
        hashes.fold(0, u64::wrapping_add)
    }
}

#[cfg(test)]
mod tests {
    use warptape_events::journal::LaneKind;

    use super::*;

    const CLASS: ClassId = ClassId::of_kind(LaneKind::Host);

    fn learnt(slices: &[(i64, i64)]) -> (Rates, StateHash) {
        let (mut rates, mut hash) = (Rates::new(2), StateHash::default());
        for (slice, &(cost, service_ns)) in (0..).zip(slices) {
            rates.learn(CLASS, &"key".into(), slice, cost, service_ns, &mut hash);
        }
        assert_eq!(hash.value(), rates.walked_hash());
        (rates, hash)
    }

    /// Units of slices of a lane that takes `launch_ns` and then `unit_ns` for each, wanted to take 500 µs.
    fn check_slices(launch_ns: i64, unit_ns: i64, expected: &[i64]) {
        let (mut slices, mut found) = (Vec::new(), Vec::new());
        for _ in expected {
            let units = learnt(&slices).0.slice_units(CLASS, "key", 3, 500_000);
            slices.push((3 * units, launch_ns + units * unit_ns));
            found.push(units);
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn slices_grow_until_they_take_what_they_should() {
        check_slices(0, 100_000, &[1, 2, 4, 5, 5]);
        check_slices(20_000, 10_000, &[1, 2, 4, 8, 16, 32, 43, 45]);
        check_slices(0, 2_000_000, &[1, 1]);
        check_slices(0, 0, &[1, 2, 4, 8]);
    }

    #[test]
    fn large_slices_tell_more_than_small_ones() {
        let (rates, _) = learnt(&[(1_000, 1_000_000), (1, 20_000)]);
        // 875 + 1 of cost in 875,000 + 20,000 ns.
        assert_eq!(rates.fs_per_cost(CLASS, "key"), 1_021_689_497);
        assert_eq!(rates.predict_ns(CLASS, "key", 10_000), Some(10_216_894));
        assert_eq!(rates.predict_ns(ClassId::of_kind(LaneKind::Device), "key", 1), None);
    }

    #[test]
    fn nothing_leaves_the_range() {
        let (rates, _) = learnt(&[(UNITS_MAX * COST_MAX, i64::MAX); 100]);
        assert!(rates.predict_ns(CLASS, "key", UNITS_MAX * COST_MAX).unwrap() <= DURATION_NS_MAX);
        assert!(rates.slice_units(CLASS, "key", 1, 1) >= 1);
        let (rates, _) = learnt(&[(1, i64::MAX)]);
        assert_eq!(rates.predict_ns(CLASS, "key", UNITS_MAX), Some(DURATION_NS_MAX));
        assert_eq!(rates.fs_per_cost(CLASS, "key"), i64::MAX);
    }

    #[test]
    fn the_key_that_was_not_met_for_longest_is_forgotten() {
        let (mut rates, mut hash) = learnt(&[(1, 10)]);
        for slice in 1..=RATES_MAX as i64 {
            assert!(slice < 3 || rates.predict_ns(CLASS, "0002", 1).is_some());
            let key = if slice == 1 { "key".into() } else { format!("{slice:04}").into() };
            rates.learn(CLASS, &key, slice, 1, 10, &mut hash);
        }
        rates.learn(CLASS, &"new".into(), 5_000, 1, 10, &mut hash);
        assert_eq!(rates.predict_ns(CLASS, "key", 1), None);
        assert_eq!(rates.predict_ns(CLASS, "0002", 1), Some(10));
        assert_eq!(hash.value(), rates.walked_hash());
    }
}
