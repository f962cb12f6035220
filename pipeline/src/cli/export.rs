//! Arguments of `replay export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use warptape_replay::Bound;
use warptape_sources::TimeUnit;

use super::VerifyFormat;

/// Arguments of `warptape replay export`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
A BOUND is a time (2026-11-24T03:00:00Z), `offset:N` or `sequence:N` of a journal entry; --until names the first entry after the export.
The file begins at the last start or checkpoint before the window and ends behind a transaction, so every replay command works on it:
warptape replay verify --outputs --log sqlite:FILE. Existing files are never overwritten.

With --follow, tables have a file per partition of the log, day and --every: TABLE/date=DAY/PARTITION-FIRST-NEXT.parquet. A file appears when it is
whole. A later start goes on where the files end.

Example: warptape replay export --to night.db --since 2026-11-24T03:00:00Z --until 2026-11-24T03:10:00Z --with-ticks
Another: warptape replay export --format parquet --follow --tables signals,ticks --to tables")]
pub struct ExportArgs {
    /// File to write; with --format parquet or arrow the folder for the tables
    #[arg(long, value_name = "PATH")]
    pub to: PathBuf,
    /// First entry of the export (default: the first one in the log)
    #[arg(long, value_name = "BOUND", value_parser = parse_bound)]
    pub since: Option<Bound>,
    /// First entry after the export (default: none, all entries to the end)
    #[arg(long, value_name = "BOUND", value_parser = parse_bound)]
    pub until: Option<Bound>,
    /// Partition of the journal, the ordinal of the process, that offsets and sequences refer to
    #[arg(long, value_name = "ORDINAL", default_value_t = 0)]
    pub partition: i32,
    /// Write ticks, signals, late ticks, dead letters and the state before them as well; tables never need it
    #[arg(long)]
    pub with_ticks: bool,
    /// Contents and format of the export
    #[arg(long, value_enum, default_value_t = ExportFormat::Log)]
    pub format: ExportFormat,
    /// Tables to write, such as signals,latencies (default: all)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub tables: Vec<String>,
    /// Keep writing tables of a running pipeline, until Ctrl-C
    #[arg(long, conflicts_with_all = ["since", "until", "with_ticks"])]
    pub follow: bool,
    /// Longest time in seconds until new rows are in a file
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "follow", value_parser = clap::value_parser!(u64).range(1..))]
    pub every: u64,
    /// Format of the printed report
    #[arg(short, long, value_enum, default_value_t = VerifyFormat::Text)]
    pub output: VerifyFormat,
}

/// Formats of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// A file in the embedded log's own format, which replay commands read
    Log,
    /// Tables of signals, ticks, late ticks, dead letters, decisions, batches, tasks, commits and latencies as Parquet
    /// files
    Parquet,
    /// The same tables as Arrow IPC files
    Arrow,
}

/// Parses a bound of a window: a time, `offset:N` or `sequence:N`.
fn parse_bound(text: &str) -> Result<Bound, String> {
    let number = |digits: &str| digits.parse::<i64>().ok().filter(|number| *number >= 0);
    let found = match text.split_once(':') {
        Some(("offset", digits)) => number(digits).map(Bound::Offset),
        Some(("sequence", digits)) => number(digits).map(Bound::Sequence),
        _ => TimeUnit::Rfc3339.parse_ns(text.as_bytes()).map(Bound::TimeNs),
    };
    found.ok_or_else(|| {
        "give a time such as 2026-11-24T03:00:00Z, or offset:N or sequence:N of a journal entry".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds() {
        for (text, expected) in [
            ("offset:0", Some(Bound::Offset(0))),
            ("sequence:42", Some(Bound::Sequence(42))),
            ("1970-01-01T00:00:01Z", Some(Bound::TimeNs(1_000_000_000))),
            ("2026-11-24T03:00:00.5Z", Some(Bound::TimeNs(1_795_489_200_500_000_000))),
            ("offset:-1", None),
            ("offset:", None),
            ("42", None),
            ("2026-11-24", None),
            ("", None),
        ] {
            assert_eq!(parse_bound(text).ok(), expected, "{text:?}");
        }
    }
}
