//! A cut of a log at one moment: a consistent end of each topic, even while a pipeline writes.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use warptape_eventlog::{EventLog, LogError, OffsetRange, TopicPartition};

use crate::error::no_topic;
use crate::{OutputOptions, ReplayError, VerifyOptions};

/// Greatest number of attempts to read the ends. Commits are about 100 ms apart, and an attempt takes a few ms.
const ATTEMPTS_MAX: u32 = 100;
/// Longest wait for the end of a transaction. The transaction of a dead process stays open until its timeout, which a
/// broker checks every ten seconds.
const UNDECIDED_WAIT_MAX: Duration = Duration::from_secs(120);
/// Wait after which the user is informed.
const UNDECIDED_QUIET: Duration = Duration::from_secs(1);
/// Pause between two checks for the end of the transaction.
const UNDECIDED_PAUSE: Duration = Duration::from_millis(50);

/// Offsets of partitions, by topic.
pub(crate) type Shelf = BTreeMap<String, Vec<OffsetRange>>;

/// The extent of a verification, at one moment between two transactions.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    /// The journal's offsets by partition; each process of a group writes one partition.
    pub(crate) journal: Vec<OffsetRange>,
    /// Sequence up to which each partition of the journal must have entries, according to the group's committed offset;
    /// `None` without a committed offset.
    pub(crate) journal_ends: Vec<Option<i64>>,
    /// Committed offsets of the ticks, by partition; empty if the log has a journal but no ticks.
    pub(crate) committed: Vec<Option<i64>>,
    /// Ticks and outputs by partition; empty if outputs are not requested.
    pub(crate) partitions: Vec<PartitionCut>,
    /// Risk requests and results by partition; empty if outputs are not requested or there are no risk topics.
    pub(crate) risk: Vec<RiskCut>,
    /// True if the beginning of risk requests, of results or of ticks was removed.
    pub(crate) is_risk_gone: bool,
    /// Commands and answers by process; empty if the log has no such topics.
    pub(crate) controls: Vec<ControlCut>,
}

/// Ticks and outputs of a partition.
#[derive(Debug)]
pub(crate) struct PartitionCut {
    /// Ticks whose outputs exist. Earlier ticks may have been removed.
    pub(crate) ticks: OffsetRange,
    pub(crate) signals: OffsetRange,
    pub(crate) late: OffsetRange,
    pub(crate) dead_letter: OffsetRange,
    /// Snapshots; `None` if the topic does not exist.
    pub(crate) snapshots: Option<OffsetRange>,
}

/// Risk requests and results of a partition.
#[derive(Debug)]
pub(crate) struct RiskCut {
    /// All existing ticks, because a market snapshot may be ahead of the committed ticks.
    pub(crate) ticks: OffsetRange,
    pub(crate) requests: OffsetRange,
    /// Offset before which every request has its result; some later requests may have one, too.
    pub(crate) answered: i64,
    pub(crate) results: OffsetRange,
}

/// Operators' commands to a process, and its answers.
#[derive(Debug)]
pub(crate) struct ControlCut {
    pub(crate) commands: OffsetRange,
    /// Offset before which every command has its answer; `None` if the group has no committed offset, or has lost it.
    pub(crate) answered: Option<i64>,
    pub(crate) results: OffsetRange,
}

impl Cut {
    /// Reads the ends repeatedly until nothing was committed in between.
    pub(crate) fn take(log: &dyn EventLog, options: &VerifyOptions) -> Result<Self, ReplayError> {
        let mut written = vec![options.journal.as_str(), options.sources.control_results.as_str()];
        if options.outputs {
            let outputs = &options.sources;
            let topics = [
                &outputs.signals,
                &outputs.late,
                &outputs.dead_letter,
                &outputs.snapshots,
                &outputs.risk_results,
            ];
            written.extend(topics.map(String::as_str));
        }
        let topics = options.topics();
        let mut shelf = decided(log, &topics, &written)?;
        for _ in 0..ATTEMPTS_MAX {
            let mut cut = Self::from_shelf(log, options, &shelf)?;
            // A group's offset may become visible before the records of its transaction.
            let after = decided(log, &topics, &written)?;
            if written.iter().all(|topic| shelf.get(*topic) == after.get(*topic)) {
                if options.outputs {
                    cut.take_inputs_of_risk(&options.sources, &after);
                }
                return Ok(cut);
            }
            shelf = after;
        }
        Err(ReplayError::Moving { url: log.url(), attempts: ATTEMPTS_MAX })
    }

