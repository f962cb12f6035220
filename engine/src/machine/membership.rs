//! Partitions of this process: how they are assigned, restored and given up.

use std::collections::{BTreeMap, BTreeSet};

use warptape_events::LifecycleEvent;
use warptape_events::journal::{Input, PartitionAssigned, PartitionRevoked};
use warptape_record::TopicPartition;

use super::Core;
use crate::command::Command;
use crate::error::{CoreError, RemovedTicks};
use crate::event::Assigned;
use crate::partition::{Partition, Reached};
use crate::recorder::RecordError;
use crate::restore::Restored;
use crate::risk::RequestPartition;
use crate::segment::is_other;

/// Longest time for revoked partitions to commit their outputs; after it, they are let go without.
const REVOKE_NS_MAX: i64 = 10_000_000_000;

/// The place at which a process begins to process a partition.
struct Beginning {
    committed_offset: i64,
    snapshot_offset: i64,
    is_emptied: bool,
    lost_from: Option<i64>,
    /// True if the log has removed records that the state lacks.
    has_gap: bool,
}

/// State of the process's membership in its group.
#[derive(Default)]
pub(super) struct Membership {
    /// Assignment of each owned partition, numbered over all partitions.
    assignments: BTreeMap<i32, u64>,
    assignments_total: u64,
    /// Partitions that were assigned together and wait until the states of all of them have arrived.
    assigning: Vec<Assigning>,
    /// Partitions whose state was lost and is not restored yet.
    restoring: BTreeMap<i32, Restoring>,
    restores_total: u64,
    /// Partitions whose market is older than under their last owner, each with the offset of the ticks to accept until
    /// it is not. Requests that need the market wait until this is empty, because the partition of a symbol is unknown
    /// before.
    markets_awaited: BTreeMap<i32, i64>,
    /// Partitions with unaccepted ticks that existed when they were assigned; each with the end offset of these ticks.
    behind: BTreeMap<i32, i64>,
    /// Partitions with a changed group offset of their requests: the right one must be committed again once the
    /// requests are read.
    requests_uncommitted: BTreeSet<i32>,
    revoking: Option<Revoking>,
}

struct Assigning {
    all: Vec<Assigned>,
    /// Number of the awaited restore, by partition.
    awaited: BTreeMap<i32, u64>,
    restored: BTreeMap<i32, Restored>,
}

/// A partition whose state was lost.
struct Restoring {
    /// Number of the awaited restore.
    number: u64,
    /// Offsets that the partition had reached.
    reached: Reached,
    /// Offset before which the outputs of all records exist, or are in a commit.
    sealed_offset: i64,
}

/// Partitions that the source is about to hand over.
struct Revoking {
    partitions: Vec<i32>,
    until_ns: i64,
}

impl Membership {
    /// Makes this process the owner of a partition. Returns the new assignment; `None` if it owned the partition
    /// already.
    fn begin(&mut self, partition: i32) -> Option<u64> {
        if self.assignments.contains_key(&partition) {
            return None;
        }
        self.assignments_total += 1;
        self.assignments.insert(partition, self.assignments_total);
        Some(self.assignments_total)
    }

    /// The assignment of a partition; `None` if this process does not own it.
    pub(super) fn assignment(&self, partition: i32) -> Option<u64> {
        self.assignments.get(&partition).copied()
    }

    /// Partitions that this process owns or is about to own, in order.
    pub(super) fn owned(&self) -> impl Iterator<Item = i32> {
        let coming = self.assigning.iter().flat_map(|assigning| &assigning.all).map(|one| one.partition);
        let owned: BTreeSet<i32> = self.assignments.keys().copied().chain(coming).collect();
        owned.into_iter()
    }

    /// Counts a restore, or a read of pages. Its number distinguishes it from one that was requested before the
    /// partition went and came back.
    pub(super) fn next_restore(&mut self) -> u64 {
        self.restores_total += 1;
        self.restores_total
    }

    /// True if the offset of a partition's requests is to be committed again and the requests are not read yet.
    pub(super) fn has_uncommitted_requests(&self, partition: i32) -> bool {
        self.requests_uncommitted.contains(&partition)
    }

    /// Notes that reading of a partition's requests has begun.
    pub(super) fn requests_opened(&mut self, partition: i32) {
        self.requests_uncommitted.remove(&partition);
    }

    /// Notes a new partition: earlier owners processed its ticks before `processed`, and ticks before `end` exist.
    fn await_market(&mut self, partition: i32, processed: i64, end: i64) {
        self.markets_awaited.insert(partition, processed.min(end));
        self.behind.insert(partition, end);
    }

