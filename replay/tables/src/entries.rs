//! Entries of journals as rows.

use warptape_eventlog::Record;
use warptape_schemas::journal::JournalEntry;

use crate::journal::{kind_of, to_value};
use crate::rows::Rows;
use crate::table::{Table, int, text, time, word};

/// Journal entries, only for programs: exported files have their decisions instead.
pub(crate) const JOURNAL: Table = Table {
    name: "journal",
    words: "An entry of a journal: an input of the scheduler, and the decisions on it.",
    columns: &[
        int("journal_partition", "partition of the journal: the ordinal of the process"),
        int("offset", "offset of the entry in the journal"),
        time("record_time_ns", "time of its record in the log"),
        int("sequence", "sequence of the entry, for `replay why`"),
        time("at_ns", "time of the step of the scheduler"),
        word("input", "kind of the input: `Arrived`, `Completed` and so on"),
        text("input_detail", "the whole input as JSON"),
        int("decisions", "number of decisions"),
        text("decisions_detail", "all decisions as JSON"),
        text("state_hash", "hash of the scheduler's state before the step"),
        text("hash", "hash that chains the entry to the one before"),
    ],
};

/// Adds the row of an entry.
pub(crate) fn push(partition: i32, record: &Record, entry: &JournalEntry, rows: &mut Rows) {
    let input = to_value(&entry.input);
    let kind = input.as_str().unwrap_or(kind_of(&input).0);
    let (input_detail, decisions) = (input.to_string(), to_value(&entry.decisions).to_string());
    let row = [
        partition.into(),
        record.offset.into(),
        record.timestamp_ns.into(),
        entry.sequence.into(),
        entry.at_ns.into(),
        kind.into(),
        input_detail.as_str().into(),
        (entry.decisions.len() as i64).into(),
        decisions.as_str().into(),
        (&*entry.state_hash).into(),
        (&*entry.hash).into(),
    ];
    rows.push(&JOURNAL, &row);
}
