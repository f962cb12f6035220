//! The journal's accounts of each source partition, compared with the log. A `Sealed` entry lists the tick records of
//! its transaction, and the number of outputs that they caused.

use std::collections::{BTreeMap, BTreeSet};

use warptape_engine::tick_record_digest;
use warptape_eventlog::Record;
use warptape_schemas::journal::{
    Input, JournalEntry, PartitionAssigned, PartitionRevoked, Sealed, SealedPartition,
};

/// Greatest number of ranges kept per partition; beyond it, neighbours are merged.
const RANGES_MAX: usize = 65_536;

/// Tick records `first..next` of one transaction, or of several consecutive ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SealedRange {
    pub(crate) first: i64,
    pub(crate) next: i64,
    digest: u64,
    pub(crate) signals: i64,
    pub(crate) late: i64,
    pub(crate) dead_letters: i64,
    /// True if the partition was revoked while the transaction was in progress, so that the commit may have excluded
    /// it.
    may_be_void: bool,
    /// True if these records belong to no transaction: they were removed before, or entries are lost, and a process
    /// continued after them.
    pub(crate) is_lost: bool,
}

/// Risk results of one transaction, in one partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SealedResults {
    /// Index of the journal, in the order in which journals are read.
    pub(crate) journal: usize,
    /// True for the first transaction since the process was assigned the partition.
    pub(crate) is_first: bool,
    pub(crate) results: i64,
    pub(crate) next_request: Option<i64>,
    /// True if the partition was revoked while the transaction was in progress, as in [`SealedRange`].
    pub(crate) may_be_void: bool,
}

/// The accounts of all journals.
#[derive(Default)]
pub(crate) struct Accounts {
    partitions: BTreeMap<i32, Vec<SealedRange>>,
    /// Transactions that commit an offset of risk requests, by partition.
    results: BTreeMap<i32, Vec<SealedResults>>,
    /// First risk request without a result, by partition, according to the entries read so far.
    next_requests: BTreeMap<i32, i64>,
    /// Partitions in the last `Sealed` of the process life being read, and those among them that have results.
    in_flight: Vec<i32>,
    results_in_flight: Vec<i32>,
    /// Partitions that were assigned and have had no results since then.
    assigned: BTreeSet<i32>,
    /// True if neighbouring ranges were merged.
    is_thinned: bool,
    /// Number of the journal's partitions, one for each process.
    journals: usize,
    /// True if the beginning of a journal partition was removed.
    pub(crate) is_trimmed: bool,
}

/// The tick records of a partition that the accounts cover without a gap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Covered {
    /// Ranges in ascending order.
    pub(crate) ranges: Vec<SealedRange>,
    /// True if the outputs of all records are known, from the partition's first record.
    pub(crate) is_whole: bool,
    /// Offset before which the accounts cover all records.
    pub(crate) to: i64,
    /// First record that the accounts cover after a gap; `None` if there is no gap.
    pub(crate) resumed: Option<i64>,
}

impl Covered {
    /// Drops the ranges that begin before an offset.
    pub(crate) fn from(mut self, offset: i64) -> Self {
        self.ranges.retain(|range| range.first >= offset);
        self
    }
}

impl Accounts {
    /// Begins another partition of the journal.
    pub(crate) fn begin(&mut self) {
        self.clear_in_flight();
        self.journals += 1;
    }

    /// Adds the next entry.
    pub(crate) fn add(&mut self, entry: &JournalEntry) {
        match &entry.input {
            Input::Started(_) => self.clear_in_flight(),
            Input::Sealed(sealed) => self.seal(sealed),
            Input::PartitionAssigned(assigned) => {
                self.assigned.insert(assigned.partition);
                if let Some(lost) = SealedRange::lost(assigned) {
                    self.partitions.entry(assigned.partition).or_default().push(lost);
                }
            }
            // Only one transaction is in progress at a time, so all transactions before the last one were committed
            // unchanged.
            Input::PartitionRevoked(PartitionRevoked { partition }) => {
                let last = self.partitions.get_mut(partition).and_then(|all| all.last_mut());
                if let Some(last) = last.filter(|_| self.in_flight.contains(partition)) {
                    last.may_be_void = true;
                }
                let last = self.results.get_mut(partition).and_then(|all| all.last_mut());
                if let Some(last) = last.filter(|_| self.results_in_flight.contains(partition)) {
                    last.may_be_void = true;
                }
            }
            _ => {}
        }
    }

    fn clear_in_flight(&mut self) {
        self.in_flight.clear();
        self.results_in_flight.clear();
    }

