//! The records of what leaves the main way: late ticks and dead letters. One way to make them, for the run and for its
//! replay.

use warptape_events::{
    DeadLetter, DecodeError, LateTick, SymbolTable, TickColumns, encode_dead_letter, encode_late_tick,
};
use warptape_record::{Record, TopicPartition};
use warptape_stages::Late;

/// Appends the late record of a row of `columns`, which holds the record at `offset` of `source` alone.
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

/// The dead letter of a record of `source` that was rejected with `error`, whole.
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
