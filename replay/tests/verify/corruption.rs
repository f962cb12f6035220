//! Corruptions of a record of a partition.

use warptape_eventlog::Record;

/// A corruption of a record of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Corruption {
    Flipped,
    TailCut,
    HeadCut,
    Emptied,
    Removed,
    Duplicated,
    Swapped,
}

use Corruption::*;

/// All kinds of corruption.
pub const ALL: [Corruption; 7] = [Flipped, TailCut, HeadCut, Emptied, Removed, Duplicated, Swapped];

/// Corrupts a record with numbers that `below` draws. Returns false if this changes nothing.
pub fn corrupt(
    records: &mut Vec<Record>,
    at: usize,
    corruption: Corruption,
    below: &mut dyn FnMut(u64) -> u64,
) -> bool {
    let length = records[at].value.len();
    match corruption {
        Flipped => records[at].value[below(length as u64) as usize] ^= below(255) as u8 + 1,
        TailCut => records[at].value.truncate(below(length as u64) as usize),
        HeadCut => drop(records[at].value.drain(..=below(length as u64 - 1) as usize)),
        Emptied => records[at].value.clear(),
        Removed => drop(records.remove(at)),
        Duplicated => {
            let copy = records[at].clone();
            records.insert(at + 1, copy);
            records[at + 1..].iter_mut().for_each(|record| record.offset += 1);
        }
        Swapped => {
            let Some([one, other]) = records.get_mut(at..at + 2) else { return false };
            if (&one.key, &one.value) == (&other.key, &other.value) {
                return false;
            }
            std::mem::swap(&mut one.value, &mut other.value);
            std::mem::swap(&mut one.key, &mut other.key);
        }
    }
    true
}
