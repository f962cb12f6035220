//! What the policy `linucb` learns: by how much the rule that it corrects is wrong, from completions and expiries.
//!
//! ```text
//!   a task joins a lane ──► features, and what the rule predicts ──► pending ──┬──► the task is done ──► the residual ──► model, watch
//!                                                                              ├──► it expires ──► a lower bound of the residual ──► model, slowness
//!                                                                              └──► it ends otherwise: nothing
//!   a slice is done     ──► what it took by what was predicted ──► the lane's slowness (a feature)
//! ```
//!
//! The rule is earliest completion at the prices of the capacity problem (`policy::task::linucb`). What it predicts is what waits for the lane and the
//! task, by the rates of the lane's class; prices weigh this, and predict nothing. The residual is the binary logarithm of the time from the choice to
//! the end of the task's last unit by that prediction. Of a task that expires, the time from the choice
//! to the step that finds its deadline met is a lower bound of that. Where the bound is above what the model expects, the model learns it, and the
//! lane is as slow as that at least; otherwise it says nothing new. The watch judges completions alone. A task that a lost lane had, whose share
//! was opened to others, or that was shed, dropped or revoked, teaches nothing. Everything is integers, part of the state hash, and there only
//! under that policy.

mod model;
mod watch;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use warptape_events::journal::{FellBack, LaneId, TaskClass, TaskId};
use xxhash_rust::xxh3::xxh3_64;

use crate::account::Account;
use crate::log2::{log2_16, milli};
use crate::policy::task::{LaneView, linucb};
use crate::state_hash::{Component, StateHash, hash_component};
pub(crate) use model::{FEATURE_ONE, FEATURES, Features, Model, ONE, RESIDUAL_MAX};
use watch::{Verdict, Watch};

/// With each slice a lane's slowness moves by 1/8 of the way.
const SMOOTHING: i64 = 8;
/// A lane's slowness halves whenever other lanes have done so many slices since its own last one, so that it is tried again.
const HALVES_AFTER: i64 = 256;
/// Tasks whose ends are waited for. While there are so many, those that join are not waited for: the ones of before end sooner.
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
    /// Number of the last slice among all, when this was found.
    slice: i64,
}

/// A task that joined a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pending {
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

    /// The residual if the task ends now.
    fn residual(&self, at_ns: i64) -> i64 {
        (log2_16(at_ns - self.at_ns) - self.predicted).clamp(-RESIDUAL_MAX, RESIDUAL_MAX)
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

    /// What it adds to the logarithm of the rule's time of a lane, with 16 bits after the point; none while the rule decides alone.
    pub(crate) fn correction(&self, view: &LaneView, class: TaskClass) -> Option<i64> {
        let correction = |model| linucb::correction(view, class, |lane| self.slowness(lane), model);
        self.watch.is_trusted().then_some(&self.model).map(correction)
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
        if !view.is_known || self.pending.len() >= PENDING_MAX {
            return;
        }
        let features = linucb::features(view, self.slowness(view.lane), class);
        let pending = Pending { lane: view.lane, at_ns, predicted: linucb::predicted(view), features };
        hash.add(pending.hash(task));
        let before = self.pending.insert(task, pending);
        assert!(before.is_none(), "a task joins once, and is not waited for once it has ended");
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
        self.found(lane, (log2_16(service_ns) - log2_16(predicted_ns)).clamp(-RESIDUAL_MAX, RESIDUAL_MAX));
        self.refresh(hash);
    }

    /// A lane was found to be slower than its class by so many powers of two.
    fn found(&mut self, lane: LaneId, log2: i64) {
        let known = self.slowness(lane);
        let log2 = known + (log2 - known) / SMOOTHING;
        self.lanes[lane as usize] = Slowness { log2, slice: self.slices };
    }

    /// All units of a task are done. Says when the errors of what was learnt have drifted, and when it is trusted again.
    pub(crate) fn task_done(&mut self, task: TaskId, at_ns: i64, hash: &mut StateHash) -> Option<FellBack> {
        let pending = self.left(task, hash)?;
        let residual = pending.residual(at_ns);
        let error = residual - self.model.predict(&pending.features);
        let verdict = self.watch.judge(error, residual);
        let learnt_from = self.completions;
        if let Some(Verdict::FellBack { .. }) = verdict {
            (self.model, self.completions) = (Model::default(), 0);
        }
        self.completions += 1;
        self.model.learn(&pending.features, residual);
        self.refresh(hash);
        let (has_returned, error, expected) = match verdict? {
            Verdict::FellBack { error, mean } => (false, error, mean),
            Verdict::Returned { error, rule } => (true, error, rule),
        };
        Some(FellBack {
            policy: "linucb".to_owned(),
            has_returned,
            task,
            error_milli: milli(error),
            expected_milli: milli(expected),
            completions: learnt_from,
        })
    }

    /// What is judged as the last unit of a task is done at a time, which is not taken in yet.
    pub(crate) fn account(&self, task: TaskId, at_ns: i64) -> Account {
        let Some(pending) = self.pending.get(&task) else { return Account::default() };
        let residual = pending.residual(at_ns);
        let mut account = self.watch.account(residual - self.model.predict(&pending.features), residual);
        account.figure("took_ns", at_ns - pending.at_ns);
        account.figure("lane", pending.lane.into());
        account
    }

    /// A task's deadline came before it was done: what it would have taken is not less than the time so far.
    pub(crate) fn task_expired(&mut self, task: TaskId, at_ns: i64, hash: &mut StateHash) {
        let Some(pending) = self.left(task, hash) else { return };
        let at_least = pending.residual(at_ns);
        if at_least <= self.model.predict(&pending.features) {
            return;
        }
        self.model.learn(&pending.features, at_least);
        // Slices that run as their task expires are for nothing: without this, a lane of such tasks would never be known as slow.
        if at_least > self.slowness(pending.lane) {
            self.found(pending.lane, at_least);
        }
        self.refresh(hash);
    }

    /// A task is not waited for any more.
    pub(crate) fn left(&mut self, task: TaskId, hash: &mut StateHash) -> Option<Pending> {
        let pending = self.pending.remove(&task)?;
        hash.remove(pending.hash(task));
        Some(pending)
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
mod tests;
