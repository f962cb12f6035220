//! Records that a command publishes together or not at all. The records themselves show whether they are in the log.

use warptape_eventlog::{EventLog, LogError, NewRecord, OffsetRange, Producer, TopicPartition};
use warptape_replay::PartitionReader;

use crate::clock::wall_clock_ns;
use crate::transaction::Transaction;

/// A record with its topic and partition.
pub struct NewPlaced {
    pub place: TopicPartition,
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    pub headers: Vec<(String, Vec<u8>)>,
}

/// Records of one transaction. No two of them are equal.
pub struct Placed {
    records: Vec<NewPlaced>,
    /// End offset of the first record's partition before the transaction.
    end_before: i64,
}

impl Placed {
    /// Creates the transaction; it must have at least one record.
    pub fn new(log: &dyn EventLog, records: Vec<NewPlaced>) -> Result<Self, LogError> {
        let end_before = end_of(log, &records.first().expect("there is a record").place)?;
        Ok(Self { records, end_before })
    }
}

impl Transaction for Placed {
    fn send(&self, producer: &mut dyn Producer) -> Result<(), LogError> {
        for NewPlaced { place, key, value, headers } in &self.records {
            producer.send(NewRecord {
                topic: place.topic.as_str().into(),
                partition: place.partition,
                key: Some(key.as_slice().into()),
                timestamp_ns: wall_clock_ns(),
                headers: headers.as_slice().into(),
                value: value.as_slice().into(),
                ..NewRecord::default()
            })?;
        }
        Ok(())
    }

    fn is_committed(&self, log: &dyn EventLog) -> Result<bool, LogError> {
        let NewPlaced { place, value, .. } = self.records.first().expect("there is a record");
        let next = end_of(log, place)?;
        let range = OffsetRange { first: self.end_before.min(next), next };
        let mut reader = PartitionReader::open(log, place.clone(), range)?;
        while let Some(record) = reader.next()? {
            if record.value == *value {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn end_of(log: &dyn EventLog, place: &TopicPartition) -> Result<i64, LogError> {
    Ok(log.reader(std::slice::from_ref(place))?.offsets(place)?.next)
}
