//! Outputs of a run, record by record, and their comparison with the outputs of another run.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use warptape_eventlog::{EventLog, Fetched, Record, TopicPartition, UnreadableBatch};
use warptape_schemas::{
    decode_dead_letter, decode_late_tick, decode_signal, encode_dead_letter, encode_late_tick, encode_signal,
};

use super::processes::{DEADLINE, ends};

/// Topics whose bytes depend only on the ticks and the configuration.
pub const OUTPUT_TOPICS: [&str; 3] = ["signals", "late", "dead-letter"];

/// Wait of a reader for existing records.
const READ_WAIT: Duration = Duration::from_millis(100);

/// Records by topic and partition.
pub type Outputs = BTreeMap<(String, i32), Vec<Record>>;

/// Returns all records of a partition. Its last offsets may have no record, so the reader's position shows the end.
pub fn records(log: &dyn EventLog, topic: &str, partition: i32) -> Vec<Record> {
    let source = TopicPartition { topic: topic.to_owned(), partition };
    let mut reader = log.reader(std::slice::from_ref(&source)).expect("a partition of the log");
    let end = reader.offsets(&source).expect("the log can be read").next;
    let mut all: Vec<Record> = Vec::new();
    let started = Instant::now();
    while reader.position(&source).expect("the log can be read") < end {
        assert!(started.elapsed() < DEADLINE, "{topic} {partition}: not read to its end {end}");
        match reader.poll(READ_WAIT, 4096, 16 << 20).expect("the log can be read") {
            Fetched::Records { records, .. } => all.extend(records),
            Fetched::Idle | Fetched::Assigned(_) | Fetched::Revoked(_) | Fetched::Lost(_) => {}
        }
    }
    all
}

/// Returns all outputs of a run in topics with this prefix. The keys name the topics without it.
pub fn outputs(log: &dyn EventLog, prefix: &str) -> Outputs {
    let of_topic = |topic: &'static str| {
        let name = format!("{prefix}{topic}");
        let partitions = 0..ends(log, &name).len() as i32;
        partitions.map(move |partition| ((topic.to_owned(), partition), records(log, &name, partition)))
    };
    OUTPUT_TOPICS.into_iter().flat_map(of_topic).collect()
}

/// Replaces the offset of the tick record that an output names as its cause, if the same ticks have other offsets
/// elsewhere. The offset `n` of a partition becomes the offset of its `n`th record in `ticks`.
pub fn move_sources(outputs: &mut Outputs, ticks: &[Vec<Record>]) {
    for ((topic, partition), records) in outputs {
        let moved = |offset: i64| ticks[*partition as usize][offset as usize].offset;
        for record in records {
            let mut value = Vec::new();
            match topic.as_str() {
                "signals" => {
                    let mut signal = decode_signal(&record.value).expect("a signal");
                    signal.source_offset = moved(signal.source_offset);
                    encode_signal(&signal, &mut value);
                }
                "late" => {
                    let mut late = decode_late_tick(&record.value).expect("a late tick");
                    late.offset = moved(late.offset);
                    encode_late_tick(&late, &mut value);
                }
                "dead-letter" => {
                    let mut letter = decode_dead_letter(&record.value).expect("a dead letter");
                    if let Some(batch) =
                        UnreadableBatch::of(&ticks[*partition as usize][letter.offset as usize])
                    {
                        letter.offset = batch.first_offset;
                        letter.last_offset = Some(batch.last_offset);
                        letter.detail = batch.to_string();
                    } else {
                        letter.offset = moved(letter.offset);
                    }
                    encode_dead_letter(&letter, &mut value);
                    for (name, text) in
                        [(".offset", letter.offset.to_string()), (".message", letter.detail.clone())]
                    {
                        let header = record.headers.iter_mut().find(|(header, _)| header.ends_with(name));
                        header.expect("a header of a dead letter").1 = text.into_bytes();
                    }
                }
                topic => panic!("{topic} is no topic of outputs"),
            }
            record.value = value;
        }
    }
}

/// Returns the number of records of a topic.
pub fn count(outputs: &Outputs, topic: &str) -> usize {
    outputs.iter().filter(|((name, _), _)| name == topic).map(|(_, records)| records.len()).sum()
}

/// Returns a description of the first difference; `None` if key, headers and value of every record are the same in the
/// same order. Create times differ between runs, and offsets differ if a log has offsets without records.
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
            (&one.key, &one.headers, &one.value) == (&other.key, &other.headers, &other.value)
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

    /// Asserts which place is reported after `change` was applied to the good outputs.
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
    }

    #[test]
    fn a_missing_partition_is_found_and_create_times_and_offsets_are_not_compared() {
        let good = of(&["a"]);
        let mut other = good.clone();
        other.values_mut().flatten().for_each(|record| (record.timestamp_ns, record.offset) = (5, 7));
        assert_eq!(first_difference(&good, &other), None);
        other.pop_last();
        assert!(first_difference(&good, &other).unwrap().starts_with("topics and partitions"));
    }
}
