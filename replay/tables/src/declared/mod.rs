//! The only declaration of the tables.

mod journal;
mod outputs;
mod ticks;

pub(crate) use self::journal::{BATCHES, COMMITS, DECISIONS, LATENCIES, TASKS};
pub(crate) use self::outputs::{FURTHER_COUNT, SIGNALS};
pub(crate) use self::ticks::{DEAD_LETTERS, LATE, TICKS};

use crate::table::Column;

/// Joins several lists of columns.
const fn joined<const N: usize>(lists: &[&[Column]]) -> [Column; N] {
    let mut all = [lists[0][0]; N];
    let (mut list, mut count) = (0, 0);
    while list < lists.len() {
        let mut index = 0;
        while index < lists[list].len() {
            all[count] = lists[list][index];
            (index, count) = (index + 1, count + 1);
        }
        list += 1;
    }
    assert!(count == N, "the lists have as many columns as the table");
    all
}
