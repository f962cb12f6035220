//! What a run has put out, record by record, and whether another run put out the same.

use std::collections::BTreeMap;
use std::time::Duration;

use warptape_eventlog::{EventLog, Fetched, Record, SqliteLog, TopicPartition};

use super::processes::ends;

/// Topics whose bytes are a function of the ticks and the configuration.
pub const OUTPUT_TOPICS: [&str; 3] = ["signals", "late", "dead-letter"];

/// Records by topic and partition.
pub type Outputs = BTreeMap<(String, i32), Vec<Record>>;

/// All records of a partition.
pub fn records(log: &SqliteLog, topic: &str, partition: i32) -> Vec<Record> {
    let source = TopicPartition { topic: topic.to_owned(), partition };
    let mut reader = log.reader(std::slice::from_ref(&source)).expect("a partition of the log");
    let end = reader.offsets(&source).expect("the log can be read").next;
    let mut all: Vec<Record> = Vec::new();
    while all.last().map_or(0, |record| record.offset + 1) < end {
        match reader.poll(Duration::ZERO, 4096, 16 << 20).expect("the log can be read") {
            Fetched::Records { records, .. } => all.extend(records),
            Fetched::Idle => panic!("{topic} {partition}: nothing to read before its end {end}"),
            Fetched::Assigned(_) | Fetched::Revoked(_) | Fetched::Lost(_) => {}
        }
    }
    all
}

/// Everything a run has put out.
pub fn outputs(log: &SqliteLog) -> Outputs {
    let partitions = |topic: &'static str| {
        (0..).zip(ends(log, topic)).map(move |(partition, _): (i32, i64)| (topic, partition))
    };
    OUTPUT_TOPICS
        .into_iter()
        .flat_map(partitions)
        .map(|(topic, partition)| ((topic.to_owned(), partition), records(log, topic, partition)))
        .collect()
}

/// Number of records of a topic.
pub fn count(outputs: &Outputs, topic: &str) -> usize {
    outputs.iter().filter(|((name, _), _)| name == topic).map(|(_, records)| records.len()).sum()
}

/// The first difference in words; `None` if key, headers and value of every record are the same in the same order.
/// Create times are those of the runs and differ.
pub fn first_difference(expected: &Outputs, found: &Outputs) -> Option<String> {
    if !expected.keys().eq(found.keys()) {
        return Some(format!(
            "topics and partitions: expected {:?}, found {:?}",
            expected.keys(),
            found.keys()
        ));
    }
    for ((topic, partition), expected) in expected {
        let found = &found[&(topic.clone(), *partition)];
        let same = |(one, other): &(&Record, &Record)| {
            (one.offset, &one.key, &one.headers, &one.value)
                == (other.offset, &other.key, &other.headers, &other.value)
        };
        let equal = expected.iter().zip(found).take_while(same).count();
        if equal < expected.len().max(found.len()) {
            let (expected_len, found_len) = (expected.len(), found.len());
            let (expected, found) = (expected.get(equal), found.get(equal));
            return Some(format!(
                "{topic} partition {partition} record {equal} of {expected_len} expected and {found_len} found:\n\
                 expected {expected:?}\nfound    {found:?}"
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(values: &[&str]) -> Vec<Record> {
        let record = |(offset, value): (i64, &&str)| Record {
            offset,
            key: Some(b"key".to_vec()),
            headers: vec![("h".to_owned(), b"1".to_vec())],
            timestamp_ns: 0,
            value: value.as_bytes().to_vec(),
        };
        (0..).zip(values).map(record).collect()
    }

    fn of(values: &[&str]) -> Outputs {
        let signals = "signals".to_owned();
        BTreeMap::from([((signals.clone(), 0), partition(&["x"])), ((signals, 1), partition(values))])
    }

    /// What is found where `change` was made to the good outputs.
    #[track_caller]
    fn check(change: impl FnOnce(&mut Vec<Record>), place: &str) {
        let good = of(&["a", "b", "c"]);
        let mut changed = good.clone();
        change(changed.get_mut(&("signals".to_owned(), 1)).unwrap());
        for (expected, found) in [(&good, &changed), (&changed, &good)] {
            let difference = first_difference(expected, found).expect("a difference");
            assert!(difference.starts_with(place), "{difference}");
        }
    }

    #[test]
    fn every_kind_of_difference_is_found() {
        assert_eq!(first_difference(&of(&["a", "b", "c"]), &of(&["a", "b", "c"])), None);
        let place = |record: usize| format!("signals partition 1 record {record} of ");
        check(|records| *records = partition(&["a", "b"]), &place(2));
        check(|records| *records = partition(&["b", "c"]), &place(0));
        check(|records| *records = partition(&["a", "a", "b", "c"]), &place(1));
        check(|records| *records = partition(&["a", "b", "c", "c"]), &place(3));
        check(|records| *records = partition(&["a", "c", "b"]), &place(1));
        check(|records| *records = partition(&["a", "B", "c"]), &place(1));
        check(|records| *records = Vec::new(), &place(0));
        check(|records| records[1].key = None, &place(1));
        check(|records| records[2].headers.clear(), &place(2));
        check(|records| records[2].offset = 7, &place(2));
    }

    #[test]
    fn a_missing_partition_is_found_and_create_times_are_not_compared() {
        let good = of(&["a"]);
        let mut other = good.clone();
        other.values_mut().flatten().for_each(|record| record.timestamp_ns = 5);
        assert_eq!(first_difference(&good, &other), None);
        other.pop_last();
        assert!(first_difference(&good, &other).unwrap().starts_with("topics and partitions"));
    }
}
