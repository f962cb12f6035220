//! Records of a topic, up to its present end or on and on.

use std::collections::BTreeMap;
use std::time::Duration;

use warptape_eventlog::{Consumer, EventLog, Fetched, Record, Selection, TopicInfo, TopicPartition};

use crate::settings::Settings;
use crate::usage_error::UsageError;

/// Greatest number of records of a poll.
const RECORDS_MAX: usize = 256;
/// Approximate greatest number of bytes of a poll.
const BYTES_MAX: usize = 4 << 20;
/// Greatest number of topics that a message lists.
const KNOWN_MAX: usize = 50;

/// A reader of all partitions of a topic.
pub struct Reading {
    topic: String,
    /// True if records after the present end are left out.
    ends: bool,
    reader: Box<dyn Consumer>,
    /// Partitions with unread records before their present end.
    open: BTreeMap<TopicPartition, i64>,
}

impl Reading {
    /// Opens the topic of this name, which may include the prefix, at its beginning or at its present end. With
    /// `exits_at_end`, records end there.
    pub fn open(
        log: &dyn EventLog,
        settings: &Settings,
        topic: &str,
        (from_beginning, exits_at_end): (bool, bool),
    ) -> anyhow::Result<Self> {
        let topic = find_topic(log, topic, &settings.topics.prefix)?.spec;
        let place = |partition| TopicPartition { topic: topic.name.clone(), partition };
        let partitions: Vec<TopicPartition> = (0..topic.partitions).map(place).collect();
        let mut reader = log.reader(&partitions)?;
        let open = seek(&mut *reader, &partitions, from_beginning)?;
        Ok(Self { topic: topic.name, ends: exits_at_end, reader, open })
    }

    /// Lets the log leave out records that are not selected. Returns false if all come nevertheless.
    pub fn select(&mut self, selection: &Selection) -> bool {
        self.reader.select(selection)
    }

    /// Returns the name of the topic, with its prefix.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// True if all records were read that existed at the beginning.
    pub fn has_caught_up(&self) -> bool {
        self.open.is_empty()
    }

    /// True if no further record is to come.
    pub fn has_ended(&self) -> bool {
        self.ends && self.has_caught_up()
    }

    /// Waits for records for about `timeout`, and passes them on with their partition. Returns true if any came.
    pub fn poll<E>(
        &mut self,
        timeout: Duration,
        mut take: impl FnMut(i32, &Record) -> Result<(), E>,
    ) -> anyhow::Result<bool>
    where
        anyhow::Error: From<E>,
    {
        let fetched = self.reader.poll(timeout, RECORDS_MAX, BYTES_MAX)?;
        let mut has_records = false;
        if let Fetched::Records { source, records } = fetched {
            for record in &records {
                // Records written after the start lie after the requested end.
                if !self.ends || self.open.get(&source).is_some_and(|end| record.offset < *end) {
                    take(source.partition, record)?;
                    has_records = true;
                }
            }
        }
        self.drop_finished()?;
        Ok(has_records)
    }

    /// Drops the partitions that were read to their end; the last offset need not have a record.
    fn drop_finished(&mut self) -> anyhow::Result<()> {
        let mut finished = Vec::new();
        for (partition, end) in &self.open {
            if self.reader.position(partition)? >= *end {
                finished.push(partition.clone());
            }
        }
        for partition in finished {
            self.open.remove(&partition);
        }
        Ok(())
    }
}

/// Finds the topic of that name, which may include the prefix. A topic without the prefix belongs to others.
fn find_topic(log: &dyn EventLog, name: &str, prefix: &str) -> anyhow::Result<TopicInfo> {
    let prefixed = format!("{prefix}{name}");
    let full = if name.starts_with(prefix) { name } else { &prefixed };
    for wanted in [prefixed.as_str(), full] {
        if let Some(topic) = log.topic(wanted)? {
            return Ok(topic);
        }
    }
    let known = match log.topic_names()?.as_slice() {
        [] => "no topics yet: publish ticks with `warptape feed` first".to_owned(),
        // A shared cluster may have thousands of topics.
        names => names[..names.len().min(KNOWN_MAX)].join(", "),
    };
    let url = log.url();
    Err(UsageError(format!("{url} has no topic {full:?} (topics.prefix = {prefix:?}); it has {known}"))
        .into())
}

/// Moves the reader to its first record. Returns the partitions with records before their present end.
fn seek(
    reader: &mut dyn Consumer,
    partitions: &[TopicPartition],
    from_beginning: bool,
) -> anyhow::Result<BTreeMap<TopicPartition, i64>> {
    let mut open = BTreeMap::new();
    for partition in partitions {
        let range = reader.offsets(partition)?;
        reader.seek(partition, if from_beginning { range.first } else { range.next })?;
        if from_beginning && range.first < range.next {
            open.insert(partition.clone(), range.next);
        }
    }
    Ok(open)
}