    fn seal(&mut self, sealed: &Sealed) {
        self.clear_in_flight();
        for account in &sealed.partitions {
            if account.next_request.is_some() || account.risk_results != 0 {
                let &SealedPartition { risk_results: results, next_request, .. } = account;
                let (journal, is_first) = (self.journals, self.assigned.remove(&account.partition));
                let sealed = SealedResults { journal, is_first, results, next_request, may_be_void: false };
                self.results.entry(account.partition).or_default().push(sealed);
                self.results_in_flight.push(account.partition);
            }
            if let Some(next) = account.next_request {
                let known = self.next_requests.entry(account.partition).or_default();
                *known = next.max(*known);
            }
            if account.next_offset == account.first_offset {
                continue;
            }
            self.in_flight.push(account.partition);
            let ranges = self.partitions.entry(account.partition).or_default();
            if ranges.len() >= RANGES_MAX {
                thin(ranges);
                self.is_thinned = true;
            }
            ranges.push(SealedRange::of(account));
        }
    }

    /// Drops all ranges, for callers that keep the ranges they need.
    pub(crate) fn forget(&mut self) {
        self.partitions.clear();
        self.results.clear();
    }

    /// Returns transactions with results of a partition, in the order of the journals; `None` if some may be missing.
    pub(crate) fn results(&self, partition: i32) -> Option<&[SealedResults]> {
        (!self.is_trimmed).then(|| self.results.get(&partition).map_or(&[][..], Vec::as_slice))
    }

    /// Returns the part of a partition that the accounts cover, given the offset that the group has committed.
    pub(crate) fn covered(&self, partition: i32, committed: i64) -> Covered {
        let mut ranges = self.partitions.get(&partition).cloned().unwrap_or_default();
        ranges.sort_by_key(|range| (range.first, range.may_be_void));
        let is_whole = !self.is_trimmed;
        let first = ranges.first().map_or(committed, |range| range.first);
        let mut covered = Covered { to: if is_whole { 0 } else { first }, is_whole, ..Covered::default() };
        let mut is_left = vec![true; ranges.len()];
        loop {
            let at = covered.to;
            let here = ranges.partition_point(|range| range.first < at);
            let here = here..here + ranges[here..].partition_point(|range| range.first == at);
            // A transaction that may be void was committed after all if another one continues from its end.
            let goes_on = |index: &usize| {
                let next = ranges[*index].next;
                next == committed || ranges.iter().any(|other| other.first == next)
            };
            let firm = here.clone().find(|index| !ranges[*index].may_be_void);
            if let Some(taken) = firm.or_else(|| here.clone().find(goes_on)) {
                is_left[taken] = false;
                covered.to = ranges[taken].next;
                covered.ranges.push(ranges[taken]);
                continue;
            }
            let mut left =
                ranges.iter().zip(&is_left).filter(|(range, is_left)| **is_left && !range.may_be_void);
            match left.find(|(range, _)| is_whole || range.first > at) {
                // Between the two ranges another process owned the partition, and its journal has lost its beginning.
                Some((later, _)) if !is_whole => covered.to = later.first,
                other => {
                    covered.resumed = other.map(|(range, _)| range.first);
                    return covered;
                }
            }
        }
    }

    /// Returns the offset up to which transactions have committed a partition, from the entries read so far; `None` if
    /// they do not mention the partition.
    pub(crate) fn reached(&self, partition: i32) -> Option<i64> {
        let ranges = self.partitions.get(&partition)?;
        // A range that may be void is ignored if no other range continues from it. So the result may be too small, but
        // never too large.
        let counts =
            |range: &&SealedRange| !range.may_be_void || ranges.iter().any(|other| other.first == range.next);
        let first = ranges.iter().map(|range| range.first).min()?;
        Some(ranges.iter().filter(counts).map(|range| range.next).fold(first, i64::max))
    }

    /// Returns offsets at which transactions of a partition began or ended, including the offset that the group has
    /// committed; `None` if some are unknown.
    pub(crate) fn ends(&self, partition: i32, committed: i64) -> Option<BTreeSet<i64>> {
        if self.is_thinned || self.is_trimmed {
            return None;
        }
        let ranges = self.covered(partition, committed).ranges;
        let ends = ranges.iter().flat_map(|range| [range.first, range.next]);
        (!ranges.is_empty()).then(|| ends.chain([0, committed]).collect())
    }

    /// True if the accounts agree with the offset that the group has committed.
    pub(crate) fn agrees(&self, covered: &Covered, committed: i64) -> bool {
        // Records count as missing only if no other process with unknown entries can have processed the partition.
        let is_alone = self.journals <= 1 && !covered.ranges.is_empty();
        let is_behind = covered.to < committed && (covered.is_whole || is_alone);
        covered.resumed.is_none() && !is_behind && covered.to <= committed
    }

