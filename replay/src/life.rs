//! Compares a process's entries with its earlier ones, in fields that the scheduler does not read, so that stepping
//! cannot find faults in them.

mod commits;

use std::collections::BTreeMap;

use serde_json::Value;
use warptape_eventlog::Record;
use warptape_schemas::journal::{
    Checkpoint, Input, JournalEntry, PartitionAssigned, Sealed, SealedPartition, Started, TaskArrived, TaskId,
};
use warptape_stages::StageConfig;

use self::commits::CommitCheck;
use crate::difference::{Difference, differences};

const COMMITTED_OFFSET: &str = "input.PartitionAssigned.committed_offset";

/// Compares the entries of one journal partition, in order.
#[derive(Default)]
pub(crate) struct LifeCheck {
    /// Start of the life; `None` before it is known.
    started: Option<Box<Started>>,
    /// Key of the life's first record.
    key: Option<Vec<u8>>,
    /// Number of symbol groups per partition in the life's configuration.
    groups: Option<i32>,
    /// Partitions of this life, with the position up to which each is sealed.
    sealed: BTreeMap<i32, Position>,
    /// Positions up to which partitions are sealed, over all lives so far.
    journal: BTreeMap<i32, Position>,
    commits: CommitCheck,
    /// Number of the newest part of a checkpoint, and the expected number of parts.
    part: Option<(i32, i32)>,
    /// Number of the next request that becomes a task; `None` if earlier entries were removed.
    task_next: Option<TaskId>,
}

/// The position up to which a partition is sealed.
#[derive(Clone, Copy)]
struct Position {
    /// Position before the last transaction, which may have excluded the partition.
    before: i64,
    offset: i64,
}

impl LifeCheck {
    /// Begins at a checkpoint, whose parts follow, because the journal's beginning was removed.
    pub(crate) fn begin_at(&mut self, record: &Record, started: Option<&Started>) {
        *self = Self { commits: CommitCheck::unknown(), ..Self::default() };
        if let Some(started) = started {
            self.begin(record, started);
        }
    }

    /// Returns the differences in the next entry, which is in `record`.
    pub(crate) fn check(&mut self, record: &Record, entry: &JournalEntry) -> Vec<Difference> {
        let mut found = Vec::new();
        if let Input::Started(started) = &entry.input {
            found.extend(self.end());
            let journal = std::mem::take(&mut self.journal);
            let (commits, task_next) = (CommitCheck::whole(), Some(0));
            *self = Self { journal, commits, task_next, ..Self::default() };
            self.begin(record, started);
        }
        found.extend(self.check_key(record));
        found.extend(self.commits.check(entry));
        match &entry.input {
            Input::PartitionAssigned(assigned) => found.extend(self.assign(assigned)),
            Input::PartitionRevoked(revoked) => drop(self.sealed.remove(&revoked.partition)),
            Input::Sealed(sealed) => found.extend(self.seal(sealed)),
            Input::Checkpoint(part) => found.extend(self.check_checkpoint(part)),
            Input::TaskArrived(arrived) => found.extend(self.check_number(arrived)),
            _ => {}
        }
        found
    }

    /// Returns the difference if an assignment does not continue where this process had sealed the partition. It counts
    /// only if no other process has written. Must be called before [`Self::check`].
    pub(crate) fn check_alone(&self, entry: &JournalEntry) -> Option<Difference> {
        let Input::PartitionAssigned(assigned) = &entry.input else { return None };
        let known = self.journal.get(&assigned.partition)?;
        let found = goes_on_at(assigned);
        let is_right = [known.before, known.offset].contains(&found);
        (!is_right).then(|| Difference::new(COMMITTED_OFFSET, known.offset, found))
    }

    /// Returns the difference at the end of the life, before a start or the end of the journal.
    pub(crate) fn end(&self) -> Option<Difference> {
        self.commits.end()
    }

    fn begin(&mut self, record: &Record, started: &Started) {
        self.key.clone_from(&record.key);
        let config = StageConfig::from_json(&started.stage_config).ok();
        self.groups = config.map(|config| config.groups_per_partition as i32);
        self.started = Some(Box::new(started.clone()));
    }

