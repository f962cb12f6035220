//! Latencies from a tick record to the commit of its signals, wait by wait.

use warptape_eventlog::{EventLog, LogError, OffsetRange, TopicPartition};
use warptape_replay::history::SealedPart;
use warptape_replay::{PartitionReader, ReplayError, first_signal_from};
use warptape_schemas::decode_signal;
use warptape_schemas::journal::SealedPartition;

use crate::TablesError;
use crate::cell::Cell;
use crate::declared::LATENCIES;
use crate::rows::Rows;

/// The journal's account of one partition's part of a transaction.
pub(crate) struct Sealing<'a> {
    pub(crate) journal_partition: i32,
    pub(crate) sealed_sequence: i64,
    pub(crate) sealed_ns: i64,
    /// Tick records of the part, with their arrivals.
    pub(crate) part: &'a SealedPart,
    /// Start and end of the attempt that committed the transaction, ns since the epoch.
    pub(crate) commit: Option<(i64, i64)>,
}

/// Signals and ticks of all partitions, read in parallel with the journal.
pub(crate) struct Latencies<'a> {
    log: &'a dyn EventLog,
    signals: Vec<Along>,
    ticks: Vec<Along>,
}

/// A partition that is read in parallel with the journal.
struct Along {
    source: TopicPartition,
    range: OffsetRange,
    reader: Option<PartitionReader>,
    /// Offset of the tick record before which everything was read.
    read_to: i64,
}

/// A tick record that caused signals.
struct Caused {
    source_offset: i64,
    signals: i64,
    tick_time_ns: Option<i64>,
}

impl<'a> Latencies<'a> {
    /// Creates readers of topics whose partitions have these offsets.
    pub(crate) fn new(
        log: &'a dyn EventLog,
        (signals, signal_ranges): (&str, &[OffsetRange]),
        (ticks, tick_ranges): (&str, &[OffsetRange]),
    ) -> Self {
        let (signals, ticks) = (along(signals, signal_ranges), along(ticks, tick_ranges));
        Self { log, signals, ticks }
    }

    /// Extends the readers to the ends of these offsets.
    pub(crate) fn extend(&mut self, signals: &[OffsetRange], ticks: &[OffsetRange]) {
        for (all, ranges) in [(&mut self.signals, signals), (&mut self.ticks, ticks)] {
            for (along, range) in all.iter_mut().zip(ranges) {
                along.range = *range;
                if let Some(reader) = &mut along.reader {
                    reader.extend(range.next);
                }
            }
        }
    }

    /// Adds the rows of one partition's part of a transaction.
    pub(crate) fn push(&mut self, sealing: &Sealing<'_>, rows: &mut Rows) -> Result<(), TablesError> {
        if !rows.wants(&LATENCIES) {
            return Ok(());
        }
        let mut arrivals = &sealing.part.arrivals[..];
        for caused in self.caused(&sealing.part.account)? {
            while let [first, rest @ ..] = arrivals
                && first.offsets.is_none_or(|(_, next)| next <= caused.source_offset)
            {
                arrivals = rest;
            }
            let arrived = arrivals.first().filter(|arrival| arrival.has(caused.source_offset));
            let arrived_ns = arrived.map(|arrival| arrival.at_ns);
            let (sent_ns, committed_ns) = sealing.commit.unzip();
            let between =
                |from: Option<i64>, to: Option<i64>| Cell::from(from.zip(to).map(|(from, to)| to - from));
            let sealed_ns = Some(sealing.sealed_ns);
            let row = [
                sealing.part.account.partition.into(),
                caused.source_offset.into(),
                caused.signals.into(),
                sealing.journal_partition.into(),
                sealing.sealed_sequence.into(),
                caused.tick_time_ns.into(),
                arrived_ns.into(),
                sealing.sealed_ns.into(),
                sent_ns.into(),
                committed_ns.into(),
                between(caused.tick_time_ns, arrived_ns),
                between(arrived_ns, sealed_ns),
                between(sealed_ns, sent_ns),
                between(sent_ns, committed_ns),
                between(caused.tick_time_ns, committed_ns),
            ];
            rows.push(&LATENCIES, &row);
        }
        Ok(())
    }

    /// Returns the tick records of a transaction that caused signals.
    fn caused(&mut self, account: &SealedPartition) -> Result<Vec<Caused>, TablesError> {
        let (first, next) = (account.first_offset, account.next_offset);
        let partition = account.partition as usize;
        let (Some(signals), Some(ticks)) = (self.signals.get_mut(partition), self.ticks.get_mut(partition))
        else {
            return Ok(Vec::new());
        };
        let mut all: Vec<Caused> = Vec::new();
        let (url, source) = (self.log.url(), signals.source.clone());
        let begin = match signals.is_behind(first) {
            true => 0,
            false => first_signal_from(self.log, &source, signals.range, first)?,
        };
        let reader = signals.reader_from(self.log, first, begin)?;
        while let Some(record) = reader.peek()? {
            let signal = decode_signal(&record.value).map_err(|error| ReplayError::RecordUnreadable {
                url: url.clone(),
                topic: source.topic.clone(),
                partition: source.partition,
                offset: record.offset,
                error: error.to_string(),
            })?;
            let source_offset = signal.source_offset;
            if source_offset >= next {
                break;
            }
            reader.next()?;
            match all.last_mut() {
                _ if source_offset < first => {}
                Some(last) if last.source_offset == source_offset => last.signals += 1,
                _ => all.push(Caused { source_offset, signals: 1, tick_time_ns: None }),
            }
        }
        signals.read_to = next;
        let reader = ticks.reader_from(self.log, first, first)?;
        for caused in &mut all {
            while let Some(record) = reader.peek()? {
                if record.offset >= caused.source_offset {
                    let is_it = record.offset == caused.source_offset;
                    caused.tick_time_ns = is_it.then_some(record.timestamp_ns);
                    break;
                }
                reader.next()?;
            }
        }
        ticks.read_to = next;
        Ok(all)
    }
}

fn along(topic: &str, ranges: &[OffsetRange]) -> Vec<Along> {
    let of = |(partition, range): (i32, &OffsetRange)| Along {
        source: TopicPartition { topic: topic.to_owned(), partition },
        range: *range,
        reader: None,
        read_to: i64::MIN,
    };
    (0..).zip(ranges).map(of).collect()
}

impl Along {
    /// True if a reader is open and has not yet passed the tick record at an offset.
    fn is_behind(&self, offset: i64) -> bool {
        self.reader.is_some() && offset >= self.read_to
    }

    /// Returns a reader that has not yet passed the tick record at an offset. It restarts, at `begin`, if another
    /// process had the partition before the process whose journal is being read.
    fn reader_from(
        &mut self,
        log: &dyn EventLog,
        offset: i64,
        begin: i64,
    ) -> Result<&mut PartitionReader, LogError> {
        if !self.is_behind(offset) {
            let range = OffsetRange { first: begin.max(self.range.first), next: self.range.next };
            self.reader = Some(PartitionReader::open(log, self.source.clone(), range)?);
        }
        Ok(self.reader.as_mut().expect("it is open by now"))
    }
}
