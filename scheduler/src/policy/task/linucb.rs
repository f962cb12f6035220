//! LinUCB on the residual of a rule. The rule is earliest completion at the prices of the capacity problem; the learnt
//! residual corrects it.
//!
//! ```text
//!   score      = rule + correction                                      the least wins
//!   rule       = log₂(backlog of the lane + time of the task × factor)
//!   factor     = best worth of the lane's time / its worth on the task's kind
//!   correction = θᵀx − uncertainty / 4
//!   θᵀx        = expectation of log₂(actual time / (backlog + time of the task)) for the features x
//! ```
//!
//! A lane's time is worth most on the kind of tasks with the greatest ratio of price to the lane's time for a unit
//! (`lp_price`). A task of another kind counts as longer, by the ratio of the two worths. Without prices no lane's time
//! is worth more on another kind, and the rule is `earliest_completion`.
//!
//! The uncertainty is from 0 to 1. It is 1 for all lanes while nothing is learnt, so that the rule alone decides. The
//! rule also decides alone while the learner is not trusted, because its errors have drifted. Features are integers
//! with 10 bits after the point (`risk::bandit`):
//!
//! - 1
//! - the recent slowness of the lane compared with its class
//! - the waiting time as a part of the predicted time
//! - the number of earlier tasks on the lane, as a part of 16
//! - the logarithm of the task's time relative to a millisecond
//! - the lack of urgency of the task

use warptape_events::journal::{LaneId, TaskClass};

use super::LaneView;
use crate::log2::{FRACTION_BITS, exp2, log2_16};
use crate::risk::bandit::{FEATURE_ONE, FEATURES, Features, Model, ONE, RESIDUAL_MAX};

/// Version of the rule, which rises whenever the same inputs could give another decision.
pub(super) const VERSION: i32 = 3;

/// Divisor of the uncertainty. An unknown lane may be better than expected by a quarter of a power of two, which is
/// about the spread of a residual.
const UNCERTAINTY: i64 = 4;
/// Greatest number of earlier tasks that the feature distinguishes.
const TASKS_MAX: i64 = 16;
/// Logarithm of a millisecond in nanoseconds, with 16 bits after the point. Below: the greatest difference of a time's
/// logarithm from it, in powers of two.
const MILLISECOND: i64 = 20 << 16;
const POWERS_MAX: i64 = 16 << 16;

/// Logarithm of the rule's prediction, with 16 bits after the point.
pub(crate) fn predicted(view: &LaneView) -> i64 {
    log2_16(done_ns(view))
}

fn done_ns(view: &LaneView) -> i64 {
    view.backlog_ns.saturating_add(view.task_ns)
}

/// Time until the task would be done if its own time were multiplied by the factor.
fn priced_ns(view: &LaneView) -> i64 {
    let forgone = view.forgone.unwrap_or(0) as u64;
    let factor = i128::from(exp2((16 << FRACTION_BITS) + (forgone << (FRACTION_BITS - 16))));
    let task_ns = (i128::from(view.task_ns) * factor) >> 16;
    view.backlog_ns.saturating_add(task_ns.try_into().unwrap_or(i64::MAX))
}

/// Features of a lane for a task of a class, given the lane's slowness in powers of two.
pub(crate) fn features(view: &LaneView, slowness: i64, class: TaskClass) -> Features {
    let of = |value: i64, most: i64| (value.clamp(-most, most) * FEATURE_ONE / most) as i16;
    let waiting = i128::from(view.backlog_ns) * i128::from(FEATURE_ONE) / i128::from(done_ns(view).max(1));
    let features: [i16; FEATURES] = [
        FEATURE_ONE as i16,
        of(slowness, RESIDUAL_MAX),
        waiting as i16,
        of(view.tasks, TASKS_MAX),
        of(log2_16(view.task_ns) - MILLISECOND, POWERS_MAX),
        of(class as i64, TaskClass::Batch as i64),
    ];
    features
}

/// The lane for a task of a class; without a model, the rule decides alone.
pub(crate) fn choose(
    lanes: &[LaneView],
    class: TaskClass,
    slowness: impl Fn(LaneId) -> i64,
    model: Option<&Model>,
) -> LaneId {
    let score = |view: &&LaneView| {
        let priced_ns = priced_ns(view);
        let corrected = model.map(|model| log2_16(priced_ns) + correction(view, class, &slowness, model));
        // Logarithms are rounded, so the exact time decides ties.
        (corrected, priced_ns, view.tasks)
    };
    lanes.iter().min_by_key(score).expect("the caller has a lane").lane
}

