//! A commit request as a transaction.
//!
//! What the stages made of ticks is a function of the log, so that a request whose transaction was aborted is sent again
//! as it is: no state has to be taken back.

use warptape_eventlog::{EventLog, LogError, Producer};

use super::EngineConfig;
use super::commit::CommitRequest;
use super::failpoint::{self, Failpoint};
use super::journal_tail::last_record;
use super::ownership::Ownership;
use crate::transaction::Transaction;

/// A request, and the names it is written under.
pub(super) struct EngineTransaction<'a> {
    pub(super) request: &'a CommitRequest,
    pub(super) config: &'a EngineConfig,
    pub(super) ownership: &'a Ownership,
}

impl Transaction for EngineTransaction<'_> {
    fn send(&self, producer: &mut dyn Producer) -> Result<(), LogError> {
        let EngineConfig { topics, node, ordinal, group, .. } = self.config;
        for record in self.request.records(topics, node, *ordinal) {
            let is_snapshot = record.topic == topics.snapshots;
            producer.send(record)?;
            if is_snapshot {
                failpoint::reach(Failpoint::DuringSnapshot);
            }
        }
        failpoint::reach(Failpoint::AfterProduce);
        producer.send_offsets(group, &self.request.offsets)?;
        failpoint::reach(Failpoint::AfterSendOffsets);
        failpoint::reach_soon(Failpoint::DuringCommit);
        Ok(())
    }

    fn is_owner(&self) -> bool {
        self.request.sealed.iter().all(|sealed| self.ownership.holds(sealed.partition, sealed.assignment))
    }

    /// The journal tells, which nobody else writes; a request without entries has moved offsets.
    fn is_committed(&self, log: &dyn EventLog) -> Result<bool, LogError> {
        let EngineConfig { topics, ordinal, group, .. } = self.config;
        if let Some(entry) = self.request.last_entry() {
            let last = last_record(log, &topics.journal, *ordinal)?;
            return Ok(last.is_some_and(|record| record.value == entry));
        }
        // A partition that went to another process meanwhile may be further by now.
        for (source, next) in &self.request.offsets {
            if log.committed(group, source)?.is_none_or(|committed| committed < *next) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
