//! Fleets, workloads and recordings as files say them, checked: what is wrong is an error that names it.

mod autoscale;
mod fleet;
mod ticks;
mod trace;
mod workload;

use thiserror::Error;
use warptape_events::journal::TaskClass;

pub use autoscale::AutoscaleFile;
pub use fleet::{ClassFile, FailureFile, FleetFile, ThrottlingFile};
pub use ticks::{TicksFile, check_ticks};
pub use trace::{TRACE_COLUMNS, trace};
pub use workload::{KindFile, TenantFile, WorkloadFile};

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FileError {
    /// A number is not one that can be simulated.
    #[error("{field} is {found}; it must be {allowed}")]
    Number {
        /// The field.
        field: String,
        /// What it says.
        found: f64,
        /// What it may be.
        allowed: &'static str,
    },
    /// A word is not one of those that are known.
    #[error("{field} is {found:?}; it must be one of: {allowed}")]
    Word {
        /// The field.
        field: String,
        /// What it says.
        found: String,
        /// What it may be.
        allowed: &'static str,
    },
    /// A list has nothing in it.
    #[error("{0} is empty; there must be one at least")]
    Empty(&'static str),
    /// No lane of the fleet can do a kind.
    #[error("no class of the fleet has a speed for tasks of the kind {kind:?}; it has speeds for: {known}")]
    Kind {
        /// The kind.
        kind: String,
        /// The kinds that the fleet knows.
        known: String,
    },
    /// A failure or throttling names no class of the fleet.
    #[error("{field} names the class {found:?}; the fleet has: {known}")]
    Class {
        /// What names it.
        field: String,
        /// What it says.
        found: String,
        /// The classes that there are.
        known: String,
    },
    /// A failure is neither at a time nor drawn.
    #[error(
        "a failure of {class} has neither at_s, with back_after_s where lanes come back, nor mtbf_s and mttr_s alone; give it one of the two"
    )]
    Failure {
        /// Its class.
        class: String,
    },
    /// No lane is left in the end.
    #[error("failures leave no lane in the end; have one come back with back_after_s at least")]
    AllLost,
    /// A class does not say how fast it is at ticks.
    #[error(
        "the class {class} has no ticks_per_s, and the workload has [ticks]; say how many ticks a lane of it does in a second"
    )]
    TickSpeed {
        /// The class.
        class: String,
    },
    /// Lanes that get ticks cannot be started and stopped.
    #[error(
        "the fleet has [autoscale] and the workload has [ticks]; lanes that are started and stopped are simulated with tasks alone: leave one of the two out"
    )]
    TicksAutoscaled,
    /// A line of a recording cannot be read.
    #[error("line {line}: {reason}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// Why.
        reason: String,
    },
}

/// Units that a second of work is divided into.
const UNITS_PER_S: f64 = 2_000.0;
/// The longest task: a day.
const SIZE_S_MAX: f64 = 86_400.0;

fn number(
    field: impl Into<String>,
    found: f64,
    is_allowed: bool,
    allowed: &'static str,
) -> Result<(), FileError> {
    match is_allowed {
        true => Ok(()),
        false => Err(FileError::Number { field: field.into(), found, allowed }),
    }
}

fn is_positive(found: f64) -> bool {
    found > 0.0 && found <= SIZE_S_MAX
}

fn class_of(field: impl Into<String>, word: &str) -> Result<TaskClass, FileError> {
    match word {
        "critical" => Ok(TaskClass::Critical),
        "interactive" => Ok(TaskClass::Interactive),
        "batch" => Ok(TaskClass::Batch),
        _ => {
            let (field, found) = (field.into(), word.to_owned());
            Err(FileError::Word { field, found, allowed: "critical, interactive, batch" })
        }
    }
}

#[cfg(test)]
mod tests;
