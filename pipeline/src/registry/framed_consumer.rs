//! Reads records in the registry's frame. If a record waits for the registry, the consumer holds back its partition's
//! records, and other partitions go on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use warptape_eventlog::{
    Consumer, Fetched, LogError, OffsetRange, Record, Selection, TopicPartition, UNREADABLE_BATCH_HEADER,
};
use warptape_schemas::{REGISTRY_HEADER_SIZE, registry_id_of, to_single_object};

use super::{SchemaIds, SchemaName};

/// Header in which newer Confluent serializers name the schema of a value without a frame.
const VALUE_SCHEMA_HEADER: &str = "__value_schema_id";
/// Time between two checks whether the registry has returned a schema.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// A consumer that converts framed records.
pub(super) struct FramedConsumer {
    consumer: Box<dyn Consumer>,
    ids: Arc<SchemaIds>,
    /// Topic whose records stay in the registry's frame.
    untouched: Option<Arc<str>>,
    /// True if a partition waits for an unreachable registry; false if that is an error.
    waits: bool,
    /// The last resolved name and its id, because the next record probably has the same name.
    recent: Option<(SchemaName, Option<u32>)>,
    /// True if no caller reads headers.
    headers_left: bool,
    /// Held-back records by partition; no list is empty.
    held: BTreeMap<TopicPartition, Vec<Record>>,
    /// Partitions paused by the caller. Partitions with held-back records are also paused in the underlying consumer.
    paused: BTreeSet<TopicPartition>,
}

impl FramedConsumer {
    pub(super) fn new(
        consumer: Box<dyn Consumer>,
        ids: Arc<SchemaIds>,
        untouched: Option<Arc<str>>,
        waits: bool,
    ) -> Self {
        let (held, paused) = (BTreeMap::new(), BTreeSet::new());
        Self { consumer, ids, untouched, waits, recent: None, headers_left: false, held, paused }
    }

    /// Converts records to single-object encoding, up to the first that has to wait. Records of the untouched topic
    /// keep their frame. Returns the number of converted records.
    fn unframe(&mut self, topic: &str, records: &mut [Record]) -> Result<usize, LogError> {
        let touched = self.untouched.as_deref() != Some(topic);
        for (index, record) in records.iter_mut().enumerate() {
            let header = name_in_header(record);
            let Some(name) = header.or_else(|| registry_id_of(&record.value).map(SchemaName::Id)) else {
                continue;
            };
            let Some(id) = self.settle(name)? else { return Ok(index) };
            match (header, id) {
                // An unusable header stays in place, so that people can see it.
                (None, _) | (Some(SchemaName::Guid(_)), None) => {}
                (Some(SchemaName::Id(id)), _) | (Some(SchemaName::Guid(_)), Some(id)) => frame(record, id),
            }
            // A record of an unknown schema stays unchanged; its decoder names the id.
            if touched && let Some(fingerprint) = id.and_then(|id| self.ids.fingerprint_of(id)) {
                to_single_object(&mut record.value, fingerprint);
            }
        }
        Ok(records.len())
    }

    /// Returns the id of a name; `Some(None)` if there is no schema, and `None` if the answer is not known yet.
    fn settle(&mut self, name: SchemaName) -> Result<Option<Option<u32>>, LogError> {
        if let Some((recent, id)) = self.recent
            && recent == name
        {
            return Ok(Some(id));
        }
        let settled = match self.ids.settled(name) {
            Some(settled) => settled,
            None if self.waits => {
                self.ids.ask_on(name);
                return Ok(None);
            }
            None => self.ids.ensure(name)?,
        };
        self.recent = Some((name, settled));
        Ok(Some(settled))
    }

    /// Takes records as they were polled. Returns those before the first that has to wait, and holds back the rest.
    fn take(&mut self, source: &TopicPartition, mut records: Vec<Record>) -> Result<Vec<Record>, LogError> {
        let ready = self.unframe(&source.topic, &mut records)?;
        let rest = records.split_off(ready);
        if !rest.is_empty() {
            self.held.insert(source.clone(), rest);
        }
        if self.headers_left {
            for record in &mut records {
                record.headers.retain(|(name, _)| name == UNREADABLE_BATCH_HEADER);
            }
        }
        Ok(records)
    }

