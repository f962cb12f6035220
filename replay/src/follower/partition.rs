//! Follows one partition of the ticks: compares its ticks and outputs, transaction by transaction.

use std::sync::Arc;

use warptape_engine::Restored;
use warptape_eventlog::{EventLog, LogError, OffsetRange, TopicPartition};
use warptape_stages::StageConfig;

use crate::accounts::{Covered, DigestCheck, SealedRange};
use crate::cause::{self, CauseOf};
use crate::comparison::Comparison;
use crate::cut::Shelf;
use crate::error::no_topic;
use crate::outputs::{SegmentRerun, divergence, process};
use crate::partition_reader::PartitionReader;
use crate::rerun::{Outputs, Rerun};
use crate::segments::{self, Segment, is_same};
use crate::tally::Tally;
use crate::{Divergence, OutputCounts, OutputOptions, ReplayError, Unaccounted, snapshot};

/// The account of one partition's part of a transaction.
pub(super) struct Account {
    /// Partition of the journal.
    pub(super) journal: i32,
    /// Offset of the journal entry.
    pub(super) offset: i64,
    pub(super) sequence: i64,
    /// Stage configuration with which the ticks were processed.
    pub(super) config: Arc<str>,
    /// First record of the state, if the state began after removed records when the partition was assigned.
    pub(super) fold: Option<i64>,
    pub(super) range: SealedRange,
    pub(super) state: AccountState,
    /// True if the journal did not show that the transaction was committed with this partition. The group's offset may
    /// then come from another process that processed the ticks again.
    pub(super) was_doubted: bool,
}

/// How far it is known that a transaction was committed with the partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccountState {
    /// The entries read so far do not show it.
    InFlight,
    /// The group's offset must show it.
    Asked,
    Committed,
}

/// Ticks that no entry accounts for, although entries account for later ones.
pub(super) struct Gap {
    pub(super) sequence: i64,
    from: i64,
    to: i64,
}

impl Gap {
    pub(super) fn describe(
        &self,
        log: &dyn EventLog,
        sources: &OutputOptions,
        partition: i32,
    ) -> Result<Unaccounted, LogError> {
        let source = TopicPartition { topic: sources.ticks.clone(), partition };
        Ok(Unaccounted {
            topic: sources.ticks.clone(),
            partition,
            group: sources.group.clone(),
            accounted_offset: self.from,
            resumed_offset: Some(self.to),
            committed_offset: log.committed(&sources.group, &source)?.unwrap_or(self.to),
            orphans: Vec::new(),
        })
    }
}

/// Follows one partition of the ticks.
#[derive(Default)]
pub(super) struct PartitionFollower {
    /// Transactions that were read but not compared, ordered by their first tick record.
    waiting: Vec<Account>,
    /// The next tick record whose outputs are compared; `None` until the beginning of the comparison is known.
    next: Option<i64>,
    /// Next tick record at which there may be a gap: the journals were read to their ends, and account only for later
    /// records.
    gap_at: Option<i64>,
    /// The stages before the next tick record, with their configuration. If their state began after removed records,
    /// also the state's first record.
    state: Option<(Arc<str>, Option<i64>, Rerun)>,
    /// Offsets of the next signal, late tick and dead letter; `None` if they must be searched for.
    outputs: Option<[i64; 3]>,
    /// Notes on skipped parts that were not taken yet.
    notes: Vec<String>,
    /// True if the last chain was cut, so that more transactions can be compared.
    is_cut: bool,
}

impl PartitionFollower {
    /// Adds the account of an entry.
    pub(super) fn add(&mut self, account: Account) {
        let index = self.waiting.partition_point(|of| of.range.first <= account.range.first);
        self.waiting.insert(index, account);
    }

    /// Records that the last transaction of a journal was committed unchanged.
    pub(super) fn confirm(&mut self, journal: i32) {
        self.set(journal, AccountState::Committed);
    }

    /// Records that the journal does not show whether its last transaction was committed with this partition.
    pub(super) fn doubt(&mut self, journal: i32) {
        self.set(journal, AccountState::Asked);
    }

