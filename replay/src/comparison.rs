//! Compares the outputs of a rerun with an output topic, record by record.

use serde_json::Value;
use warptape_eventlog::{EventLog, LogError, OffsetRange, Record, TopicPartition};
use warptape_schemas::Describer;

use crate::cause::CauseOf;
use crate::difference::{Difference, differences};
use crate::partition_reader::PartitionReader;
use crate::{OutputDivergence, OutputProblem};

/// Greatest number of records read after the first difference, to distinguish changed records from missing and surplus
/// ones.
const LOOKAHEAD_RECORDS_MAX: usize = 256;

/// Compares one partition of one output topic.
pub(crate) struct Comparison {
    recorded: PartitionReader,
    end: i64,
    /// Offset of the source before which causes are not compared: their outputs are gone, or the state that led to them
    /// is unknown.
    pub(crate) from: i64,
    /// True if the next output's cause is before `from`.
    is_before: bool,
    identical: u64,
    /// Offset after the last record that was found identical.
    next: i64,
    /// End of the rerun, and the function that reads a record's cause; `None` if the topic does not continue after the
    /// rerun.
    expected_to: Option<(i64, CauseOf)>,
    mismatch: Option<Mismatch>,
}

/// The records from the first difference on.
struct Mismatch {
    expected: Vec<Expected>,
    /// Number of expected records, including those not kept.
    expected_count: u64,
    found: Vec<Record>,
}

pub(crate) struct Expected {
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Vec<u8>,
}

impl Expected {
    pub(crate) fn is(&self, found: &Record) -> bool {
        self.key == found.key && self.value == found.value
    }
}

impl Comparison {
    /// Compares with the records in `range` whose cause is at or after the source offset `from`; `cause_of` reads a
    /// record's cause. If the topic's first records were removed, the comparison begins after the cause of the first
    /// remaining record. Removed outputs may have had the same cause.
    pub(crate) fn open(
        log: &dyn EventLog,
        source: TopicPartition,
        range: OffsetRange,
        from: i64,
        cause_of: CauseOf,
    ) -> Result<Self, LogError> {
        let mut recorded = PartitionReader::open(log, source, range)?;
        let mut from = from;
        if range.first > 0 {
            let first = recorded.peek()?.map(|record| cause_of(&record.value));
            // The comparison itself reports an unreadable record as different.
            from = from.max(first.map_or(i64::MAX, |cause| cause.map_or(from, |cause| cause + 1)));
        }
        while recorded.peek()?.and_then(|record| cause_of(&record.value)).is_some_and(|cause| cause < from) {
            recorded.next()?;
        }
        Ok(Self::of(recorded, range, from))
    }

    /// Compares with the records in `range`. The cause of the first one is at or after the source offset `from`.
    pub(crate) fn resume(
        log: &dyn EventLog,
        source: TopicPartition,
        range: OffsetRange,
        from: i64,
    ) -> Result<Self, LogError> {
        Ok(Self::of(PartitionReader::open(log, source, range)?, range, from))
    }

    fn of(recorded: PartitionReader, range: OffsetRange, from: i64) -> Self {
        let (end, next) = (range.next, range.first);
        Self { recorded, end, from, is_before: false, identical: 0, next, expected_to: None, mismatch: None }
    }

    /// Returns the offset after the records that were found identical.
    pub(crate) fn next_offset(&self) -> i64 {
        self.next
    }

    /// Ends the rerun at this offset of the source. Outputs of later records are then neither expected nor surplus.
    pub(crate) fn stop_at(&mut self, offset: i64, cause_of: CauseOf) {
        self.expected_to = Some((offset, cause_of));
    }

    /// Returns the next record, unless its cause is after the end of the rerun.
    fn next_surplus(&mut self) -> Result<Option<Record>, LogError> {
        if let Some((to, cause_of)) = self.expected_to {
            let of_later = |record: &Record| cause_of(&record.value).is_some_and(|cause| cause >= to);
            if self.recorded.peek()?.is_some_and(of_later) {
                return Ok(None);
            }
        }
        self.recorded.next()
    }

    /// Announces that the next outputs are caused by the record at this offset of the source, or by later ones up to
    /// the next call.
    pub(crate) fn reach(&mut self, offset: i64) {
        self.is_before = offset < self.from;
    }

    /// Returns the number of records found identical.
    pub(crate) fn identical(&self) -> u64 {
        self.identical
    }

