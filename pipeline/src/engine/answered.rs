//! Which risk requests have been answered: read from the results topic when a partition comes, kept while it stays.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use warptape_eventlog::{EventLog, Fetched, LogError, TopicPartition};
use warptape_schemas::decode_risk_result;
use xxhash_rust::xxh3::xxh3_128;

/// Ids that are remembered of a partition, the newest: a request whose id is older is answered again.
const IDS_MAX: usize = 1 << 20;
const READ_RECORDS_MAX: usize = 1_024;
const READ_BYTES_MAX: usize = 16 << 20;
/// Wait between two looks whether the end is reached.
const READ_WAIT: Duration = Duration::from_millis(100);

/// Ids of requests, and the offsets of those that were answered before others that came before them.
#[derive(Debug, Default)]
pub struct Answered {
    /// Hashes of ids.
    ids: BTreeSet<u128>,
    /// The same, oldest first.
    order: VecDeque<u128>,
    /// Offsets at or behind the committed one.
    offsets: BTreeSet<i64>,
}

impl Answered {
    /// What the results say of the requests of a partition, of which those before `committed` need no look.
    pub fn read(log: &dyn EventLog, results: &TopicPartition, committed: i64) -> Result<Self, LogError> {
        let mut answered = Self::default();
        let mut reader = log.reader(std::slice::from_ref(results))?;
        let range = reader.offsets(results)?;
        while reader.position(results)? < range.next {
            let Fetched::Records { records, .. } =
                reader.poll(READ_WAIT, READ_RECORDS_MAX, READ_BYTES_MAX)?
            else {
                continue;
            };
            for record in records {
                match decode_risk_result(&record.value) {
                    Ok(result) => {
                        answered.insert(&result.request_id);
                        if result.offset >= committed {
                            answered.offsets.insert(result.offset);
                        }
                    }
                    Err(error) => tracing::warn!(offset = record.offset, %error, "risk result passed over"),
                }
            }
        }
        Ok(answered)
    }

    /// Takes an id; whether it is a new one.
    pub(super) fn insert(&mut self, request_id: &str) -> bool {
        let id = xxh3_128(request_id.as_bytes());
        if !self.ids.insert(id) {
            return false;
        }
        self.order.push_back(id);
        if self.order.len() > IDS_MAX {
            let oldest = self.order.pop_front().expect("there are more than none");
            self.ids.remove(&oldest);
        }
        true
    }

    /// Whether the request at an offset has its answer; asked once for each offset.
    pub(super) fn take_offset(&mut self, offset: i64) -> bool {
        self.offsets.remove(&offset)
    }
}