    /// Reads the ends of requests and ticks last, so that the cut includes the request and the ticks of every result.
    fn take_inputs_of_risk(&mut self, outputs: &OutputOptions, shelf: &Shelf) {
        for (partition, risk) in self.risk.iter_mut().enumerate() {
            let range = |topic: &String| shelf.get(topic)?.get(partition).copied();
            risk.ticks = range(&outputs.ticks).unwrap_or(risk.ticks);
            risk.requests = range(&outputs.risk_requests).unwrap_or(risk.requests);
        }
    }

    fn from_shelf(log: &dyn EventLog, options: &VerifyOptions, shelf: &Shelf) -> Result<Self, ReplayError> {
        let journal = ranges(log, shelf, &options.journal)?.to_vec();
        if journal.iter().all(|range| range.first == range.next) {
            return Err(ReplayError::EmptyJournal { url: log.url(), topic: options.journal.clone() });
        }
        let sources = &options.sources;
        let committed_of = |topic| committed(log, &sources.group, topic, shelf);
        let (journal_ends, committed) = (committed_of(&options.journal)?, committed_of(&sources.ticks)?);
        let controls = controls(log, sources, shelf)?;
        let mut cut = Self { journal, journal_ends, committed, controls, ..Self::default() };
        if options.outputs {
            cut.partitions = partitions(log, sources, shelf, &cut.committed)?;
            (cut.risk, cut.is_risk_gone) = risk(log, sources, shelf)?;
        }
        Ok(cut)
    }
}

fn shelf(log: &dyn EventLog, topics: &[&str]) -> Result<Shelf, LogError> {
    Ok(log.topics_named(topics)?.into_iter().map(|topic| (topic.spec.name, topic.offsets)).collect())
}

/// Reads the ends of `topics` once all records written so far to the topics `written` are readable or aborted. An open
/// transaction hides all later commits in its partition, but not the group's offsets.
pub(crate) fn decided(log: &dyn EventLog, topics: &[&str], written: &[&str]) -> Result<Shelf, ReplayError> {
    let mut shelf = shelf(log, topics)?;
    let mut undecided = Vec::new();
    for topic in written {
        for partition in 0..shelf.get(*topic).map_or(0, Vec::len) {
            let source = TopicPartition { topic: (*topic).to_owned(), partition: partition as i32 };
            let end = log.written_end(&source)?;
            undecided.push((source, end));
        }
    }
    let since = Instant::now();
    let mut is_quiet = true;
    loop {
        undecided.retain(|(source, end)| {
            shelf.get(&source.topic).is_some_and(|ranges| ranges[source.partition as usize].next < *end)
        });
        let Some((source, _)) = undecided.first() else { return Ok(shelf) };
        let TopicPartition { topic, partition } = source;
        if since.elapsed() >= UNDECIDED_WAIT_MAX {
            let (topic, waited_s) = (topic.clone(), since.elapsed().as_secs());
            return Err(ReplayError::Undecided { url: log.url(), topic, partition: *partition, waited_s });
        }
        if is_quiet && since.elapsed() >= UNDECIDED_QUIET {
            tracing::warn!(
                topic,
                partition,
                "a transaction is open, perhaps of a process that died; waiting for its end"
            );
            is_quiet = false;
        }
        thread::park_timeout(UNDECIDED_PAUSE);
        shelf = self::shelf(log, topics)?;
    }
}

fn ranges<'a>(log: &dyn EventLog, shelf: &'a Shelf, topic: &str) -> Result<&'a [OffsetRange], ReplayError> {
    match shelf.get(topic) {
        Some(ranges) => Ok(ranges),
        None => Err(no_topic(log, topic)?),
    }
}

/// Returns the offsets of a topic, which must have as many partitions as the ticks.
fn fitting<'a>(
    log: &dyn EventLog,
    shelf: &'a Shelf,
    topic: &str,
    expected: usize,
) -> Result<&'a [OffsetRange], ReplayError> {
    let found = ranges(log, shelf, topic)?;
    if found.len() == expected {
        return Ok(found);
    }
    let (url, topic) = (log.url(), topic.to_owned());
    let (found, expected) = (found.len() as i32, expected as i32);
    Err(ReplayError::PartitionsDiffer { url, topic, found, expected })
}

