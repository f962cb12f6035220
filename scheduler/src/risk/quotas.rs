//! Quotas: how many tasks of a tenant may be known at a time, and how often it may send requests.
//!
//! ```text
//!                 all tasks (tasks_max)
//!                /          |         \
//!        firm: guaranteed   desk      tenants without a quota
//!        /       |
//!     alice     bob          a tenant's tasks count at its own quota and at each above it
//! ```
//!
//! Each quota *claims* its tasks, and at least the part of its guarantee that it does not lend. A task fits if its
//! quota and those above it are below their limits, and the claims of the topmost quotas still fit together. So the
//! part that is guaranteed and not lent is always available. The lent part is open to all tenants; quotas of the same
//! parent use it first, unless the parent lends it as well. This is the cohort of Kueue without preemption: lent
//! capacity returns when its tasks are done. Rates are counted by the generic cell rate algorithm (ITU-T I.371). The
//! module owns counts and times; it must not know what a task is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use warptape_events::journal::Quota;

use crate::name::Name;
use crate::state_hash::{Component, StateHash, hash_component};
use crate::views::QuotaLoad;

const SECOND_NS: i64 = 1_000_000_000;

/// All quotas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Quotas {
    nodes: Vec<Node>,
    by_name: BTreeMap<Name, usize>,
    /// Claims of the topmost quotas, plus the tasks of tenants without a quota.
    claimed: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Node {
    name: Name,
    parent: Option<usize>,
    /// Least number of tasks that it claims.
    reserved: i64,
    /// Most tasks that it may have; 0: no limit of its own.
    limit: i64,
    /// Long-run time between requests; 0: no limit. Below: by how much a request may come sooner.
    period_ns: i64,
    tolerance_ns: i64,
    /// Tasks of the quota and of the quotas below it.
    tasks: i64,
    /// Claims of the quotas below it, plus its own tasks.
    filled: i64,
    /// Earliest time of the next request at the long-run rate.
    expected_ns: i64,
    contribution: u64,
}

/// Reason why a task does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Refusal {
    /// A quota has reached its limit.
    Limit { quota: Name, tasks: i64, limit: i64 },
    /// There is room, but it is guaranteed to other tenants: `claimed` tasks of at most `tasks_max`.
    Guaranteed { quota: Name, claimed: i64, tasks_max: i64 },
    /// Requests come faster than this long-run rate per second.
    Rate { quota: Name, rate_per_s: i64 },
}

impl Node {
    fn claim(&self) -> i64 {
        self.filled.max(self.reserved)
    }

    /// Hash of the quota; 0 before the first task.
    fn hash(&self, index: usize) -> u64 {
        match (self.tasks, self.expected_ns) {
            (0, 0) => 0,
            (tasks, expected_ns) => {
                hash_component(Component::Quota, [index as i64, tasks, self.filled, expected_ns])
            }
        }
    }

    fn refresh(&mut self, index: usize, hash: &mut StateHash) {
        let now = self.hash(index);
        hash.replace(&mut self.contribution, now);
    }
}

impl Quotas {
    /// Builds the quotas of a checked configuration, in which parents come before their children.
    pub(crate) fn new(config: &[Quota]) -> Self {
        let mut quotas = Self::default();
        for Quota { name, parent, guaranteed, lendable, limit, rate_per_s, burst } in config {
            let name: Name = name.as_str().into();
            let period_ns = SECOND_NS.checked_div(i64::from(*rate_per_s)).unwrap_or(0);
            quotas.by_name.insert(name.clone(), quotas.nodes.len());
            quotas.nodes.push(Node {
                name,
                parent: quotas.by_name.get(parent.as_str()).copied(),
                reserved: i64::from(guaranteed - lendable),
                limit: i64::from(*limit),
                period_ns,
                tolerance_ns: period_ns * (i64::from(*burst) - 1).max(0),
                tasks: 0,
                filled: 0,
                expected_ns: 0,
                contribution: 0,
            });
        }
        for index in (0..quotas.nodes.len()).rev() {
            let claim = quotas.nodes[index].claim();
            match quotas.nodes[index].parent {
                Some(parent) => quotas.nodes[parent].filled += claim,
                None => quotas.claimed += claim,
            }
        }
        quotas
    }

