//! Arguments of `replay why`, `replay slowest` and `replay why-not`, and the places of a log that they name.

use clap::{Args, ValueEnum};
use warptape_replay::chain::{LaneName, SLOWEST_MAX};
use warptape_replay::history::{Bound, Window};
use warptape_sources::TimeUnit;

use super::VerifyFormat;
use crate::cli::count::parse_count_within;
use crate::cli::show::{ListFormat, parse_bar};
use crate::usage_error::UsageError;

/// Subject of `replay why`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhySubject {
    /// The decisions of the journal entry with this sequence.
    Entry(i64),
    /// The signal at an offset of a partition of the signals.
    Signal {
        /// The partition.
        partition: i32,
        /// The offset.
        offset: i64,
    },
    /// The first signal of a symbol whose bar ends at or after a time, or its newest one.
    Symbol {
        /// The symbol, `VENUE:TICKER`.
        symbol: String,
        /// The time, ns since the epoch; `None` for the newest signal.
        at_ns: Option<i64>,
    },
    /// The answer to a risk request.
    Request(String),
    /// The batch with this number, in the process life that began last.
    Batch(i64),
}

/// Arguments of `warptape replay why`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
WHAT is one of
  42                                    the entry with this sequence in the journal (`warptape tail journal --from-beginning` lists them)
  signal:PARTITION:OFFSET               a signal (`warptape tail signals` and `warptape replay slowest` list them)
  SYNTH:AAAA                            the symbol's newest signal
  SYNTH:AAAA@2024-08-08T00:00:05Z       the symbol's first signal whose bar ends at this event time or later
  SYNTH:AAAA@2024-08-08T00:05:00Z --bar 1m   the same among the signals of this bar
  request:ID                            the answer to a risk request
  batch:17                              a batch of the latest process life

On a terminal, tables are fitted to its width (COLUMNS overrides it); elsewhere they have all columns, as with --wide.
For a signal, a request or a batch, the command prints each wait that led to it: its subject, its length and its cause.

Example: warptape replay why signal:0:1234 --log sqlite:market.db")]
pub struct WhyArgs {
    /// Subject of the explanation
    #[arg(value_name = "WHAT", value_parser = parse_subject)]
    pub subject: WhySubject,
    /// Only signals of this bar, such as 1m or tick:100, where WHAT is a symbol
    #[arg(long, value_name = "BAR", value_parser = parse_bar)]
    pub bar: Option<String>,
    /// Partition of the journal, the ordinal of the process, for an entry or a batch
    #[arg(long, value_name = "ORDINAL", default_value_t = 0)]
    pub partition: i32,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t = VerifyFormat::Text)]
    pub output: VerifyFormat,
    /// All columns of tables, uncut, whatever the width of the terminal
    #[arg(long)]
    pub wide: bool,
    /// Integers of JSON as strings, because jq and JavaScript change integers beyond 2^53
    #[arg(long)]
    pub raw: bool,
}

/// Arguments of `warptape replay slowest`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
The latency of a signal is the time from the publication of the tick record that caused it (the record's create time) to the signal's commit.
On a terminal, the table is fitted to its width (COLUMNS overrides it); elsewhere it has all columns, as with --wide.

Example: warptape replay slowest 20 --since 2026-11-24T03:00:00Z --until 2026-11-24T03:05:00Z --log sqlite:market.db")]
pub struct SlowestArgs {
    /// Number of signals to list, 10000 at most
    #[arg(value_name = "N", default_value = "10", value_parser = parse_signals)]
    pub count: u64,
    /// Part of the journal to search
    #[command(flatten)]
    pub window: WindowArgs,
    /// Only the process with this ordinal (default: all processes). Offsets and sequences refer to each process's own
    /// partition of the journal
    #[arg(long, value_name = "ORDINAL")]
    pub partition: Option<i32>,
    /// Format of the output; JSON is one object for the whole list
    #[arg(short, long, value_enum, default_value_t = ListFormat::Table)]
    pub output: ListFormat,
    /// All columns, uncut, whatever the width of the terminal
    #[arg(long)]
    pub wide: bool,
    /// Integers of JSON as strings, because jq and JavaScript change integers beyond 2^53
    #[arg(long)]
    pub raw: bool,
}

/// Arguments of `warptape replay why-not`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: warptape replay why-not 1 --at 2026-11-24T03:01:00Z --log sqlite:market.db")]
pub struct WhyNotArgs {
    /// The lane: its number in the order of the configuration, or its device, such as cuda:1
    #[arg(value_name = "LANE", value_parser = parse_lane)]
    pub lane: LaneName,
    /// Time, sequence or offset to look at: 2026-11-24T03:01:00Z, 1236, sequence:1236 or offset:N. The state is that
    /// before the first entry at or after it
    #[arg(long, value_name = "WHEN", value_parser = parse_bound)]
    pub at: Bound,
    /// Partition of the journal: the ordinal of the process
    #[arg(long, value_name = "ORDINAL", default_value_t = 0)]
    pub partition: i32,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t = VerifyFormat::Text)]
    pub output: VerifyFormat,
}

