//! The records of what leaves the main way: late ticks and dead letters. One way to make them, for the run and for its
//! replay.

use warptape_eventlog::{Record, TopicPartition};
use warptape_schemas::{
    DeadLetter, DecodeError, LateTick, SymbolTable, TickColumns, decode_dead_letter, encode_dead_letter,
    encode_late_tick, fingerprint_of, known,
};
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
    let late_tick = LateTick {
        topic: source.topic.clone(),
        partition: source.partition,
        offset,
        index: late.index as i32,
        watermark_ns: late.watermark_ns,
        lateness_ns: late.watermark_ns.saturating_sub(tick.event_time_ns),
        tick,
    };
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

fn dead_letter_of(source: &TopicPartition, record: &Record, error: &DecodeError) -> DeadLetter {
    DeadLetter {
        topic: source.topic.clone(),
        partition: source.partition,
        offset: record.offset,
        reason: error.reason(),
        detail: error.to_string(),
        key: record.key.clone(),
        value: record.value.clone(),
        cut: None,
    }
}

/// Whether a record is the dead letter of `of` as it was written before letters were bounded: the same, but whole.
pub(crate) fn is_older_dead_letter(
    found: &Record,
    source: &TopicPartition,
    of: &Record,
    error: &DecodeError,
) -> bool {
    let is_current = fingerprint_of(&found.value) == Some(known::DEAD_LETTER.fingerprint);
    !is_current
        && found.key.is_none()
        && decode_dead_letter(&found.value).is_ok_and(|letter| letter == dead_letter_of(source, of, error))
}