/// Returns risk requests and results by partition. Also returns true if results exist but cannot be verified, because
/// the beginning of requests, results or ticks was removed.
fn risk(
    log: &dyn EventLog,
    outputs: &OutputOptions,
    shelf: &Shelf,
) -> Result<(Vec<RiskCut>, bool), ReplayError> {
    let topics = [&outputs.risk_requests, &outputs.risk_results];
    if topics.iter().all(|topic| !shelf.contains_key(*topic)) {
        return Ok((Vec::new(), false));
    }
    let ticks = ranges(log, shelf, &outputs.ticks)?;
    let [requests, results] = topics.map(|topic| fitting(log, shelf, topic, ticks.len()));
    let (requests, results) = (requests?, results?);
    let is_gone = |range: &OffsetRange| range.first > 0;
    if ticks.iter().chain(requests).chain(results).any(is_gone) {
        return Ok((Vec::new(), results.iter().any(|range| range.next > 0)));
    }
    let mut cuts = Vec::with_capacity(ticks.len());
    for (partition, &ticks) in ticks.iter().enumerate() {
        let (requests, results) = (requests[partition], results[partition]);
        let source = TopicPartition { topic: outputs.risk_requests.clone(), partition: partition as i32 };
        let answered = log.committed(&outputs.group, &source)?.unwrap_or(0);
        cuts.push(RiskCut { ticks, requests, answered, results });
    }
    Ok((cuts, false))
}

/// Returns operators' commands and their answers, by process.
fn controls(log: &dyn EventLog, outputs: &OutputOptions, shelf: &Shelf) -> Result<Vec<ControlCut>, LogError> {
    let topics = [&outputs.control, &outputs.control_results];
    let [Some(commands), Some(results)] = topics.map(|topic| shelf.get(topic)) else { return Ok(Vec::new()) };
    let answered = committed(log, &outputs.group, &outputs.control, shelf)?;
    let cuts = commands.iter().zip(results).zip(answered);
    Ok(cuts.map(|((&commands, &results), answered)| ControlCut { commands, answered, results }).collect())
}

/// Returns the group's committed offset of each partition of a topic.
fn committed(
    log: &dyn EventLog,
    group: &str,
    topic: &str,
    shelf: &Shelf,
) -> Result<Vec<Option<i64>>, LogError> {
    let partitions = 0..shelf.get(topic).map_or(0, Vec::len) as i32;
    let of = |partition| log.committed(group, &TopicPartition { topic: topic.to_owned(), partition });
    partitions.map(of).collect()
}

fn partitions(
    log: &dyn EventLog,
    outputs: &OutputOptions,
    shelf: &Shelf,
    committed: &[Option<i64>],
) -> Result<Vec<PartitionCut>, ReplayError> {
    let ticks = ranges(log, shelf, &outputs.ticks)?;
    let fitting = |topic: &str| fitting(log, shelf, topic, ticks.len());
    let (signals, late) = (fitting(&outputs.signals)?, fitting(&outputs.late)?);
    let dead_letter = fitting(&outputs.dead_letter)?;
    let mut cuts = Vec::with_capacity(ticks.len());
    for (partition, (range, committed)) in ticks.iter().zip(committed).enumerate() {
        let next = committed.unwrap_or(0);
        if next > range.next {
            check_ticks_end(log, outputs, partition as i32, next)?;
        }
        let cut = PartitionCut {
            ticks: OffsetRange { first: range.first, next },
            signals: signals[partition],
            late: late[partition],
            dead_letter: dead_letter[partition],
            snapshots: shelf.get(&outputs.snapshots).and_then(|ranges| ranges.get(partition)).copied(),
        };
        cuts.push(cut);
    }
    let is_filled = |cut: &PartitionCut| {
        [cut.signals, cut.late, cut.dead_letter].iter().any(|range| range.first < range.next)
    };
    if committed.iter().all(Option::is_none) && cuts.iter().any(is_filled) {
        return Err(ReplayError::NothingCommitted { url: log.url(), group: outputs.group.clone() });
    }
    Ok(cuts)
}

/// Refuses ticks that end before their committed offset. Reads the end again, because ticks arrive all the time.
fn check_ticks_end(
    log: &dyn EventLog,
    outputs: &OutputOptions,
    partition: i32,
    committed: i64,
) -> Result<(), ReplayError> {
    let end = log.topic(&outputs.ticks)?.map_or(0, |ticks| ticks.offsets[partition as usize].next);
    if committed <= end {
        return Ok(());
    }
    let (topic, group) = (outputs.ticks.clone(), outputs.group.clone());
    Err(ReplayError::TicksEnd { url: log.url(), topic, partition, end, group, committed })
}