    /// Name, tasks and limit of each quota; a limit of 0 means none.
    pub(crate) fn loads(&self) -> impl Iterator<Item = QuotaLoad<'_>> {
        self.nodes.iter().map(|node| QuotaLoad { name: &node.name, tasks: node.tasks, limit: node.limit })
    }

    /// Claims of the topmost quotas, plus the tasks of tenants without a quota.
    pub(crate) fn claimed(&self) -> i64 {
        self.claimed
    }

    /// The quotas of a tenant, from its own up to the topmost.
    fn path(&self, tenant: &str) -> impl Iterator<Item = usize> {
        let own = self.by_name.get(tenant).copied();
        std::iter::successors(own, |index| self.nodes[*index].parent)
    }

    /// Checks whether one more task of a tenant fits, if at most `tasks_max` tasks may be known in total.
    pub(crate) fn check(&self, tenant: &str, tasks_max: i64, at_ns: i64) -> Result<(), Refusal> {
        let mut grows = true;
        for node in self.path(tenant).map(|index| &self.nodes[index]) {
            let Node { tasks, limit, .. } = *node;
            if limit > 0 && tasks >= limit {
                return Err(Refusal::Limit { quota: node.name.clone(), tasks, limit });
            }
            if node.period_ns > 0 && node.expected_ns - at_ns > node.tolerance_ns {
                return Err(Refusal::Rate {
                    quota: node.name.clone(),
                    rate_per_s: SECOND_NS / node.period_ns,
                });
            }
            grows &= node.filled >= node.reserved;
        }
        match grows && self.claimed >= tasks_max {
            true => Err(Refusal::Guaranteed { quota: tenant.into(), claimed: self.claimed, tasks_max }),
            false => Ok(()),
        }
    }

    /// Counts one more task of a tenant, for a request or for a later round of one.
    pub(crate) fn join(&mut self, tenant: &str, is_request: bool, at_ns: i64, hash: &mut StateHash) {
        let path: Vec<usize> = self.path(tenant).collect();
        let mut grows = 1;
        for index in path {
            let node = &mut self.nodes[index];
            let before = node.claim();
            node.tasks += 1;
            node.filled += grows;
            grows = node.claim() - before;
            if is_request && node.period_ns > 0 {
                node.expected_ns = node.expected_ns.max(at_ns) + node.period_ns;
            }
            node.refresh(index, hash);
        }
        self.claimed += grows;
    }

    /// Counts one task less of a tenant.
    pub(crate) fn leave(&mut self, tenant: &str, hash: &mut StateHash) {
        let path: Vec<usize> = self.path(tenant).collect();
        let mut shrinks = 1;
        for index in path {
            let node = &mut self.nodes[index];
            let before = node.claim();
            node.tasks -= 1;
            node.filled -= shrinks;
            shrinks = before - node.claim();
            node.refresh(index, hash);
        }
        self.claimed -= shrinks;
    }

    /// Hash of all quotas, computed by walking over them.
    pub(crate) fn walked_hash(&self) -> u64 {
        let hashes = self.nodes.iter().enumerate().map(|(index, node)| node.hash(index));
        hashes.fold(0, u64::wrapping_add)
    }

    /// Checks the counts, given the number of tasks of each tenant.
    pub(crate) fn audit(&self, config: &[Quota], tasks: &BTreeMap<Name, i64>) {
        let (mut fresh, mut hash) = (Self::new(config), StateHash::default());
        for (tenant, count) in tasks {
            (0..*count).for_each(|_| fresh.join(tenant, false, 0, &mut hash));
        }
        let counts = |quotas: &Self| {
            let nodes = quotas.nodes.iter().map(|node| (node.tasks, node.filled));
            (nodes.collect::<Vec<_>>(), quotas.claimed)
        };
        assert_eq!(counts(self), counts(&fresh), "tasks by quota");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(name: &str, parent: &str, [guaranteed, lendable, limit]: [i32; 3]) -> Quota {
        let (name, parent) = (name.to_owned(), parent.to_owned());
        Quota { name, parent, guaranteed, lendable, limit, rate_per_s: 0, burst: 0 }
    }

    /// Lets the tenants in `asked` send tasks in turn, and checks which ones are accepted if at most `tasks_max` tasks
    /// may be known.
    fn check(config: &[Quota], tasks_max: i64, asked: &str, expected: &str) {
        let (mut quotas, mut hash) = (Quotas::new(config), StateHash::default());
        let mut found = String::new();
        let mut tasks: BTreeMap<Name, i64> = BTreeMap::new();
        for tenant in asked.split(' ') {
            let (tenant, leaves) = tenant.strip_prefix('-').map_or((tenant, false), |tenant| (tenant, true));
            let count = tasks.entry(tenant.into()).or_default();
            found.push(match (leaves, quotas.check(tenant, tasks_max, 0)) {
                (true, _) => {
                    quotas.leave(tenant, &mut hash);
                    *count -= 1;
                    '-'
                }
                (false, Ok(())) => {
                    quotas.join(tenant, true, 0, &mut hash);
                    *count += 1;
                    '+'
                }
                (false, Err(Refusal::Limit { .. })) => 'l',
                (false, Err(Refusal::Guaranteed { .. })) => 'g',
                (false, Err(Refusal::Rate { .. })) => 'r',
            });
            quotas.audit(config, &tasks);
            assert_eq!(hash.value(), quotas.walked_hash());
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_guaranteed_is_there_and_what_is_lent_goes_round() {
        let desk = [quota("desk", "", [2, 0, 0])];
        check(&desk, 4, "x x x desk desk desk", "++g++g");
        // One of the desk's two guaranteed tasks is lent: other tenants may use it, and the desk then waits for it.
        let lends = [quota("desk", "", [2, 1, 0])];
        check(&lends, 4, "x x x desk desk -x desk", "++++g-+");
        check(&lends, 4, "desk desk x x x", "++++g");
    }

    #[test]
    fn limits_hold_at_each_quota_on_the_way_up() {
        let firm =
            [quota("firm", "", [0, 0, 3]), quota("a", "firm", [0, 0, 2]), quota("b", "firm", [0, 0, 2])];
        check(&firm, 10, "a a a b b firm x", "++l+ll+");
    }

    #[test]
    fn quotas_of_one_parent_borrow_from_what_that_is_guaranteed() {
        let firm =
            [quota("firm", "", [4, 0, 0]), quota("a", "firm", [1, 0, 0]), quota("b", "firm", [1, 0, 0])];
        // The firm is guaranteed four of eight tasks. `a` may use three of them, because one is guaranteed to `b`.
        check(&firm, 8, "x x x x x a a a a b b", "++++g+++g+g");
    }

    #[test]
    fn requests_come_in_bursts_and_at_a_rate() {
        let config = [Quota { rate_per_s: 10, burst: 3, ..quota("desk", "", [0, 0, 0]) }];
        let (mut quotas, mut hash) = (Quotas::new(&config), StateHash::default());
        let mut asks = |at_ms: i64| {
            let is_good = quotas.check("desk", 100, at_ms * 1_000_000).is_ok();
            if is_good {
                quotas.join("desk", true, at_ms * 1_000_000, &mut hash);
            }
            is_good
        };
        let found =
            [1_000, 1_000, 1_000, 1_000, 1_099, 1_100, 1_101, 2_000, 2_000, 2_000, 2_000].map(&mut asks);
        assert_eq!(found, [true, true, true, false, false, true, false, true, true, true, false]);
    }
}