    /// Checks the record's key: a process uses its name as the key of each record. Journals of some tools have no keys.
    fn check_key(&self, record: &Record) -> Option<Difference> {
        let started = self.started.as_ref()?;
        let is_right =
            |key: &Option<Vec<u8>>| key.as_deref().is_none_or(|key| key == started.node.as_bytes());
        if record.key == self.key && is_right(&record.key) {
            return None;
        }
        let key = record.key.as_deref().map_or(Value::Null, |key| String::from_utf8_lossy(key).into());
        Some(Difference::new("key", started.node.as_str(), key))
    }

    fn assign(&mut self, assigned: &PartitionAssigned) -> Vec<Difference> {
        let &PartitionAssigned { partition, groups, committed_offset, .. } = assigned;
        let mut found = Vec::new();
        if let Some(expected) = self.groups.filter(|expected| *expected != groups) {
            found.push(Difference::new("input.PartitionAssigned.groups", expected, groups));
        }
        let position = Position { before: committed_offset, offset: committed_offset };
        // A partition that is restored within a life continues where it was sealed, or where it was before if the last
        // transaction excluded it.
        if let Some(known) = self.sealed.insert(partition, position)
            && ![known.before, known.offset].contains(&goes_on_at(assigned))
        {
            found.push(Difference::new(COMMITTED_OFFSET, known.offset, goes_on_at(assigned)));
        }
        found
    }

    fn seal(&mut self, sealed: &Sealed) -> Vec<Difference> {
        let mut found = Vec::new();
        for (index, account) in sealed.partitions.iter().enumerate() {
            let &SealedPartition { partition, first_offset, next_offset, .. } = account;
            let field = |name: &str| format!("input.Sealed.partitions[{index}].{name}");
            if let Some(known) = self.sealed.get(&partition).filter(|known| known.offset != first_offset) {
                found.push(Difference::new(field("first_offset"), known.offset, first_offset));
            }
            if next_offset < first_offset {
                found.push(Difference::new(field("next_offset"), first_offset, next_offset));
            }
            // An account without records has no outputs except answers to requests.
            let counts = [account.ticks_digest, account.signals, account.late, account.dead_letters];
            if next_offset == first_offset && counts != [0; 4] {
                found.push(Difference::new(
                    field("next_offset"),
                    "a higher offset, or an account without outputs",
                    next_offset,
                ));
            }
            let position = Position { before: first_offset, offset: next_offset };
            self.sealed.insert(partition, position);
            self.journal.insert(partition, position);
        }
        let ascends = |pair: &[SealedPartition]| pair[0].partition < pair[1].partition;
        if !sealed.partitions.windows(2).all(ascends) {
            let numbers: Vec<i32> = sealed.partitions.iter().map(|account| account.partition).collect();
            found.push(Difference::new("input.Sealed.partitions", "each partition once, ascending", numbers));
        }
        found
    }

    /// Checks the number of a task: tasks are numbered without gaps, and a later round keeps its task's number.
    fn check_number(&mut self, arrived: &TaskArrived) -> Option<Difference> {
        let expected = self.task_next.filter(|_| arrived.first_unit == 0)?;
        self.task_next = Some(arrived.task.saturating_add(1));
        let is_right = arrived.task == expected;
        (!is_right).then(|| Difference::new("input.TaskArrived.task", expected, arrived.task))
    }

    /// Checks a checkpoint's part: only the first part repeats the start of the process.
    fn check_checkpoint(&mut self, part: &Checkpoint) -> Vec<Difference> {
        let last = self.part.replace((part.part, part.parts));
        if let Some((number, parts)) = last
            && (part.part > 0 || number.saturating_add(1) != parts)
            && (part.part, part.parts) != (number.saturating_add(1), parts)
        {
            let said = |part: i32, parts: i32| format!("part {part} of {parts}");
            let expected = said(number.saturating_add(1), parts);
            return vec![Difference::new("input.Checkpoint.parts", expected, said(part.part, part.parts))];
        }
        let Some(started) = &self.started else { return Vec::new() };
        let expected = (part.part == 0).then_some(started);
        if expected == part.started.as_ref() {
            return Vec::new();
        }
        let value = |started: Option<&Box<Started>>| serde_json::to_value(started).unwrap_or_default();
        differences("input.Checkpoint.started", &value(expected), &value(part.started.as_ref()))
    }
}

/// Returns the end of the transactions before an assignment. Records between it and the committed offset are given up.
fn goes_on_at(assigned: &PartitionAssigned) -> i64 {
    assigned.lost_from.unwrap_or(assigned.committed_offset)
}