    /// Returns held-back records of one partition that no longer need to wait.
    fn deliver_held(&mut self) -> Result<Option<Fetched>, LogError> {
        let sources: Vec<_> =
            self.held.keys().filter(|source| !self.paused.contains(source)).cloned().collect();
        for source in sources {
            let held = self.held.remove(&source).expect("it is held");
            let records = self.take(&source, held)?;
            if !self.held.contains_key(&source) {
                self.consumer.resume(std::slice::from_ref(&source))?;
            }
            if !records.is_empty() {
                return Ok(Some(Fetched::Records { source, records }));
            }
        }
        Ok(None)
    }

    /// Drops the held-back records of a partition.
    fn forget(&mut self, partition: &TopicPartition) -> Result<(), LogError> {
        if self.held.remove(partition).is_some() && !self.paused.contains(partition) {
            self.consumer.resume(std::slice::from_ref(partition))?;
        }
        Ok(())
    }
}

/// Returns the name of the schema in a record's header; `None` for other headers.
fn name_in_header(record: &Record) -> Option<SchemaName> {
    let (_, value) = record.headers.iter().find(|(name, _)| name == VALUE_SCHEMA_HEADER)?;
    match value.as_slice() {
        [0, id @ ..] => Some(SchemaName::Id(u32::from_be_bytes(id.try_into().ok()?))),
        [1, guid @ ..] => Some(SchemaName::Guid(guid.try_into().ok()?)),
        _ => None,
    }
}

/// Moves the schema id from a record's header to a frame before its value.
fn frame(record: &mut Record, id: u32) {
    record.headers.retain(|(name, _)| name != VALUE_SCHEMA_HEADER);
    let mut header = [0; REGISTRY_HEADER_SIZE];
    header[1..].copy_from_slice(&id.to_be_bytes());
    record.value.splice(..0, header);
}

impl Consumer for FramedConsumer {
    fn poll(&mut self, timeout: Duration, records_max: usize, bytes_max: usize) -> Result<Fetched, LogError> {
        if let Some(held) = self.deliver_held()? {
            return Ok(held);
        }
        let timeout = if self.held.is_empty() { timeout } else { timeout.min(LOOK_INTERVAL) };
        match self.consumer.poll(timeout, records_max, bytes_max)? {
            Fetched::Records { source, records } => {
                let records = self.take(&source, records)?;
                if let Some(held) = self.held.get(&source) {
                    tracing::warn!(
                        topic = source.topic,
                        partition = source.partition,
                        offset = held[0].offset,
                        "the partition waits for the schema registry"
                    );
                    self.consumer.pause(std::slice::from_ref(&source))?;
                }
                Ok(if records.is_empty() { Fetched::Idle } else { Fetched::Records { source, records } })
            }
            gone @ (Fetched::Revoked(_) | Fetched::Lost(_)) => {
                let (Fetched::Revoked(partitions) | Fetched::Lost(partitions)) = &gone else {
                    unreachable!("it is one of both")
                };
                for partition in partitions {
                    self.held.remove(partition);
                    self.paused.remove(partition);
                }
                Ok(gone)
            }
            fetched => Ok(fetched),
        }
    }

    /// Headers are still read internally, because they may name schemas.
    fn leave_headers(&mut self) {
        self.headers_left = true;
    }

    fn gather(&mut self, interval: Duration) {
        self.consumer.gather(interval);
    }

    fn select(&mut self, selection: &Selection) -> bool {
        self.consumer.select(selection)
    }

    fn pause(&mut self, partitions: &[TopicPartition]) -> Result<(), LogError> {
        self.paused.extend(partitions.iter().cloned());
        self.consumer.pause(partitions)
    }

    fn resume(&mut self, partitions: &[TopicPartition]) -> Result<(), LogError> {
        self.paused.retain(|paused| !partitions.contains(paused));
        let free: Vec<_> =
            partitions.iter().filter(|partition| !self.held.contains_key(partition)).cloned().collect();
        self.consumer.resume(&free)
    }

