//! Rates: the time that lanes of a class take for a unit of cost, by the task's rate key, learnt from every slice. Costs
//! are those of whole waves (`waves`).
//!
//! A rate is time divided by cost over the last slices; earlier ones count ever less. So a large slice counts more than
//! a small one, whose time is mostly launch overhead. If configured, slices are predicted by their size (`predictor`),
//! and by the rate while too little is known of the size. The module owns the estimates; it must not know who works or
//! for whom.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::predictor::{Drifted, Prediction, Predictor};
use crate::classes::ClassId;
use crate::config::{COST_MAX, DURATION_NS_MAX, UNITS_MAX, WIDTH_MAX};
use crate::name::Name;
use crate::ratio::mul_div;
use crate::state_hash::{Component, StateHash, hash_component};

/// Share of their weight that earlier slices lose with each slice: 1/8.
const SMOOTHING: i64 = 8;
/// Greatest size of a slice, as a multiple of the largest one so far, because a first measurement may be wrong.
const GROWTH: i64 = 2;
/// Most keys that are kept for each class of lanes. A further key replaces the one that was used least recently.
const RATES_MAX: usize = 1_024;
const FS_PER_NS: i64 = 1_000_000;
/// Greatest cost of a slice. The last of its waves may be partly filled, but counts as a whole one.
const SLICE_COST_MAX: i64 = (UNITS_MAX + WIDTH_MAX as i64) * COST_MAX;
/// Assumed time for a unit of cost on a lane of weight 1 before its class has done any slice. It is about a step of a
/// simulated path on one core. It only has to rank more work above less.
const PRIOR_NS: i64 = 4;

// A sum that loses an eighth (rounded down) before each gain stays below nine gains plus eight. Time loses at least
// 1/15 once costs add up to eight.
const _: () = assert!(SLICE_COST_MAX.checked_mul(SMOOTHING + 2).is_some());
const _: () = assert!(DURATION_NS_MAX.checked_mul(4 * SMOOTHING).is_some());

/// Rates of all classes and keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Rates {
    classes: Vec<BTreeMap<Name, Rate>>,
    /// True if slices are predicted by their size.
    has_predictor: bool,
    /// Time and cost of all kinds, by class, for priors. It follows from the other fields, so checkpoints leave it out.
    #[serde(skip)]
    totals: Vec<Total>,
}

/// Time and cost of all kinds on a class of lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Total {
    service_ns: i128,
    cost: i128,
}

impl Total {
    fn of<'a>(rates: impl Iterator<Item = &'a Rate>) -> Self {
        rates.fold(Self::default(), |sum, rate| sum.with(rate, 1))
    }

    fn with(self, rate: &Rate, sign: i128) -> Self {
        Self {
            service_ns: self.service_ns + sign * i128::from(rate.service_ns),
            cost: self.cost + sign * i128::from(rate.cost),
        }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Rate {
    service_ns: i64,
    /// Cost of the slices; positive.
    cost: i64,
    /// Cost of the largest slice so far.
    cost_max: i64,
    /// Number of the last slice.
    slice: i64,
    predictor: Option<Predictor>,
    contribution: u64,
}

/// A finished slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) slice: i64,
    pub(crate) cost: i64,
    pub(crate) service_ns: i64,
}

impl Rate {
    fn hash(&self, class: usize, key: &str) -> u64 {
        let key = xxh3_64(key.as_bytes()) as i64;
        let fields = [class as i64, key, self.service_ns, self.cost, self.cost_max, self.slice];
        let predictor = self.predictor.as_ref().map_or(0, |predictor| {
            hash_component(Component::Predictor, [class as i64, key, predictor.hash() as i64])
        });
        hash_component(Component::Rate, fields).wrapping_add(predictor)
    }

    /// Time for this cost at this rate.
    fn at_rate_ns(&self, cost: i64) -> i64 {
        bounded(mul_div(cost, self.service_ns, self.cost), DURATION_NS_MAX)
    }

    /// Predicted time of a slice.
    fn predict(&self, cost: i64) -> Prediction {
        let by_size = self.predictor.as_ref().and_then(|predictor| predictor.predict(cost));
        by_size.unwrap_or_else(|| {
            let mean_ns = self.at_rate_ns(cost);
            Prediction { mean_ns, upper_ns: mean_ns }
        })
    }
}

