//! Retention on the ticks of a real Kafka removes ticks covered by snapshots. They are kept here, so that outputs can
//! still be compared with all ticks. A broker that is killed within a minute forgets the removal, and has the ticks
//! again.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::process::Command;

use warptape_eventlog::{EventLog, Record};
use warptape_schemas::{Snapshot, decode_snapshot};

use super::kafka_clients::given;
use super::kafka_market::{GROUPS_PER_PARTITION, Market, PARTITIONS, behind};
use super::outputs::records;

/// Script that removes the records before an offset in each partition of a topic.
const REMOVE: &str = "\
import sys
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
brokers, topic, *offsets = sys.argv[1:]
admin = AdminClient({'bootstrap.servers': brokers})
before = [TopicPartition(topic, partition, int(offset)) for partition, offset in enumerate(offsets)]
for answer in admin.delete_records(before).values():
    answer.result()
";

/// Removed ticks so far, by partition.
#[derive(Default)]
pub struct RemovedTicks(RefCell<BTreeMap<i32, Vec<Record>>>);

impl RemovedTicks {
    pub fn kept(&self, partitions: i32) -> Vec<Vec<Record>> {
        let kept = self.0.borrow();
        (0..partitions).map(|partition| kept.get(&partition).cloned().unwrap_or_default()).collect()
    }

    /// Removes all ticks before the newest snapshot of each partition. Returns the number of removed records.
    pub fn remove_processed(&self, market: &Market) -> u64 {
        let mut removed = 0;
        let mut offsets = Vec::new();
        for partition in 0..PARTITIONS {
            let offset = snapshot_offset(&market.log, &market.topic("snapshots"), partition);
            let mut kept = self.0.borrow_mut();
            let kept = kept.entry(partition).or_default();
            let before = behind(kept)..offset;
            let ticks = records(&market.log, &market.topic("ticks"), partition).into_iter();
            let ticks: Vec<Record> = ticks.filter(|record| before.contains(&record.offset)).collect();
            removed += ticks.len() as u64;
            kept.extend(ticks);
            offsets.push(offset.to_string());
        }
        let mut remove = Command::new(given("WARPTAPE_TEST_PYTHON"));
        remove.args(["-c", REMOVE, market.brokers(), &market.topic("ticks")]).args(offsets);
        assert!(remove.status().expect("Python starts").success(), "the ticks are not removed");
        removed
    }
}

/// Returns the newest offset with a complete snapshot of a partition; 0 if there is none.
fn snapshot_offset(log: &dyn EventLog, topic: &str, partition: i32) -> i64 {
    // Number of parts found and number of parts in all, by offset and group.
    let mut found: BTreeMap<i64, BTreeMap<i32, [i32; 2]>> = BTreeMap::new();
    for record in records(log, topic, partition) {
        let part = decode_snapshot(&record.value).expect("a part of a snapshot");
        let [count, of] = found.entry(part.offset).or_default().entry(part.group).or_default();
        (*count, *of) = (*count + 1, part.parts);
    }
    let is_whole = |groups: &BTreeMap<i32, [i32; 2]>| {
        let is_there = |group| groups.get(&group).is_some_and(|[count, of]| count >= of);
        (Snapshot::INTAKE..GROUPS_PER_PARTITION).all(is_there)
    };
    found.iter().rev().find(|(_, groups)| is_whole(groups)).map_or(0, |(offset, _)| *offset)
}