    fn set(&mut self, journal: i32, state: AccountState) {
        let mut waiting = self.waiting.iter_mut();
        let in_flight = |of: &&mut Account| of.journal == journal && of.state == AccountState::InFlight;
        if let Some(account) = waiting.rfind(in_flight) {
            account.state = state;
            account.was_doubted = state == AccountState::Asked;
        }
    }

    /// Returns the notes on skipped parts, and forgets them.
    pub(super) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// True if the last chain was cut.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns the number of a journal's transactions that were read but not compared.
    pub(super) fn waiting(&self, journal: i32) -> usize {
        self.waiting.iter().filter(|account| account.journal == journal).count()
    }

    /// Returns offset and sequence of a journal's first entry whose transaction was not compared; `None` if there is
    /// none.
    pub(super) fn waits_for(&self, journal: i32) -> Option<(i64, i64)> {
        let of_journal = self.waiting.iter().filter(|account| account.journal == journal);
        of_journal.map(|account| (account.offset, account.sequence)).min()
    }

    /// Asks the log for the group's offset if only that shows whether the next transaction was committed.
    pub(super) fn settle(
        &mut self,
        log: &dyn EventLog,
        sources: &OutputOptions,
        partition: i32,
    ) -> Result<(), LogError> {
        let is_asked = |account: &Account| {
            account.state == AccountState::Asked && self.next.is_none_or(|next| account.range.first <= next)
        };
        if self.waiting.iter().any(is_asked) {
            let source = TopicPartition { topic: sources.ticks.clone(), partition };
            let committed = log.committed(&sources.group, &source)?.unwrap_or(0);
            let asked = self.waiting.iter_mut().filter(|of| of.state == AccountState::Asked);
            asked
                .filter(|of| of.range.next <= committed)
                .for_each(|account| account.state = AccountState::Committed);
        }
        Ok(())
    }

    /// Removes and returns the consecutive transactions from the next tick record on, at most `most`. It is a gap if
    /// only later transactions exist, the journals were read to their ends twice, and no journal has lost its
    /// beginning.
    pub(super) fn take_chain(
        &mut self,
        is_at_end: bool,
        is_headless: bool,
        most: usize,
    ) -> Result<Vec<Account>, Gap> {
        self.is_cut = false;
        let Some(mut next) = self.next.or_else(|| self.begin_of_last_run()) else { return Ok(Vec::new()) };
        self.next = Some(next);
        let (mut chain, mut rest) = (Vec::new(), Vec::new());
        // Among transactions with the same beginning, those that the journal confirms as committed come first. A
        // doubted one may have excluded the partition, so it counts only if all journals were read and there is no
        // other.
        let mut doubted = None;
        let mut waiting = std::mem::take(&mut self.waiting).into_iter().peekable();
        loop {
            if chain.len() >= most {
                self.is_cut = true;
                break;
            }
            let goes_on = waiting.peek().is_some_and(|account| account.range.first <= next);
            let taken: Option<Account> = match waiting.next_if(|_| goes_on) {
                Some(account) if account.state != AccountState::Committed => {
                    rest.push(account);
                    continue;
                }
                // The excluded records were processed again, perhaps divided differently.
                Some(account) if account.range.next <= next => continue,
                Some(account) if account.was_doubted => {
                    match doubted {
                        None => doubted = Some(account),
                        Some(_) => rest.push(account),
                    }
                    continue;
                }
                Some(account) => Some(account),
                None => doubted.take_if(|_| is_at_end),
            };
            let Some(account) = taken.filter(|account| account.range.next > next) else {
                if goes_on { continue } else { break }
            };
            next = account.range.next;
            chain.push(account);
        }
        rest.extend(doubted);
        rest.extend(waiting);
        rest.retain(|account| account.range.next > next);
        rest.sort_by_key(|account| account.range.first);
        self.waiting = rest;
        if !chain.is_empty() {
            self.gap_at = None;
            return Ok(chain);
        }
        let is_committed = |account: &&Account| account.state == AccountState::Committed;
        let resumed = self.waiting.iter().find(is_committed).filter(|_| is_at_end);
        let Some(resumed) = resumed.filter(|_| self.waiting[0].range.first > next) else {
            return Ok(chain);
        };
        if is_headless {
            // The comparison restarts after the gap.
            self.notes.push(format!(
                "outputs of offsets {next} to {} are not compared, because no readable entry accounts for them",
                resumed.range.first
            ));
            (self.next, self.state, self.outputs) = (None, None, None);
            return Ok(chain);
        }
        if self.gap_at.replace(next) == Some(next) {
            return Err(Gap { sequence: resumed.sequence, from: next, to: resumed.range.first });
        }
        Ok(chain)
    }

