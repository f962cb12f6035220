//! Parts shared by crash tests: random moments from a seed, copies of ticks in another log, and the process lives that
//! the journal records.

use warptape_eventlog::{EventLog, NewRecord, Record, SqliteLog, UnreadableBatch};
use warptape_schemas::decode_journal_entry;
use warptape_schemas::journal::Input;

use super::outputs::records;

/// Number of records per transaction in a copy.
const COPY_RECORDS: usize = 256;

/// A stream of random numbers, by SplitMix64.
pub struct Random(u64);

impl Random {
    /// Creates a stream from WARPTAPE_TEST_SEED, or else from the time, and prints the seed.
    pub fn from_environment() -> Random {
        let seed = match std::env::var("WARPTAPE_TEST_SEED") {
            Ok(text) => text.parse().expect("WARPTAPE_TEST_SEED is a whole number"),
            Err(_) => warptape_pipeline::clock::wall_clock_ns() as u64,
        };
        println!("seed {seed}: set WARPTAPE_TEST_SEED to it for the same ticks and the same delays");
        Random(seed)
    }

    /// Returns a number from 0 to less than `count`.
    pub fn below(&mut self, count: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % count
    }
}

/// Copies records, given by partition, to an empty topic of the embedded log, without gaps.
pub fn copy_records(all: &[Vec<Record>], to: &SqliteLog, topic: &str) {
    let mut producer = to.producer("copy").expect("a producer");
    for (partition, records) in (0..).zip(all) {
        let mut offsets = 0..;
        for some in records.chunks(COPY_RECORDS) {
            producer.begin().expect("a transaction");
            for (record, at) in some.iter().zip(&mut offsets) {
                // A record that represents an unreadable batch has its own position within the batch.
                let batch = UnreadableBatch::of(record);
                let batch = batch
                    .map(|batch| UnreadableBatch { first_offset: at, last_offset: at, ..batch }.record());
                let record = batch.as_ref().unwrap_or(record);
                let copy = NewRecord {
                    topic: topic.into(),
                    partition,
                    key: record.key.as_deref().map(Into::into),
                    headers: record.headers.as_slice().into(),
                    timestamp_ns: record.timestamp_ns,
                    value: record.value.as_slice().into(),
                    ..NewRecord::default()
                };
                producer.send(copy).expect("a record of the transaction");
            }
            producer.commit().expect("a commit");
        }
    }
}

/// Process lives in a journal: the number of lives, and the number of partitions restored from a snapshot. The last
/// count is of those restored partitions that had ticks to process again.
#[derive(Debug, Default)]
pub struct Lives {
    pub began: u64,
    pub from_snapshot: u64,
    pub with_tail: u64,
}

/// Reads the journal of the group's first process.
pub fn lives(log: &dyn EventLog, journal: &str) -> Lives {
    let mut lives = Lives::default();
    for record in records(log, journal, 0) {
        match decode_journal_entry(&record.value).expect("a journal entry").input {
            Input::Started(_) => lives.began += 1,
            Input::PartitionAssigned(assigned) if assigned.snapshot_offset > 0 => {
                lives.from_snapshot += 1;
                lives.with_tail += u64::from(assigned.committed_offset > assigned.snapshot_offset);
            }
            _ => {}
        }
    }
    lives
}
