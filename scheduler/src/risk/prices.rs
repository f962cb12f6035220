//! Prices of kinds of tasks: their values, and when to ask for new ones.
//!
//! ```text
//!   TaskArrived ──► arrivals of each kind ────┐
//!   SliceDone ────► rates by class ───────────┼──► a change by a tenth ──► AskPrices ──► (solved outside) ──► Priced
//!   lanes that come and go ───────────────────┘
//! ```
//!
//! The module owns the question and its answer; it must not solve anything.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use warptape_events::journal::{AskPrices, KindDemand, Priced};
use xxhash_rust::xxh3::xxh3_64;

use super::rates::Rates;
use crate::classes::ClassId;
use crate::lanes::Lanes;
use crate::log2::log2_16;
use crate::name::Name;
use crate::policy::task::Offer;
use crate::service::Serving;
use crate::state_hash::{Component, StateHash, hash_component};

/// Most kinds in a question; the kinds with the most work are kept.
pub(crate) const KINDS_MAX: usize = 64;
/// Most kinds whose arrivals are counted. A further kind replaces the one with the least cost.
const DEMANDS_MAX: usize = 1_024;
/// Share that earlier arrivals lose at each check: 1/8.
const SMOOTHING: i64 = 8;
/// Inverse of the relative change of a share of work, or of a rate, above which a new question is asked: 1/10.
const CHANGE: i128 = 10;
/// Least change of a share of work that causes a new question, in parts per million.
const SHARE_MIN_PPM: i128 = 10_000;
const PPM: i128 = 1_000_000;
/// Greatest result of [`Prices::forgone`]: four powers of two, with 16 bits after the point.
const FORGONE_MAX: i64 = 4 << 16;
/// Greatest cost that counts for a kind, so that sums do not overflow.
const COST_MAX: i64 = 1 << 60;

/// Known prices, demand and the last question.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Prices {
    known: BTreeMap<Name, Known>,
    demands: BTreeMap<Name, Demand>,
    /// The last question, whose kinds the answer identifies by position.
    asked: Option<AskPrices>,
    question_next: i64,
    /// Time of the next check.
    next_ns: i64,
    contribution: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Known {
    price: i64,
    contribution: u64,
}

/// Recent arrivals of a kind.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Demand {
    cost: i64,
    contribution: u64,
}

fn hash_of(component: Component, key: &str, value: i64) -> u64 {
    hash_component(component, [xxh3_64(key.as_bytes()) as i64, value])
}

impl Prices {
    /// Price of a unit of cost of a kind; 0 if there is none.
    pub(crate) fn price(&self, key: &str) -> i64 {
        self.known.get(key).map_or(0, |known| known.price)
    }

    /// Powers of two by which lane time of a class is worth more on another kind, with 16 bits after the point. It is
    /// at most [`FORGONE_MAX`], and 0 if unknown. A price of 0 counts as no price.
    pub(crate) fn forgone(&self, rates: &Rates, class: ClassId, key: &str) -> i64 {
        let offer =
            |key: &str, price| Offer { price, fs_per_cost: rates.fs_per_cost(class, key), turn_ns: 0 };
        let own = offer(key, self.price(key));
        if !own.is_known() {
            return 0;
        }
        let offers = self.known.iter().map(|(key, known)| offer(key, known.price));
        let best = offers.filter(|offer| offer.is_known()).max_by(|one, other| one.worth(*other));
        // Rounded logarithms may differ between kinds of equal worth.
        let better = best.filter(|best| best.worth(own) == Ordering::Greater);
        let worth = |offer: Offer| log2_16(offer.price) - log2_16(offer.fs_per_cost);
        better.map_or(0, |better| (worth(better) - worth(own)).clamp(0, FORGONE_MAX))
    }

    /// Number of the next question.
    pub(crate) fn question_next(&self) -> i64 {
        self.question_next
    }

    /// The last question; `None` if it has another number.
    pub(crate) fn question(&self, question: i64) -> Option<&AskPrices> {
        self.asked.as_ref().filter(|asked| asked.question == question)
    }

    /// Counts arrived work of a kind.
    pub(crate) fn count(&mut self, key: &Name, cost: i64, hash: &mut StateHash) {
        if self.demands.len() >= DEMANDS_MAX && !self.demands.contains_key(key) {
            let least = self.demands.iter().min_by_key(|(_, demand)| demand.cost).map(|(key, _)| key.clone());
            let forgotten = least.and_then(|least| self.demands.remove(&least)).expect("demands are known");
            hash.remove(forgotten.contribution);
        }
        let demand = self.demands.entry(key.clone()).or_default();
        demand.cost = demand.cost.saturating_add(cost).min(COST_MAX);
        let now = hash_of(Component::Demand, key, demand.cost);
        hash.replace(&mut demand.contribution, now);
    }

