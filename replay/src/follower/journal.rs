//! Follows the growing journal of one process: steps its entries again, and passes on their accounts.

use std::collections::BTreeMap;
use std::sync::Arc;

use warptape_eventlog::{EventLog, OffsetRange, TopicPartition};
use warptape_schemas::journal::{Checkpoint, Input, JournalEntry, PartitionAssigned, PartitionRevoked};

use super::partition::{Account, AccountState, PartitionFollower};
use crate::accounts::SealedRange;
use crate::entries::Entries;
use crate::journal::JournalCheck;
use crate::partition_reader::PartitionReader;
use crate::{JournalDivergence, ReplayError};

/// Greatest number of entries read per round.
const ROUND_ENTRIES_MAX: u64 = 4_096;

/// Follows one partition of the journal.
pub(super) struct JournalFollower {
    pub(super) check: JournalCheck,
    source: TopicPartition,
    next: i64,
    /// Stage configuration of the process life being read.
    config: Option<Arc<str>>,
    /// Partitions in the last transaction read. The next transaction confirms that it was committed unchanged.
    in_flight: Vec<i32>,
    /// First record of each state that began after removed records, by partition.
    folds: BTreeMap<i32, i64>,
}

impl JournalFollower {
    /// Begins at the last start or checkpoint of the partition, or at its first entry.
    pub(super) fn begin(
        log: &dyn EventLog,
        topic: &str,
        partition: i32,
        range: OffsetRange,
        from_beginning: bool,
    ) -> Result<Self, ReplayError> {
        let mut next = range.first;
        if !from_beginning {
            let entries = Entries::open(log, topic, partition)?;
            next = entries.begin_before(range.next)?.map_or(range.first, |begin| begin.offset);
        }
        let mut check = JournalCheck::new(topic, None);
        check.begin(partition, next);
        let source = TopicPartition { topic: topic.to_owned(), partition };
        Ok(Self { check, source, next, config: None, in_flight: Vec::new(), folds: BTreeMap::new() })
    }

    /// Returns the offset of the next record.
    pub(super) fn next(&self) -> i64 {
        self.next
    }

    /// True if the first process life may lack accounts, because neither its start nor a checkpoint was found.
    pub(super) fn is_headless(&self) -> bool {
        self.check.is_headless()
    }

    /// True if `waiting_max` or more transactions wait for comparison; then no more entries are read.
    pub(super) fn is_full(&self, partitions: &BTreeMap<i32, PartitionFollower>, waiting_max: usize) -> bool {
        let number = self.source.partition;
        partitions.values().map(|follower| follower.waiting(number)).sum::<usize>() >= waiting_max
    }

    /// Reads entries up to the end of the range, unless too many transactions wait for comparison, and passes their
    /// accounts to the partitions. Returns the first difference.
    pub(super) fn read(
        &mut self,
        log: &dyn EventLog,
        range: OffsetRange,
        partitions: &mut BTreeMap<i32, PartitionFollower>,
        waiting_max: usize,
    ) -> Result<Option<JournalDivergence>, ReplayError> {
        let number = self.source.partition;
        if self.next >= range.next {
            // No next transaction exists yet, so the group's offsets must show whether the last one was committed
            // unchanged.
            self.in_flight.drain(..).for_each(|of| partitions.entry(of).or_default().doubt(number));
            return Ok(None);
        }
        if self.is_full(partitions, waiting_max) {
            return Ok(None);
        }
        let range = OffsetRange { first: self.next, ..range };
        let mut reader = PartitionReader::open(log, self.source.clone(), range)?;
        for _ in 0..ROUND_ENTRIES_MAX {
            let Some(record) = reader.next()? else {
                // There may be no records at the last offsets.
                self.next = range.next;
                break;
            };
            match self.check.check_entry(&record, false) {
                Ok(entry) => self.follow(record.offset, &entry, partitions),
                Err(divergence) => return Ok(Some(*divergence)),
            }
            self.next = record.offset + 1;
        }
        // The partitions keep their own copies.
        self.check.accounts.forget();
        self.check.segments.forget();
        // Snapshots, arrivals and operators' commands are not compared here.
        self.check.ownerships.forget();
        self.check.arrivals.forget();
        self.check.controls.forget();
        Ok(None)
    }

    fn follow(
        &mut self,
        offset: i64,
        entry: &JournalEntry,
        partitions: &mut BTreeMap<i32, PartitionFollower>,
    ) {
        let number = self.source.partition;
        match &entry.input {
            Input::Started(started) => {
                self.config = Some(started.stage_config.as_str().into());
                self.in_flight.drain(..).for_each(|of| partitions.entry(of).or_default().confirm(number));
            }
            Input::Checkpoint(Checkpoint { started: Some(started), .. }) => {
                self.config = Some(started.stage_config.as_str().into());
            }
            Input::Sealed(sealed) if !self.check.is_headless() => {
                let Some(config) = &self.config else { return };
                self.in_flight.drain(..).for_each(|of| partitions.entry(of).or_default().confirm(number));
                for account in sealed.partitions.iter().filter(|of| of.next_offset > of.first_offset) {
                    self.in_flight.push(account.partition);
                    partitions.entry(account.partition).or_default().add(Account {
                        journal: number,
                        offset,
                        sequence: entry.sequence,
                        config: config.clone(),
                        fold: self.folds.get(&account.partition).copied(),
                        range: SealedRange::of(account),
                        state: AccountState::InFlight,
                        was_doubted: false,
                    });
                }
            }
            Input::PartitionAssigned(assigned) if !self.check.is_headless() => {
                let PartitionAssigned { partition, snapshot_offset, is_emptied, .. } = *assigned;
                match is_emptied {
                    true => _ = self.folds.insert(partition, snapshot_offset),
                    false => _ = self.folds.remove(&partition),
                }
                let (Some(config), Some(range)) = (&self.config, SealedRange::lost(assigned)) else { return };
                // The lost range belongs to the transaction of this entry.
                partitions.entry(partition).or_default().add(Account {
                    journal: number,
                    offset,
                    sequence: entry.sequence,
                    config: config.clone(),
                    fold: None,
                    range,
                    state: AccountState::Committed,
                    was_doubted: false,
                });
            }
            // A transaction in progress may have excluded the partition.
            Input::PartitionRevoked(PartitionRevoked { partition }) => {
                if let Some(index) = self.in_flight.iter().position(|of| of == partition) {
                    self.in_flight.swap_remove(index);
                    partitions.entry(*partition).or_default().doubt(number);
                }
            }
            _ => {}
        }
    }
}