/// A part of the journal.
#[derive(Clone, Copy, Debug, Args)]
pub struct WindowArgs {
    /// Begin here: a time such as 2026-11-24T03:00:00Z, a sequence of the journal such as 42 or sequence:42, or
    /// offset:N (default: the beginning of the journal)
    #[arg(long, visible_alias = "from", value_name = "WHEN", value_parser = parse_bound)]
    pub since: Option<Bound>,
    /// End before this, in the same forms (default: the end of the journal)
    #[arg(long, visible_alias = "to", value_name = "WHEN", value_parser = parse_bound)]
    pub until: Option<Bound>,
}

impl WindowArgs {
    /// Returns the window for the replay; an error if it ends before it begins.
    pub fn window(self) -> Result<Window, UsageError> {
        forwards(Window { from: self.since, to: self.until })
    }
}

/// Returns the window; an error if it ends before it begins.
pub(super) fn forwards(window: Window) -> Result<Window, UsageError> {
    if window.is_backwards() { Err(UsageError(BACKWARDS.to_owned())) } else { Ok(window) }
}

/// Error text for a window that ends before it begins.
pub const BACKWARDS: &str = "--until is not after --since, so the window is empty; exchange the two";

/// How a list is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ChainFormat {
    /// Aligned columns
    Table,
    /// One JSON object
    Json,
}

fn parse_subject(text: &str) -> Result<WhySubject, String> {
    let number = |text: &str| text.parse::<i64>().ok().filter(|number| *number >= 0);
    if let Some(sequence) = number(text) {
        return Ok(WhySubject::Entry(sequence));
    }
    if let Some(id) = text.strip_prefix("request:") {
        return Ok(WhySubject::Request(id.to_owned()));
    }
    if let Some(batch) = text.strip_prefix("batch:") {
        let batch =
            number(batch).ok_or_else(|| format!("{batch:?} is no batch number; give one as in batch:17"))?;
        return Ok(WhySubject::Batch(batch));
    }
    if let Some(place) = text.strip_prefix("signal:") {
        let numbers = place.split_once(':').and_then(|(partition, offset)| {
            Some((number(partition).and_then(|partition| i32::try_from(partition).ok())?, number(offset)?))
        });
        let (partition, offset) = numbers
            .ok_or_else(|| format!("{place:?} is no partition and offset; give them as in signal:0:1234"))?;
        return Ok(WhySubject::Signal { partition, offset });
    }
    if let Some((symbol, at)) = text.rsplit_once('@') {
        return Ok(WhySubject::Symbol { symbol: symbol.to_owned(), at_ns: Some(parse_time(at)?) });
    }
    if text.split_once(':').is_some_and(|(venue, ticker)| !venue.is_empty() && !ticker.is_empty()) {
        return Ok(WhySubject::Symbol { symbol: text.to_owned(), at_ns: None });
    }
    Err("give a sequence such as 42, signal:PARTITION:OFFSET, a symbol such as SYNTH:AAAA, SYMBOL@TIME, request:ID or batch:NUMBER"
        .to_owned())
}

