//! Finds the answered risk requests of a partition that was just assigned. It reads the results up to the end that they
//! had at the assignment.
//!
//! An open transaction in the results delays this until the transaction ends. The log may keep an abandoned transaction
//! open for long. So the results are read in turns, and nothing here waits for that end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use warptape_engine::{Answered, Committed, Event};
use warptape_eventlog::{Consumer, EventLog, Fetched, LogError, Record, TopicPartition};
use warptape_schemas::decode_risk_result;

use super::requests::RequestNames;

const RECORDS_MAX: usize = 1_024;
const BYTES_MAX: usize = 16 << 20;

/// The partitions being opened.
pub(super) struct Opening {
    log: Arc<dyn EventLog>,
    names: RequestNames,
    /// Assignment of each partition, with the committed offset of its requests.
    assignments: BTreeMap<i32, (u64, Committed)>,
    /// Progress in the results of all partitions; it restarts when a partition is added.
    reading: Option<ResultsRead>,
}

/// Progress in the results.
struct ResultsRead {
    consumer: Box<dyn Consumer>,
    partitions: BTreeMap<i32, Results>,
}

/// Progress in the results of one partition.
struct Results {
    /// Requests before this offset are answered.
    committed: Committed,
    /// Requests before this offset were written.
    found_before: i64,
    /// Offset at which reading ends.
    end: i64,
    answered: Answered,
}

impl Opening {
    pub(super) fn new(log: Arc<dyn EventLog>, names: RequestNames) -> Self {
        Self { log, names, assignments: BTreeMap::new(), reading: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.assignments.is_empty()
    }

    pub(super) fn insert(&mut self, partition: i32, assignment: u64, committed: Committed) {
        self.assignments.insert(partition, (assignment, committed));
        self.begin_again();
    }

    pub(super) fn remove(&mut self, partition: i32) {
        if self.assignments.remove(&partition).is_some() {
            self.begin_again();
        }
    }

    /// Drops the progress so far.
    pub(super) fn begin_again(&mut self) {
        self.reading = None;
    }

    /// Reads for up to `wait`. Returns the event of a partition that is now open; `None` if there is none.
    pub(super) fn turn(&mut self, wait: Duration) -> Result<Option<Event>, LogError> {
        if self.is_empty() {
            self.begin_again();
            return Ok(None);
        }
        let reading = match &mut self.reading {
            Some(reading) => reading,
            none => none.insert(ResultsRead::begin(self.log.as_ref(), &self.names, &self.assignments)?),
        };
        let Some((partition, Results { committed, found_before, answered, .. })) =
            reading.take_read(&self.names)?
        else {
            reading.poll(wait)?;
            return Ok(None);
        };
        let (assignment, _) = self.assignments.remove(&partition).expect("what is read is to be opened");
        Ok(Some(Event::RequestsOpened { partition, assignment, committed, found_before, answered }))
    }
}

impl ResultsRead {
    fn begin(
        log: &dyn EventLog,
        names: &RequestNames,
        assignments: &BTreeMap<i32, (u64, Committed)>,
    ) -> Result<Self, LogError> {
        let all: Vec<TopicPartition> =
            assignments.keys().map(|&partition| at(&names.results, partition)).collect();
        let consumer = log.reader(&all)?;
        let mut partitions = BTreeMap::new();
        for results in all {
            let partition = results.partition;
            let requests = at(&names.requests, partition);
            let (_, committed) = assignments[&partition];
            let found_before = log.written_end(&requests)?;
            // The committed offset is known, so the transaction that moved it has ended, although this partition may
            // not show that yet. So the written end is read, not the visible one.
            let end = log.written_end(&results)?;
            partitions
                .insert(partition, Results { committed, found_before, end, answered: Answered::default() });
        }
        Ok(Self { consumer, partitions })
    }

    /// Removes a partition that is read to its end, and returns it; `None` if there is none.
    fn take_read(&mut self, names: &RequestNames) -> Result<Option<(i32, Results)>, LogError> {
        for (&partition, results) in &self.partitions {
            let name = at(&names.results, partition);
            if self.consumer.position(&name)? >= results.end {
                self.consumer.pause(&[name])?;
                return Ok(self.partitions.remove_entry(&partition));
            }
        }
        Ok(None)
    }

    fn poll(&mut self, wait: Duration) -> Result<(), LogError> {
        let Fetched::Records { source, records } = self.consumer.poll(wait, RECORDS_MAX, BYTES_MAX)? else {
            return Ok(());
        };
        if let Some(results) = self.partitions.get_mut(&source.partition) {
            records.iter().for_each(|record| results.add(record));
        }
        Ok(())
    }
}

impl Results {
    fn add(&mut self, record: &Record) {
        match decode_risk_result(&record.value) {
            Ok(result) => self.answered.add(&result, self.committed.offset),
            Err(error) => {
                tracing::warn!(offset = record.offset, %error, "risk result cannot be read and is skipped")
            }
        }
    }
}

fn at(topic: &str, partition: i32) -> TopicPartition {
    TopicPartition { topic: topic.to_owned(), partition }
}
