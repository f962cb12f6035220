//! Errors that occur while a source produces ticks.

use super::DecimalError;
use std::io;
use std::path::PathBuf;

/// Longest excerpt of a found text in a message, in bytes.
const FOUND_BYTES_MAX: usize = 80;

/// Reasons why a source stopped. Messages name the place and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// No file was given.
    #[error("no input file given: name at least one")]
    NoFiles,
    /// The file cannot be opened.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's message.
        source: io::Error,
    },
    /// The file cannot be read further, for example because it is a truncated gzip file.
    #[error("cannot read {} after line {line}: {source}; if the file is compressed, it may be cut short", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Number of lines read before the error.
        line: u64,
        /// The message of the system or the decompressor.
        source: io::Error,
    },
    /// The line is too long.
    #[error("{}:{line}: the line is longer than {limit_bytes} bytes; check that it is a text file with one event per line", path.display())]
    LineTooLong {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// Greatest allowed length, in bytes.
        limit_bytes: usize,
    },
    /// The line does not parse.
    #[error("{}:{line}: {problem}", path.display())]
    BadLine {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// The fault.
        problem: FieldProblem,
    },
    /// The CSV file has no mapping, and is not named like a known dump.
    #[error(
        "{}: the file is not named like a Binance dump (BTCUSDT-trades-2024-08-08.csv, -aggTrades-, \
         -bookTicker-); give the meaning of its columns with --map, such as --map \
         symbol=sym,time=ts:ms,price=px,size=qty",
        path.display()
    )]
    UnknownDump {
        /// The file.
        path: PathBuf,
    },
    /// The `--map` cannot be used; the error lists all mistakes.
    #[error("--map: {}", problems.join("; "))]
    BadMapping {
        /// The mistakes, each with the allowed values.
        problems: Vec<String>,
    },
    /// The file's header lacks a mapped column.
    #[error("{}: no column `{column}` in the header; it has: {}", path.display(), header.join(", "))]
    MissingColumn {
        /// The file.
        path: PathBuf,
        /// The requested column.
        column: String,
        /// The columns of the header.
        header: Vec<String>,
    },
    /// Bad lines could not be written to their file.
    #[error("cannot write bad lines to {}: {source}; choose a folder that you can write to", path.display())]
    Aside {
        /// The file for bad lines.
        path: PathBuf,
        /// The system's message.
        source: io::Error,
    },
    /// The rows are not in the order of their times; no row was published.
    #[error(
        "{}: {found}. `run` treats such ticks as late or rejects them, so nothing is published. Use --sort \
         to feed the rows in the order of their times, or --keep-order for file order",
        path.display()
    )]
    OutOfOrder {
        /// The file.
        path: PathBuf,
        /// Number and place of such rows, in words.
        found: String,
    },
    /// The times have a large gap; no row was published.
    #[error(
        "{}:{line}: {found}, and `run` rejects the first ticks after a gap of more than {limit} \
         (`stages.future_max_ms`). So nothing is published. With --follow-gaps, `run` follows the gap, and \
         ticks of other feeds that lie further behind become late. With --keep-order, without --sort, the \
         rows are fed in file order: the first ticks after the gap become dead letters, and `dlq replay` \
         sends them again",
        path.display()
    )]
    Gap {
        /// The file.
        path: PathBuf,
        /// The first line after the first gap.
        line: u64,
        /// Length of the gap, in words.
        found: String,
        /// Largest gap allowed, in words.
        limit: String,
    },
    /// Numbers exceed the range of a tick; no row was published.
    #[error(
        "{}: {count} lines have numbers that a tick cannot hold, the first in line {line}: {problem}. \
         Nothing is published. Use --round 9 to round prices and sizes with too many decimals, or --skip-bad \
         to leave the lines out",
        path.display()
    )]
    Unfit {
        /// The file.
        path: PathBuf,
        /// Number of such lines.
        count: u64,
        /// Number of the first such line, from 1.
        line: u64,
        /// The fault of the first such line.
        problem: String,
    },
    /// The rows could not be sorted.
    #[error("cannot sort {}: {source}; sorting uses a temporary file in the folder of TMPDIR", path.display())]
    Sort {
        /// The file.
        path: PathBuf,
        /// The system's message.
        source: io::Error,
    },
    /// The DBN file cannot be decoded.
    #[cfg(feature = "dbn")]
    #[error("{}: {source} (after record {record}); check that it is a complete .dbn or .dbn.zst file", path.display())]
    Dbn {
        /// The file.
        path: PathBuf,
        /// Number of records decoded before the error.
        record: u64,
        /// The decoder's message.
        source: ::dbn::Error,
    },
    /// The DBN file ends within a record.
    #[error("{}: ends within a record after record {record}; download the whole file again", path.display())]
    DbnCutShort {
        /// The file.
        path: PathBuf,
        /// Number of whole records before the cut.
        record: u64,
    },
    /// The DBN record cannot be converted to a tick.
    #[error("{}: record {record}: {problem}", path.display())]
    BadRecord {
        /// The file.
        path: PathBuf,
        /// Number of the record, from 1.
        record: u64,
        /// The fault.
        problem: FieldProblem,
    },
    /// The DBN record's instrument has no symbol.
    #[error(
        "{}: record {record}: no symbol for instrument id {instrument_id} at {event_time_ns} ns in the file's symbology; \
         request the file with stype_out=instrument_id and its mappings",
        path.display()
    )]
    UnknownInstrument {
        /// The file.
        path: PathBuf,
        /// The record's number, from 1.
        record: u64,
        /// The instrument.
        instrument_id: u32,
        /// Event time of the record, because mappings change by date.
        event_time_ns: u64,
    },
    /// A setting of the synthetic market is out of range.
    #[error("synth: {key} is {found}; allowed: {allowed}")]
    SynthConfig {
        /// The setting.
        key: &'static str,
        /// Value of the setting.
        found: String,
        /// Allowed range of the setting.
        allowed: String,
    },
}

/// A field with an invalid value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column `{column}`: found `{found}`, expected {expected}")]
pub struct FieldProblem {
    /// Name of the field in the file.
    pub column: String,
    /// The value found, shortened and with control characters escaped.
    pub found: String,
    /// The value expected.
    pub expected: String,
    /// True if the value is a valid number that exceeds the range of a tick.
    pub does_not_fit: bool,
}

impl FieldProblem {
    /// Creates a problem with the raw bytes found.
    pub(super) fn new(
        column: impl Into<String>,
        found: impl AsRef<[u8]>,
        expected: impl Into<String>,
    ) -> FieldProblem {
        let found = found.as_ref();
        let shown = &found[..found.len().min(FOUND_BYTES_MAX)];
        let mut text: String = String::from_utf8_lossy(shown).escape_debug().collect();
        if shown.len() < found.len() {
            text.push('…');
        }
        FieldProblem { column: column.into(), found: text, expected: expected.into(), does_not_fit: false }
    }

    /// Creates a problem with a number.
    pub(super) fn of_number(
        column: impl Into<String>,
        found: impl AsRef<[u8]>,
        error: DecimalError,
    ) -> FieldProblem {
        let does_not_fit = error == DecimalError::DoesNotFit;
        FieldProblem { does_not_fit, ..FieldProblem::new(column, found, error.to_string()) }
    }
}
