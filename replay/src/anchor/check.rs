//! Compares anchors with the journals: which entries are signed by whom, and which anchored entries are missing.

use std::collections::BTreeMap;

use warptape_eventlog::{EventLog, LogError, OffsetRange, Record, TopicPartition};
use warptape_schemas::hex::Digits;
use warptape_schemas::journal::JournalEntry;

use super::{Anchor, Anchored, LIFE_HEADER, PublicKey, Told};
use crate::divergence::{AnchorDivergence, AnchorProblem};
use crate::partition_reader::PartitionReader;

/// Compares the anchors of a log, if this is requested.
pub(crate) struct AnchorCheck<'a> {
    topic: &'a str,
    keys: &'a [PublicKey],
    anchored: Option<&'a Anchored>,
    partitions: BTreeMap<i32, PartitionCheck>,
}

/// A partition of the journal.
#[derive(Default)]
struct PartitionCheck {
    /// Sequence of the first entry, and of the last one.
    first: Option<i64>,
    last: i64,
    /// Sequence of the newest entry signed by a given key, and the number of signatures.
    signed: Option<i64>,
    signatures: u64,
    /// The lifecycle records of each life, as counted by its newest signed anchor.
    told: BTreeMap<i64, Told>,
    problem: Option<AnchorProblem>,
}

impl<'a> AnchorCheck<'a> {
    pub(crate) fn new(topic: &'a str, keys: &'a [PublicKey], anchored: Option<&'a Anchored>) -> Self {
        Self { topic, keys, anchored, partitions: BTreeMap::new() }
    }

    fn is_asked_for(&self) -> bool {
        !self.keys.is_empty() || self.anchored.is_some()
    }

    /// Adds the next entry of a partition, after it was found identical.
    pub(crate) fn add(&mut self, partition: i32, record: &Record, entry: &JournalEntry) {
        if !self.is_asked_for() {
            return;
        }
        let check = self.partitions.entry(partition).or_default();
        check.first.get_or_insert(entry.sequence);
        check.last = entry.sequence;
        let problem = match self.signature(partition, record, entry) {
            Ok(None) => self.compare(partition, entry.sequence, entry.hash),
            Ok(Some(told)) => {
                let check = self.partitions.entry(partition).or_default();
                check.signed = Some(entry.sequence);
                check.signatures += 1;
                check.told.insert(told.life, told);
                self.compare(partition, entry.sequence, entry.hash)
            }
            Err(problem) => Some(problem),
        };
        let check = self.partitions.entry(partition).or_default();
        check.problem = check.problem.take().or(problem);
    }

    /// Returns the lifecycle records that an entry's anchor counts; `None` unless a given key signed the anchor.
    fn signature(
        &self,
        partition: i32,
        record: &Record,
        entry: &JournalEntry,
    ) -> Result<Option<Told>, AnchorProblem> {
        if self.keys.is_empty() {
            return Ok(None);
        }
        let sequence = entry.sequence;
        let forged = |what: String| AnchorProblem::Forged { sequence, what };
        let anchor = match Anchor::of(record) {
            None => return Ok(None),
            Some(Err(error)) => return Err(forged(error.to_string())),
            Some(Ok(anchor)) => anchor,
        };
        let Some(key) = self.keys.iter().find(|key| key.id() == anchor.key) else { return Ok(None) };
        if !anchor.is_by(key) {
            return Err(forged(format!("its signature was not made with the key {}", anchor.key)));
        }
        let statement = &anchor.statement;
        let found = (statement.topic.as_str(), statement.partition, statement.sequence, statement.hash);
        if found != (self.topic, partition, sequence, entry.hash) {
            return Err(forged(format!("its anchor belongs to another entry: {statement}")));
        }
        Ok(Some(statement.told))
    }

    /// Compares an entry with an anchor that was stored elsewhere.
    fn compare(&self, partition: i32, sequence: i64, hash: Digits<64>) -> Option<AnchorProblem> {
        let anchors = self.anchored?.partitions.get(&(self.topic.to_owned(), partition))?;
        let anchored = anchors.entries.get(&sequence).filter(|anchored| **anchored != hash)?;
        let (anchored_hash, hash) = ((*anchored).into(), hash.into());
        Some(AnchorProblem::Rewritten { sequence, anchored_hash, hash })
    }

    /// Returns the first difference; `None` if there is none. Must be called after all entries were read.
    pub(crate) fn divergence(&mut self) -> Option<AnchorDivergence> {
        let topic = self.topic.to_owned();
        let of = |partition, problem| AnchorDivergence { topic: topic.clone(), partition, problem };
        for ((anchored_topic, partition), anchors) in self.anchored.iter().flat_map(|all| &all.partitions) {
            if anchored_topic != self.topic {
                continue;
            }
            let found = self.partitions.entry(*partition).or_default();
            let newest = anchors.entries.last_key_value().map(|(sequence, _)| *sequence);
            let next = found.first.map_or(0, |_| found.last + 1);
            let cut = newest.filter(|newest| *newest >= next);
            let problem =
                found.problem.take().or(cut.map(|anchored_sequence| AnchorProblem::CutOff {
                    anchored_sequence,
                    next_sequence: next,
                }));
            let torn = anchors.torn.map(|sequence| AnchorProblem::Twice { sequence });
            if let Some(problem) = problem.or(torn) {
                return Some(of(*partition, problem));
            }
            for (life, told) in &anchors.told {
                let known = found.told.entry(*life).or_insert(*told);
                if known.count < told.count {
                    *known = *told;
                }
            }
        }
        for (&partition, found) in &mut self.partitions {
            if let Some(problem) = found.problem.take() {
                return Some(of(partition, problem));
            }
            let is_signed = found.signed.is_some_and(|signed| signed >= found.last);
            if !self.keys.is_empty() && !is_signed && found.first.is_some() {
                let first_sequence = found.signed.map_or(found.first.unwrap_or(0), |signed| signed + 1);
                let keys = self.keys.iter().map(PublicKey::id).collect::<Vec<_>>().join(", ");
                let last_sequence = found.last;
                return Some(of(partition, AnchorProblem::Unsigned { first_sequence, last_sequence, keys }));
            }
        }
        None
    }

