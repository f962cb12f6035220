//! Commits: when they are sealed, what they contain, and what follows a failure.

use std::mem::take;

use warptape_events::LifecycleEvent;
use warptape_events::journal::{CommitEnded, CommitOutcome, Input, Sealed};

use super::Core;
use crate::command::Command;
use crate::commit::CommitRequest;
use crate::error::CoreError;
use crate::event::CommitAttempt;
use crate::outage::Outage;
use crate::partition::Partition;
use crate::recorder::RecordError;
use crate::risk::RequestPartition;
use crate::segment::segment_record;
use crate::snapshots::SnapshotPlace;

/// Longest time that a process waits for a commit and for the lookup of its outcome once it was asked to end.
const COMMIT_STOPPING_NS_MAX: i64 = 60_000_000_000;

/// Commits of the process. One is under way at a time; outputs that become complete meanwhile wait for the next one.
#[derive(Default)]
pub(super) struct Commits {
    last_ns: i64,
    /// The request that is being written, or waits to be sent again.
    under_way: Option<CommitUnderWay>,
    aborted: Option<AbortedCommit>,
    /// The span in which every commit was aborted; `None` if the last one succeeded.
    outage: Option<Outage>,
}

/// A request that is sealed and not known to be committed.
struct CommitUnderWay {
    sealed_ns: i64,
    /// Sequence of the last journal entry sealed with it; `None` if it has no entries.
    last_sequence: Option<i64>,
    /// Number of aborted attempts.
    aborts: i32,
}

/// A request whose transaction was aborted.
struct AbortedCommit {
    request: Box<CommitRequest>,
    again_at_ns: i64,
}

impl Commits {
    pub(super) fn begin(&mut self, now_ns: i64) {
        self.last_ns = now_ns;
    }
}

impl Core {
    /// True if a commit is under way, or waits to be sent again.
    pub(super) fn is_committing(&self) -> bool {
        self.commits.under_way.is_some()
    }

    /// Time at which the commit under way was sealed; `None` if none is under way.
    pub(super) fn committing_since_ns(&self) -> Option<i64> {
        self.commits.under_way.as_ref().map(|under_way| under_way.sealed_ns)
    }

    /// Time since which aborts have prevented every commit; `None` if the last attempt succeeded.
    pub(super) fn aborting_since_ns(&self) -> Option<i64> {
        self.commits.outage.as_ref().map(Outage::began_ns)
    }

    /// Time from which a commit is due; `None` if that does not depend on time alone.
    pub(super) fn commit_at_ns(&self) -> Option<i64> {
        match &self.commits.aborted {
            Some(aborted) => Some(aborted.again_at_ns),
            None => (!self.is_committing() && self.has_uncommitted()).then(|| self.commit_due_ns()),
        }
    }

    fn commit_due_ns(&self) -> i64 {
        let hurry = self.is_full() || self.is_drained() || self.membership.is_revoking();
        if hurry {
            return self.commits.last_ns;
        }
        let times = &self.config.times;
        let interval_ns = match self.has_risk_results() || self.control.has_answers() {
            true => times.risk_commit_interval_ns.min(times.commit_interval_ns),
            false => times.commit_interval_ns,
        };
        self.commits.last_ns + interval_ns
    }

    /// Seals and sends a commit of complete outputs, or sends an aborted request again, if that is due.
    pub(super) fn commit_if_due(&mut self, now_ns: i64) -> Result<(), RecordError> {
        if let Some(aborted) = self.commits.aborted.take_if(|aborted| aborted.again_at_ns <= now_ns) {
            let mut request = aborted.request;
            self.amend(&mut request);
            self.commands.push_back(Command::Commit(request));
            return Ok(());
        }
        if self.is_committing() || now_ns < self.commit_due_ns() || !self.has_uncommitted() {
            return Ok(());
        }
        let request = self.seal(now_ns)?;
        self.commits.last_ns = now_ns;
        let last_sequence = (!request.entries.is_empty()).then(|| self.recorder.next_sequence() - 1);
        self.commits.under_way = Some(CommitUnderWay { sealed_ns: now_ns, last_sequence, aborts: 0 });
        self.commands.push_back(Command::Commit(Box::new(request)));
        Ok(())
    }

    /// Gives up a commit that the log does not answer, if the process is to end.
    pub(super) fn check_commit(&self, now_ns: i64) -> Result<(), CoreError> {
        let (Some(since_ns), Some(under_way)) = (self.stopping.since_ns, &self.commits.under_way) else {
            return Ok(());
        };
        let waited_ns = now_ns - under_way.sealed_ns.max(since_ns);
        if waited_ns < COMMIT_STOPPING_NS_MAX {
            return Ok(());
        }
        Err(CoreError::CommitUnanswered { waited_s: waited_ns / 1_000_000_000 })
    }