/// Parses a place in the journal: a bare number is a sequence.
pub fn parse_bound(text: &str) -> Result<Bound, String> {
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i64>().ok().filter(|_| is_number)
    };
    let found = match text.split_once(':') {
        Some(("sequence", sequence)) => number(sequence).map(Bound::Sequence),
        Some(("offset", offset)) => number(offset).map(Bound::Offset),
        _ => number(text).map(Bound::Sequence).or_else(|| parse_time(text).ok().map(Bound::Time)),
    };
    found.ok_or_else(|| {
        format!(
            "{text:?} is no bound; give a time such as 2026-11-24T03:00:00.5Z, a sequence such as 42, or \
                 offset:N"
        )
    })
}

fn parse_lane(text: &str) -> Result<LaneName, String> {
    match text.is_empty() {
        true => Err("give the number of a lane, or a device such as cuda:1".to_owned()),
        false => Ok(LaneName::named(text)),
    }
}

/// Parses the number of signals to list. The error names `--log`, because users may give a log here by mistake.
fn parse_signals(text: &str) -> Result<u64, String> {
    parse_count_within(text, SLOWEST_MAX as u64)
        .map_err(|mistake| format!("{mistake}; give the log with --log"))
}

pub(in crate::cli) fn parse_time(text: &str) -> Result<i64, String> {
    let time_ns = TimeUnit::Rfc3339.parse_ns(text.as_bytes());
    time_ns.ok_or_else(|| format!("{text:?} is no time; give one such as {}", "2026-11-24T03:00:00.5Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_explained() {
        let check =
            |text: &str, expected: WhySubject| assert_eq!(parse_subject(text), Ok(expected), "{text}");
        check("42", WhySubject::Entry(42));
        check("signal:3:1234", WhySubject::Signal { partition: 3, offset: 1234 });
        check("batch:17", WhySubject::Batch(17));
        check("request:a:b@c", WhySubject::Request("a:b@c".to_owned()));
        let symbol = "SYNTH:AAAA".to_owned();
        check(
            "SYNTH:AAAA@1970-01-01T00:00:01.5Z",
            WhySubject::Symbol { symbol: symbol.clone(), at_ns: Some(1_500_000_000) },
        );
        check("SYNTH:AAAA", WhySubject::Symbol { symbol, at_ns: None });
        for (text, expected) in [
            ("-1", "a sequence such as 42"),
            ("x", "a sequence such as 42"),
            ("x:", "a sequence such as 42"),
            ("batch:x", "no batch number"),
            ("signal:0", "no partition and offset"),
            ("signal:0:-1", "no partition and offset"),
            ("signal:9999999999:1", "no partition and offset"),
            ("A:B@yesterday", "no time; give one such as"),
        ] {
            let error = parse_subject(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn ends_of_windows() {
        assert_eq!(parse_bound("sequence:7"), Ok(Bound::Sequence(7)));
        assert_eq!(parse_bound("7"), Ok(Bound::Sequence(7)));
        assert_eq!(parse_bound("offset:8"), Ok(Bound::Offset(8)));
        assert_eq!(parse_bound("1970-01-01T00:00:02+00:00"), Ok(Bound::Time(2_000_000_000)));
        for text in ["", "-1", "+1", "x", "99999999999999999999", "offset:x", "sequence:-1"] {
            assert!(parse_bound(text).unwrap_err().contains("a sequence such as 42"), "{text}");
        }
    }

    #[test]
    fn lanes_and_counts() {
        assert_eq!(parse_lane("1"), Ok(LaneName::Index(1)));
        assert_eq!(parse_lane("cuda:1"), Ok(LaneName::Device("cuda:1".to_owned())));
        assert!(parse_lane("").is_err());
        assert_eq!(parse_signals("1e4"), Ok(10_000));
        for text in ["10001", "0", "night.db"] {
            let mistake = parse_signals(text).unwrap_err();
            assert!(mistake.contains("from 1 to 10000") && mistake.contains("--log"), "{mistake}");
        }
    }
}
