//! Conditions on rows, by the columns of a table.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, TimestampNanosecondType};
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, StringArray};
use arrow_schema::Schema;
use arrow_select::filter::filter_record_batch;

/// Columns with an event time: the end of a bar, or the time of a tick.
const EVENT_TIMES: [&str; 2] = ["bar_end_ns", "event_time_ns"];

/// Conditions that all returned rows meet. [`RowFilter::lacking`] finds conditions that a table cannot meet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowFilter {
    /// Required symbol; `None` for any.
    pub symbol: Option<String>,
    /// Required kind, as in the column `kind`; `None` for any.
    pub kind: Option<String>,
    /// Earliest event time, ns since the epoch; for a signal, the earliest end of its bar.
    pub since_ns: Option<i64>,
    /// Event time from which rows are left out, ns since the epoch.
    pub until_ns: Option<i64>,
}

impl RowFilter {
    /// Returns the name of a condition whose column the table lacks; `None` if it has all columns.
    pub fn lacking(&self, schema: &Schema) -> Option<&'static str> {
        let has = |names: &[&str]| names.iter().any(|name| schema.column_with_name(name).is_some());
        let conditions = [
            ("symbol", self.symbol.is_some(), has(&["symbol"])),
            ("kind", self.kind.is_some(), has(&["kind"])),
            ("since", self.since_ns.is_some(), has(&EVENT_TIMES)),
            ("until", self.until_ns.is_some(), has(&EVENT_TIMES)),
        ];
        conditions.into_iter().find(|(_, is_set, has)| *is_set && !has).map(|(name, ..)| name)
    }

    /// Returns the rows that meet all conditions.
    pub fn of(&self, batch: RecordBatch) -> RecordBatch {
        let Self { symbol, kind, since_ns, until_ns } = self;
        let mut kept = vec![true; batch.num_rows()];
        for (column, wanted) in [("symbol", symbol), ("kind", kind)] {
            if let (Some(words), Some(wanted)) = (batch.column_by_name(column), wanted) {
                keep_word(words, wanted, &mut kept);
            }
        }
        if let Some(times) = EVENT_TIMES.into_iter().find_map(|name| batch.column_by_name(name)) {
            let times = times.as_primitive::<TimestampNanosecondType>().values();
            for (kept, time_ns) in kept.iter_mut().zip(times) {
                *kept &= since_ns.is_none_or(|since_ns| *time_ns >= since_ns)
                    && until_ns.is_none_or(|until_ns| *time_ns < until_ns);
            }
        }
        if kept.iter().all(|kept| *kept) {
            return batch;
        }
        filter_record_batch(&batch, &BooleanArray::from(kept)).expect("the filter is as long as the batch")
    }
}

/// Drops the rows without this word.
fn keep_word(words: &ArrayRef, wanted: &str, kept: &mut [bool]) {
    let words = words.as_dictionary::<Int32Type>();
    let known = words.values().as_any().downcast_ref::<StringArray>().expect("words are texts");
    let wanted = known.iter().position(|word| word == Some(wanted)).and_then(|key| i32::try_from(key).ok());
    for (kept, key) in kept.iter_mut().zip(words.keys().values()) {
        *kept &= Some(*key) == wanted;
    }
}