    /// Returns the beginning of the last gapless series of transactions.
    fn begin_of_last_run(&self) -> Option<i64> {
        let (mut begin, mut reached) = (None, i64::MIN);
        for SealedRange { first, next, .. } in self.waiting.iter().map(|account| account.range) {
            if first > reached {
                begin = Some(first);
            }
            reached = reached.max(next);
        }
        begin
    }

    /// Compares the ticks and outputs of consecutive transactions. Returns the first difference, and the sequence of
    /// the entry that sealed its transaction.
    pub(super) fn compare(
        &mut self,
        log: &dyn EventLog,
        sources: &OutputOptions,
        partition: i32,
        (chain, only_of): (&[Account], Option<i32>),
        shelf: &Shelf,
        counts: &mut OutputCounts,
    ) -> Result<Option<(i64, Divergence)>, ReplayError> {
        let is_wanted = |account: &Account| only_of.is_none_or(|journal| account.journal == journal);
        let place = PartitionPlace { log, sources, partition, shelf };
        let is_one_run = |one: &Account, next: &Account| {
            is_same(&one.config, &next.config)
                && one.fold == next.fold
                && one.range.is_lost == next.range.is_lost
                && is_wanted(one) == is_wanted(next)
        };
        for run in chain.chunk_by(is_one_run) {
            if !is_wanted(&run[0]) {
                self.pass_over(run[run.len() - 1].range.next);
                continue;
            }
            if run[0].range.is_lost {
                run.iter().for_each(|account| self.pass_lost(&place, account.range));
                continue;
            }
            let found = self.compare_run(&place, run, counts)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Skips records before an offset that another process compares. The next own record begins with a snapshot, or with
    /// all ticks since the beginning of the partition.
    fn pass_over(&mut self, to: i64) {
        if self.next.is_none_or(|next| next < to) {
            (self.next, self.state, self.outputs) = (Some(to), None, None);
        }
    }

    /// Skips records that were given up: no output contains anything of them.
    fn pass_lost(&mut self, place: &PartitionPlace<'_>, range: SealedRange) {
        let (topic, partition, from) =
            (&place.sources.ticks, place.partition, self.next.unwrap_or(range.first));
        if from < range.next {
            let last = range.next - 1;
            self.notes.push(format!("{topic}/{partition}: records {from} to {last} were given up; no transaction contains their outputs"));
            self.next = Some(range.next);
        }
    }

    /// Compares consecutive transactions of the same stage configuration.
    fn compare_run(
        &mut self,
        place: &PartitionPlace<'_>,
        run: &[Account],
        counts: &mut OutputCounts,
    ) -> Result<Option<(i64, Divergence)>, ReplayError> {
        let (first, to) = (&run[0], run[run.len() - 1].range.next);
        let next = self.next.unwrap_or(first.range.first);
        if next >= to {
            // An earlier round has compared these transactions; in that round another partition could not be read.
            return Ok(None);
        }
        let Some(Begun { rerun, read_from, from }) = self.begin(place, first, next, to)? else {
            self.notes.push(place.skipped(next, to));
            (self.next, self.outputs) = (Some(to), None);
            return Ok(None);
        };
        if from > next {
            self.notes.push(place.skipped(next, from));
            self.outputs = None;
        }
        let ranges = whole_ranges(run, from);
        let mut outputs = place.outputs(self.outputs, from, &ranges)?;
        let mut digests = DigestCheck::new(Covered { ranges, ..Covered::default() });
        let range = OffsetRange { first: read_from, next: to };
        let mut ticks = PartitionReader::open(place.log, place.source(&place.sources.ticks), range)?;
        let segments = [Segment { from: read_from, to, config: 0, fold: 0 }];
        let mut reruns = [SegmentRerun { config: 0, fold: 0, fingerprint: None, to, rerun }];
        let other = loop {
            let records = ticks.next_fetch()?;
            if records.is_empty() {
                break digests.close_before(to);
            }
            if let Some(other) = records.iter().find_map(|record| digests.add(record)) {
                break Some(other);
            }
            process(&records, &segments, &mut reruns, &mut outputs)?;
            counts.tick_records += records.iter().filter(|record| record.offset >= from).count() as u64;
            if outputs.is_decided() {
                break None;
            }
        };
        if let Some(other) = other {
            let found = run.iter().find(|account| account.range.first == other.first);
            let divergence = divergence(ticks.source, other);
            return Ok(Some((found.unwrap_or(first).sequence, Divergence::Ticks(divergence))));
        }
        let identical = [&outputs.signals, &outputs.late, &outputs.dead_letter].map(Comparison::identical);
        counts.signals += identical[0];
        counts.late += identical[1];
        counts.dead_letters += identical[2];
        let sequence = sequence_of(run, &outputs);
        let kept = outputs.next_offsets();
        outputs.stop_at(to);
        let sealed = outputs.tally.divergence(&ticks.source, to);
        if let Some(divergence) = outputs.finish()? {
            return Ok(Some((sequence, Divergence::Output(divergence))));
        }
        if let Some(divergence) = sealed {
            let found = run.iter().find(|account| account.range.first == divergence.first_offset);
            return Ok(Some((found.unwrap_or(first).sequence, Divergence::Sealed(divergence))));
        }
        let [SegmentRerun { mut rerun, .. }] = reruns;
        counts.ticks += std::mem::take(&mut rerun.ticks);
        let repeated = std::mem::take(&mut rerun.repeated);
        counts.repeated_trades += repeated.repeated;
        counts.untold_trades += repeated.untold;
        (self.next, self.outputs) = (Some(to), Some(kept));
        self.state = Some((first.config.clone(), first.fold, rerun));
        Ok(None)
    }

    /// Returns the stages before the next tick record: the current ones, or those of a snapshot; `None` if ticks on
    /// which they depend were removed.
    fn begin(
        &mut self,
        place: &PartitionPlace<'_>,
        account: &Account,
        next: i64,
        to: i64,
    ) -> Result<Option<Begun>, ReplayError> {
        let there = place.range(&place.sources.ticks)?.first;
        // If an error follows, the next round begins with a snapshot again.
        if let Some((config, fold, rerun)) = self.state.take()
            && is_same(&config, &account.config)
            && (account.fold.is_none() || account.fold == fold)
            && there <= next
        {
            return Ok(Some(Begun { rerun, read_from: next, from: next }));
        }
        let config = segments::parse(account.sequence, &account.config)?;
        if let Some(fold) = account.fold.filter(|fold| (there..=next).contains(fold)) {
            let beginning = Restored::beginning(&config, place.sources.isa);
            return Ok(Some(Begun { rerun: place.rerun(&config, beginning), read_from: fold, from: next }));
        }
        let (log, source, isa) = (place.log, place.source(&place.sources.snapshots), place.sources.isa);
        let newest = snapshot::newest_before(log, source.clone(), next, &config, isa)?;
        let restored = match newest.offset >= there {
            true => Some(newest),
            false => snapshot::earliest(log, source, next.max(there)..=to, &config, isa)?,
        };
        Ok(restored.map(|restored| {
            let read_from = restored.offset;
            let from = read_from.max(next);
            Begun { rerun: place.rerun(&config, restored), read_from, from }
        }))
    }
}

/// The beginning of a comparison.
struct Begun {
    rerun: Rerun,
    /// The first tick record to read.
    read_from: i64,
    /// The first tick record whose outputs are compared.
    from: i64,
}

/// A partition of a log, and the ranges of its topics.
struct PartitionPlace<'a> {
    log: &'a dyn EventLog,
    sources: &'a OutputOptions,
    partition: i32,
    shelf: &'a Shelf,
}

impl PartitionPlace<'_> {
    fn source(&self, topic: &str) -> TopicPartition {
        TopicPartition { topic: topic.to_owned(), partition: self.partition }
    }

