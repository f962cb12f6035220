//! Totals of inputs and decisions, counted as they are recorded. All of them follow from the journal, so they can be
//! counted again from it.

use std::collections::BTreeMap;

use warptape_events::journal::{
    Decision, Dispatch, Input, LaneId, RejectReason, ReleaseCause, ReleaseReason, Shadow, TaskClass,
};
use warptape_events::risk::RiskErrorCode;

/// Declares the labels of an enumeration: a function that names a value, and the list of all names.
macro_rules! labels {
    ($(#[$doc:meta])* $function:ident($type:ty), $all:ident: $($pattern:pat => $label:literal,)+) => {
        $(#[$doc])*
        pub const fn $function(of: &$type) -> &'static str {
            match of { $($pattern => $label,)+ }
        }

        #[doc = concat!("All that [`", stringify!($function), "`] may say.")]
        pub const $all: &[&str] = &[$($label),+];
    };
}

labels! {
    /// The kind of a decision.
    decision_kind(Decision), DECISION_KINDS:
    Decision::Place(_) => "place",
    Decision::Dispatch(_) => "dispatch",
    Decision::Pause(_) => "pause",
    Decision::Resume(_) => "resume",
    Decision::Fence(_) => "fence",
    Decision::Restore(_) => "restore",
    Decision::WakeAt(_) => "wake_at",
    Decision::Release(_) => "release",
    Decision::Admit(_) => "admit",
    Decision::Reject(_) => "reject",
    Decision::Split(_) => "split",
    Decision::Reserve(_) => "reserve",
    Decision::RunSlice(_) => "run_slice",
    Decision::Expire(_) => "expire",
    Decision::Finish(_) => "finish",
    Decision::Assign(_) => "assign",
    Decision::AskPrices(_) => "ask_prices",
    Decision::Controlled(_) => "controlled",
    Decision::Breaker(_) => "breaker",
    Decision::Headroom(_) => "headroom",
    Decision::Drift(_) => "drift",
    Decision::Shed(_) => "shed",
    Decision::FellBack(_) => "fell_back",
    Decision::Scale(_) => "scale",
    Decision::Shadow(_) => "shadow",
}

labels! {
    /// The reason for which rows were released as a batch.
    batch_reason(ReleaseReason), BATCH_REASONS:
    ReleaseReason::Idle => "idle",
    ReleaseReason::Full => "full",
    ReleaseReason::Deadline => "deadline",
    ReleaseReason::Drain => "drain",
}

labels! {
    /// The cause for which a group leaves its lane.
    move_cause(ReleaseCause), MOVE_CAUSES:
    ReleaseCause::Route => "route",
    ReleaseCause::Drained => "drained",
    ReleaseCause::Breaker => "breaker",
    ReleaseCause::Rebalance => "rebalance",
    ReleaseCause::Balance => "balance",
}

labels! {
    /// The reason for which a risk task was not admitted.
    reject_reason(RejectReason), REJECT_REASONS:
    RejectReason::Overloaded => "overloaded",
    RejectReason::Expired => "expired",
    RejectReason::Quota => "quota",
    RejectReason::Rate => "rate",
    RejectReason::Congested => "congested",
}

labels! {
    /// The class of a risk task.
    task_class(TaskClass), TASK_CLASSES:
    TaskClass::Critical => "critical",
    TaskClass::Interactive => "interactive",
    TaskClass::Batch => "batch",
}

labels! {
    /// The outcome of a risk request: an answer, or an error of this code.
    request_outcome(Option<RiskErrorCode>), REQUEST_OUTCOMES:
    None => "done",
    Some(RiskErrorCode::UnknownSymbol) => "unknown_symbol",
    Some(RiskErrorCode::MissingMarketData) => "missing_market_data",
    Some(RiskErrorCode::BadParameter) => "bad_parameter",
    Some(RiskErrorCode::Expired) => "expired",
    Some(RiskErrorCode::Duplicate) => "duplicate",
    Some(RiskErrorCode::Overloaded) => "overloaded",
}

labels! {
    /// The choice of a shadow policy compared with the executed one; `None` if nothing was executed yet.
    shadow_choice(Option<bool>), SHADOW_CHOICES:
    Some(true) => "same",
    Some(false) => "other",
    None => "before",
}

/// Counts by label. Every label is present from the beginning, so that a rate includes the first event of each kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts(BTreeMap<&'static str, u64>);

impl Counts {
    fn of(labels: &[&'static str]) -> Self {
        Self(labels.iter().map(|&label| (label, 0)).collect())
    }

    fn add(&mut self, label: &'static str, count: u64) {
        *self.0.get_mut(label).expect("labels are declared with their list") += count;
    }

    /// Pairs of label and count, by label.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(&label, &count)| (label, count))
    }
}

/// Times in buckets whose upper bounds are powers of two of a microsecond.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeBuckets {
    counts: [u64; TIME_BUCKETS],
    sum_ns: u64,
}

/// Number of buckets: up to 1 µs, 2 µs, 4 µs … 34 s, and one for all longer times.
const TIME_BUCKETS: usize = 27;

impl TimeBuckets {
    fn add(&mut self, time_ns: u64) {
        let us = time_ns.div_ceil(1_000).max(1);
        let bucket = us.next_power_of_two().trailing_zeros() as usize;
        self.counts[bucket.min(TIME_BUCKETS - 1)] += 1;
        self.sum_ns = self.sum_ns.saturating_add(time_ns);
    }

