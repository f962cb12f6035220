//! Side outputs: late ticks and dead letters. They are encoded in one place, for the run and for its replay.

use warptape_events::{
    DeadLetter, DecodeError, DecodeTicks, InvalidTick, LateTick, SymbolTable, TickColumns,
    encode_dead_letter, encode_late_tick,
};
use warptape_record::{Record, TopicPartition};
use warptape_stages::{Late, TickRecord};

use crate::payload::payload_of;

/// Most rejected rows of a record that have a dead letter each. Further rows, of which there may be tens of thousands,
/// share dead letters.
const ROW_LETTERS_MAX: usize = 256;
/// Most rows in a shared dead letter, so that their bytes fit into its value.
const SHARED_ROWS_MAX: usize = 2_048;

/// The input of the stages for a record.
///
/// # Errors
/// The record is a placeholder for a batch of records that cannot be read.
pub fn tick_record(record: &Record) -> Result<TickRecord<'_>, DecodeError> {
    let (offset, written_ns) = (record.offset, record.timestamp_ns);
    Ok(TickRecord { offset, written_ns, value: payload_of(record)? })
}

/// Appends a late tick of `columns`, which holds only the record at `offset` of `source`.
pub fn encode_late_tick_of(
    source: &TopicPartition,
    offset: i64,
    late: Late,
    columns: &TickColumns,
    symbols: &SymbolTable,
    out: &mut Vec<u8>,
) {
    let tick = columns.tick(late.index as usize, symbols);
    let (topic, partition) = (source.topic.clone(), source.partition);
    let late_tick = LateTick::new(topic, partition, offset, late.index as i32, tick, late.watermark_ns);
    encode_late_tick(&late_tick, out);
}

/// Appends the dead letter of a record of `source` that was rejected with `error`.
pub fn encode_dead_letter_of(
    source: &TopicPartition,
    record: &Record,
    error: &DecodeError,
    out: &mut Vec<u8>,
) {
    encode_dead_letter(&dead_letter_of(source, record, error).bounded(), out);
}

/// The complete dead letter of a record of `source` that was rejected with `error`.
pub fn dead_letter_of(source: &TopicPartition, record: &Record, error: &DecodeError) -> DeadLetter {
    let (offset, last_offset) = match error {
        DecodeError::UnreadableBatch { first_offset, .. } => (*first_offset, Some(record.offset)),
        _ => (record.offset, None),
    };
    DeadLetter {
        topic: source.topic.clone(),
        partition: source.partition,
        offset,
        reason: error.reason(),
        detail: error.to_string(),
        key: record.key.clone(),
        value: record.value.clone(),
        cut: None,
        last_offset,
        rows: Vec::new(),
    }
}

/// Encodes the dead letters of the rejected rows of a record of `source`, which has `rows` rows. Each dead letter holds
/// its row as a record of its own. The dead letter of a record's only row holds the whole record.
pub fn encode_row_letters(
    source: &TopicPartition,
    record: &Record,
    rows: usize,
    rejected: &[InvalidTick],
    decoder: &mut dyn DecodeTicks,
) -> Vec<Vec<u8>> {
    let encoded = |letter: DeadLetter| {
        let mut bytes = Vec::new();
        encode_dead_letter(&letter.bounded(), &mut bytes);
        bytes
    };
    let of_record =
        |invalid: &InvalidTick| dead_letter_of(source, record, &DecodeError::Invalid(invalid.clone()));
    if let (1, [invalid]) = (rows, rejected) {
        return vec![encoded(of_record(invalid))];
    }
    let (each, rest) = rejected.split_at(rejected.len().min(ROW_LETTERS_MAX));
    let parts: Vec<&[InvalidTick]> = each.chunks(1).chain(rest.chunks(SHARED_ROWS_MAX)).collect();
    let numbers: Vec<u32> = rejected.iter().map(|invalid| invalid.row as u32).collect();
    let mut behind = &numbers[..];
    let mut selections = Vec::with_capacity(parts.len());
    for part in &parts {
        selections.push(behind.split_off(..part.len()).expect("the parts are those of all rejected rows"));
    }
    let values = decoder.rows_alone(&record.value, &selections);
    let letters = parts.iter().zip(selections).zip(values).map(|((part, selection), value)| {
        let letter = of_record(&part[0]);
        let detail = match part.len() - 1 {
            0 => letter.detail,
            more => format!("{} (and {more} more rows)", letter.detail),
        };
        let rows = selection.iter().map(|row| *row as i32).collect();
        // A truncated key would be searched for in the record, which does not contain it.
        let key = letter.key.filter(|key| key.len() <= DeadLetter::KEY_BYTES_MAX);
        DeadLetter { rows, value, detail, key, ..letter }
    });
    letters.map(encoded).collect()
}