    fn range(&self, topic: &str) -> Result<OffsetRange, ReplayError> {
        let ranges = self.shelf.get(topic).and_then(|ranges| ranges.get(self.partition as usize));
        match ranges {
            Some(range) => Ok(*range),
            None => Err(no_topic(self.log, &format!("{topic}/{}", self.partition))?),
        }
    }

    fn rerun(&self, config: &StageConfig, restored: Restored) -> Rerun {
        Rerun::from_snapshot(self.source(&self.sources.ticks), config, self.sources, restored)
    }

    /// Describes outputs that are not compared.
    fn skipped(&self, from: i64, to: i64) -> String {
        let (topic, partition) = (&self.sources.ticks, self.partition);
        format!(
            "{topic}/{partition}: outputs of offsets {from} to {to} are not compared, because earlier ticks were removed and no snapshot covers them"
        )
    }

    /// Opens the comparison of outputs, at the offsets in `kept`, or otherwise at the outputs of the tick record at
    /// `from`.
    fn outputs(
        &self,
        kept: Option<[i64; 3]>,
        from: i64,
        ranges: &[SealedRange],
    ) -> Result<Outputs, ReplayError> {
        let OutputOptions { signals, late, dead_letter, .. } = self.sources;
        let open = |index: usize, topic: &str, cause_of: CauseOf| {
            self.comparison(topic, kept.map(|kept| kept[index]), from, cause_of)
        };
        Ok(Outputs {
            signals: open(0, signals, cause::of_signal)?,
            late: open(1, late, cause::of_late_tick)?,
            dead_letter: open(2, dead_letter, cause::of_dead_letter)?,
            tally: Tally::new(ranges),
        })
    }

