//! Sources of ticks for `warptape feed` and `warptape demo`.
//!
//! A source is a pull iterator: it reads or computes one tick per call. Its memory depends on the number of open files,
//! never on their length. Sources parse recordings, CSV and DBN, or make a synthetic market. They do not know the event
//! log, Avro, sockets, or the clock. A [`Batcher`] groups their ticks into records of one partition each. [`live`] is
//! the pure part of live feeds.
//!
//! ```text
//!  binance_capture ─┐
//!  coinbase ────────┤
//!  csv ─────────────┤ Merge (by arrival)
//!  dbn ─────────────┘        ├─► Source ─► Batcher ─► (partition, ticks) ─► encoder, log: the caller's
//!  synth ────────────────────┘
//! ```

mod arrival_merge;
mod batcher;
pub mod binance_capture;
pub mod capture;
pub mod coinbase;
pub mod csv;
#[cfg(feature = "dbn")]
pub mod dbn;
mod decimal;
mod error;
mod gaps;
mod input;
pub mod live;
mod partition;
mod price_scales;
mod symbol;
pub mod synth;
mod time_unit;
mod utf16;
mod venues;
mod zip_entry;

#[cfg(test)]
mod test_ticks;

pub use self::batcher::{Batcher, BatcherConfig, TickRecord};
pub use self::decimal::{DecimalError, Scaled, parse_e9, parse_prices, parse_sizes};
pub use self::error::{FieldProblem, SourceError};
pub use self::gaps::{EarliestTicks, GapFollower, GapSummary, GapSurvey, Gaps, JUMP_ROWS, TickPlace, Word};
pub use self::input::unpacked;
pub use self::partition::partition_of;
pub use self::time_unit::TimeUnit;

use std::collections::BTreeMap;
use std::path::Path;

use warptape_events::tick::Tick;

use self::csv::CsvSource;
use self::input::Lines;
use self::price_scales::PriceScales;

/// A source of ticks. It ends after an error.
pub trait TickSource: Iterator<Item = Result<Tick, SourceError>> {
    /// Returns the source's progress.
    fn progress(&self) -> SourceProgress;

    /// Returns the index of the last tick's input among the files.
    fn last_input(&self) -> usize;

    /// Returns the place of the last tick in its input, from 1.
    fn last_line(&self) -> u64;

    /// Returns the word for the place of a tick in its input.
    fn place_word(&self) -> &'static str {
        "line"
    }

    /// Leaves out the first `ticks` ticks of an input. Must be called before the first tick is taken.
    fn leave(&mut self, input: usize, ticks: u64);

    /// Returns the scales of symbols' prices; `None` if all have nine decimals.
    fn scales(&mut self) -> Option<&mut PriceScales>;

    /// Returns the counts of input that was read without yielding a tick.
    fn passed_over(&self) -> PassedOver;
}

/// A source of ticks for `feed`.
pub enum Source {
    /// CSV files, for which `feed` has more options than for other sources.
    Csv(Box<CsvSource>),
    /// Any other source.
    Other(Box<dyn TickSource>),
}

impl Source {
    /// Wraps any source except CSV files.
    pub fn of(source: impl TickSource + 'static) -> Self {
        Self::Other(Box::new(source))
    }

    fn ticks(&self) -> &dyn TickSource {
        match self {
            Source::Csv(source) => &**source,
            Source::Other(source) => &**source,
        }
    }

    fn ticks_mut(&mut self) -> &mut dyn TickSource {
        match self {
            Source::Csv(source) => &mut **source,
            Source::Other(source) => &mut **source,
        }
    }

    /// Returns the source's progress.
    pub fn progress(&self) -> SourceProgress {
        self.ticks().progress()
    }

    /// Returns the index of the last tick's input among the files.
    pub fn last_input(&self) -> usize {
        self.ticks().last_input()
    }

    /// Returns the place of the last tick.
    pub fn last_place(&self) -> TickPlace {
        TickPlace { input: self.last_input(), line: self.ticks().last_line() }
    }

