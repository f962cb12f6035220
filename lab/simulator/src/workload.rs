//! Workloads: the tasks that arrive, and the times at which they arrive.

use warptape_events::journal::TaskClass;

use crate::draws::Draws;
use crate::fleet::Fleet;
use crate::ticks::Ticks;

/// A kind of tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskKind {
    /// The kind's name, which is also the scheduler's rate key.
    pub name: String,
    /// The kind's share of the work; the shares add up to 1.
    pub share: f64,
    /// Mean size of a task, in seconds of a lane of the reference class.
    pub mean_s: f64,
    /// Distribution of sizes.
    pub sizes: Sizes,
    /// True if several lanes may share a task; otherwise one lane does all of it.
    pub divisible: bool,
    /// Class of the kind's tasks.
    pub class: TaskClass,
}

/// Distribution of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// Exponentially distributed, with the kind's mean.
    Exponential,
    /// Always the kind's mean.
    Fixed,
}

/// A sender of tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Tenant {
    /// The tenant's name.
    pub name: String,
    /// The tenant's weight.
    pub weight: i32,
    /// The tenant's share of the tasks; the shares add up to 1.
    pub share: f64,
}

/// Burstiness of arrivals: the time between tasks is short with some probability and long otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// Probability that a task comes shortly after the previous one.
    pub probability: f64,
    /// Mean time to such a close task, as a share of the mean time between tasks; below 1.
    pub spacing: f64,
}

/// A rate that changes over a period: above the mean in its first half, and as far below in its second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Diurnal {
    /// The period, in seconds.
    pub period_s: f64,
    /// Deviation of the rate from the mean, as a share of the mean; below 1.
    pub swing: f64,
}

/// A closed loop: each sender waits until its task is done, thinks, and then sends the next one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Closed {
    /// Number of senders.
    pub senders: usize,
    /// Mean think time of a sender, exponentially distributed, in seconds; 0: senders never pause between tasks.
    pub think_s: f64,
}

/// The process by which tasks arrive.
#[derive(Clone, Debug, PartialEq)]
pub enum Process {
    /// The times between tasks are exponentially distributed.
    Poisson,
    /// Tasks arrive in bursts.
    Bursty(Burst),
    /// The rate changes over a period.
    Diurnal(Diurnal),
    /// A task arrives some time after another one is done.
    Closed(Closed),
    /// The tasks of a recording arrive at their recorded times.
    Recorded(Vec<Arrival>),
}

/// The tasks and ticks that arrive in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Kinds of tasks.
    pub kinds: Vec<TaskKind>,
    /// Senders of tasks.
    pub tenants: Vec<Tenant>,
    /// Work that arrives, as a share of the fleet's capacity for this mix; used only if tasks arrive at random.
    pub load: f64,
    /// Number of tasks of a run.
    pub tasks: usize,
    /// The process by which tasks arrive.
    pub process: Process,
    /// Deadline of a task: one second after its arrival plus this multiple of its kind's mean size; `None`: no
    /// deadlines.
    pub deadline_factor: Option<f64>,
    /// Number of units in a second of the reference class's work.
    pub units_per_s: f64,
    /// Ticks that arrive beside tasks until the last task has arrived; `None`: only tasks arrive. Baselines ignore
    /// ticks.
    pub ticks: Option<Ticks>,
}

/// A task's arrival.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// Time from the start of the run, in nanoseconds.
    pub at_ns: i64,
    /// Index of the task's kind.
    pub kind: usize,
    /// Class of the task.
    pub class: TaskClass,
    /// Index of the task's tenant.
    pub tenant: usize,
    /// Units of work; at least one.
    pub units: i64,
    /// Deadline, in nanoseconds from the start of the run; `None` without a deadline.
    pub deadline_ns: Option<i64>,
}

const NS_PER_S: f64 = 1e9;

impl Workload {
    /// Returns a workload with the published experiment's three kinds in equal shares of the work, one tenant and
    /// Poisson arrivals. On Volta, a task takes a fifth of a second on average.
    pub fn three_kinds(load: f64, tasks: usize) -> Self {
        let kind = |name: &str| TaskKind {
            name: name.to_owned(),
            share: 1.0 / 3.0,
            mean_s: 0.2,
            sizes: Sizes::Exponential,
            divisible: true,
            class: TaskClass::Interactive,
        };
        Self {
            kinds: ["simulation", "data-processing", "machine-learning"].map(kind).into(),
            tenants: vec![Tenant { name: "a".to_owned(), weight: 1, share: 1.0 }],
            load,
            tasks,
            process: Process::Poisson,
            deadline_factor: None,
            units_per_s: 2_000.0,
            ticks: None,
        }
    }

    /// Returns the share of each kind in the work.
    pub fn mix(&self) -> Vec<f64> {
        self.kinds.iter().map(|kind| kind.share).collect()
    }

    /// Returns the number of tasks per second.
    pub fn rate(&self, fleet: &Fleet) -> f64 {
        let work_per_s = self.load * fleet.capacity(&self.mix());
        work_per_s * self.tasks_by_work()
    }

