//! The learner of the policy `linucb`. It learns the errors of the policy's rule from completed and expired tasks.
//!
//! ```text
//!   a task joins a lane ──► features, and the rule's prediction ──► pending ───┬──► the task is done ──► the residual ──► model, watch
//!                                                                              ├──► it expires ──► a lower bound of the residual ──► model, slowness
//!                                                                              └──► it ends otherwise: nothing
//!   a slice is done     ──► its time relative to the prediction ──► the lane's slowness (a feature)
//! ```
//!
//! The rule is earliest completion at the prices of the capacity problem (`policy::task::linucb`). It predicts the time
//! of the lane's waiting work and of the task, by the rates of the lane's class. Prices only weight this time; they
//! predict nothing. The residual is the binary logarithm of the actual time divided by the predicted one. The actual
//! time runs from the choice to the end of the task's last unit.
//!
//! An expired task gives a lower bound: the time from the choice to the step that expires it. If this is above the
//! expectation, the model learns it, and the lane's slowness moves towards it; otherwise it is no news. The watch
//! judges completions only. A task is not learnt from if its lane was lost, its share was opened to other lanes, or it
//! was shed, dropped or revoked. All numbers are integers and part of the state hash; they exist only under this
//! policy.

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

/// Share by which a slice moves its lane's slowness: 1/8.
const SMOOTHING: i64 = 8;
/// Slices of other lanes after which the slowness of an idle lane halves, so that the lane gets tasks again.
const HALVES_AFTER: i64 = 256;
/// Most tasks that are tracked at a time. Further tasks are not tracked, because the tracked ones end sooner.
const PENDING_MAX: usize = 1_024;

/// The learner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bandit {
    model: Model,
    watch: Watch,
    /// Slowness by lane.
    lanes: Vec<Slowness>,
    /// Number of slices that were done.
    slices: i64,
    /// Completed tasks learnt from since the last reset.
    completions: i64,
    pending: BTreeMap<TaskId, Pending>,
    /// Contribution to the state hash, except for the tracked tasks.
    contribution: u64,
}

/// Slowness of a lane compared with the prediction for its class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Slowness {
    /// Binary logarithm of the slowness, with 16 bits after the point.
    log2: i64,
    /// Number of slices done by all lanes at the last change of `log2`.
    slice: i64,
}

/// A tracked task: it has joined a lane and is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pending {
    lane: LaneId,
    at_ns: i64,
    /// Binary logarithm of the rule's prediction in nanoseconds.
    predicted: i64,
    features: Features,
}

impl Pending {
    fn hash(&self, task: TaskId) -> u64 {
        let features: Vec<u8> = self.features.iter().flat_map(|feature| feature.to_le_bytes()).collect();
        let fields = [task, i64::from(self.lane), self.at_ns, self.predicted, xxh3_64(&features) as i64];
        hash_component(Component::BanditTask, fields)
    }

    /// The residual if the task ended now.
    fn residual(&self, at_ns: i64) -> i64 {
        (log2_16(at_ns - self.at_ns) - self.predicted).clamp(-RESIDUAL_MAX, RESIDUAL_MAX)
    }
}

impl Bandit {
    /// A learner without experience, for `lanes` lanes.
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

    /// Removes the learner's contributions from the state hash.
    pub(crate) fn forget(self, hash: &mut StateHash) {
        hash.remove(self.walked_hash());
    }

    /// The lane for a task of a class.
    pub(crate) fn choose(&self, lanes: &[LaneView], class: TaskClass) -> LaneId {
        let slowness = |lane: LaneId| self.slowness(lane);
        linucb::choose(lanes, class, slowness, self.watch.is_trusted().then_some(&self.model))
    }

    /// Correction of the logarithm of the rule's time on a lane, with 16 bits after the point; `None` while the rule
    /// decides alone.
    pub(crate) fn correction(&self, view: &LaneView, class: TaskClass) -> Option<i64> {
        let correction = |model| linucb::correction(view, class, |lane| self.slowness(lane), model);
        self.watch.is_trusted().then_some(&self.model).map(correction)
    }

    /// Tracks a task that has joined a lane.
    pub(crate) fn joined(
        &mut self,
        task: TaskId,
        class: TaskClass,
        view: &LaneView,
        at_ns: i64,
        hash: &mut StateHash,
    ) {
        // The time of a lane without measurements is not predicted.
        if !view.is_known || self.pending.len() >= PENDING_MAX {
            return;
        }
        let features = linucb::features(view, self.slowness(view.lane), class);
        let pending = Pending { lane: view.lane, at_ns, predicted: linucb::predicted(view), features };
        hash.add(pending.hash(task));
        let before = self.pending.insert(task, pending);
        assert!(before.is_none(), "a task joins once, and is not waited for once it has ended");
    }

    /// Learns a lane's slowness from a slice and its predicted time.
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

    /// Moves a lane's slowness towards `2^log2`.
    fn found(&mut self, lane: LaneId, log2: i64) {
        let known = self.slowness(lane);
        let log2 = known + (log2 - known) / SMOOTHING;
        self.lanes[lane as usize] = Slowness { log2, slice: self.slices };
    }

    /// Learns from a task whose units are all done. Returns a decision if the learner loses trust because the errors
    /// have drifted, or regains it.
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

    /// Figures for judging a task's completion at a time, without learning from it.
    pub(crate) fn account(&self, task: TaskId, at_ns: i64) -> Account {
        let Some(pending) = self.pending.get(&task) else { return Account::default() };
        let residual = pending.residual(at_ns);
        let mut account = self.watch.account(residual - self.model.predict(&pending.features), residual);
        account.figure("took_ns", at_ns - pending.at_ns);
        account.figure("lane", pending.lane.into());
        account
    }

    /// Learns from an expired task, which would have taken at least the time so far.
    pub(crate) fn task_expired(&mut self, task: TaskId, at_ns: i64, hash: &mut StateHash) {
        let Some(pending) = self.left(task, hash) else { return };
        let at_least = pending.residual(at_ns);
        if at_least <= self.model.predict(&pending.features) {
            return;
        }
        self.model.learn(&pending.features, at_least);
        // The running slices of an expired task are not learnt from. Without this, a lane with only such tasks would
        // never count as slow.
        if at_least > self.slowness(pending.lane) {
            self.found(pending.lane, at_least);
        }
        self.refresh(hash);
    }

    /// Stops tracking a task. Returns it if it was tracked.
    pub(crate) fn left(&mut self, task: TaskId, hash: &mut StateHash) -> Option<Pending> {
        let pending = self.pending.remove(&task)?;
        hash.remove(pending.hash(task));
        Some(pending)
    }

    /// Stops tracking a lane's tasks, because its shares were opened to other lanes.
    pub(crate) fn lane_opened(&mut self, lane: LaneId, hash: &mut StateHash) {
        let opened = self.pending.extract_if(.., |_, pending| pending.lane == lane);
        opened.for_each(|(task, pending)| hash.remove(pending.hash(task)));
    }

    /// A lane's slowness in powers of two, with 16 bits after the point. It shrinks while the lane does no slices.
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

    /// Hash of the learner, computed by walking over it.
    pub(crate) fn walked_hash(&self) -> u64 {
        self.pending.iter().map(|(task, pending)| pending.hash(*task)).fold(self.hash(), u64::wrapping_add)
    }
}

#[cfg(test)]
mod tests;
