//! Fleets: classes of lanes, how many there are, and how fast each is at each kind of tasks.

use warptape_events::journal::LaneSpec;
use warptape_prices::Capacity;

/// Lanes that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// What it is called.
    pub name: String,
    /// Number of lanes.
    pub lanes: usize,
    /// Work done in a second of a lane by kind, in seconds of the reference class.
    pub speeds: Vec<f64>,
}

/// All lanes.
#[derive(Clone, Debug, PartialEq)]
pub struct Fleet {
    /// Lanes are numbered class by class.
    pub classes: Vec<Class>,
    /// Time that a slice takes beside its units, in nanoseconds.
    pub slice_overhead_ns: i64,
}

impl Fleet {
    /// The fleet of the published experiment: 8 Volta V100, 4 Turing and 4 Radeon VII, with speeds relative to Volta for
    /// simulation, data processing and machine learning as they were measured (see docs/scheduling.md for the sources).
    pub fn volta_turing_radeon() -> Self {
        let class = |name: &str, lanes, speeds: [f64; 3]| Class {
            name: name.to_owned(),
            lanes,
            speeds: speeds.into(),
        };
        Self {
            classes: vec![
                class("Volta", 8, [1.0, 1.0, 1.0]),
                class("Turing", 4, [0.447, 0.662, 0.743]),
                class("Radeon", 4, [0.841, 0.970, 0.80]),
            ],
            slice_overhead_ns: 20_000,
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

    /// The lanes as the scheduler is told of them. A lane's weight is its mean speed.
    pub(crate) fn specs(&self) -> Vec<LaneSpec> {
        let spec = |lane: usize| {
            let class = &self.classes[self.class_of(lane)];
            let mean = class.speeds.iter().sum::<f64>() / class.speeds.len() as f64;
            let weight = ((mean * 1_000.0) as i32).max(1);
            LaneSpec {
                class: class.name.clone(),
                ..LaneSpec::new(lane as i32, format!("cuda:{lane}"), weight)
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

    /// The prices of the capacity problem for a mix of kinds: what a second of the reference class's work is worth by kind.
    ///
    /// # Panics
    /// Where a kind can be done by nobody.
    pub fn prices(&self, mix: &[f64]) -> Vec<f64> {
        self.solution(mix).prices
    }

    fn solution(&self, mix: &[f64]) -> Capacity {
        let lanes: Vec<f64> = self.classes.iter().map(|class| class.lanes as f64).collect();
        let speeds: Vec<Vec<f64>> = self.classes.iter().map(|class| class.speeds.clone()).collect();
        warptape_prices::capacity(mix, &lanes, &speeds).expect("every kind can be done")
    }
}
