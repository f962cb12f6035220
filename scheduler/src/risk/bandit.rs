//! What the policy `linucb` learns: by how much the rule that it corrects is wrong, from completions alone.
//!
//! ```text
//!   a task joins a lane ──► features, and what the rule predicts ──► pending ──► the task is done ──► the residual ──► model, watch
//!   a slice is done     ──► what it took by what was predicted ──► the lane's slowness (a feature)
//! ```
//!
//! The rule is `earliest-completion`: what waits for the lane and the task, by the rates of the lane's class. The residual is the binary
//! logarithm of the time from the choice to the end of the task's last unit by that prediction. A task that a lost lane had, or whose share was
//! opened to others, teaches nothing. Everything is integers, part of the state hash, and there only under that policy.

mod model;
mod watch;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use warptape_events::journal::{FellBack, LaneId, TaskClass, TaskId};
use xxhash_rust::xxh3::xxh3_64;

use crate::log2::log2_16;
use crate::policy::task::{LaneView, linucb};
use crate::state_hash::{Component, StateHash, hash_component};
pub(crate) use model::{FEATURE_ONE, FEATURES, Features, Model, ONE, RESIDUAL_MAX};
use watch::{Verdict, Watch};

/// With each slice a lane's slowness moves by 1/8 of the way.
const SMOOTHING: i64 = 8;
/// A lane's slowness halves whenever other lanes have done so many slices since its own last one, so that it is tried again.
const HALVES_AFTER: i64 = 256;
/// Tasks whose completions are waited for. Beyond, the one that came first is not waited for any more.
const PENDING_MAX: usize = 1_024;

/// The learner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bandit {
    model: Model,
    watch: Watch,
    /// By lane.
    lanes: Vec<Slowness>,
    /// Slices that were done.
    slices: i64,
    /// Completions that were learnt from since what was known was forgotten last.
    completions: i64,
    pending: BTreeMap<TaskId, Pending>,
    /// What all but tasks that are waited for add to the state hash.
    contribution: u64,
}

/// By how much a lane is slower than its class is predicted to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Slowness {
    /// In powers of two with 16 bits after the point.
    log2: i64,
    /// Number of the last slice here, among all.
    slice: i64,
}

/// A task that joined a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Pending {
    lane: LaneId,
    at_ns: i64,
    /// Logarithm of what the rule predicted in nanoseconds.
    predicted: i64,
    features: Features,
}

impl Pending {
    fn hash(&self, task: TaskId) -> u64 {
        let features: Vec<u8> = self.features.iter().flat_map(|feature| feature.to_le_bytes()).collect();
        let fields = [task, i64::from(self.lane), self.at_ns, self.predicted, xxh3_64(&features) as i64];
        hash_component(Component::BanditTask, fields)
    }
}

impl Bandit {
    /// One that knows nothing, for so many lanes.
    pub(crate) fn new(lanes: usize, hash: &mut StateHash) -> Self {
        let mut bandit = Self {
            model: Model::default(),
            watch: Watch::default(),
            lanes: vec![Slowness::default(); lanes],
            slices: 0,
            completions: 0,
            pending: BTreeMap::new(),
            contribution: 0,
        };
        bandit.refresh(hash);
        bandit
    }

    /// Takes it off the state hash.
    pub(crate) fn forget(self, hash: &mut StateHash) {
        hash.remove(self.walked_hash());
    }

    /// The lane that a task of a class goes to.
    pub(crate) fn choose(&self, lanes: &[LaneView], class: TaskClass) -> LaneId {
        let slowness = |lane: LaneId| self.slowness(lane);
        linucb::choose(lanes, class, slowness, self.watch.is_trusted().then_some(&self.model))
    }

    /// A task has joined a lane.
    pub(crate) fn joined(
        &mut self,
        task: TaskId,
        class: TaskClass,
        view: &LaneView,
        at_ns: i64,
        hash: &mut StateHash,
    ) {
        // Of a lane about which nothing is known there is no prediction.
        if view.task_ns == 0 {
            return;
        }
        if self.pending.len() >= PENDING_MAX
            && let Some((first, gone)) = self.pending.pop_first()
        {
            hash.remove(gone.hash(first));
        }
        let features = linucb::features(view, self.slowness(view.lane), class);
        let pending = Pending { lane: view.lane, at_ns, predicted: linucb::predicted(view), features };
        hash.add(pending.hash(task));
        if let Some(before) = self.pending.insert(task, pending) {
            hash.remove(before.hash(task));
        }
    }

