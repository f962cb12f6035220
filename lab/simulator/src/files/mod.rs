//! Files of fleets, workloads and recordings, checked; errors name the field at fault.

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

/// An error in a file.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FileError {
    /// A number is out of its range.
    #[error("{field} is {found}; it must be {allowed}")]
    Number {
        /// The field.
        field: String,
        /// The value found.
        found: f64,
        /// The allowed range.
        allowed: &'static str,
    },
    /// A word is unknown.
    #[error("{field} is {found:?}; it must be one of: {allowed}")]
    Word {
        /// The field.
        field: String,
        /// The word found.
        found: String,
        /// The allowed words.
        allowed: &'static str,
    },
    /// A list is empty.
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
    /// A failure, throttling or price names an unknown class.
    #[error("{field} names the class {found:?}; the fleet has: {known}")]
    Class {
        /// The field that names it.
        field: String,
        /// The name found.
        found: String,
        /// The fleet's classes.
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
    /// The failures leave no lane.
    #[error("failures leave no lane in the end; have one come back with back_after_s at least")]
    AllLost,
    /// A class lacks its speed at ticks.
    #[error(
        "the class {class} has no ticks_per_s, and the workload has [ticks]; say how many ticks a lane of it does in a second"
    )]
    TickSpeed {
        /// The class.
        class: String,
    },
    /// A fleet with autoscaling gets ticks.
    #[error(
        "the fleet has [autoscale] and the workload has [ticks]; autoscaling is simulated with tasks alone: leave one of the two out"
    )]
    TicksAutoscaled,
    /// A line of a recording cannot be read.
    #[error("line {line}: {reason}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// The reason.
        reason: String,
    },
}

/// Number of units in a second of work.
const UNITS_PER_S: f64 = 2_000.0;
/// Longest task, in seconds: a day.
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
