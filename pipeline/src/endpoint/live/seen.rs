//! The newest signals, decisions and risk records that the page has read. Nothing in this module reads or waits.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use warptape_engine::payload_of;
use warptape_eventlog::Record;
use warptape_replay::iso;
use warptape_schemas::journal::{Input, JournalEntry, Started};
use warptape_schemas::{Describer, decode_journal_entry, decode_signal, decode_signal_head};

use super::Explains;
use super::series::{Series, shown};
use super::snapshot::{Entry, Risk, Signal};

/// Greatest number of signals shown.
const SIGNALS_MAX: usize = 30;
/// Greatest number of entries of the journal shown.
const ENTRIES_MAX: usize = 40;
/// Greatest number of risk requests and results shown.
const RISK_MAX: usize = 20;
/// Greatest number of decisions shown of one entry.
const REASONS_MAX: usize = 8;
/// Greatest number of items shown of a list in a risk record, and of characters of a text.
const ITEMS_MAX: usize = 8;
const TEXT_MAX: usize = 200;

/// The newest records of each kind, newest first.
pub(super) struct Seen {
    pub(super) signals: VecDeque<Signal>,
    pub(super) signals_by_kind: BTreeMap<String, u64>,
    pub(super) entries: VecDeque<Entry>,
    pub(super) risk: VecDeque<Risk>,
    /// Sequence of the newest entry of the journal.
    pub(super) newest_sequence: Option<i64>,
    pub(super) series: Arc<Mutex<Series>>,
    /// Start of the process, once an entry contained it; it has the devices of lanes and the limits of decisions.
    pub(super) started: Option<Started>,
    explains: Arc<dyn Explains>,
    describer: Describer,
}

impl Seen {
    pub(super) fn new(explains: Arc<dyn Explains>, series: Arc<Mutex<Series>>) -> Self {
        Self {
            signals: VecDeque::new(),
            signals_by_kind: BTreeMap::new(),
            entries: VecDeque::new(),
            risk: VecDeque::new(),
            newest_sequence: None,
            series,
            started: None,
            explains,
            describer: Describer::new(),
        }
    }

    pub(super) fn series(&self) -> MutexGuard<'_, Series> {
        // A panic while the lock is held leaves the contents consistent.
        self.series.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores signals of a partition. Records that are not signals are skipped: `/health` and `tail` report them.
    pub(super) fn see_signals(&mut self, partition: i32, records: &[Record]) {
        let series = self.series.clone();
        let mut series = series.lock().unwrap_or_else(PoisonError::into_inner);
        for record in records {
            let Ok(payload) = payload_of(record) else { continue };
            let Ok(signal) = decode_signal_head(payload) else { continue };
            series.see((partition, record.offset), &signal, payload);
            match self.signals_by_kind.get_mut(signal.kind.name()) {
                Some(count) => *count += 1,
                None => _ = self.signals_by_kind.insert(signal.kind.name().to_owned(), 1),
            }
        }
        let newest = records.iter().rev().take(SIGNALS_MAX).filter_map(|record| {
            let signal = decode_signal(payload_of(record).ok()?).ok()?;
            Some(shown(format!("{partition}:{}", record.offset), &signal))
        });
        for signal in newest.collect::<Vec<_>>().into_iter().rev() {
            keep(&mut self.signals, signal, SIGNALS_MAX);
        }
    }

    /// Stores entries of this process's journal.
    pub(super) fn see_entries(&mut self, journal: i32, records: &[Record]) {
        let entries: Vec<JournalEntry> =
            records.iter().filter_map(|record| decode_journal_entry(&record.value).ok()).collect();
        let decided = entries.iter().filter(|entry| !entry.decisions.is_empty()).count();
        // Only shown entries are described in words.
        let mut passed_over = decided.saturating_sub(ENTRIES_MAX);
        for entry in entries {
            self.newest_sequence = Some(entry.sequence);
            match &entry.input {
                Input::Started(started) => self.started = Some((**started).clone()),
                Input::Checkpoint(checkpoint) => {
                    self.started = checkpoint.started.as_deref().cloned().or(self.started.take());
                }
                _ => {}
            }
            if entry.decisions.is_empty() {
                continue;
            }
            if passed_over > 0 {
                passed_over -= 1;
                continue;
            }
            let (words, mut reasons) = self.explains.entry(&entry, self.started.as_ref());
            if let Some(more) = reasons.len().checked_sub(REASONS_MAX).filter(|more| *more > 0) {
                reasons.truncate(REASONS_MAX);
                reasons.push(format!("and {more} more decisions"));
            }
            let input = words.split(':').next().unwrap_or_default().to_owned();
            let place = format!("{journal}:{}", entry.sequence);
            let entry = Entry { place, at: iso(entry.at_ns), input, words, reasons };
            keep(&mut self.entries, entry, ENTRIES_MAX);
        }
    }

    /// Stores risk requests and results.
    pub(super) fn see_risk(&mut self, records: &[Record]) {
        for record in records.iter().rev().take(RISK_MAX).rev() {
            let described = payload_of(record).and_then(|payload| self.describer.describe(payload));
            let Ok((_, Value::Object(mut fields))) = described else { continue };
            // Anyone may write a request to the log, with an id of any length. Valid ids are shorter than the limit.
            fields.values_mut().for_each(shorten);
            let branch = |value: Option<&Value>| value.and_then(branch_of).unwrap_or_default();
            let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let risk = Risk {
                id: text("request_id"),
                outcome: if fields.contains_key("outcome") {
                    branch(fields.get("outcome"))
                } else {
                    "asked".to_owned()
                },
                kind: branch(fields.get("problem").or(fields.get("outcome"))),
                fields: Value::Object(fields),
            };
            keep(&mut self.risk, risk, RISK_MAX);
        }
    }
}

/// Puts an item first, and drops the last items beyond `most`.
fn keep<T>(items: &mut VecDeque<T>, item: T, most: usize) {
    items.push_front(item);
    items.truncate(most);
}

/// Returns the name of a union's branch, such as `Options` of `{"warptape.Options": {…}}`.
fn branch_of(value: &Value) -> Option<String> {
    let name = value.as_object()?.keys().next()?;
    Some(name.rsplit('.').next().unwrap_or(name).to_owned())
}

/// Cuts long lists and texts.
fn shorten(value: &mut Value) {
    match value {
        Value::Array(items) => {
            let more = items.len().saturating_sub(ITEMS_MAX);
            items.truncate(ITEMS_MAX);
            items.iter_mut().for_each(shorten);
            if more > 0 {
                items.push(format!("and {more} more").into());
            }
        }
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        Value::String(text) if text.chars().count() > TEXT_MAX => {
            *text = text.chars().take(TEXT_MAX).chain(['…']).collect();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_lists_and_texts_are_cut_and_say_so() {
        let mut value =
            json!({"weights": (0..20).collect::<Vec<i32>>(), "words": "é".repeat(300), "deep": [[1, 2]]});
        shorten(&mut value);
        let weights = value["weights"].as_array().expect("a list");
        assert_eq!((weights.len(), &weights[8]), (9, &json!("and 12 more")));
        assert_eq!(value["words"].as_str().expect("a text").chars().count(), 201);
        assert_eq!(value["deep"], json!([[1, 2]]));
    }

    #[test]
    fn the_newest_is_first_and_the_oldest_goes() {
        let mut items = VecDeque::new();
        (0..5).for_each(|item| keep(&mut items, item, 3));
        assert_eq!(items, [4, 3, 2]);
    }
}
