//! Faults of lanes: when lanes are lost and return, and when they are throttled.

use warptape_events::journal::LaneId;

use crate::draws::Draws;
use crate::fleet::{Failure, Fleet, Outage};

/// The loss of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Loss {
    /// Index of the fleet's failure that causes it.
    pub(crate) failure: usize,
    pub(crate) lane: LaneId,
    /// Number of the loss among the losses of its lane and failure, from 0.
    number: u64,
    /// Time of the loss, in nanoseconds from the start of the run.
    pub(crate) at_ns: i64,
    /// Time at which the lane returns, in nanoseconds from the start of the run; `None` if it never does.
    pub(crate) back_ns: Option<i64>,
}

fn ns(seconds: f64) -> i64 {
    // The bound is longer than any run.
    (seconds * 1e9).min(1e18) as i64
}

/// Returns the first loss of each lane by each failure.
pub(crate) fn first(fleet: &Fleet, seed: u64) -> Vec<Loss> {
    let mut losses = Vec::new();
    for (index, failure) in fleet.failures.iter().enumerate() {
        for lane in failure.lanes.clone() {
            losses.push(loss(failure, index, lane as LaneId, 0, 0, seed));
        }
    }
    losses
}

/// Returns the loss that follows another one; `None` unless losses are drawn.
pub(crate) fn next(fleet: &Fleet, before: Loss, seed: u64) -> Option<Loss> {
    let failure = &fleet.failures[before.failure];
    let from_ns = before.back_ns.filter(|_| matches!(failure.outage, Outage::Drawn { .. }))?;
    Some(loss(failure, before.failure, before.lane, before.number + 1, from_ns, seed))
}

fn loss(failure: &Failure, index: usize, lane: LaneId, number: u64, from_ns: i64, seed: u64) -> Loss {
    let (at_ns, back_ns) = match failure.outage {
        Outage::At { at_s, back_after_s } => (ns(at_s), back_after_s.map(|after_s| ns(at_s + after_s))),
        Outage::Drawn { mtbf_s, mttr_s } => {
            let of = |name: &str| Draws::new(seed, &format!("{name} {index} {lane}")).exponential(number);
            let at_ns = from_ns + ns(mtbf_s * of("loss"));
            (at_ns, Some(at_ns + ns(mttr_s * of("repair")).max(1)))
        }
    };
    Loss { failure: index, lane, number, at_ns, back_ns }
}

/// Speed of each lane over time, in spans. A span has its start in nanoseconds, and a share of the lane's full speed.
#[derive(Clone, Debug)]
pub(crate) struct Slowness {
    spans: Vec<Vec<(i64, f64)>>,
}

impl Slowness {
    pub(crate) fn new(fleet: &Fleet) -> Self {
        let of_lane = |lane: usize| {
            let of: Vec<_> = fleet.throttling.iter().filter(|one| one.lanes.contains(&lane)).collect();
            let mut begins: Vec<i64> =
                of.iter().flat_map(|one| [one.from_s, one.until_s]).map(ns).chain([0]).collect();
            begins.sort_unstable();
            begins.dedup();
            let share = |at_ns: i64| {
                let holds = of.iter().filter(|one| (ns(one.from_s)..ns(one.until_s)).contains(&at_ns));
                holds.map(|one| one.factor).product()
            };
            begins.into_iter().map(|at_ns| (at_ns, share(at_ns))).collect()
        };
        Self { spans: (0..fleet.lanes()).map(of_lane).collect() }
    }

    /// Returns the time that a lane needs, from `from_ns` on, for work that takes `full_ns` at full speed, in
    /// nanoseconds.
    pub(crate) fn takes_ns(&self, lane: LaneId, from_ns: i64, full_ns: i64) -> i64 {
        let spans = &self.spans[lane as usize];
        let mut index = spans.partition_point(|(begin_ns, _)| *begin_ns <= from_ns) - 1;
        let (mut at_ns, mut left_ns) = (from_ns, full_ns);
        loop {
            let share = spans[index].1;
            let end_ns = spans.get(index + 1).map_or(i64::MAX, |(begin_ns, _)| *begin_ns);
            let needs_ns = if share == 1.0 { left_ns } else { (left_ns as f64 / share) as i64 };
            if needs_ns <= end_ns - at_ns {
                return at_ns + needs_ns - from_ns;
            }
            left_ns -= ((end_ns - at_ns) as f64 * share) as i64;
            at_ns = end_ns;
            index += 1;
        }
    }