    /// Compares the lifecycle topic with the lifecycle records that anchors count for each life.
    pub(crate) fn check_told(
        &self,
        log: &dyn EventLog,
        topic: &str,
        notes: &mut Vec<String>,
    ) -> Result<Option<AnchorDivergence>, LogError> {
        let lives = self
            .partitions
            .iter()
            .flat_map(|(partition, check)| check.told.values().map(|told| ((*partition, told.life), *told)));
        let expected: BTreeMap<(i32, i64), Told> = lives.collect();
        let known = log.topics()?.into_iter().find(|known| known.spec.name == topic);
        let Some(&range) = known.as_ref().and_then(|known| known.offsets.first()) else { return Ok(None) };
        if expected.is_empty() {
            return Ok(None);
        }
        let found = self.read_told(log, topic, range, &expected)?;
        for (&(partition, life), &expected) in &expected {
            let found = found.get(&(partition, life));
            if found.is_some_and(|found| found.was_as(expected)) {
                continue;
            }
            let count = found.map_or(0, |found| found.told.count);
            if expected.count == 0 {
                continue;
            }
            // If the topic's beginning is gone, retention may have removed the missing records of a life.
            if range.first > 0 {
                let first = range.first;
                notes.push(format!(
                    "{topic} begins at offset {first}: lifecycle records of the process that started at \
                     {life} ns were not compared"
                ));
                continue;
            }
            let problem = AnchorProblem::Told { life, expected: expected.count, found: count };
            return Ok(Some(AnchorDivergence { topic: topic.to_owned(), partition, problem }));
        }
        Ok(None)
    }

    fn read_told(
        &self,
        log: &dyn EventLog,
        topic: &str,
        range: OffsetRange,
        expected: &BTreeMap<(i32, i64), Told>,
    ) -> Result<BTreeMap<(i32, i64), Read>, LogError> {
        let source = TopicPartition { topic: topic.to_owned(), partition: 0 };
        let mut reader = PartitionReader::open(log, source, range)?;
        let mut lives: BTreeMap<(i32, i64), Read> = BTreeMap::new();
        while let Some(record) = reader.next()? {
            let Some(life) = life_of(&record).filter(|life| expected.contains_key(life)) else { continue };
            let read = lives.entry(life).or_insert_with(|| Read::new(life.1));
            // A record whose write had an unknown outcome was written again, so the topic may have it twice.
            if read.newest.as_ref() != Some(&record.value) {
                read.told = read.told.with(&record.value);
                read.is_reached |= Some(&read.told) == expected.get(&life);
                read.newest = Some(record.value);
            }
        }
        Ok(lives)
    }

    /// Describes which entries are covered.
    pub(crate) fn notes(&self) -> Vec<String> {
        let topic = self.topic;
        let mut notes = Vec::new();
        for (partition, check) in &self.partitions {
            if let (Some(first), Some(signed)) = (check.first, check.signed) {
                // The hash of the first remaining entry depends on an entry that is gone.
                let first = if first > 0 { first + 1 } else { first };
                notes.push(format!(
                    "{topic}/{partition}: entries {first} to {signed} are signed, by {} signatures",
                    check.signatures
                ));
            }
        }
        if let Some(Anchored { source, partitions, unreadable, foreign, is_verified, .. }) = self.anchored {
            let count: usize = partitions.values().map(|partition| partition.entries.len()).sum();
            let how = if *is_verified {
                "verified"
            } else {
                "accepted without a check of their signatures, \
                                                             because no public key was given"
            };
            notes.push(format!("{count} anchors of {source} were compared, {how}"));
            if unreadable + foreign > 0 {
                notes.push(format!(
                    "{source}: {unreadable} lines are not anchors, and {foreign} anchors are signed with other keys"
                ));
            }
            let others = partitions.keys().filter(|(anchored, _)| anchored != topic);
            notes.extend(others.map(|(other, partition)| {
                format!("{source}: anchors of {other}/{partition} were not compared")
            }));
        }
        notes
    }
}

/// The records of a life that were read so far.
struct Read {
    told: Told,
    newest: Option<Vec<u8>>,
    /// True once these records equal those that the anchor counts and hashes.
    is_reached: bool,
}

impl Read {
    fn new(life: i64) -> Self {
        Self { told: Told::new(life), newest: None, is_reached: false }
    }

    fn was_as(&self, expected: Told) -> bool {
        self.is_reached || expected.count == 0
    }
}

/// Returns the life that wrote a record, according to its header; `None` without such a header.
fn life_of(record: &Record) -> Option<(i32, i64)> {
    let (_, value) = record.headers.iter().find(|(name, _)| name == LIFE_HEADER)?;
    let (partition, life) = std::str::from_utf8(value).ok()?.split_once('/')?;
    Some((partition.parse().ok()?, life.parse().ok()?))
}