    /// Removes the partitions that have caught up. `is_read_to` is true if the ticks of a partition before an offset
    /// are accepted.
    pub(super) fn note_markets(&mut self, is_read_to: impl Fn(i32, i64) -> bool) {
        if self.markets_awaited.iter().all(|(&partition, &processed)| is_read_to(partition, processed)) {
            self.markets_awaited.clear();
        }
        self.behind.retain(|&partition, &mut end| !is_read_to(partition, end));
    }

    /// True if requests that need the market still wait for this partition to catch up.
    pub(super) fn awaits_market(&self, partition: i32) -> bool {
        self.markets_awaited.contains_key(&partition)
    }

    /// True if all ticks that existed when partitions were assigned are accepted.
    pub(super) fn is_caught_up(&self) -> bool {
        self.behind.is_empty() && self.markets_awaited.is_empty()
    }

    /// True if no partition waits for its state.
    pub(super) fn is_settled(&self) -> bool {
        self.restoring.is_empty() && self.assigning.is_empty()
    }

    /// True if a partition is about to be handed over.
    pub(super) fn is_handed_over(&self, partition: i32) -> bool {
        self.revoking.as_ref().is_some_and(|revoking| revoking.partitions.contains(&partition))
    }

    /// True if partitions are about to be handed over.
    pub(super) fn is_revoking(&self) -> bool {
        self.revoking.is_some()
    }
}

impl Core {
    /// True if this process has owned a partition without a break since this assignment.
    pub(super) fn is_owned(&self, partition: i32, assignment: u64) -> bool {
        self.membership.assignment(partition) == Some(assignment)
    }

    /// Requests the states of newly assigned partitions. Once all states have arrived, the partitions are taken over
    /// together.
    pub(super) fn on_assigned(&mut self, now_ns: i64, all: Vec<Assigned>) -> Result<(), CoreError> {
        let mut awaited = BTreeMap::new();
        for &Assigned { partition, committed, .. } in &all {
            let (number, sealed_offset) = (self.membership.next_restore(), committed.unwrap_or(0));
            awaited.insert(partition, number);
            self.commands.push_back(Command::Restore { number, partition, sealed_offset });
        }
        self.membership.assigning.push(Assigning { all, awaited, restored: BTreeMap::new() });
        self.take_over(now_ns)
    }

    /// Requests the lost state of a partition again; the partition had reached `reached`.
    pub(super) fn restore_lost(&mut self, partition: i32, reached: Reached, sealed_offset: i64) {
        let number = self.membership.next_restore();
        self.membership.restoring.insert(partition, Restoring { number, reached, sealed_offset });
        self.commands.push_back(Command::Restore { number, partition, sealed_offset });
    }

    /// Handles the state of an ended restore. Ignores a restore that is no longer awaited because its partition has
    /// gone.
    pub(super) fn on_restored(
        &mut self,
        now_ns: i64,
        number: u64,
        restored: Restored,
    ) -> Result<(), CoreError> {
        let partition_of = |awaited: &BTreeMap<i32, u64>| {
            awaited.iter().find(|&(_, awaited)| *awaited == number).map(|(&partition, _)| partition)
        };
        for assigning in &mut self.membership.assigning {
            if let Some(partition) = partition_of(&assigning.awaited) {
                assigning.restored.insert(partition, restored);
                return self.take_over(now_ns);
            }
        }
        let mut lost = self.membership.restoring.extract_if(.., |_, restoring| restoring.number == number);
        let Some((partition, Restoring { reached, sealed_offset, .. })) = lost.next() else { return Ok(()) };
        drop(lost);
        let committed = Some(sealed_offset);
        self.allow_losses([(partition, committed, &restored)].into_iter())?;
        let assigned = Assigned { partition, committed, ..Assigned::default() };
        Ok(self.admit(now_ns, assigned, restored, reached)?)
    }

    /// Takes over partitions whose states have arrived, unless that would begin segments of the log without the
    /// operator's request.
    fn take_over(&mut self, now_ns: i64) -> Result<(), CoreError> {
        let is_complete = |assigning: &mut Assigning| assigning.restored.len() == assigning.all.len();
        let complete: Vec<Assigning> = self.membership.assigning.extract_if(.., is_complete).collect();
        for Assigning { all, mut restored, .. } in complete {
            self.allow_segments(&all, &restored)?;
            self.allow_losses(
                all.iter().map(|one| (one.partition, one.committed, &restored[&one.partition])),
            )?;
            for assigned in all {
                let Assigned { partition, committed, end, requests, .. } = assigned;
                let restored = restored.remove(&partition).expect("the states of all are there");
                self.admit(now_ns, assigned, restored, Reached::default())?;
                if requests.is_uncommitted {
                    self.membership.requests_uncommitted.insert(partition);
                }
                self.membership.await_market(partition, committed.unwrap_or(0), end);
                // Requests are read at once, however many ticks are still to be read.
                if let Some(assignment) = self.membership.assignment(partition) {
                    self.commands.push_back(Command::OpenRequests {
                        partition,
                        assignment,
                        committed: requests,
                    });
                }
            }
        }
        Ok(())
    }

