//! Reads the newest records of the log for the page, at a bounded share of a core.
//!
//! A page shows what happens now. Records that the share does not suffice for are skipped, and counted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use warptape_engine::Topics;
use warptape_eventlog::{Consumer, EventLog, Fetched, LogError, TopicPartition};

use super::seen::Seen;

/// Longest time of one reading.
const READING_MAX: Duration = Duration::from_millis(40);
/// Longest wait for the first record of a reading.
const WAIT: Duration = Duration::from_millis(5);
/// Records of a partition that are read of the past at the beginning, and after records were skipped.
const BACK_RECORDS: i64 = 2_000;
/// Records behind its end at which a partition's records are skipped.
const BEHIND_MAX: i64 = 20_000;
/// Records and bytes of one poll.
const RECORDS_MAX: usize = 500;
const BYTES_MAX: usize = 1 << 20;

/// Reads signals, the process's journal, and risk records.
pub(super) struct Reading {
    log: Arc<dyn EventLog>,
    topics: Topics,
    /// Partition of the journal of this process.
    journal: i32,
    open: Option<Open>,
    /// Offsets before which records were read, of partitions read before: none is shown or counted twice.
    read_to: BTreeMap<TopicPartition, i64>,
    /// Records passed over so far.
    pub(super) skipped: u64,
}

struct Open {
    reader: Box<dyn Consumer>,
    sources: Vec<TopicPartition>,
    /// Partitions of the signals, for which this was opened.
    partitions: Vec<i32>,
}

impl Reading {
    pub(super) fn new(log: Arc<dyn EventLog>, topics: Topics, journal: i32) -> Self {
        Self { log, topics, journal, open: None, read_to: BTreeMap::new(), skipped: 0 }
    }

    /// Closes the readers: nobody looks at the page.
    pub(super) fn close(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        for source in open.sources {
            // A reader that failed may not know its place.
            if let Ok(position) = open.reader.position(&source) {
                self.read_to.insert(source, position);
            }
        }
    }

    /// Reads what came, within the bounded time. After an error the next call begins anew.
    pub(super) fn read(&mut self, partitions: &[i32], seen: &mut Seen) -> Result<(), LogError> {
        let read = self.read_on(partitions, seen);
        if read.is_err() {
            self.close();
        }
        read
    }

    fn read_on(&mut self, partitions: &[i32], seen: &mut Seen) -> Result<(), LogError> {
        let began = Instant::now();
        if self.open.as_ref().is_none_or(|open| open.partitions != partitions) {
            self.close();
            self.open = Some(self.open(partitions)?);
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        while began.elapsed() < READING_MAX {
            match open.reader.poll(WAIT, RECORDS_MAX, BYTES_MAX)? {
                Fetched::Records { source, records } if source.topic == self.topics.signals => {
                    seen.see_signals(source.partition, &records);
                }
                Fetched::Records { source, records } if source.topic == self.topics.journal => {
                    seen.see_entries(source.partition, &records);
                }
                Fetched::Records { records, .. } => seen.see_risk(&records),
                _ => return Ok(()),
            }
        }
        self.skipped += open.skip(&*self.log)?;
        Ok(())
    }

    /// Opens a reader a little before the end of each partition, but after what was read before.
    fn open(&self, partitions: &[i32]) -> Result<Open, LogError> {
        let of = |topic: &str, partition| TopicPartition { topic: topic.to_owned(), partition };
        let mut sources = vec![of(&self.topics.journal, self.journal)];
        for topic in [&self.topics.signals, &self.topics.risk_requests, &self.topics.risk_results] {
            let known = self.log.partitions(topic)?;
            sources.extend(
                partitions
                    .iter()
                    .filter(|partition| **partition < known)
                    .map(|&partition| of(topic, partition)),
            );
        }
        let mut reader = self.log.reader(&sources)?;
        for source in &sources {
            let range = reader.offsets(source)?;
            let read_to = self.read_to.get(source).map_or(0, |read_to| (*read_to).min(range.next));
            reader.seek(source, range.first.max(range.next - BACK_RECORDS).max(read_to))?;
        }
        Ok(Open { reader, sources, partitions: partitions.to_vec() })
    }
}

impl Open {
    /// Goes on near the end of each partition that is far behind. Returns the number of records passed over.
    fn skip(&mut self, log: &dyn EventLog) -> Result<u64, LogError> {
        let mut skipped = 0;
        // One request for all ends, where the log can.
        for (source, end) in self.sources.iter().zip(log.ends(&self.sources)?) {
            let (position, end) = (self.reader.position(source)?, end.readable);
            if end - position > BEHIND_MAX {
                self.reader.seek(source, end - BACK_RECORDS)?;
                skipped += u64::try_from(end - BACK_RECORDS - position).unwrap_or(0);
            }
        }
        Ok(skipped)
    }
}