    /// A lane has done a slice that was predicted to take so long.
    pub(crate) fn slice_done(
        &mut self,
        lane: LaneId,
        predicted_ns: i64,
        service_ns: i64,
        hash: &mut StateHash,
    ) {
        self.slices += 1;
        let known = self.slowness(lane);
        let found = (log2_16(service_ns) - log2_16(predicted_ns)).clamp(-RESIDUAL_MAX, RESIDUAL_MAX);
        let log2 = known + (found - known) / SMOOTHING;
        self.lanes[lane as usize] = Slowness { log2, slice: self.slices };
        self.refresh(hash);
    }

    /// All units of a task are done. Says when the errors of what was learnt have drifted, and when it is trusted again.
    pub(crate) fn task_done(&mut self, task: TaskId, at_ns: i64, hash: &mut StateHash) -> Option<FellBack> {
        let pending = self.pending.remove(&task)?;
        hash.remove(pending.hash(task));
        let residual = log2_16(at_ns - pending.at_ns) - pending.predicted;
        let residual = residual.clamp(-RESIDUAL_MAX, RESIDUAL_MAX);
        let error = residual - self.model.predict(&pending.features);
        let verdict = self.watch.judge(error, residual);
        if let Some(Verdict::FellBack { .. }) = verdict {
            (self.model, self.completions) = (Model::default(), 0);
        }
        self.completions += 1;
        self.model.learn(&pending.features, residual);
        self.refresh(hash);
        let milli = |log2: i64| log2 * 1_000 / ONE;
        let (has_returned, error, expected, completions) = match verdict? {
            Verdict::FellBack { error, mean, samples } => (false, error, mean, samples),
            Verdict::Returned { error, rule, samples } => (true, error, rule, samples),
        };
        Some(FellBack {
            policy: "linucb".to_owned(),
            has_returned,
            task,
            error_milli: milli(error),
            expected_milli: milli(expected),
            completions,
        })
    }

    /// What a lane had to do is for others now: it tells nothing.
    pub(crate) fn lane_opened(&mut self, lane: LaneId, hash: &mut StateHash) {
        let opened = self.pending.extract_if(.., |_, pending| pending.lane == lane);
        opened.for_each(|(task, pending)| hash.remove(pending.hash(task)));
    }

    /// A lane's slowness in powers of two, with 16 bits after the point; less, the longer it has done nothing.
    fn slowness(&self, lane: LaneId) -> i64 {
        let Slowness { log2, slice } = self.lanes[lane as usize];
        let halvings = ((self.slices - slice) / HALVES_AFTER).min(63);
        log2 / (1 << halvings.min(32))
    }

    fn hash(&self) -> u64 {
        let lanes = self.lanes.iter().flat_map(|lane| [lane.log2, lane.slice]);
        let rest = [self.slices, self.completions];
        let numbers = self.model.numbers().chain(self.watch.numbers()).chain(lanes).chain(rest);
        let bytes: Vec<u8> = numbers.flat_map(i64::to_le_bytes).collect();
        hash_component(Component::Bandit, [xxh3_64(&bytes) as i64])
    }

    fn refresh(&mut self, hash: &mut StateHash) {
        let now = self.hash();
        hash.replace(&mut self.contribution, now);
    }

