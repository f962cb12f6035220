//! Records of a topic as the lines of `tail -o json`, for callers without a terminal.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use warptape_engine::payload_of;
use warptape_eventlog::{Consumer, Fetched, Record, TopicPartition};
use warptape_schemas::Describer;

use super::json_line::JsonLine;
use super::{BYTES_MAX, RECORDS_MAX, drop_finished, find_topic, rows, seek};
use crate::open::{Purpose, open_log};
use crate::settings::Settings;

/// Lines of a topic, up to its current end or without end.
pub struct Lines {
    topic: String,
    symbol: Option<String>,
    exits_at_end: bool,
    reader: Box<dyn Consumer>,
    /// End offset of each partition that has unread records before its current end.
    open: BTreeMap<TopicPartition, i64>,
    describer: Describer,
    ready: VecDeque<String>,
}

/// Result of a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Polled {
    /// The next line.
    Line(String),
    /// No record came within the timeout.
    Idle,
    /// The end was reached.
    End,
}

impl Lines {
    /// Opens a topic at its beginning or at its current end. With `exits_at_end`, the lines stop at that end.
    pub fn open(
        settings: &Settings,
        topic: &str,
        symbol: Option<String>,
        (from_beginning, exits_at_end): (bool, bool),
    ) -> anyhow::Result<Self> {
        let log = open_log(settings, Purpose::Show)?.log;
        let topic = find_topic(&*log, topic, &settings.topics.prefix)?.spec;
        let place = |partition| TopicPartition { topic: topic.name.clone(), partition };
        let partitions: Vec<TopicPartition> = (0..topic.partitions).map(place).collect();
        let mut reader = log.reader(&partitions)?;
        let open = seek(&mut *reader, &partitions, from_beginning)?;
        let (describer, ready) = (Describer::new(), VecDeque::new());
        Ok(Self { topic: topic.name, symbol, exits_at_end, reader, open, describer, ready })
    }

    /// Returns the next line; waits about `timeout` for it.
    pub fn poll(&mut self, timeout: Duration) -> anyhow::Result<Polled> {
        if let Some(line) = self.ready.pop_front() {
            return Ok(Polled::Line(line));
        }
        if self.exits_at_end && self.open.is_empty() {
            return Ok(Polled::End);
        }
        if let Fetched::Records { source, records } = self.reader.poll(timeout, RECORDS_MAX, BYTES_MAX)? {
            for record in &records {
                if !self.exits_at_end || self.open.get(&source).is_some_and(|end| record.offset < *end) {
                    self.push(source.partition, record)?;
                }
            }
        }
        drop_finished(&mut *self.reader, &mut self.open)?;
        Ok(self.ready.pop_front().map_or(Polled::Idle, Polled::Line))
    }

    fn push(&mut self, partition: i32, record: &Record) -> anyhow::Result<()> {
        let line = JsonLine::new(&self.topic, partition, record);
        let mut written = Vec::new();
        match payload_of(record).and_then(|payload| self.describer.describe(payload)) {
            Ok((schema, value)) => {
                for row in rows::rows(schema, value) {
                    if self.symbol.as_deref().is_none_or(|symbol| row.symbol() == Some(symbol)) {
                        line.write_row(&row, &self.describer, &mut written)?;
                    }
                }
            }
            Err(error) => line.with_error(&error.to_string()).write(&mut written)?,
        }
        let text = String::from_utf8(written)?;
        self.ready.extend(text.lines().map(str::to_owned));
        Ok(())
    }
}
