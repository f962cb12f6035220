//! Watch on the drift of a learner's errors: it decides when the learner loses trust, and when it regains it.
//!
//! ```text
//!            errors stay above their mean (Page 1954)
//!   trusted ──────────────────────────────────────────► fallen back: what was learnt is forgotten, and learnt anew beside the rule
//!      ▲                                                      │
//!      └────────── [`GOOD_WINDOWS`] windows in succession ────┘
//!                  in which the learner's mean error is no more than an eighth of a power of two above the rule's
//! ```
//!
//! All errors are absolute, in powers of two with 16 bits after the point. They are reported without a limit; only the
//! sum that detects a drift limits the weight of one completion. The module owns the judgement; it must not know what
//! is learnt.

use serde::{Deserialize, Serialize};

use super::model::ONE;
use crate::account::{Account, Comparison, Instead};
use crate::log2::milli;

/// Share by which a sample moves the mean error: 1/64.
const SMOOTHING: i64 = 64;
/// Number of samples before the mean is used.
const WARMUP: i64 = 64;
/// Errors within a quarter of a power of two of their mean do not count; one error counts for at most two powers above
/// that. A sum above eight powers is a drift.
const FREE: i64 = ONE / 4;
const ABOVE_MAX: i64 = 2 * ONE;
const DRIFT: i64 = 8 * ONE;
/// Most by which the learner's mean error may exceed the rule's in a good window: an eighth of a power of two.
const TOLERANCE: i64 = ONE / 8;
/// Number of samples in a window after a drift.
pub(crate) const WINDOW: i64 = 32;
/// Successive good windows after which the learner is trusted again.
pub(crate) const GOOD_WINDOWS: i64 = 3;

/// Trust in a learner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Watch {
    samples: i64,
    /// Mean of the errors so far; earlier errors count ever less.
    mean: i64,
    /// Page's sum: the excess of the errors over their mean.
    above: i64,
    /// State since the last drift; `None` while the learner is trusted.
    fallen: Option<Fallen>,
}

/// State since the last drift.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Fallen {
    good_windows: i64,
    /// Samples of the present window. Below: the sums of errors in it.
    samples: i64,
    learner: i64,
    rule: i64,
}

/// A change of trust, with the errors that led to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The errors have drifted: the last error, and the mean before it.
    FellBack { error: i64, mean: i64 },
    /// The last windows were good: the mean errors of the learner and of the rule in the last window.
    Returned { error: i64, rule: i64 },
}

impl Watch {
    pub(crate) fn is_trusted(&self) -> bool {
        self.fallen.is_none()
    }

    /// Adds the errors of the learner and the rule at one completion. Returns a verdict if trust changes.
    pub(crate) fn judge(&mut self, error: i64, rule: i64) -> Option<Verdict> {
        let [error, rule] = [error, rule].map(i64::abs);
        self.samples += 1;
        if let Some(fallen) = &mut self.fallen {
            fallen.samples += 1;
            (fallen.learner, fallen.rule) = (fallen.learner + error, fallen.rule + rule);
            if fallen.samples < WINDOW {
                return None;
            }
            let Fallen { learner, rule, .. } = *fallen;
            let good_windows = if learner <= rule + WINDOW * TOLERANCE { fallen.good_windows + 1 } else { 0 };
            *fallen = Fallen { good_windows, ..Fallen::default() };
            if good_windows < GOOD_WINDOWS {
                return None;
            }
            *self = Self { samples: WARMUP, mean: learner / WINDOW, ..Self::default() };
            return Some(Verdict::Returned { error: learner / WINDOW, rule: rule / WINDOW });
        }
        let Self { samples, mean, .. } = *self;
        self.above = self.above_with(error);
        // Until enough samples exist, the mean is their plain mean.
        self.mean += (error - mean) / samples.min(SMOOTHING);
        if self.above <= DRIFT {
            return None;
        }
        *self = Self { fallen: Some(Fallen::default()), ..Self::default() };
        Some(Verdict::FellBack { error, mean })
    }

    /// Page's sum plus one more error, which `samples` already counts.
    fn above_with(&self, error: i64) -> i64 {
        match self.samples > WARMUP {
            true => (self.above + (error - self.mean).min(ABOVE_MAX) - FREE).max(0),
            false => self.above,
        }
    }

