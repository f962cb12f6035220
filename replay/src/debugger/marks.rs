//! Saved states of the scheduler, for stepping backwards.
//!
//! ```text
//!   entries   0 ───────────────── 4096 ─────── 6144 ──── 7168 ─ 7680 ─ 7936 ► position
//!   marks     ▲                    ▲            ▲         ▲      ▲      ▲
//! ```
//!
//! Marks are dense near the position and sparser farther away. So a short way back takes few steps, and a long way
//! takes a small fraction of its length. The number of marks is bounded for any length of the journal.

use std::sync::Arc;

use warptape_scheduler::Scheduler;
use warptape_schemas::journal::Started;

/// Distance, in offsets, between a mark and the next one made after it.
pub(super) const MARK_OFFSETS: i64 = 256;
/// Greatest number of marks kept. A state has some kilobytes, or some megabytes if many risk tasks wait.
const MARKS_MAX: usize = 48;

/// The scheduler's state before an entry.
#[derive(Clone)]
pub(super) struct Mark {
    /// Offset of the entry.
    pub(super) offset: i64,
    /// Offset of the previous entry; `None` if it is unknown.
    pub(super) previous: Option<i64>,
    /// Sequence that the entry must have; `None` if the previous entry is unknown.
    pub(super) sequence: Option<i64>,
    /// The state.
    pub(super) state: Scheduler,
    /// Start of the process that wrote the entry.
    pub(super) started: Option<Arc<Started>>,
}

/// The marks, by offset.
#[derive(Default)]
pub(super) struct Marks(Vec<Mark>);

impl Marks {
    /// Returns the last mark before an offset; `None` if there is none.
    pub(super) fn before(&self, offset: i64) -> Option<&Mark> {
        self.0[..self.0.partition_point(|mark| mark.offset < offset)].last()
    }

    /// True if a mark at an offset is worth the copy of a state.
    pub(super) fn wants(&self, offset: i64) -> bool {
        self.before(offset + 1).is_none_or(|mark| offset - mark.offset >= MARK_OFFSETS)
    }

    /// Stores a mark. If there are too many, drops the one whose neighbours are closest to each other, relative to its
    /// distance from `position`. The first and the last mark stay.
    pub(super) fn keep(&mut self, new: Mark, position: i64) {
        let at = self.0.partition_point(|mark| mark.offset < new.offset);
        match self.0.get_mut(at) {
            Some(same) if same.offset == new.offset => *same = new,
            _ => self.0.insert(at, new),
        }
        if self.0.len() <= MARKS_MAX {
            return;
        }
        let cost = |at: &usize| {
            let gap = i128::from(self.0[at + 1].offset) - i128::from(self.0[at - 1].offset);
            let away = (i128::from(self.0[*at].offset) - i128::from(position)).abs();
            // Uses integers, because floats would lose offsets: the gap relative to the distance, in units of 2^-20.
            (gap << 20) / (away + i128::from(MARK_OFFSETS))
        };
        if let Some(least) = (1..self.0.len() - 1).min_by_key(cost) {
            self.0.remove(least);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(offset: i64) -> Mark {
        Mark { offset, previous: None, sequence: None, state: Scheduler::new(), started: None }
    }

    #[test]
    fn marks_are_few_and_close_to_the_position() {
        let mut marks = Marks::default();
        let end = 10_000_000;
        for offset in 0..end {
            if marks.wants(offset) {
                marks.keep(mark(offset), offset);
            }
        }
        let offsets: Vec<i64> = marks.0.iter().map(|mark| mark.offset).collect();
        assert_eq!((offsets.len(), offsets[0]), (MARKS_MAX, 0));
        for back in [1, 100, 1_000, 10_000, 100_000, 1_000_000, 5_000_000] {
            let way = end - back - marks.before(end - back).expect("the first").offset;
            assert!(way <= back / 2 + 2 * MARK_OFFSETS, "{way} steps to go {back} back: {offsets:?}");
        }
    }
}
