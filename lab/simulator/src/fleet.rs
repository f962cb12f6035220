//! Fleets: classes of lanes, how many there are, how fast each is at each kind of tasks, and when lanes are lost or slower.

use std::ops::Range;

use warptape_events::journal::{AutoscaleConfig, LaneId, LaneKind, LaneSpec, Link, Peer};
use warptape_prices::Capacity;

use crate::ticks::TickSpeed;

/// Halvings by which the share of ticks is found.
const BISECTIONS: u32 = 40;

/// Lanes that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// What it is called.
    pub name: String,
    /// Number of lanes.
    pub lanes: usize,
    /// Work done in a second of a lane by kind, in seconds of the reference class.
    pub speeds: Vec<f64>,
    /// How fast a lane does ticks; none: it was not said.
    pub ticks: Option<TickSpeed>,
    /// Whether its lanes are GPUs or processors.
    pub device: LaneKind,
    /// Memory of each lane's device, in bytes; 0: not known.
    pub memory_bytes: i64,
    /// How its devices are connected with each other; none: not known.
    pub link: Option<Link>,
    /// NUMA node of the host that its devices are attached to; none: not known.
    pub numa_node: Option<i32>,
}

impl Class {
    /// GPUs of which nothing is known but how fast they are.
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

/// When lanes are lost, and when they are back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outage {
    /// All at once at a time.
    At {
        /// When, in seconds.
        at_s: f64,
        /// How long after that they are back, in seconds; none: never.
        back_after_s: Option<f64>,
    },
    /// Each by itself, again and again, at times that are exponentially distributed.
    Drawn {
        /// Mean time that a lane works, in seconds.
        mtbf_s: f64,
        /// Mean time that it is lost, in seconds.
        mttr_s: f64,
    },
}

/// Lanes that are lost.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Their numbers.
    pub lanes: Range<usize>,
    /// When.
    pub outage: Outage,
}

/// Lanes that are slower for a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Throttling {
    /// Their numbers.
    pub lanes: Range<usize>,
    /// From when on, in seconds.
    pub from_s: f64,
    /// Until when, in seconds.
    pub until_s: f64,
    /// Their speed meanwhile, as a share of what it is otherwise.
    pub factor: f64,
}

/// How lanes are started and stopped, and what they cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Autoscale {
    /// When how many lanes are wanted; its policy is that of [`crate::Options::scaling`].
    pub config: AutoscaleConfig,
    /// Price of a lane for an hour in which it is on, by class.
    pub price_per_hour: Vec<f64>,
}

/// All lanes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fleet {
    /// Lanes are numbered class by class.
    pub classes: Vec<Class>,
    /// Time that a slice takes beside its units, in nanoseconds.
    pub slice_overhead_ns: i64,
    /// When lanes are lost.
    pub failures: Vec<Failure>,
    /// When lanes are slower.
    pub throttling: Vec<Throttling>,
    /// How lanes are started and stopped; none: all of them always are on.
    pub autoscale: Option<Autoscale>,
}

impl Fleet {
    /// The fleet of the published experiment: 8 Volta V100, 4 Turing and 4 Radeon VII, with speeds relative to Volta for
    /// simulation, data processing and machine learning as they were measured; docs/scheduling-results.md has the
    /// sources.
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

    /// Number of lanes.
    pub fn lanes(&self) -> usize {
        self.classes.iter().map(|class| class.lanes).sum()
    }

    /// The class of a lane, by its index.
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

    /// Price of an hour of a lane for the work that it does in the mean over kinds; 0 where there are no prices.
    pub(crate) fn work_price(&self, lane: usize) -> f64 {
        let class = self.class_of(lane);
        let speeds = &self.classes[class].speeds;
        let mean = speeds.iter().sum::<f64>() / speeds.len() as f64;
        self.autoscale.as_ref().map_or(0.0, |autoscale| autoscale.price_per_hour[class] / mean)
    }

    /// How fast a lane of a class does ticks.
    ///
    /// # Panics
    /// Where that was not said.
    pub(crate) fn tick_speed(&self, class: usize) -> TickSpeed {
        self.classes[class].ticks.expect("a fleet that gets ticks says how fast its classes are at them")
    }

    /// Whether a lane is lost at some time and does not come back.
    pub(crate) fn is_lost_for_ever(&self, lane: usize) -> bool {
        self.failures.iter().any(|failure| {
            let ends = matches!(failure.outage, Outage::At { back_after_s: None, .. });
            ends && failure.lanes.contains(&lane)
        })
    }

    /// The lanes as the scheduler is told of them. A lane's weight is its mean speed, or where there are ticks its speed at them.
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

    /// Work of a mix of kinds that all lanes together can do in a second, in seconds of the reference class; the mix is of shares that add up to 1.
    ///
    /// # Panics
    /// Where a kind can be done by nobody.
    pub fn capacity(&self, mix: &[f64]) -> f64 {
        self.solution(mix).work_per_s
    }

    /// Ticks in a second that a lane of the class that is fastest at them does.
    fn fastest_ticks_per_s(&self) -> f64 {
        (0..self.classes.len()).map(|class| self.tick_speed(class).rows_per_s).fold(0.0, f64::max)
    }

    /// Ticks in a second that all lanes together do if they do nothing else, without the time that batches take beside their rows.
    ///
    /// # Panics
    /// Where it was not said how fast classes are at ticks.
    pub fn ticks_per_s(&self) -> f64 {
        let of_class = |index: usize| self.classes[index].lanes as f64 * self.tick_speed(index).rows_per_s;
        (0..self.classes.len()).map(of_class).sum()
    }

    /// Work of a mix of kinds that all lanes together can do in a second beside so many ticks, without the time that batches take beside their rows;
    /// 0 where ticks alone are too much.
    ///
    /// It is the capacity problem with ticks as one more kind, whose share of the work is found by bisection: the more of the work is ticks, the more
    /// ticks are done.
    ///
    /// # Panics
    /// Where a kind can be done by nobody, or it was not said how fast classes are at ticks.
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

    /// The prices of the capacity problem for a mix of kinds: what a second of the reference class's work is worth by kind.
    ///
    /// # Panics
    /// Where a kind can be done by nobody.
    pub fn prices(&self, mix: &[f64]) -> Vec<f64> {
        self.solution(mix).prices
    }

    /// Time that each class gives to each kind in the capacity problem for a mix of kinds, by class, in lanes.
    ///
    /// # Panics
    /// Where a kind can be done by nobody.
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