    /// Returns the word for a tick's place in its input: line or record.
    pub fn place_word(&self) -> &'static str {
        self.ticks().place_word()
    }

    /// Leaves out the first `ticks` ticks of an input. Must be called before the first tick is taken.
    pub fn leave(&mut self, input: usize, ticks: u64) {
        self.ticks_mut().leave(input, ticks);
    }

    /// Sets the scale that a symbol's prices have in the log: later prices must be exact with that many decimals. Must
    /// be called before the first tick is taken.
    pub fn know_scale(&mut self, symbol: &str, scale: u8) {
        if let Some(scales) = self.ticks_mut().scales() {
            scales.know(symbol, scale);
        }
    }

    /// Returns symbol and scale of the last tick; `None` unless it was the symbol's first tick, with a scale other than
    /// nine decimals.
    pub fn take_begun_scale(&mut self) -> Option<(String, u8)> {
        self.ticks_mut().scales()?.take_begun()
    }

    /// Returns the counts of input that was read without yielding a tick.
    pub fn passed_over(&self) -> PassedOver {
        self.ticks().passed_over()
    }
}

impl Iterator for Source {
    type Item = Result<Tick, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.ticks_mut().next()
    }
}

/// Progress of a source, for a progress bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceProgress {
    /// Amount done so far, at most `total`.
    pub done: u64,
    /// Total amount; `None` if unknown.
    pub total: Option<u64>,
    /// Unit of both amounts.
    pub unit: ProgressUnit,
}

/// The unit of [`SourceProgress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressUnit {
    /// Bytes of the files as stored, so for compressed files compressed bytes.
    Bytes,
    /// Ticks.
    Ticks,
}

/// Counts of input that yielded no tick, so that nothing is dropped silently.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PassedOver {
    /// Number of well-formed inputs other than ticks, such as depth updates, by kind.
    pub ignored: BTreeMap<String, u64>,
    /// Number of lines that did not parse and were written to a separate file.
    pub bad: u64,
}

/// Greatest number of counted kinds, because input may invent kinds, and longest name of a kind in bytes.
const KINDS_MAX: usize = 32;
const KIND_BYTES_MAX: usize = 64;
/// Kind of ticks with numbers beyond the range of a tick.
const DOES_NOT_FIT: &str = "tick with a price or size beyond 64 bits";
/// Kind of trades without price or size, which venues use as markers.
pub const ZERO_TRADE: &str = "trade of price or size 0";
/// Greatest number of lines with such numbers that are named per file.
const NAMED_MAX: u64 = 10;
/// Kind under which all further kinds are counted.
const FURTHER_KINDS: &str = "something else";

impl PassedOver {
    /// Returns the number of ticks that were left out because a number exceeds the range of a tick.
    pub fn unfit(&self) -> u64 {
        self.ignored.get(DOES_NOT_FIT).copied().unwrap_or(0)
    }

    /// Counts one input of a kind.
    fn ignore(&mut self, kind: &str) {
        self.ignore_all(kind, 1);
    }

    fn ignore_all(&mut self, kind: &str, count: u64) {
        if let Some(known) = self.ignored.get_mut(kind) {
            *known += count;
            return;
        }
        let is_countable = self.ignored.len() < KINDS_MAX && kind.len() <= KIND_BYTES_MAX;
        let kind = if is_countable { kind } else { FURTHER_KINDS };
        *self.ignored.entry(kind.to_owned()).or_default() += count;
    }
}

/// Logs the first lines with a number beyond the range of a tick. Further lines are only counted.
fn warn_of(lines: &Lines, problem: &FieldProblem, before: u64) {
    warn_at(lines.path(), lines.number(), problem, before);
}

fn warn_at(path: &Path, line: u64, problem: &FieldProblem, before: u64) {
    let path = path.display();
    match before + 1 {
        ..NAMED_MAX => tracing::warn!(%path, line, %problem, "a tick is left out"),
        NAMED_MAX => {
            tracing::warn!(%path, line, %problem, "a tick is left out; further ones are counted only")
        }
        _ => {}
    }
}

impl std::iter::Sum for PassedOver {
    fn sum<I: Iterator<Item = PassedOver>>(parts: I) -> PassedOver {
        parts.fold(PassedOver::default(), |mut sum, part| {
            part.ignored.iter().for_each(|(kind, count)| sum.ignore_all(kind, *count));
            sum.bad += part.bad;
            sum
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_bounded_and_all_are_counted() {
        let mut one = PassedOver::default();
        (0..100).for_each(|number| one.ignore(&format!("kind {number}")));
        one.ignore("kind 7");
        one.ignore(&"k".repeat(65));
        assert_eq!(one.ignored.len(), KINDS_MAX + 1);
        assert_eq!((one.ignored["kind 7"], one.ignored[FURTHER_KINDS]), (2, 69));
        let both: PassedOver = [one.clone(), PassedOver { bad: 3, ..one }].into_iter().sum();
        assert_eq!((both.ignored.values().sum::<u64>(), both.bad), (204, 3));
    }
}
