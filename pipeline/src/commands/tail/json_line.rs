//! One line of JSON output: a record, or one tick of a record, with its place.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;
use warptape_eventlog::Record;
use warptape_schemas::Describer;

use super::readable::readable;
use super::rows::TickRow;
use crate::commands::json::{Integers, iso, write_line};

/// The members of one line.
#[derive(Clone, Serialize)]
pub struct JsonLine<'a> {
    topic: &'a str,
    /// Partition of the record.
    pub partition: i32,
    /// Offset of the record.
    pub offset: i64,
    /// Time of the record, ns since the epoch.
    pub timestamp_ns: i64,
    /// Time of the record as text.
    timestamp: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip)]
    integers: Integers,
}

impl<'a> JsonLine<'a> {
    /// Returns the line of a record without its contents.
    pub fn new(topic: &'a str, partition: i32, record: &Record) -> Self {
        let Record { offset, timestamp_ns, .. } = *record;
        let timestamp = iso(timestamp_ns);
        let (index, schema, record, error) = (None, None, None, None);
        let integers = Integers::Numbers;
        Self { topic, partition, offset, timestamp_ns, timestamp, index, schema, record, error, integers }
    }

    /// Sets the form of integers.
    pub fn with_integers(self, integers: Integers) -> Self {
        Self { integers, ..self }
    }

    /// Returns the line of a record that cannot be decoded.
    pub fn with_error(&self, error: &'a str) -> Self {
        Self { error: Some(error), ..self.clone() }
    }

    /// Writes the line with a row of the record. A record of a single tick has the one row 0.
    pub fn write_row(&self, row: &TickRow, describer: &Describer, output: &mut impl Write) -> io::Result<()> {
        let index = row.index.or((row.schema == "Tick").then_some(0));
        let record = Some(readable(row.schema, &row.fields, describer));
        JsonLine { index, schema: Some(row.schema), record, ..self.clone() }.write(output)
    }

    /// Writes the line.
    pub fn write(&self, output: &mut impl Write) -> io::Result<()> {
        write_line(output, self, self.integers)
    }
}
