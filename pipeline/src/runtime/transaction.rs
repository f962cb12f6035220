//! Writes a commit request as a transaction.
//!
//! Outputs of the stages are a function of the log, so an aborted request can be sent again unchanged, without rolling
//! back any state.

use warptape_engine::{CommitRequest, Config};
use warptape_eventlog::{EventLog, LogError, Producer, TopicPartition};
use warptape_schemas::decode_journal_entry;

use super::EngineConfig;
use super::anchoring::{Anchors, with_anchor};
use super::commit::records_of;
use super::failpoint::{self, Failpoint};
use super::fence::Fence;
use super::journal_tail::last_record;
use crate::transaction::Transaction;

/// A request, with the names that its records need.
pub(super) struct EngineTransaction<'a> {
    pub(super) request: &'a CommitRequest,
    pub(super) config: &'a EngineConfig,
    pub(super) fence: &'a Fence,
    pub(super) anchors: Option<&'a Anchors>,
}

impl Transaction for EngineTransaction<'_> {
    fn send(&self, producer: &mut dyn Producer) -> Result<(), LogError> {
        let EngineConfig { core: Config { topics, node, group, .. }, ordinal, .. } = self.config;
        let header = self.anchors.and_then(|anchors| anchors.sign(self.request));
        let records = records_of(self.request, topics, node, *ordinal);
        for record in with_anchor(records, &topics.journal, self.request.entries.len(), header) {
            let is_snapshot = record.topic == topics.snapshots;
            producer.send(record)?;
            if is_snapshot {
                failpoint::reach(Failpoint::DuringSnapshot);
            }
        }
        failpoint::reach(Failpoint::AfterProduce);
        producer.send_offsets(group, &self.request.offsets)?;
        if let Some(next_sequence) = self.request.journal_end {
            let journal = TopicPartition { topic: topics.journal.clone(), partition: *ordinal };
            producer.send_position(group, &journal, next_sequence)?;
        }
        producer.send_offsets(group, self.request.control.next.as_slice())?;
        failpoint::reach(Failpoint::AfterSendOffsets);
        failpoint::reach_soon(Failpoint::DuringCommit);
        Ok(())
    }

    fn is_owner(&self) -> bool {
        self.request.sealed.iter().all(|sealed| self.fence.is_open(sealed.partition, sealed.assignment))
    }

    /// True if another process with the same ordinal has continued the journal's chain without this request.
    fn is_superseded(&self, log: &dyn EventLog) -> Result<bool, LogError> {
        let EngineConfig { core: Config { topics, .. }, ordinal, .. } = self.config;
        let (Some(first), Some(last)) = (self.request.first_entry(), self.request.last_entry()) else {
            return Ok(false);
        };
        let newest = last_record(log, &topics.journal, *ordinal)?;
        Ok(newest.is_some_and(|newest| is_of_another(&newest.value, first, last)))
    }

    /// True if the request is in the log. The journal shows it, because only this process writes the journal. A request
    /// without entries is recognised by its committed offsets.
    fn is_committed(&self, log: &dyn EventLog) -> Result<bool, LogError> {
        let EngineConfig { core: Config { topics, group, .. }, ordinal, .. } = self.config;
        if let Some(entry) = self.request.last_entry() {
            let last = last_record(log, &topics.journal, *ordinal)?;
            return Ok(last.is_some_and(|record| record.value == entry));
        }
        // Another process may own the partition now, and may have committed later offsets.
        let mut offsets = self.request.offsets.iter().chain(&self.request.control.next).peekable();
        // Snapshot parts alone do not show the outcome of their transaction; they may be written twice.
        let tells = offsets.peek().is_some();
        for (source, next) in offsets {
            if log.committed(group, source)?.is_none_or(|committed| committed < *next) {
                return Ok(false);
            }
        }
        Ok(tells)
    }
}

/// True if another process wrote the newest entry of a journal. Such an entry has at least the sequence of the
/// request's first entry, and is not the request's last one.
fn is_of_another(newest: &[u8], first: &[u8], last: &[u8]) -> bool {
    let sequence = |bytes: &[u8]| decode_journal_entry(bytes).ok().map(|entry| entry.sequence);
    newest != last && sequence(newest) >= sequence(first)
}

#[cfg(test)]
mod tests {
    use warptape_engine::Sealed;
    use warptape_eventlog::{Durability, SqliteLog};
    use warptape_schemas::JournalWriter;
    use warptape_schemas::journal::{Input, Woke};

    use super::*;
    use crate::runtime::{TopicPlan, topic_specs};
    use crate::settings::{Sources, load};

    #[test]
    fn a_chain_that_went_on_otherwise_is_another_process_s() {
        let mut writer = JournalWriter::new();
        let mut entry = |at_ns| {
            let mut bytes = Vec::new();
            writer.append(at_ns, &Input::Woke(Woke {}), &[], 0, &mut bytes);
            bytes
        };
        let [before, first, last] = [1, 2, 3].map(&mut entry);
        let mut other =
            JournalWriter::resume(&decode_journal_entry(&before).expect("an entry")).expect("a chain");
        let mut others = Vec::new();
        other.append(7, &Input::Woke(Woke {}), &[], 0, &mut others);
        assert!(!is_of_another(&before, &first, &last), "the transaction is not there");
        assert!(!is_of_another(&last, &first, &last), "it is there");
        assert!(!is_of_another(b"garbage", &first, &last), "no entry");
        assert!(is_of_another(&others, &first, &last), "an entry with the sequence of the first");
    }

    #[test]
    fn parts_of_a_snapshot_alone_do_not_tell_that_they_were_committed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let log = SqliteLog::open(folder.path().join("w.db"), Durability::Process).expect("a log");
        let config = load(&Sources::default()).expect("the defaults are good").0.engine_config(None);
        let topics = topic_specs(&config.core.topics, &TopicPlan::new(1));
        log.create_topics(&topics).expect("new topics");
        let fence = Fence::default();
        let snapshots = vec![("0/0/0".to_owned(), vec![1])];
        let parts = CommitRequest {
            sealed: vec![Sealed { snapshots, ..Sealed::default() }],
            ..CommitRequest::default()
        };
        let transaction =
            EngineTransaction { request: &parts, config: &config, fence: &fence, anchors: None };
        // The request is sent again, which does no harm.
        assert!(!transaction.is_committed(&log).expect("the log is readable"));
        let source = TopicPartition { topic: config.core.topics.ticks.clone(), partition: 0 };
        let with_offset = CommitRequest { offsets: vec![(source.clone(), 5)], ..parts };
        let transaction =
            EngineTransaction { request: &with_offset, config: &config, fence: &fence, anchors: None };
        assert!(!transaction.is_committed(&log).expect("the log is readable"));
        let mut producer = log.producer("a").expect("a producer");
        producer.begin().expect("a transaction");
        producer.send_offsets(&config.core.group, &[(source, 5)]).expect("it is taken");
        producer.commit().expect("it is committed");
        assert!(transaction.is_committed(&log).expect("the log is readable"));
    }
}
