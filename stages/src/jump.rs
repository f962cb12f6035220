//! Event times far ahead of all before: one record dated wrongly must not make everything after it late.
//!
//! ```text
//!   event time of records     ─── reference ──────┬──── future_max ────┐
//!                                                  │ accepted           │ refused: a dead letter
//!                                                                       └─ the 8th such record of a jump: accepted,
//!                                                                          and the reference moves on
//! ```
//!
//! The *reference* is the greatest event time of the partition's accepted ticks; before the first it is the time at which the
//! record was written to the log, where the log has one. A record is refused whole if one of its ticks is further ahead than
//! `future_max_ns`, of the reference and of the ticks before it in the record.
//!
//! Refused records that follow each other are counted as long as their times lie within `future_max_ns` of each other: that is a
//! *jump*, such as after a closed market or between two recordings, and its [`JUMP_RECORDS`]th record is accepted. A record of
//! another time takes one away, so that of several jumps at once the one with most records wins; a record that is
//! accepted and not all late ends it. So an honest gap costs seven records a partition, which are dead letters, and a source that
//! dates a few records wrongly moves nothing.

use warptape_schemas::{InvalidTick, TickProblem};

use crate::StageError;
use crate::bytes::{get_i64, get_u32, put_i64, put_u32};

/// Records of a jump that are needed to follow it.
const JUMP_RECORDS: u32 = 8;

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
        reference_ns: i64,
        future_max_ns: i64,
        watermark_ns: i64,
    ) -> Result<(), InvalidTick> {
        let limit_ns = reference_ns.saturating_add(future_max_ns);
        // Most records are not ahead at all, and then their order does not matter.
        let max_ns = times_ns.iter().copied().fold(i64::MIN, i64::max);
        let row = if max_ns <= limit_ns { None } else { first_ahead(times_ns, reference_ns, future_max_ns) };
        let Some(row) = row else {
            if max_ns >= watermark_ns {
                *self = Self::default();
            }
            return Ok(());
        };
        let time_ns = times_ns[row];
        self.count(time_ns, future_max_ns);
        if self.records >= JUMP_RECORDS && first_ahead(&times_ns[row..], time_ns, future_max_ns).is_none() {
            *self = Self::default();
            return Ok(());
        }
        let problem = TickProblem::TooFarAhead { time_ns, reference_ns, future_max_ns };
        Err(InvalidTick { row, field: "event_time_ns", problem })
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

/// The first tick that is too far ahead of the reference and of the ticks before it.
fn first_ahead(times_ns: &[i64], mut reference_ns: i64, future_max_ns: i64) -> Option<usize> {
    times_ns.iter().position(|&time_ns| {
        let is_ahead = time_ns > reference_ns.saturating_add(future_max_ns);
        reference_ns = reference_ns.max(time_ns);
        is_ahead
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: i64 = 100;

    /// Judges records one after the other, and moves the reference as the intake does: which are accepted.
    fn accepted(records: &[&[i64]]) -> Vec<bool> {
        let (mut jump, mut reference_ns) = (Jump::default(), 1_000);
        let judge = |times_ns: &&[i64]| {
            let is_accepted = jump.judge(times_ns, reference_ns, MAX, reference_ns - 10).is_ok();
            if is_accepted {
                times_ns.iter().for_each(|time_ns| reference_ns = reference_ns.max(*time_ns));
            }
            is_accepted
        };
        records.iter().map(judge).collect()
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
        // What is late already says nothing about the jump.
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
}