    fn comparison(
        &self,
        topic: &str,
        kept: Option<i64>,
        from: i64,
        cause_of: CauseOf,
    ) -> Result<Comparison, ReplayError> {
        let (range, source) = (self.range(topic)?, self.source(topic));
        let first = match kept {
            Some(kept) => kept,
            None => self.first_caused(source.clone(), range, from, cause_of)?,
        };
        Ok(if range.first > 0 && first <= range.first {
            // Some of the output's first records may have been removed.
            Comparison::open(self.log, source, range, from, cause_of)?
        } else {
            Comparison::resume(self.log, source, OffsetRange { first, ..range }, from)?
        })
    }

    /// Returns the offset of the first record that the tick record at `from` or a later one caused. Records are in the
    /// order of their causes.
    fn first_caused(
        &self,
        source: TopicPartition,
        range: OffsetRange,
        from: i64,
        cause_of: CauseOf,
    ) -> Result<i64, ReplayError> {
        let mut reader = PartitionReader::open(self.log, source, range)?;
        let (mut low, mut high) = (range.first, range.next);
        while low < high {
            let middle = low + (high - low) / 2;
            reader.seek(middle)?;
            match reader.next()? {
                Some(record) if cause_of(&record.value).is_some_and(|cause| cause < from) => {
                    low = record.offset + 1;
                }
                _ => high = middle,
            }
        }
        Ok(low)
    }
}

/// Returns consecutive ranges of the transactions whose ticks are all read from an offset on. A transaction that
/// excluded the partition overlaps with the ranges in which its ticks were processed again.
fn whole_ranges(run: &[Account], from: i64) -> Vec<SealedRange> {
    let (mut reached, mut whole) = (from, Vec::new());
    for range in run.iter().map(|account| account.range) {
        if range.first >= reached {
            whole.push(range);
        }
        reached = reached.max(range.next);
    }
    whole
}

