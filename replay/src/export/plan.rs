//! Plans which records an export copies, and the group's committed offsets at its end.

use std::collections::BTreeMap;

use warptape_eventlog::{EventLog, LogError, OffsetRange, Record, TopicInfo, TopicPartition, TopicSpec};
use warptape_schemas::journal::{Checkpoint, Input, JournalEntry};

use super::state::Fold;
use super::window::{self, Wanted};
use super::{ExportOptions, partition_point};
use crate::accounts::Accounts;
use crate::cause::{self, CauseOf};
use crate::cut::{Cut, PartitionCut};
use crate::entries::Entries;
use crate::partition_reader::PartitionReader;
use crate::segments::Segments;
use crate::{ReplayError, VerifyOptions, outside};

/// The plan of an export.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) topics: Vec<TopicPlan>,
    /// Committed offsets of the group.
    pub(super) committed: Vec<(TopicPartition, i64)>,
    pub(super) notes: Vec<String>,
    /// States to be computed, which replace the log's own snapshots.
    pub(super) folds: Vec<Fold>,
}

/// The planned part of a topic.
#[derive(Debug)]
pub(super) struct TopicPlan {
    pub(super) spec: TopicSpec,
    /// Offsets to copy, by partition.
    pub(super) copied: Vec<OffsetRange>,
    /// True for each partition whose records before the first offset were removed, or are not copied.
    pub(super) is_trimmed: Vec<bool>,
}

impl Plan {
    /// Returns the number of offsets to copy.
    pub(super) fn offsets(&self) -> u64 {
        let ranges = self.topics.iter().flat_map(|topic| &topic.copied);
        let copied: u64 = ranges.map(|range| (range.next - range.first).unsigned_abs()).sum();
        copied + self.folds.iter().map(|fold| fold.to.unsigned_abs()).sum::<u64>()
    }

    pub(super) fn make(log: &dyn EventLog, options: &ExportOptions) -> Result<Self, ReplayError> {
        let (journal, sources) = (options.journal.clone(), options.sources.clone());
        let (lifecycle, public_keys, anchored) = (String::new(), Vec::new(), None);
        let outputs = options.with_ticks;
        let verified = VerifyOptions { journal, sources, outputs, lifecycle, public_keys, anchored };
        let cut = Cut::take(log, &verified)?;
        // The causes of the cut's outputs were written before the cut, so the ends read now include them.
        let mut names = verified.topics();
        names.extend(options.others.iter().map(String::as_str));
        let topics =
            log.topics_named(&names)?.into_iter().map(|topic| (topic.spec.name.clone(), topic)).collect();
        let mut planning = Planning { log, options, cut: &cut, topics, plan: Self::default() };
        if options.window.is_whole() {
            let journals = cut.journal.clone();
            planning.plan_all(&journals, None)?;
            return Ok(planning.plan);
        }
        let wanted = window::wanted(log, &options.journal, &cut.journal, &options.window)?;
        let all = Entries::open_all(log, &options.journal)?;
        let within = |entries: &Entries<'_>| {
            let Wanted { since, until } = wanted[entries.partition() as usize];
            OffsetRange { first: since, next: until }
        };
        outside::refuse(&all.iter().map(|entries| (entries, within(entries))).collect::<Vec<_>>())?;
        let scan = match planning.scan(&wanted, true)? {
            scan if scan.is_consistent(&cut) => scan,
            // Clocks of processes may differ, so one process may have continued from a transaction that another process
            // sealed later by its own clock.
            _ => {
                let note = "the journals do not agree at the end of the window, so the window was moved to \
                            their ends";
                planning.plan.notes.push(note.to_owned());
                planning.scan(&wanted, false)?
            }
        };
        let journals = scan.journals.clone();
        for (entries, range) in all.iter().zip(&journals) {
            planning.plan.notes.extend(written(entries, *range)?);
        }
        planning.plan_all(&journals, Some(&scan))?;
        Ok(planning.plan)
    }
}

