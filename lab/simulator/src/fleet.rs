//! Fleets: classes of lanes with their numbers and speeds, and the faults of lanes.

use std::ops::Range;

use warptape_events::journal::{AutoscaleConfig, LaneId, LaneKind, LaneSpec, Link, Peer};
use warptape_prices::Capacity;

use crate::ticks::TickSpeed;

/// Number of bisection steps that find the share of ticks.
const BISECTIONS: u32 = 40;

/// A class of equal lanes.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// The class's name.
    pub name: String,
    /// Number of lanes.
    pub lanes: usize,
    /// Work that a lane does per second at each kind of tasks, in seconds of the reference class.
    pub speeds: Vec<f64>,
    /// Speed of a lane at ticks; `None` if not given.
    pub ticks: Option<TickSpeed>,
    /// Type of the lanes: GPUs or processors.
    pub device: LaneKind,
    /// Memory of each lane's device, in bytes; 0 if not known.
    pub memory_bytes: i64,
    /// Link between the devices of the class; `None` if not known.
    pub link: Option<Link>,
    /// NUMA node of the host to which the devices are attached; `None` if not known.
    pub numa_node: Option<i32>,
}

impl Class {
    /// Returns a class of GPUs with known speeds; everything else is unknown.
    pub fn new(name: &str, lanes: usize, speeds: &[f64]) -> Self {
        Self {
            name: name.to_owned(),
            lanes,
            speeds: speeds.to_vec(),
            ticks: None,
            device: LaneKind::Device,
            memory_bytes: 0,
            link: None,
            numa_node: None,
        }
    }
}

/// When lanes are lost, and when they return.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outage {
    /// All lanes are lost at once, at a given time.
    At {
        /// Time of the loss, in seconds.
        at_s: f64,
        /// Time from the loss to the return, in seconds; `None` if the lanes never return.
        back_after_s: Option<f64>,
    },
    /// Each lane is lost independently and repeatedly, after exponentially distributed times.
    Drawn {
        /// Mean time between failures of a lane, in seconds.
        mtbf_s: f64,
        /// Mean time to repair, in seconds.
        mttr_s: f64,
    },
}

/// A failure of lanes.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Numbers of the lanes.
    pub lanes: Range<usize>,
    /// Times at which the lanes are lost.
    pub outage: Outage,
}

/// A period in which lanes are slower.
#[derive(Clone, Debug, PartialEq)]
pub struct Throttling {
    /// Numbers of the lanes.
    pub lanes: Range<usize>,
    /// Start, in seconds.
    pub from_s: f64,
    /// End, in seconds.
    pub until_s: f64,
    /// Speed of the lanes in the period, as a share of the normal speed.
    pub factor: f64,
}

/// How lanes are started and stopped, and what they cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Autoscale {
    /// The configuration. Its policy is ignored, because [`crate::Options::scaling`] sets the policy.
    pub config: AutoscaleConfig,
    /// Price of a running lane per hour, by class.
    pub price_per_hour: Vec<f64>,
}

/// All lanes of a simulated cluster, and their faults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fleet {
    /// Classes; lanes are numbered class by class.
    pub classes: Vec<Class>,
    /// Time that a slice takes in addition to its units, in nanoseconds.
    pub slice_overhead_ns: i64,
    /// Losses of lanes.
    pub failures: Vec<Failure>,
    /// Periods in which lanes are slower.
    pub throttling: Vec<Throttling>,
    /// How lanes are started and stopped; `None` if all are always on.
    pub autoscale: Option<Autoscale>,
}

impl Fleet {
    /// Returns the fleet of the published experiment: 8 Volta V100, 4 Turing and 4 Radeon VII. Speeds are relative to
    /// Volta, as measured for simulation, data processing and machine learning (sources: docs/scheduling-results.md).
    pub fn volta_turing_radeon() -> Self {
        Self {
            classes: vec![
                Class::new("Volta", 8, &[1.0, 1.0, 1.0]),
                Class::new("Turing", 4, &[0.447, 0.662, 0.743]),
                Class::new("Radeon", 4, &[0.841, 0.970, 0.80]),
            ],
            slice_overhead_ns: 20_000,
            ..Self::default()
        }
    }