/// Correction of the logarithm of the rule's time on a lane, with 16 bits after the point.
pub(crate) fn correction(
    view: &LaneView,
    class: TaskClass,
    slowness: impl Fn(LaneId) -> i64,
    model: &Model,
) -> i64 {
    if !view.is_known {
        // Nothing is known of such tasks here: there is no correction, and the uncertainty is greatest.
        return -ONE / UNCERTAINTY;
    }
    let features = features(view, slowness(view.lane), class);
    model.predict(&features) - model.uncertainty(&features) / UNCERTAINTY
}

#[cfg(test)]
mod tests {
    use super::super::tests::views;
    use super::*;

    #[test]
    fn without_experience_it_is_the_rule() {
        let lanes = views(&[(1, 50, 10, 1, 0), (3, 20, 45, 1, 0), (1, 55, 5, 1, 0)]);
        for model in [None, Some(&Model::default())] {
            assert_eq!(choose(&lanes[..2], TaskClass::Batch, |_| 0, model), 0);
        }
        // Lanes whose difference is below the precision of logarithms, and a lane of which nothing is known.
        let close = views(&[(0, 1 << 40, 2, 1, 0), (9, 1 << 40, 1, 1, 0), (0, 0, 0, 1, 0)]);
        for model in [None, Some(&Model::default())] {
            assert_eq!(choose(&close[..2], TaskClass::Batch, |_| 0, model), 1);
            assert_eq!(choose(&close, TaskClass::Batch, |_| 0, model), 2);
        }
        let unknown = views(&[(1, 0, 0, 1, 0), (0, 0, 0, 1, 0)]);
        assert_eq!(choose(&unknown, TaskClass::Batch, |_| 0, Some(&Model::default())), 1);
    }

    /// A task counts twice on a lane whose time is worth twice as much on another kind. The waiting work before it
    /// counts once.
    #[test]
    fn what_a_lane_forgoes_counts_as_time_of_the_task() {
        let mut lanes = views(&[(1, 400 << 20, 100 << 20, 1, 0), (1, 500 << 20, 100 << 20, 1, 0)]);
        let of = |lanes: &[LaneView]| {
            [None, Some(&Model::default())].map(|model| choose(lanes, TaskClass::Batch, |_| 0, model))
        };
        for (forgone, expected) in [(0, 0), (ONE - 100, 0), (ONE + 100, 1), (4 * ONE, 1)] {
            lanes[0].forgone = Some(forgone);
            assert_eq!(of(&lanes), [expected; 2], "{forgone}");
        }
        assert_eq!(priced_ns(&lanes[0]), (400 + 16 * 100) << 20);
        lanes[0].forgone = Some(ONE);
        assert_eq!(priced_ns(&lanes[0]), (400 + 2 * 100) << 20);
        lanes[0].task_ns = i64::MAX;
        assert_eq!(priced_ns(&lanes[0]), i64::MAX);
    }

    /// A lane with much work has larger features, which is no reason to prefer it.
    #[test]
    fn without_experience_a_busy_lane_that_is_later_is_not_preferred() {
        // An idle lane, and one with sixteen small tasks that finishes 5 % later.
        let lanes = views(&[(0, 0, 1_000_000, 1, 0), (16, 950_000, 100_000, 1, 0)]);
        for model in [None, Some(&Model::default())] {
            let class_of = |class| choose(&lanes, class, |_| 0, model);
            let classes = [TaskClass::Critical, TaskClass::Interactive, TaskClass::Batch];
            assert_eq!(classes.map(class_of), [0; 3]);
        }
        let mut learnt = Model::default();
        // The busy lane is still unknown after that, which may be a reason to try it.
        (0..64).for_each(|_| learnt.learn(&features(&lanes[0], 0, TaskClass::Batch), 0));
        assert_eq!(choose(&lanes, TaskClass::Batch, |_| 0, Some(&learnt)), 1);
    }

    #[test]
    fn features_are_between_minus_one_and_one() {
        let extremes = [0, 1, 1 << 20, i64::MAX / 2];
        for (backlog_ns, task_ns, tasks) in
            extremes.iter().flat_map(|one| extremes.map(|other| (*one, other, other)))
        {
            let lanes = views(&[(tasks, backlog_ns, task_ns, 1, 0)]);
            for slowness in [i64::MIN, 0, i64::MAX] {
                let found = features(&lanes[0], slowness, TaskClass::Batch);
                assert!(found.iter().all(|feature| feature.abs() <= 1_024), "{found:?}");
            }
        }
        let known = features(&views(&[(4, 3 << 20, 1 << 20, 1, 0)])[0], 1 << 16, TaskClass::Interactive);
        assert_eq!(known, [1_024, 256, 768, 256, 0, 512]);
    }
}
