//! Reads the newest records of the log for the page, at a bounded share of a core.
//!
//! A page shows current events. Records beyond the reader's share of a core are skipped and counted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use warptape_engine::Topics;
use warptape_eventlog::{Consumer, EventLog, Fetched, LogError, TopicPartition};

use super::seen::Seen;

/// Longest time of one round of reading.
const READING_MAX: Duration = Duration::from_millis(40);
/// Longest wait for the first record in a round.
const WAIT: Duration = Duration::from_millis(5);
/// Number of past records of a partition that are read at the beginning, and after a skip.
const BACK_RECORDS: i64 = 2_000;
/// Distance from the end, in records, beyond which a partition's records are skipped.
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
    /// Offset before which each partition's records were already read, so that none is shown or counted twice.
    read_to: BTreeMap<TopicPartition, i64>,
    /// Number of records skipped so far.
    pub(super) skipped: u64,
}

struct Open {
    reader: Box<dyn Consumer>,
    sources: Vec<TopicPartition>,
    /// Partitions of the topic of signals for which the reader was opened.
    partitions: Vec<i32>,
}

impl Reading {
    pub(super) fn new(log: Arc<dyn EventLog>, topics: Topics, journal: i32) -> Self {
        Self { log, topics, journal, open: None, read_to: BTreeMap::new(), skipped: 0 }
    }

    /// Closes the reader, because nobody looks at the page.
    pub(super) fn close(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        for source in open.sources {
            // A failed reader may not know its position.
            if let Ok(position) = open.reader.position(&source) {
                self.read_to.insert(source, position);
            }
        }
    }

    /// Reads new records for a bounded time. After an error the next call opens a new reader.
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

    /// Opens a reader a little before the end of each partition, but not before what was already read.
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
    /// Moves on to near the end of each partition that is far behind. Returns the number of records skipped.
    fn skip(&mut self, log: &dyn EventLog) -> Result<u64, LogError> {
        let mut skipped = 0;
        // One request gets all ends, on logs that support it.
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