    /// Returns the first risk request of a partition without a result, according to the entries; `None` if entries may
    /// be missing.
    pub(crate) fn next_request(&self, partition: i32) -> Option<i64> {
        (!self.is_trimmed).then(|| self.next_requests.get(&partition).copied().unwrap_or(0))
    }
}

/// Merges neighbours in pairs.
fn thin(ranges: &mut Vec<SealedRange>) {
    let mut thinned: Vec<SealedRange> = Vec::with_capacity(ranges.len());
    for (index, range) in ranges.drain(..).enumerate() {
        match thinned.last_mut() {
            Some(last) if index % 2 == 1 && last.goes_on_with(&range) => last.extend(&range),
            _ => thinned.push(range),
        }
    }
    *ranges = thinned;
}

impl SealedRange {
    /// Returns the range of one account: the records of one partition in a transaction.
    pub(crate) fn of(account: &SealedPartition) -> Self {
        Self {
            first: account.first_offset,
            next: account.next_offset,
            digest: account.ticks_digest.cast_unsigned(),
            signals: account.signals,
            late: account.late,
            dead_letters: account.dead_letters,
            may_be_void: false,
            is_lost: false,
        }
    }

    /// Returns the records that were given up when a partition was assigned to a process; `None` if there are none.
    pub(crate) fn lost(assigned: &PartitionAssigned) -> Option<Self> {
        let first = assigned.lost_from.filter(|from| *from < assigned.committed_offset)?;
        let account = SealedPartition {
            partition: assigned.partition,
            first_offset: first,
            next_offset: assigned.committed_offset,
            ..SealedPartition::default()
        };
        Some(Self { is_lost: true, ..Self::of(&account) })
    }

    fn goes_on_with(&self, next: &Self) -> bool {
        let are_firm = !self.may_be_void && !next.may_be_void;
        self.next == next.first && are_firm && !self.is_lost && !next.is_lost
    }

    fn extend(&mut self, next: &Self) {
        self.next = next.next;
        self.digest = self.digest.wrapping_add(next.digest);
        self.signals = self.signals.saturating_add(next.signals);
        self.late = self.late.saturating_add(next.late);
        self.dead_letters = self.dead_letters.saturating_add(next.dead_letters);
    }
}

/// Compares the tick records of a partition with the accounts, range by range.
pub(crate) struct DigestCheck {
    ranges: std::vec::IntoIter<SealedRange>,
    /// Range of the current record, and the digest of the range's records so far.
    current: Option<(SealedRange, u64)>,
}

/// Tick records that differ from those that were processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OtherTicks {
    pub(crate) first: i64,
    pub(crate) next: i64,
    pub(crate) expected: u64,
    pub(crate) found: u64,
}

impl DigestCheck {
    pub(crate) fn new(covered: Covered) -> Self {
        let mut ranges = covered.ranges.into_iter();
        let current = ranges.next().map(|range| (range, 0));
        Self { ranges, current }
    }

    /// Adds the next record of the partition.
    pub(crate) fn add(&mut self, record: &Record) -> Option<OtherTicks> {
        let other = self.close_before(record.offset);
        if let Some((range, digest)) = &mut self.current
            && range.first <= record.offset
        {
            *digest = digest.wrapping_add(tick_record_digest(record));
        }
        other
    }

    /// Closes the ranges that end at or before an offset, whose records were all added.
    pub(crate) fn close_before(&mut self, offset: i64) -> Option<OtherTicks> {
        while let Some((range, found)) = self.current.take_if(|(range, _)| range.next <= offset) {
            self.current = self.ranges.next().map(|range| (range, 0));
            if found != range.digest && !range.is_lost {
                let SealedRange { first, next, digest: expected, .. } = range;
                return Some(OtherTicks { first, next, expected, found });
            }
        }
        None
    }

    /// Returns the end of the range that contains the record at an offset; the offset itself if no range does.
    pub(crate) fn end_of(&self, offset: i64) -> i64 {
        self.current.map_or(offset, |(range, _)| range.next)
    }
}

#[cfg(test)]
mod tests {
    use warptape_schemas::hex::Digits;

    use super::*;

    const PARTITION: i32 = 3;

    fn add(accounts: &mut Accounts, input: Input) {
        let (state_hash, hash, decisions) = (Digits::zeros(), Digits::zeros(), Vec::new());
        let entry = JournalEntry { sequence: 0, at_ns: 0, input, decisions, state_hash, hash };
        accounts.add(&entry);
    }

    fn seal(accounts: &mut Accounts, first_offset: i64, next_offset: i64) {
        let (partition, ticks_digest) = (PARTITION, next_offset - first_offset);
        let account =
            SealedPartition { partition, first_offset, next_offset, ticks_digest, ..Default::default() };
        add(accounts, Input::Sealed(Sealed { partitions: vec![account] }));
    }