    /// Returns the number of lanes.
    pub fn lanes(&self) -> usize {
        self.classes.iter().map(|class| class.lanes).sum()
    }

    /// Returns the index of a lane's class.
    pub fn class_of(&self, lane: usize) -> usize {
        let mut first = 0;
        for (index, class) in self.classes.iter().enumerate() {
            first += class.lanes;
            if lane < first {
                return index;
            }
        }
        panic!("lane {lane} is not of this fleet")
    }

    /// Returns the price of a lane per hour, divided by its mean speed over kinds; 0 without prices.
    pub(crate) fn work_price(&self, lane: usize) -> f64 {
        let class = self.class_of(lane);
        let speeds = &self.classes[class].speeds;
        let mean = speeds.iter().sum::<f64>() / speeds.len() as f64;
        self.autoscale.as_ref().map_or(0.0, |autoscale| autoscale.price_per_hour[class] / mean)
    }

    /// Returns the speed at ticks of the lanes of a class.
    ///
    /// # Panics
    /// If the class has no speed at ticks.
    pub(crate) fn tick_speed(&self, class: usize) -> TickSpeed {
        self.classes[class].ticks.expect("a fleet that gets ticks says how fast its classes are at them")
    }

    /// True if a lane is lost at some time and never returns.
    pub(crate) fn is_lost_for_ever(&self, lane: usize) -> bool {
        self.failures.iter().any(|failure| {
            let ends = matches!(failure.outage, Outage::At { back_after_s: None, .. });
            ends && failure.lanes.contains(&lane)
        })
    }

    /// Returns the lanes as the scheduler's input describes them. A lane's weight is its speed at ticks if there are
    /// ticks, and its mean speed otherwise.
    pub(crate) fn specs(&self, has_ticks: bool) -> Vec<LaneSpec> {
        let classes: Vec<usize> = (0..self.lanes()).map(|lane| self.class_of(lane)).collect();
        let spec = |lane: usize| {
            let class = &self.classes[classes[lane]];
            let weight = match has_ticks {
                true => self.tick_speed(classes[lane]).rows_per_s / self.fastest_ticks_per_s(),
                false => class.speeds.iter().sum::<f64>() / class.speeds.len() as f64,
            };
            let weight = ((weight * 1_000.0) as i32).max(1);
            let device = match class.device {
                LaneKind::Host => format!("cpu:{lane}"),
                LaneKind::Device => format!("cuda:{lane}"),
            };
            let is_peer = |peer: &usize| *peer != lane && classes[*peer] == classes[lane];
            let peers = class.link.into_iter().flat_map(|link| {
                let peer = move |lane: usize| Peer { lane: lane as LaneId, link };
                (0..classes.len()).filter(is_peer).map(peer).collect::<Vec<_>>()
            });
            LaneSpec {
                class: class.name.clone(),
                memory_bytes: class.memory_bytes,
                numa_node: class.numa_node,
                peers: peers.collect(),
                ..LaneSpec::new(lane as LaneId, device, weight)
            }
        };
        (0..self.lanes()).map(spec).collect()
    }

    /// Returns the work of a mix that all lanes together do per second, in seconds of the reference class. The mix has
    /// the share of each kind; the shares add up to 1.
    ///
    /// # Panics
    /// If no lane can do one of the kinds.
    pub fn capacity(&self, mix: &[f64]) -> f64 {
        self.solution(mix).work_per_s
    }

    /// Returns the ticks per second of a lane of the class that is fastest at ticks.
    fn fastest_ticks_per_s(&self) -> f64 {
        (0..self.classes.len()).map(|class| self.tick_speed(class).rows_per_s).fold(0.0, f64::max)
    }

