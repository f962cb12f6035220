//! Compares two recorded runs: where they first diverge, which groups were on other lanes, and what that cost.
//!
//! ```text
//!  journal A, journal B ──► entry by entry, while inputs are the same ──► first input and first decision that differ   parted
//!  history A, history B ──► rows by group and lane, waits by step     ──► what moved, what it cost                     side, moved
//!  signals A, signals B ──► signal by signal                          ──► whether outputs are the same                 outputs
//! ```
//!
//! Two live runs never get the same inputs at the same times, so comparisons of inputs and decisions ignore times and
//! measurements. A modelled run (`replay what-if --to`) has no transactions and no signals: if a side is modelled,
//! entries about transactions are skipped, and signals are not compared. This module does not judge which run is right:
//! `verify` does.

mod moved;
mod outputs;
mod parted;
mod side;

use serde::Serialize;
use serde_json::Value;
use warptape_eventlog::EventLog;

pub use moved::{LaneRows, MovedGroup, Moves};
pub use outputs::{OutputsCompared, SignalUnlike};
pub use parted::{Parted, PartedAt};
pub use side::{LaneWork, Latency, MeanWait, Side, Totals};

use crate::about::modelled_from;
use crate::difference::differences;
use crate::{ReplayError, ReplayProgress, VerifyOptions};

/// The differences between two runs. The first of each pair belongs to the first run.
#[derive(Clone, Debug, Serialize)]
pub struct Diff {
    /// Summary of each run.
    pub sides: [Side; 2],
    /// Fields of scheduler, lanes and stages in which the first lives are configured differently.
    pub configuration: Vec<Unlike>,
    /// The places where the journals diverge, for each partition that both journals have.
    pub parted: Vec<Parted>,
    /// Groups that were on other lanes.
    pub moves: Moves,
    /// The comparison of the signals; empty if a side is modelled.
    pub outputs: OutputsCompared,
}

/// A field that differs between two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unlike {
    /// Path of the field, such as `decisions[0].place.lane`.
    pub field: String,
    /// Value in the first run; `None` if the run lacks the field.
    pub a: Option<Value>,
    /// Value in the second run; `None` if the run lacks the field.
    pub b: Option<Value>,
}

/// One side of a comparison.
#[derive(Clone, Copy)]
pub struct DiffSide<'a> {
    /// Log of the run.
    pub log: &'a dyn EventLog,
    /// Topics of the run.
    pub options: &'a VerifyOptions,
}

impl Diff {
    /// True if both runs have the same configuration, inputs, decisions and signals, apart from times and measurements.
    pub fn is_same(&self) -> bool {
        let goes_on = |parted: &Parted| parted.at.is_none() && parted.more == [0, 0];
        self.configuration.is_empty() && self.parted.iter().all(goes_on) && self.outputs.is_same()
    }
}

/// Compares two runs. Memory is bounded by the open items of a journal, and by the numbers of groups and lanes.
///
/// # Errors
/// If a log cannot be read, or has no journal.
pub fn diff(sides: [DiffSide<'_>; 2], progress: &mut dyn FnMut(ReplayProgress)) -> Result<Diff, ReplayError> {
    let [a, b] = sides;
    let modelled = [modelled_from(a.log)?, modelled_from(b.log)?];
    let parted = parted::parted(sides, modelled.iter().any(Option::is_some))?;
    let (mut a, mut b) = (side::read(a, progress)?, side::read(b, progress)?);
    let configuration = unlike("", &a.configuration, &b.configuration);
    let moves = moved::moves([&a.groups, &b.groups]);
    let outputs = match modelled.iter().any(Option::is_some) {
        // A modelled run has no signals.
        true => OutputsCompared::default(),
        false => outputs::compare(sides, progress)?,
    };
    [a.side.modelled_from, b.side.modelled_from] = modelled;
    Ok(Diff { sides: [a.side, b.side], configuration, parted, moves, outputs })
}

/// Returns the first few fields in which two values differ.
fn unlike(field: &str, a: &Value, b: &Value) -> Vec<Unlike> {
    let all = differences(field, a, b).into_iter();
    all.map(|one| Unlike { field: one.field, a: one.expected, b: one.found }).collect()
}