/// Describes the entries of a journal that are copied for a window.
fn written(entries: &Entries<'_>, range: OffsetRange) -> Result<Option<String>, ReplayError> {
    let reach = entries.reach_of(range)?;
    let words = "an export begins with the start or checkpoint before its window, and ends with the last transaction sealed in the window";
    Ok(reach.map(|reach| format!("of the journal, {reach}: {words}")))
}

/// The contents of the journals within a window.
struct Scan {
    /// Offsets of the entries, by partition of the journal.
    journals: Vec<OffsetRange>,
    /// True if any journal is cut before its end.
    is_cut: bool,
    accounts: Accounts,
    segments: Segments,
    /// True until the journal being read has a start or checkpoint; until then its configuration is unknown.
    is_headless: bool,
    /// Sequence after the last entry, by partition of the journal.
    next_sequences: Vec<Option<i64>>,
    /// First tick record in the window's transactions, by partition of the ticks.
    first_sealed: BTreeMap<i32, i64>,
    /// End offset of the market snapshots of risk requests, by partition of the ticks.
    as_of: BTreeMap<i32, i64>,
    /// Number of risk results, by partition of the ticks.
    results: BTreeMap<i32, i64>,
}

impl Scan {
    fn new(journals: Vec<OffsetRange>, is_cut: bool) -> Self {
        Self {
            journals,
            is_cut,
            accounts: Accounts::default(),
            segments: Segments::default(),
            is_headless: true,
            next_sequences: Vec::new(),
            first_sealed: BTreeMap::new(),
            as_of: BTreeMap::new(),
            results: BTreeMap::new(),
        }
    }

    fn add(&mut self, entry: &JournalEntry) {
        self.accounts.add(entry);
        self.is_headless &= !matches!(
            &entry.input,
            Input::Started(_) | Input::Checkpoint(Checkpoint { started: Some(_), .. })
        );
        if !self.is_headless {
            self.segments.add(entry);
        }
        *self.next_sequences.last_mut().expect("a journal has begun") = entry.sequence.checked_add(1);
        match &entry.input {
            Input::Sealed(sealed) => {
                for account in &sealed.partitions {
                    let first = self.first_sealed.entry(account.partition).or_insert(account.first_offset);
                    *first = account.first_offset.min(*first);
                    *self.results.entry(account.partition).or_default() += account.risk_results;
                }
            }
            Input::TaskArrived(task) => {
                for as_of in &task.as_of {
                    let reach = self.as_of.entry(as_of.partition).or_default();
                    *reach = as_of.next_offset.max(*reach);
                }
            }
            _ => {}
        }
    }

    /// Returns the group's committed offset of a tick partition at the window's end.
    fn committed(&self, cut: &Cut, partition: i32) -> Option<i64> {
        match self.is_cut {
            false => cut.committed[partition as usize],
            true => self.accounts.reached(partition),
        }
    }

    /// True if the journals are consistent with each other at the window's end.
    fn is_consistent(&self, cut: &Cut) -> bool {
        (0..cut.committed.len() as i32).all(|partition| {
            let Some(committed) = self.committed(cut, partition) else { return true };
            self.accounts.agrees(&self.accounts.covered(partition, committed), committed)
        })
    }
}

/// A plan in progress.
struct Planning<'a> {
    log: &'a dyn EventLog,
    options: &'a ExportOptions,
    cut: &'a Cut,
    topics: BTreeMap<String, TopicInfo>,
    plan: Plan,
}

