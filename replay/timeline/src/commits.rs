//! Draws transactions: the attempts to commit them, and their parts in partitions.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write};

use warptape_replay::history::{SealedPart, Transaction};
use warptape_schemas::journal::CommitOutcome;

use crate::names::{Key, Name};
use crate::packets::{Event, Notes, number, text};
use crate::proto::DebugAnnotation;
use crate::timeline::Timeline;
use crate::tracks::{Of, Overlap};

/// Greatest number of partitions whose offsets a commit names. Each partition has its offsets on its own track.
const PARTITIONS_NAMED_MAX: usize = 8;

impl<W: Write> Timeline<W> {
    /// Draws a transaction from its seal, or its first attempt, until its commit was known. If the commit is not in the
    /// journal, it ends at the last attempt or the seal.
    pub(crate) fn transaction(&mut self, transaction: &Transaction) -> io::Result<()> {
        let first_sent_ns = transaction.attempts.first().map(|attempt| attempt.sent_ns);
        let Some(begin_ns) = transaction.last_ns.or(first_sent_ns) else { return Ok(()) };
        let end_ns = transaction.attempts.last().map_or(begin_ns, |last| last.ended_ns);
        for part in &transaction.partitions {
            let notes = notes_of(part, transaction.sealed_sequence);
            let of = Of::Transactions(part.account.partition);
            let event = Event { notes, ..Event::default() };
            self.slice(of, (begin_ns, end_ns), Overlap::Maybe, Name::Sealed, event)?;
        }
        let batches = transaction.partitions.iter().flat_map(|part| &part.batches);
        let batches: BTreeSet<i64> = batches.map(|batch| batch.dispatch.batch).collect();
        let flows = batches.iter().map(|batch| self.flow_of_batch(*batch)).collect();
        let mut notes = commit_notes(transaction, batches.len());
        notes.extend(
            transaction
                .sealed_ns
                .zip(first_sent_ns)
                .map(|(sealed_ns, sent_ns)| number(Key::SealWait, sent_ns.saturating_sub(sealed_ns))),
        );
        notes.extend(self.before_window(begin_ns));
        let Some((row, span)) = self.room(Of::Commits, begin_ns, end_ns, Overlap::Maybe)? else {
            return Ok(());
        };
        self.drawn.commits += 1;
        let name = match transaction.committed_ns() {
            Some(_) => Name::Commit,
            None => Name::CommitUntimed,
        };
        self.out.begin(row, span.begin_ns, name, Event { flows, notes, ..Event::default() })?;
        let mut free_ns = span.begin_ns;
        for attempt in &transaction.attempts {
            let begin_ns = attempt.sent_ns.clamp(free_ns, span.end_ns);
            let name = match attempt.outcome {
                CommitOutcome::Committed => Name::Attempt,
                CommitOutcome::Aborted => Name::AttemptAborted,
            };
            let notes = attempt.looked_up.then(|| number(Key::LookedUp, 1)).into_iter().collect();
            free_ns = attempt.ended_ns.clamp(begin_ns, span.end_ns);
            self.out.begin(row, begin_ns, name, Event { notes, ..Event::default() })?;
            self.out.end(row, free_ns)?;
        }
        self.out.end(row, span.end_ns)
    }
}

fn commit_notes(transaction: &Transaction, batches: usize) -> Notes {
    let sum = |of: fn(&SealedPart) -> i64| transaction.partitions.iter().map(of).fold(0, i64::saturating_add);
    let mut notes = vec![number(Key::SealedSequence, transaction.sealed_sequence)];
    notes.extend(transaction.first_sequence.map(|first| number(Key::FirstSequence, first)));
    notes.extend([
        number(Key::Attempts, transaction.attempts.len() as i64),
        number(Key::Batches, batches as i64),
        number(Key::Signals, sum(|part| part.account.signals)),
        text(Key::Offsets, &offsets_of(transaction)),
    ]);
    let late = sum(|part| part.account.late);
    let dead_letters = sum(|part| part.account.dead_letters);
    notes.extend(exceptions(late, dead_letters, sum(|part| part.account.risk_results)));
    notes
}

/// Returns the offsets of the first partitions, such as `0: 12..40, 3: 7..9`.
fn offsets_of(transaction: &Transaction) -> String {
    let mut offsets = String::new();
    for part in transaction.partitions.iter().take(PARTITIONS_NAMED_MAX) {
        let separator = if offsets.is_empty() { "" } else { ", " };
        let account = part.account;
        let (partition, first, next) = (account.partition, account.first_offset, account.next_offset);
        write!(offsets, "{separator}{partition}: {first}..{next}").expect("a string takes all of it");
    }
    if transaction.partitions.len() > PARTITIONS_NAMED_MAX {
        offsets += ", …";
    }
    offsets
}

fn notes_of(part: &SealedPart, sealed_sequence: i64) -> Notes {
    let account = part.account;
    let mut notes = vec![
        number(Key::SealedSequence, sealed_sequence),
        number(Key::FirstOffset, account.first_offset),
        number(Key::NextOffset, account.next_offset),
        number(Key::Signals, account.signals),
        number(Key::Batches, part.batches.len() as i64),
    ];
    notes.extend(exceptions(account.late, account.dead_letters, account.risk_results));
    notes
}

/// Returns counts that are 0 in most transactions; only those that are not 0.
fn exceptions(late: i64, dead_letters: i64, risk_results: i64) -> impl Iterator<Item = DebugAnnotation> {
    let all = [(Key::Late, late), (Key::DeadLetters, dead_letters), (Key::RiskResults, risk_results)];
    all.into_iter().filter(|(_, count)| *count != 0).map(|(key, count)| number(key, count))
}
