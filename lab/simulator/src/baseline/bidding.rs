//! Bidding: one agent for each class of lanes, none of which sees the whole fleet.
//!
//! ```text
//!   a task arrives ──► each agent bids: when would my best lane be done with it? ──► the lowest bid ──► its agent's best lane
//! ```
//!
//! An agent knows its own lanes: their queues, and their recent time per unit of cost of each kind. It does not know
//! other agents' lanes, nor anything that it did not measure. A kind that its lanes have not run yet costs nothing in
//! its bid, so that it gets measured.

use super::{Baseline, Rule};

/// Each slice reduces the weight of all earlier ones by 1/8.
const SMOOTHING: f64 = 8.0;

/// The measurements of one class's agent.
#[derive(Clone, Debug)]
pub(super) struct Agent {
    /// Time in nanoseconds and cost of past slices by kind, with exponentially falling weights.
    measured: Vec<(f64, f64)>,
}

impl Agent {
    pub(super) fn new(kinds: usize) -> Self {
        Self { measured: vec![(0.0, 0.0); kinds] }
    }

    /// Records the time that one of the agent's lanes took for work of a kind with this cost.
    pub(super) fn learn(&mut self, kind: usize, cost: i64, service_ns: i64) {
        let (known_ns, known_cost) = &mut self.measured[kind];
        let kept = 1.0 - 1.0 / SMOOTHING;
        (*known_ns, *known_cost) = (*known_ns * kept + service_ns as f64, *known_cost * kept + cost as f64);
    }

    /// Returns the expected time that one of the agent's lanes takes for work of a kind with this cost, in nanoseconds;
    /// 0 while unknown.
    fn takes_ns(&self, kind: usize, cost: i64) -> f64 {
        let (known_ns, known_cost) = self.measured[kind];
        if known_cost > 0.0 { known_ns / known_cost * cost as f64 } else { 0.0 }
    }
}

/// An agent's offer: the lane, its completion time in nanoseconds from now, and the number of tasks already queued on
/// it.
#[derive(Clone, Copy, Debug)]
struct Bid {
    lane: usize,
    done_ns: f64,
    tasks: usize,
}

impl Bid {
    /// Returns the lower bid: the one with the earlier completion; if equal, with fewer queued tasks; if equal, `self`.
    fn lower(self, other: Self) -> Self {
        let order = other.done_ns.total_cmp(&self.done_ns).then(other.tasks.cmp(&self.tasks));
        if order.is_lt() { other } else { self }
    }
}

impl Baseline<'_> {
    /// Returns the lane of the lowest bid; `None` if no lane is ready. Agents bid only for their ready lanes.
    pub(super) fn lowest_bidder(
        &self,
        agents: &[Agent],
        kind: usize,
        cost: i64,
        ready: &[usize],
    ) -> Option<usize> {
        let bid = |(class, agent): (usize, &Agent)| {
            let own = ready.iter().copied().filter(|lane| self.lanes[*lane].class == class);
            own.map(|lane| self.bid(agent, lane, kind, cost)).reduce(Bid::lower)
        };
        agents.iter().enumerate().filter_map(bid).reduce(Bid::lower).map(|bid| bid.lane)
    }

    /// Returns an agent's bid for one of its lanes.
    fn bid(&self, agent: &Agent, lane: usize, kind: usize, cost: i64) -> Bid {
        let queue = &self.lanes[lane].queue;
        let takes_ns = |task: &i64| agent.takes_ns(self.tasks.kind(*task), self.tasks.rest(*task));
        let before_ns: f64 = queue.iter().map(takes_ns).sum();
        Bid { lane, done_ns: before_ns + agent.takes_ns(kind, cost), tasks: queue.len() }
    }

    /// Tells the agent of a class how long work of a kind with this cost took, if the rule has agents.
    pub(super) fn learn(&mut self, class: usize, kind: usize, cost: i64, service_ns: i64) {
        if let Rule::Bidding(agents) = &mut self.rule {
            agents[class].learn(kind, cost, service_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_follow_what_their_lanes_took_lately() {
        let mut agent = Agent::new(2);
        assert_eq!(agent.takes_ns(1, 50), 0.0, "nothing is known");
        agent.learn(1, 100, 1_000);
        assert_eq!((agent.takes_ns(1, 50), agent.takes_ns(0, 50)), (500.0, 0.0));
        (0..40).for_each(|_| agent.learn(1, 100, 3_000));
        assert!((agent.takes_ns(1, 50) - 1_500.0).abs() < 10.0, "{}", agent.takes_ns(1, 50));
    }

    #[test]
    fn the_lower_bid_wins_and_of_equals_the_one_with_fewer_tasks() {
        let bid = |lane, done_ns, tasks| Bid { lane, done_ns, tasks };
        assert_eq!(bid(0, 5.0, 1).lower(bid(1, 4.0, 9)).lane, 1);
        assert_eq!(bid(0, 5.0, 2).lower(bid(1, 5.0, 1)).lane, 1);
        assert_eq!(bid(0, 5.0, 1).lower(bid(1, 5.0, 1)).lane, 0);
    }
}
