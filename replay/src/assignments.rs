//! Compares the offsets at which processes took over partitions with those at which transactions ended: a process may
//! only continue from such an end.

use std::collections::{BTreeMap, BTreeSet};

use warptape_schemas::journal::{Input, JournalEntry, PartitionAssigned};

use crate::JournalDivergence;
use crate::accounts::Accounts;
use crate::cut::Cut;
use crate::difference::Difference;

/// All assignments of a log.
#[derive(Default)]
pub(crate) struct Assignments {
    /// First assignment for each pair of partition and committed offset.
    all: BTreeMap<(i32, i64), Assignment>,
    /// Partitions of the journal that have entries.
    journals: BTreeSet<i32>,
    /// The first assignment that is wrong if no other process has written entries.
    alone: Option<JournalDivergence>,
}

/// An assignment and its journal entry.
struct Assignment {
    journal: i32,
    offset: i64,
    sequence: i64,
    at_ns: i64,
    assigned: PartitionAssigned,
}

impl Assignments {
    /// Adds the next entry, at an offset of the journal's partition. `alone` is the entry's divergence if no other
    /// process has written entries.
    pub(crate) fn add(
        &mut self,
        journal: i32,
        offset: i64,
        entry: &JournalEntry,
        alone: Option<JournalDivergence>,
    ) {
        self.journals.insert(journal);
        self.alone = self.alone.take().or(alone);
        if let Input::PartitionAssigned(assigned) = &entry.input {
            let &JournalEntry { sequence, at_ns, .. } = entry;
            let assignment = Assignment { journal, offset, sequence, at_ns, assigned: assigned.clone() };
            let key = (assigned.partition, assigned.committed_offset);
            self.all.entry(key).or_insert(assignment);
        }
    }

    /// Returns the first assignment that starts at an offset that no transaction committed.
    pub(crate) fn check(&self, topic: &str, accounts: &Accounts, cut: &Cut) -> Option<JournalDivergence> {
        if self.journals.len() == 1 && self.alone.is_some() {
            return self.alone.clone();
        }
        let mut ends: Option<(i32, Option<BTreeSet<i64>>)> = None;
        for (&(partition, offset), assignment) in &self.all {
            let (_, ends) = match ends.take_if(|(of, _)| *of == partition) {
                Some(same) => ends.insert(same),
                None => {
                    let committed = cut.committed.get(partition as usize).copied().flatten();
                    ends.insert((partition, accounts.ends(partition, committed.unwrap_or(0))))
                }
            };
            if let Some(ends) = ends
                && !ends.contains(&offset)
            {
                let expected = ends.range(..offset).next_back().or(ends.first()).copied().unwrap_or(0);
                return Some(assignment.divergence(topic, expected));
            }
        }
        None
    }
}

impl Assignment {
    fn divergence(&self, topic: &str, expected: i64) -> JournalDivergence {
        let field = "input.PartitionAssigned.committed_offset";
        JournalDivergence {
            topic: topic.to_owned(),
            partition: self.journal,
            offset: self.offset,
            sequence: self.sequence,
            software: None,
            at_ns: Some(self.at_ns),
            input: serde_json::to_value(Input::PartitionAssigned(self.assigned.clone())).ok(),
            differences: vec![Difference::new(field, expected, self.assigned.committed_offset)],
        }
    }
}
