//! Who had a partition when, as the journals tell: from an assignment on, up to the next one.

use std::collections::BTreeMap;

use warptape_schemas::journal::{Input, JournalEntry};

/// The stretches of time in which a process had a partition with one state, by partition of the source.
#[derive(Debug, Default)]
pub(crate) struct Tenures {
    partitions: BTreeMap<i32, Vec<Tenure>>,
    /// Number of the journal that is read.
    journal: i32,
}

#[derive(Clone, Copy, Debug)]
struct Tenure {
    journal: i32,
    from_ns: i64,
    /// When the newest transactions were sealed that moved the partition's offset, newest first.
    sealed_ns: [i64; 3],
    /// Whether the partition was let go.
    is_over: bool,
}

impl Tenures {
    /// Another partition of the journal begins.
    pub(crate) fn begin(&mut self) {
        self.journal += 1;
    }

    /// Forgets all of them, where nobody asks.
    pub(crate) fn forget(&mut self) {
        self.partitions.clear();
    }

    /// The next entry.
    pub(crate) fn add(&mut self, entry: &JournalEntry) {
        match &entry.input {
            Input::PartitionAssigned(assigned) => {
                let tenures = self.partitions.entry(assigned.partition).or_default();
                tenures.push(Tenure {
                    journal: self.journal,
                    from_ns: entry.at_ns,
                    sealed_ns: [i64::MIN; 3],
                    is_over: false,
                });
            }
            Input::PartitionRevoked(revoked) => {
                if let Some(tenure) = self.current(revoked.partition) {
                    // What was under way then may have been left out of its transaction.
                    let [_, second, third] = tenure.sealed_ns;
                    tenure.sealed_ns = [second, third, i64::MIN];
                    tenure.is_over = true;
                }
            }
            Input::Sealed(sealed) => {
                for account in &sealed.partitions {
                    if let Some(tenure) = self.current(account.partition) {
                        let [newest, second, _] = tenure.sealed_ns;
                        tenure.sealed_ns = [entry.at_ns, newest, second];
                    }
                }
            }
            _ => {}
        }
    }

    /// The stretch that the journal that is read is in.
    fn current(&mut self, partition: i32) -> Option<&mut Tenure> {
        let last = self.partitions.get_mut(&partition)?.last_mut()?;
        (last.journal == self.journal && !last.is_over).then_some(last)
    }

    /// Whether who wrote something of a partition at a time has sealed a later transaction of it as well. The first transaction that was
    /// sealed then or later may be the one that it was written with. Where nobody can say who wrote it, none was.
    pub(crate) fn went_on(&self, partition: i32, at_ns: i64) -> bool {
        let Some(tenures) = self.partitions.get(&partition) else { return false };
        let mut begun = tenures.iter().filter(|tenure| tenure.from_ns <= at_ns);
        let Some(owner) = begun.clone().max_by_key(|tenure| tenure.from_ns) else { return false };
        // The clocks of two machines need not agree on who came first.
        let is_alone = begun.all(|tenure| tenure.journal == owner.journal || tenure.sealed_ns[0] < at_ns);
        is_alone && owner.sealed_ns[1] >= at_ns
    }
}

#[cfg(test)]
mod tests {
    use warptape_schemas::hex::Digits;
    use warptape_schemas::journal::{PartitionAssigned, PartitionRevoked, Sealed, SealedPartition};

    use super::*;

    const PARTITION: i32 = 3;

    fn add(tenures: &mut Tenures, at_ns: i64, input: Input) {
        let (state_hash, hash, decisions) = (Digits::zeros(), Digits::zeros(), Vec::new());
        tenures.add(&JournalEntry { sequence: 0, at_ns, input, decisions, state_hash, hash });
    }

    fn assign(tenures: &mut Tenures, at_ns: i64) {
        let (groups, committed_offset, snapshot_offset) = (1, 0, 0);
        let partition = PARTITION;
        let assigned = PartitionAssigned {
            partition,
            groups,
            committed_offset,
            snapshot_offset,
            ..PartitionAssigned::default()
        };
        add(tenures, at_ns, Input::PartitionAssigned(assigned));
    }

    fn seal(tenures: &mut Tenures, times_ns: &[i64]) {
        for &at_ns in times_ns {
            let account = SealedPartition { partition: PARTITION, ..SealedPartition::default() };
            add(tenures, at_ns, Input::Sealed(Sealed { partitions: vec![account] }));
        }
    }

    fn check(tenures: &Tenures, at_ns: i64, expected: bool) {
        assert_eq!(tenures.went_on(PARTITION, at_ns), expected, "at {at_ns}: {tenures:?}");
    }

    #[test]
    fn who_has_sealed_two_later_transactions_went_on() {
        let mut tenures = Tenures::default();
        tenures.begin();
        check(&tenures, 10, false);
        assign(&mut tenures, 5);
        seal(&mut tenures, &[10, 20]);
        check(&tenures, 4, false);
        check(&tenures, 10, true);
        check(&tenures, 11, false);
        seal(&mut tenures, &[30]);
        check(&tenures, 20, true);
        // The next stretch says nothing of the one before.
        assign(&mut tenures, 31);
        seal(&mut tenures, &[40, 50]);
        check(&tenures, 30, false);
        check(&tenures, 40, true);
        // What was under way when the partition was let go may be missing.
        add(&mut tenures, 51, Input::PartitionRevoked(PartitionRevoked { partition: PARTITION }));
        check(&tenures, 40, false);
        check(&tenures, 39, false);
    }

    #[test]
    fn of_two_whose_clocks_differ_neither_is_taken_for_the_owner() {
        let mut tenures = Tenures::default();
        tenures.begin();
        assign(&mut tenures, 5);
        seal(&mut tenures, &[10, 20]);
        check(&tenures, 9, true);
        tenures.begin();
        assign(&mut tenures, 8);
        seal(&mut tenures, &[15, 30]);
        check(&tenures, 9, false);
        check(&tenures, 21, false);
    }
}