fn bounded(wide: i128, max: i64) -> i64 {
    wide.min(i128::from(max)) as i64
}

impl Rates {
    pub(crate) fn new(classes: usize, has_predictor: bool) -> Self {
        let totals = vec![Total::default(); classes];
        Self { classes: (0..classes).map(|_| BTreeMap::new()).collect(), has_predictor, totals }
    }

    /// Computes the totals that a checkpoint leaves out.
    pub(crate) fn restore_totals(&mut self) {
        self.totals = self.classes.iter().map(|rates| Total::of(rates.values())).collect();
    }

    /// Expected time of work on a lane of a class, in nanoseconds; `cost_on` gives the cost of the work on a class. If
    /// a kind is unknown on the class, it is the time of the fastest class that knows it. If no class knows it, it is
    /// the time of other kinds on this class, or else a prior by the lane's weight.
    pub(crate) fn expected_ns(
        &self,
        class: ClassId,
        weight: i32,
        key: &str,
        cost_on: impl Fn(ClassId) -> i64,
    ) -> i64 {
        let cost = cost_on(class);
        if let Some(predicted) = self.predict_work(class, key, cost) {
            return predicted.mean_ns;
        }
        let elsewhere = self.classes.iter().enumerate().filter_map(|(class, rates)| {
            Some(rates.get(key)?.predict(cost_on(ClassId::of_number(class))).mean_ns)
        });
        let Total { service_ns, cost: known } = self.totals[class.index()];
        let expected_ns = elsewhere.min().unwrap_or_else(|| {
            let wide = match known {
                0 => i128::from(cost) * i128::from(PRIOR_NS) / i128::from(weight.max(1)),
                known => i128::from(cost).saturating_mul(service_ns) / known,
            };
            bounded(wide, DURATION_NS_MAX)
        });
        expected_ns.max(1)
    }

    fn rate(&self, class: ClassId, key: &str) -> Option<&Rate> {
        self.classes[class.index()].get(key)
    }

    /// Time for a unit of cost in femtoseconds; 0 while unknown.
    pub(crate) fn fs_per_cost(&self, class: ClassId, key: &str) -> i64 {
        let fs = |rate: &Rate| mul_div(rate.service_ns, FS_PER_NS, rate.cost);
        self.rate(class, key).map_or(0, |rate| bounded(fs(rate), i64::MAX))
    }

    /// Predicted time of a slice of this cost; `None` while nothing is known.
    pub(crate) fn predict(&self, class: ClassId, key: &str, cost: i64) -> Option<Prediction> {
        self.rate(class, key).map(|rate| rate.predict(cost))
    }

    /// Predicted time of work of this cost, in slices as large as the largest so far; `None` while nothing is known.
    pub(crate) fn predict_work(&self, class: ClassId, key: &str, cost: i64) -> Option<Prediction> {
        let rate = self.rate(class, key)?;
        let (slices, rest) = (cost / rate.cost_max, cost % rate.cost_max);
        if rate.predictor.is_none() || slices == 0 {
            return Some(rate.predict(cost));
        }
        let (each, last) = (rate.predict(rate.cost_max), (rest > 0).then(|| rate.predict(rest)));
        let sum = |of: fn(Prediction) -> i64| {
            let wide = i128::from(slices) * i128::from(of(each)) + i128::from(last.map_or(0, of));
            bounded(wide, DURATION_NS_MAX)
        };
        let (mean_ns, upper_ns) =
            (sum(|prediction| prediction.mean_ns), sum(|prediction| prediction.upper_ns));
        Some(Prediction { mean_ns, upper_ns })
    }

    /// True if slices are predicted by their size.
    pub(crate) fn has_predictor(&self) -> bool {
        self.has_predictor
    }

    /// Waves of a slice that takes about `wanted_ns`: at least one, and one while nothing is known. `wave_cost` is the
    /// cost of a wave.
    pub(crate) fn slice_waves(&self, class: ClassId, key: &str, wave_cost: i64, wanted_ns: i64) -> i64 {
        let Some(rate) = self.rate(class, key) else { return 1 };
        let grown = rate.cost_max * GROWTH;
        // A measured time of 0 was too short for the clock.
        let wanted = mul_div(wanted_ns, rate.cost, rate.service_ns.max(1));
        (bounded(wanted, grown) / wave_cost).max(1)
    }

