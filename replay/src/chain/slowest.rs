//! The signals with the longest time from the publication of their tick to their commit, each with its waits.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use serde::Serialize;
use warptape_eventlog::{EventLog, OffsetRange, Record, TopicPartition};
use warptape_schemas::decode_signal;

use super::context::Context;
use super::dealt::Dealer;
use super::facts::{Chain, SignalFacts, TickFacts};
use super::held::Held;
use super::signal::Signalled;
use super::waits::Wait;
use crate::error::no_topic;
use crate::history::{Ended, HistoryOptions, Item, SealedPart, Transaction, Window, read_history};
use crate::partition_reader::{PartitionReader, RecordWindow};
use crate::{OutputOptions, ReplayError, ReplayProgress, VerifyOptions};

/// Greatest number of signals listed, because each keeps its transaction in memory.
pub const SLOWEST_MAX: usize = 10_000;

/// Options of a search.
#[derive(Clone, Copy, Debug)]
pub struct SlowestOptions {
    /// Number of signals to list, at most [`SLOWEST_MAX`].
    pub count: usize,
    /// The window of transactions to search.
    pub window: Window,
    /// Partition of the journal; `None` for all partitions, each with its own offsets and sequences.
    pub partition: Option<i32>,
}

/// The result of the search.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Slowest {
    /// The slowest signals, the slowest first.
    pub signals: Vec<Slow>,
    /// Number of signals examined.
    pub seen: u64,
    /// Number of signals whose commit time is not in the journal.
    pub without_commit: u64,
    /// Number of examined signals whose tick record is gone.
    pub without_tick: u64,
    /// Number of signals that the journal lists but that are missing from the log or unreadable.
    pub without_record: u64,
}

impl Slowest {
    /// Returns the reasons why signals may be missing from the list, as sentences without a full stop. `number` formats
    /// a number.
    pub fn left_out(&self, number: impl Fn(u64) -> String) -> impl Iterator<Item = String> {
        let reasons = [
            (
                self.without_commit,
                "has no commit time in the journal, like the last signals of a process life",
                "have no commit time in the journal, like the last signals of a process life",
            ),
            (self.without_tick, "has a tick record that was removed", "have tick records that were removed"),
            (
                self.without_record,
                "is not in this log (as in an export without --with-ticks) or cannot be read",
                "are not in this log (as in an export without --with-ticks) or cannot be read",
            ),
        ];
        reasons.into_iter().filter(|(count, ..)| *count > 0).map(move |(count, one, many)| match count {
            1 => format!("1 signal is left out: it {one}"),
            _ => format!("{} signals are left out: they {many}", number(count)),
        })
    }
}

/// A slow signal.
#[derive(Clone, Debug, Serialize)]
pub struct Slow {
    /// Longest wait of the signal.
    pub main: Option<Wait>,
    /// The whole chain.
    pub chain: Chain,
    /// Causes that held the signal up, the longest first; waits for the same lane are added up.
    pub held_by: Vec<Held>,
}