/// Returns the expected number of an output's records, from a transaction's account.
type Count = fn(&SealedRange) -> i64;

/// Returns the sequence of the entry that sealed the transaction with the first differing output; the last
/// transaction's if no output differs yet.
fn sequence_of(run: &[Account], outputs: &Outputs) -> i64 {
    let counts: [(&Comparison, Count); 3] = [
        (&outputs.signals, |range| range.signals),
        (&outputs.late, |range| range.late),
        (&outputs.dead_letter, |range| range.dead_letters),
    ];
    let differs = counts.into_iter().find(|(comparison, _)| comparison.differs());
    let found = differs.and_then(|(comparison, count)| {
        let mut before = 0_i64;
        run.iter().find(|account| {
            before = before.saturating_add(count(&account.range));
            before > comparison.identical() as i64
        })
    });
    found.unwrap_or(&run[run.len() - 1]).sequence
}

#[cfg(test)]
mod tests {
    use warptape_schemas::journal::SealedPartition;

    use super::*;

    fn account(journal: i32, first_offset: i64, next_offset: i64, state: AccountState) -> Account {
        let sealed = SealedPartition { first_offset, next_offset, ..SealedPartition::default() };
        let (offset, sequence) = (next_offset, next_offset);
        let was_doubted = state == AccountState::Asked;
        Account {
            journal,
            offset,
            sequence,
            config: "".into(),
            fold: None,
            range: SealedRange::of(&sealed),
            state,
            was_doubted,
        }
    }

    fn of(accounts: impl IntoIterator<Item = Account>) -> PartitionFollower {
        let mut follower = PartitionFollower::default();
        accounts.into_iter().for_each(|account| follower.add(account));
        follower
    }

    /// Takes the chain without comparing it, and returns the offset ranges.
    fn taken(follower: &mut PartitionFollower) -> Vec<(i64, i64)> {
        let chain =
            follower.take_chain(true, false, usize::MAX).unwrap_or_else(|_| panic!("no gap is expected"));
        let ranges: Vec<_> = chain.iter().map(|of| (of.range.first, of.range.next)).collect();
        follower.next = chain.last().map_or(follower.next, |last| Some(last.range.next));
        ranges
    }

    use AccountState::{Asked, Committed, InFlight};

    #[test]
    fn a_transaction_is_compared_once_it_is_known_to_be_committed() {
        let mut follower = of([account(0, 0, 5, Committed), account(0, 5, 9, InFlight)]);
        assert_eq!(taken(&mut follower), [(0, 5)]);
        assert_eq!((taken(&mut follower), follower.waits_for(0)), (vec![], Some((9, 9))));
        follower.confirm(0);
        assert_eq!(taken(&mut follower), [(5, 9)]);
        assert_eq!(follower.waits_for(0), None);
    }

    #[test]
    fn a_transaction_that_was_left_out_is_made_again_by_another_process() {
        let mut follower = of([account(0, 0, 5, Committed), account(0, 5, 9, InFlight)]);
        follower.doubt(0);
        assert_eq!(taken(&mut follower), [(0, 5)]);
        follower.add(account(1, 5, 8, Committed));
        follower.add(account(1, 8, 12, Committed));
        assert_eq!(taken(&mut follower), [(5, 8), (8, 12)]);
        assert_eq!((follower.waiting.len(), taken(&mut follower)), (0, vec![]));
    }

    #[test]
    fn a_transaction_that_may_have_been_left_out_is_not_preferred_to_one_that_was_not() {
        // Another process processed the first transaction's ticks again, in two transactions. The group's offset
        // reached the end through these.
        let mut follower =
            of([account(0, 5, 9, Asked), account(1, 5, 8, Committed), account(1, 8, 12, Committed)]);
        follower.waiting[0].state = Committed;
        assert_eq!(taken(&mut follower), [(5, 8), (8, 12)]);
        // The follower waits while another journal may account for the ticks.
        let mut follower = of([account(0, 5, 9, Asked)]);
        follower.waiting[0].state = Committed;
        assert!(follower.take_chain(false, false, usize::MAX).is_ok_and(|chain| chain.is_empty()));
        assert_eq!(taken(&mut follower), [(5, 9)]);
    }