    /// Learns from the time of a slice. Returns the old estimate if it had drifted and is forgotten, otherwise `None`.
    pub(crate) fn learn(
        &mut self,
        class: ClassId,
        key: &Name,
        done: Done,
        hash: &mut StateHash,
    ) -> Option<Drifted> {
        let class = class.index();
        let rates = &mut self.classes[class];
        if rates.len() >= RATES_MAX && !rates.contains_key(key) {
            let oldest = rates.iter().min_by_key(|(_, rate)| rate.slice).map(|(key, _)| key.clone());
            let forgotten = oldest.and_then(|oldest| rates.remove(&oldest)).expect("rates are known");
            hash.remove(forgotten.contribution);
            self.totals[class] = self.totals[class].with(&forgotten, -1);
        }
        let rate = rates.entry(key.clone()).or_default();
        self.totals[class] = self.totals[class].with(rate, -1);
        let Done { slice, cost, service_ns } = done;
        let drifted = match self.has_predictor {
            true => rate.predictor.get_or_insert_default().learn(cost, service_ns),
            false => None,
        };
        if drifted.is_some() {
            (rate.service_ns, rate.cost) = (0, 0);
        }
        // Time loses exactly the same share as cost, so that an unchanged rate stays as it is.
        let kept = rate.cost - rate.cost / SMOOTHING;
        let kept_ns = mul_div(rate.service_ns, kept, rate.cost.max(1));
        rate.service_ns = kept_ns as i64 + service_ns.min(DURATION_NS_MAX);
        rate.cost = kept + cost;
        rate.cost_max = rate.cost_max.max(cost);
        rate.slice = slice;
        self.totals[class] = self.totals[class].with(rate, 1);
        let now = rate.hash(class, key);
        hash.replace(&mut rate.contribution, now);
        drifted
    }

    /// Computes the totals again.
    ///
    /// # Panics
    /// They differ from the kept totals.
    pub(crate) fn audit(&self) {
        let totals: Vec<_> = self.classes.iter().map(|rates| Total::of(rates.values())).collect();
        assert_eq!(self.totals, totals, "time and cost of all kinds");
    }

    /// Hash of all rates, computed by walking over them.
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

    impl Rates {
        fn predict_mean_ns(&self, class: ClassId, key: &str, cost: i64) -> Option<i64> {
            self.predict(class, key, cost).map(|predicted| predicted.mean_ns)
        }
    }

    #[test]
    fn work_is_predicted_slice_by_slice_and_drift_forgets_the_rate() {
        let (mut rates, mut hash) = (Rates::new(2, true), StateHash::default());
        let mut learn = |rates: &mut Rates, slice, cost, service_ns| {
            let drifted = rates.learn(CLASS, &"key".into(), Done { slice, cost, service_ns }, &mut hash);
            assert_eq!(hash.value(), rates.walked_hash());
            drifted
        };
        // A launch takes 1,000 ns, and a unit of cost 1 ns.
        for slice in 0..40 {
            assert_eq!(learn(&mut rates, slice, 4_000, 5_000), None);
            assert_eq!(learn(&mut rates, slice, 1_000, 2_000), None);
        }
        assert_eq!(rates.predict(CLASS, "key", 1_000).map(|predicted| predicted.mean_ns), Some(2_000));
        let work = rates.predict_work(CLASS, "key", 9_000).unwrap();
        assert_eq!(work.mean_ns, 12_000, "two slices and a small one");
        assert!(work.upper_ns >= work.mean_ns);
        let drifted = (0..9).find_map(|slice| learn(&mut rates, slice, 4_000, 50_000)).expect("it is slower");
        assert!((5_000..50_000).contains(&drifted.predicted_ns) && drifted.slices >= 80, "{drifted:?}");
        assert_eq!(rates.fs_per_cost(CLASS, "key"), 12_500_000);
    }

    fn learnt(slices: &[(i64, i64)]) -> (Rates, StateHash) {
        let (mut rates, mut hash) = (Rates::new(2, false), StateHash::default());
        for (slice, &(cost, service_ns)) in (0..).zip(slices) {
            rates.learn(CLASS, &"key".into(), Done { slice, cost, service_ns }, &mut hash);
        }
        assert_eq!(hash.value(), rates.walked_hash());
        (rates, hash)
    }

