//! Checks outcomes of transactions in the journal, one transaction after the other, with their attempts.

use warptape_schemas::journal::{CommitEnded, CommitOutcome, Input, JournalEntry};

use crate::difference::Difference;

/// Checks the outcomes of one process life.
#[derive(Default)]
pub(super) struct CommitCheck {
    /// True if every `Sealed` entry must have its outcome before the next one.
    is_complete: bool,
    /// The newest `Sealed` entry, while its outcome is missing.
    awaited: Option<Awaited>,
    /// The newest attempt.
    last: Option<CommitEnded>,
    /// True if a partition was revoked since the newest `Sealed` entry. The transaction may then contain later entries.
    has_revoked: bool,
}

/// A transaction whose outcome has not appeared yet.
#[derive(Clone, Copy)]
struct Awaited {
    sequence: i64,
    at_ns: i64,
}

impl CommitCheck {
    /// Creates the check of a life whose beginning is unknown.
    pub(super) fn unknown() -> Self {
        Self { is_complete: false, ..Self::default() }
    }

    /// Creates the check of a life from its beginning.
    pub(super) fn whole() -> Self {
        Self { is_complete: true, ..Self::default() }
    }

    /// Returns the difference in the next entry.
    pub(super) fn check(&mut self, entry: &JournalEntry) -> Option<Difference> {
        match &entry.input {
            Input::Sealed(_) => {
                // Only one transaction is in progress at a time: this one is sealed after the previous one was
                // committed.
                let open = self.last.filter(|last| last.outcome == CommitOutcome::Aborted);
                let before = self.awaited.map(|awaited| awaited.sequence).or(open.map(|open| open.sealed));
                let missing = before.filter(|_| self.is_complete).map(missing);
                // From here on, the journal is known to have outcomes.
                let &JournalEntry { sequence, at_ns, .. } = entry;
                (self.awaited, self.has_revoked) = (Some(Awaited { sequence, at_ns }), false);
                missing
            }
            Input::PartitionRevoked(_) => {
                self.has_revoked = true;
                None
            }
            Input::CommitEnded(ended) => self.end_attempt(entry, ended),
            _ => None,
        }
    }

    /// Returns the difference at the end of the life.
    pub(super) fn end(&self) -> Option<Difference> {
        let is_open = self.last.is_some_and(|last| last.outcome == CommitOutcome::Aborted);
        // Entries in the journal are committed, so a later attempt must have succeeded. A later transaction records it,
        // or the same one if it was changed because a partition was revoked.
        let is_wrong = self.is_complete && is_open && !self.has_revoked;
        is_wrong.then(|| Difference::new("input.CommitEnded.outcome", "COMMITTED", "ABORTED"))
    }

    fn end_attempt(&mut self, entry: &JournalEntry, ended: &CommitEnded) -> Option<Difference> {
        let last = self.last.replace(*ended);
        let open = last.filter(|last| last.outcome == CommitOutcome::Aborted);
        let differs = |name: &str, expected: i64, found: i64| {
            Some(Difference::new(format!("input.CommitEnded.{name}"), expected, found))
        };
        let named = self.awaited.map(|awaited| awaited.sequence).or(open.map(|open| open.sealed));
        let after = last.map_or(-1, |last| last.sealed);
        let is_right = match named {
            Some(named) => ended.sealed == named,
            None => (after.saturating_add(1)..entry.sequence).contains(&ended.sealed),
        };
        let again = open.filter(|open| open.sealed == ended.sealed);
        let attempt = again.map_or(1, |open| open.attempt.saturating_add(1));
        let earliest_ns = match (again, self.awaited) {
            (Some(open), _) => open.ended_ns,
            (None, Some(awaited)) => awaited.at_ns,
            (None, None) => last.map_or(i64::MIN, |last| last.ended_ns),
        };
        if ended.outcome == CommitOutcome::Committed {
            self.awaited = None;
        }
        match () {
            // If the life's beginning is unknown, the transaction may have begun earlier.
            () if !is_right && (self.is_complete || last.is_some()) => {
                differs("sealed", named.unwrap_or(entry.sequence - 1), ended.sealed)
            }
            () if ended.attempt != attempt && (self.is_complete || again.is_some()) => {
                differs("attempt", attempt.into(), ended.attempt.into())
            }
            () if ended.sent_ns < earliest_ns => differs("sent_ns", earliest_ns, ended.sent_ns),
            () if ended.ended_ns < ended.sent_ns => differs("ended_ns", ended.sent_ns, ended.ended_ns),
            () if ended.ended_ns > entry.at_ns => differs("ended_ns", entry.at_ns, ended.ended_ns),
            () => None,
        }
    }
}

fn missing(sequence: i64) -> Difference {
    let expected = format!("the commit of the transaction of sequence {sequence} before it");
    Difference::new("input.Sealed", expected, "none")
}
