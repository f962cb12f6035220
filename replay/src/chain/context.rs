//! The context of an item at its end: its life, its partition's assignment, pauses, and the previous commit.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use warptape_schemas::journal::PartitionId;

use crate::history::{Assigned, Hole, Item, Life, SealedPart, Transaction};

use super::waits::Sealing;

/// Greatest number of pauses kept per partition. A record waits through few of them.
const PAUSES_MAX: usize = 1_024;
/// Greatest number of holes kept. A record waits through few of them.
const HOLES_MAX: usize = 1_024;

/// Follows the items of one partition of a journal.
#[derive(Clone, Default)]
pub(crate) struct Context {
    life: Option<Arc<Life>>,
    assigned: BTreeMap<PartitionId, Assigned>,
    pauses: BTreeMap<PartitionId, VecDeque<(i64, i64)>>,
    /// Intervals in which nothing was recorded.
    holes: VecDeque<Hole>,
    /// Time at which the process learnt the outcome of the last transaction.
    known_ns: Option<i64>,
}

impl Context {
    /// Adds the next item. A transaction must be examined before it is added.
    pub(crate) fn follow(&mut self, item: &Item) {
        match item {
            Item::Life(life) => *self = Self { life: Some(life.clone()), ..Self::default() },
            Item::Assigned(assigned) => {
                self.assigned.insert(assigned.partition, *assigned);
            }
            Item::Pause(pause) => {
                let Some(until) = pause.until else { return };
                let pauses = self.pauses.entry(pause.partition).or_default();
                pauses.push_back((pause.from.at_ns, until.at_ns));
                if pauses.len() > PAUSES_MAX {
                    pauses.pop_front();
                }
            }
            Item::Hole(hole) => {
                self.holes.push_back(*hole);
                if self.holes.len() > HOLES_MAX {
                    self.holes.pop_front();
                }
            }
            Item::Transaction(transaction) => {
                let last = transaction.attempts.last();
                self.known_ns = last.map(|attempt| attempt.known_ns).or(self.known_ns);
            }
            Item::Batch(_)
            | Item::Stay(_)
            | Item::Lane(_)
            | Item::Breaker(_)
            | Item::Headroom(_)
            | Item::Draining(_)
            | Item::Wanted(_)
            | Item::Round(_)
            | Item::Slice(_)
            | Item::Unassigned(_)
            | Item::Level(_) => {}
        }
    }

    /// Returns the current life.
    pub(crate) fn life(&self) -> Option<&Arc<Life>> {
        self.life.as_ref()
    }

    /// Returns the time at which the life began; `None` if the history begins within the life.
    pub(crate) fn began_ns(&self) -> Option<i64> {
        self.life.as_ref().and_then(|life| life.began).map(|began| began.at_ns)
    }

    /// True if a time is before the known part of a life that began earlier.
    pub(crate) fn is_older(&self, at_ns: i64) -> bool {
        self.life.as_ref().is_none_or(|life| life.began.is_none() && at_ns < life.since.at_ns)
    }

    /// Returns the time of the partition's last assignment.
    pub(crate) fn assigned_ns(&self, partition: PartitionId) -> Option<i64> {
        self.assigned.get(&partition).map(|assigned| assigned.at.at_ns)
    }

    /// Returns the intervals in which the partition was not read.
    pub(crate) fn pauses(&self, partition: PartitionId) -> Vec<(i64, i64)> {
        self.pauses.get(&partition).into_iter().flatten().copied().collect()
    }

    /// Returns the holes that end after a time, in order.
    pub(crate) fn holes(&self, from_ns: i64) -> Vec<Hole> {
        self.holes.iter().filter(|hole| hole.until.at_ns > from_ns).copied().collect()
    }

    /// Returns the times around the seal of the current transaction.
    pub(crate) fn sealing<'a>(&self, transaction: &'a Transaction) -> Option<Sealing<'a>> {
        Some(Sealing {
            sealed_ns: transaction.sealed_ns?,
            previous_known_ns: self.known_ns,
            attempts: &transaction.attempts,
        })
    }
}

/// Returns the part of a transaction that contains the record at an offset of a partition.
pub(crate) fn part_with(
    transaction: &Transaction,
    partition: PartitionId,
    offset: i64,
) -> Option<&SealedPart> {
    let has = |part: &&SealedPart| {
        let account = &part.account;
        account.partition == partition && (account.first_offset..account.next_offset).contains(&offset)
    };
    transaction.partitions.iter().find(has).filter(|part| !part.may_be_void)
}