    /// Checks the units of slices that should take 500 µs, on a lane that takes `launch_ns` plus `unit_ns` for each
    /// unit.
    fn check_slices(launch_ns: i64, unit_ns: i64, expected: &[i64]) {
        let (mut slices, mut found) = (Vec::new(), Vec::new());
        for _ in expected {
            let units = learnt(&slices).0.slice_waves(CLASS, "key", 3, 500_000);
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

    fn expected_ns(rates: &Rates, class: ClassId, weight: i32, key: &str, cost: i64) -> i64 {
        rates.expected_ns(class, weight, key, |_| cost)
    }

    #[test]
    fn what_is_not_known_takes_what_other_kinds_do_and_never_nothing() {
        let (host, device) = (CLASS, ClassId::of_kind(LaneKind::Device));
        let (mut rates, mut hash) = (Rates::new(2, true), StateHash::default());
        assert_eq!([1, 100].map(|weight| expected_ns(&rates, host, weight, "a", 1_000)), [4_000, 40]);
        assert_eq!(expected_ns(&rates, host, 1_000_000, "a", 1), 1);
        for (slice, key, service_ns) in [(0, "a", 9_000), (1, "b", 1_000)] {
            rates.learn(host, &key.into(), Done { slice, cost: 100, service_ns }, &mut hash);
        }
        let expected = ["a", "b", "c"].map(|key| expected_ns(&rates, host, 1, key, 200));
        assert_eq!(expected, [18_000, 2_000, 10_000]);
        let expected = ["a", "c"].map(|key| expected_ns(&rates, device, 8, key, 200));
        assert_eq!(
            expected,
            [18_000, 100],
            "of a class that has done nothing the other one tells, if it knows"
        );
        assert!(expected_ns(&rates, host, 1, "c", SLICE_COST_MAX) <= DURATION_NS_MAX);
        // A class that knows the kind is asked for the cost that the work has there.
        let cost_on = |class| if class == host { 100 } else { 5_000 };
        assert_eq!(rates.expected_ns(device, 8, "a", cost_on), 9_000);
        rates.audit();
    }

    #[test]
    fn large_slices_tell_more_than_small_ones() {
        let (rates, _) = learnt(&[(1_000, 1_000_000), (1, 20_000)]);
        // 875 + 1 of cost in 875,000 + 20,000 ns.
        assert_eq!(rates.fs_per_cost(CLASS, "key"), 1_021_689_497);
        assert_eq!(rates.predict_mean_ns(CLASS, "key", 10_000), Some(10_216_894));
        assert_eq!(rates.predict_mean_ns(ClassId::of_kind(LaneKind::Device), "key", 1), None);
    }

    #[test]
    fn nothing_leaves_the_range() {
        let (rates, _) = learnt(&[(SLICE_COST_MAX, i64::MAX); 100]);
        assert!(rates.predict_mean_ns(CLASS, "key", SLICE_COST_MAX).unwrap() <= DURATION_NS_MAX);
        assert!(rates.slice_waves(CLASS, "key", 1, 1) >= 1);
        let (rates, _) = learnt(&[(1, i64::MAX)]);
        assert_eq!(rates.predict_mean_ns(CLASS, "key", UNITS_MAX), Some(DURATION_NS_MAX));
        assert_eq!(rates.fs_per_cost(CLASS, "key"), i64::MAX);
    }

    #[test]
    fn the_key_that_was_not_met_for_longest_is_forgotten() {
        let (mut rates, mut hash) = learnt(&[(1, 10)]);
        for slice in 1..=RATES_MAX as i64 {
            assert!(slice < 3 || rates.predict_mean_ns(CLASS, "0002", 1).is_some());
            let key = if slice == 1 { "key".into() } else { format!("{slice:04}").into() };
            rates.learn(CLASS, &key, Done { slice, cost: 1, service_ns: 10 }, &mut hash);
        }
        rates.learn(CLASS, &"new".into(), Done { slice: 5_000, cost: 1, service_ns: 10 }, &mut hash);
        assert_eq!(rates.predict_mean_ns(CLASS, "key", 1), None);
        assert_eq!(rates.predict_mean_ns(CLASS, "0002", 1), Some(10));
        assert_eq!(hash.value(), rates.walked_hash());
    }
}