    /// Checks that no partition was processed under another stage configuration, or that another segment may begin.
    fn allow_segments(
        &mut self,
        all: &[Assigned],
        restored: &BTreeMap<i32, Restored>,
    ) -> Result<(), CoreError> {
        let (mut first, mut partitions, mut records) = (None, 0, 0);
        for Assigned { partition, committed, .. } in all {
            let Some(committed) = committed.filter(|&committed| committed > 0) else { continue };
            let segment = restored[partition].segment.as_deref();
            if let Some(segment) = segment.filter(|segment| is_other(segment, &self.config.stages)) {
                first.get_or_insert_with(|| segment.to_owned());
                partitions += 1;
                records += committed;
            }
        }
        let Some(before) = first else { return Ok(()) };
        if !self.config.new_segment {
            return Err(CoreError::OtherSegment { before, partitions, records });
        }
        self.commands.push_back(Command::NewSegment { before, partitions, records });
        Ok(())
    }

    /// Checks that no record was removed before it was processed, or that its loss is accepted.
    fn allow_losses<'a>(
        &self,
        all: impl Iterator<Item = (i32, Option<i64>, &'a Restored)>,
    ) -> Result<(), CoreError> {
        let lost = all.filter_map(|(partition, committed, restored)| {
            let (from, first) = (committed?, restored.first);
            let is_lost = from < first && !self.config.accepted_loss.covers(partition, first);
            is_lost.then_some(RemovedTicks { partition, from, first })
        });
        let removed: Vec<RemovedTicks> = lost.collect();
        let topic = self.config.topics.ticks.clone();
        if removed.is_empty() { Ok(()) } else { Err(CoreError::TicksRemoved { topic, removed }) }
    }

    /// Determines where a partition with a restored state begins. If the log has removed records that the state lacks,
    /// it begins at the oldest remaining record. It then begins without state, unless the state includes everything
    /// that was processed.
    fn beginning(&mut self, assigned: Assigned, restored: &mut Restored) -> Beginning {
        let Assigned { partition, committed, lost_from, .. } = assigned;
        let (first, snapshot_offset) = (restored.first, restored.offset);
        let committed_offset = committed.unwrap_or(0);
        let has_gap = snapshot_offset < first;
        let mut beginning =
            Beginning { committed_offset, snapshot_offset, is_emptied: false, lost_from, has_gap };
        if !has_gap {
            return beginning;
        }
        beginning.is_emptied = snapshot_offset == 0 || snapshot_offset < committed_offset;
        if committed_offset < first {
            beginning.committed_offset = first;
            beginning.lost_from = lost_from.or(Some(committed_offset));
        }
        if beginning.is_emptied {
            beginning.snapshot_offset = first;
            restored.empty(&self.config.stages);
        }
        restored.offset = first;
        let Beginning { is_emptied, lost_from, .. } = beginning;
        self.commands.push_back(Command::TicksRemoved {
            partition,
            first,
            snapshot_offset,
            is_emptied,
            lost_from,
        });
        beginning
    }

    fn admit(
        &mut self,
        now_ns: i64,
        assigned: Assigned,
        mut restored: Restored,
        reached: Reached,
    ) -> Result<(), RecordError> {
        let partition = assigned.partition;
        let Beginning { committed_offset, snapshot_offset, is_emptied, lost_from, has_gap } =
            self.beginning(assigned, &mut restored);
        let offset = restored.offset;
        if let Some(assignment) = self.membership.begin(partition) {
            self.commands.push_back(Command::Own { partition, assignment });
        }
        self.generation += 1;
        let generation = self.generation;
        let source = TopicPartition { topic: self.config.topics.ticks.clone(), partition };
        let is_other = |segment: &String| is_other(segment, &self.config.stages);
        let segment_due = restored.segment.as_ref().is_none_or(is_other);
        let Reached { offset: reached_offset, gone_out } = reached;
        let counted_offset = reached_offset.max(committed_offset);
        let mut owned =
            Partition::new(source, generation, restored, committed_offset, counted_offset, gone_out);
        owned.segment_due = segment_due;
        owned.offset_due = assigned.is_uncommitted || lost_from.is_some();
        self.partitions.insert(partition, owned);
        let detail = format!(
            "partition {partition} from snapshot at {snapshot_offset}, outputs from {committed_offset}"
        );
        self.commands.push_back(Command::Lifecycle(LifecycleEvent::Restored, detail));
        self.step(
            now_ns,
            Input::PartitionAssigned(PartitionAssigned {
                partition,
                groups: self.config.stages.groups_per_partition as i32,
                committed_offset,
                snapshot_offset,
                is_emptied,
                lost_from,
            }),
        )?;
        if has_gap {
            // The log may have removed the records behind this state by the time it is requested again.
            self.begin_snapshot(now_ns, partition, 0)?;
        }
        self.commands.push_back(Command::Seek { partition, offset, generation });
        // A stop may have been requested before there was anything to stop.
        self.drain_if_read(now_ns)
    }