    /// Handles a commit: the request of the last [`Command::Commit`] is durable and visible.
    pub(super) fn on_committed(&mut self, now_ns: i64, attempt: CommitAttempt) -> Result<(), RecordError> {
        self.record_outcome(now_ns, attempt, CommitOutcome::Committed)?;
        self.commits.under_way = None;
        self.commits.outage = None;
        self.find_pages();
        Ok(())
    }

    /// Handles an abort: nothing of the request of the last [`Command::Commit`] was written, for this reason. Outputs
    /// are a function of the log, so the request stays valid except for partitions that other processes own by now.
    pub(super) fn on_aborted(
        &mut self,
        now_ns: i64,
        attempt: CommitAttempt,
        request: Box<CommitRequest>,
        reason: String,
    ) -> Result<(), RecordError> {
        if self.commits.outage.is_none() {
            self.commands.push_back(Command::Lifecycle(LifecycleEvent::CommitFailed, reason));
        }
        let outage = self.commits.outage.get_or_insert_with(|| Outage::begin(now_ns));
        if outage.is_given_up(now_ns, self.stopping.since_ns) {
            self.commands.push_back(Command::GiveUp);
            return Ok(());
        }
        let again_at_ns = now_ns + outage.next_pause_ns();
        self.commits.aborted = Some(AbortedCommit { request, again_at_ns });
        self.record_outcome(now_ns, attempt, CommitOutcome::Aborted)
    }

    /// Records the outcome of an attempt. A transaction without journal entries is not recorded, because the journal
    /// has no sequence to name it by.
    fn record_outcome(
        &mut self,
        now_ns: i64,
        attempt: CommitAttempt,
        outcome: CommitOutcome,
    ) -> Result<(), RecordError> {
        let Some(under_way) = &mut self.commits.under_way else { return Ok(()) };
        let number = under_way.aborts + 1;
        under_way.aborts += i32::from(outcome == CommitOutcome::Aborted);
        let Some(sealed) = under_way.last_sequence else { return Ok(()) };
        let CommitAttempt { sent_ns, ended_ns, looked_up } = attempt;
        let ended = CommitEnded { sealed, attempt: number, sent_ns, ended_ns, outcome, looked_up };
        self.step(now_ns, Input::CommitEnded(ended))
    }

    /// True if a commit would contain anything.
    pub(super) fn has_uncommitted(&self) -> bool {
        self.recorder.has_news()
            || self.partitions.values().any(Partition::has_unsealed)
            || self.risk.partitions.values().any(RequestPartition::has_uncommitted)
            || self.control.has_answers()
    }

    /// Gathers the outputs of complete records and the journal entries of all decisions so far. The last entry accounts
    /// for the outputs.
    fn seal(&mut self, now_ns: i64) -> Result<CommitRequest, RecordError> {
        let mut accounts = Vec::new();
        let mut request = CommitRequest { sealed_at_ns: now_ns, ..CommitRequest::default() };
        let bytes_max = self.config.limits.commit_bytes_max / self.partitions.len().max(1);
        for owned in self.partitions.values_mut() {
            let before = owned.sealed_offset;
            let Some(assignment) = self.membership.assignment(owned.source.partition) else { continue };
            let mut sealed = owned.seal(assignment, bytes_max, &mut request.receipt);
            let requests = self.risk.partitions.get_mut(&sealed.partition);
            let next_request = requests.and_then(|requests| requests.seal(bytes_max, &mut sealed));
            let next = next_request.as_ref().map(|(_, next)| *next);
            accounts.extend(sealed.account(before, owned.sealed_offset, next));
            request.offsets.extend(next_request);
            // A requested segment begins in all partitions, also in those without new ticks, so that the operator asks
            // for it only once.
            let begins = owned.sealed_offset > before || self.config.new_segment;
            if begins && take(&mut owned.segment_due) {
                let segment = segment_record(sealed.partition, before, &self.config.stages);
                sealed.add_snapshot(SnapshotPlace::default(), &segment);
            }
            request.sealed.push(sealed);
            let moves = owned.sealed_offset > before;
            request.receipt.advances |= moves;
            if take(&mut owned.offset_due) || moves {
                request.offsets.push((owned.source.clone(), owned.sealed_offset));
            }
        }
        if self.recorder.are_positions_due() {
            self.write_positions(now_ns)?;
        }
        if !accounts.is_empty() {
            self.step(now_ns, Input::Sealed(Sealed { partitions: accounts }))?;
        } else if self.recorder.has_entries() {
            request.journal_end = Some(self.recorder.next_sequence());
        }
        request.entries = self.recorder.take_entries();
        request.control = self.control.seal();
        Ok(request)
    }

    /// Prepares an aborted request to be sent again. Drops outputs of partitions that other processes own by now; the
    /// same transaction records that in the journal.
    fn amend(&mut self, request: &mut CommitRequest) {
        if request
            .retain_owned(|partition, assignment| self.membership.assignment(partition) == Some(assignment))
        {
            request.entries.extend(self.recorder.take_entries());
            request.journal_end = Some(self.recorder.next_sequence());
        }
    }
}