    /// Sum of all times, in nanoseconds.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Number of times.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Upper bound of each bucket in µs, and the number of times in that bucket only; the last bucket has no bound.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<u64>, u64)> {
        let last = TIME_BUCKETS - 1;
        self.counts.iter().enumerate().map(move |(at, &count)| ((at < last).then(|| 1 << at), count))
    }
}

/// Totals over the journal of this process life so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Decisions by kind.
    pub decisions: Counts,
    /// Batches, by the reason of their release.
    pub batches: Counts,
    /// Groups that left their lane, by cause.
    pub moves: Counts,
    /// Risk tasks admitted, by class.
    pub admitted: Counts,
    /// Risk tasks not admitted, by reason.
    pub rejected: Counts,
    /// Risk tasks that missed their deadline: rejected for it, or given up.
    pub deadline_misses: u64,
    /// Risk tasks dropped because of a standing queue.
    pub shed: u64,
    /// Choices of shadow policies, in the order of the configuration.
    pub shadows: Vec<ShadowTally>,
    /// Differences between predicted and actual ends of batches, in either direction.
    pub prediction_errors: TimeBuckets,
    /// Service times of batches.
    pub batch_service: TimeBuckets,
    /// Waiting times of each batch's oldest row at the release of the batch.
    pub batch_waits: TimeBuckets,
    /// Lane and predicted end of each batch in flight, by batch.
    predicted: BTreeMap<i64, (LaneId, i64)>,
}

/// Choices of a shadow policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowTally {
    /// The policy.
    pub policy: String,
    /// Choices that the policy evaluated, by agreement with the deciding policy.
    pub choices: Counts,
}

impl ShadowTally {
    /// The tally of a policy that has evaluated no choice yet.
    pub fn new(policy: &str) -> Self {
        Self { policy: policy.to_owned(), choices: Counts::of(SHADOW_CHOICES) }
    }
}

fn shadow_agrees(shadow: &Shadow) -> Option<bool> {
    match (shadow.lane_instead, shadow.task_instead) {
        (Some(instead), _) => Some(shadow.lane? == instead),
        (None, instead) => Some(instead? == shadow.task),
    }
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            decisions: Counts::of(DECISION_KINDS),
            batches: Counts::of(BATCH_REASONS),
            moves: Counts::of(MOVE_CAUSES),
            admitted: Counts::of(TASK_CLASSES),
            rejected: Counts::of(REJECT_REASONS),
            deadline_misses: 0,
            shed: 0,
            shadows: Vec::new(),
            prediction_errors: TimeBuckets::default(),
            batch_service: TimeBuckets::default(),
            batch_waits: TimeBuckets::default(),
            predicted: BTreeMap::new(),
        }
    }
}

impl Tally {
    /// Counts one step: an input of the scheduler with its time, and the decisions.
    pub fn add(&mut self, at_ns: i64, input: &Input, decisions: &[Decision]) {
        match input {
            Input::Started(started) => {
                self.predicted.clear();
                let policies = started.shadow.iter().flat_map(|shadow| &shadow.policies);
                self.shadows = policies.map(|policy| ShadowTally::new(policy)).collect();
            }
            Input::Completed(completed) => {
                self.batch_service.add(completed.service_ns.max(0).unsigned_abs());
                if let Some((_, predicted_ns)) = self.predicted.remove(&completed.batch) {
                    self.prediction_errors.add(predicted_ns.abs_diff(at_ns));
                }
            }
            _ => {}
        }
        decisions.iter().for_each(|decision| self.add_decision(at_ns, decision));
    }

    fn add_decision(&mut self, at_ns: i64, decision: &Decision) {
        self.decisions.add(decision_kind(decision), 1);
        match decision {
            Decision::Dispatch(dispatch) => self.add_batch(at_ns, dispatch),
            Decision::Release(release) => self.moves.add(move_cause(&release.cause), 1),
            Decision::Admit(admit) => self.admitted.add(task_class(&admit.class), 1),
            Decision::Reject(reject) => {
                self.rejected.add(reject_reason(&reject.reason), 1);
                self.deadline_misses += u64::from(reject.reason == RejectReason::Expired);
            }
            Decision::Expire(_) => self.deadline_misses += 1,
            Decision::Shed(_) => self.shed += 1,
            Decision::Shadow(shadow) => {
                if let Some(tally) = self.shadows.get_mut(shadow.policy as usize) {
                    tally.choices.add(shadow_choice(&shadow_agrees(shadow)), 1);
                }
            }
            // Batches of a lost lane never complete.
            Decision::Fence(fence) => self.predicted.retain(|_, (lane, _)| *lane != fence.lane),
            _ => {}
        }
    }

    fn add_batch(&mut self, at_ns: i64, dispatch: &Dispatch) {
        self.batches.add(batch_reason(&dispatch.reason), 1);
        self.batch_waits.add((at_ns - dispatch.oldest_arrival_ns).max(0).unsigned_abs());
        // A lane that has not done anything yet has no prediction.
        if dispatch.telemetry.service_ps_per_row > 0 {
            self.predicted.insert(dispatch.batch, (dispatch.lane, dispatch.predicted_finish_ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_times_up_to_their_bound() {
        let mut times = TimeBuckets::default();
        for time_ns in [0, 1, 1_000, 1_001, 2_000, 2_001, 4_000_000, u64::MAX] {
            times.add(time_ns);
        }
        let held: Vec<_> = times.buckets().filter(|(_, count)| *count > 0).collect();
        assert_eq!(held, [(Some(1), 3), (Some(2), 2), (Some(4), 1), (Some(4096), 1), (None, 1)]);
        assert_eq!((times.count(), times.sum_ns()), (8, u64::MAX));
    }
}
