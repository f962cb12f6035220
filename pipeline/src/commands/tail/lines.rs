//! Records of a topic as the lines of `tail -o json`, for callers without a terminal.

use std::collections::VecDeque;
use std::time::Duration;

use warptape_engine::payload_of;
use warptape_eventlog::Record;
use warptape_schemas::Describer;

use super::json_line::JsonLine;
use super::look::{Look, Rows};
use super::reading::Reading;
use super::{rows, selection};
use crate::open::{Purpose, open_log};
use crate::settings::Settings;

/// Lines of a topic, up to its current end or without end.
pub struct Lines {
    reading: Reading,
    symbol: Option<String>,
    look: Look,
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
        let mut reading = Reading::open(&*log, settings, topic, (from_beginning, exits_at_end))?;
        reading.select(&selection(symbol.as_deref(), (None, None)));
        let look = Look::new(symbol.as_deref(), None, None);
        Ok(Self { reading, symbol, look, describer: Describer::new(), ready: VecDeque::new() })
    }

    /// Returns the next line; waits about `timeout` for it.
    pub fn poll(&mut self, timeout: Duration) -> anyhow::Result<Polled> {
        if let Some(line) = self.ready.pop_front() {
            return Ok(Polled::Line(line));
        }
        if self.reading.has_ended() {
            return Ok(Polled::End);
        }
        let topic = self.reading.topic().to_owned();
        let Self { reading, symbol, look, describer, ready } = self;
        let symbol = symbol.as_deref();
        reading.poll(timeout, |partition, record| {
            let wanted = payload_of(record).map_or(Rows::Any, |payload| look.at(payload));
            if !wanted.are_none() {
                ready.extend(lines(describer, JsonLine::new(&topic, partition, record), record, symbol)?);
            }
            anyhow::Ok(())
        })?;
        Ok(self.ready.pop_front().map_or(Polled::Idle, Polled::Line))
    }
}

/// Returns the lines of a record: one for each of its rows with the symbol, or with any.
fn lines(
    describer: &Describer,
    line: JsonLine<'_>,
    record: &Record,
    symbol: Option<&str>,
) -> anyhow::Result<Vec<String>> {
    let mut written = Vec::new();
    match payload_of(record).and_then(|payload| describer.describe(payload)) {
        Ok((schema, value)) => {
            for row in rows::rows(schema, value) {
                if symbol.is_none_or(|symbol| row.symbol() == Some(symbol)) {
                    line.write_row(&row, describer, &mut written)?;
                }
            }
        }
        Err(error) => line.with_error(&error.to_string()).write(&mut written)?,
    }
    Ok(String::from_utf8(written)?.lines().map(str::to_owned).collect())
}
