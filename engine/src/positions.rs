//! Positions of journals in each partition of the source, and the offset at which a partition continues if the group's
//! offset differs.
//!
//! A transaction that moves offsets has a `Sealed` in its journal, so the journals tell the offset of the first
//! unprocessed record. The group's offset is a copy of that number. Anybody may change it, and it expires.

use std::collections::BTreeMap;

use warptape_events::journal::{Input, Position, Positions, SealedPartition};

/// The position of one journal in each partition, by its entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalPositions {
    partitions: BTreeMap<i32, Position>,
    /// True if no entry that could move a position is missing.
    is_whole: bool,
    group: Option<String>,
    /// The partitions of the newest `Sealed`, each with its previous position.
    in_flight: Vec<(i32, Position)>,
}

impl JournalPositions {
    /// Positions before the first entry of a journal.
    pub fn beginning() -> Self {
        Self { is_whole: true, ..Self::default() }
    }

    /// Positions of a journal whose earlier entries are not available.
    pub fn unknown() -> Self {
        Self::default()
    }

    /// Adds the next entry.
    pub fn add(&mut self, input: &Input) {
        match input {
            Input::Started(_) => self.in_flight.clear(),
            Input::Sealed(sealed) => {
                self.in_flight.clear();
                sealed.partitions.iter().for_each(|account| self.seal(account));
            }
            // One transaction is under way at a time. Its outcome is open: it was committed with the partition, or sent
            // again without it.
            Input::PartitionRevoked(revoked) => {
                let at = self.in_flight.iter().position(|(partition, _)| *partition == revoked.partition);
                let Some((partition, before)) = at.map(|at| self.in_flight.swap_remove(at)) else { return };
                let position = self.partitions.get_mut(&partition).expect("it was sealed");
                let unsettled_offset =
                    Some(position.next_offset).filter(|next_offset| *next_offset > before.next_offset);
                *position = Position { unsettled_offset, ..before };
            }
            Input::PartitionAssigned(assigned) if assigned.lost_from.is_some() => {
                let position = self.partitions.entry(assigned.partition).or_default();
                let next_request = position.next_request;
                let (partition, next_offset) = (assigned.partition, assigned.committed_offset);
                *position = Position { partition, next_offset, next_request, unsettled_offset: None };
            }
            // The entry is written while no transaction is under way.
            Input::Positions(positions) => {
                self.in_flight.clear();
                self.group = Some(positions.group.clone());
                self.is_whole = positions.is_whole;
                let known = positions.partitions.iter().map(|position| (position.partition, *position));
                self.partitions = known.collect();
            }
            _ => {}
        }
    }

    fn seal(&mut self, account: &SealedPartition) {
        let &SealedPartition { partition, first_offset, next_offset, next_request, .. } = account;
        let new = Position { partition, next_offset: first_offset, ..Position::default() };
        let position = self.partitions.entry(partition).or_insert(new);
        // The first offset of this account settles the open alternative of the partition.
        let before = Position { next_offset: first_offset, unsettled_offset: None, ..*position };
        self.in_flight.push((partition, before));
        let next_request = next_request.or(position.next_request);
        *position = Position { partition, next_offset, unsettled_offset: None, next_request };
    }

    /// Notes a process life whose entries do not say which offsets its transactions move.
    pub fn lose_track(&mut self) {
        self.is_whole = false;
    }

    /// The group of the journal; `None` if no entry has named it yet.
    pub fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }

    /// The entry that records these positions, for a process of a group.
    pub fn entry(&self, group: &str) -> Positions {
        let partitions = self.partitions.values().copied().collect();
        Positions { group: group.to_owned(), is_whole: self.is_whole, partitions }
    }
}

/// The claims about the offset at which a process continues with a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// Next record to read according to the journals; `None` if they have no entry about the partition.
    pub journal: Option<i64>,
    /// Further possible offsets, ascending: each holds if a transaction with an unknown outcome was committed.
    pub unsettled: Vec<i64>,
    /// True if no journal has lost entries that could move the position.
    pub is_certain: bool,
    /// Next record to read as committed by the group; `None` if the group has no offset, or its offset expired.
    pub group: Option<i64>,
}

/// Contradictory claims about a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Odds {
    /// The claims.
    pub claims: Claims,
    /// Offset before which all records were processed, by the newest outputs and snapshots.
    pub outputs: i64,
}

