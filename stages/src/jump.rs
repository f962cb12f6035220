//! Event times far ahead of all before: one record dated wrongly must not make everything after it late.
//!
//! ```text
//!   event time of records     ─── reference ──────┬──── future_max ────┐
//!                                                  │ accepted           │ refused: a dead letter
//!                                                                       └─ the 8th such record of a jump: accepted,
//!                                                                          and the reference moves on
//!
//!   of a record that was      ─── reference ── written ──┬─ clock_skew_max ─┐
//!   written after that                                   │ accepted         │ refused likewise
//! ```
//!
//! The *reference* is the greatest event time of the partition's accepted ticks; before the first it is the time at which the
//! record was written to the log, where the log has one. A record is refused whole if one of its ticks is further ahead
//!
//! - than `future_max_ns`, of the reference and of the ticks before it in the record; or
//! - than `clock_skew_max_ns` of the time at which the record was written: what a venue dates later than that has not happened yet. `future_max_ns` has to be longer than a market is closed, which recordings are full of; in a live feed ticks are
//!   written when they have happened, after a closed market too, and so this one may be short.
//!
//! Data may be dated in the future on purpose, such as those of a simulated market. So when a record was written says nothing where
//! the reference itself is that far ahead of it: there only `future_max_ns` counts.
//!
//! Refused records that follow each other are counted as long as their times lie within `future_max_ns` of each other: that is a
//! *jump*, such as after a closed market, between two recordings or into the future, and its [`JUMP_RECORDS`]th record is accepted. A
//! record of another time takes one away, so that of several jumps at once the one with most records wins; a record that is
//! accepted and not all late ends it. So an honest gap costs seven records a partition, which are dead letters, and a source that
//! dates a few records wrongly moves nothing.

use warptape_events::{InvalidTick, TickProblem};

use crate::bytes::{get_i64, get_u32, put_i64, put_u32};
use crate::{StageConfig, StageError};

/// Records of a jump that are needed to follow it.
const JUMP_RECORDS: u32 = 8;

/// How far ahead the ticks of a record may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AheadLimits {
    /// What the first tick is compared with.
    reference_ns: i64,
    future_max_ns: i64,
    /// `None` where it does not matter when the record was written.
    written: Option<Written>,
}

/// When a record was written, and how far ahead of that its ticks may be.
#[derive(Clone, Copy, Debug)]
struct Written {
    written_ns: i64,
    clock_skew_max_ns: i64,
}

impl Written {
    /// The latest time that is not too far ahead. Ticks before do not move it, so that many small steps lead no further.
    fn latest_ns(&self) -> i64 {
        self.written_ns.saturating_add(self.clock_skew_max_ns)
    }
}

impl AheadLimits {
    /// The limits of a record that was written at `written_ns`, 0 where that is not known, after ticks up to
    /// `event_time_max_ns`. `None` if there are none.
    pub(crate) fn of(config: &StageConfig, event_time_max_ns: Option<i64>, written_ns: i64) -> Option<Self> {
        let written_ns = Some(written_ns).filter(|written_ns| *written_ns > 0);
        let reference_ns = event_time_max_ns.or(written_ns)?;
        let written = written_ns
            .zip(config.clock_skew_max_ns)
            .map(|(written_ns, clock_skew_max_ns)| Written { written_ns, clock_skew_max_ns })
            .filter(|written| reference_ns <= written.latest_ns());
        Some(Self { reference_ns, future_max_ns: config.future_max_ns?, written })
    }

    /// How far ahead of the reference a tick may be.
    pub(crate) fn future_max_ns(&self) -> i64 {
        self.future_max_ns
    }

    /// Whether a tick is too far ahead.
    pub(crate) fn is_ahead(&self, time_ns: i64) -> bool {
        time_ns > self.latest_ns(self.reference_ns)
    }

    /// True if it is too far ahead of the time when its record was written, where that matters.
    pub(crate) fn is_ahead_of_writing(&self, time_ns: i64) -> bool {
        self.written.is_some_and(|written| time_ns > written.latest_ns())
    }

    /// The problem of a tick that is too far ahead.
    pub(crate) fn problem_of(&self, time_ns: i64) -> TickProblem {
        self.problem(time_ns, self.reference_ns)
    }

    /// The latest time that is not too far ahead, after ticks up to `reference_ns`.
    fn latest_ns(&self, reference_ns: i64) -> i64 {
        let latest_ns = reference_ns.saturating_add(self.future_max_ns);
        self.written.map_or(latest_ns, |written| written.latest_ns().min(latest_ns))
    }

    /// The first tick that is too far ahead of the reference and of the ticks before it, and the greatest of these times.
    fn first_ahead(&self, times_ns: &[i64]) -> Option<(usize, i64)> {
        let mut reference_ns = self.reference_ns;
        for (row, &time_ns) in times_ns.iter().enumerate() {
            if time_ns > self.latest_ns(reference_ns) {
                return Some((row, reference_ns));
            }
            reference_ns = reference_ns.max(time_ns);
        }
        None
    }

