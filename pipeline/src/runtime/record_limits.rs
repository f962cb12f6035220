//! Size limits of records: one rule for everything that the engine writes, so that the log never refuses a record. A
//! refused record would be refused again in every life.
//!
//! ```text
//!   signals, late ticks    short: names, numbers, a symbol
//!   dead letters           as much of key, value and words as `DeadLetter::bounded` leaves
//!   journal entries        steps are bounded (`warptape_scheduler::in_steps`), and so are the texts in them
//!   snapshots              in parts
//!   lifecycle              details are cut, here
//!   risk results           one that is larger than its topic takes becomes an error that says so (`refusals::encode_bounded`)
//! ```
//!
//! Only results depend on their topic's limit, and an error in place of a result records that limit for replay. The
//! other records have fixed bounds, which every topic must accept.

use warptape_engine::PART_BYTES_MAX;
use warptape_eventlog::EventLog;
use warptape_schemas::DeadLetter;
use warptape_stages::risk::refusals::RESULT_BYTES_MIN;

use super::{EngineError, Topics};

/// Greatest length of a lifecycle record's detail, in bytes.
pub(super) const DETAIL_BYTES_MAX: usize = 16 << 10;
/// Greatest length of a journal entry, in bytes.
const ENTRY_BYTES_MAX: usize = 512 << 10;
/// Bytes of a record besides its largest field: key, names, numbers, words, headers.
const OTHER_BYTES_MAX: usize = 16 << 10;
/// Bytes of a signal with all indicators and formulas.
const SIGNAL_BYTES_MAX: usize = 8 << 10;
/// Bytes of records without a large field.
const SMALL_BYTES_MAX: usize = 4 << 10;

/// Returns, for each topic, the largest record that it must accept, including key, value and headers.
pub(super) fn needed(topics: &Topics) -> [(&str, usize); 7] {
    [
        (&topics.signals, SIGNAL_BYTES_MAX),
        (&topics.late, SMALL_BYTES_MAX),
        (&topics.dead_letter, DeadLetter::VALUE_BYTES_MAX + OTHER_BYTES_MAX),
        (&topics.journal, ENTRY_BYTES_MAX),
        (&topics.snapshots, PART_BYTES_MAX + OTHER_BYTES_MAX),
        (&topics.lifecycle, DETAIL_BYTES_MAX + SMALL_BYTES_MAX),
        (&topics.risk_results, RESULT_BYTES_MIN as usize),
    ]
}

/// Asks the log for the topics' limits, and refuses a topic whose limit is too small. Returns the greatest length of a
/// risk result, in bytes.
pub(super) fn learn(log: &dyn EventLog, topics: &Topics) -> Result<i64, EngineError> {
    let needed = needed(topics);
    let taken = log.record_bytes_max(&needed.map(|(topic, _)| topic))?;
    for ((topic, needed), &bytes_max) in needed.into_iter().zip(&taken) {
        if bytes_max < needed {
            return Err(EngineError::TopicTakesTooLittle { topic: topic.to_owned(), bytes_max, needed });
        }
    }
    let of_results = *taken.last().expect("each topic has an answer");
    Ok(i64::try_from(of_results).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