impl Claims {
    /// The claims about a partition of ticks.
    pub fn on_ticks(journals: &[JournalPositions], partition: i32, group: Option<i64>) -> Self {
        let known = || journals.iter().filter_map(|journal| journal.partitions.get(&partition));
        let journal = known().map(|position| position.next_offset).max();
        let unsettled = known().filter_map(|position| position.unsettled_offset);
        let mut unsettled: Vec<i64> = unsettled.filter(|unsettled| Some(*unsettled) > journal).collect();
        unsettled.sort_unstable();
        // A journal's position of a partition is newer than the entries that the journal has lost.
        let is_certain =
            |journal: &JournalPositions| journal.is_whole || journal.partitions.contains_key(&partition);
        Self { journal, unsettled, is_certain: journals.iter().all(is_certain), group }
    }

    /// The claims about a partition of risk requests. Continuing too early does no harm, because the results show the
    /// answered requests.
    pub fn on_requests(journals: &[JournalPositions], partition: i32, group: Option<i64>) -> Self {
        let of = |journal: &JournalPositions| journal.partitions.get(&partition)?.next_request;
        let journal = journals.iter().filter_map(of).max();
        let is_certain = journals.iter().all(|journal| journal.is_whole || of(journal).is_some());
        Self { journal, unsettled: Vec::new(), is_certain, group }
    }

    /// The offset at which a partition of ticks continues, if the group and the journals agree and no outcome is open.
    /// Otherwise `None`; then the outputs decide ([`Self::settle`]).
    pub fn agreed(&self) -> Option<i64> {
        self.group.filter(|_| self.group == self.journal && self.unsettled.is_empty())
    }

    /// The offset at which a partition of ticks continues: outputs exist of all records before it and of none after.
    /// `None` is the beginning. By the newest outputs and snapshots, all records before `outputs` were processed.
    ///
    /// # Errors
    /// No such offset exists.
    pub fn settle(&self, outputs: i64) -> Result<Option<i64>, Odds> {
        let Self { journal, ref unsettled, is_certain, group } = *self;
        if let Some(agreed) = self.agreed() {
            return Ok(Some(agreed));
        }
        let firm = match (journal, is_certain) {
            (Some(journal), true) => journal,
            // The lost entries may be those of the transactions that moved the group's offset on.
            (Some(journal), false) => group.map_or(journal, |group| group.max(journal)),
            (None, true) => 0,
            (None, false) => group.unwrap_or(0),
        };
        // The first possible offset that the outputs allow. Records of a transaction without outputs may be processed
        // once more, which makes no difference.
        let settled = std::iter::once(firm).chain(unsettled.iter().copied()).find(|at| outputs <= *at);
        let settled = settled.ok_or_else(|| Odds { claims: self.clone(), outputs })?;
        let is_new = journal.is_none() && (is_certain || group.is_none());
        Ok((!is_new).then_some(settled))
    }