    fn revoke(accounts: &mut Accounts) {
        add(accounts, Input::PartitionRevoked(PartitionRevoked { partition: PARTITION }));
    }

    fn check(accounts: &Accounts, committed: i64, to: i64, agrees: bool) {
        let covered = accounts.covered(PARTITION, committed);
        assert_eq!((covered.to, accounts.agrees(&covered, committed)), (to, agrees), "{covered:?}");
    }

    #[test]
    fn what_was_revoked_while_it_was_committed_may_be_missing_or_there() {
        let mut first = Accounts::default();
        first.begin();
        seal(&mut first, 0, 5);
        seal(&mut first, 5, 9);
        revoke(&mut first);
        // The transaction was committed, or it excluded the partition and the records are still to be processed.
        check(&first, 9, 9, true);
        check(&first, 5, 5, true);
        // The next owner processed the records again, divided differently.
        first.begin();
        seal(&mut first, 5, 7);
        seal(&mut first, 7, 12);
        check(&first, 12, 12, true);
        check(&first, 13, 12, false);
        // Transactions before the last one were committed with the partition.
        let mut other = Accounts::default();
        other.begin();
        seal(&mut other, 0, 5);
        seal(&mut other, 5, 9);
        seal(&mut other, 9, 10);
        revoke(&mut other);
        other.begin();
        seal(&mut other, 5, 10);
        check(&other, 10, 10, false);
    }

    #[test]
    fn what_was_given_up_is_no_gap() {
        let mut accounts = Accounts::default();
        accounts.begin();
        let give_up = |from, to| {
            Input::PartitionAssigned(PartitionAssigned {
                partition: PARTITION,
                committed_offset: to,
                lost_from: Some(from),
                ..PartitionAssigned::default()
            })
        };
        add(&mut accounts, give_up(0, 3));
        seal(&mut accounts, 3, 5);
        add(&mut accounts, give_up(5, 9));
        check(&accounts, 9, 9, true);
        seal(&mut accounts, 9, 10);
        check(&accounts, 10, 10, true);
        let lost: Vec<bool> =
            accounts.covered(PARTITION, 10).ranges.iter().map(|range| range.is_lost).collect();
        assert_eq!(lost, [true, false, true, false]);
    }

    #[test]
    fn gaps_and_repetitions_are_noticed() {
        let mut accounts = Accounts::default();
        accounts.begin();
        check(&accounts, 0, 0, true);
        check(&accounts, 4, 0, false);
        seal(&mut accounts, 0, 5);
        check(&accounts, 5, 5, true);
        check(&accounts, 4, 5, false);
        seal(&mut accounts, 7, 9);
        assert_eq!(accounts.covered(PARTITION, 9).resumed, Some(7));
        check(&accounts, 9, 5, false);
    }

    #[test]
    fn beside_a_quiet_process_all_is_known() {
        for quiet_is_first in [true, false] {
            let mut accounts = Accounts::default();
            accounts.begin();
            if quiet_is_first {
                accounts.begin();
            }
            seal(&mut accounts, 0, 5);
            if !quiet_is_first {
                accounts.begin();
            }
            check(&accounts, 5, 5, true);
            check(&accounts, 6, 5, false);
            check(&accounts, 4, 5, false);
        }
    }

    #[test]
    fn what_a_trimmed_journal_has_lost_is_not_missing() {
        let trimmed = || {
            let mut accounts = Accounts { is_trimmed: true, ..Accounts::default() };
            accounts.begin();
            accounts
        };
        // Only a process start remains.
        check(&trimmed(), 7, 7, true);
        // A single process, with all entries after the first remaining one.
        let mut alone = trimmed();
        seal(&mut alone, 4, 9);
        check(&alone, 9, 9, true);
        check(&alone, 8, 9, false);
        check(&alone, 11, 9, false);
        // A process whose entries were removed may have processed the records between and after those ranges.
        alone.begin();
        check(&alone, 11, 9, true);
        seal(&mut alone, 11, 14);
        check(&alone, 14, 14, true);
        check(&alone, 16, 14, true);
        check(&alone, 13, 14, false);
    }

    #[test]
    fn many_ranges_are_taken_together() {
        let mut accounts = Accounts::default();
        accounts.begin();
        let count = 5 * RANGES_MAX as i64 / 2;
        (0..count).for_each(|offset| seal(&mut accounts, offset, offset + 1));
        check(&accounts, count, count, true);
        let covered = accounts.covered(PARTITION, count);
        assert!(covered.ranges.len() <= RANGES_MAX);
        assert_eq!(covered.ranges.iter().map(|range| range.digest).sum::<u64>(), count.cast_unsigned());
    }
}