    /// Returns the ticks per second of all lanes together if they only process ticks, without the overhead of batches.
    ///
    /// # Panics
    /// If a class has no speed at ticks.
    pub fn ticks_per_s(&self) -> f64 {
        let of_class = |index: usize| self.classes[index].lanes as f64 * self.tick_speed(index).rows_per_s;
        (0..self.classes.len()).map(of_class).sum()
    }

    /// Returns the work of a mix that all lanes do per second beside `ticks_per_s` ticks; 0 if the ticks alone exceed
    /// the capacity. The overhead of batches is not counted.
    ///
    /// The function solves the capacity problem with ticks as one more kind. Bisection finds their share of the work,
    /// because a greater share means more ticks done.
    ///
    /// # Panics
    /// If no lane can do one of the kinds, or a class has no speed at ticks.
    pub fn capacity_beside(&self, mix: &[f64], ticks_per_s: f64) -> f64 {
        if ticks_per_s >= self.ticks_per_s() {
            return 0.0;
        }
        let fastest = self.fastest_ticks_per_s();
        let lanes: Vec<f64> = self.classes.iter().map(|class| class.lanes as f64).collect();
        let speeds = |index: usize| {
            let ticks = self.tick_speed(index).rows_per_s / fastest;
            self.classes[index].speeds.iter().copied().chain([ticks]).collect()
        };
        let speeds: Vec<Vec<f64>> = (0..self.classes.len()).map(speeds).collect();
        let (mut low, mut high, mut work_per_s) = (0.0, 1.0, self.capacity(mix));
        for _ in 0..BISECTIONS {
            let share = (low + high) / 2.0;
            let mix: Vec<f64> = mix.iter().map(|kind| kind * (1.0 - share)).chain([share]).collect();
            let all = warptape_prices::capacity(&mix, &lanes, &speeds).expect("every kind can be done");
            match all.work_per_s * share < ticks_per_s / fastest {
                true => low = share,
                false => high = share,
            }
            work_per_s = all.work_per_s * (1.0 - share);
        }
        work_per_s
    }

    /// Returns the prices of the capacity problem of a mix: the worth of one second of the reference class's work, by
    /// kind.
    ///
    /// # Panics
    /// If no lane can do one of the kinds.
    pub fn prices(&self, mix: &[f64]) -> Vec<f64> {
        self.solution(mix).prices
    }

    /// Returns the allocation that solves the capacity problem of a mix. It is the number of lanes of each class that
    /// work on each kind, by class and kind.
    ///
    /// # Panics
    /// If no lane can do one of the kinds.
    pub(crate) fn allocation(&self, mix: &[f64]) -> Vec<Vec<f64>> {
        self.solution(mix).allocation
    }

    fn solution(&self, mix: &[f64]) -> Capacity {
        let lanes: Vec<f64> = self.classes.iter().map(|class| class.lanes as f64).collect();
        let speeds: Vec<Vec<f64>> = self.classes.iter().map(|class| class.speeds.clone()).collect();
        warptape_prices::capacity(mix, &lanes, &speeds).expect("every kind can be done")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_is_told_of_memory_and_topology() {
        let mut fleet = Fleet::volta_turing_radeon();
        fleet.classes[1].link = Some(Link::Nvlink);
        fleet.classes[1].memory_bytes = 48 << 30;
        fleet.classes[2] = Class { device: LaneKind::Host, numa_node: Some(1), ..fleet.classes[2].clone() };
        let specs = fleet.specs(false);
        let links: Vec<_> = specs[9].peers.iter().map(|peer| (peer.lane, peer.link)).collect();
        assert_eq!(links, [8, 10, 11].map(|lane| (lane, Link::Nvlink)));
        assert_eq!((specs[9].memory_bytes, specs[0].memory_bytes, specs[0].peers.len()), (48 << 30, 0, 0));
        assert_eq!(
            (specs[13].device.as_str(), specs[13].kind(), specs[13].numa_node),
            ("cpu:13", LaneKind::Host, Some(1))
        );
    }
}
