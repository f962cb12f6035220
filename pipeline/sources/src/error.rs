//! What can go wrong while ticks are produced.

use super::DecimalError;
use std::io;
use std::path::PathBuf;

/// Found text is shown up to this many bytes.
const FOUND_BYTES_MAX: usize = 80;

/// Why a source stopped. Messages name the place and say what to do.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A source without files.
    #[error("no input file given: name at least one")]
    NoFiles,
    /// A file that cannot be opened.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file that cannot be read on, such as a truncated gzip file.
    #[error("cannot read {} after line {line}: {source}; if the file is compressed, it may be cut short", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Lines read before.
        line: u64,
        /// What the system or the decompressor said.
        source: io::Error,
    },
    /// A line longer than a line may be.
    #[error("{}:{line}: the line is longer than {limit_bytes} bytes; is this a text file with one event a line?", path.display())]
    LineTooLong {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: u64,
        /// Greatest length.
        limit_bytes: usize,
    },
    /// A line that does not parse.
    #[error("{}:{line}: {problem}", path.display())]
    BadLine {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: u64,
        /// What is wrong with it.
        problem: FieldProblem,
    },
    /// A CSV file whose name is not that of a known dump, without a mapping.
    #[error(
        "{}: not named like a Binance dump (BTCUSDT-trades-2024-08-08.csv, -aggTrades-, -bookTicker-); \
         say what its columns mean with --map, such as --map symbol=sym,time=ts:ms,price=px,size=qty",
        path.display()
    )]
    UnknownDump {
        /// The file.
        path: PathBuf,
    },
    /// A `--map` that cannot be used; all mistakes at once.
    #[error("--map: {}", problems.join("; "))]
    BadMapping {
        /// Each mistake with what is allowed.
        problems: Vec<String>,
    },
    /// A mapped column that the file's header does not have.
    #[error("{}: no column `{column}` in the header; it has: {}", path.display(), header.join(", "))]
    MissingColumn {
        /// The file.
        path: PathBuf,
        /// The column that was asked for.
        column: String,
        /// What there is.
        header: Vec<String>,
    },
    /// Bad lines could not be written aside.
    #[error("cannot write bad lines aside to {}: {source}; choose a folder that can be written to", path.display())]
    Aside {
        /// The file for bad lines.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Rows that are not in the order of their times, before any of them was published.
    #[error(
        "{}: {found}: `run` takes such ticks for late or wrong, so that nothing is published; --sort feeds the rows in the order of their \
         times, --keep-order as they stand",
        path.display()
    )]
    OutOfOrder {
        /// The file.
        path: PathBuf,
        /// How many rows lie where, in words.
        found: String,
    },
    /// Time that goes on far later, before any row was published.
    #[error(
        "{}:{line}: {found}, and `run` takes the first ticks behind a gap of more than {limit} (`stages.future_max_ms`) for wrong, so that \
         nothing is published; --follow-gaps has `run` follow, which makes ticks of other feeds late that are further behind; --keep-order, without \
         --sort, feeds the rows as they stand: the first ticks behind the gap become dead letters, and `dlq replay` sends them again",
        path.display()
    )]
    Gap {
        /// The file.
        path: PathBuf,
        /// The first line behind the first gap.
        line: u64,
        /// How much later time goes on, in words.
        found: String,
        /// What is let pass.
        limit: String,
    },
    /// Numbers that no tick can hold, before any was published.
    #[error(
        "{}: {count} lines have numbers that no tick can hold, the first is line {line}: {problem}; nothing is published: --round 9 \
         rounds prices and sizes of too many decimals, --skip-bad leaves the lines out",
        path.display()
    )]
    Unfit {
        /// The file.
        path: PathBuf,
        /// How many lines.
        count: u64,
        /// The first of them, from 1.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// Rows could not be sorted.
    #[error("cannot sort {}: {source}; rows are put aside in the folder that TMPDIR names", path.display())]
    Sort {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A DBN file that cannot be decoded.
    #[cfg(feature = "dbn")]
    #[error("{}: {source} (after record {record}); is it a whole .dbn or .dbn.zst file?", path.display())]
    Dbn {
        /// The file.
        path: PathBuf,
        /// Records decoded before.
        record: u64,
        /// What the decoder said.
        source: ::dbn::Error,
    },
    /// A DBN file that ends within a record.
    #[error("{}: ends within a record after record {record}; fetch the whole file", path.display())]
    DbnCutShort {
        /// The file.
        path: PathBuf,
        /// Whole records before.
        record: u64,
    },
    /// A DBN record that makes no tick.
    #[error("{}: record {record}: {problem}", path.display())]
    BadRecord {
        /// The file.
        path: PathBuf,
        /// Its number, from 1.
        record: u64,
        /// What is wrong with it.
        problem: FieldProblem,
    },
    /// A DBN record of an instrument without a symbol.
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
        /// When: mappings change by date.
        event_time_ns: u64,
    },
    /// A setting of the synthetic market out of range.
    #[error("synth: {key} is {found}; allowed: {allowed}")]
    SynthConfig {
        /// The setting.
        key: &'static str,
        /// Its value.
        found: String,
        /// Its range.
        allowed: String,
    },
}

/// A field that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column `{column}`: found `{found}`, expected {expected}")]
pub struct FieldProblem {
    /// The field's name in the file.
    pub column: String,
    /// What stands there, shortened and with control characters escaped.
    pub found: String,
    /// What should stand there.
    pub expected: String,
    /// Whether it is a good number that no tick can hold.
    pub does_not_fit: bool,
}

impl FieldProblem {
    /// A problem with what was found, as raw bytes.
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

    /// A problem with a number.
    pub(super) fn of_number(
        column: impl Into<String>,
        found: impl AsRef<[u8]>,
        error: DecimalError,
    ) -> FieldProblem {
        let does_not_fit = error == DecimalError::DoesNotFit;
        FieldProblem { does_not_fit, ..FieldProblem::new(column, found, error.to_string()) }
    }
}