    /// Figures for judging the errors of one more completion, in thousandths of a power of two.
    pub(super) fn account(&self, error: i64, rule: i64) -> Account {
        let [error, rule] = [error, rule].map(i64::abs);
        let mut account = Account::default();
        account.figure("error_of_this_completion_milli", milli(error));
        account.figure("error_of_rule_milli", milli(rule));
        if let Some(fallen) = self.fallen {
            let samples = fallen.samples + 1;
            let [learner, rule] =
                [fallen.learner + error, fallen.rule + rule].map(|sum| milli(sum / samples));
            account.held("mean_error_in_window_milli", learner, rule + milli(TOLERANCE));
            account.with(
                "mean_error_in_window_milli",
                Comparison::Above,
                rule + milli(TOLERANCE),
                Instead::Nothing,
            );
            account.figure("mean_error_of_rule_in_window_milli", rule);
            account.at_least("good_windows", fallen.good_windows + 1, GOOD_WINDOWS);
            account.figure("completions_in_window", samples);
            return account;
        }
        let counted = Self { samples: self.samples + 1, ..*self };
        account.held("errors_above_their_mean_milli", milli(counted.above_with(error)), milli(DRIFT));
        account.figure("errors_above_their_mean_before_milli", milli(self.above));
        account.figure("mean_error_milli", milli(self.mean));
        // The greatest error with which the sum stays within its limit.
        let allowed = self.mean + DRIFT + FREE - self.above;
        account.with("error_of_this_completion_milli", Comparison::AtMost, milli(allowed), Instead::Nothing);
        account
    }

    /// All numbers of the watch, for a hash.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = i64> + use<> {
        let Self { samples, mean, above, fallen } = *self;
        let after = fallen.map_or([-1; 4], |Fallen { good_windows, samples, learner, rule }| {
            [good_windows, samples, learner, rule]
        });
        [samples, mean, above].into_iter().chain(after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::task::draw;

    /// A pseudorandom error between 0 and twice this size, evenly distributed.
    fn error(number: i64, size: i64) -> i64 {
        draw("test/errors", 7, number, 0, 2 * size as usize) as i64
    }

    #[test]
    fn noise_is_no_drift_and_errors_that_grow_are() {
        let mut watch = Watch::default();
        for number in 0..10_000 {
            assert_eq!(watch.judge(error(number, ONE / 2), ONE), None, "{number}");
        }
        let after = (0..200).find(|number| watch.judge(error(*number, ONE / 2) + ONE, ONE).is_some());
        assert!((8..24).contains(&after.expect("one more power of two is a drift")), "{after:?}");
        assert!(!watch.is_trusted());
    }

    #[test]
    fn a_learner_that_is_no_worse_than_the_rule_for_three_windows_returns() {
        let mut watch = Watch::default();
        (0..100).for_each(|_| assert_eq!(watch.judge(0, 0), None));
        let fell = (0..10).find_map(|_| watch.judge(-9 * ONE, 0));
        // Each such error adds 1.75 powers of two at most: four of them add up to seven, and the fifth exceeds eight.
        let mean = (0..4).fold(0, |mean, _| mean + (9 * ONE - mean) / SMOOTHING);
        assert_eq!(fell, Some(Verdict::FellBack { error: 9 * ONE, mean }));
        assert!(mean > ONE / 2, "errors are not cut before they are in the mean");
        // Two good windows, a bad one, and three good ones.
        for (window, learner) in [1, 1, 3, 1, 1, 2].into_iter().enumerate() {
            for sample in 0..WINDOW {
                let verdict = watch.judge(learner * ONE / 4, ONE / 2);
                let is_last = (window, sample) == (5, WINDOW - 1);
                assert_eq!((verdict.is_some(), watch.is_trusted()), (is_last, is_last), "{window} {sample}");
                let returned = Verdict::Returned { error: ONE / 2, rule: ONE / 2 };
                assert!(verdict.is_none_or(|verdict| verdict == returned), "{verdict:?}");
            }
        }
        (0..1_000).for_each(|_| assert_eq!(watch.judge(ONE / 2, 0), None));
    }

    #[test]
    fn without_samples_there_is_no_judgement() {
        let mut watch = Watch::default();
        (0..WARMUP).for_each(|_| assert_eq!(watch.judge(2 * ONE, 0), None));
        assert!(watch.is_trusted());
    }

    /// Mean errors of windows distinguish even large errors.
    #[test]
    fn errors_of_windows_are_not_cut() {
        let mut watch = Watch::default();
        (0..100).for_each(|_| assert_eq!(watch.judge(0, 0), None));
        (0..5).for_each(|_| _ = watch.judge(4 * ONE, 4 * ONE));
        assert!(!watch.is_trusted());
        (0..9 * WINDOW).for_each(|_| assert_eq!(watch.judge(4 * ONE, 3 * ONE), None));
        let returned = (0..3 * WINDOW).find_map(|_| watch.judge(-3 * ONE, 4 * ONE));
        assert_eq!(returned, Some(Verdict::Returned { error: 3 * ONE, rule: 4 * ONE }));
    }
}
