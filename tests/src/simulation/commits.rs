//! Checks the records that a journal has of its process's commits.

use warptape_schemas::journal::{CommitOutcome, Input, JournalEntry};

/// The entries of one process life that were read so far.
#[derive(Default)]
pub(super) struct Commits {
    /// Times of the life's entries, in order of sequence.
    times: Vec<i64>,
    first_sequence: i64,
    /// Sequence of the newest `Sealed` that is not known to be committed; `None` if there is none.
    open: Option<i64>,
    /// The newest outcome: its transaction and attempt, the outcome itself, and its end time; `None` before the first.
    last: Option<(i64, i32, CommitOutcome, i64)>,
}

impl Commits {
    /// Adds the next entry. Each `Sealed` except the last of a life must have an outcome before the next one. The times
    /// of sealing, sending, ending and reporting must never decrease.
    pub(super) fn add(&mut self, entry: &JournalEntry) -> Result<(), String> {
        if matches!(entry.input, Input::Started(_)) {
            *self = Self { first_sequence: entry.sequence, ..Self::default() };
        }
        self.times.push(entry.at_ns);
        match &entry.input {
            Input::Sealed(_) => match self.open.replace(entry.sequence) {
                Some(open) => Err(format!("the commit of entry {open} has no outcome")),
                None => Ok(()),
            },
            Input::CommitEnded(ended) => {
                let sealed_ns = usize::try_from(ended.sealed - self.first_sequence)
                    .ok()
                    .and_then(|index| self.times.get(index))
                    .ok_or_else(|| format!("{ended:?} is of no entry of this life"))?;
                let (attempt, not_before_ns) = match self.last {
                    Some((sealed, attempt, CommitOutcome::Aborted, ended_ns)) if sealed == ended.sealed => {
                        (attempt + 1, ended_ns)
                    }
                    Some((sealed, _, CommitOutcome::Committed, ended_ns)) if sealed < ended.sealed => {
                        (1, ended_ns)
                    }
                    Some(last) => return Err(format!("{ended:?} follows {last:?}")),
                    None => (1, *sealed_ns),
                };
                let times = [*sealed_ns, ended.sent_ns, ended.ended_ns, entry.at_ns];
                if !times.is_sorted() || ended.sent_ns < not_before_ns || ended.attempt != attempt {
                    return Err(format!("{ended:?} of an entry at {sealed_ns} follows {:?}", self.last));
                }
                self.last = Some((ended.sealed, attempt, ended.outcome, ended.ended_ns));
                if ended.outcome == CommitOutcome::Committed {
                    self.open.take_if(|open| *open == ended.sealed);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use warptape_schemas::hex::Digits;
    use warptape_schemas::journal::{CommitEnded, Sealed};

    use super::*;

    fn sealed() -> Input {
        Input::Sealed(Sealed::default())
    }

    fn ended(sealed: i64, attempt: i32, at_ns: [i64; 2], outcome: CommitOutcome) -> Input {
        let [sent_ns, ended_ns] = at_ns;
        Input::CommitEnded(CommitEnded { sealed, attempt, sent_ns, ended_ns, outcome, looked_up: false })
    }

    /// Each entry is written ten nanoseconds after the previous one.
    fn is_right(inputs: Vec<Input>) -> bool {
        let mut commits = Commits::default();
        (0..).zip(inputs).all(|(sequence, input)| {
            let (state_hash, hash) = (Digits::zeros(), Digits::zeros());
            let at_ns = 10 * sequence;
            commits
                .add(&JournalEntry { sequence, at_ns, input, decisions: Vec::new(), state_hash, hash })
                .is_ok()
        })
    }

    #[test]
    fn what_a_journal_must_not_say_of_commits_is_found() {
        use CommitOutcome::{Aborted, Committed};
        let aborted = || ended(0, 1, [0, 5], Aborted);
        assert!(is_right(vec![sealed(), aborted(), ended(0, 2, [5, 20], Committed), sealed()]));
        assert!(!is_right(vec![sealed(), sealed()]), "no outcome");
        assert!(!is_right(vec![sealed(), aborted(), sealed()]), "not committed");
        assert!(!is_right(vec![sealed(), ended(1, 1, [0, 5], Aborted)]), "of no transaction before it");
        assert!(!is_right(vec![sealed(), ended(0, 2, [0, 5], Committed)]), "an attempt is missing");
        assert!(!is_right(vec![sealed(), aborted(), ended(0, 2, [4, 20], Committed)]), "sent too early");
        assert!(!is_right(vec![sealed(), ended(0, 1, [0, 11], Committed)]), "told too early");
        let twice = || ended(0, 1, [0, 5], Committed);
        assert!(!is_right(vec![sealed(), twice(), twice()]), "told twice");
    }
}