    #[test]
    fn digests_are_of_transactions_that_do_not_overlap() {
        // The first transaction excluded the partition, and the next two have its ticks. The group committed the last
        // of them before the offset was read.
        let mut follower = of([account(0, 5, 9, Committed)]);
        follower.add(account(1, 5, 8, Committed));
        follower.add(account(1, 8, 12, Committed));
        follower.add(account(1, 12, 14, Committed));
        let chain =
            follower.take_chain(true, false, usize::MAX).unwrap_or_else(|_| panic!("no gap is expected"));
        let of_chain: Vec<_> = chain.iter().map(|of| (of.range.first, of.range.next)).collect();
        assert_eq!(of_chain, [(5, 9), (8, 12), (12, 14)]);
        let whole =
            |from| whole_ranges(&chain, from).iter().map(|of| (of.first, of.next)).collect::<Vec<_>>();
        assert_eq!(whole(5), [(5, 9), (12, 14)]);
        assert_eq!(whole(6), [(12, 14)]);
    }

    #[test]
    fn entries_of_another_process_may_be_read_earlier() {
        let mut follower = of([account(0, 0, 5, Committed)]);
        assert_eq!(taken(&mut follower), [(0, 5)]);
        follower.add(account(1, 9, 12, Committed));
        assert_eq!(taken(&mut follower), []);
        follower.add(account(0, 5, 9, Committed));
        assert_eq!(taken(&mut follower), [(5, 9), (9, 12)]);
    }

    #[test]
    fn ticks_that_nobody_accounts_for_are_a_gap() {
        let mut follower = of([account(0, 0, 5, Committed)]);
        assert_eq!(taken(&mut follower), [(0, 5)]);
        follower.add(account(1, 9, 12, Committed));
        // A missing transaction proves nothing before the journals are read to their ends.
        assert!(follower.take_chain(false, false, usize::MAX).is_ok_and(|chain| chain.is_empty()));
        assert_eq!(taken(&mut follower), []);
        let gap = follower.take_chain(true, false, usize::MAX).err().expect("a gap");
        assert_eq!((gap.sequence, gap.from, gap.to), (12, 5, 9));
        // A journal without its beginning does not account for all ticks.
        let mut follower = of([account(0, 0, 5, Committed)]);
        assert_eq!(taken(&mut follower), [(0, 5)]);
        follower.outputs = Some([7; 3]);
        follower.add(account(1, 9, 12, Committed));
        for expected in [vec![], vec![(9, 12)]] {
            let chain =
                follower.take_chain(true, true, usize::MAX).unwrap_or_else(|_| panic!("no gap is expected"));
            assert_eq!(chain.iter().map(|of| (of.range.first, of.range.next)).collect::<Vec<_>>(), expected);
            assert_eq!(follower.outputs, None, "places before the gap are of no use after it");
        }
    }

    #[test]
    fn places_before_records_of_another_process_are_of_no_use_after_them() {
        let mut follower = of([]);
        (follower.next, follower.outputs) = (Some(5), Some([7; 3]));
        follower.pass_over(5);
        assert_eq!((follower.next, follower.outputs), (Some(5), Some([7; 3])), "nothing lies between");
        follower.pass_over(9);
        assert_eq!((follower.next, follower.outputs), (Some(9), None));
    }

    #[test]
    fn what_was_sealed_before_the_entries_that_are_read_is_passed_over() {
        let mut follower =
            of([account(0, 3, 5, Committed), account(0, 9, 12, Committed), account(1, 12, 13, Asked)]);
        assert_eq!(taken(&mut follower), [(9, 12)]);
        assert_eq!(follower.next, Some(12));
    }
}