    /// Asks for new prices if a check is due and something has changed.
    pub(crate) fn look(
        &mut self,
        at_ns: i64,
        interval_ns: i64,
        lanes: &Lanes,
        rates: &Rates,
        hash: &mut StateHash,
    ) -> Option<AskPrices> {
        if interval_ns == 0 || at_ns < self.next_ns {
            return None;
        }
        let question = self.ask(lanes, rates);
        for (key, demand) in &mut self.demands {
            demand.cost -= (demand.cost / SMOOTHING).max(1).min(demand.cost);
            let now = hash_of(Component::Demand, key, demand.cost);
            hash.replace(&mut demand.contribution, now);
        }
        self.demands.retain(|_, demand| {
            let stays = demand.cost > 0;
            if !stays {
                hash.remove(demand.contribution);
            }
            stays
        });
        self.next_ns = at_ns + interval_ns;
        let asks = question.filter(|question| {
            !question.kinds.is_empty() && self.asked.as_ref().is_none_or(|asked| is_changed(asked, question))
        });
        if let Some(question) = &asks {
            self.question_next += 1;
            self.asked = Some(question.clone());
        }
        self.refresh(hash);
        asks
    }

    /// The question in the present state; `None` if no lane gets work.
    fn ask(&self, lanes: &Lanes, rates: &Rates) -> Option<AskPrices> {
        let mut classes: BTreeMap<ClassId, i32> = BTreeMap::new();
        let serving = Serving::of(lanes);
        for lane in lanes.iter().filter(|lane| serving.has(lane) && lane.weight.current > 0) {
            *classes.entry(lane.class).or_default() += 1;
        }
        let demand = |(key, demand): (&Name, &Demand)| {
            let fs_per_cost: Vec<_> = classes.keys().map(|class| rates.fs_per_cost(*class, key)).collect();
            let is_known = fs_per_cost.iter().any(|fs| *fs > 0);
            is_known.then(|| KindDemand { rate_key: str::to_owned(key), cost: demand.cost, fs_per_cost })
        };
        let mut kinds: Vec<_> = self.demands.iter().filter_map(demand).collect();
        if kinds.len() > KINDS_MAX {
            // The sort is stable: among equals, the first by name is kept.
            kinds.sort_by_key(|kind| std::cmp::Reverse(work_fs(kind)));
            kinds.truncate(KINDS_MAX);
            kinds.sort_by(|one, other| one.rate_key.cmp(&other.rate_key));
        }
        let lanes: Vec<_> = classes.into_values().collect();
        (!lanes.is_empty()).then_some(AskPrices { question: self.question_next, lanes, kinds })
    }

    /// Stores the answer to the last question; an answer to an older one changes nothing.
    pub(crate) fn answer(&mut self, priced: &Priced, hash: &mut StateHash) {
        let Some(asked) = self.question(priced.question) else { return };
        let kinds: Vec<Name> = asked.kinds.iter().map(|kind| kind.rate_key.as_str().into()).collect();
        if priced.prices.is_empty() {
            return;
        }
        for known in std::mem::take(&mut self.known).into_values() {
            hash.remove(known.contribution);
        }
        for (kind, &price) in kinds.into_iter().zip(&priced.prices) {
            let contribution = hash_of(Component::Price, &kind, price);
            hash.add(contribution);
            self.known.insert(kind, Known { price, contribution });
        }
    }

    /// Forgets everything except the number of the next question.
    pub(crate) fn clear(&mut self, hash: &mut StateHash) {
        let Self { known, demands, question_next, contribution, .. } = std::mem::take(self);
        known.into_values().for_each(|known| hash.remove(known.contribution));
        demands.into_values().for_each(|demand| hash.remove(demand.contribution));
        (self.question_next, self.contribution) = (question_next, contribution);
        self.refresh(hash);
    }

