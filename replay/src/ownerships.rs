//! The owners of partitions over time, according to the journals. Each ownership lasts from one assignment to the next.

use std::collections::BTreeMap;

use warptape_schemas::journal::{Input, JournalEntry};

/// The ownerships of partitions by processes, by partition of the source. A new state begins a new ownership.
#[derive(Debug, Default)]
pub(crate) struct Ownerships {
    partitions: BTreeMap<i32, Vec<Ownership>>,
    /// Number of the journal being read.
    journal: i32,
}

#[derive(Clone, Copy, Debug)]
struct Ownership {
    journal: i32,
    from_ns: i64,
    /// Seal times of the newest transactions that moved the partition's offset, newest first.
    sealed_ns: [i64; 3],
    /// True if the partition was revoked.
    is_over: bool,
}

impl Ownerships {
    /// Begins another partition of the journal.
    pub(crate) fn begin(&mut self) {
        self.journal += 1;
    }

    /// Drops all ownerships, for callers that do not need them.
    pub(crate) fn forget(&mut self) {
        self.partitions.clear();
    }

    /// Adds the next entry.
    pub(crate) fn add(&mut self, entry: &JournalEntry) {
        match &entry.input {
            Input::PartitionAssigned(assigned) => {
                let ownerships = self.partitions.entry(assigned.partition).or_default();
                ownerships.push(Ownership {
                    journal: self.journal,
                    from_ns: entry.at_ns,
                    sealed_ns: [i64::MIN; 3],
                    is_over: false,
                });
            }
            Input::PartitionRevoked(revoked) => {
                if let Some(ownership) = self.current(revoked.partition) {
                    // The transaction in progress may have excluded the partition.
                    let [_, second, third] = ownership.sealed_ns;
                    ownership.sealed_ns = [second, third, i64::MIN];
                    ownership.is_over = true;
                }
            }
            Input::Sealed(sealed) => {
                for account in &sealed.partitions {
                    if let Some(ownership) = self.current(account.partition) {
                        let [newest, second, _] = ownership.sealed_ns;
                        ownership.sealed_ns = [entry.at_ns, newest, second];
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns the current ownership of the journal being read; `None` if there is none.
    fn current(&mut self, partition: i32) -> Option<&mut Ownership> {
        let last = self.partitions.get_mut(&partition)?.last_mut()?;
        (last.journal == self.journal && !last.is_over).then_some(last)
    }

    /// True if the process that wrote something about a partition at a time has sealed a later transaction of it. The
    /// first transaction sealed at or after that time may contain it, so a second one is required. False if the writer
    /// is uncertain.
    pub(crate) fn went_on(&self, partition: i32, at_ns: i64) -> bool {
        let Some(ownerships) = self.partitions.get(&partition) else { return false };
        let mut begun = ownerships.iter().filter(|ownership| ownership.from_ns <= at_ns);
        let Some(owner) = begun.clone().max_by_key(|ownership| ownership.from_ns) else { return false };
        // The clocks of two machines may disagree about the order.
        let is_alone =
            begun.all(|ownership| ownership.journal == owner.journal || ownership.sealed_ns[0] < at_ns);
        is_alone && owner.sealed_ns[1] >= at_ns
    }
}

#[cfg(test)]
mod tests {
    use warptape_schemas::hex::Digits;
    use warptape_schemas::journal::{PartitionAssigned, PartitionRevoked, Sealed, SealedPartition};

    use super::*;

    const PARTITION: i32 = 3;

    fn add(ownerships: &mut Ownerships, at_ns: i64, input: Input) {
        let (state_hash, hash, decisions) = (Digits::zeros(), Digits::zeros(), Vec::new());
        ownerships.add(&JournalEntry { sequence: 0, at_ns, input, decisions, state_hash, hash });
    }

    fn assign(ownerships: &mut Ownerships, at_ns: i64) {
        let (groups, committed_offset, snapshot_offset) = (1, 0, 0);
        let partition = PARTITION;
        let assigned = PartitionAssigned {
            partition,
            groups,
            committed_offset,
            snapshot_offset,
            ..PartitionAssigned::default()
        };
        add(ownerships, at_ns, Input::PartitionAssigned(assigned));
    }

    fn seal(ownerships: &mut Ownerships, times_ns: &[i64]) {
        for &at_ns in times_ns {
            let account = SealedPartition { partition: PARTITION, ..SealedPartition::default() };
            add(ownerships, at_ns, Input::Sealed(Sealed { partitions: vec![account] }));
        }
    }

    fn check(ownerships: &Ownerships, at_ns: i64, expected: bool) {
        assert_eq!(ownerships.went_on(PARTITION, at_ns), expected, "at {at_ns}: {ownerships:?}");
    }

    #[test]
    fn who_has_sealed_two_later_transactions_went_on() {
        let mut ownerships = Ownerships::default();
        ownerships.begin();
        check(&ownerships, 10, false);
        assign(&mut ownerships, 5);
        seal(&mut ownerships, &[10, 20]);
        check(&ownerships, 4, false);
        check(&ownerships, 10, true);
        check(&ownerships, 11, false);
        seal(&mut ownerships, &[30]);
        check(&ownerships, 20, true);
        // A later ownership proves nothing about the earlier one.
        assign(&mut ownerships, 31);
        seal(&mut ownerships, &[40, 50]);
        check(&ownerships, 30, false);
        check(&ownerships, 40, true);
        // The part in progress when the partition was revoked may be missing.
        add(&mut ownerships, 51, Input::PartitionRevoked(PartitionRevoked { partition: PARTITION }));
        check(&ownerships, 40, false);
        check(&ownerships, 39, false);
    }

    #[test]
    fn of_two_whose_clocks_differ_neither_is_taken_for_the_owner() {
        let mut ownerships = Ownerships::default();
        ownerships.begin();
        assign(&mut ownerships, 5);
        seal(&mut ownerships, &[10, 20]);
        check(&ownerships, 9, true);
        ownerships.begin();
        assign(&mut ownerships, 8);
        seal(&mut ownerships, &[15, 30]);
        check(&ownerships, 9, false);
        check(&ownerships, 21, false);
    }
}