impl Planning<'_> {
    /// Reads the entries of the window, which is extended so that it can be replayed.
    fn scan(&self, wanted: &[Wanted], is_to_end: bool) -> Result<Scan, ReplayError> {
        let journal = &self.options.journal;
        let (mut journals, mut is_cut) = (Vec::new(), false);
        for ((partition, range), wanted) in (0..).zip(&self.cut.journal).zip(wanted) {
            let source = TopicPartition { topic: journal.clone(), partition };
            let first = window::begin_before(self.log, &source, *range, wanted.since)?;
            let end = match is_to_end {
                true => window::end_behind(self.log, &source, *range, *wanted)?,
                false => None,
            };
            is_cut |= end.is_some();
            journals.push(OffsetRange { first, next: end.unwrap_or(range.next) });
        }
        let mut scan = Scan::new(journals.clone(), is_cut);
        for (partition, range) in (0..).zip(journals) {
            scan.accounts.begin();
            scan.segments.begin();
            scan.is_headless = true;
            scan.accounts.is_trimmed |= range.first > 0;
            scan.next_sequences.push(None);
            let source = TopicPartition { topic: journal.clone(), partition };
            let mut reader = PartitionReader::open(self.log, source, range)?;
            // Records that are not entries are copied unchanged; a verification of the file finds them.
            while let Some((_, entry)) = reader.next_entry()? {
                scan.add(&entry);
            }
        }
        Ok(scan)
    }

    fn plan_all(&mut self, journals: &[OffsetRange], scan: Option<&Scan>) -> Result<(), ReplayError> {
        let ExportOptions { journal, sources, others, with_ticks, .. } = self.options;
        self.plan_topic(journal, journals.to_vec());
        let committed: Vec<Option<i64>> = match scan {
            None => self.cut.committed.clone(),
            Some(scan) => (0..self.cut.committed.len() as i32)
                .map(|partition| scan.committed(self.cut, partition))
                .collect(),
        };
        for (partition, end) in (0..).zip(&self.cut.journal_ends) {
            let next = scan.filter(|scan| scan.is_cut).map_or(*end, |scan| scan.next_sequences[partition]);
            // A journal partition without entries of the group's processes has no end.
            self.commit(journal, partition as i32, end.and(next));
        }
        for (partition, next) in (0..).zip(&committed) {
            self.commit(&sources.ticks, partition, *next);
        }
        if *with_ticks {
            self.plan_ticks(&committed, scan)?;
        } else {
            for topic in [&sources.ticks, &sources.signals, &sources.late, &sources.dead_letter] {
                self.plan_topic(topic, self.nothing_of(topic));
            }
        }
        self.plan_risk(scan)?;
        self.plan_controls(scan);
        for topic in others {
            let all = self.topics.get(topic).map(|info| info.offsets.clone()).unwrap_or_default();
            for partition in 0..all.len() as i32 {
                self.commit_as_found(topic, partition)?;
            }
            self.plan_topic(topic, all);
        }
        Ok(())
    }

    /// Plans ticks, their outputs, and snapshots.
    fn plan_ticks(&mut self, committed: &[Option<i64>], scan: Option<&Scan>) -> Result<(), ReplayError> {
        let sources = &self.options.sources;
        let outputs: [(&String, CauseOf); 3] = [
            (&sources.signals, cause::of_signal),
            (&sources.late, cause::of_late_tick),
            (&sources.dead_letter, cause::of_dead_letter),
        ];
        let (mut ticks, mut planned) = (Vec::new(), [const { Vec::new() }; 3]);
        for ((partition, cut), committed) in (0..).zip(&self.cut.partitions).zip(committed) {
            let found = [cut.signals, cut.late, cut.dead_letter];
            let all = self.topics[&sources.ticks].offsets[partition as usize];
            let Some(scan) = scan else {
                ticks.push(all);
                planned.iter_mut().zip(found).for_each(|(planned, range)| planned.push(range));
                continue;
            };
            let next = committed.unwrap_or(0);
            let first = scan.first_sealed.get(&partition).copied().unwrap_or(next);
            ticks.push(self.ticks_of(partition, all, OffsetRange { first, next }, scan)?);
            for ((planned, range), (topic, cause_of)) in planned.iter_mut().zip(found).zip(outputs) {
                let source = TopicPartition { topic: topic.clone(), partition };
                planned.push(self.caused(
                    source,
                    range,
                    OffsetRange { first, next },
                    scan.is_cut,
                    cause_of,
                )?);
            }
        }
        self.plan_topic(&sources.ticks, ticks);
        for (planned, (topic, _)) in planned.into_iter().zip(outputs) {
            self.plan_topic(topic, planned);
        }
        // Snapshots for a window are computed, not copied.
        let none = OffsetRange { first: 0, next: 0 };
        let of = |cut: &PartitionCut| cut.snapshots.filter(|_| scan.is_none()).unwrap_or(none);
        self.plan_topic(&sources.snapshots, self.cut.partitions.iter().map(of).collect());
        Ok(())
    }

    /// Returns the range of ticks needed to compare the outputs of the ticks in `caused`. It begins with the tick
    /// before them if the state before them is computed as a snapshot, and otherwise with the first tick.
    fn ticks_of(
        &mut self,
        partition: i32,
        all: OffsetRange,
        caused: OffsetRange,
        scan: &Scan,
    ) -> Result<OffsetRange, ReplayError> {
        let sources = &self.options.sources;
        let reach = scan.as_of.get(&partition).copied().unwrap_or(0);
        let next = if scan.is_cut { caused.next.max(reach).clamp(all.first, all.next) } else { all.next };
        if caused.first >= caused.next {
            let first = caused.next.clamp(all.first, all.next);
            return Ok(OffsetRange { first, next: next.max(first) });
        }
        if scan.segments.is_empty() {
            return Err(ReplayError::NoConfig {
                url: self.log.url(),
                topic: self.options.journal.clone(),
                partition,
            });
        }
        let mut segments = scan.segments.of(partition, caused.next);
        segments.retain(|segment| segment.to > caused.first);
        let ([only], true) = (segments.as_slice(), self.topics.contains_key(&sources.snapshots)) else {
            if segments.len() > 1 {
                let note = format!(
                    "{}/{partition}: the stage configuration changes within the window, so the file also has all earlier ticks",
                    sources.ticks
                );
                self.plan.notes.push(note);
            }
            return Ok(OffsetRange { first: all.first, next });
        };
        if caused.first > 0 {
            let config = scan.segments.config(only.config)?;
            self.plan.folds.push(Fold { partition, to: caused.first, first: all.first, config });
        }
        let source = TopicPartition { topic: sources.ticks.clone(), partition };
        let (_, last) = partition_point(self.log, source, all, |record| Ok(record.offset < caused.first))?;
        // The tick before the window proves to readers of the file that none is missing after it.
        let first = last.unwrap_or(all.first);
        Ok(OffsetRange { first, next: next.max(first) })
    }

    /// Returns the outputs that a range of ticks caused, and the output before them.
    fn caused(
        &self,
        source: TopicPartition,
        range: OffsetRange,
        by: OffsetRange,
        is_cut: bool,
        cause_of: CauseOf,
    ) -> Result<OffsetRange, ReplayError> {
        let is_before = |offset: i64, record: &Record| match cause_of(&record.value) {
            Some(cause) => Ok(cause < offset),
            None => Err(ReplayError::OutputUnreadable {
                url: self.log.url(),
                topic: source.topic.clone(),
                partition: source.partition,
                offset: record.offset,
            }),
        };
        let point = |offset: i64| {
            partition_point(self.log, source.clone(), range, |record| is_before(offset, record))
        };
        let (_, last) = point(by.first)?;
        let next = if is_cut { point(by.next)?.0 } else { range.next };
        let first = last.unwrap_or(range.first);
        Ok(OffsetRange { first, next: next.max(first) })
    }

    /// Plans risk requests and results. If the window ends early, includes only those that the window's journals
    /// account for.
    fn plan_risk(&mut self, scan: Option<&Scan>) -> Result<(), ReplayError> {
        let sources = &self.options.sources;
        let of = |topic: &String| self.topics.get(topic).map(|info| info.offsets.clone()).unwrap_or_default();
        let (requests, mut results) = (of(&sources.risk_requests), of(&sources.risk_results));
        for (range, cut) in results.iter_mut().zip(&self.cut.risk) {
            *range = cut.results;
        }
        // Results in a window that begins later are not compared, so their end does not matter.
        let cut_scan = scan.filter(|scan| scan.is_cut && !scan.accounts.is_trimmed);
        for partition in 0..requests.len() as i32 {
            let next = match cut_scan {
                Some(scan) => scan.accounts.next_request(partition).filter(|next| *next > 0),
                None => match self.cut.risk.get(partition as usize) {
                    Some(cut) => Some(cut.answered).filter(|next| *next > 0),
                    None => self.committed_of(&sources.risk_requests, partition)?,
                },
            };
            self.commit(&sources.risk_requests, partition, next);
        }
        if let Some(scan) = cut_scan {
            for (partition, range) in (0..).zip(&mut results) {
                let count = scan.results.get(&partition).copied().unwrap_or(0);
                let source = TopicPartition { topic: sources.risk_results.clone(), partition };
                range.next = self.behind(source, *range, count)?;
            }
        }
        self.plan_topic(&sources.risk_requests, requests);
        self.plan_topic(&sources.risk_results, results);
        Ok(())
    }

    /// Plans operators' commands and the answers to them. Plans none for a window that ends early, because its journal
    /// has both up to its end.
    fn plan_controls(&mut self, scan: Option<&Scan>) {
        let sources = &self.options.sources;
        if scan.is_some_and(|scan| scan.is_cut) || self.cut.controls.is_empty() {
            for topic in [&sources.control, &sources.control_results] {
                self.plan_topic(topic, self.nothing_of(topic));
            }
            return;
        }
        let cuts = &self.cut.controls;
        for (process, cut) in (0..).zip(cuts) {
            self.commit(&sources.control, process, cut.answered);
        }
        self.plan_topic(&sources.control, cuts.iter().map(|cut| cut.commands).collect());
        self.plan_topic(&sources.control_results, cuts.iter().map(|cut| cut.results).collect());
    }

    /// Returns the offset after the first `count` records of a range.
    fn behind(&self, source: TopicPartition, range: OffsetRange, count: i64) -> Result<i64, LogError> {
        let mut reader = PartitionReader::open(self.log, source, range)?;
        let mut next = range.first;
        for _ in 0..count {
            let Some(record) = reader.next()? else { break };
            next = record.offset + 1;
        }
        Ok(next)
    }

    /// Returns the ends of a topic's partitions as empty ranges.
    fn nothing_of(&self, topic: &str) -> Vec<OffsetRange> {
        let of = |range: &OffsetRange| OffsetRange { first: range.next, next: range.next };
        self.topics.get(topic).map(|info| info.offsets.iter().map(of).collect()).unwrap_or_default()
    }

    /// Adds a topic, if the log has it.
    fn plan_topic(&mut self, topic: &str, copied: Vec<OffsetRange>) {
        let Some(info) = self.topics.get(topic) else { return };
        let is_trimmed = copied.iter().zip(&info.offsets);
        let is_trimmed = is_trimmed.map(|(copied, all)| copied.first > all.first || all.first > 0).collect();
        self.plan.topics.push(TopicPlan { spec: info.spec.clone(), copied, is_trimmed });
    }

    fn commit(&mut self, topic: &str, partition: i32, next: Option<i64>) {
        if let (Some(next), true) = (next, self.topics.contains_key(topic)) {
            self.plan.committed.push((TopicPartition { topic: topic.to_owned(), partition }, next));
        }
    }

    fn commit_as_found(&mut self, topic: &str, partition: i32) -> Result<(), LogError> {
        let next = self.committed_of(topic, partition)?;
        self.commit(topic, partition, next);
        Ok(())
    }

    fn committed_of(&self, topic: &str, partition: i32) -> Result<Option<i64>, LogError> {
        let place = TopicPartition { topic: topic.to_owned(), partition };
        self.log.committed(&self.options.sources.group, &place)
    }
}
