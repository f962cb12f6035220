//! Workloads: which tasks arrive when.

use warptape_events::journal::TaskClass;

use crate::draws::Draws;
use crate::fleet::Fleet;

/// A kind of tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// What it is called; the scheduler's rate key.
    pub name: String,
    /// Its share of the work; shares add up to 1.
    pub share: f64,
    /// Mean size of a task, in seconds of a lane of the reference class; sizes are exponentially distributed.
    pub mean_s: f64,
    /// Its class.
    pub class: TaskClass,
}

/// Who sends tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// Its weight.
    pub weight: i32,
    /// Its share of the tasks; shares add up to 1.
    pub share: f64,
}

/// Times between arrivals that are not exponential: with a probability they are shorter, otherwise longer, so that tasks come in bursts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// Probability that a task follows the last one closely.
    pub probability: f64,
    /// Mean time to a task that does, as a share of the mean time between tasks; below 1.
    pub spacing: f64,
}

/// What arrives.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Kinds of tasks.
    pub kinds: Vec<Kind>,
    /// Who sends them.
    pub tenants: Vec<Tenant>,
    /// Work that arrives, as a share of what the fleet can do of this mix.
    pub load: f64,
    /// Tasks of a run.
    pub tasks: usize,
    /// Bursts; none: arrivals are a Poisson process.
    pub burst: Option<Burst>,
    /// Time from a task's arrival to its deadline, in multiples of the mean size of its kind, and with it a second of room for the largest; none: no deadlines.
    pub deadline_factor: Option<f64>,
    /// Units that a second of the reference class is divided into.
    pub units_per_s: f64,
}

/// One task as it arrives.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// Time from the begin of the run, in nanoseconds.
    pub at_ns: i64,
    /// Kind, by its index.
    pub kind: usize,
    /// Tenant, by its index.
    pub tenant: usize,
    /// Units of work, one at least.
    pub units: i64,
    /// Deadline, in nanoseconds from the begin of the run.
    pub deadline_ns: Option<i64>,
}

const NS_PER_S: f64 = 1e9;

impl Workload {
    /// The published experiment's three kinds in equal shares of the work, one tenant, Poisson arrivals; tasks take a fifth of a second on
    /// Volta in the mean.
    pub fn three_kinds(load: f64, tasks: usize) -> Self {
        let kind = |name: &str| Kind {
            name: name.to_owned(),
            share: 1.0 / 3.0,
            mean_s: 0.2,
            class: TaskClass::Interactive,
        };
        Self {
            kinds: ["simulation", "data-processing", "machine-learning"].map(kind).into(),
            tenants: vec![Tenant { name: "a".to_owned(), weight: 1, share: 1.0 }],
            load,
            tasks,
            burst: None,
            deadline_factor: None,
            units_per_s: 2_000.0,
        }
    }

    /// The share of each kind in the work.
    pub fn mix(&self) -> Vec<f64> {
        self.kinds.iter().map(|kind| kind.share).collect()
    }

    /// Tasks in a second.
    pub fn rate(&self, fleet: &Fleet) -> f64 {
        let work_per_s = self.load * fleet.capacity(&self.mix());
        // A kind's share of tasks is its share of work by the size of its tasks.
        work_per_s * self.kinds.iter().map(|kind| kind.share / kind.mean_s).sum::<f64>()
    }

    /// All arrivals of a run.
    pub fn arrivals(&self, fleet: &Fleet, seed: u64) -> Vec<Arrival> {
        let rate = self.rate(fleet);
        let [times, bursts, kinds, tenants, sizes] =
            ["times", "bursts", "kinds", "tenants", "sizes"].map(|name| Draws::new(seed, name));
        let by_count: Vec<f64> = self.kinds.iter().map(|kind| kind.share / kind.mean_s).collect();
        let by_tenant: Vec<f64> = self.tenants.iter().map(|tenant| tenant.share).collect();
        let mut at_s = 0.0;
        let arrival = |number: u64| {
            let mean = match self.burst {
                None => 1.0,
                Some(burst) if bursts.uniform(number) < burst.probability => burst.spacing,
                Some(Burst { probability, spacing }) => (1.0 - probability * spacing) / (1.0 - probability),
            };
            at_s += times.exponential(number) * mean / rate;
            let kind = choose(&by_count, kinds.uniform(number));
            let mean_s = self.kinds[kind].mean_s;
            let at_ns = (at_s * NS_PER_S) as i64;
            let deadline = |factor: f64| at_ns + ((factor * mean_s + 1.0) * NS_PER_S) as i64;
            Arrival {
                at_ns,
                kind,
                tenant: choose(&by_tenant, tenants.uniform(number)),
                units: ((sizes.exponential(number) * mean_s * self.units_per_s).round() as i64).max(1),
                deadline_ns: self.deadline_factor.map(deadline),
            }
        };
        (0..self.tasks as u64).map(arrival).collect()
    }
}

/// The index that a uniform draw falls to, of shares that may add up to anything.
fn choose(shares: &[f64], draw: f64) -> usize {
    let mut left = draw * shares.iter().sum::<f64>();
    let found = shares.iter().position(|share| {
        left -= share;
        left < 0.0
    });
    found.unwrap_or(shares.len() - 1)
}
