//! Scenes, which are fleets with arrivals: random ones for training, fixed ones for validation, and held-out ones for
//! comparisons.

use std::ops::RangeInclusive;

use warptape_simulator::{Burst, Failure, Fleet, Outage, Process, Throttling, Workload};

use crate::error::TrainError;
use crate::numbers::Numbers;

/// Number of lanes that training supports. A single lane leaves no choice, and a state has one bit per lane in a 64-bit
/// word.
pub const LANES: RangeInclusive<usize> = 2..=64;
/// Load of the scenes for comparisons.
pub const LOAD: f64 = 0.85;
const BURSTY: Process = Process::Bursty(Burst { probability: 0.8, spacing: 0.1 });
const OTHER_BURSTS: Process = Process::Bursty(Burst { probability: 0.9, spacing: 0.05 });
const DRAWN: u64 = 1;
/// Time of a lane's loss or throttling in comparisons, as a share of the time of arrivals. The next constant is the
/// speed of the throttled lane.
const FAULT_AT: f64 = 0.2;
const THROTTLED: f64 = 0.4;

/// A fleet and its workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// The scene's name.
    pub name: String,
    /// The fleet.
    pub fleet: Fleet,
    /// The workload.
    pub workload: Workload,
}

impl Scene {
    /// Returns the fleet and workload from which all scenes of a training are derived.
    ///
    /// # Errors
    /// If the fleet has too few or too many lanes, or the arrivals are not random.
    pub fn given(fleet: Fleet, workload: Workload) -> Result<Self, TrainError> {
        let lanes = fleet.lanes();
        if !LANES.contains(&lanes) {
            return Err(TrainError::Lanes { lanes });
        }
        if matches!(workload.process, Process::Recorded(_) | Process::Closed(_)) {
            return Err(TrainError::Arrivals);
        }
        Ok(Self { name: "as given".to_owned(), fleet, workload })
    }

    /// Returns a scene with indivisible tasks.
    fn of(&self, name: &str, load: f64, process: Process, tasks: usize) -> Self {
        let mut workload = Workload { load, process, tasks, ..self.workload.clone() };
        workload.kinds.iter_mut().for_each(|kind| kind.divisible = false);
        Self { name: name.to_owned(), fleet: self.fleet.clone(), workload }
    }

    /// Returns the expected time of all arrivals, in seconds.
    fn span_s(&self) -> f64 {
        self.workload.tasks as f64 / self.workload.rate(&self.fleet)
    }

    /// Returns the mean size of tasks on the reference class, in seconds.
    pub(crate) fn mean_s(&self) -> f64 {
        let kinds = &self.workload.kinds;
        let work: f64 = kinds.iter().map(|kind| kind.share).sum();
        work / kinds.iter().map(|kind| kind.share / kind.mean_s).sum::<f64>()
    }

    fn losing(mut self, lane: usize, at_s: f64) -> Self {
        let outage = Outage::At { at_s, back_after_s: None };
        self.fleet.failures = vec![Failure { lanes: lane..lane + 1, outage }];
        self
    }

    fn throttling(mut self, lane: usize, from_s: f64, factor: f64) -> Self {
        let lanes = lane..lane + 1;
        self.fleet.throttling = vec![Throttling { lanes, from_s, until_s: 1e6, factor }];
        self
    }

    /// True if the fleet has no faults of its own, so that faults may be added.
    fn is_sound(&self) -> bool {
        self.fleet.failures.is_empty() && self.fleet.throttling.is_empty()
    }

    /// Returns the given process of arrivals and a different one.
    fn processes(&self) -> [Process; 2] {
        let other = if self.workload.process == Process::Poisson { BURSTY } else { Process::Poisson };
        [self.workload.process.clone(), other]
    }
}

/// Returns the scene of an episode, with random load, arrivals, speeds and faults.
pub(crate) fn drawn(given: &Scene, seed: u64, episode: u64, tasks: usize) -> Scene {
    let mut numbers = Numbers::new(seed, DRAWN, episode);
    let load = numbers.between(0.5, 0.95);
    let [as_given, other] = given.processes();
    let process = if numbers.uniform() < 0.5 { as_given } else { other };
    let mut scene = given.of("drawn", load, process, tasks);
    if numbers.uniform() < 0.5 {
        let speeds = scene.fleet.classes.iter_mut().flat_map(|class| &mut class.speeds);
        speeds.for_each(|speed| *speed *= numbers.between(0.5, 1.5));
    }
    let (lane, at_s) = (numbers.below(scene.fleet.lanes()), numbers.between(0.1, 0.5) * scene.span_s());
    match numbers.below(8) {
        0 if scene.is_sound() => scene.losing(lane, at_s),
        1 if scene.is_sound() => scene.throttling(lane, at_s, numbers.between(0.3, 0.8)),
        _ => scene,
    }
}

