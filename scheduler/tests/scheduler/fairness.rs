//! Fairness: how lanes are shared among tenants.

use std::collections::BTreeMap;

use warptape_events::journal::*;
use warptape_scheduler::Scheduler;

use crate::draws::Draws;
use crate::script::{assigned, config, started, task};

const LANES: usize = 3;
const TENANTS: [(&str, i64); 3] = [("a", 1), ("b", 2), ("c", 5)];
/// Longest time of a unit; a slice has one.
const UNIT_NS_MAX: i64 = 2_000;
const SLICES: i64 = 2_000;

/// Lanes that always have work, and their finished work.
struct Lanes {
    scheduler: Scheduler,
    at_ns: i64,
    /// Tenant and duration of the running slices, by end and lane.
    running: BTreeMap<(i64, LaneId), (i64, String, i64)>,
    /// Time that lanes worked for each tenant.
    service_ns: BTreeMap<String, i64>,
    draws: Draws,
}

impl Lanes {
    fn step(&mut self, input: &Input) {
        let mut decisions = Vec::new();
        self.scheduler.step(self.at_ns, input, &mut decisions).expect("good input");
        for decision in decisions {
            let Decision::RunSlice(slice) = decision else { continue };
            let service_ns = self.draws.range(1, UNIT_NS_MAX);
            let end = (self.at_ns + service_ns, slice.lane);
            self.running.insert(end, (slice.slice, slice.tenant, service_ns));
        }
    }

    fn finish_next(&mut self) {
        let ((at_ns, lane), (slice, tenant, service_ns)) = self.running.pop_first().expect("lanes work");
        self.at_ns = at_ns;
        *self.service_ns.entry(tenant).or_default() += service_ns;
        self.step(&Input::SliceDone(SliceDone { lane, slice, service_ns }));
    }

    fn arrive(&mut self, id: TaskId, tenant: &str) {
        let arrived = TaskArrived { tenant: tenant.into(), units: 1 << 30, slice_units_max: 1, ..task(id) };
        self.step(&Input::TaskArrived(arrived));
    }

    /// Service of each tenant since `before`, divided by its weight.
    fn weighted_since(&self, before: &BTreeMap<String, i64>) -> Vec<i64> {
        let of = |services: &BTreeMap<String, i64>, tenant| services.get(tenant).copied().unwrap_or(0);
        let weighted = |(tenant, weight)| (of(&self.service_ns, tenant) - of(before, tenant)) / weight;
        TENANTS.map(weighted).to_vec()
    }
}

/// Tenants that have had work since a moment have equal weighted service since then. The difference is at most the
/// slices that run at the two ends.
#[test]
fn tenants_that_want_lanes_get_them_by_weight() {
    for seed in 0..20 {
        let mut config = config();
        let weight =
            |(tenant, weight): (&str, i64)| TenantWeight { tenant: tenant.into(), weight: weight as i32 };
        config.risk.tenant_weights = TENANTS.map(weight).into();
        let mut lanes = Lanes {
            scheduler: Scheduler::new(),
            at_ns: 0,
            running: BTreeMap::new(),
            service_ns: BTreeMap::new(),
            draws: Draws::new(seed),
        };
        lanes.step(&started(config, &[1; LANES]));
        lanes.step(&assigned(0, 1));
        lanes.arrive(0, "a");
        lanes.arrive(1, "b");
        // The third tenant arrives late, and has not saved up credit.
        (0..SLICES / 4).for_each(|_| lanes.finish_next());
        lanes.arrive(2, "c");
        let before = lanes.service_ns.clone();
        for _ in 0..SLICES {
            lanes.finish_next();
            let weighted = lanes.weighted_since(&before);
            let (least, most) = (weighted.iter().min().unwrap(), weighted.iter().max().unwrap());
            let bound = 2 * (LANES as i64 + 1) * UNIT_NS_MAX;
            assert!(most - least <= bound, "seed {seed}: {weighted:?} differ by more than {bound}");
        }
        assert!(lanes.weighted_since(&before)[0] > 20 * UNIT_NS_MAX, "seed {seed}: nothing was shared");
        lanes.scheduler.audit();
    }
}

/// A tenant that sends each task after the previous one ends gets no more service than one that sends all at once.
#[test]
fn leaving_for_a_moment_sheds_nothing() {
    let mut scheduler = Scheduler::new();
    let mut decisions = Vec::new();
    let mut step = |at_ns, input: &Input| {
        decisions.clear();
        scheduler.step(at_ns, input, &mut decisions).expect("good input");
        decisions.clone()
    };
    step(0, &started(config(), &[1]));
    step(0, &assigned(0, 1));
    let many = TaskArrived { tenant: "many".into(), units: 1_000, slice_units_max: 1, ..task(0) };
    step(0, &Input::TaskArrived(many));
    let single = |id| Input::TaskArrived(TaskArrived { tenant: "a single one".into(), ..task(id) });
    let (mut next, mut slices) = (1, BTreeMap::<String, i64>::new());
    step(0, &single(next));
    for slice in 0..200 {
        let decided =
            step(100 * (slice + 1), &Input::SliceDone(SliceDone { lane: 0, slice, service_ns: 100 }));
        for decision in decided {
            match decision {
                Decision::RunSlice(slice) => *slices.entry(slice.tenant).or_default() += 1,
                Decision::Finish(_) => {
                    next += 1;
                    step(100 * (slice + 1), &single(next));
                }
                _ => (),
            }
        }
    }
    let (many, singles) = (slices["many"], slices["a single one"]);
    assert!((many - singles).abs() <= 2, "{slices:?}");
}