    /// What is wrong with a tick that is too far ahead, after ticks up to `before_ns`.
    fn problem(&self, time_ns: i64, before_ns: i64) -> TickProblem {
        let &Self { reference_ns, future_max_ns, written } = self;
        match written {
            Some(Written { written_ns, clock_skew_max_ns })
                if time_ns <= before_ns.saturating_add(future_max_ns) =>
            {
                TickProblem::AheadOfWriting { time_ns, written_ns, clock_skew_max_ns }
            }
            _ => TickProblem::TooFarAhead { time_ns, reference_ns, future_max_ns },
        }
    }
}

/// A jump that may be under way in a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Jump {
    /// Event time of its last record's first tick that was too far ahead.
    time_ns: i64,
    /// Its records so far; 0 where there is none.
    records: u32,
}

impl Jump {
    /// Judges the ticks of a record by their times: an error if it is refused.
    pub(crate) fn judge(
        &mut self,
        times_ns: &[i64],
        limits: &AheadLimits,
        watermark_ns: i64,
    ) -> Result<(), InvalidTick> {
        // Most records are not ahead at all, and then their order does not matter.
        let max_ns = times_ns.iter().copied().fold(i64::MIN, i64::max);
        let is_ahead = max_ns > limits.latest_ns(limits.reference_ns);
        let Some((row, before_ns)) = is_ahead.then(|| limits.first_ahead(times_ns)).flatten() else {
            if max_ns >= watermark_ns {
                *self = Self::default();
            }
            return Ok(());
        };
        let time_ns = times_ns[row];
        self.count(time_ns, limits.future_max_ns);
        // Behind the jump, the ticks of a jump into the future may be as far from each other as others.
        let behind = AheadLimits { reference_ns: time_ns, written: None, ..*limits };
        if self.records >= JUMP_RECORDS && behind.first_ahead(&times_ns[row..]).is_none() {
            *self = Self::default();
            return Ok(());
        }
        Err(InvalidTick { row, field: "event_time_ns", problem: limits.problem(time_ns, before_ns) })
    }

    /// Counts a record that is too far ahead.
    fn count(&mut self, time_ns: i64, future_max_ns: i64) {
        if self.records == 0 || self.time_ns.abs_diff(time_ns) <= future_max_ns.unsigned_abs() {
            *self = Self { time_ns, records: self.records.saturating_add(1) };
        } else if self.records == 1 {
            *self = Self { time_ns, records: 1 };
        } else {
            self.records -= 1;
        }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_i64(out, self.time_ns);
        put_u32(out, self.records);
    }