    /// Prepares the handover of partitions, whose source blocks until [`Command::ReleaseSource`]. Their outputs are
    /// committed first, if that does not take too long. A last snapshot saves the next owner from processing records
    /// again.
    pub(super) fn on_revoking(&mut self, now_ns: i64, partitions: Vec<i32>) -> Result<(), CoreError> {
        for &partition in &partitions {
            self.close_requests(now_ns, partition)?;
            self.begin_snapshot(now_ns, partition, 1)?;
        }
        self.membership.revoking = Some(Revoking { partitions, until_ns: now_ns + REVOKE_NS_MAX });
        Ok(())
    }

    /// Gives up partitions that already belong to other processes.
    pub(super) fn on_lost(&mut self, now_ns: i64, partitions: &[i32]) -> Result<(), CoreError> {
        self.give_up(now_ns, partitions, "lost")
    }

    /// Latest time at which revoked partitions are let go; `None` if there are none.
    pub(super) fn release_at_ns(&self) -> Option<i64> {
        self.membership.revoking.as_ref().map(|revoking| revoking.until_ns)
    }

    /// Lets go of revoked partitions once their outputs are committed, or when that takes too long.
    pub(super) fn release_if_settled(&mut self, now_ns: i64) -> Result<(), CoreError> {
        let Some(revoking) = &self.membership.revoking else { return Ok(()) };
        let is_settled = |&partition: &i32| self.is_settled(partition);
        let settled = !self.is_committing() && revoking.partitions.iter().all(is_settled);
        if !settled && now_ns < revoking.until_ns {
            return Ok(());
        }
        let partitions = self.membership.revoking.take().expect("it was there a line ago").partitions;
        self.give_up(now_ns, &partitions, if settled { "committed" } else { "not committed in time" })
    }

    /// Gives up partitions that this process no longer owns. Their next owner computes uncommitted outputs again.
    fn give_up(&mut self, now_ns: i64, partitions: &[i32], how: &str) -> Result<(), CoreError> {
        for &partition in partitions {
            self.let_go(now_ns, partition)?;
            let detail = format!("partition {partition}, {how}");
            self.commands.push_back(Command::Lifecycle(LifecycleEvent::PartitionRevoked, detail));
        }
        self.commands.push_back(Command::ReleaseSource);
        // Partitions assigned together with them may have waited for their states, and the stop for their last records.
        self.take_over(now_ns)?;
        Ok(self.drain_if_read(now_ns)?)
    }

    fn let_go(&mut self, now_ns: i64, partition: i32) -> Result<(), RecordError> {
        let membership = &mut self.membership;
        let Membership { assignments, assigning, restoring, requests_uncommitted, .. } = membership;
        let was_owned = assignments.remove(&partition).is_some();
        restoring.remove(&partition);
        membership.markets_awaited.remove(&partition);
        membership.behind.remove(&partition);
        requests_uncommitted.remove(&partition);
        for assigning in assigning {
            assigning.all.retain(|one| one.partition != partition);
            assigning.awaited.remove(&partition);
            assigning.restored.remove(&partition);
        }
        self.commands.push_back(Command::LetGo { partition });
        self.close_requests(now_ns, partition)?;
        self.risk.partitions.remove(&partition);
        self.partitions.remove(&partition);
        if let Some(stop) = &mut self.stopping.at {
            stop.remove(partition);
        }
        // The scheduler does not know a partition that was never taken over.
        if !was_owned {
            return Ok(());
        }
        self.drop_groups(partition);
        self.step(now_ns, Input::PartitionRevoked(PartitionRevoked { partition }))
    }

    /// True if everything read of a partition is processed and part of a commit.
    fn is_settled(&self, partition: i32) -> bool {
        let settled = |owned: &Partition| {
            owned.is_drained() && owned.sealed_offset >= owned.next_offset && !owned.has_unsealed()
        };
        !self.membership.restoring.contains_key(&partition)
            && self.partitions.get(&partition).is_none_or(settled)
            && self.risk.partitions.get(&partition).is_none_or(|requests| !requests.has_results())
    }

    /// True if a partition has risk results that are in no commit yet.
    pub(super) fn has_risk_results(&self) -> bool {
        self.risk.partitions.values().any(RequestPartition::has_results)
    }
}