    /// Returns the work that a lane does between two times, in nanoseconds at full speed.
    pub(crate) fn done_ns(&self, lane: LaneId, from_ns: i64, to_ns: i64) -> i64 {
        let spans = &self.spans[lane as usize];
        let mut index = spans.partition_point(|(begin_ns, _)| *begin_ns <= from_ns) - 1;
        let (mut at_ns, mut done_ns) = (from_ns, 0);
        while at_ns < to_ns {
            let share = spans[index].1;
            let end_ns = spans.get(index + 1).map_or(i64::MAX, |(begin_ns, _)| *begin_ns).min(to_ns);
            done_ns += if share == 1.0 { end_ns - at_ns } else { ((end_ns - at_ns) as f64 * share) as i64 };
            at_ns = end_ns;
            index += 1;
        }
        done_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Throttling;

    #[test]
    fn a_slower_lane_takes_longer_for_as_long_as_it_is_slower() {
        let mut fleet = Fleet::volta_turing_radeon();
        let slow = |from_s, until_s, factor| Throttling { lanes: 1..2, from_s, until_s, factor };
        fleet.throttling = vec![slow(1.0, 3.0, 0.5), slow(2.0, 4.0, 0.5)];
        let slowness = Slowness::new(&fleet);
        let takes_s =
            |lane, from_s: f64, full_s: f64| slowness.takes_ns(lane, ns(from_s), ns(full_s)) as f64 / 1e9;
        assert_eq!(takes_s(0, 1.5, 7.0), 7.0);
        assert_eq!(takes_s(1, 0.0, 1.0), 1.0);
        // The lane runs one second each at full, half, quarter and half speed, then at full speed: 1 + 0.5 + 0.25 + 0.5
        // + 0.75.
        assert_eq!(takes_s(1, 0.0, 3.0), 4.75);
        assert_eq!(takes_s(1, 2.5, 0.125), 0.5);
        // The lane does exactly the requested work in the returned time.
        for (from_s, full_s) in [(0.0, 0.5), (0.25, 3.0), (2.5, 0.125), (1.5, 7.0)] {
            let to_ns = ns(from_s) + slowness.takes_ns(1, ns(from_s), ns(full_s));
            assert_eq!(slowness.done_ns(1, ns(from_s), to_ns), ns(full_s), "{from_s} {full_s}");
        }
    }

    #[test]
    fn drawn_losses_have_their_means_and_follow_each_other() {
        let mut fleet = Fleet::volta_turing_radeon();
        fleet.failures = vec![Failure { lanes: 3..5, outage: Outage::Drawn { mtbf_s: 10.0, mttr_s: 2.0 } }];
        let mut losses = first(&fleet, 7);
        assert_eq!(losses.iter().map(|loss| loss.lane).collect::<Vec<_>>(), [3, 4]);
        let mut loss = losses.remove(0);
        let (mut worked_ns, mut lost_ns, mut back_ns) = (0, 0, 0);
        for _ in 0..4_000 {
            assert!(loss.at_ns >= back_ns && loss.back_ns > Some(loss.at_ns));
            worked_ns += loss.at_ns - back_ns;
            back_ns = loss.back_ns.unwrap();
            lost_ns += back_ns - loss.at_ns;
            loss = next(&fleet, loss, 7).unwrap();
        }
        // Five standard deviations are 8 %.
        let [works_s, lost_s] = [worked_ns, lost_ns].map(|ns| ns as f64 / 4_000e9);
        assert!(
            (works_s / 10.0 - 1.0).abs() < 0.08 && (lost_s / 2.0 - 1.0).abs() < 0.08,
            "{works_s} {lost_s}"
        );
    }
}