    fn seek(&mut self, partition: &TopicPartition, offset: i64) -> Result<(), LogError> {
        self.forget(partition)?;
        self.consumer.seek(partition, offset)
    }

    fn committed(&mut self, partition: &TopicPartition) -> Result<Option<i64>, LogError> {
        self.consumer.committed(partition)
    }

    fn position(&mut self, partition: &TopicPartition) -> Result<i64, LogError> {
        match self.held.get(partition) {
            Some(held) => Ok(held[0].offset),
            None => self.consumer.position(partition),
        }
    }

    fn offsets(&mut self, partition: &TopicPartition) -> Result<OffsetRange, LogError> {
        self.consumer.offsets(partition)
    }
}

#[cfg(test)]
mod tests {
    use warptape_eventlog::{Durability, EventLog, NewRecord, SqliteLog, TopicSpec};

    use super::super::{FramedLog, RegistryClient};
    use super::*;
    use crate::settings::RegistrySettings;

    const WAIT: Duration = Duration::from_millis(1);

    fn at(partition: i32) -> TopicPartition {
        TopicPartition { topic: "t".to_owned(), partition }
    }

    /// A record in the registry's frame whose schema is unknown, because the registry is away.
    const STRAY: &[u8] = &[0, 0, 0, 0, 7, 1];

    fn reader(folder: &std::path::Path) -> Box<dyn Consumer> {
        let log = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a new log");
        log.create_topics(&[TopicSpec { name: "t".to_owned(), partitions: 2, ..TopicSpec::default() }])
            .expect("a topic");
        let mut producer = log.producer("p").expect("a producer");
        producer.begin().expect("a transaction");
        for (partition, value) in [(0, b"one"), (0, b"two"), (1, b"one"), (1, b"two")] {
            let value = if (partition, value) == (0, b"two") { STRAY } else { value };
            let record =
                NewRecord { topic: "t".into(), partition, value: value.into(), ..NewRecord::default() };
            producer.send(record).expect("a record");
        }
        producer.commit().expect("a commit");
        let settings = RegistrySettings {
            url: "http://127.0.0.1:1".to_owned(),
            username: String::new(),
            password: None,
            retry: Duration::from_secs(600),
        };
        let ids = Arc::new(SchemaIds::new(RegistryClient::new(&settings), settings.retry));
        FramedLog::new(Arc::new(log), ids, Some("t")).waiting().reader(&[at(0), at(1)]).expect("a reader")
    }

    /// Returns the partition and offsets of the records from each of this number of polls.
    fn polled(reader: &mut dyn Consumer, polls: usize) -> Vec<(i32, Vec<i64>)> {
        let poll = |_| match reader.poll(WAIT, 10, 1000).expect("a poll") {
            Fetched::Records { source, records } => {
                Some((source.partition, records.iter().map(|record| record.offset).collect()))
            }
            _ => None,
        };
        (0..polls).filter_map(poll).collect()
    }

    #[test]
    fn a_partition_waits_for_itself_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut reader = reader(folder.path());
        let mut all = polled(&mut *reader, 6);
        all.sort();
        assert_eq!(all, [(0, vec![0]), (1, vec![0, 1])]);
        assert_eq!([0, 1].map(|partition| reader.position(&at(partition)).expect("a position")), [1, 2]);
        // The record still waits during a pause by the caller, and after its end.
        reader.pause(&[at(0)]).expect("a pause");
        assert_eq!(polled(&mut *reader, 3), []);
        reader.resume(&[at(0), at(1)]).expect("no pause");
        assert_eq!(polled(&mut *reader, 3), []);
        // The consumer reads elsewhere, and then returns to the record.
        reader.seek(&at(0), 0).expect("an offset");
        assert_eq!(polled(&mut *reader, 3), [(0, vec![0])]);
        reader.seek(&at(0), 2).expect("an offset");
        assert_eq!(reader.position(&at(0)).expect("a position"), 2);
        assert_eq!(polled(&mut *reader, 3), []);
    }
}
