//! An operator's command, sent through the log: a record for each addressed process, and the answers.

use std::collections::BTreeSet;
use std::process;
use std::sync::Arc;
use std::time::{Duration, Instant};

use warptape_engine::Topics;
use warptape_eventlog::{Consumer, EventLog, Fetched, TopicPartition};
use warptape_schemas::control::{Control, ControlCommand, ControlResult};
use warptape_schemas::{decode_control_result, encode_control};

use crate::clock::wall_clock_ns;
use crate::publishing::{NewPlaced, Placed};
use crate::transaction::TransactionWriter;

/// Longest poll before the caller is asked again whether it still waits.
const POLL: Duration = Duration::from_millis(100);
const POLL_RECORDS_MAX: usize = 256;
const POLL_BYTES_MAX: usize = 4 << 20;

/// Returns the time at which the caller stopped waiting; `None` while it waits.
pub(crate) type StoppedSince = Arc<dyn Fn() -> Option<Instant> + Send + Sync>;

/// A command to send.
pub(crate) struct Order {
    control: Control,
    timeout: Duration,
}

impl Order {
    /// Creates a sender's command, which may be executed within `timeout` from now.
    pub(crate) fn new(command: ControlCommand, by: String, timeout: Duration) -> Self {
        let now_ns = wall_clock_ns();
        let control = Control {
            id: format!("control-{}-{now_ns}", process::id()),
            at_ns: now_ns,
            by,
            deadline_ns: now_ns.saturating_add(i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX)),
            command,
        };
        Self { control, timeout }
    }

    /// Returns the command's id.
    pub(crate) fn id(&self) -> &str {
        &self.control.id
    }

    /// Sends the command to the processes, and passes on each answer. Returns the processes that did not answer.
    pub(crate) fn give(
        &self,
        log: &Arc<dyn EventLog>,
        topics: &Topics,
        told: &[i32],
        stopped: StoppedSince,
        mut answered: impl FnMut(ControlResult) -> anyhow::Result<()>,
    ) -> anyhow::Result<BTreeSet<i32>> {
        let until = Instant::now() + self.timeout;
        let place = |topic: &str, partition: i32| TopicPartition { topic: topic.to_owned(), partition };
        // Reads the answers from their current end, because the awaited ones come after it.
        let answers: Vec<_> = told.iter().map(|&process| place(&topics.control_results, process)).collect();
        let mut reader = reader_at_end(&**log, &answers)?;
        let mut value = Vec::new();
        encode_control(&self.control, &mut value);
        let records = told.iter().map(|&process| NewPlaced {
            place: place(&topics.control, process),
            key: self.id().as_bytes().to_vec(),
            value: value.clone(),
            headers: Vec::new(),
        });
        let transaction = Placed::new(&**log, records.collect())?;
        let of_writer = stopped.clone();
        let mut writer =
            TransactionWriter::new(log.clone(), self.id().to_owned(), Box::new(move || of_writer()))?;
        writer.write_surely(&transaction)?;

        let mut waiting: BTreeSet<i32> = told.iter().copied().collect();
        while !waiting.is_empty() && stopped().is_none() && Instant::now() < until {
            let Fetched::Records { records, .. } = reader.poll(POLL, POLL_RECORDS_MAX, POLL_BYTES_MAX)?
            else {
                continue;
            };
            for record in records {
                // Other programs may write records to the topic; unreadable ones are not answers.
                let Ok(result) = decode_control_result(&record.value) else { continue };
                if result.id == self.id() && waiting.remove(&result.ordinal) {
                    answered(result)?;
                }
            }
        }
        Ok(waiting)
    }
}

fn reader_at_end(log: &dyn EventLog, places: &[TopicPartition]) -> anyhow::Result<Box<dyn Consumer>> {
    let mut reader = log.reader(places)?;
    for place in places {
        let end = reader.offsets(place)?.next;
        reader.seek(place, end)?;
    }
    Ok(reader)
}