    /// Returns the number of tasks in one second of the reference class's work. A kind's share of the tasks is its
    /// share of the work divided by its mean size.
    pub(crate) fn tasks_by_work(&self) -> f64 {
        self.kinds.iter().map(|kind| kind.share / kind.mean_s).sum()
    }

    /// Returns all arrivals of a run. In a closed loop only the first task of each sender has its time, and all others
    /// have time 0.
    pub fn arrivals(&self, fleet: &Fleet, seed: u64) -> Vec<Arrival> {
        let rate = match &self.process {
            Process::Recorded(arrivals) => return arrivals.clone(),
            Process::Closed(_) => 0.0,
            Process::Poisson | Process::Bursty(_) | Process::Diurnal(_) => self.rate(fleet),
        };
        let [times, bursts, kinds, tenants, sizes] =
            ["times", "bursts", "kinds", "tenants", "sizes"].map(|name| Draws::new(seed, name));
        let by_count: Vec<f64> = self.kinds.iter().map(|kind| kind.share / kind.mean_s).collect();
        let by_tenant: Vec<f64> = self.tenants.iter().map(|tenant| tenant.share).collect();
        let mut at_s = 0.0;
        let arrival = |number: u64| {
            let mean_s = match self.process {
                Process::Bursty(burst) if bursts.uniform(number) < burst.probability => burst.spacing / rate,
                Process::Bursty(Burst { probability, spacing }) => {
                    (1.0 - probability * spacing) / (1.0 - probability) / rate
                }
                Process::Closed(_) | Process::Recorded(_) => 0.0,
                Process::Poisson | Process::Diurnal(_) => 1.0 / rate,
            };
            at_s += times.exponential(number) * mean_s;
            let at_s = match self.process {
                Process::Diurnal(diurnal) => diurnal.time_s(at_s),
                Process::Closed(Closed { senders, .. }) if number < senders as u64 => {
                    self.think_s(seed, number)
                }
                _ => at_s,
            };
            let kind = choose(&by_count, kinds.uniform(number));
            let mean_s = self.kinds[kind].mean_s;
            let at_ns = (at_s * NS_PER_S) as i64;
            let size = match self.kinds[kind].sizes {
                Sizes::Exponential => sizes.exponential(number),
                Sizes::Fixed => 1.0,
            };
            let deadline = |factor: f64| at_ns + ((factor * mean_s + 1.0) * NS_PER_S) as i64;
            Arrival {
                at_ns,
                kind,
                class: self.kinds[kind].class,
                tenant: choose(&by_tenant, tenants.uniform(number)),
                units: ((size * mean_s * self.units_per_s).round() as i64).max(1),
                deadline_ns: self.deadline_factor.map(deadline),
            }
        };
        (0..self.tasks as u64).map(arrival).collect()
    }

    /// Returns the think time before a sender sends a task, in seconds.
    pub(crate) fn think_s(&self, seed: u64, task: u64) -> f64 {
        match self.process {
            Process::Closed(Closed { think_s, .. }) => think_s * Draws::new(seed, "think").exponential(task),
            _ => 0.0,
        }
    }

    /// Returns the number of senders of a closed loop; `None` for other processes.
    pub(crate) fn senders(&self) -> Option<usize> {
        match self.process {
            Process::Closed(Closed { senders, .. }) => Some(senders),
            _ => None,
        }
    }
}

impl Diurnal {
    /// Returns the time by which as many tasks have arrived as would arrive within `mean_s` at the mean rate, in
    /// seconds.
    fn time_s(self, mean_s: f64) -> f64 {
        let Self { period_s, swing } = self;
        let periods = (mean_s / period_s).floor();
        let (begin_s, rest_s) = (periods * period_s, mean_s - periods * period_s);
        let first_half_s = (1.0 + swing) * period_s / 2.0;
        match rest_s < first_half_s {
            true => begin_s + rest_s / (1.0 + swing),
            false => begin_s + period_s / 2.0 + (rest_s - first_half_s) / (1.0 - swing),
        }
    }
}

/// Returns the index that a uniform draw selects, in proportion to the shares. The shares may have any sum.
fn choose(shares: &[f64], draw: f64) -> usize {
    let mut left = draw * shares.iter().sum::<f64>();
    let found = shares.iter().position(|share| {
        left -= share;
        left < 0.0
    });
    found.unwrap_or(shares.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_change_by_the_swing_and_keep_their_mean() {
        let process = Process::Diurnal(Diurnal { period_s: 10.0, swing: 0.5 });
        let workload = Workload { process, ..Workload::three_kinds(0.5, 20_000) };
        let fleet = Fleet::volta_turing_radeon();
        let arrivals = workload.arrivals(&fleet, 1);
        let is_first_half = |arrival: &&Arrival| arrival.at_ns % 10_000_000_000 < 5_000_000_000;
        let share = arrivals.iter().filter(is_first_half).count() as f64 / 20_000.0;
        assert!((share - 0.75).abs() < 0.02, "{share}");
        let rate = 20_000.0 / (arrivals[19_999].at_ns as f64 / NS_PER_S);
        assert!((rate / workload.rate(&fleet) - 1.0).abs() < 0.04, "{rate}");
        assert!(arrivals.is_sorted_by_key(|arrival| arrival.at_ns));
    }
}