/// Returns the scenes that decide which network of a training is the best.
pub(crate) fn validation(given: &Scene, tasks: usize) -> Vec<Scene> {
    let [as_given, other] = given.processes();
    [(0.7, as_given.clone()), (0.85, as_given.clone()), (0.85, other), (0.93, as_given)]
        .map(|(load, process)| given.of("validation", load, process, tasks))
        .into()
}

/// Returns scenes that no training used, each with `tasks` tasks. They have other seeds, other bursts, exchanged
/// speeds, a lost lane, and a throttled lane. The last scenes have divisible tasks, if the workload has any.
pub fn held_out(given: &Scene, tasks: usize) -> Vec<Scene> {
    let [as_given, other] = given.processes();
    let of = |name: &str, process: &Process| given.of(name, LOAD, process.clone(), tasks);
    let mut scenes = vec![
        of("arrivals as given", &as_given),
        of("other arrivals of training", &other),
        of("bursts that no training had", &OTHER_BURSTS),
    ];
    let fleet = &given.fleet;
    if fleet.classes.len() > 1 {
        let mut scene = of("classes with exchanged speeds", &as_given);
        let speeds = fleet.classes.iter().rev().map(|class| &class.speeds);
        scene
            .fleet
            .classes
            .iter_mut()
            .zip(speeds)
            .for_each(|(class, speeds)| class.speeds.clone_from(speeds));
        scenes.push(scene);
    }
    if given.is_sound() {
        let at_s = FAULT_AT * scenes[0].span_s();
        scenes.push(of("one lane lost", &as_given).losing(2 % fleet.lanes(), at_s));
        scenes.push(of("one lane throttled to 0.4", &as_given).throttling(
            5 % fleet.lanes(),
            at_s,
            THROTTLED,
        ));
    }
    if given.workload.kinds.iter().any(|kind| kind.divisible) {
        for index in [0, 2] {
            let Scene { name, fleet, workload } = scenes[index].clone();
            let workload = Workload { kinds: given.workload.kinds.clone(), ..workload };
            scenes.push(Scene { name: format!("{name}, divisible"), fleet, workload });
        }
    }
    scenes
}

#[cfg(test)]
mod tests {
    use warptape_simulator::{Class, Closed};

    use super::*;

    #[test]
    fn scenes_are_drawn_by_seed_and_episode_and_none_of_them_is_held_out() {
        let given = Scene::given(Fleet::volta_turing_radeon(), Workload::three_kinds(0.5, 1)).unwrap();
        assert!((given.mean_s() - 0.2).abs() < 1e-9);
        let scenes: Vec<_> = (0..64).map(|episode| drawn(&given, 7, episode, 100)).collect();
        assert_eq!(scenes[3], drawn(&given, 7, 3, 100));
        assert_ne!(scenes[3], drawn(&given, 8, 3, 100));
        assert!(scenes.iter().all(|scene| scene.fleet.lanes() == 16));
        assert!(scenes.iter().any(|scene| !scene.fleet.failures.is_empty()));
        assert!(scenes.iter().any(|scene| !scene.fleet.throttling.is_empty()));
        let held_out = held_out(&given, 100);
        assert_eq!(held_out.len(), 8);
        for held in held_out {
            assert!(scenes.iter().all(|scene| scene.workload != held.workload));
            assert_eq!(held.fleet.lanes(), 16);
        }
    }

    #[test]
    fn what_cannot_be_drawn_or_chosen_among_is_refused_and_a_fleet_keeps_its_own_faults() {
        let (fleet, workload) = (Fleet::volta_turing_radeon(), Workload::three_kinds(0.5, 100));
        let closed = Process::Closed(Closed { senders: 4, think_s: 0.0 });
        let refused = Scene::given(fleet.clone(), Workload { process: closed, ..workload.clone() });
        assert!(matches!(refused, Err(TrainError::Arrivals)));
        let one = Fleet { classes: vec![Class::new("one", 1, &[1.0, 1.0, 1.0])], ..fleet.clone() };
        assert!(matches!(Scene::given(one, workload.clone()), Err(TrainError::Lanes { lanes: 1 })));

        let bursts = Workload { process: OTHER_BURSTS, ..workload };
        let failing = Scene::given(fleet, bursts).unwrap().losing(3, 1.0);
        for episode in 0..64 {
            let scene = drawn(&failing, 7, episode, 100);
            assert_eq!(scene.fleet.failures, failing.fleet.failures);
            assert!(scene.fleet.throttling.is_empty());
            assert!([OTHER_BURSTS, Process::Poisson].contains(&scene.workload.process));
        }
        assert_eq!(held_out(&failing, 100).len(), 6);
    }
}