    /// The offset at which a partition of risk requests continues.
    pub fn settle_requests(&self) -> i64 {
        let Self { journal, is_certain, group, .. } = *self;
        match is_certain {
            true => journal.unwrap_or(0),
            false => group.max(journal).unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use warptape_events::journal::{PartitionAssigned, PartitionRevoked, Sealed};

    use super::*;

    const PARTITION: i32 = 3;

    fn sealed(first_offset: i64, next_offset: i64) -> Input {
        let account =
            SealedPartition { partition: PARTITION, first_offset, next_offset, ..SealedPartition::default() };
        Input::Sealed(Sealed { partitions: vec![account] })
    }

    fn revoked() -> Input {
        Input::PartitionRevoked(PartitionRevoked { partition: PARTITION })
    }

    fn fold(mut positions: JournalPositions, inputs: &[Input]) -> JournalPositions {
        inputs.iter().for_each(|input| positions.add(input));
        positions
    }

    /// The offset, and its open alternative.
    fn known(positions: &JournalPositions) -> Option<(i64, Option<i64>)> {
        let position = positions.partitions.get(&PARTITION)?;
        Some((position.next_offset, position.unsettled_offset))
    }

    #[test]
    fn a_journal_says_how_far_it_has_come() {
        let whole = fold(JournalPositions::beginning(), &[sealed(0, 5), sealed(5, 9)]);
        assert_eq!(known(&whole), Some((9, None)));
        let left = fold(whole.clone(), &[revoked()]);
        assert_eq!(known(&left), Some((5, Some(9))), "the last transaction may have been sent without it");
        let gone_on = fold(left.clone(), &[sealed(9, 12)]);
        assert_eq!(known(&gone_on), Some((12, None)));
        assert_eq!(known(&fold(gone_on, &[revoked()])), Some((9, Some(12))), "it did begin at 9");
        let lost = PartitionAssigned {
            partition: PARTITION,
            committed_offset: 20,
            lost_from: Some(9),
            ..PartitionAssigned::default()
        };
        assert_eq!(known(&fold(left.clone(), &[Input::PartitionAssigned(lost)])), Some((20, None)));
        // An entry of positions replaces all entries before it.
        let entry = left.entry("g");
        let told = fold(JournalPositions::unknown(), &[Input::Positions(entry.clone())]);
        assert_eq!((known(&told), told.group(), told.is_whole), (known(&left), Some("g"), true));
        let settled = Input::Positions(whole.entry("g"));
        for before in [whole.clone(), JournalPositions::unknown()] {
            assert_eq!(known(&fold(before, &[settled.clone(), revoked()])), Some((9, None)));
        }
        assert_eq!((told.entry("g"), whole.entry("g") == entry), (entry, false));
    }

    fn claims_of(journal: i64) -> Claims {
        Claims { journal: Some(journal), unsettled: Vec::new(), is_certain: true, group: None }
    }

    fn check(
        [journal, unsettled, group]: [Option<i64>; 3],
        is_certain: bool,
        outputs: i64,
        expected: Option<Option<i64>>,
    ) {
        let claims = Claims { journal, unsettled: Vec::from_iter(unsettled), is_certain, group };
        assert_eq!(claims.settle(outputs).ok(), expected, "{claims:?}, outputs before {outputs}");
    }

    #[test]
    fn the_journal_wins_where_outputs_do_not_speak_against_it() {
        for group in [None, Some(0), Some(40), Some(50), Some(70)] {
            check([Some(50), None, group], true, 50, Some(Some(50)));
            check([Some(50), None, group], true, 0, Some(Some(50)));
        }
        check([Some(50), None, Some(70)], true, 60, None);
        check([Some(50), None, None], true, 51, None);
        // The outputs tell whether the last transaction contained the partition.
        for group in [None, Some(3), Some(90)] {
            check([Some(50), Some(60), group], true, 50, Some(Some(50)));
            check([Some(50), Some(60), group], true, 55, Some(Some(60)));
            check([Some(50), Some(60), group], true, 61, None);
        }
        check([Some(50), Some(60), Some(50)], true, 55, Some(Some(60)));
        let claims = Claims { unsettled: vec![55, 60], ..claims_of(50) };
        assert_eq!([53, 57].map(|outputs| claims.settle(outputs)), [Ok(Some(55)), Ok(Some(60))]);
        check([Some(50), Some(60), Some(60)], true, 50, Some(Some(50)));
    }

    #[test]
    fn where_entries_were_lost_the_group_may_know_more() {
        check([Some(50), None, Some(70)], false, 60, Some(Some(70)));
        check([Some(50), None, Some(40)], false, 50, Some(Some(50)));
        check([Some(50), None, None], false, 50, Some(Some(50)));
        check([Some(50), None, Some(70)], false, 71, None);
        check([None, None, Some(70)], false, 60, Some(Some(70)));
        check([None, None, Some(70)], false, 71, None);
        check([None, None, None], false, 0, Some(None));
        check([None, None, None], false, 1, None);
    }

    #[test]
    fn what_no_journal_knows_begins_at_the_beginning() {
        for group in [None, Some(0), Some(70)] {
            check([None, None, group], true, 0, Some(None));
            check([None, None, group], true, 1, None);
        }
    }

    #[test]
    fn requests_go_on_where_the_first_has_no_answer() {
        let at = |journal, is_certain, group| {
            Claims { journal, unsettled: Vec::new(), is_certain, group }.settle_requests()
        };
        assert_eq!([at(Some(5), true, None), at(Some(5), true, Some(9)), at(None, true, Some(9))], [5, 5, 0]);
        assert_eq!([at(Some(5), false, Some(9)), at(Some(5), false, None), at(None, false, None)], [9, 5, 0]);
    }
}