    /// Compares the next record with the rerun's next output.
    pub(crate) fn expect(&mut self, key: Option<&[u8]>, value: &[u8]) -> Result<(), LogError> {
        if self.is_before {
            return Ok(());
        }
        let keep = || Expected { key: key.map(<[u8]>::to_vec), value: value.to_vec() };
        if let Some(mismatch) = &mut self.mismatch {
            mismatch.expected_count += 1;
            if mismatch.expected.len() < LOOKAHEAD_RECORDS_MAX {
                mismatch.expected.push(keep());
            }
            return Ok(());
        }
        let found = match self.recorded.next()? {
            Some(found) if found.key.as_deref() == key && found.value == value => {
                self.identical += 1;
                self.next = found.offset + 1;
                return Ok(());
            }
            found => found,
        };
        let mut found = Vec::from_iter(found);
        while !found.is_empty()
            && found.len() < LOOKAHEAD_RECORDS_MAX
            && let Some(record) = self.recorded.next()?
        {
            found.push(record);
        }
        self.mismatch = Some(Mismatch { expected: vec![keep()], expected_count: 1, found });
        Ok(())
    }

    /// True if a difference was found.
    pub(crate) fn differs(&self) -> bool {
        self.mismatch.is_some()
    }

    /// True if the difference is final, so that the rest of the rerun cannot change it.
    pub(crate) fn is_decided(&self) -> bool {
        // Missing records at the end are all counted.
        self.mismatch.as_ref().is_some_and(|mismatch| {
            !mismatch.found.is_empty() && mismatch.expected.len() >= LOOKAHEAD_RECORDS_MAX
        })
    }

    /// Returns the first difference. Call it once the rerun has ended or this comparison is decided.
    pub(crate) fn finish(mut self, describer: &Describer) -> Result<Option<OutputDivergence>, LogError> {
        let (offset, shown, problem) = match self.mismatch.take() {
            None => {
                let Some(first) = self.next_surplus()? else { return Ok(None) };
                let mut count = 1;
                while self.next_surplus()?.is_some() {
                    count += 1;
                }
                let value = described(describer, &first.value);
                (first.offset, value.clone(), OutputProblem::Surplus { count, first: value })
            }
            Some(mismatch) => {
                let offset = mismatch.found.first().map_or(self.end, |record| record.offset);
                let expected = described(describer, &mismatch.expected[0].value);
                (offset, expected, mismatch.problem(describer))
            }
        };
        let source = self.recorded.source;
        let symbol = symbol_of(&shown).map(str::to_owned);
        Ok(Some(OutputDivergence {
            topic: source.topic,
            partition: source.partition,
            offset,
            symbol,
            request_id: None,
            problem,
        }))
    }
}

impl Mismatch {
    fn problem(&self, describer: &Describer) -> OutputProblem {
        let (expected, Some(found)) = (&self.expected[0], self.found.first()) else {
            let first = described(describer, &self.expected[0].value);
            return OutputProblem::Missing { count: self.expected_count, first };
        };
        let missing = self.expected.iter().position(|later| later.is(found));
        let surplus = self.found.iter().position(|later| expected.is(later));
        match (missing, surplus) {
            (Some(count), None) => {
                let first = described(describer, &expected.value);
                OutputProblem::Missing { count: count as u64, first }
            }
            (None, Some(count)) => {
                let first = described(describer, &found.value);
                OutputProblem::Surplus { count: count as u64, first }
            }
            // The record was changed, or both records exist in another order.
            _ => changed(describer, expected, found),
        }
    }
}

/// Describes a record that differs from the expected one.
pub(crate) fn changed(describer: &Describer, expected: &Expected, found: &Record) -> OutputProblem {
    let got = match describer.describe(&found.value) {
        Ok((_, value)) => value,
        Err(error) => {
            let expected = described(describer, &expected.value);
            return OutputProblem::Unreadable { error: error.to_string(), expected };
        }
    };
    let (_, wanted) =
        describer.describe(&expected.value).expect("a record that was just encoded can be decoded");
    let mut differences = differences("", &wanted, &got);
    if expected.key != found.key {
        let key = |key: &Option<Vec<u8>>| key.as_deref().map(|key| String::from_utf8_lossy(key).into());
        let (expected, found) = (key(&expected.key), key(&found.key));
        differences.push(Difference { field: "key".to_owned(), expected, found });
    }
    if differences.is_empty() {
        // Either numbers are equal but not identical (-0.0), or different bytes decode to the same value.
        differences.push(Difference::new("bytes", hex(&expected.value), hex(&found.value)));
    }
    OutputProblem::Changed { differences }
}

/// Returns a record as JSON without null fields; the error if it cannot be decoded.
pub(crate) fn described(describer: &Describer, value: &[u8]) -> Value {
    match describer.describe(value) {
        Ok((_, Value::Object(mut fields))) => {
            fields.retain(|_, field| !field.is_null());
            Value::Object(fields)
        }
        Ok((_, value)) => value,
        Err(error) => Value::String(format!("a record of {} bytes: {error}", value.len())),
    }
}

/// Returns the symbol of a signal, or of the tick in a late record; `None` if it has none.
fn symbol_of(record: &Value) -> Option<&str> {
    record.get("symbol").or_else(|| record.get("tick")?.get("symbol"))?.as_str()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