/// An event during the search for the slowest signals.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// An item of the history within the window. The signals of a transaction come before the transaction itself.
    Item(&'a Item),
    /// An item from before the window, whose life may continue in the window.
    Before(&'a Item),
    /// A signal whose commit time is in the journal.
    Signal {
        /// Partition of the signal.
        partition: i32,
        /// Commit time of the signal, ns since the epoch.
        committed_ns: i64,
        /// Time from the publication of the signal's tick to the commit, ns; `None` if the tick is gone. It may be
        /// negative if clocks of several machines are involved.
        latency_ns: Option<i64>,
    },
}

/// Finds the slowest signals. Memory is bounded by the open items of the journal, and by the transactions of the listed
/// signals.
///
/// # Errors
/// If the log cannot be read.
pub fn slowest(
    log: &dyn EventLog,
    options: &VerifyOptions,
    wanted: SlowestOptions,
    progress: &mut dyn FnMut(ReplayProgress),
) -> Result<Slowest, ReplayError> {
    slowest_with(log, options, wanted, &mut |_| {}, progress)
}

/// Finds the slowest signals, and passes each event to `seen`. So a caller that needs more about the same window need
/// not read it again.
///
/// # Errors
/// If the log cannot be read.
pub fn slowest_with(
    log: &dyn EventLog,
    options: &VerifyOptions,
    wanted: SlowestOptions,
    seen: &mut dyn FnMut(Seen<'_>),
    progress: &mut dyn FnMut(ReplayProgress),
) -> Result<Slowest, ReplayError> {
    let history = HistoryOptions {
        journal: options.journal.clone(),
        partition: wanted.partition,
        window: wanted.window,
    };
    let mut search = Search {
        count: wanted.count.min(SLOWEST_MAX),
        sources: Sources::new(log, &options.sources)?,
        worst: BinaryHeap::new(),
        found: Slowest::default(),
    };
    let mut context = Context::default();
    let mut each = |ended: Ended, item: Item| {
        if ended == Ended::Before {
            // Signals within the window may have waited because of this item.
            context.follow(&item);
            seen(Seen::Before(&item));
            return Ok(());
        }
        if let Item::Transaction(transaction) = &item {
            search.look(&context, transaction, seen)?;
        }
        seen(Seen::Item(&item));
        context.follow(&item);
        Ok(())
    };
    read_history(log, &history, &mut each, progress)?;
    search.finish(log, options)
}

struct Search<'a> {
    count: usize,
    sources: Sources<'a>,
    /// The slowest signals so far, with the fastest of them on top.
    worst: BinaryHeap<Reverse<Candidate>>,
    found: Slowest,
}

/// A signal that may be listed. Candidates are ordered by latency; of two equal ones the first counts as slower.
struct Candidate {
    latency_ns: i64,
    number: Reverse<u64>,
    facts: SignalFacts,
    tick: TickFacts,
    part: usize,
    of: Arc<(Context, Arc<Transaction>)>,
}

impl Candidate {
    fn rank(&self) -> (i64, Reverse<u64>) {
        (self.latency_ns, self.number)
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl Search<'_> {
    fn look(
        &mut self,
        context: &Context,
        transaction: &Arc<Transaction>,
        seen: &mut dyn FnMut(Seen<'_>),
    ) -> Result<(), ReplayError> {
        let mut of = None;
        for (index, part) in transaction.partitions.iter().enumerate() {
            if part.may_be_void || part.account.signals == 0 {
                continue;
            }
            let Some(committed_ns) = transaction.committed_ns() else {
                self.found.without_commit += part.account.signals.unsigned_abs();
                continue;
            };
            let mut of =
                || of.get_or_insert_with(|| Arc::new((context.clone(), transaction.clone()))).clone();
            self.look_at_part(index, part, committed_ns, &mut of, seen)?;
        }
        Ok(())
    }

    fn look_at_part(
        &mut self,
        index: usize,
        part: &SealedPart,
        committed_ns: i64,
        of: &mut dyn FnMut() -> Arc<(Context, Arc<Transaction>)>,
        seen: &mut dyn FnMut(Seen<'_>),
    ) -> Result<(), ReplayError> {
        let account = &part.account;
        let source = self.sources.of(account.partition)?;
        let Some(source) = source else {
            self.found.without_record += account.signals.unsigned_abs();
            return Ok(());
        };
        source.seek(account.first_offset)?;
        let seen_before = self.found.seen;
        while let Some(record) = source.next_before(account.next_offset)? {
            let Ok(signal) = decode_signal(&record.value) else { continue };
            self.found.seen += 1;
            let created_ns = source.created_ns(signal.source_offset)?;
            let (partition, latency_ns) =
                (account.partition, created_ns.map(|created_ns| committed_ns.saturating_sub(created_ns)));
            seen(Seen::Signal { partition, committed_ns, latency_ns });
            let (Some(created_ns), Some(latency_ns)) = (created_ns, latency_ns) else {
                self.found.without_tick += 1;
                continue;
            };
            let is_full = self.worst.len() >= self.count;
            let number = Reverse(self.found.seen);
            if is_full && self.worst.peek().is_none_or(|Reverse(least)| least.rank() >= (latency_ns, number))
            {
                continue;
            }
            if is_full {
                self.worst.pop();
            }
            let tick = TickFacts {
                partition: account.partition,
                offset: signal.source_offset,
                index: signal.source_index,
                created_ns,
            };
            let facts = SignalFacts::new(account.partition, record.offset, &signal);
            self.worst.push(Reverse(Candidate { latency_ns, number, facts, tick, part: index, of: of() }));
        }
        let found_here = self.found.seen - seen_before;
        self.found.without_record += account.signals.unsigned_abs().saturating_sub(found_here);
        Ok(())
    }

    /// Assembles the chains. Chains of neighbouring records are assembled one after the other.
    fn finish(self, log: &dyn EventLog, options: &VerifyOptions) -> Result<Slowest, ReplayError> {
        let Self { worst, mut found, .. } = self;
        let mut dealer = Dealer::new(log, &options.sources);
        let mut all: Vec<Candidate> = worst.into_iter().map(|Reverse(candidate)| candidate).collect();
        all.sort_by_key(|candidate| {
            (candidate.tick.partition, candidate.tick.offset, candidate.facts.offset)
        });
        let mut chains = Vec::with_capacity(all.len());
        for candidate in all {
            let rank = Reverse(candidate.rank());
            let Candidate { facts, tick, part, of, .. } = candidate;
            let (context, transaction) = &*of;
            let part = &transaction.partitions[part];
            let chain = Signalled { facts, tick }.chain(context, transaction, part, &mut dealer)?;
            let main = chain.waits.iter().copied().max_by_key(|wait| wait.ns);
            let held_by = chain.held_by();
            chains.push((rank, Slow { main, chain, held_by }));
        }
        chains.sort_by_key(|(rank, _)| *rank);
        found.signals = chains.into_iter().map(|(_, slow)| slow).collect();
        Ok(found)
    }
}

/// Signals and ticks by partition.
struct Sources<'a> {
    log: &'a dyn EventLog,
    options: &'a OutputOptions,
    signals: Vec<OffsetRange>,
    ticks: Vec<OffsetRange>,
    open: BTreeMap<i32, Source<'a>>,
}

/// The signals of a partition in order, with their ticks.
struct Source<'a> {
    log: &'a dyn EventLog,
    source: TopicPartition,
    range: OffsetRange,
    reader: PartitionReader,
    /// The next signal, if it was already read.
    next: Option<Record>,
    /// Offset of the tick record before which all signals were already returned.
    given: Option<i64>,
    ticks: RecordWindow,
    tick_range: OffsetRange,
    /// Offset and create time of the last requested tick record.
    last: Option<(i64, i64)>,
}

impl<'a> Sources<'a> {
    fn new(log: &'a dyn EventLog, options: &'a OutputOptions) -> Result<Self, ReplayError> {
        let offsets = |name: &str| match log.topic(name)? {
            Some(topic) => Ok(topic.offsets),
            None => Err(no_topic(log, name)?),
        };
        let (signals, ticks) = (offsets(&options.signals)?, offsets(&options.ticks)?);
        Ok(Self { log, options, signals, ticks, open: BTreeMap::new() })
    }

    fn of(&mut self, partition: i32) -> Result<Option<&mut Source<'a>>, ReplayError> {
        let Ok(index) = usize::try_from(partition) else { return Ok(None) };
        let (Some(&range), Some(&tick_range)) = (self.signals.get(index), self.ticks.get(index)) else {
            return Ok(None);
        };
        if !self.open.contains_key(&partition) {
            let of = |topic: &String| TopicPartition { topic: topic.clone(), partition };
            let source = of(&self.options.signals);
            let reader = PartitionReader::open(self.log, source.clone(), range)?;
            let ticks = RecordWindow::open(self.log, of(&self.options.ticks), tick_range)?;
            let (log, next, given, last) = (self.log, None, None, None);
            let opened = Source { log, source, range, reader, next, given, ticks, tick_range, last };
            self.open.insert(partition, opened);
        }
        Ok(self.open.get_mut(&partition))
    }
}

impl Source<'_> {
    /// Moves to the first signal of the tick records at or after an offset. Signals are in the order of their tick
    /// records.
    fn seek(&mut self, first: i64) -> Result<(), ReplayError> {
        if self.given == Some(first) {
            return Ok(());
        }
        let offset = first_signal(self.log, &self.source, self.range, |source, _| source < first)?;
        let range = OffsetRange { first: offset, next: self.range.next };
        self.reader = PartitionReader::open(self.log, self.source.clone(), range)?;
        self.next = None;
        Ok(())
    }

    /// Returns the next signal of a tick record before an offset.
    fn next_before(&mut self, next: i64) -> Result<Option<Record>, ReplayError> {
        self.given = Some(next);
        loop {
            let record = match self.next.take() {
                Some(record) => record,
                None => match self.reader.next()? {
                    Some(record) => record,
                    None => return Ok(None),
                },
            };
            match decode_signal(&record.value) {
                Ok(signal) if signal.source_offset < next => return Ok(Some(record)),
                Ok(_) => {
                    self.next = Some(record);
                    return Ok(None);
                }
                Err(_) => {}
            }
        }
    }

    /// Returns the create time of a tick record; `None` if the record is gone.
    fn created_ns(&mut self, offset: i64) -> Result<Option<i64>, ReplayError> {
        if let Some((last, created_ns)) = self.last
            && last == offset
        {
            return Ok(Some(created_ns));
        }
        if !(self.tick_range.first..self.tick_range.next).contains(&offset) {
            return Ok(None);
        }
        let created_ns = self.ticks.at(offset)?.timestamp_ns;
        self.last = Some((offset, created_ns));
        Ok(Some(created_ns))
    }
}

/// Returns the offset of the first signal for which `is_before` is false, by bisection. `is_before` gets the offset of
/// the tick record and the end of the bar, and must stay false once it is false.
pub(crate) fn first_signal(
    log: &dyn EventLog,
    source: &TopicPartition,
    range: OffsetRange,
    is_before: impl Fn(i64, i64) -> bool,
) -> Result<i64, ReplayError> {
    let (mut low, mut high) = (range.first, range.next);
    let mut reader = PartitionReader::open(log, source.clone(), range)?;
    while low < high {
        let middle = low + (high - low) / 2;
        reader.seek(middle)?;
        let mut found = None;
        while let (None, Some(record)) = (found, reader.next()?) {
            let signal = decode_signal(&record.value).ok();
            found = signal.map(|signal| is_before(signal.source_offset, signal.bar_end_ns));
        }
        match found {
            Some(true) => low = middle + 1,
            _ => high = middle,
        }
    }
    Ok(low)
}
