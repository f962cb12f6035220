//! Fleets and arrivals: those that are drawn to learn from, those that networks are chosen by, and those that are held out for comparisons.

use warptape_simulator::{Burst, Class, Failure, Fleet, Outage, Process, Throttling, Workload};

use crate::numbers::Numbers;

/// Lanes of all fleets that are learnt from.
pub const LANES: usize = 16;
/// Mean size of tasks on the reference class, in seconds.
pub(crate) const MEAN_S: f64 = 0.2;
const BURSTY: Process = Process::Bursty(Burst { probability: 0.8, spacing: 0.1 });
const DRAWN: u64 = 1;

/// A fleet and what arrives.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// What it is called.
    pub name: String,
    /// The fleet.
    pub fleet: Fleet,
    /// What arrives.
    pub workload: Workload,
}

impl Scene {
    fn new(name: &str, load: f64, process: Process, tasks: usize) -> Self {
        let mut workload = Workload { process, ..Workload::three_kinds(load, tasks) };
        workload.kinds.iter_mut().for_each(|kind| kind.divisible = false);
        Self { name: name.to_owned(), fleet: Fleet::volta_turing_radeon(), workload }
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
}

/// The scene of an episode: its load, bursts, speeds and faults are drawn.
pub(crate) fn drawn(seed: u64, episode: u64, tasks: usize) -> Scene {
    let mut numbers = Numbers::new(seed, DRAWN, episode);
    let load = numbers.between(0.5, 0.95);
    let process = if numbers.uniform() < 0.5 { Process::Poisson } else { BURSTY };
    let mut scene = Scene::new("drawn", load, process, tasks);
    if numbers.uniform() < 0.5 {
        let speeds = scene.fleet.classes.iter_mut().flat_map(|class| &mut class.speeds);
        speeds.for_each(|speed| *speed *= numbers.between(0.5, 1.5));
    }
    let span_s = tasks as f64 / scene.workload.rate(&scene.fleet);
    let (lane, at_s) = (numbers.below(LANES), numbers.between(0.1, 0.5) * span_s);
    match numbers.below(8) {
        0 => scene.losing(lane, at_s),
        1 => scene.throttling(lane, at_s, numbers.between(0.3, 0.8)),
        _ => scene,
    }
}

/// Scenes by which the best network of a training is chosen.
pub(crate) fn validation(tasks: usize) -> Vec<Scene> {
    [(0.7, Process::Poisson), (0.85, Process::Poisson), (0.85, BURSTY), (0.93, Process::Poisson)]
        .map(|(load, process)| Scene::new("validation", load, process, tasks))
        .into()
}

/// Scenes that no training saw: other seeds at first, then other bursts, another matrix of speeds, a GPU that is lost and one that is throttled, and tasks that lanes may share.
pub fn held_out(tasks: usize) -> Vec<Scene> {
    let of = |name: &str, process: Process| Scene::new(name, 0.85, process, tasks);
    let mut scenes = vec![
        of("Poisson arrivals", Process::Poisson),
        of("bursts as in training", BURSTY),
        of("other bursts", Process::Bursty(Burst { probability: 0.9, spacing: 0.05 })),
        of("another matrix of speeds", Process::Poisson),
        of("one GPU lost", Process::Poisson).losing(2, 3.0),
        of("one GPU throttled to 0.4", Process::Poisson).throttling(5, 3.0, 0.4),
    ];
    scenes[3].fleet.classes = vec![
        Class::new("A", 4, &[1.0, 1.0, 1.0]),
        Class::new("B", 4, &[0.3, 0.9, 1.6]),
        Class::new("C", 8, &[1.2, 0.4, 0.6]),
    ];
    let shared = |scene: &Scene| {
        let mut shared = Scene { name: format!("{}, divisible", scene.name), ..scene.clone() };
        shared.workload.kinds.iter_mut().for_each(|kind| kind.divisible = true);
        shared
    };
    let divisible: Vec<_> = [0, 2].map(|index: usize| shared(&scenes[index])).into();
    scenes.extend(divisible);
    scenes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenes_are_drawn_by_seed_and_episode_and_none_of_them_is_held_out() {
        let scenes: Vec<_> = (0..64).map(|episode| drawn(7, episode, 100)).collect();
        assert_eq!(scenes[3], drawn(7, 3, 100));
        assert_ne!(scenes[3], drawn(8, 3, 100));
        assert!(scenes.iter().all(|scene| scene.fleet.lanes() == LANES));
        assert!(scenes.iter().any(|scene| !scene.fleet.failures.is_empty()));
        assert!(scenes.iter().any(|scene| !scene.fleet.throttling.is_empty()));
        for held in held_out(100) {
            assert!(scenes.iter().all(|scene| scene.workload != held.workload));
            assert_eq!(held.fleet.lanes(), LANES);
        }
    }
}