    /// Hash of the question; 0 before the first check.
    fn hash(&self) -> u64 {
        if (self.next_ns, self.question_next) == (0, 0) {
            return 0;
        }
        let asked = self.asked.iter().flat_map(|asked| &asked.kinds).map(|kind| {
            let rates = kind.fs_per_cost.iter().flat_map(|fs| fs.to_le_bytes()).collect::<Vec<_>>();
            let lanes =
                self.asked.iter().flat_map(|asked| &asked.lanes).flat_map(|count| count.to_le_bytes());
            let lanes = xxh3_64(&lanes.collect::<Vec<_>>()) as i64;
            let fields = [xxh3_64(kind.rate_key.as_bytes()) as i64, kind.cost, xxh3_64(&rates) as i64, lanes];
            hash_component(Component::Prices, fields)
        });
        asked.fold(hash_component(Component::Prices, [self.question_next, self.next_ns]), u64::wrapping_add)
    }

    fn refresh(&mut self, hash: &mut StateHash) {
        let now = self.hash();
        hash.replace(&mut self.contribution, now);
    }

    /// Hash of prices, demand and question, computed by walking over them.
    pub(crate) fn walked_hash(&self) -> u64 {
        let known = self.known.iter().map(|(key, known)| hash_of(Component::Price, key, known.price));
        let demands = self.demands.iter().map(|(key, demand)| hash_of(Component::Demand, key, demand.cost));
        known.chain(demands).chain([self.hash()]).fold(0, u64::wrapping_add)
    }
}

/// Work of a kind, in femtoseconds: its cost times the time for a unit on the fastest class.
fn work_fs(kind: &KindDemand) -> i128 {
    let fastest = kind.fs_per_cost.iter().filter(|fs| **fs > 0).min().copied().unwrap_or(0);
    i128::from(kind.cost) * i128::from(fastest)
}

/// True if lanes or kinds have changed, or if a share of work or a rate has changed by more than a tenth.
fn is_changed(before: &AskPrices, now: &AskPrices) -> bool {
    let keys = |question: &AskPrices| -> Vec<String> {
        question.kinds.iter().map(|kind| kind.rate_key.clone()).collect()
    };
    if before.lanes != now.lanes || keys(before) != keys(now) {
        return true;
    }
    let total = |question: &AskPrices| question.kinds.iter().map(work_fs).sum::<i128>().max(1);
    let (total_before, total_now) = (total(before), total(now));
    // Work can reach 2^123 fs: shares are computed from parts of the total, so that nothing overflows.
    let share_ppm = |kind: &KindDemand, total: i128| work_fs(kind) / (total / PPM).max(1);
    before.kinds.iter().zip(&now.kinds).any(|(before, now)| {
        let (share_before, share_now) = (share_ppm(before, total_before), share_ppm(now, total_now));
        let differs = |one: i128, other: i128, least: i128| (one - other).abs() > (one / CHANGE).max(least);
        let rates = before.fs_per_cost.iter().zip(&now.fs_per_cost);
        differs(share_before, share_now, SHARE_MIN_PPM)
            || rates.into_iter().any(|(before, now)| differs(i128::from(*before), i128::from(*now), 0))
    })
}

#[cfg(test)]
mod tests {
    use warptape_events::journal::LaneKind;

    use super::*;
    use crate::risk::rates::Done;

    const CLASS: ClassId = ClassId::of_kind(LaneKind::Host);

    /// Results of `forgone` for four kinds at these prices. A unit of the first three took a microsecond; no unit of
    /// the last was ever done.
    fn forgone(prices: [i64; 4]) -> [i64; 4] {
        let kinds = ["a", "b", "c", "unknown"];
        let (mut rates, mut hash) = (Rates::new(2, false), StateHash::default());
        for kind in &kinds[..3] {
            rates.learn(CLASS, &(*kind).into(), Done { slice: 0, cost: 1, service_ns: 1_000 }, &mut hash);
        }
        let known = |(kind, price): (&str, i64)| (kind.into(), Known { price, contribution: 0 });
        let known = kinds.into_iter().zip(prices).map(known).collect();
        let prices = Prices { known, ..Prices::default() };
        kinds.map(|kind| prices.forgone(&rates, CLASS, kind))
    }

    #[test]
    fn what_is_forgone_is_known_of_kinds_with_prices_and_rates_and_has_a_limit() {
        let one = 1 << 16;
        assert_eq!(forgone([400, 200, 100, i64::MAX]), [0, one, 2 * one, 0]);
        // Without a price nothing is known; a worth of sixteen times or more counts as sixteen times.
        assert_eq!(forgone([1 << 40, 0, 1, 0]), [0, 0, FORGONE_MAX, 0]);
        assert_eq!(forgone([7, 7, 7, 7]), [0; 4]);
        assert_eq!(forgone([0; 4]), [0; 4]);
    }
}