    pub(crate) fn read(bytes: &mut &[u8]) -> Result<Self, StageError> {
        Ok(Self { time_ns: get_i64(bytes, "time of a jump")?, records: get_u32(bytes, "records of a jump")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: i64 = 100;
    const SKEW: i64 = 5;

    fn config() -> StageConfig {
        let config = r#"{"bars": ["1s"], "allowed_lateness_ns": 0, "groups_per_partition": 2, "indicators": {}, "signals": {}}"#;
        let config = StageConfig::from_json(config).expect("a configuration");
        StageConfig { future_max_ns: Some(MAX), clock_skew_max_ns: Some(SKEW), ..config }
    }

    /// Judges records one after the other, each with the time at which it was written, and moves the reference as the intake does:
    /// which are accepted.
    fn accepted_of<'a>(records: impl IntoIterator<Item = (i64, &'a [i64])>) -> Vec<bool> {
        let (mut jump, mut reference_ns, config) = (Jump::default(), 1_000, config());
        let judge = |(written_ns, times_ns): (i64, &[i64])| {
            let limits = AheadLimits::of(&config, Some(reference_ns), written_ns).expect("there are limits");
            let is_accepted = jump.judge(times_ns, &limits, reference_ns - 10).is_ok();
            if is_accepted {
                times_ns.iter().for_each(|time_ns| reference_ns = reference_ns.max(*time_ns));
            }
            is_accepted
        };
        records.into_iter().map(judge).collect()
    }

    /// The same of records of which nobody knows when they were written.
    fn accepted(records: &[&[i64]]) -> Vec<bool> {
        accepted_of(records.iter().map(|times_ns| (0, *times_ns)))
    }

    #[test]
    fn one_record_far_ahead_moves_nothing() {
        let found = accepted(&[
            &[1_100],
            &[1_201],
            &[9_999, 9_999, 9_999],
            &[1_200, 1_300],
            &[1_300, 1_401],
            &[1_301],
        ]);
        assert_eq!(found, [true, false, false, true, false, true]);
        let far: Vec<&[i64]> =
            (0..40).map(|number| if number % 4 == 3 { &[1_001][..] } else { &[5_000] }).collect();
        let expected: Vec<bool> = (0..40).map(|number| number % 4 == 3).collect();
        assert_eq!(accepted(&far), expected, "never so many in a row");
    }

    #[test]
    fn the_eighth_record_in_a_row_is_followed() {
        let gap: Vec<[i64; 2]> = (0..10).map(|number| [5_000 + number, 5_050 + number]).collect();
        let mut records: Vec<&[i64]> = gap.iter().map(|times_ns| &times_ns[..]).collect();
        let refused = |count: usize| move |number| number >= count;
        assert_eq!(accepted(&records), (0..10).map(refused(7)).collect::<Vec<_>>());
        // Records that are late already neither belong to a jump nor end it.
        records.insert(3, &[900]);
        assert_eq!(accepted(&records).iter().filter(|is_accepted| !**is_accepted).count(), 7);
        // One of another time takes one away, as often as it comes, and is never followed itself.
        records[3] = &[99_999];
        records.insert(3, &[99_999]);
        let expected = (0..12).map(refused(11)).collect::<Vec<_>>();
        assert_eq!(accepted(&records), expected);
    }

    #[test]
    fn a_jump_to_the_end_of_time_overflows_nothing() {
        let last = [i64::MAX - 1; 2];
        let records: Vec<&[i64]> = vec![&last; 9];
        assert_eq!(accepted(&records)[6..], [false, true, true]);
    }

    #[test]
    fn a_tick_is_not_ahead_of_when_it_was_written() {
        // Live: the clocks of the venue and of the producer may differ, and the market was closed.
        let records: [(i64, &[i64]); 9] = [
            (1_010, &[1_015]),
            (1_020, &[1_020, 1_026]),
            (1_020, &[1_025, 1_030]),
            (1_095, &[1_090]),
            (1_095, &[1_101]),
            (1_095, &[1_190]),
            (1_095, &[1_191]),
            (2_000, &[1_191]),
            (1_100, &[1_105]),
        ];
        assert_eq!(accepted_of(records), [true, false, false, true, false, false, false, false, true]);
        // A recording is written long after its ticks: only gaps in it count.
        let records: [(i64, &[i64]); 3] = [(9_999, &[1_100]), (9_999, &[1_200]), (9_999, &[1_301])];
        assert_eq!(accepted_of(records), [true, true, false]);
        // Nor do small steps lead away from when records were written.
        let records: [(i64, &[i64]); 4] =
            [(1_000, &[1_005]), (1_001, &[1_010]), (1_001, &[1_006]), (1_001, &[1_007])];
        assert_eq!(accepted_of(records), [true, false, true, false]);
    }

    #[test]
    fn who_is_ahead_is_told_of_which_limit() {
        let problem = |reference_ns, written_ns, times_ns: &[i64]| {
            let limits = AheadLimits::of(&config(), reference_ns, written_ns).expect("there are limits");
            Jump::default().judge(times_ns, &limits, 0).expect_err("it is too far ahead").problem
        };
        let of_writing = |time_ns, written_ns| TickProblem::AheadOfWriting {
            time_ns,
            written_ns,
            clock_skew_max_ns: SKEW,
        };
        let of_reference =
            |time_ns, reference_ns| TickProblem::TooFarAhead { time_ns, reference_ns, future_max_ns: MAX };
        assert_eq!(problem(Some(1_000), 1_010, &[1_016]), of_writing(1_016, 1_010));
        assert_eq!(problem(Some(1_000), 1_010, &[1_012, 1_110]), of_writing(1_110, 1_010));
        assert_eq!(problem(Some(1_000), 1_010, &[1_101]), of_reference(1_101, 1_000));
        assert_eq!(problem(None, 1_010, &[1_016]), of_writing(1_016, 1_010));
        assert_eq!(problem(None, 1_010, &[1_111]), of_reference(1_111, 1_010));
        assert!(AheadLimits::of(&config(), None, 0).is_none(), "nothing to compare with");
        assert!(AheadLimits::of(&StageConfig { future_max_ns: None, ..config() }, Some(1), 1).is_none());
    }

    #[test]
    fn a_market_dated_in_the_future_is_followed_and_then_taken_as_it_is() {
        // Each tick is further from the one before than clocks may differ, and within the reach of the reference while it is refused.
        let times: Vec<[i64; 2]> = (0..12).map(|number| [1_050 + 6 * number, 1_056 + 6 * number]).collect();
        let records = times.iter().map(|times_ns| (1_000, &times_ns[..]));
        assert_eq!(accepted_of(records), (0..12).map(|number| number >= 7).collect::<Vec<_>>());
        // Good records between them: no jump, and nothing moves.
        let record = |number: i64| (1_000, if number % 8 == 7 { &[1_001][..] } else { &[1_050] });
        let records = (0..40).map(record);
        assert_eq!(accepted_of(records), (0..40).map(|number| number % 8 == 7).collect::<Vec<_>>());
    }
}