    /// Hash of everything here, by walking.
    pub(crate) fn walked_hash(&self) -> u64 {
        self.pending.iter().map(|(task, pending)| pending.hash(*task)).fold(self.hash(), u64::wrapping_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(lane: LaneId, backlog_ns: i64) -> LaneView {
        LaneView { lane, tasks: 1, backlog_ns, task_ns: 1_000_000, speed: 1, utilization_ppm: 0 }
    }

    /// Tasks one after the other; lane 0 takes four times as long as predicted, and lane 1 what is predicted.
    fn learnt(tasks: i64) -> (Bandit, StateHash) {
        let mut hash = StateHash::default();
        let mut bandit = Bandit::new(2, &mut hash);
        for task in 0..tasks {
            let (lane, at_ns) = ((task % 2) as LaneId, 1_000_000_000 * task);
            let takes_ns = if lane == 0 { 4_000_000 } else { 1_000_000 };
            bandit.joined(task, TaskClass::Interactive, &view(lane, 0), at_ns, &mut hash);
            bandit.slice_done(lane, 1_000_000, takes_ns, &mut hash);
            assert_eq!(bandit.task_done(task, at_ns + takes_ns, &mut hash), None);
            assert_eq!(hash.value(), bandit.walked_hash());
        }
        (bandit, hash)
    }

    #[test]
    fn a_lane_that_is_slower_than_its_class_is_passed_by() {
        let both = |bandit: &Bandit, backlog_ns| {
            bandit.choose(&[view(0, 0), view(1, backlog_ns)], TaskClass::Interactive)
        };
        let (bandit, _) = learnt(400);
        // Two tasks go before on the other lane, which is done with them first, but not four.
        assert_eq!([0, 2_000_000, 5_000_000].map(|backlog_ns| both(&bandit, backlog_ns)), [1, 1, 0]);
        let (fresh, _) = learnt(0);
        assert_eq!([0, 2_000_000].map(|backlog_ns| both(&fresh, backlog_ns)), [0, 0], "the rule");
    }

    #[test]
    fn it_falls_back_when_errors_drift_and_returns_when_it_is_no_worse_than_the_rule() {
        let (mut bandit, mut hash) = learnt(400);
        let mut said = Vec::new();
        for task in 400..800 {
            // Lane 0 is suddenly as fast as predicted, and lane 1 takes sixteen times as long, in ways that no slice tells.
            let (lane, at_ns) = ((task % 2) as LaneId, 1_000_000_000 * task);
            let takes_ns = if lane == 0 { 1_000_000 } else { 16_000_000 };
            bandit.joined(task, TaskClass::Interactive, &view(lane, 0), at_ns, &mut hash);
            said.extend(bandit.task_done(task, at_ns + takes_ns, &mut hash));
            let slower = bandit.choose(&[view(0, 0), view(1, 0)], TaskClass::Interactive);
            let is_trusted = said.last().is_none_or(|last| last.has_returned);
            assert!(is_trusted || slower == 0, "of equals the rule takes the first");
            assert_eq!(hash.value(), bandit.walked_hash());
        }
        let found: Vec<_> = said.iter().map(|said| (said.has_returned, said.policy.as_str())).collect();
        assert_eq!(found, [(false, "linucb"), (true, "linucb")], "{said:?}");
        assert!((400..420).contains(&said[0].task), "{said:?}");
        assert_eq!(
            said[1].completions, 128,
            "a window in which it learns, and three good ones of 32: {said:?}"
        );
        bandit.lane_opened(1, &mut hash);
        bandit.forget(&mut hash);
        assert_eq!(hash.value(), 0);
    }

    #[test]
    fn what_a_lost_lane_had_teaches_nothing_and_tasks_that_are_waited_for_are_bounded() {
        let (mut bandit, mut hash) = learnt(10);
        for task in 10..10 + 2 * PENDING_MAX as i64 {
            bandit.joined(task, TaskClass::Batch, &view((task % 2) as LaneId, 0), task, &mut hash);
        }
        assert_eq!(bandit.pending.len(), PENDING_MAX);
        bandit.lane_opened(0, &mut hash);
        assert!(bandit.pending.len() == PENDING_MAX / 2 && bandit.pending.values().all(|one| one.lane == 1));
        let before = bandit.model.clone();
        assert_eq!(bandit.task_done(2 * PENDING_MAX as i64, 9_000_000, &mut hash), None);
        assert_eq!((&bandit.model, hash.value()), (&before, bandit.walked_hash()));
    }

    #[test]
    fn a_lane_that_does_nothing_is_tried_again() {
        let (mut bandit, mut hash) = learnt(100);
        let before = bandit.slowness(0);
        assert!((ONE..=2 * ONE).contains(&before), "{before}");
        (0..4 * HALVES_AFTER).for_each(|_| bandit.slice_done(1, 1, 1, &mut hash));
        assert!(bandit.slowness(0) <= before / 8 && bandit.slowness(1) == 0);
    }
}
