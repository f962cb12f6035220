//! Sources of ticks for `warptape feed` and `warptape demo`.
//!
//! A source is a pull iterator: it reads or computes one tick when asked, so its memory is bounded by its open files
//! and never by their length. It owns parsing (recordings, CSV, DBN) and the synthetic market; it must not know the
//! event log, Avro, or the clock. What it yields goes through a [`Batcher`] into records of one partition each.
//!
//! ```text
//!  binance_capture ─┐
//!  csv ─────────────┤ Merge (by arrival)
//!  dbn ─────────────┘        ├─► Source ─► Batcher ─► (partition, ticks) ─► encoder, log: the caller's
//!  synth ────────────────────┘
//! ```

mod arrival_merge;
mod batcher;
pub mod binance_capture;
pub mod csv;
pub mod dbn;
mod decimal;
mod error;
mod input;
mod partition;
mod symbol;
pub mod synth;
mod time_unit;

#[cfg(test)]
mod test_ticks;

pub use self::batcher::{Batcher, BatcherConfig, TickRecord};
pub use self::decimal::{DecimalError, parse_e9};
pub use self::error::{FieldProblem, SourceError};
pub use self::partition::partition_of;
pub use self::time_unit::TimeUnit;

use warptape_schemas::tick::Tick;

use self::binance_capture::BinanceCapture;
use self::csv::CsvSource;
use self::dbn::DbnSource;
use self::synth::SynthSource;

/// One of the four producers. After an error it yields nothing more.
pub enum Source {
    /// Recorded Binance streams.
    BinanceCapture(BinanceCapture),
    /// CSV files.
    Csv(CsvSource),
    /// Databento Binary Encoding.
    Dbn(DbnSource),
    /// The synthetic market.
    Synth(Box<SynthSource>),
}

impl Source {
    /// How far the source is.
    pub fn progress(&self) -> Progress {
        match self {
            Source::BinanceCapture(source) => source.progress(),
            Source::Csv(source) => source.progress(),
            Source::Dbn(source) => source.progress(),
            Source::Synth(source) => source.progress(),
        }
    }

    /// What the source has read so far without making a tick of it.
    pub fn passed_over(&self) -> PassedOver {
        match self {
            Source::BinanceCapture(source) => source.passed_over(),
            Source::Csv(source) => source.passed_over(),
            Source::Dbn(source) => source.passed_over(),
            Source::Synth(_) => PassedOver::default(),
        }
    }
}

impl Iterator for Source {
    type Item = Result<Tick, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Source::BinanceCapture(source) => source.next(),
            Source::Csv(source) => source.next(),
            Source::Dbn(source) => source.next(),
            Source::Synth(source) => source.next().map(Ok),
        }
    }
}

/// How far a source is, for a progress bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Done so far, at most `total`.
    pub done: u64,
    /// What there is to do, where that is known.
    pub total: Option<u64>,
    /// What is counted.
    pub unit: ProgressUnit,
}

/// What [`Progress`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressUnit {
    /// Bytes of the files as stored (compressed ones: compressed bytes).
    Bytes,
    /// Ticks.
    Ticks,
}

/// What a source read without making a tick of it: nothing is dropped in silence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassedOver {
    /// Well-formed input that is no tick, such as depth updates.
    pub ignored: u64,
    /// Lines that did not parse and were written aside.
    pub bad: u64,
}

impl std::ops::Add for PassedOver {
    type Output = PassedOver;

    fn add(self, other: PassedOver) -> PassedOver {
        PassedOver { ignored: self.ignored + other.ignored, bad: self.bad + other.bad }
    }
}

impl std::iter::Sum for PassedOver {
    fn sum<I: Iterator<Item = PassedOver>>(parts: I) -> PassedOver {
        parts.fold(PassedOver::default(), std::ops::Add::add)
    }
}
